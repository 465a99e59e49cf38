"""The wait queue: its order, and requests whose waiter is gone."""

import pytest

from coord.core.identity import Process, ProcessState
from tests.support.lock_harness import LockHarness


@pytest.fixture
def harness() -> LockHarness:
    return LockHarness()


def test_hand_off_leaves_alone_what_is_held(harness: LockHarness) -> None:
    """LCK-79: waiting for more, or giving that up, does not put at risk what the session holds already."""
    harness.lock("ann", "file:mine")
    harness.lock("bob", "file:his")
    waiting = harness.wait("ann", "file:mine", "file:his")
    harness.release("bob", "file:his")
    harness.withdraw("ann", waiting)
    assert harness.held() == {("ann", "file:mine")}
    harness.pass_time(16_000)
    assert harness.renew("ann", "file:mine").locks[0].provisional is False


def test_line_goes_by_priority_then_age(harness: LockHarness) -> None:
    """DLK-17, AMB-3: a step of priority is worth a minute in line, and no more."""
    harness.lock("ann", "file:a")
    old = harness.wait("old", "file:a")
    harness.pass_time(59_999)
    assert harness.wait("high", "file:a", priority=1).position == 1
    harness.pass_time(2)
    assert harness.wait("late", "file:a", priority=1).position == 3
    assert harness.confirm("old", old).position == 2


def test_gone_waiter_is_passed_over(harness: LockHarness) -> None:
    """A request in line lives as long as its process: those behind it notice when that is dead."""
    harness.lock("ann", "file:a")
    harness.life[9] = ProcessState.ALIVE
    harness.wait("bob", "file:a", "file:b", waiter=Process(9, 1))
    behind = harness.wait("cid", "file:b")
    assert harness.confirm("cid", behind).outcome == "waiting"
    harness.life[9] = ProcessState.DEAD
    assert harness.confirm("cid", behind).ok


def test_leased_waiter_has_to_renew(harness: LockHarness) -> None:
    """Where its process cannot be seen, a request in line lapses 15 s after it was last heard of."""
    harness.lock("ann", "file:a")
    bob, cid = harness.wait("bob", "file:a", leased=True), harness.wait("cid", "file:a", leased=True)
    for _ in range(3):
        harness.pass_time(10_000)
        harness.confirm("cid", cid)
    harness.release("ann", "file:a")
    assert harness.confirm("cid", cid).ok
    assert harness.confirm("bob", bob).outcome == "withdrawn"


def test_child_in_line_goes_with_its_parent(harness: LockHarness) -> None:
    """LCK-35: when a parent ahead of its child gets the lock, the child is in nobody's way any more."""
    harness.parents["kid"] = "ann"
    harness.beat("ann")
    harness.lock("bob", "file:a")
    parent, child = harness.wait("ann", "file:a", "file:x"), harness.wait("kid", "file:x")
    harness.release("bob", "file:a")
    assert harness.confirm("ann", parent).ok
    assert harness.confirm("kid", child).ok


def test_nobody_overtakes_who_is_ahead(harness: LockHarness) -> None:
    """LCK-35: what comes free does not go past one who waits for it and for more."""
    harness.lock("ann", "file:a")
    harness.lock("cid", "file:b")
    both, one = harness.wait("bob", "file:a", "file:b"), harness.wait("dan", "file:b")
    harness.release("cid", "file:b")
    assert harness.confirm("dan", one).position == 2
    assert not harness.lock("eve", "file:b").ok, "who does not wait is behind those who do"
    harness.release("ann", "file:a")
    assert harness.confirm("bob", both).ok
