"""Why a session has a lock: it ends with the last use."""

import pytest

from coord.core.errors import Invalid, LimitReached, LockLost
from coord.core.identity import ProcessState
from coord.core.locks.commands import BeginToolCall, EndToolCall, ReleaseHookLocks, ReleaseLocks
from coord.core.locks.schema import Expiry, Lock
from coord.core.locks.uses import (
    BY_HAND,
    HOOK,
    USES_MAX,
    check_use,
    claims_using,
    expiry_of,
    guard_use,
    task_use,
    with_use,
    without_uses,
)
from tests.support.lock_harness import REPOSITORY, LockHarness

NAME = "name:main-push"


@pytest.fixture
def harness() -> LockHarness:
    return LockHarness()


def end_use(harness: LockHarness, name: str, use: str, resource: str = NAME) -> list[str]:
    reply = harness.engine.call(ReleaseLocks(harness.who(name), REPOSITORY, (resource,), 0, use))
    return list(reply.released)


def test_the_last_use_ends_the_lock(harness: LockHarness) -> None:
    """Two commands of one session: the first to end releases nothing that the second still needs."""
    one, two = guard_use("1"), guard_use("2")
    assert harness.lock("ann", NAME, use=one).ok
    assert harness.lock("ann", NAME, use=two).locks[0].refreshed
    assert end_use(harness, "ann", one) == []
    assert not harness.lock("bob", NAME).ok
    assert end_use(harness, "ann", two) == [NAME]
    assert harness.lock("bob", NAME).ok


def test_a_lock_by_hand_survives_a_command(harness: LockHarness) -> None:
    """What was there before the command is there after it, and the other way round."""
    harness.lock("ann", NAME)
    harness.lock("ann", NAME, use=guard_use("1"))
    assert end_use(harness, "ann", guard_use("1")) == []
    assert harness.held() == {("ann", NAME)}
    harness.release("ann", NAME)
    assert harness.held() == set()


def test_unlock_ends_all_uses(harness: LockHarness) -> None:
    """Whoever types `coord unlock` means the lock; the command that runs under it finds it lost."""
    harness.lock("ann", NAME, use=guard_use("1"))
    assert harness.release("ann", NAME).released == [NAME]
    harness.lock("ann", NAME)
    with pytest.raises(LockLost, match="locked again since"):
        end_use(harness, "ann", guard_use("1"))
    assert harness.held() == {("ann", NAME)}


def test_the_longer_lease_and_the_higher_priority_count(harness: LockHarness) -> None:
    """A second use never weakens the first one."""
    harness.lock("ann", "file:a", ttl=600_000, priority=5)
    info = harness.lock("ann", "file:a", ttl=1_000, use=guard_use("1")).locks[0]
    assert (info.expires_in_s, info.priority) == (600, 5)


@pytest.mark.parametrize(("use", "free"), [(BY_HAND, False), (guard_use("1"), True)])
def test_a_dead_holder_keeps_only_what_it_took_by_hand(harness: LockHarness, use: str, free: bool) -> None:
    """CFL-8: a named lock of a command passes on when its holder is proven dead; one by hand is stolen."""
    harness.pids["ann"] = 7
    harness.lock("ann", NAME, use=use)
    harness.life[7] = ProcessState.DEAD
    assert harness.lock("bob", NAME).ok is free


def test_a_waiter_gets_the_lock_of_a_dead_command(harness: LockHarness) -> None:
    """Nobody has to steal it."""
    harness.pids["ann"] = 7
    harness.lock("ann", NAME, use=guard_use("1"))
    waiting = harness.wait("bob", NAME)
    harness.life[7] = ProcessState.DEAD
    assert harness.confirm("bob", waiting).ok


def test_a_named_lock_of_a_command_ends_with_its_lease(harness: LockHarness) -> None:
    """A command renews its lock; if it does not, it is gone."""
    harness.lock("ann", NAME, ttl=60_000, use=guard_use("1"))
    harness.pass_time(60_000)
    assert harness.lock("bob", NAME).ok


def test_a_hook_and_a_hand(harness: LockHarness) -> None:
    """A hook releases what it took; the same file taken by hand stays."""
    call = BeginToolCall(
        harness.who("ann"), REPOSITORY, ("file:a", "file:b"), call="c", lease_ms=1_000, worktree="w"
    )
    assert harness.engine.call(call).ok
    harness.lock("ann", "file:a")
    harness.engine.call(EndToolCall(harness.who("ann"), "c"))
    release = ReleaseHookLocks(harness.who("ann"), REPOSITORY, ("file:a", "file:b"))
    assert harness.engine.call(release).released == ["file:b"]
    assert harness.held() == {("ann", "file:a")}


def test_uses_are_bounded(harness: LockHarness) -> None:
    """Each use stands in the record, so a session has a limited number of them."""
    for number in range(USES_MAX):
        assert harness.lock("ann", NAME, use=guard_use(str(number))).ok
    assert harness.lock("ann", NAME, use=guard_use("0")).ok
    with pytest.raises(LimitReached):
        harness.lock("ann", NAME, use=guard_use("new"))


def test_a_hand_off_keeps_the_use(harness: LockHarness) -> None:
    """A waiting command that had one of its locks before releases exactly what it asked for."""
    harness.lock("ann", "name:one")
    harness.lock("bob", "name:two")
    waiting = harness.wait("ann", "name:one", "name:two", use=guard_use("1"))
    harness.release("bob", "name:two")
    assert harness.confirm("ann", waiting).ok
    for resource in ("name:one", "name:two"):
        end_use(harness, "ann", guard_use("1"), resource)
    assert harness.held() == {("ann", "name:one")}


def test_uses_as_data() -> None:
    """Claims are told apart from the rest; a hook's worktree leaves with the hook."""
    claim = task_use("p", "A-001-x::2", 3)
    lock = Lock(profile="name", uses=(HOOK, claim), worktree="w")
    assert claims_using(lock) == [("p", "A-001-x::2", 3)]
    assert claims_using(lock, (claim,)) == []
    assert expiry_of(lock) is Expiry.AUTO
    assert expiry_of(Lock(profile="name")) is Expiry.STEAL_ONLY
    left = without_uses(lock, [HOOK])
    assert left is not None
    assert (left.uses, left.worktree) == ((claim,), "")
    assert without_uses(lock, [HOOK, claim]) is None
    assert with_use(lock, BY_HAND) == lock.uses
    assert check_use("guard:1") == "guard:1"
    for bad in ("hook", "task:p/t/1", "guard:", "guard:" + "x" * 65):
        with pytest.raises(Invalid):
            check_use(bad)
