"""What a session has to remember after a restart: its claims, and those that it lost."""

from typing import Any

from coord.core.identity import Caller
from coord.core.lifecycle.commands import GetSessionMemory
from tests.support.rule_harness import LEASE, T0, RuleHarness

LATE = T0 + LEASE


def memory(harness: RuleHarness, session: str = "s", now: int = T0) -> Any:
    return harness.run(GetSessionMemory(Caller("reader"), tenant="local", session=session), now).reply


def test_claims_are_remembered_while_they_last() -> None:
    harness = RuleHarness()
    harness.claim("s", "a")
    harness.claim("s", "b")
    harness.release("s", 1, "b")
    remembered = memory(harness)
    assert [claim.task_id for claim in remembered.claims] == ["a"]
    assert remembered.lost == []


def test_a_claim_that_expired_is_lost_before_and_after_a_sweep() -> None:
    harness = RuleHarness()
    harness.claim("s", "a")
    before = memory(harness, now=LATE)
    harness.sweep(now=LATE)
    after = memory(harness, now=LATE)
    assert before.claims == after.claims == []
    assert before.lost == after.lost
    (lost,) = after.lost
    assert (lost.task_id, lost.generation, lost.reason, lost.lost_ms) == ("a", 1, "EXPIRED", LATE)
    assert (lost.holder, lost.still_open) == ("", True)


def test_a_lost_claim_names_the_session_that_took_over() -> None:
    harness = RuleHarness()
    harness.claim("s", "a")
    harness.force("other", "a")
    (lost,) = memory(harness).lost
    assert (lost.holder, lost.generation, lost.current_generation, lost.still_open) == ("other", 1, 2, False)


def test_what_came_back_is_not_lost() -> None:
    """Neither a task that the session claimed again nor one whose late result was accepted."""
    harness = RuleHarness()
    harness.claim("s", "again")
    harness.claim("s", "late")
    harness.sweep(now=LATE)
    assert [lost.task_id for lost in memory(harness, now=LATE).lost] == ["again", "late"]
    harness.claim("s", "again", now=LATE)
    assert harness.submit("s", 1, "late", now=LATE).reply.accepted
    assert memory(harness, now=LATE).lost == []


def test_an_unknown_session_remembers_nothing() -> None:
    remembered = memory(RuleHarness(), "never-seen")
    assert (remembered.session_id, remembered.session, remembered.claims) == ("never-seen", None, [])
