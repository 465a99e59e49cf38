"""What can be asked: state, history, the claims of a session, what has expired."""

from coord.core.tasks.commands import ClaimTask, GetSessionClaims, GetTaskState
from coord.core.tasks.queries import PAGE
from coord.core.tasks.types import ClaimState, TaskStatus
from tests.support.rule_harness import LEASE, T0, RuleHarness

LATE = T0 + LEASE


def test_a_task_that_never_was_is_ready() -> None:
    """A task that was never added can be claimed, so it is ready, at generation 0, without history."""
    state = RuleHarness().state()
    assert (state.state, state.generation, state.claim, state.result) == (TaskStatus.READY, 0, None, None)
    assert not state.completed
    assert RuleHarness().history() == []


def test_state_of_a_claimed_task() -> None:
    """CLM-54, CLM-29: the state shows the claim with all that the claimer was told."""
    harness = RuleHarness()
    granted = harness.claim().reply.claim
    state = harness.state()
    assert (state.state, state.generation, state.claim) == (TaskStatus.IN_PROGRESS, 1, granted)


def test_state_of_a_finished_task() -> None:
    """CLM-32, CLM-74: the accepted result with who made it, when, under which generation and reference."""
    harness = RuleHarness()
    harness.claim()
    harness.submit(result=b'{"files":["a.py"],"ok":true}', now=T0 + 9)
    state = harness.state()
    assert (state.state, state.completed, state.claim.state) == (TaskStatus.DONE, True, ClaimState.RELEASED)
    result = state.result
    assert result.result_data == {"files": ["a.py"], "ok": True}
    assert (result.accepted, result.generation, result.rejection_reason) == (True, 1, None)
    assert (result.session_id, result.agent_id, result.submitted_ms) == ("s", "agent-s", T0 + 9)
    assert result.work_product_ref == state.claim.work_product_ref == "wp-t-gen1-abcdef"


def test_state_after_a_reset_shows_no_claim_and_no_result() -> None:
    """CLM-58: a task opened again has neither; both are in its history."""
    harness = RuleHarness()
    harness.claim()
    harness.submit()
    harness.reset()
    state = harness.state()
    assert (state.state, state.generation, state.claim, state.result) == (TaskStatus.READY, 1, None, None)
    (entry,) = harness.history()
    assert (entry.result_accepted, entry.work_product_ref) == (True, "wp-t-gen1-abcdef")


def test_history_is_gap_free_and_in_order() -> None:
    """CLM-21, CLM-31, AUD-30, CLM-55: every ended generation is there, oldest first, also past one page."""
    harness = RuleHarness()
    generations = PAGE + 3
    for generation in range(1, generations + 1):
        harness.claim(f"s{generation}", now=T0 + generation)
        harness.release(f"s{generation}", generation, now=T0 + generation)
    history = harness.history()
    assert [entry.generation for entry in history] == list(range(1, generations + 1))
    assert all(entry.session_id == f"s{entry.generation}" for entry in history)
    assert all(entry.state is ClaimState.ARCHIVED for entry in history), "CLM-40: its history is recorded"


def test_the_active_generation_is_not_history() -> None:
    """CLM-33: what has not ended is the claim; it becomes history at its deadline, swept or not."""
    harness = RuleHarness()
    harness.claim()
    assert harness.history(now=LATE - 1) == []
    assert [entry.release_reason for entry in harness.history(now=LATE)] == ["EXPIRED"]


def test_claims_of_a_session() -> None:
    """CLM-56: those it holds now, in all projects, and of no other session."""
    harness = RuleHarness()
    harness.claim("s", "t1")
    harness.claim("s", "t2", lease_ms=LEASE + 1)
    harness.claim("s2", "t3")
    harness.run(ClaimTask("local", "q", "t1", "agent", "s", LEASE))
    assert [(c.project_id, c.task_id) for c in harness.claims_of()] == [("p", "t1"), ("p", "t2"), ("q", "t1")]
    assert [(c.project_id, c.task_id) for c in harness.claims_of(now=LATE)] == [("p", "t2")]
    harness.submit("s", 1, "t2")
    harness.release("s", 1, "t1")
    assert [(c.project_id, c.task_id) for c in harness.claims_of()] == [("q", "t1")]


def test_one_session_is_not_the_prefix_of_another() -> None:
    """TEN-6: names that begin alike stay apart: sessions s and s-2, tasks t and t:1, projects p and p.2."""
    harness = RuleHarness()
    for project, task, session in [("p", "t", "s"), ("p", "t:1", "s-2"), ("p.2", "t", "s")]:
        command = ClaimTask("local", project, task, "a", session, LEASE)
        assert harness.run(command).reply.claim.generation == 1
    assert len(harness.run(GetSessionClaims("local", "s")).reply) == 2
    harness.release("s", 1)
    assert [entry.session_id for entry in harness.history()] == ["s"]
    assert harness.history("t:1") == []
    assert harness.run(GetTaskState("local", "p.2", "t")).reply.generation == 1


def test_expired_claims_are_listed_oldest_first_until_taken() -> None:
    """CLM-25: whatever ran out and was not taken since, in the order of deadlines, swept or not."""
    harness = RuleHarness()
    for task, lease_ms in [("c", 3), ("a", 1), ("b", 2), ("held", 100)]:
        harness.claim("s", task, lease_ms=lease_ms)
    harness.sweep(now=T0 + 1)
    listed = harness.expired(now=T0 + 3)
    assert [claim.task_id for claim in listed] == ["a", "b", "c"]
    assert {claim.state for claim in listed} == {ClaimState.EXPIRED}
    harness.claim("s2", "a", now=T0 + 3)
    harness.submit("s", 1, "b", now=T0 + 3)
    assert [claim.task_id for claim in harness.expired(now=T0 + 3)] == ["c"]
    harness.reset("c", now=T0 + 3)
    assert harness.expired(now=T0 + 3) == []


def test_expired_before_a_moment() -> None:
    """001 §5.2: only those whose lease ran out by that moment; a moment to come means now."""
    harness = RuleHarness()
    for task, lease_ms in [("a", 1), ("b", 2), ("c", 30)]:
        harness.claim("s", task, lease_ms=lease_ms)
    assert [claim.task_id for claim in harness.expired(now=T0 + 9, before=T0 + 1)] == ["a"]
    assert [claim.task_id for claim in harness.expired(now=T0 + 9, before=T0)] == []
    assert [claim.task_id for claim in harness.expired(now=T0 + 9, before=T0 + 99)] == ["a", "b"]


def test_more_than_a_page_has_expired() -> None:
    """CLM-25: listing does not end with a page."""
    harness = RuleHarness()
    for number in range(PAGE + 5):
        harness.claim("s", f"t{number:04d}")
    harness.sweep(now=LATE, most=3)
    assert len(harness.expired(now=LATE)) == PAGE + 5
