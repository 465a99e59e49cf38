"""Passing deadlines: leases are written down, retention forgets, and a bounded number at a time."""

import pytest

from coord.core import keys
from coord.core.limits import DAY_MS
from coord.core.records import MARKER, encode
from coord.core.sweep import SWEEP_MAX, SweepReply
from coord.core.tasks.claims import LOSS_KEEP_MS
from coord.core.tasks.schema import Task
from coord.core.tasks.types import ReleaseReason
from tests.support.rule_harness import LEASE, T0, Kept, RuleHarness

LATE = T0 + LEASE
RETENTION = 90 * DAY_MS


def test_a_sweep_passes_so_many_and_says_when_the_next_is() -> None:
    """DESIGN §5 Time: at most 32 due records at a time; the answer is the next deadline."""
    harness = RuleHarness()
    for number in range(SWEEP_MAX + 8):
        harness.claim("s", f"t{number}")
    assert harness.sweep(now=LATE - 1).reply == SweepReply(0, LATE)
    first = harness.sweep(now=LATE)
    assert (len(first.event_tags), first.reply) == (SWEEP_MAX, SweepReply(SWEEP_MAX, LATE))
    second = harness.sweep(now=LATE)
    assert (len(second.event_tags), second.reply) == (8, SweepReply(8, LATE + LOSS_KEEP_MS))


def test_the_oldest_deadline_goes_first() -> None:
    """DESIGN §3: the due line is in the order of deadlines."""
    harness = RuleHarness()
    for task, lease_ms in [("late", 3_000), ("early", 1_000), ("middle", 2_000)]:
        harness.claim("s", task, lease_ms=lease_ms)
    swept = [harness.sweep(now=T0 + 9_000, most=1).events[0]["task"] for _ in range(3)]
    assert swept == ["early", "middle", "late"]


def test_a_renewed_lease_is_not_swept() -> None:
    """CLM-35: the line follows the renewal."""
    harness = RuleHarness()
    harness.claim()
    harness.renew(now=T0 + 10)
    assert harness.sweep(now=LATE).event_tags == []
    assert harness.sweep(now=LATE + 10).event_tags == ["task.expired"]


def test_expiry_is_written_down_as_of_its_deadline() -> None:
    """DESIGN §5 Time: record and event follow later and carry the deadline as their end."""
    harness = RuleHarness()
    harness.claim()
    (event,) = harness.sweep(now=LATE + 7_777).events
    task = harness.read(keys.task("p", "t"), Task)
    assert (event["expired_ms"], task.ended_ms, task.end_reason) == (LATE, LATE, ReleaseReason.EXPIRED)


def test_replies_to_command_ids_are_forgotten() -> None:
    """DESIGN §4: what a command id was answered leaves at its deadline, without an event."""
    harness = RuleHarness()
    harness.records[keys.done("c-1")] = Kept(encode(MARKER), keys.due(T0 + 5))
    assert harness.sweep(now=T0 + 4).reply == SweepReply(0, T0 + 5)
    done = harness.sweep(now=T0 + 5)
    assert (done.reply, done.events, harness.records) == (SweepReply(1), [], {})


def test_a_kind_that_only_a_newer_version_knows_is_left_alone() -> None:
    """Rule 4: what this version does not understand it does not delete, and it holds up nothing else."""
    harness = RuleHarness()
    strange = [f"novelty/repo/{number:02d}" for number in range(SWEEP_MAX + 8)]
    for key in strange:
        harness.records[key] = Kept(b'{"schema":1,"owner":"s"}', keys.due(T0))
    harness.claim()
    done = harness.sweep(now=LATE)
    assert (done.event_tags, done.reply.passed) == (["task.expired"], 1)
    assert harness.keys("novelty/") == strange


def finished_twice(*, done: bool) -> RuleHarness:
    """A limited tenant's task with a result in its first generation, and a second that is done or not."""
    harness = RuleHarness("acme")
    harness.claim()
    harness.submit()
    harness.reset()
    harness.claim("s2")
    if done:
        harness.submit("s2", 2)
    else:
        harness.release("s2", 2)
    return harness


def test_history_of_a_finished_task_is_forgotten_after_its_retention() -> None:
    """TEN-11: an earlier generation leaves with its result when its retention is over; the last one stays."""
    harness = finished_twice(done=True)
    assert harness.sweep(now=T0 + RETENTION - 1).event_tags == []
    assert [entry.generation for entry in harness.history()] == [1, 2]
    swept = harness.sweep(now=T0 + RETENTION)
    assert swept.events == [{"event": "task.history_forgotten", "project": "p", "task": "t", "generation": 1}]
    assert swept.reply == SweepReply(1)
    assert harness.keys() == [
        "count/claims",
        "count/sessions",
        "result/p/t/00000002",
        "task/p/t",
    ]
    assert [entry.generation for entry in harness.history()] == [2]
    assert harness.state().result.result_data == {"n": 1}


def test_history_of_an_unfinished_task_is_kept() -> None:
    """TEN-11, CLM-21: as long as a task is not done its lineage stays; it is looked at again a day later."""
    harness = finished_twice(done=False)
    swept = harness.sweep(now=T0 + RETENTION)
    assert (swept.event_tags, swept.reply) == ([], SweepReply(1, T0 + RETENTION + DAY_MS))
    assert [entry.generation for entry in harness.history()] == [1, 2]
    assert "result/p/t/00000001" in harness.records
    harness.claim("s3", now=T0 + RETENTION)
    harness.submit("s3", 3, now=T0 + RETENTION)
    swept = harness.sweep(now=T0 + RETENTION + DAY_MS)
    assert swept.event_tags == ["task.history_forgotten"]
    assert [entry.generation for entry in harness.history(now=T0)] == [2, 3]


@pytest.mark.parametrize("days", [1, 90, 365])
def test_retention_follows_the_tenants_limit(days: int) -> None:
    """TEN-11, AUD-28: the limit in force when a generation is archived says how long it is kept."""
    harness = RuleHarness("acme")
    harness.set_limits(claim_history_retention_days=days)
    harness.claim()
    harness.release()
    harness.claim()
    assert harness.records["history/p/t/00000001"].index_key == keys.due(T0 + days * DAY_MS)


def test_sweeping_changes_no_answer() -> None:
    """DESIGN §5 Time: deadlines act when they pass; a sweep only keeps the books."""
    swept, unswept = RuleHarness("acme"), RuleHarness("acme")
    for harness in (swept, unswept):
        harness.claim()
        harness.claim("s2", "other", lease_ms=LEASE + 1)
    swept.sweep(now=LATE)
    for ask in (RuleHarness.state, RuleHarness.history):
        assert ask(swept, now=LATE) == ask(unswept, now=LATE)
    assert swept.claims_of(now=LATE) == unswept.claims_of(now=LATE) == []
    assert swept.expired(now=LATE) == unswept.expired(now=LATE)
    assert [claim.task_id for claim in swept.expired(now=LATE)] == ["t"]
    assert swept.claim("s3", now=LATE).reply == unswept.claim("s3", now=LATE).reply
