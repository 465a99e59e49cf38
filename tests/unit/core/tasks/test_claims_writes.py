"""What each command writes and tells, exactly: few records per operation is the whole of performance."""

from collections.abc import Callable

import pytest

from coord.core import keys
from coord.core.limits import DAY_MS, Count
from coord.core.tasks.claims import LOSS_KEEP_MS
from coord.core.tasks.schema import Task
from coord.core.tasks.types import ReleaseReason
from tests.support.rule_harness import LEASE, T0, Outcome, RuleHarness

DUE = keys.due(T0 + LEASE)
LATE = T0 + LEASE
TASK, MINE = "task/p/t", "by-session/s/p/t"
OLD, GAINED = "history/p/t/00000001", "result/p/t/00000001"
EXPIRED = f"expired/{LATE}/p/t"
COUNTS = {"count/claims": "", "count/sessions": "", "count/session/s": ""}
LOST = "lost/s/p/t"
KEPT_90_DAYS = keys.due(T0 + 90 * DAY_MS)
NO_CLAIM = "rejected/p/t/00000001/s/submit:NO_CLAIM"


def held(tenant: str) -> RuleHarness:
    harness = RuleHarness(tenant)
    harness.claim()
    return harness


def again(harness: RuleHarness, step: Callable[[RuleHarness], Outcome]) -> Outcome:
    step(harness)
    return step(harness)


def swept(tenant: str) -> RuleHarness:
    harness = held(tenant)
    harness.sweep(now=LATE)
    return harness


Step = Callable[[str], Outcome]

# What is done; the lines of records put (None: deleted); what a limited tenant writes besides; the events.
WRITES: list[tuple[str, Step, dict[str, str | None], dict[str, str | None], list[str]]] = [
    ("first claim", lambda t: RuleHarness(t).claim(), {TASK: DUE, MINE: ""}, {**COUNTS}, ["task.claimed"]),
    (
        "denied claim",
        lambda t: held(t).claim("x"),
        {"rejected/p/t/00000001/x/claim:DENIED_ACTIVE_CLAIM": KEPT_90_DAYS},
        {},
        ["task.refused"],
    ),
    ("denied claim again", lambda t: again(held(t), lambda h: h.claim("x")), {}, {}, []),
    ("renewal", lambda t: held(t).renew(now=T0 + 5), {TASK: keys.due(LATE + 5)}, {}, ["task.renewed"]),
    (
        "refused renewal",
        lambda t: held(t).renew("x"),
        {"rejected/p/t/00000001/x/renew:SESSION_MISMATCH": KEPT_90_DAYS},
        {},
        ["task.refused"],
    ),
    ("refused renewal again", lambda t: again(held(t), lambda h: h.renew("x")), {}, {}, []),
    (
        "refused release",
        lambda t: held(t).release("x"),
        {"rejected/p/t/00000001/x/release:SESSION_MISMATCH": KEPT_90_DAYS},
        {},
        ["task.refused"],
    ),
    (
        "release",
        lambda t: held(t).release(),
        {TASK: "", MINE: None},
        {**COUNTS, "count/session/s": None},
        ["task.released"],
    ),
    (
        "submission",
        lambda t: held(t).submit(),
        {TASK: "", GAINED: "", MINE: None},
        {**COUNTS, "count/session/s": None},
        ["task.completed"],
    ),
    (
        "late submission, unswept",
        lambda t: held(t).submit(now=LATE),
        {TASK: "", GAINED: "", MINE: None, LOST: keys.due(LATE + LOSS_KEEP_MS)},
        {**COUNTS, "count/session/s": None},
        ["task.expired", "task.completed"],
    ),
    (
        "late submission, swept",
        lambda t: swept(t).submit(now=LATE),
        {TASK: "", GAINED: "", EXPIRED: None},
        {},
        ["task.completed"],
    ),
    (
        "sweep",
        lambda t: held(t).sweep(now=LATE),
        {TASK: "", MINE: None, EXPIRED: "", LOST: keys.due(LATE + LOSS_KEEP_MS)},
        {**COUNTS, "count/session/s": None},
        ["task.expired"],
    ),
    ("early sweep", lambda t: held(t).sweep(now=LATE - 1), {}, {}, []),
    (
        "reset",
        lambda t: held(t).reset(),
        {TASK: "", MINE: None, OLD: "", LOST: keys.due(T0 + LOSS_KEEP_MS)},
        {**COUNTS, "count/session/s": None, OLD: KEPT_90_DAYS},
        ["task.released", "task.reset"],
    ),
    ("reset of nothing", lambda t: RuleHarness(t).reset(), {}, {}, []),
    (
        "submission of nothing",
        lambda t: RuleHarness(t).submit(),
        {NO_CLAIM: ""},
        {NO_CLAIM: KEPT_90_DAYS},
        ["task.result_rejected"],
    ),
    ("question", lambda t: _question(held(t)), {}, {}, []),
]


def _question(harness: RuleHarness) -> Outcome:
    """Ask everything there is to ask, after the deadline, when a command would have something to write."""
    harness.state(now=LATE)
    harness.history(now=LATE)
    harness.claims_of(now=LATE)
    before = dict(harness.records)
    harness.expired(now=LATE)
    assert harness.records == before
    return Outcome(None, {}, {}, [])


