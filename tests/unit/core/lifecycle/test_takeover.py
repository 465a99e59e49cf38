"""A successor takes over locks, children and messages."""

from typing import Any

import pytest

from coord.core.lifecycle.commands import Register
from tests.support.claim_harness import LEASE_MS, ClaimHarness
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
    register(harness, "new", replaces="ann", force=True, reason="ann hangs")
    harness.lock("new", "file:a")
    assert not harness.lock("kid", "file:a").ok


def test_clear_keeps_the_fence(harness: LockHarness) -> None:
    """What a session had moves to its successor under the same fence."""
    harness.pids.update(old=7, new=7)
    fence = harness.lock("old", "file:a").locks[0].fence
    register(harness, "new", replaces="old")
    assert harness.held() == {("new", "file:a")}
    assert harness.renew("new", "file:a", fence=fence).locks[0].fence == fence


def test_a_claim_moves_with_its_locks() -> None:
    """The successor renews both, loses both together, and releases both with the result."""
    harness = ClaimHarness()
    harness.add("t", "a.py")
    harness.add("u", "b.py")
    harness.pids.update(old=7, new=7)
    assert harness.claim("old", "t").success
    assert harness.claim("old", "u").success
    register(harness, "new", replaces="old")
    harness.pass_time(LEASE_MS - 1)
    assert harness.renew_claim("new", "t").success
    harness.pass_time(LEASE_MS - 1)
    assert not harness.lock("bob", "file:a.py").ok
    assert harness.submit("new", "t").accepted
    assert harness.lock("bob", "file:a.py").ok
    assert harness.lock("bob", "file:b.py").ok
    assert harness.submit("new", "u").reason == "LOCK_LOST"


def test_uses_of_both_sessions_stay() -> None:
    """A successor that has the same lock already needs it for its own things, too."""
    harness = ClaimHarness()
    harness.pids.update(old=7, new=7)
    harness.lock("old", "file:a", mode="read", use="guard:1")
    harness.lock("new", "file:a", mode="read", use="guard:2")
    register(harness, "new", replaces="old")
    again = harness.lock("new", "file:a", mode="read", use="guard:2").locks[0]
    assert sorted(again.uses) == ["guard:1", "guard:2"]
