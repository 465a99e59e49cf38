"""The rules of identity: which session a caller may speak for, and which session is its parent."""

from typing import Any

import pytest

from coord.core.errors import Impostor, Invalid
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
