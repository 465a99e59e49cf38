"""A successor takes over locks, children and messages."""

from typing import Any

import pytest

from coord.core.lifecycle.commands import Register
from tests.support.lock_harness import LockHarness


@pytest.fixture
def harness() -> LockHarness:
    return LockHarness()


def register(harness: LockHarness, name: str, **said: Any) -> Any:
    return harness.engine.call(Register(caller=harness.who(name), **said))


def test_successor_below_its_predecessors_child(harness: LockHarness) -> None:
    """A session that replaces one it descends from makes no circle of parents."""
    harness.parents = {"kid": "ann", "new": "kid"}
    harness.beat("ann")
    harness.beat("kid")
    register(harness, "new", replaces="ann")
    harness.lock("new", "file:a")
    assert not harness.lock("kid", "file:a").ok


def test_clear_keeps_the_fence(harness: LockHarness) -> None:
    """What a session had moves to its successor under the same fence."""
    harness.pids.update(old=7, new=7)
    fence = harness.lock("old", "file:a").locks[0].fence
    register(harness, "new", replaces="old")
    assert harness.held() == {("new", "file:a")}
    assert harness.renew("new", "file:a", fence=fence).locks[0].fence == fence
