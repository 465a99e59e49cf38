"""The rules of sessions, one by one: who speaks for whom, who is dead, and who is whose parent."""

from typing import Any

import pytest

from coord.core import commands as c
from coord.core.errors import Dead, Impostor, Invalid
from coord.core.identity import Caller, Process, ProcessState
from tests.support.lock_harness import LockDesk


@pytest.fixture
def desk() -> LockDesk:
    return LockDesk()


def below(desk: LockDesk, name: str, *pids: int) -> Caller:
    """A caller that names a session and descends from these processes, nearest first."""
    return Caller(name, process_ancestors=tuple(Process(pid, 1) for pid in pids))


def register(desk: LockDesk, name: str, **said: Any) -> Any:
    return desk.engine.call(c.Register(caller=desk.who(name), **said))


def test_impostor(desk: LockDesk) -> None:
    """Who descends from another session's process may not speak for this one, nor name its parent."""
    desk.pids.update(ann=7, bob=8)
    desk.beat("ann")
    desk.beat("bob")
    with pytest.raises(Impostor):
        desk.engine.call(c.Heartbeat(below(desk, "ann", 8)))
    with pytest.raises(Impostor):
        desk.engine.call(c.Heartbeat(Caller("kid", parent="ann", process_ancestors=(Process(8, 1),))))
    assert desk.engine.call(c.Heartbeat(below(desk, "ann", 7))).session_id == "ann"


def test_twin(desk: LockDesk) -> None:
    """SES-25: two living processes under one id are two sessions; the next one follows a dead one."""
    desk.life = {7: ProcessState.ALIVE, 8: ProcessState.ALIVE}
    desk.pids["ann"] = 7
    desk.lock("ann", "file:a")
    desk.pids["ann"] = 8
    assert desk.beat("ann").session_id == "ann~2"
    assert desk.lock("ann", "file:a").holder.owner == "ann"
    desk.life[7] = ProcessState.DEAD
    desk.pids["ann"] = 9
    assert desk.beat("ann").session_id == "ann"


def test_unknown_is_not_dead(desk: LockDesk) -> None:
    """SES-19: what cannot be seen frees nothing, however long its owner is silent, before the lease ends."""
    desk.pids["ann"], desk.life[7] = 7, ProcessState.UNKNOWN
    desk.lock("ann", "file:a", ttl=10_000_000)
    desk.pass_time(9_000_000)
    assert not desk.lock("bob", "file:a").ok
    assert desk.events("session.ended") == []


def test_dead_session_must_register(desk: LockDesk) -> None:
    """One declared dead is refused everything until it registers, and then holds nothing."""
    desk.pids["ann"], desk.life[7] = 7, ProcessState.DEAD
    desk.lock("ann", "file:a")
    desk.lock("ann", "name:n")
    assert desk.lock("bob", "file:a").ok
    for ask in (lambda: desk.beat("ann"), lambda: desk.renew("ann", "name:n"), lambda: desk.lock("ann", "x")):
        with pytest.raises(Dead):
            ask()
    register(desk, "ann")
    assert desk.held() == {("bob", "file:a")}


def test_heartbeats_are_coalesced(desk: LockDesk) -> None:
    """SES-13, SES-35: within 15 s of the last sign of life nothing is written."""
    assert desk.beat("ann").written
    desk.pass_time(14_999)
    assert not desk.beat("ann").written
    desk.pass_time(1)
    assert desk.beat("ann").written


def test_nobody_is_above_its_own_parent(desk: LockDesk) -> None:
    """Two sessions that name each other as parent would hold one lock together: the second is refused."""
    desk.parents["ann"] = "bob"
    desk.lock("ann", "file:a")
    desk.parents["bob"] = "ann"
    with pytest.raises(Invalid):
        desk.lock("bob", "file:a")
    desk.parents = {}
    assert not desk.lock("bob", "file:a").ok


def test_deep_family_is_refused_at_its_bottom(desk: LockDesk) -> None:
    """Sub-agents nest sixteen deep; a family that grows at its top stands in no stranger's way."""
    for number in range(16):
        desk.parents[f"s{number + 1}"] = f"s{number}"
        desk.beat(f"s{number}")
    desk.beat("s16")
    desk.parents["s17"] = "s16"
    with pytest.raises(Invalid, match="nest"):
        desk.beat("s17")
    desk.lock("ann", "file:a")
    waiting = desk.wait("s16", "file:a")
    desk.beat("root")
    desk.parents["s0"] = "root"
    register(desk, "s0")
    desk.release("ann", "file:a")
    assert desk.confirm("s16", waiting).ok


def test_successor_below_its_predecessors_child(desk: LockDesk) -> None:
    """A session that replaces one it descends from makes no circle of parents."""
    desk.parents = {"kid": "ann", "new": "kid"}
    desk.beat("ann")
    desk.beat("kid")
    register(desk, "new", replaces="ann")
    desk.lock("new", "file:a")
    assert not desk.lock("kid", "file:a").ok


def test_replacing_one_never_seen(desk: LockDesk) -> None:
    """A start hook that names a session nobody has seen registers, and nothing moves."""
    reply = register(desk, "ann", replaces="never-seen")
    assert (reply.session.session_id, reply.moved_locks, reply.moved_claims) == ("ann", 0, 0)
    desk.beat("never-seen-either")
    assert register(desk, "ann", replaces="never").new is False
    assert desk.beat("never-seen-either").session_id == "never-seen-either", "a prefix replaces nobody"


def test_clear_keeps_the_fence(desk: LockDesk) -> None:
    """What a session had moves to its successor under the same fence."""
    desk.pids.update(old=7, new=7)
    fence = desk.lock("old", "file:a").locks[0].fence
    register(desk, "new", replaces="old")
    assert desk.held() == {("new", "file:a")}
    assert desk.renew("new", "file:a", fence=fence).locks[0].fence == fence
