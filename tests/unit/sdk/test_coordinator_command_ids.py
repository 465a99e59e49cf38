"""Command ids at the facade, limits of tenants, closing: on every store."""

import pytest

from coord import Invalid, TaskCoordinator, Unavailable
from tests.support.hand_clock import HandClock

WHO = ("agent-a", "session-1")


def entries(coordinator: TaskCoordinator) -> int:
    return len(coordinator.database.log("acme").tail(0, 1_000))


def test_a_command_id_is_carried_out_once(coordinator: TaskCoordinator) -> None:
    """DESIGN §4: the same command under the same id gets the same reply and changes nothing again."""
    first = coordinator.claim_task("acme", "shop", "t1", *WHO, command_id="c-1")
    renewed = coordinator.renew_lease("acme", "shop", "t1", "session-1", 1, command_id="c-2")
    done = coordinator.submit_result("acme", "shop", "t1", "session-1", 1, {"n": 1}, command_id="c-3")
    reset = coordinator.reset_task("acme", "shop", "t1", "again", command_id="c-4")
    before = entries(coordinator)
    assert coordinator.claim_task("acme", "shop", "t1", *WHO, command_id="c-1") == first
    assert coordinator.renew_lease("acme", "shop", "t1", "session-1", 1, command_id="c-2") == renewed
    assert coordinator.submit_result("acme", "shop", "t1", "session-1", 1, {"n": 1}, command_id="c-3") == done
    assert coordinator.reset_task("acme", "shop", "t1", "again", command_id="c-4") == reset
    assert entries(coordinator) == before
    assert coordinator.get_task_state("acme", "shop", "t1").generation == 1


def test_the_reply_is_whole(coordinator: TaskCoordinator) -> None:
    """DESIGN §4: a repeated reply has everything the first had, down to the reference of the result."""
    metadata = {"user": "alice", "list": [1, None]}
    first = coordinator.claim_task("acme", "shop", "t1", *WHO, metadata=metadata, command_id="c-1")
    again = coordinator.claim_task("acme", "shop", "t1", *WHO, metadata=metadata, command_id="c-1")
    assert (again.claim, again.reason) == (first.claim, "GRANTED")
    done = coordinator.submit_result("acme", "shop", "t1", "session-1", 1, {}, command_id="c-2")
    state = coordinator.get_task_state("acme", "shop", "t1")
    assert state.result is not None
    assert state.result.work_product_ref == done.work_product_ref


def test_a_recorded_refusal_is_repeated(coordinator: TaskCoordinator, clock: HandClock) -> None:
    """DESIGN §4: a refusal that was written down is given again under its id."""
    coordinator.claim_task("acme", "shop", "t1", *WHO, 30)
    clock.pass_seconds(30)
    coordinator.claim_task("acme", "shop", "t1", "agent-b", "session-2")
    stale = coordinator.submit_result("acme", "shop", "t1", "session-1", 1, {}, command_id="c-1")
    assert (stale.reason, stale.work_lost) == ("STALE_GENERATION", True)
    before = entries(coordinator)
    assert coordinator.submit_result("acme", "shop", "t1", "session-1", 1, {}, command_id="c-1") == stale
    assert entries(coordinator) == before


def test_an_id_means_one_command(coordinator: TaskCoordinator) -> None:
    """DESIGN §4: another content under a used id is Invalid; in another tenant it is another id."""
    coordinator.claim_task("acme", "shop", "t1", *WHO, command_id="c-1")
    before = entries(coordinator)
    with pytest.raises(Invalid, match="another command") as raised:
        coordinator.claim_task("acme", "shop", "t2", *WHO, command_id="c-1")
    assert raised.value.hint
    with pytest.raises(Invalid, match="another command"):
        coordinator.release_claim("acme", "shop", "t1", "session-1", 1, command_id="c-1")
    assert entries(coordinator) == before
    assert coordinator.claim_task("other", "shop", "t2", *WHO, command_id="c-1").success


def test_an_id_is_remembered_for_an_hour(coordinator: TaskCoordinator, clock: HandClock) -> None:
    """DESIGN §4: after an hour the sweep forgets the id, and it can be used again."""
    coordinator.claim_task("acme", "shop", "t1", *WHO, 3600, command_id="c-1")
    clock.pass_seconds(3_599)
    assert coordinator.claim_task("acme", "shop", "t1", *WHO, 3600, command_id="c-1").success
    clock.pass_seconds(2)
    coordinator.claim_task("acme", "shop", "t9", *WHO)
    again = coordinator.claim_task("acme", "shop", "t1", *WHO, 3600, command_id="c-1")
    assert again.claim is not None
    assert again.claim.generation == 2


