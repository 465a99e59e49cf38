"""What can be asked: state, history, the claims of a session, what has expired."""

from coord.core.commands import ClaimTask, GetSessionClaims, GetTaskState
from coord.core.tasks.queries import PAGE
from coord.core.tasks.types import ClaimState, TaskStatus
from tests.support.rule_harness import LEASE, T0, Desk

LATE = T0 + LEASE


def test_a_task_that_never_was_is_ready() -> None:
    """A task that was never added can be claimed, so it is ready, at generation 0, without history."""
    state = Desk().state()
    assert (state.state, state.generation, state.claim, state.result) == (TaskStatus.READY, 0, None, None)
    assert not state.completed
    assert Desk().history() == []


def test_state_of_a_claimed_task() -> None:
    """CLM-54, CLM-29: the state shows the claim with all that the claimer was told."""
    desk = Desk()
    granted = desk.claim().reply.claim
    state = desk.state()
    assert (state.state, state.generation, state.claim) == (TaskStatus.IN_PROGRESS, 1, granted)


def test_state_of_a_finished_task() -> None:
    """CLM-32, CLM-74: the accepted result with who made it, when, under which generation and reference."""
    desk = Desk()
    desk.claim()
    desk.submit(result=b'{"files":["a.py"],"ok":true}', now=T0 + 9)
    state = desk.state()
    assert (state.state, state.completed, state.claim.state) == (TaskStatus.DONE, True, ClaimState.RELEASED)
    result = state.result
    assert result.result_data == {"files": ["a.py"], "ok": True}
    assert (result.accepted, result.generation, result.rejection_reason) == (True, 1, None)
    assert (result.session_id, result.agent_id, result.submitted_ms) == ("s", "agent-s", T0 + 9)
    assert result.work_product_ref == state.claim.work_product_ref == "wp-t-gen1-abcdef"


def test_state_after_a_reset_shows_no_claim_and_no_result() -> None:
    """CLM-58: a task opened again has neither; both are in its history."""
    desk = Desk()
    desk.claim()
    desk.submit()
    desk.reset()
    state = desk.state()
    assert (state.state, state.generation, state.claim, state.result) == (TaskStatus.READY, 1, None, None)
    (entry,) = desk.history()
    assert (entry.result_accepted, entry.work_product_ref) == (True, "wp-t-gen1-abcdef")


def test_history_is_gap_free_and_in_order() -> None:
    """CLM-21, CLM-31, AUD-30, CLM-55: every ended generation is there, oldest first, also past one page."""
    desk = Desk()
    generations = PAGE + 3
    for generation in range(1, generations + 1):
        desk.claim(f"s{generation}", now=T0 + generation)
        desk.release(f"s{generation}", generation, now=T0 + generation)
    history = desk.history()
    assert [entry.generation for entry in history] == list(range(1, generations + 1))
    assert all(entry.session_id == f"s{entry.generation}" for entry in history)
    assert all(entry.state is ClaimState.ARCHIVED for entry in history), "CLM-40: its history is recorded"


def test_the_active_generation_is_not_history() -> None:
    """CLM-33: what has not ended is the claim; it becomes history at its deadline, swept or not."""
    desk = Desk()
    desk.claim()
    assert desk.history(now=LATE - 1) == []
    assert [entry.release_reason for entry in desk.history(now=LATE)] == ["EXPIRED"]


def test_claims_of_a_session() -> None:
    """CLM-56: those it holds now, in all projects, and of no other session."""
    desk = Desk()
    desk.claim("s", "t1")
    desk.claim("s", "t2", lease_ms=LEASE + 1)
    desk.claim("s2", "t3")
    desk.run(ClaimTask("local", "q", "t1", "agent", "s", LEASE))
    assert [(c.project_id, c.task_id) for c in desk.claims_of()] == [("p", "t1"), ("p", "t2"), ("q", "t1")]
    assert [(c.project_id, c.task_id) for c in desk.claims_of(now=LATE)] == [("p", "t2")]
    desk.submit("s", 1, "t2")
    desk.release("s", 1, "t1")
    assert [(c.project_id, c.task_id) for c in desk.claims_of()] == [("q", "t1")]


def test_one_session_is_not_the_prefix_of_another() -> None:
    """TEN-6: names that begin alike stay apart: sessions s and s-2, tasks t and t:1, projects p and p.2."""
    desk = Desk()
    for project, task, session in [("p", "t", "s"), ("p", "t:1", "s-2"), ("p.2", "t", "s")]:
        command = ClaimTask("local", project, task, "a", session, LEASE)
        assert desk.run(command).reply.claim.generation == 1
    assert len(desk.run(GetSessionClaims("local", "s")).reply) == 2
    desk.release("s", 1)
    assert [entry.session_id for entry in desk.history()] == ["s"]
    assert desk.history("t:1") == []
    assert desk.run(GetTaskState("local", "p.2", "t")).reply.generation == 1


def test_expired_claims_are_listed_oldest_first_until_taken() -> None:
    """CLM-25: whatever ran out and was not taken since, in the order of deadlines, swept or not."""
    desk = Desk()
    for task, lease_ms in [("c", 3), ("a", 1), ("b", 2), ("held", 100)]:
        desk.claim("s", task, lease_ms=lease_ms)
    desk.sweep(now=T0 + 1)
    listed = desk.expired(now=T0 + 3)
    assert [claim.task_id for claim in listed] == ["a", "b", "c"]
    assert {claim.state for claim in listed} == {ClaimState.EXPIRED}
    desk.claim("s2", "a", now=T0 + 3)
    desk.submit("s", 1, "b", now=T0 + 3)
    assert [claim.task_id for claim in desk.expired(now=T0 + 3)] == ["c"]
    desk.reset("c", now=T0 + 3)
    assert desk.expired(now=T0 + 3) == []


def test_expired_before_a_moment() -> None:
    """001 §5.2: only those whose lease ran out by that moment; a moment to come means now."""
    desk = Desk()
    for task, lease_ms in [("a", 1), ("b", 2), ("c", 30)]:
        desk.claim("s", task, lease_ms=lease_ms)
    assert [claim.task_id for claim in desk.expired(now=T0 + 9, before=T0 + 1)] == ["a"]
    assert [claim.task_id for claim in desk.expired(now=T0 + 9, before=T0)] == []
    assert [claim.task_id for claim in desk.expired(now=T0 + 9, before=T0 + 99)] == ["a", "b"]


def test_more_than_a_page_has_expired() -> None:
    """CLM-25: listing does not end with a page."""
    desk = Desk()
    for number in range(PAGE + 5):
        desk.claim("s", f"t{number:04d}")
    desk.sweep(now=LATE, most=3)
    assert len(desk.expired(now=LATE)) == PAGE + 5
