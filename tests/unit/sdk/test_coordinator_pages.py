"""Long lists within large batches: what a batch writes must not hide what a page had not reached."""

from coord import ClaimKey, ClaimTemplate, TaskCoordinator
from coord.core.tasks.commands import ClaimTask, GetSessionClaims, ListExpiredClaims, ReleaseClaim
from coord.core.tasks.queries import PAGE
from tests.support.hand_clock import HandClock

MANY = 2 * PAGE + 200


def claim_many(coordinator: TaskCoordinator, session: str = "gone") -> list[ClaimKey]:
    coordinator.set_limits("acme", max_concurrent_claims=MANY, max_active_sessions=2)
    keys = [ClaimKey("acme", "shop", f"t{number:05d}") for number in range(MANY)]
    replies = coordinator.batch_claim(keys, ClaimTemplate("agent-a", session, 60))
    assert all(reply.success for reply in replies.values())
    return keys


def test_expired_claims_listed_after_many_were_taken_over(clock: HandClock) -> None:
    """CLM-25, DESIGN §4: a question at the end of a batch sees all that the batch left, page after page."""
    with TaskCoordinator.open("memory:", clock=clock) as coordinator:
        keys = claim_many(coordinator)
        clock.pass_seconds(60)
        taken = keys[:400]
        asked = [ClaimTask(*key, "agent-b", "new", 60_000) for key in taken]
        *_, expired, held = coordinator.engine("acme").call_many(
            [*asked, ListExpiredClaims("acme"), GetSessionClaims("acme", "new")]
        )
        assert [claim.task_id for claim in expired] == [key.task_id for key in keys[400:]]
        assert [claim.task_id for claim in held] == [key.task_id for key in taken]


def test_claims_of_a_session_listed_after_many_were_released(clock: HandClock) -> None:
    """CLM-56, DESIGN §4: the same by key: what was released is gone, what was not is all there."""
    with TaskCoordinator.open("memory:", clock=clock) as coordinator:
        keys = claim_many(coordinator)
        asked = [ReleaseClaim(*key, "gone", 1) for key in keys[:400]]
        *replies, held = coordinator.engine("acme").call_many([*asked, GetSessionClaims("acme", "gone")])
        assert {reply.reason for reply in replies} == {"RELEASED"}
        assert [claim.task_id for claim in held] == [key.task_id for key in keys[400:]]


def test_a_session_whose_claims_all_ran_out_is_in_nobodys_way(
    coordinator: TaskCoordinator, clock: HandClock
) -> None:
    """TEN-13, CLM-25: however many leases ran out at once, the next session is admitted at its first try."""
    coordinator.set_limits("acme", max_active_sessions=1, max_concurrent_claims=300)
    keys = [ClaimKey("acme", "shop", f"t{number}") for number in range(300)]
    coordinator.batch_claim(keys, ClaimTemplate("agent-a", "gone", 60))
    assert coordinator.claim_task("acme", "shop", "new", "agent-b", "session-2").success is False
    clock.pass_seconds(60)
    assert coordinator.claim_task("acme", "shop", "new", "agent-b", "session-2").success
    assert len(coordinator.list_expired_claims("acme")) == 300