@pytest.mark.parametrize("tenant", ["local", "acme"])
@pytest.mark.parametrize(
    ("step", "plain", "limited", "events"), [pytest.param(*row[1:], id=row[0]) for row in WRITES]
)
def test_writes(
    tenant: str,
    step: Step,
    plain: dict[str, str | None],
    limited: dict[str, str | None],
    events: list[str],
) -> None:
    """DESIGN §3: a claim is two records, plus the counts of a limited tenant; nothing writes more."""
    done = step(tenant)
    written = {key: None if done.writes[key] is None else done.index_keys[key] for key in done.writes}
    assert written == (plain if tenant == "local" else {**plain, **limited})
    assert done.event_tags == events


def test_second_claim_archives_the_first() -> None:
    """CLM-21, CLM-33: the latest ended generation moves to history when the next begins, and only then."""
    harness = held("acme")
    harness.release()
    assert not harness.keys("history/")
    done = harness.claim("s2", now=T0 + 7)
    assert set(done.writes) == {
        TASK,
        "by-session/s2/p/t",
        OLD,
        "count/claims",
        "count/sessions",
        "count/session/s2",
    }
    assert done.index_keys[OLD] == keys.due(T0 + 7 + 90 * DAY_MS)
    assert harness.read(OLD, Task).end_reason is ReleaseReason.VOLUNTARY


def test_claim_of_a_swept_claim_clears_the_expired_index() -> None:
    """CLM-25: what is taken over is no longer listed as expired."""
    harness = swept("local")
    done = harness.claim("s2", now=LATE)
    assert done.writes[EXPIRED] is None
    assert not harness.keys("expired/")


def test_events_tell_the_audit_fields() -> None:
    """001 §8.2: CLAIM_ACQUIRED names the previous generation and state, RESULT_REJECTED what was lost.

    AUD-21, AUD-22.
    """
    harness = held("local")
    claimed = harness.claim("s2", now=LATE).events
    assert claimed[0] == {
        "event": "task.expired",
        "project": "p",
        "task": "t",
        "generation": 1,
        "session": "s",
        "agent": "agent-s",
        "expired_ms": LATE,
        "worked_ms": 60_000,
    }
    assert claimed[1] == {
        "event": "task.claimed",
        "project": "p",
        "task": "t",
        "generation": 2,
        "session": "s2",
        "agent": "agent-s2",
        "lease_ms": LEASE,
        "previous_generation": 1,
        "previous_state": "EXPIRED",
    }
    (rejected,) = harness.submit(now=LATE, result=b'{"text":"abc"}').events
    assert rejected == {
        "event": "task.result_rejected",
        "project": "p",
        "task": "t",
        "generation": 1,
        "session": "s",
        "agent": "agent-s",
        "reason": "STALE_GENERATION",
        "current_generation": 2,
        "work_lost": True,
        "result_bytes": 14,
        "worked_ms": LEASE,
    }
    (completed,) = harness.submit("s2", 2, now=LATE).events
    assert (completed["work_product"], completed["result_bytes"]) == ("wp-t-gen2-abcdef", 7)


def test_the_holder_is_told_of_in_every_ending() -> None:
    """However a claim ends, one event names its session and generation and how.

    CLM-33, CLM-36, CLM-37, CLM-38, CLM-39.
    """
    endings: dict[str, Callable[[RuleHarness], Outcome]] = {
        "task.completed": lambda harness: harness.submit(),
        "task.released": lambda harness: harness.release(),
        "task.expired": lambda harness: harness.sweep(now=LATE),
        "task.superseded": lambda harness: harness.force("s2"),
    }
    for name, end in endings.items():
        event = end(held("local")).events[0]
        assert (event["event"], event["session"], event["generation"]) == (name, "s", 1)
    event = held("local").reset().events[0]
    assert (event["event"], event["session"], event["reason"]) == ("task.released", "s", "RESET")


def test_counts_are_records_that_return_to_zero() -> None:
    """DESIGN §3: whatever way claims end, the counts of a limited tenant come back to zero."""
    harness = RuleHarness("acme")
    for task, session in [("a", "s1"), ("b", "s1"), ("c", "s2"), ("d", "s3"), ("e", "s4")]:
        harness.claim(session, task)
    assert (harness.read("count/claims", Count).n, harness.read("count/sessions", Count).n) == (5, 4)
    assert harness.read("count/session/s1", Count).n == 2
    harness.submit("s1", 1, "a")
    harness.release("s1", 1, "b", reason=ReleaseReason.ERROR)
    harness.force("s5", "c")
    harness.reset("d")
    harness.sweep(now=LATE)
    assert (harness.read("count/claims", Count).n, harness.read("count/sessions", Count).n) == (0, 0)
    assert harness.keys("count/session/") == []


def test_the_unlimited_tenant_counts_nothing() -> None:
    """DESIGN §3: tenant `local` is unlimited and keeps no counts, and its history for good."""
    harness = RuleHarness("local")
    harness.claim(lease_ms=1)
    harness.claim("s2", now=T0 + 1)
    assert harness.keys("count/") == []
    assert harness.records[OLD].index_key == ""
