"""Submissions that do not count: which are recorded, how repetitions are told, whose work is lost."""

import pytest

from coord.core import keys
from coord.core.limits import DAY_MS
from coord.core.tasks.refusals import REFUSAL_QUIET_MS
from coord.core.tasks.schema import Rejection
from coord.core.tasks.types import ReleaseReason
from tests.support.rule_harness import LEASE, T0, RuleHarness

LATE = T0 + LEASE


def overtaken() -> RuleHarness:
    """Session s held generation 1 and lost it; s2 holds generation 2."""
    harness = RuleHarness()
    harness.claim()
    harness.claim("s2", now=LATE)
    return harness


def recorded(harness: RuleHarness) -> list[str]:
    return [key.removeprefix("rejected/p/t/") for key in harness.keys("rejected/")]


def test_a_stale_result_is_recorded() -> None:
    """A result rejected as stale is kept as a submission that was not accepted, with its reason.

    CLM-73, AUD-29.
    """
    harness = overtaken()
    reply = harness.submit(now=LATE + 1, result=b'{"text":"late"}').reply
    assert (reply.accepted, reply.reason, reply.current_generation, reply.work_lost) == (
        False,
        "STALE_GENERATION",
        2,
        True,
    )
    (rejected,) = harness.state(now=LATE + 1).rejected
    assert (rejected.accepted, rejected.rejection_reason, rejected.generation) == (
        False,
        "STALE_GENERATION",
        1,
    )
    assert (rejected.session_id, rejected.agent_id, rejected.submitted_ms) == ("s", "agent-s", LATE + 1)
    assert (rejected.size_bytes, rejected.result_data, rejected.times) == (15, None, 1)
    first, *_ = harness.history(now=LATE + 1)
    assert (first.release_reason, first.result_accepted, first.rejected) == ("EXPIRED", False, (rejected,))


def test_repetitions_are_coalesced_for_a_minute() -> None:
    """DESIGN §4: the same refusal of one owner is recorded once in 60 s, then counted on."""
    harness = overtaken()
    for after, writes in [(0, True), (1, False), (REFUSAL_QUIET_MS - 1, False), (REFUSAL_QUIET_MS, True)]:
        done = harness.submit(now=LATE + after)
        assert (bool(done.writes), bool(done.events)) == (writes, writes)
        assert (done.reply.reason, done.reply.work_lost) == ("STALE_GENERATION", True)
    (rejected,) = harness.state(now=LATE).rejected
    assert (rejected.times, rejected.submitted_ms) == (2, LATE + REFUSAL_QUIET_MS)


def test_another_reason_is_told_at_once() -> None:
    """DESIGN §4: repetition means the same answer; when the reason changes, that is news."""
    harness = overtaken()
    harness.submit(now=LATE)
    harness.release("s2", 2, now=LATE)
    again = harness.submit(now=LATE + 1)
    assert (again.reply.reason, again.event_tags) == ("NO_CLAIM", ["task.result_rejected"])
    kept = {each.rejection_reason: each.times for each in harness.state(now=LATE).rejected}
    assert kept == {"STALE_GENERATION": 1, "NO_CLAIM": 1}, "the second replaces nothing"


def test_other_sessions_and_generations_are_their_own() -> None:
    """CLM-73: each session and each generation has its own record."""
    harness = overtaken()
    harness.submit(now=LATE)
    harness.submit("s3", 1, now=LATE)
    harness.submit("s3", 2, now=LATE)
    assert recorded(harness) == [
        "00000001/s/submit:STALE_GENERATION",
        "00000001/s3/submit:STALE_GENERATION",
        "00000002/s3/submit:SESSION_MISMATCH",
    ]
    by_generation = [[r.session_id for r in entry.rejected] for entry in harness.history(now=LATE + LEASE)]
    assert by_generation == [["s", "s3"], ["s3"]]


