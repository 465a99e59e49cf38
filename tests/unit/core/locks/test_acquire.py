"""The rules of taking locks: all or nothing, refreshes, defaults, and what each step costs."""

from collections.abc import Callable
from typing import Any

import pytest

from coord.core.errors import CoordError, Invalid, Refused
from coord.core.lifecycle.commands import Register
from coord.core.locks.commands import AcquireLocks, CheckLocks, ListLocks, ReleaseLocks
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


@pytest.mark.parametrize(
    ("resource", "profile", "mode", "ttl_s"),
    [
        ("file:a", "", "write", 300),
        ("file:a", "ticket", "write", 300),
        ("name:a", "", "exclusive", 3600),
        ("project:a", "", "exclusive", 3600),
    ],
)
def test_defaults_by_kind(harness: LockHarness, resource: str, profile: str, mode: str, ttl_s: int) -> None:
    """LCK-15, LCK-43, LCK-75, CFL-3, CFL-5: each kind of lock has its own mode and time to live."""
    (lock,) = harness.lock("ann", resource, profile=profile).locks
    assert (lock.mode, lock.expires_in_s) == (mode, ttl_s)


def test_all_or_nothing(harness: LockHarness) -> None:
    """LCK-40, DLK-1: one resource that is held refuses the whole request, and nothing of it stays."""
    harness.lock("ann", "file:b")
    assert harness.lock("bob", "file:a", "file:b", "name:n").outcome == "held"
    assert harness.held() == {("ann", "file:b")}
    refused("not_found", lambda: harness.release("ann", "file:b", "file:a"))
    assert harness.held() == {("ann", "file:b")}


def test_refresh_keeps_the_fence(harness: LockHarness) -> None:
    """LCK-79, CFL-18: the owner asking again begins the lease anew under the same fence: no new grant."""
    first = harness.lock("ann", "file:a").locks[0]
    harness.pass_time(100_000)
    again = harness.lock("ann", "file:a").locks[0]
    assert (again.fence, again.refreshed) == (first.fence, True)
    assert again.expires_ms == first.expires_ms + 100_000
    assert len(harness.events("lock.acquired")) == 1
    upgraded = [harness.lock("bob", "file:b", mode=mode).locks[0] for mode in ("read", "write", "read")]
    assert upgraded[1].fence > upgraded[0].fence
    assert (upgraded[2].mode, upgraded[2].fence) == ("write", upgraded[1].fence)


def test_sub_agent_under_its_parents_lock(harness: LockHarness) -> None:
    """A child works under its parent's lock, which ends both; it excludes its siblings and its parent."""
    harness.parents.update(kid="ann", sib="ann")
    harness.lock("ann", "file:src")
    assert harness.lock("kid", "file:src/a").ok
    assert harness.lock("sib", "file:src/a").holder.owner == "kid"
    assert harness.lock("ann", "file:src/a").holder.owner == "kid"
    harness.release("ann", "file:src")
    assert harness.held() == set()
    (_, lent) = harness.events("lock.released")
    assert (lent["session"], lent["end_reason"]) == ("kid", "parent_ended")


def test_parent_that_came_back_lends_again(harness: LockHarness) -> None:
    """A session that left and came back ends what it lends then, also to a child that came back first."""
    harness.parents["kid"] = "ann"
    harness.beat("ann")
    harness.beat("kid")
    harness.leave("ann")
    harness.engine.call(Register(caller=harness.who("kid")))
    harness.lock("ann", "file:src")
    harness.lock("kid", "file:src/a")
    harness.release("ann", "file:src")
    assert harness.held() == set()


def test_batch_grants_once(harness: LockHarness) -> None:
    """Of commands that were decided together, one gets the lock; a hand-over takes another commit."""
    asks = [AcquireLocks(harness.who(name), REPOSITORY, ("file:a",)) for name in ("ann", "bob")]
    release = ReleaseLocks(harness.who("ann"), REPOSITORY, ("file:a",))
    first, released, second = harness.engine.call_many([asks[0], release, asks[1]])
    assert (first.ok, released.released) == (True, ["file:a"])
    assert not second.ok or second.locks[0].fence > first.locks[0].fence


