"""Release and renew: only the holder, only under its fence."""

from collections.abc import Callable
from typing import Any

import pytest

from coord.core.errors import CoordError
from coord.core.identity import ProcessState
from coord.core.locks.commands import AcquireLocks, RenewLocks
from tests.support.lock_harness import REPOSITORY, LockHarness


@pytest.fixture
def harness() -> LockHarness:
    return LockHarness()


def refused(code: str, ask: Callable[[], Any]) -> str:
    """Check that a call is refused with this code; return what it says."""
    with pytest.raises(CoordError) as caught:
        ask()
    assert caught.value.code == code, caught.value
    assert caught.value.hint, "a refusal names the next step"
    return str(caught.value)


def test_renewal_fails_nobody_in_its_batch(harness: LockHarness) -> None:
    """LCK-24: a renewal and others of the same batch are all answered; it keeps its fence."""
    fence = harness.lock("ann", "file:a").locks[0].fence
    renew = RenewLocks(harness.who("ann"), REPOSITORY, ("file:a",))
    acquire = AcquireLocks(harness.who("bob"), REPOSITORY, ("file:b",))
    renewed, acquired = harness.engine.call_many([renew, acquire])
    assert renewed.locks[0].fence == fence
    assert acquired.ok


def test_release_of_a_single_file_leaves_the_waiters_of_others_alone(harness: LockHarness) -> None:
    """A file is not the folder of its name: nobody who waits for something below it is looked at."""
    harness.pids["bob"] = 7
    harness.lock("ann", "file:x", exact=("file:x",))
    harness.lock("ann", "file:d/*")
    harness.wait("bob", "file:*/z")
    harness.life[7] = ProcessState.DEAD
    assert "wait" not in harness.written_by(lambda: harness.release("ann", "file:x"))
    assert "wait" in harness.written_by(lambda: harness.release("ann", "file:d/*"))


def test_earlier_fence_proves_nothing(harness: LockHarness) -> None:
    """Who was granted a lock anew has lost what it proved with the fence before."""
    earlier = harness.lock("ann", "file:a").locks[0].fence
    harness.release("ann", "file:a")
    fence = harness.lock("ann", "file:a").locks[0].fence
    refused("lost", lambda: harness.renew("ann", "file:a", fence=earlier))
    refused("lost", lambda: harness.release("ann", "file:a", fence=earlier))
    assert not harness.check("ann", "file:a", fence=earlier).free
    assert harness.check("ann", "file:a", fence=fence).free


def test_giving_back_never_fails_for_those_in_line(harness: LockHarness) -> None:
    """LCK-35: of more than a commit can grant some are granted, and the others when they look next."""
    harness.lock("ann", "file:src")
    files = [[f"file:src/{place}/{number}-{'x' * 300}" for place in range(64)] for number in range(8)]
    waiting = {str(number): harness.wait(str(number), *names) for number, names in enumerate(files)}
    harness.release("ann", "file:src")
    granted = {owner for owner, _ in harness.held()}
    assert 0 < len(granted) < len(waiting)
    assert all(harness.confirm(name, place).ok for name, place in waiting.items())
