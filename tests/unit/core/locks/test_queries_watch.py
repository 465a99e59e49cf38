"""A running command watches its locks: it learns that one is lost, to whom and why, with few reads."""

from typing import Any

import pytest

from coord.core.locks.commands import WatchLocks
from coord.core.locks.uses import guard_use
from tests.support.lock_harness import REPOSITORY, LockHarness

A, B = "file:a.py", "name:main-push"
USE, OTHER = guard_use("one"), guard_use("two")


@pytest.fixture
def locks() -> LockHarness:
    return LockHarness()


def watched(locks: LockHarness, granted: Any, *, use: str = USE, waiters: bool = False) -> list[Any]:
    names, fences = [lock.resource for lock in granted.locks], [lock.fence for lock in granted.locks]
    command = WatchLocks(locks.who("ann"), REPOSITORY, tuple(names), tuple(fences), use, waiters)
    found: list[Any] = locks.engine.call(command)
    return found


def test_held_locks_cost_one_question(locks: LockHarness) -> None:
    """A look reads the session and each lock, once, and writes nothing."""
    granted = locks.lock("ann", A, B, use=USE)
    locks.store.questions = 0
    reads = locks.read_by(lambda: watched(locks, granted))
    assert (reads, locks.store.questions) == (3, 1)
    assert [state.held for state in watched(locks, granted)] == [True, True]


def test_a_stolen_lock_names_the_thief_and_the_reason(locks: LockHarness) -> None:
    granted = locks.lock("ann", A, use=USE)
    locks.steal("bob", A, force=True, reason="urgent")
    (state,) = watched(locks, granted)
    assert (state.held, state.end_reason, state.by) == (False, "stolen", "bob")
    assert "urgent" in state.note


def test_a_preempted_lock_is_asked_for_and_ends_at_its_deadline(locks: LockHarness) -> None:
    """The holder hears it at once; the lock ends when the deadline passes, swept or not."""
    granted = locks.lock("ann", A, use=USE)
    locks.preempt("bob", A, priority=5, grace_ms=10_000)
    (asked,) = watched(locks, granted)
    assert (asked.held, asked.asked_by, asked.ends_in_ms) == (True, "bob", 10_000)
    locks.pass_time(10_000)
    (ended,) = watched(locks, granted)
    assert (ended.held, ended.end_reason, ended.by) == (False, "preempted", "bob")


def test_an_expired_lock_is_lost_before_a_sweep(locks: LockHarness) -> None:
    granted = locks.lock("ann", B, ttl=60_000, use=USE)
    locks.pass_time(60_000)
    (state,) = watched(locks, granted)
    assert (state.held, state.end_reason) == (False, "expired")


def test_a_use_that_ended_is_lost_though_the_lock_is_held(locks: LockHarness) -> None:
    """The lock of another command of the same session proves nothing for this one."""
    granted = locks.lock("ann", A, use=USE)
    locks.release("ann", A)
    again = locks.lock("ann", A, use=OTHER)
    (state,) = watched(locks, granted)
    assert (state.held, state.end_reason) == (False, "released")
    assert watched(locks, again, use=OTHER)[0].held


def test_a_new_fence_is_reported(locks: LockHarness) -> None:
    """A stronger request of the same session gives the lock a new fence; the use goes on."""
    granted = locks.lock("ann", A, mode="read", use=USE)
    again = locks.lock("ann", A, mode="write", use=OTHER)
    (state,) = watched(locks, granted)
    assert (state.held, state.fence) == (True, again.locks[0].fence)


def test_the_waiters_that_the_lock_blocks(locks: LockHarness) -> None:
    """Only on request, in the order of the queue, and nobody who waits for something else."""
    granted = locks.lock("ann", A, use=USE)
    locks.lock("eve", "file:b.py")
    locks.wait("bob", "file:*.py")
    locks.wait("cid", "file:b.py")
    locks.wait("dan", A)
    assert watched(locks, granted, waiters=True)[0].waiters == ("bob", "dan")
    assert watched(locks, granted)[0].waiters == ()