def test_limits_hold_at_the_facade(coordinator: TaskCoordinator, clock: HandClock) -> None:
    """Each limit of a tenant is met, with its own reason, and another tenant is not concerned.

    TEN-7, TEN-8, TEN-9, TEN-10, TEN-12, TEN-13.
    """
    coordinator.set_limits("acme", max_concurrent_claims=2, max_active_sessions=1, max_generations_per_task=1)
    claim = coordinator.claim_task
    assert claim("acme", "shop", "t1", *WHO, 29).reason == "DENIED_LIMIT_LEASE_DURATION"
    assert claim("acme", "shop", "t1", *WHO, 3601).reason == "DENIED_LIMIT_LEASE_DURATION"
    assert claim("acme", "shop", "t1", *WHO).success
    assert claim("acme", "shop", "t2", "agent-b", "session-2").reason == "DENIED_LIMIT_ACTIVE_SESSIONS"
    assert claim("acme", "shop", "t2", *WHO).success
    denied = claim("acme", "shop", "t3", *WHO)
    assert (denied.success, denied.claim, denied.reason) == (False, None, "DENIED_LIMIT_CONCURRENT_CLAIMS")
    assert denied.detail == "2 claims are active in this tenant"
    coordinator.release_claim("acme", "shop", "t1", "session-1", 1)
    assert claim("acme", "shop", "t1", *WHO).reason == "DENIED_LIMIT_GENERATIONS"
    assert claim("other", "shop", "t3", "agent-b", "session-2").success
    clock.pass_seconds(300)
    assert claim("acme", "shop", "t4", "agent-b", "session-2").success, "what ran out counts no more"


def test_set_limits_returns_those_in_force(coordinator: TaskCoordinator) -> None:
    """TEN-14: profiles and single limits; what is not named stays, also for the next to ask."""
    assert coordinator.set_limits("acme")["max_concurrent_claims"] == 100
    assert entries(coordinator) == 0, "asking changes nothing"
    raised = coordinator.set_limits("acme", profile="enterprise", max_active_sessions=7)
    assert (raised["max_concurrent_claims"], raised["max_active_sessions"]) == (1000, 7)
    assert coordinator.set_limits("acme", max_concurrent_claims=10_000)["max_active_sessions"] == 7
    assert coordinator.set_limits("acme", profile="default")["max_active_sessions"] == 50
    assert coordinator.set_limits("other")["max_active_sessions"] == 50


def test_closing(coordinator: TaskCoordinator) -> None:
    """DESIGN §4: after closing, every operation says so; closing again is no error."""
    coordinator.claim_task("acme", "shop", "t1", *WHO)
    coordinator.close()
    coordinator.close()
    with pytest.raises(Unavailable, match="closed"):
        coordinator.get_task_state("acme", "shop", "t1")
    with pytest.raises(Unavailable, match="closed"):
        coordinator.claim_task("other", "shop", "t1", *WHO)
    with pytest.raises(Unavailable, match="closed"):
        coordinator.batch_claim([("acme", "shop", "t1")], WHO)


def test_a_with_block_closes(shape_url: str) -> None:
    """The facade is a context; what follows the block is refused."""
    with TaskCoordinator.open(shape_url) as coordinator:
        assert coordinator.claim_task("acme", "shop", "t1", *WHO).success
    with pytest.raises(Unavailable):
        coordinator.get_task_state("acme", "shop", "t1")


def test_two_coordinators_see_each_other(shared_url: str, clock: HandClock) -> None:
    """What one was granted the other is denied, at once, through any store that can be shared.

    CLM-60, SCN-44, STO-28.
    """
    with (
        TaskCoordinator.open(shared_url, clock=clock) as one,
        TaskCoordinator.open(shared_url, clock=clock) as other,
    ):
        assert one.claim_task("acme", "shop", "t1", *WHO, 30).success
        assert other.claim_task("acme", "shop", "t1", "agent-b", "session-2").current_holder == "session-1"
        clock.pass_seconds(30)
        assert other.claim_task("acme", "shop", "t1", "agent-b", "session-2").success
        assert one.submit_result("acme", "shop", "t1", "session-1", 1, {}).reason == "STALE_GENERATION"
        assert one.get_claim_history("acme", "shop", "t1") == other.get_claim_history("acme", "shop", "t1")