@pytest.mark.parametrize(
    ("session", "generation", "reason"),
    [
        ("s2", 3, "FUTURE_GENERATION"),
        ("x", 2**53 - 1, "FUTURE_GENERATION"),
        ("s", 0, "STALE_GENERATION"),
    ],
)
def test_a_generation_never_granted_is_recorded(session: str, generation: int, reason: str) -> None:
    """AUD-29: a made-up generation is refused, and auditors see who named it; nothing was lost."""
    harness = overtaken()
    done = harness.submit(session, generation, now=LATE)
    assert (done.reply.reason, done.reply.work_lost) == (reason, False)
    (rejected,) = harness.state(now=LATE).rejected
    assert (rejected.session_id, rejected.generation, rejected.rejection_reason) == (
        session,
        generation,
        reason,
    )


def test_a_submission_without_a_claim_is_recorded() -> None:
    """CLM-68, AUD-29: also for a task that nobody ever claimed."""
    harness = RuleHarness()
    done = harness.submit()
    assert (done.reply.reason, done.reply.current_generation) == ("NO_CLAIM", 0)
    assert recorded(harness) == ["00000001/s/submit:NO_CLAIM"]


def test_the_accepted_result_once_more_is_no_loss() -> None:
    """The holder who sends its accepted result again lost nothing, and it is not recorded.

    CLM-62, CLM-71.
    """
    harness = RuleHarness()
    harness.claim()
    harness.submit()
    again = harness.submit()
    assert (again.reply.reason, again.reply.work_lost, again.writes) == ("TASK_ALREADY_COMPLETED", False, {})
    harness.reset()
    after_reset = harness.submit()
    assert (after_reset.reply.reason, after_reset.reply.work_lost, after_reset.writes) == (
        "NO_CLAIM",
        False,
        {},
    )


LOSSES = [
    ("expired and taken", lambda harness: harness.claim("s2", now=LATE), True),
    ("superseded", lambda harness: harness.force("s2"), True),
    ("released", lambda harness: harness.release(), True),
    ("failed", lambda harness: harness.release(reason=ReleaseReason.ERROR), True),
    ("reset", lambda harness: harness.reset(), True),
]


@pytest.mark.parametrize(("end", "lost"), [pytest.param(*row[1:], id=row[0]) for row in LOSSES])
def test_work_lost(end, lost: bool) -> None:
    """CLM-53: work is lost when this session held that generation and it counts no more."""
    harness = RuleHarness()
    harness.claim()
    end(harness)
    mine = harness.submit(now=LATE).reply
    assert (mine.accepted, mine.work_lost) == (False, lost)
    others = harness.submit("never", 1, now=LATE).reply
    assert (others.accepted, others.work_lost) == (False, False)


def test_a_mismatched_session_loses_nothing_but_is_recorded() -> None:
    """CLM-66: the same generation from another session is rejected, and seen by auditors."""
    harness = RuleHarness()
    harness.claim()
    reply = harness.submit("x").reply
    assert (reply.reason, reply.work_lost, reply.current_generation) == ("SESSION_MISMATCH", False, 1)
    rejection = harness.read(keys.rejected("p", "t", 1, "x", "submit:SESSION_MISMATCH"), Rejection)
    assert (rejection.agent, rejection.work_lost) == ("", False)
    assert harness.submit().reply.accepted, "the holder is not harmed"


@pytest.mark.parametrize(("tenant", "index_key"), [("local", ""), ("acme", keys.due(LATE + 90 * DAY_MS))])
def test_a_rejection_is_kept_for_the_retention(tenant: str, index_key: str) -> None:
    """TEN-11: rejected submissions belong to the lineage and are kept as long as it."""
    harness = RuleHarness(tenant)
    harness.claim()
    harness.claim("s2", now=LATE)
    harness.submit(now=LATE)
    assert harness.records[keys.rejected("p", "t", 1, "s", "submit:STALE_GENERATION")].index_key == index_key