def test_answers_rest_on_the_guard(harness: LockHarness) -> None:
    """What rests on finding nothing is decided again where a lock is granted meanwhile (phantoms).

    A look by itself reads all at one moment, where nothing can come between; beside others it rests on it.
    """
    harness.store.others_commit = True
    look = CheckLocks(harness.who("bob"), REPOSITORY, ("file:new",))
    asks: list[Callable[[], Any]] = [
        lambda: harness.engine.call_many([look, ListLocks(harness.who("bob"))]),
        lambda: harness.lock("bob", "file:new"),
        lambda: harness.lock("cid", "file:new"),
        lambda: harness.wait("cid", "file:new"),
        lambda: refused("not_found", lambda: harness.release("bob", "file:other")),
        lambda: refused("not_found", lambda: harness.steal("bob", "file:other")),
        lambda: refused("not_found", lambda: harness.preempt("bob", "file:other", priority=1)),
    ]
    for ask in asks:
        harness.store.expected = set()
        ask()
        assert "guard/file/r" in harness.store.expected


def test_bids_are_bounded(harness: LockHarness) -> None:
    """Who asks for one file after another leaves 64 bids, not a record that grows with each."""
    harness.lock("ann", "file:src")
    for number in range(70):
        assert harness.lock("bob", f"file:src/{number}").holder.owner == "ann"
    assert len(harness.told("ann", "request")) == 64
    with pytest.raises(Refused, match="already waits for 64 requests"):
        harness.wait("bob", "file:src/more")
    harness.pass_time(60_000)
    harness.beat("cid")
    assert harness.wait("bob", "file:src/more").position == 1


# What it costs.


def test_records_per_operation(harness: LockHarness) -> None:
    """An uncontended lock is three records, and the session's where its heartbeat is due."""
    harness.beat("ann")
    assert harness.written_by(lambda: harness.lock("ann", "file:a")) == ["guard", "held", "lock"]
    assert harness.written_by(lambda: harness.renew("ann", "file:a")) == ["lock"]
    assert harness.written_by(lambda: harness.lock("ann", "file:a")) == ["lock"]
    assert harness.written_by(lambda: harness.check("bob", "file:a")) == []
    assert harness.written_by(lambda: harness.release("ann", "file:a")) == ["ended", "guard", "held", "lock"]
    harness.pass_time(15_000)
    assert harness.written_by(lambda: harness.lock("ann", "file:a")) == ["guard", "held", "lock", "session"]


def test_repeated_refusal_is_quiet(harness: LockHarness) -> None:
    """A refusal leaves a bid and tells the holder; within 5 s the same one again writes nothing."""
    harness.beat("bob")
    harness.lock("ann", "file:a")
    first = harness.written_by(lambda: harness.lock("bob", "file:a"))
    assert first == ["denied", "inbox", "mailbox", "waits"]
    harness.pass_time(4_999)
    assert harness.written_by(lambda: harness.lock("bob", "file:a")) == []
    harness.pass_time(1)
    assert harness.written_by(lambda: harness.lock("bob", "file:a")) == ["denied"]
    assert len(harness.told("ann", "request")) == 1


def test_too_many_resources_are_refused_unread(harness: LockHarness) -> None:
    """A command that names too much is refused, and nobody looks for all of it first."""
    harness.beat("ann")
    harness.store.questions = harness.store.reads = 0
    with pytest.raises(Invalid, match="at most 64"):
        harness.lock("ann", *(f"file:d{number}/a/b/c/f.py" for number in range(5_000)))
    assert harness.store.questions <= 1
    assert harness.store.reads < 20
