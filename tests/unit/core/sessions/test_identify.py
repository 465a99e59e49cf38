"""The rules of identity: which session a caller may speak for, and which session is its parent."""

from typing import Any

import msgspec
import pytest

from coord.core.errors import Impostor, Invalid, Refused
from coord.core.identity import Caller, Process, ProcessState
from coord.core.lifecycle.commands import Deregister, Register
from coord.core.messages.commands import AckMessages, PeekMessages, SendMessage
from coord.core.sessions.commands import GetSession, Heartbeat
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


TERMINAL, OUTER, AGENT, OTHER, TOOL = 100, 150, 200, 300, 400
"""Processes: a terminal, an agent in it that started another one, an agent elsewhere, an unknown tool."""


@pytest.fixture
def office(harness: LockHarness) -> LockHarness:
    """A person at a terminal, agents below it and elsewhere, and sessions that name no process."""
    harness.life = {7: ProcessState.DEAD}
    person = Caller("pat@vm:100-1", process=Process(TERMINAL, 1), person=True, terminal=True)
    harness.engine.call(Heartbeat(person))
    for name, pid, *above in (
        ("outer", OUTER, TERMINAL),
        ("agent", AGENT, OUTER, TERMINAL),
        ("other", OTHER),
        ("killed", 7, TERMINAL),
    ):
        ancestors = tuple(Process(each, 1) for each in (pid, *above))
        harness.engine.call(Heartbeat(Caller(name, process=Process(pid, 1), process_ancestors=ancestors)))
    harness.engine.call(Heartbeat(Caller("named")))
    kid = Caller("agent.kid", parent="agent", process_ancestors=(Process(AGENT, 1), Process(OUTER, 1)))
    harness.engine.call(Heartbeat(kid))
    harness.engine.call(Heartbeat(Caller("ended")))
    harness.engine.call(Deregister(Caller("ended")))
    return harness


@pytest.mark.parametrize(
    ("says", "above", "acts_as"),
    [
        ("named", (TERMINAL,), "named"),
        ("killed", (TERMINAL,), "killed"),
        ("killed", (TOOL, TERMINAL), "killed"),
        ("ended", (TERMINAL,), "ended"),
        ("pat@vm:100-1", (TERMINAL,), "pat@vm:100-1"),
        ("", (TERMINAL,), None),
        ("", (AGENT, OUTER, TERMINAL), "agent"),
        ("", (OUTER, TERMINAL), "outer"),
        ("agent", (AGENT, OUTER, TERMINAL), "agent"),
        ("agent.kid", (AGENT, OUTER, TERMINAL), "agent.kid"),
        ("agent", (TOOL,), "agent"),
        ("new", (AGENT, OUTER, TERMINAL), "new"),
        ("ended", (AGENT, OUTER, TERMINAL), "ended"),
        ("other", (AGENT, OUTER, TERMINAL), None),
        ("named", (AGENT, OUTER, TERMINAL), None),
        ("killed", (AGENT, OUTER, TERMINAL), None),
        ("outer", (AGENT, OUTER, TERMINAL), None),
        ("agent", (OTHER,), None),
        ("pat@vm:100-1", (AGENT, OUTER, TERMINAL), "agent"),
        ("pat@vm:100-1", (OTHER,), "other"),
        ("eve@vm:100-1", (OTHER,), "other"),
    ],
)
def test_table_of_who_acts_as_whom(
    office: LockHarness, says: str, above: tuple[int, ...], acts_as: str | None
) -> None:
    """DESIGN §5: the nearest registered ancestor decides; a terminal stands in nobody's way, and is nobody.

    An agent's command that drops all variables looks like a person at the terminal, and is the agent's.
    """
    ancestors = tuple(Process(pid, 1) for pid in above)
    terminal = "@" in says
    process = Process(TERMINAL, 1) if terminal else None
    caller = Caller(says, process=process, process_ancestors=ancestors, person=terminal, terminal=terminal)
    if acts_as is None:
        with pytest.raises((Impostor, Invalid)) as caught:
            office.engine.call(Heartbeat(caller))
        assert caught.value.hint
    else:
        assert office.engine.call(Heartbeat(caller)).session_id == acts_as
        for name, pid in (("agent", AGENT), ("other", OTHER)):
            assert office.engine.call(GetSession(caller, name)).pid == pid, "nobody's process moves"


def test_the_error_names_the_way_out(office: LockHarness) -> None:
    """What the error says to do is true: after it, the terminal acts as the other session."""
    posing = below(office, "named", AGENT)
    with pytest.raises(Impostor, match="already acts as agent") as caught:
        office.engine.call(Heartbeat(posing))
    assert caught.value.hint == "to act as named, first run coord dereg here without COORD_SESSION_ID"
    office.engine.call(Deregister(msgspec.structs.replace(posing, session="")))
    assert office.engine.call(Heartbeat(posing)).session_id == "named"


def test_an_agent_is_no_person(office: LockHarness) -> None:
    """What only a person may do, an agent cannot do by dropping its variables."""
    office.engine.call(SendMessage(caller=Caller("other"), to="named", kind="status", subject="hello"))
    (message,) = office.engine.call(PeekMessages(Caller("named"))).messages
    person = Caller("pat@vm:100-1", process=Process(TERMINAL, 1), person=True, terminal=True)
    posing = msgspec.structs.replace(person, process_ancestors=(Process(AGENT, 1), Process(TERMINAL, 1)))
    with pytest.raises(Refused, match="only a person"):
        office.engine.call(AckMessages(posing, (message.id,), "named"))
    assert office.engine.call(AckMessages(person, (message.id,), "named")).acked == [message.id]


@pytest.mark.parametrize("life", [ProcessState.FOREIGN, ProcessState.ALIVE, ProcessState.UNKNOWN])
def test_a_session_in_a_foreign_process_can_be_ended(harness: LockHarness, life: ProcessState) -> None:
    """If no agent runs in the process that a session names, anybody may end it, but nothing frees itself."""
    harness.pids["doomed"], harness.life = 7, {7: life}
    harness.lock("doomed", "file:a")
    assert not harness.lock("ann", "file:a").ok
    if life is ProcessState.FOREIGN:
        assert harness.engine.call(Deregister(harness.who("ann"), "doomed")).released == ["file:a"]
    else:
        with pytest.raises(Refused, match="not proven dead") as caught:
            harness.engine.call(Deregister(harness.who("ann"), "doomed"))
        assert "--force --reason" in caught.value.hint


def test_a_person_of_an_earlier_version_is_in_nobodys_way(office: LockHarness) -> None:
    """Earlier versions listed the session of a person with its process, as those of agents are."""
    old = Caller("old@vm:500-1", process=Process(500, 1), person=True)
    office.engine.call(Heartbeat(old))
    assert office.engine.call(Heartbeat(below(office, "killed", 500))).session_id == "killed"
    with pytest.raises(Invalid, match="no session is known"):
        office.engine.call(Heartbeat(below(office, "", 500)))
