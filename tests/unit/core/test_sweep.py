"""Passing deadlines: leases are written down, retention forgets, and a bounded number at a time."""

import pytest

from coord.core import keys
from coord.core.commands import SWEEP_MOST
from coord.core.limits import DAY_MS
from coord.core.records import MARKER, encode
from coord.core.replies import SweepReply
from coord.core.tasks.lost import KEPT_MS
from coord.core.tasks.schema import Task
from coord.core.tasks.types import ReleaseReason
from tests.support.rule_harness import LEASE, T0, Desk, Kept

LATE = T0 + LEASE
RETENTION = 90 * DAY_MS


def test_a_sweep_passes_so_many_and_says_when_the_next_is() -> None:
    """DESIGN §5 Time: at most 32 due records at a time; the answer is the next deadline."""
    desk = Desk()
    for number in range(SWEEP_MOST + 8):
        desk.claim("s", f"t{number}")
    assert desk.sweep(now=LATE - 1).reply == SweepReply(0, LATE)
    first = desk.sweep(now=LATE)
    assert (len(first.told), first.reply) == (SWEEP_MOST, SweepReply(SWEEP_MOST, LATE))
    second = desk.sweep(now=LATE)
    assert (len(second.told), second.reply) == (8, SweepReply(8, LATE + KEPT_MS))


def test_the_oldest_deadline_goes_first() -> None:
    """DESIGN §3: the due line is in the order of deadlines."""
    desk = Desk()
    for task, lease_ms in [("late", 3_000), ("early", 1_000), ("middle", 2_000)]:
        desk.claim("s", task, lease_ms=lease_ms)
    swept = [desk.sweep(now=T0 + 9_000, most=1).events[0]["task"] for _ in range(3)]
    assert swept == ["early", "middle", "late"]


def test_a_renewed_lease_is_not_swept() -> None:
    """CLM-35: the line follows the renewal."""
    desk = Desk()
    desk.claim()
    desk.renew(now=T0 + 10)
    assert desk.sweep(now=LATE).told == []
    assert desk.sweep(now=LATE + 10).told == ["task.expired"]


def test_expiry_is_written_down_as_of_its_deadline() -> None:
    """DESIGN §5 Time: record and event follow later and carry the deadline as their end."""
    desk = Desk()
    desk.claim()
    (told,) = desk.sweep(now=LATE + 7_777).events
    task = desk.read(keys.task("p", "t"), Task)
    assert (told["expired_ms"], task.ended_ms, task.end_reason) == (LATE, LATE, ReleaseReason.EXPIRED)


def test_replies_to_command_ids_are_forgotten() -> None:
    """DESIGN §4: what a command id was answered leaves at its deadline, without an event."""
    desk = Desk()
    desk.records[keys.done("c-1")] = Kept(encode(MARKER), keys.due(T0 + 5))
    assert desk.sweep(now=T0 + 4).reply == SweepReply(0, T0 + 5)
    done = desk.sweep(now=T0 + 5)
    assert (done.reply, done.events, desk.records) == (SweepReply(1), [], {})


def test_a_kind_that_only_a_newer_version_knows_is_left_alone() -> None:
    """Rule 4: what this version does not understand it does not delete, and it holds up nothing else."""
    desk = Desk()
    strange = [f"novelty/repo/{number:02d}" for number in range(SWEEP_MOST + 8)]
    for key in strange:
        desk.records[key] = Kept(b'{"schema":1,"owner":"s"}', keys.due(T0))
    desk.claim()
    done = desk.sweep(now=LATE)
    assert (done.told, done.reply.passed) == (["task.expired"], 1)
    assert desk.keys("novelty/") == strange


def finished_twice(*, done: bool) -> Desk:
    """A limited tenant's task with a result in its first generation, and a second that is done or not."""
    desk = Desk("acme")
    desk.claim()
    desk.submit()
    desk.reset()
    desk.claim("s2")
    if done:
        desk.submit("s2", 2)
    else:
        desk.release("s2", 2)
    return desk


def test_history_of_a_finished_task_is_forgotten_after_its_retention() -> None:
    """TEN-11: an earlier generation leaves with its result when its retention is over; the last one stays."""
    desk = finished_twice(done=True)
    assert desk.sweep(now=T0 + RETENTION - 1).told == []
    assert [entry.generation for entry in desk.history()] == [1, 2]
    swept = desk.sweep(now=T0 + RETENTION)
    assert swept.events == [{"event": "task.history_forgotten", "project": "p", "task": "t", "generation": 1}]
    assert swept.reply == SweepReply(1)
    assert desk.keys() == [
        "count/claims",
        "count/sessions",
        "result/p/t/00000002",
        "task/p/t",
    ]
    assert [entry.generation for entry in desk.history()] == [2]
    assert desk.state().result.result_data == {"n": 1}


def test_history_of_an_unfinished_task_is_kept() -> None:
    """TEN-11, CLM-21: as long as a task is not done its lineage stays; it is looked at again a day later."""
    desk = finished_twice(done=False)
    swept = desk.sweep(now=T0 + RETENTION)
    assert (swept.told, swept.reply) == ([], SweepReply(1, T0 + RETENTION + DAY_MS))
    assert [entry.generation for entry in desk.history()] == [1, 2]
    assert "result/p/t/00000001" in desk.records
    desk.claim("s3", now=T0 + RETENTION)
    desk.submit("s3", 3, now=T0 + RETENTION)
    swept = desk.sweep(now=T0 + RETENTION + DAY_MS)
    assert swept.told == ["task.history_forgotten"]
    assert [entry.generation for entry in desk.history(now=T0)] == [2, 3]


@pytest.mark.parametrize("days", [1, 90, 365])
def test_retention_follows_the_tenants_limit(days: int) -> None:
    """TEN-11, AUD-28: the limit in force when a generation is archived says how long it is kept."""
    desk = Desk("acme")
    desk.set_limits(claim_history_retention_days=days)
    desk.claim()
    desk.release()
    desk.claim()
    assert desk.records["history/p/t/00000001"].index_key == keys.due(T0 + days * DAY_MS)


def test_sweeping_changes_no_answer() -> None:
    """DESIGN §5 Time: deadlines act when they pass; a sweep only keeps the books."""
    swept, unswept = Desk("acme"), Desk("acme")
    for desk in (swept, unswept):
        desk.claim()
        desk.claim("s2", "other", lease_ms=LEASE + 1)
    swept.sweep(now=LATE)
    for ask in (Desk.state, Desk.history):
        assert ask(swept, now=LATE) == ask(unswept, now=LATE)
    assert swept.claims_of(now=LATE) == unswept.claims_of(now=LATE) == []
    assert swept.expired(now=LATE) == unswept.expired(now=LATE)
    assert [claim.task_id for claim in swept.expired(now=LATE)] == ["t"]
    assert swept.claim("s3", now=LATE).reply == unswept.claim("s3", now=LATE).reply
