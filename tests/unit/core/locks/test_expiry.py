"""Locks that end by time: expired leases, unconfirmed grants, and locks that were lent."""

from collections.abc import Callable
from typing import Any

import pytest

from coord.core.errors import CoordError
from coord.core.identity import ProcessState
from coord.core.lifecycle.commands import Register
from coord.core.locks.commands import BeginToolCall
from coord.core.settings import ChangeSettings
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


def test_expiry_is_told(harness: LockHarness) -> None:
    """LCK-80, LCK-81, SCH-20, MSG-16: the end of a lease is an event then, and a message to the owner."""
    fence = harness.lock("ann", "file:src/a.py").locks[0].fence
    harness.pass_time(400_000)
    harness.beat("bob")
    (ended,) = harness.events("lock.released")
    assert (ended["end_reason"], ended["until_ms"], ended["held_s"]) == (
        "expired",
        harness.now - 100_000,
        300.0,
    )
    assert harness.told("ann", "warn") == ["[System] Your file lock on src/a.py has expired."]
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


HOUR = 3_600_000


def finish(harness: LockHarness, name: str, status: str) -> None:
    """Report the end of the work when registering, which keeps the locks; `update` would release them."""
    harness.engine.call(Register(caller=harness.who(name), status=status))


@pytest.mark.parametrize("ttl", [0, 100_000, 2 * HOUR])
def test_a_file_claim_ends_when_somebody_looks(harness: LockHarness, ttl: int) -> None:
    """An hour or the time that was asked for; then a blocked request or a sweep ends it, nothing earlier.

    CFL-5, CFL-6.
    """
    lasts = ttl or HOUR
    fence = harness.lock("ann", "file:a", profile="file-claim", ttl=ttl).locks[0].fence
    harness.pass_time(lasts - 1)
    assert not harness.lock("bob", "file:a").ok
    assert not harness.check("bob", "file:a").free
    harness.pass_time(1)
    assert harness.check("bob", "file:a").free
    later = harness.lock("bob", "file:a")
    assert later.locks[0].fence > fence
    assert "its time was over" in harness.told("ann", "warn")[0]
    refused("not_owner", lambda: harness.renew("ann", "file:a", fence=fence))


def test_a_file_claim_is_swept(harness: LockHarness) -> None:
    """CFL-6: the sweep ends it without a rival; a renewal is a new hour."""
    harness.lock("ann", "file:a", profile="file-claim")
    harness.lock("ann", "file:b", profile="file-claim")
    harness.pass_time(HOUR - 1)
    harness.renew("ann", "file:b")
    harness.pass_time(1)
    harness.beat("watcher")
    assert harness.held() == {("ann", "file:b")}
    (ended,) = harness.events("lock.released")
    assert (ended["end_reason"], ended["until_ms"]) == ("expired", harness.now)


@pytest.mark.parametrize("status", ["completed", "failed"])
@pytest.mark.parametrize("profile", ["", "file-claim"])
def test_a_file_claim_ends_with_the_work_of_its_owner(
    harness: LockHarness, status: str, profile: str
) -> None:
    """CFL-6: an owner that has completed or failed blocks nobody; another profile waits for its lease."""
    harness.lock("ann", "file:a", profile=profile)
    finish(harness, "ann", status)
    assert harness.lock("bob", "file:a").ok is bool(profile)


def test_a_file_claim_of_the_dead_is_free(harness: LockHarness) -> None:
    """CFL-6: a proven death ends it at once."""
    harness.pids["ann"] = 7
    harness.lock("ann", "file:a", profile="file-claim")
    harness.life[7] = ProcessState.DEAD
    assert harness.lock("bob", "file:a").ok


