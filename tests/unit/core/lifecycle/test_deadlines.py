"""A deadline ends what is over: a lock past its lease, a request whose waiter is gone."""

import pytest

from coord.core.identity import ProcessState
from tests.support.lock_harness import LockHarness


@pytest.fixture
def harness() -> LockHarness:
    return LockHarness()


def sweep(harness: LockHarness) -> None:
    """Let a session that holds nothing sweep what is due."""
    harness.beat("clerk")


def test_a_lease_that_ends_hands_the_lock_to_the_next(harness: LockHarness) -> None:
    harness.lock("ann", "file:a", ttl=10_000)
    harness.wait("bob", "file:a", leased=False)
    harness.pass_time(9_000)
    sweep(harness)
    assert harness.held() == {("ann", "file:a")}
    harness.pass_time(2_000)
    sweep(harness)
    assert harness.held() == {("bob", "file:a")}


def test_a_ticket_of_a_living_owner_is_looked_at_again(harness: LockHarness) -> None:
    """A ticket past its lease stays while its owner lives, keeps its fence, and ends with the owner."""
    harness.pids["ann"], harness.life[7] = 7, ProcessState.ALIVE
    fence = harness.lock("ann", "file:a", profile="ticket", ttl=10_000).locks[0].fence
    for _ in range(3):
        harness.pass_time(40_000)
        harness.beat("ann")
    assert harness.held() == {("ann", "file:a")}
    assert harness.renew("ann", "file:a", fence=fence).locks[0].fence == fence
    harness.life[7] = ProcessState.DEAD
    harness.pass_time(40_000)
    sweep(harness)
    assert harness.held() == set()


def test_a_request_past_its_time_leaves_the_queue(harness: LockHarness) -> None:
    """Those behind it are granted what it kept them from."""
    harness.lock("ann", "file:a", mode="read")
    harness.wait("bob", "file:a", wait_ms=5_000)
    harness.wait("cid", "file:a", mode="read")
    sweep(harness)
    assert harness.held() == {("ann", "file:a")}
    harness.pass_time(6_000)
    sweep(harness)
    assert harness.held() == {("ann", "file:a"), ("cid", "file:a")}
