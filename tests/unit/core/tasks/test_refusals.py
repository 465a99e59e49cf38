"""Refused claims, renewals, releases and submissions: who, why, how often, and that each is kept."""

from collections.abc import Callable
from typing import Any

import pytest

from coord.core import keys
from coord.core.identity import Caller
from coord.core.plans.commands import ClaimNamed
from coord.core.records import encode
from coord.core.sessions.schema import Session
from coord.core.tasks.commands import AsSession, ClaimTask, ClaimTasks, RenewLease, SubmitResult
from coord.core.tasks.refusals import REFUSAL_QUIET_MS
from tests.support.rule_harness import LEASE, T0, Kept, Outcome, RuleHarness

EVE = Caller("eve-1", agent="eve", user="evelyn")


def held() -> RuleHarness:
    harness = RuleHarness()
    harness.claim()
    return harness


def done() -> RuleHarness:
    harness = held()
    harness.submit()
    return harness


REFUSALS: list[tuple[str, Callable[[], Outcome], str, str, int]] = [
    ("claim of a held task", lambda: held().claim("x"), "claim", "DENIED_ACTIVE_CLAIM", 1),
    ("claim of a done task", lambda: done().claim("x"), "claim", "DENIED_COMPLETED", 1),
    ("renewal without a claim", lambda: RuleHarness().renew("x", 1), "renew", "NO_CLAIM", 1),
    ("renewal of an old generation", lambda: held().renew("s", 7), "renew", "GENERATION_MISMATCH", 7),
    ("renewal by another", lambda: held().renew("x", 1), "renew", "SESSION_MISMATCH", 1),
    ("late renewal", lambda: held().renew(now=T0 + LEASE), "renew", "ALREADY_EXPIRED", 1),
    ("release by another", lambda: held().release("x"), "release", "SESSION_MISMATCH", 1),
    ("late release", lambda: held().release(now=T0 + LEASE), "release", "ALREADY_EXPIRED", 1),
]


@pytest.mark.parametrize(
    ("step", "operation", "reason", "generation"), [pytest.param(*row[1:], id=row[0]) for row in REFUSALS]
)
def test_each_refusal_is_recorded(
    step: Callable[[], Outcome], operation: str, reason: str, generation: int
) -> None:
    """AUD-29: one event with the operation, the reason, the session and the generation."""
    (event,) = step().events
    assert (event["event"], event["operation"], event["reason"], event["generation"]) == (
        "task.refused",
        operation,
        reason,
        generation,
    )
    assert event["session"] in ("s", "x")


@pytest.mark.parametrize(
    "command",
    [
        AsSession(EVE, RenewLease("local", "p", "t", "", 1)),
        AsSession(EVE, SubmitResult("local", "p", "t", "", 1, b"{}", "wp")),
        AsSession(EVE, SubmitResult("local", "p", "t", "", 9, b"{}", "wp")),
        ClaimNamed(EVE, tenant="local", project="p", task="t", lease_ms=LEASE),
    ],
    ids=lambda command: type(getattr(command, "command", command)).__name__,
)
def test_a_session_that_never_held_the_task_is_named(command: Any) -> None:
    """AUD-26, AUD-32: agent and user of the caller are in the event and in the record."""
    harness = held()
    events = [event for event in harness.run(command, T0).events if event["event"].startswith("task.")]
    (event,) = events
    assert (event["session"], event["agent"], event["user"]) == ("eve-1", "eve", "evelyn")
    state = harness.state()
    kept = [*state.rejected, *state.refused][0]
    assert len(state.rejected) + len(state.refused) == 1
    assert (kept.session_id, kept.agent_id, kept.user_id) == ("eve-1", "eve", "evelyn")


def test_the_session_record_names_agent_and_user() -> None:
    """AUD-26: whoever calls without saying more is looked up, and the record outlives the session's."""
    harness = held()
    session = Session(session_id="x", agent="xavier", user="xena")
    harness.records[keys.session("x")] = Kept(encode(session), "")
    assert harness.renew("x").events[0]["agent"] == "xavier"
    del harness.records[keys.session("x")]
    (refused,) = harness.state().refused
    assert (refused.agent_id, refused.user_id) == ("xavier", "xena")


def test_the_lineage_names_the_user_of_each_generation() -> None:
    """AUD-26, AUD-32: a claim keeps its user, from its session or from its metadata."""
    harness = RuleHarness()
    claim = ClaimTask("local", "p", "t", "ada", "s1", LEASE, {"user_id": "alice"})
    (event,) = harness.run(claim, T0).events
    assert event["user"] == "alice"
    harness.release("s1", 1)
    harness.run(ClaimNamed(EVE, tenant="local", project="p", task="t", lease_ms=LEASE), T0)
    harness.release("eve-1", 2)
    assert [entry.user_id for entry in harness.history()] == ["alice", "evelyn"]


def test_reasons_and_operations_do_not_replace_each_other() -> None:
    """AUD-32: one session and generation, four refusals, four entries in the lineage."""
    harness = held()
    harness.renew("x")
    harness.release("x")
    harness.submit("x")
    harness.claim("x")
    harness.release()
    harness.renew("x")
    (entry,) = harness.history()
    assert [each.rejection_reason for each in entry.rejected] == ["SESSION_MISMATCH"]
    assert sorted((each.operation, each.reason) for each in entry.refused) == [
        ("claim", "DENIED_ACTIVE_CLAIM"),
        ("release", "SESSION_MISMATCH"),
        ("renew", "NO_CLAIM"),
        ("renew", "SESSION_MISMATCH"),
    ]


def test_repetitions_are_counted_once_a_minute() -> None:
    """DESIGN §4: within a minute nothing is written; after it the record and its event count on."""
    harness = RuleHarness()
    harness.claim(lease_ms=2 * REFUSAL_QUIET_MS)
    told = [
        [event.get("times", 1) for event in harness.claim("x", now=T0 + after).events]
        for after in (0, 1, REFUSAL_QUIET_MS - 1, REFUSAL_QUIET_MS, REFUSAL_QUIET_MS + 1)
    ]
    assert told == [[1], [], [], [2], []]
    (refused,) = harness.state(now=T0 + 1).refused
    assert (refused.times, refused.refused_ms) == (2, T0 + REFUSAL_QUIET_MS)


def test_lost_work_is_recorded_although_the_session_asked_in_vain_before() -> None:
    """CLM-53: what is new is not coalesced."""
    harness = RuleHarness()
    assert not harness.submit().events[0]["work_lost"]
    harness.claim()
    harness.release()
    assert harness.submit().events[0]["work_lost"]


def test_many_denials_of_one_step_are_loaded_together() -> None:
    """Each denied task of a batch is recorded; a granted one is not."""
    harness = held()
    command = ClaimTasks("local", "agent-x", "x", LEASE, (("p", "t"), ("p", "free")))
    outcome = harness.run(command, T0)
    assert [reply.success for reply in outcome.reply] == [False, True]
    assert sorted(outcome.event_tags) == ["task.claimed", "task.refused"]