@pytest.mark.parametrize("resource", ["file:a", "name:n"])
def test_a_lock_without_progress_ends(harness: LockHarness, resource: str) -> None:
    """CFL-5, DLK-12: after a minute without progress it ends, whatever its profile; its owner is told."""
    harness.lock("ann", resource, progress_ms=60_000)
    harness.pass_time(59_999)
    assert not harness.lock("bob", resource).ok
    harness.pass_time(1)
    assert harness.lock("bob", resource).ok
    assert "made no progress for 60 s" in harness.told("ann", "warn")[0]


@pytest.mark.parametrize("progress", ["beat", "renew", "lock", "call"])
def test_progress_keeps_a_lock(harness: LockHarness, progress: str) -> None:
    """DLK-12: a heartbeat, a renewal, asking again and a tool call under way are progress."""
    harness.lock("ann", "file:a", progress_ms=60_000)
    harness.pass_time(50_000)
    if progress == "beat":
        harness.beat("ann")
    elif progress == "renew":
        harness.renew("ann", "file:a")
    elif progress == "lock":
        harness.lock("ann", "file:a", progress_ms=60_000)
    else:
        edit = ("file:other",)
        call = BeginToolCall(harness.who("ann"), REPOSITORY, edit, call="c", lease_ms=100_000, worktree="w")
        harness.engine.call(call)
    harness.pass_time(99_999 if progress == "call" else 59_999)
    assert not harness.lock("bob", "file:a").ok
    harness.pass_time(1)
    assert harness.lock("bob", "file:a").ok


def test_waiting_is_no_progress(harness: LockHarness) -> None:
    """DLK-12: a session that waits sends heartbeats, and yet a deadlock that nobody sees ends."""
    harness.lock("ann", "file:a", progress_ms=60_000)
    harness.lock("bob", "file:b", ttl=HOUR)
    waiting = harness.wait("ann", "file:b")
    for _ in range(4):
        harness.pass_time(15_000)
        harness.confirm("ann", waiting)
        harness.renew("bob", "file:b")
    assert harness.lock("cid", "file:a").ok


def test_the_sweep_ends_a_lock_without_progress(harness: LockHarness) -> None:
    """DLK-12: nobody has to ask for it; with progress the sweep looks again later."""
    harness.lock("ann", "name:n", progress_ms=60_000)
    harness.pass_time(59_000)
    harness.beat("ann")
    harness.pass_time(1_000)
    harness.beat("watcher")
    assert harness.held() == {("ann", "name:n")}
    harness.pass_time(60_000)
    harness.beat("watcher")
    assert harness.held() == set()


def test_a_setting_gives_every_blocking_lock_a_progress_timeout(harness: LockHarness) -> None:
    """CFL-5: the store's setting holds for locks without their own; named locks wait for a steal."""
    harness.lock("ann", "file:a", "name:n")
    harness.lock("ann", "file:b", progress_ms=200_000)
    harness.pass_time(100_000)
    assert not harness.lock("bob", "file:a").ok
    harness.engine.call(ChangeSettings({"progress_timeout_seconds": 100}))
    assert harness.lock("bob", "file:a").ok
    assert not harness.lock("bob", "file:b").ok
    assert not harness.lock("bob", "name:n").ok


@pytest.mark.parametrize("waiter", ["ann", "bob"])
def test_a_sweep_leaves_the_deadline_of_its_own_hand_off(harness: LockHarness, waiter: str) -> None:
    """A lock that ends and is handed to its owner in one sweep lapses if nobody confirms it."""
    harness.lock("ann", "file:a", mode="read")
    harness.lock("bob", "file:a", mode="read")
    harness.preempt("cid", "file:a", priority=1, grace_ms=10_000)
    harness.wait(waiter, "file:a", mode="write")
    harness.pass_time(10_000)
    harness.beat("cid")
    assert harness.held() == {(waiter, "file:a")}
    harness.pass_time(15_000)
    harness.beat("cid")
    ended = [event["end_reason"] for event in harness.events("lock.released")]
    assert ended == ["preempted", "preempted", "lapsed"]
