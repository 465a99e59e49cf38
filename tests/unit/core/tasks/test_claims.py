"""The generation clock as tables: every state, every command, every reason, and what a claim becomes."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from coord.core import keys
from coord.core.tasks.schema import Task
from coord.core.tasks.types import (
    ClaimReason,
    ClaimState,
    ReleaseOutcome,
    ReleaseReason,
    RenewalReason,
    ResetReason,
    SubmissionReason,
    TaskStatus,
)
from tests.support.rule_harness import LEASE, T0, Outcome, RuleHarness

NOW = T0 + 1_000
LATE = T0 + LEASE


class Situation(NamedTuple):
    """A task in some state: the harness, the time, the current generation and who holds or held it."""

    harness: RuleHarness
    now: int
    generation: int = 2
    holder: str = "owner"


def owned(tenant: str = "local") -> RuleHarness:
    """A task at its second generation, so that there is an older one and a newer one to name."""
    harness = RuleHarness(tenant)
    harness.claim("earlier")
    harness.release("earlier", 1)
    harness.claim("owner")
    return harness


def fresh() -> Situation:
    return Situation(RuleHarness(), NOW, generation=0)


def active() -> Situation:
    return Situation(owned(), NOW)


def lapsed() -> Situation:
    return Situation(owned(), LATE)


def expired() -> Situation:
    harness = owned()
    harness.sweep(now=LATE)
    return Situation(harness, LATE)


def released() -> Situation:
    harness = owned()
    harness.release("owner", 2)
    return Situation(harness, NOW)


def preempted() -> Situation:
    harness = owned()
    harness.release("owner", 2, reason=ReleaseReason.PREEMPTED)
    return Situation(harness, NOW)


def failed() -> Situation:
    harness = owned()
    harness.release("owner", 2, reason=ReleaseReason.ERROR)
    return Situation(harness, NOW)


def superseded() -> Situation:
    harness = owned()
    harness.force("usurper")
    return Situation(harness, NOW, 3, "usurper")


def done() -> Situation:
    harness = owned()
    harness.submit("owner", 2)
    return Situation(harness, NOW)


def done_late() -> Situation:
    harness = owned()
    harness.submit("owner", 2, now=LATE)
    return Situation(harness, LATE)


def reset() -> Situation:
    harness = owned()
    harness.reset()
    return Situation(harness, NOW)


def reset_after_done() -> Situation:
    harness = owned()
    harness.submit("owner", 2)
    harness.reset()
    return Situation(harness, NOW)


Act = Callable[[Situation], Outcome]

COMMANDS: dict[str, Act] = {
    "claim": lambda s: s.harness.claim("other", now=s.now),
    "claim again": lambda s: s.harness.claim(s.holder, now=s.now),
    "force": lambda s: s.harness.force("other", now=s.now),
    "renew": lambda s: s.harness.renew(s.holder, s.generation, now=s.now),
    "renew older": lambda s: s.harness.renew(s.holder, s.generation - 1, now=s.now),
    "renew newer": lambda s: s.harness.renew(s.holder, s.generation + 1, now=s.now),
    "renew other": lambda s: s.harness.renew("other", s.generation, now=s.now),
    "release": lambda s: s.harness.release(s.holder, s.generation, now=s.now),
    "release older": lambda s: s.harness.release(s.holder, s.generation - 1, now=s.now),
    "release other": lambda s: s.harness.release("other", s.generation, now=s.now),
    "submit": lambda s: s.harness.submit(s.holder, s.generation, now=s.now),
    "submit older": lambda s: s.harness.submit(s.holder, s.generation - 1, now=s.now),
    "submit newer": lambda s: s.harness.submit(s.holder, s.generation + 1, now=s.now),
    "submit other": lambda s: s.harness.submit("other", s.generation, now=s.now),
    "reset": lambda s: s.harness.reset(now=s.now),
}

# A holder whose lease has run out differs from one that is in time only where the deadline says so.
HELD = """DENIED_ACTIVE_CLAIM DENIED_ACTIVE_CLAIM GRANTED
          RENEWED GENERATION_MISMATCH GENERATION_MISMATCH SESSION_MISMATCH
          RELEASED GENERATION_MISMATCH SESSION_MISMATCH
          ACCEPTED STALE_GENERATION FUTURE_GENERATION SESSION_MISMATCH
          RESET"""
RAN_OUT = """GRANTED GRANTED GRANTED
             ALREADY_EXPIRED GENERATION_MISMATCH GENERATION_MISMATCH SESSION_MISMATCH
             ALREADY_EXPIRED GENERATION_MISMATCH SESSION_MISMATCH
             ACCEPTED STALE_GENERATION FUTURE_GENERATION SESSION_MISMATCH
             RESET"""
FREE = """GRANTED GRANTED GRANTED
          NO_CLAIM NO_CLAIM NO_CLAIM NO_CLAIM
          NO_CLAIM NO_CLAIM NO_CLAIM
          NO_CLAIM NO_CLAIM NO_CLAIM NO_CLAIM
          RESET"""
FINISHED = """DENIED_COMPLETED DENIED_COMPLETED DENIED_COMPLETED
              NO_CLAIM NO_CLAIM NO_CLAIM NO_CLAIM
              NO_CLAIM NO_CLAIM NO_CLAIM
              TASK_ALREADY_COMPLETED STALE_GENERATION FUTURE_GENERATION TASK_ALREADY_COMPLETED
              RESET"""

TABLE: dict[Callable[[], Situation], str] = {
    fresh: FREE.replace("RESET", "NOT_FOUND"),
    active: HELD,
    superseded: HELD,
    lapsed: RAN_OUT,
    expired: RAN_OUT,
    released: FREE,
    preempted: FREE,
    failed: FREE,
    done: FINISHED,
    done_late: FINISHED,
    reset: FREE,
    reset_after_done: FREE,
}

WON = {"GRANTED", "RENEWED", "RELEASED", "ACCEPTED", "RESET"}
ROWS = [
    pytest.param(state, command, reason, id=f"{state.__name__}-{command}".replace(" ", "_"))
    for state, reasons in TABLE.items()
    for command, reason in zip(COMMANDS, reasons.split(), strict=True)
]


@pytest.mark.parametrize(("state", "command", "reason"), ROWS)
def test_reason(state: Callable[[], Situation], command: str, reason: str) -> None:
    """CLM-48, CLM-50, CLM-53: each command in each state is answered with exactly this reason."""
    reply = COMMANDS[command](state()).reply
    assert reply.reason == reason
    won = reply.accepted if command.startswith("submit") else reply.success
    assert won is (reason in WON)


@pytest.mark.parametrize(
    ("state", "command"),
    [pytest.param(*row.values[:2], id=row.id) for row in ROWS if row.values[2] not in WON],
)
def test_refusal_keeps_the_task(state: Callable[[], Situation], command: str) -> None:
    """A refused command leaves the task, its index, its history and its result as they were.

    CLM-60, CLM-62.
    """
    situation = state()
    before = dict(situation.harness.records)
    COMMANDS[command](situation)
    left = {key: kept for key, kept in situation.harness.records.items() if not key.startswith("rejected/")}
    assert left == before


def test_every_reason_is_in_the_table() -> None:
    """No reason code is out of reach; limits, plans, large results are tested elsewhere.

    CLM-48, CLM-50, CLM-53.
    """
    reached = {reason for reasons in TABLE.values() for reason in reasons.split()}
    kinds = (ClaimReason, RenewalReason, ReleaseOutcome, SubmissionReason, ResetReason)
    known = {reason.value for kind in kinds for reason in kind if "_LIMIT_" not in reason.value}
    elsewhere = {"DENIED_NOT_READY", "DENIED_LOCKED", "DENIED_UNEXPECTED", "DATA_MISSING", "LOCK_LOST"}
    assert reached == known - elsewhere


Becomes = tuple[ClaimState | None, TaskStatus, int, ReleaseReason | None]

ACTIVE_2: Becomes = (ClaimState.ACTIVE, TaskStatus.IN_PROGRESS, 2, None)
ACTIVE_3: Becomes = (ClaimState.ACTIVE, TaskStatus.IN_PROGRESS, 3, None)
DONE_2: Becomes = (ClaimState.RELEASED, TaskStatus.DONE, 2, ReleaseReason.COMPLETED)
DONE_3: Becomes = (ClaimState.RELEASED, TaskStatus.DONE, 3, ReleaseReason.COMPLETED)
OPEN_2: Becomes = (None, TaskStatus.READY, 2, None)

TRANSITIONS: list[tuple[str, Callable[[], Situation], str, Becomes, str | None]] = [
    # rule, what it is, command → claim, task, generation and ending after it; how generation 2 is archived
    ("CLM-34_41", fresh, "claim", (ClaimState.ACTIVE, TaskStatus.IN_PROGRESS, 1, None), None),
    ("CLM-42", released, "claim", ACTIVE_3, "VOLUNTARY"),
    ("AMB-12", preempted, "claim", ACTIVE_3, "PREEMPTED"),
    ("CLM-39", failed, "claim", ACTIVE_3, "ERROR"),
    ("CLM-43", lapsed, "claim", ACTIVE_3, "EXPIRED"),
    ("CLM-43", expired, "claim", ACTIVE_3, "EXPIRED"),
    ("CLM-38", active, "force", ACTIVE_3, "SUPERSEDED"),
    ("AMB-13", expired, "force", ACTIVE_3, "EXPIRED"),
    ("CLM-44", superseded, "claim", ACTIVE_3, "SUPERSEDED"),
    ("CLM-44", superseded, "submit", DONE_3, "SUPERSEDED"),
    ("CLM-35_45", active, "renew", ACTIVE_2, None),
    ("CLM-36_46", active, "submit", DONE_2, None),
    ("CLM-74", lapsed, "submit", DONE_2, None),
    ("CLM-74", expired, "submit", DONE_2, None),
    (
        "CLM-51",
        active,
        "release",
        (ClaimState.RELEASED, TaskStatus.READY, 2, ReleaseReason.VOLUNTARY),
        None,
    ),
    ("CLM-58", active, "reset", OPEN_2, "RESET"),
    ("CLM-58", lapsed, "reset", OPEN_2, "EXPIRED"),
    ("CLM-58", expired, "reset", OPEN_2, "EXPIRED"),
    ("CLM-58", released, "reset", OPEN_2, "VOLUNTARY"),
    ("CLM-58", failed, "reset", OPEN_2, "ERROR"),
    ("CLM-58", done, "reset", OPEN_2, "COMPLETED"),
    ("CLM-58", reset_after_done, "claim", ACTIVE_3, "COMPLETED"),
]


@pytest.mark.parametrize(
    ("state", "command", "becomes", "archived"),
    [pytest.param(*row[1:], id=f"{row[1].__name__}-{row[2]}-{row[0]}") for row in TRANSITIONS],
)
def test_transition(
    state: Callable[[], Situation], command: str, becomes: Becomes, archived: str | None
) -> None:
    """What a claim becomes, and under which reason its predecessor is archived.

    CLM-34, CLM-35, CLM-36, CLM-38, CLM-39, CLM-41, CLM-42, CLM-43, CLM-44, CLM-45, CLM-46, CFL-12.
    """
    situation = state()
    COMMANDS[command](situation)
    task = situation.harness.read(keys.task("p", "t"), Task)
    assert (task.claim, task.state, task.generation, task.end_reason) == becomes
    kept = situation.harness.get(keys.history("p", "t", 2), Task)
    assert (kept.end_reason if kept is not None else None) == archived


@pytest.mark.parametrize(
    ("reason", "claim"),
    [
        (ReleaseReason.VOLUNTARY, ClaimState.RELEASED),
        (ReleaseReason.PREEMPTED, ClaimState.RELEASED),
        (ReleaseReason.ERROR, ClaimState.ERROR),
    ],
)
def test_release_reasons(reason: ReleaseReason, claim: ClaimState) -> None:
    """CLM-39, AMB-12: a release for an error leaves an ERROR claim; the task is free either way."""
    harness = RuleHarness()
    harness.claim()
    harness.release(reason=reason)
    state = harness.state()
    assert (state.claim.state, state.state) == (claim, TaskStatus.READY)
    assert [entry.release_reason for entry in harness.history()] == [reason]


@pytest.mark.parametrize(
    ("past_ms", "claim", "renewal", "state"),
    [
        (-1, "DENIED_ACTIVE_CLAIM", "RENEWED", ClaimState.ACTIVE),
        (0, "GRANTED", "ALREADY_EXPIRED", ClaimState.EXPIRED),
        (1, "GRANTED", "ALREADY_EXPIRED", ClaimState.EXPIRED),
    ],
)
def test_the_deadline_millisecond(past_ms: int, claim: str, renewal: str, state: ClaimState) -> None:
    """CLM-25, CLM-37: a claim is valid until the millisecond before its deadline, and expired at it."""
    now = T0 + LEASE + past_ms
    assert active().harness.claim("other", now=now).reply.reason == claim
    assert active().harness.renew("owner", 2, now=now).reply.reason == renewal
    shown: Any = active().harness.state(now=now)
    assert shown.claim.state is state


def test_expiry_is_dated_at_the_deadline() -> None:
    """DESIGN §5 Time: however late it is noticed, the claim ended at its deadline."""
    harness = owned()
    harness.claim("next", now=LATE + 5_000)
    assert harness.read(keys.history("p", "t", 2), Task).ended_ms == LATE
    assert [entry.released_ms for entry in harness.history(now=LATE + 5_000)] == [T0, LATE]


def test_late_submission_turns_the_one_history_entry() -> None:
    """DESIGN §5 Time: a late result by the holder is accepted; its entry turns from EXPIRED to COMPLETED."""
    harness = expired().harness
    assert [entry.release_reason for entry in harness.history(now=LATE)] == ["VOLUNTARY", "EXPIRED"]
    harness.submit("owner", 2, now=LATE + 9)
    assert [(e.release_reason, e.released_ms) for e in harness.history(now=LATE + 9)] == [
        ("VOLUNTARY", T0),
        ("COMPLETED", LATE + 9),
    ]


def test_renewal_begins_the_lease_anew() -> None:
    """AMB-16: a renewal lasts as long as the claim was taken for, from now on."""
    harness = RuleHarness()
    harness.claim(lease_ms=40_000)
    reply = harness.renew(now=T0 + 30_000).reply
    assert reply.new_expiry_ms == T0 + 70_000
    assert harness.state(now=T0 + 69_999).claim.state is ClaimState.ACTIVE
    assert harness.state(now=T0 + 70_000).claim.state is ClaimState.EXPIRED


def test_denial_names_the_holder() -> None:
    """CLM-48: who is denied learns who holds the task; a holder who asks again learns it is itself."""
    situation = active()
    assert situation.harness.claim("other", now=NOW).reply.current_holder == "owner"
    assert situation.harness.claim("owner", now=NOW).reply.current_holder == "owner"
    assert situation.harness.claim("other", now=LATE).reply.current_holder is None


def test_force_is_recorded_with_its_reason() -> None:
    """AMB-13: a forced claim makes SUPERSEDED reachable, and history keeps why."""
    harness = owned()
    told = harness.force("usurper", now=NOW).events
    assert [(event["event"], event["session"]) for event in told] == [
        ("task.superseded", "owner"),
        ("task.claimed", "usurper"),
    ]
    assert (told[0]["by_session"], told[0]["reason"], told[1]["reason"]) == ("usurper", "needed", "needed")
    entry = harness.history(now=NOW)[1]
    assert (entry.release_reason, entry.note, entry.released_ms) == ("SUPERSEDED", "needed", NOW)
