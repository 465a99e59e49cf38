"""Who gets a message: a session, an agent, a role, a group, in a fixed order."""

import pytest

from coord.core.errors import Gone, Invalid, NotFound
from coord.core.identity import Caller, ProcessState
from coord.core.lifecycle.commands import Register
from coord.core.messages.commands import AckMessages, JoinGroup
from tests.support.lock_harness import LockHarness
from tests.support.message_calls import receive, send, subjects


def enter(harness: LockHarness, name: str, agent: str = "", role: str = "") -> None:
    caller = Caller(name, agent=agent, role=role, process=harness.who(name).process)
    harness.engine.call(Register(caller=caller))


@pytest.fixture
def crew(harness: LockHarness) -> LockHarness:
    """Two sessions of otto, one of rem, which reviews with one of otto's."""
    enter(harness, "s-1", "otto")
    enter(harness, "s-2", "otto", "reviewer")
    enter(harness, "s-3", "rem", "reviewer")
    return harness


def test_an_agents_name_means_all_its_sessions(crew: LockHarness) -> None:
    """MSG-10, MSG-17: one id for all of them; the answer says which, and each acknowledges for itself."""
    sent = send(crew, "ann", "otto", "hello")
    assert sent.recipients == {"s-1": "live", "s-2": "live"}
    for name in ("s-1", "s-2"):
        (message,) = receive(crew, name).messages
        assert message.id == sent.id
    crew.engine.call(AckMessages(crew.who("s-1"), (sent.id,)))
    crew.pass_time(60_000)
    assert subjects(receive(crew, "s-1")) == []
    assert subjects(receive(crew, "s-2")) == ["hello"]
    (event,) = crew.events("message.sent")
    assert (event["to"], event["to_agent"]) == (["s-1", "s-2"], "otto")


def test_the_one_session_of_an_agent(crew: LockHarness) -> None:
    """MSG-17: the log says to which agent and to which role a message went."""
    assert list(send(crew, "ann", "rem", "hello").recipients) == ["s-3"]
    (event,) = crew.events("message.sent")
    assert (event["to_agent"], event["to_role"]) == ("rem", "reviewer")


def test_a_role_means_its_sessions(crew: LockHarness) -> None:
    """MSG-17: but never the sender."""
    assert list(send(crew, "ann", "role:reviewer", "look").recipients) == ["s-2", "s-3"]
    assert list(send(crew, "s-2", "role:reviewer", "look").recipients) == ["s-3"]
    assert [event["to_role"] for event in crew.events("message.sent")] == ["reviewer", "reviewer"]
    with pytest.raises(NotFound, match="role painter"):
        send(crew, "ann", "role:painter", "look")


def test_silent_sessions_are_left_out_while_another_lives(crew: LockHarness) -> None:
    """MSG-10: a message to a name goes to its living sessions; if none seems alive, to all that remain."""
    crew.pass_time(400_000)
    assert list(send(crew, "ann", "otto", "one").recipients) == ["s-1", "s-2"]
    crew.beat("s-2")
    assert list(send(crew, "ann", "otto", "two").recipients) == ["s-2"]
    crew.leave("s-2")
    assert list(send(crew, "ann", "otto", "three").recipients) == ["s-1"]


def test_a_dead_session_is_left_out(harness: LockHarness) -> None:
    """MSG-10: a name means nobody whose process is gone while another one lives."""
    harness.pids = {"s-1": 11, "s-2": 12}
    enter(harness, "s-1", "otto")
    enter(harness, "s-2", "otto")
    harness.life = {11: ProcessState.DEAD, 12: ProcessState.ALIVE}
    assert list(send(harness, "ann", "otto", "hello").recipients) == ["s-2"]


def test_the_order_is_id_name_prefix(harness: LockHarness) -> None:
    """AMB-26: a full id wins over a name, a name over the beginning of an id."""
    enter(harness, "otto", "rem")
    enter(harness, "s-1", "otto")
    assert list(send(harness, "ann", "otto", "x").recipients) == ["otto"]
    enter(harness, "s-12", "s")
    assert list(send(harness, "ann", "s", "x").recipients) == ["s-12"]
    assert list(send(harness, "ann", "s-1", "x").recipients) == ["s-1"]
    assert list(send(harness, "ann", "ot", "x").recipients) == ["otto"]
    enter(harness, "otter")
    with pytest.raises(Invalid, match="more than one session begins with ot"):
        send(harness, "ann", "ot", "x")


def test_an_ended_session_gives_its_name_to_its_agent(harness: LockHarness) -> None:
    """MSG-10: an id that has ended is gone, unless an agent has the same name."""
    enter(harness, "otto", "otto")
    harness.leave("otto")
    with pytest.raises(Gone):
        send(harness, "ann", "otto", "x")
    enter(harness, "s-9", "otto")
    assert list(send(harness, "ann", "otto", "x").recipients) == ["s-9"]


def test_nobody_is_named_with_the_nearest(crew: LockHarness) -> None:
    """CLI-19: a name that nobody has is not found, and the error says what was probably meant."""
    with pytest.raises(NotFound, match="there is no session or agent ottto") as caught:
        send(crew, "ann", "ottto", "x")
    assert caught.value.hint == "did you mean otto?"
    assert crew.events("message.sent") == []


def test_a_group_means_its_members(crew: LockHarness) -> None:
    """MSG-18: its members but the sender get it; the log has an event of its own for it."""
    crew.engine.call(JoinGroup(caller=crew.who("s-1"), name="ui", create=True))
    crew.engine.call(JoinGroup(caller=crew.who("s-3"), name="ui"))
    assert list(send(crew, "s-1", "group:ui", "first").recipients) == ["s-3"]
    sent = send(crew, "ann", "group:ui", "second")
    assert list(sent.recipients) == ["s-1", "s-3"]
    assert subjects(receive(crew, "s-3")) == ["first", "second"]
    assert [event["group"] for event in crew.events("message.sent_to_group")] == ["ui", "ui"]
    assert crew.events("message.sent") == []


def test_a_message_costs_what_it_did(harness: LockHarness) -> None:
    """PRF: to a full id it reads and writes three records, whoever else is there."""
    send(harness, "ann", "bob", "first")
    for number in range(20):
        enter(harness, f"s-{number}", "otto")
    assert harness.written_by(lambda: send(harness, "ann", "bob", "x")) == ["inbox", "mailbox", "mailbox"]
    assert harness.read_by(lambda: send(harness, "ann", "bob", "x")) <= 6
    one = harness.written_by(lambda: send(harness, "ann", "otto", "to twenty"))
    assert one == ["broadcast", "broadcasts", "mailbox"]
