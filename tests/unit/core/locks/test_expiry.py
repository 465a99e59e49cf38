"""Locks that end by time: expired leases, unconfirmed grants, and locks that were lent."""

from collections.abc import Callable
from typing import Any

import pytest

from coord.core.errors import CoordError
from tests.support.lock_harness import LockHarness


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


def test_expiry_is_told(harness: LockHarness) -> None:
    """LCK-80, LCK-81, SCH-20: the end of a lease is an event at that moment and a message to the owner."""
    fence = harness.lock("ann", "file:src/a.py").locks[0].fence
    harness.pass_time(400_000)
    harness.beat("bob")
    (ended,) = harness.events("lock.released")
    assert (ended["end_reason"], ended["until_ms"], ended["held_s"]) == (
        "expired",
        harness.now - 100_000,
        300.0,
    )
    assert harness.told("ann", "warn") == ["[System] Your lock on file:src/a.py has expired."]
    refused("not_found", lambda: harness.renew("ann", "file:src/a.py", fence=fence))


def test_hand_off_lapses_unless_confirmed(harness: LockHarness) -> None:
    """LCK-35: the lock goes to the first in line, for 15 s; unconfirmed it goes to the next."""
    harness.lock("ann", "file:a")
    first, second = harness.wait("bob", "file:a"), harness.wait("cid", "file:a")
    assert (first.position, second.position) == (1, 2)
    harness.release("ann", "file:a")
    assert harness.held() == {("bob", "file:a")}
    harness.pass_time(15_000)
    harness.beat("watcher")
    assert harness.held() == {("cid", "file:a")}
    assert harness.confirm("cid", second).ok
    assert harness.confirm("bob", first).outcome == "waiting", "it is back in line"


def test_lent_lock_ends_when_its_lender_did(harness: LockHarness) -> None:
    """A lock under another one ends at the moment that one ended, also if that is noticed late."""
    harness.parents["kid"] = "ann"
    harness.lock("ann", "file:src")
    harness.lock("kid", "file:src/a", ttl=900_000)
    harness.pass_time(350_000)
    harness.beat("watcher")
    assert {event["until_ms"] for event in harness.events("lock.released")} == {harness.now - 50_000}
