"""Steal and preempt: who may take a lock from its holder, and what is recorded."""

from collections.abc import Callable
from typing import Any

import pytest

from coord.core.errors import CoordError, Invalid, NotFound, Refused
from coord.core.identity import ProcessState
from coord.core.settings import ChangeSettings
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


@pytest.mark.parametrize("silent", [299_000, 300_000])
@pytest.mark.parametrize("ttl", [599_000, 700_000])
@pytest.mark.parametrize("age", [599_999, 600_000])
def test_strict_steal(harness: LockHarness, silent: int, ttl: int, age: int) -> None:
    """LCK-50, CFL-7, AMB-23: stale owner AND lease over AND ten minutes old; each alone is not enough."""
    first = harness.lock("ann", "name:n", ttl=ttl)
    harness.pass_time(age - silent)
    harness.beat("ann")
    harness.pass_time(silent)
    missing = [silent < 300_000, ttl > age, age < 600_000]
    if any(missing):
        said = refused("not_stealable", lambda: harness.steal("bob", "name:n"))
        words = ["was active", "lease lasts", "old (needs"]
        assert [word in said for word in words] == missing
        assert harness.held() == {("ann", "name:n")}
    else:
        stolen = harness.steal("bob", "name:n")
        assert stolen.locks[0].fence > first.locks[0].fence
        assert "took your lock on name:n" in harness.told("ann", "preempt")[0]


@pytest.mark.parametrize("life", [ProcessState.ALIVE, ProcessState.UNKNOWN, ProcessState.DEAD])
@pytest.mark.parametrize("expired", [False, True])
def test_steal_from_the_dead_or_expired(harness: LockHarness, life: ProcessState, expired: bool) -> None:
    """CFL-7: with `dead_or_expired` one of both is enough, and neither silence nor age counts."""
    harness.engine.call(ChangeSettings({"steal_policy": "dead_or_expired"}))
    harness.pids["ann"], harness.life[7] = 7, life
    first = harness.lock("ann", "name:n", ttl=60_000)
    harness.pass_time(60_000 - (not expired))
    if expired or life is ProcessState.DEAD:
        stolen = harness.steal("bob", "name:n")
        assert stolen.locks[0].fence > first.locks[0].fence
        assert harness.held() == {("bob", "name:n")}
    else:
        said = refused("not_stealable", lambda: harness.steal("bob", "name:n"))
        assert "not proven dead" in said
        assert harness.held() == {("ann", "name:n")}


@pytest.mark.parametrize("life", [ProcessState.ALIVE, ProcessState.UNKNOWN, ProcessState.DEAD])
def test_steal_from_a_dead_owner(harness: LockHarness, life: ProcessState) -> None:
    """CFL-7, LCK-51: --dead-owner needs a proven death, then neither age nor lease matter."""
    harness.pids["ann"], harness.life[7] = 7, life
    harness.lock("ann", "name:n", "file:f")
    harness.pass_time(400_000)
    if life is ProcessState.DEAD:
        assert harness.steal("bob", "name:n", dead_owner=True).ok
        assert harness.held() == {("bob", "name:n")}
        refused("dead", lambda: harness.lock("ann", "file:other"))
    else:
        refused("not_stealable", lambda: harness.steal("bob", "name:n", dead_owner=True))


def test_steal_by_force_is_audited(harness: LockHarness) -> None:
    """LCK-52, CFL-7: --force needs a reason; event and record keep it, and the old owner is refused."""
    fence = harness.lock("ann", "name:n").locks[0].fence
    with pytest.raises(Invalid):
        harness.steal("bob", "name:n", force=True)
    harness.steal("bob", "name:n", force=True, reason="stuck")
    (ended,) = harness.events("lock.released")
    assert (ended["end_reason"], ended["by"], ended["note"]) == ("stolen", "bob", "by force: stuck")
    refused("not_owner", lambda: harness.renew("ann", "name:n", fence=fence))
    refused("not_owner", lambda: harness.release("ann", "name:n"))
    assert not harness.check("ann", "name:n", fence=fence).free
    with pytest.raises(NotFound):
        harness.steal("cid", "name:nobody-has-it")


def test_steal_with_a_fence_takes_only_the_lock_that_was_seen(harness: LockHarness) -> None:
    """Whoever has it since then, even the same session, keeps it."""
    fence = harness.lock("ann", "name:n").locks[0].fence
    harness.release("ann", "name:n")
    seen = harness.lock("cid", "name:n").locks[0].fence
    steal: dict[str, Any] = {"force": True, "reason": "stuck"}
    said = refused("not_stealable", lambda: harness.steal("bob", "name:n", fence=fence, **steal))
    assert said.startswith(f"the lock with fence {fence} has ended; name:n is with cid ")
    assert harness.steal("bob", "name:n", fence=seen, **steal).ok


