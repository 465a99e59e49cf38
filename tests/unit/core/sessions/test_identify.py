"""The rules of sessions, one by one: who speaks for whom, who is dead, and who is whose parent."""

from typing import Any

import pytest

from coord.core.errors import Dead, Impostor, Invalid
from coord.core.identity import Caller, Process, ProcessState
from coord.core.lifecycle.commands import Register
from coord.core.sessions.commands import Heartbeat
from tests.support.lock_harness import LockHarness


@pytest.fixture
def harness() -> LockHarness:
    return LockHarness()


def below(harness: LockHarness, name: str, *pids: int) -> Caller:
    """A caller that names a session and descends from these processes, nearest first."""
    return Caller(name, process_ancestors=tuple(Process(pid, 1) for pid in pids))


def register(harness: LockHarness, name: str, **said: Any) -> Any:
    return harness.engine.call(Register(caller=harness.who(name), **said))


def test_impostor(harness: LockHarness) -> None:
    """Who descends from another session's process may not speak for this one, nor name its parent."""
    harness.pids.update(ann=7, bob=8)
    harness.beat("ann")
    harness.beat("bob")
    with pytest.raises(Impostor):
        harness.engine.call(Heartbeat(below(harness, "ann", 8)))
    with pytest.raises(Impostor):
        harness.engine.call(Heartbeat(Caller("kid", parent="ann", process_ancestors=(Process(8, 1),))))
    assert harness.engine.call(Heartbeat(below(harness, "ann", 7))).session_id == "ann"


def test_twin(harness: LockHarness) -> None:
    """SES-25: two living processes under one id are two sessions; the next one follows a dead one."""
    harness.life = {7: ProcessState.ALIVE, 8: ProcessState.ALIVE}
    harness.pids["ann"] = 7
    harness.lock("ann", "file:a")
    harness.pids["ann"] = 8
    assert harness.beat("ann").session_id == "ann~2"
    assert harness.lock("ann", "file:a").holder.owner == "ann"
    harness.life[7] = ProcessState.DEAD
    harness.pids["ann"] = 9
    assert harness.beat("ann").session_id == "ann"


def test_unknown_is_not_dead(harness: LockHarness) -> None:
    """SES-19: what cannot be seen frees nothing, however long its owner is silent, before the lease ends."""
    harness.pids["ann"], harness.life[7] = 7, ProcessState.UNKNOWN
    harness.lock("ann", "file:a", ttl=10_000_000)
    harness.pass_time(9_000_000)
    assert not harness.lock("bob", "file:a").ok
    assert harness.events("session.ended") == []


def test_dead_session_must_register(harness: LockHarness) -> None:
    """One declared dead is refused everything until it registers, and then holds nothing."""
    harness.pids["ann"], harness.life[7] = 7, ProcessState.DEAD
    harness.lock("ann", "file:a")
    harness.lock("ann", "name:n")
    assert harness.lock("bob", "file:a").ok
    for ask in (
        lambda: harness.beat("ann"),
        lambda: harness.renew("ann", "name:n"),
        lambda: harness.lock("ann", "x"),
    ):
        with pytest.raises(Dead):
            ask()
    register(harness, "ann")
    assert harness.held() == {("bob", "file:a")}


def test_heartbeats_are_coalesced(harness: LockHarness) -> None:
    """SES-13, SES-35: within 15 s of the last sign of life nothing is written."""
    assert harness.beat("ann").written
    harness.pass_time(14_999)
    assert not harness.beat("ann").written
    harness.pass_time(1)
    assert harness.beat("ann").written


def test_nobody_is_above_its_own_parent(harness: LockHarness) -> None:
    """Two sessions that name each other as parent would hold one lock together: the second is refused."""
    harness.parents["ann"] = "bob"
    harness.lock("ann", "file:a")
    harness.parents["bob"] = "ann"
    with pytest.raises(Invalid):
        harness.lock("bob", "file:a")
    harness.parents = {}
    assert not harness.lock("bob", "file:a").ok


def test_deep_family_is_refused_at_its_bottom(harness: LockHarness) -> None:
    """Sub-agents nest sixteen deep; a family that grows at its top stands in no stranger's way."""
    for number in range(16):
        harness.parents[f"s{number + 1}"] = f"s{number}"
        harness.beat(f"s{number}")
    harness.beat("s16")
    harness.parents["s17"] = "s16"
    with pytest.raises(Invalid, match="nest"):
        harness.beat("s17")
    harness.lock("ann", "file:a")
    waiting = harness.wait("s16", "file:a")
    harness.beat("root")
    harness.parents["s0"] = "root"
    register(harness, "s0")
    harness.release("ann", "file:a")
    assert harness.confirm("s16", waiting).ok


def test_successor_below_its_predecessors_child(harness: LockHarness) -> None:
    """A session that replaces one it descends from makes no circle of parents."""
    harness.parents = {"kid": "ann", "new": "kid"}
    harness.beat("ann")
    harness.beat("kid")
    register(harness, "new", replaces="ann")
    harness.lock("new", "file:a")
    assert not harness.lock("kid", "file:a").ok


def test_replacing_one_never_seen(harness: LockHarness) -> None:
    """A start hook that names a session nobody has seen registers, and nothing moves."""
    reply = register(harness, "ann", replaces="never-seen")
    assert (reply.session.session_id, reply.moved_locks, reply.moved_claims) == ("ann", 0, 0)
    harness.beat("never-seen-either")
    assert register(harness, "ann", replaces="never").new is False
    assert harness.beat("never-seen-either").session_id == "never-seen-either", "a prefix replaces nobody"


def test_clear_keeps_the_fence(harness: LockHarness) -> None:
    """What a session had moves to its successor under the same fence."""
    harness.pids.update(old=7, new=7)
    fence = harness.lock("old", "file:a").locks[0].fence
    register(harness, "new", replaces="old")
    assert harness.held() == {("new", "file:a")}
    assert harness.renew("new", "file:a", fence=fence).locks[0].fence == fence