def test_steal_serves_what_else_came_free(harness: LockHarness) -> None:
    """LCK-35: who waits for another part of a stolen glob gets it in the same commit."""
    harness.lock("ann", "file:src/*")
    waiting = harness.wait("cid", "file:src/b")
    harness.steal("bob", "file:src/a", force=True, reason="stuck")
    assert harness.confirm("cid", waiting).ok


@pytest.mark.parametrize(("priority", "asked"), [(4, False), (5, False), (6, True)])
def test_preempt_needs_a_higher_priority(harness: LockHarness, priority: int, asked: bool) -> None:
    """Only strictly higher priority may ask; the holder keeps it for the grace.

    CFL-16, LCK-28, LCK-30, LCK-10.
    """
    harness.lock("ann", "file:a", priority=5)
    if not asked:
        with pytest.raises(Refused):
            harness.preempt("bob", "file:a", priority=priority)
        assert harness.renew("ann", "file:a")
        return
    reply = harness.preempt("bob", "file:a", priority=priority, grace_ms=10_000)
    assert (reply.asked, reply.until_ms) == (["ann"], harness.now + 10_000)
    assert "release it within 10 s" in harness.told("ann", "preempt")[0]
    harness.pass_time(9_999)
    assert harness.held() == {("ann", "file:a")}
    assert harness.lock("bob", "file:a").holder.preempted_by == "bob"


def test_preempted_lock_is_revoked_after_the_grace(harness: LockHarness) -> None:
    """No renewal once preemption is asked; then it ends at the promised moment.

    LCK-25, LCK-29, LCK-31, AUD-11.
    """
    fence = harness.lock("ann", "file:a").locks[0].fence
    waiting = harness.wait("bob", "file:a")
    until_ms = harness.preempt("bob", "file:a", priority=1, grace_ms=10_000).until_ms
    refused("lost", lambda: harness.renew("ann", "file:a"))
    assert harness.lock("ann", "file:a").locks[0].preempted_by == "bob", "asking again does not undo it"
    harness.pass_time(25_000)
    assert harness.held() == set(), "the deadline acts before anybody writes it down"
    harness.beat("cid")
    (ended,) = harness.events("lock.released")
    assert (ended["end_reason"], ended["by"], ended["until_ms"]) == ("preempted", "bob", until_ms)
    assert "went to bob" in harness.told("ann", "preempt")[-1]
    refused("not_owner", lambda: harness.release("ann", "file:a", fence=fence))
    assert harness.confirm("bob", waiting).ok


def test_second_preemption_sees_the_first(harness: LockHarness) -> None:
    """LCK-28: who asks again with a shorter grace learns when the lock is free, and asks nobody twice."""
    harness.lock("ann", "file:a")
    first = harness.preempt("bob", "file:a", priority=1, grace_ms=60_000)
    second = harness.preempt("cid", "file:a", priority=1, grace_ms=5_000)
    assert (second.asked, second.until_ms) == ([], first.until_ms)
    with pytest.raises(NotFound):
        harness.preempt("bob", "file:other", priority=1)


def test_a_forced_release_gives_the_lock_to_those_that_wait(harness: LockHarness) -> None:
    """The one who releases it gets nothing; the holder hears who, and why; the log says it was taken."""
    harness.lock("ann", "name:n")
    waiting = harness.wait("bob", "name:n")
    reply = harness.steal("grace", "name:n", force=True, release=True, reason="ann is on holiday")
    assert reply.ok
    assert reply.locks == []
    assert harness.confirm("bob", waiting).ok
    assert harness.held() == {("bob", "name:n")}
    assert "ann is on holiday" in harness.told("ann", "preempt")[0]
    (ended,) = [event for event in harness.events("lock.released") if event["session"] == "ann"]
    assert (ended["end_reason"], ended["by"]) == ("stolen", "grace")
    assert "force" in refused("invalid", lambda: harness.steal("x", "name:n", force=True, release=True))


def test_a_release_by_fence_ends_that_lock_only(harness: LockHarness) -> None:
    """Others that hold the same file lose nothing; a thief gets the file only if all of them do."""
    ann = harness.lock("ann", "file:a", mode="read").locks[0]
    harness.lock("bob", "file:a", mode="read")
    harness.lock("cid", "file:a", mode="read")
    why = {"force": True, "reason": "ann has left", "fence": ann.fence}
    assert harness.steal("grace", "file:a", release=True, **why).ok
    assert harness.held() == {("bob", "file:a"), ("cid", "file:a")}
    assert harness.told("bob", "preempt") == []
    assert "has ended" in refused("not_stealable", lambda: harness.steal("x", "file:a", release=True, **why))
    dan = harness.lock("dan", "file:a", mode="read").locks[0]
    harness.steal("grace", "file:a", force=True, reason="all at once", fence=dan.fence)
    assert harness.held() == {("grace", "file:a")}
