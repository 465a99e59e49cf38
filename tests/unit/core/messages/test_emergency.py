"""An emergency stops the tool calls of its recipients until it is acknowledged."""

from typing import Any

import pytest

from coord.core.errors import LimitReached, Refused
from coord.core.identity import Caller
from coord.core.lifecycle.commands import Register
from coord.core.locks.commands import BeginToolCall, Outcome
from coord.core.messages.commands import AckMessages, SendMessage
from coord.core.sessions.liveness import STALE_MS
from tests.support.lock_harness import LockHarness
from tests.support.message_calls import LONG, receive, send, subjects

PERSON = Caller("ida@host:7-1", person=True)


def alarm(harness: LockHarness, to: str, subject: str = "stop", **more: Any) -> Any:
    message = SendMessage(caller=harness.who("ann"), to=to, kind="emergency", subject=subject, **more)
    return harness.engine.call(message)


def begin(harness: LockHarness, name: str, *, despite_emergency: bool = False) -> Any:
    command = BeginToolCall(
        harness.who(name),
        "r",
        (f"file:{name}.py",),
        call="c",
        lease_ms=60_000,
        despite_emergency=despite_emergency,
    )
    return harness.engine.call(command)


def test_it_stops_until_it_is_acknowledged(harness: LockHarness) -> None:
    """MSG-3: nothing is locked, a call that asks coord passes, and reading it is no acknowledgement."""
    sent = alarm(harness, "bob")
    stopped = begin(harness, "bob")
    assert (stopped.outcome, stopped.stopped) == (Outcome.STOPPED, "bob")
    assert harness.held() == set()
    assert subjects(receive(harness, "bob")) == ["stop"]
    assert begin(harness, "bob").outcome is Outcome.STOPPED
    assert begin(harness, "bob", despite_emergency=True).ok
    assert begin(harness, "ann").ok, "its sender goes on"
    harness.engine.call(AckMessages(harness.who("bob"), (sent.id,)))
    assert begin(harness, "bob").ok


def test_each_of_several_is_stopped_and_acknowledges(harness: LockHarness) -> None:
    """MSG-3, MSG-8: a broadcast emergency has one id; a second one keeps stopping."""
    harness.beat("eve")
    first = alarm(harness, "")
    second = alarm(harness, "bob", "again")
    assert set(first.recipients) == {"bob", "eve"}
    for name in ("bob", "eve"):
        assert begin(harness, name).outcome is Outcome.STOPPED
        harness.engine.call(AckMessages(harness.who(name), (first.id,)))
    assert begin(harness, "eve").ok
    assert begin(harness, "bob").outcome is Outcome.STOPPED
    harness.engine.call(AckMessages(harness.who("bob"), (second.id,)))
    assert begin(harness, "bob").ok


def test_sub_agents_stop_with_their_session(harness: LockHarness) -> None:
    """MSG-3: an emergency for a session stops what works for it, however deep."""
    harness.parents = {"child": "bob", "grandchild": "child"}
    harness.beat("child")
    harness.beat("grandchild")
    sent = alarm(harness, "bob")
    assert begin(harness, "grandchild").stopped == "bob"
    harness.engine.call(AckMessages(harness.who("bob"), (sent.id,)))
    assert begin(harness, "grandchild").ok


def test_an_expired_emergency_stops_nobody(harness: LockHarness) -> None:
    """MSG-3: after its time it comes back to its sender like any message."""
    alarm(harness, "bob", ttl_ms=5_000)
    harness.pass_time(5_000)
    harness.beat("ann")
    assert begin(harness, "bob").ok
    assert harness.told("ann", "undelivered") == ['[System] "stop": nobody read it in time']


def test_it_moves_to_a_successor(harness: LockHarness) -> None:
    """MSG-3: `/clear` does not get rid of it, and who comes back under an old id is free."""
    harness.parents = {"child": "bob"}
    harness.beat("child")
    alarm(harness, "bob")
    harness.pass_time(STALE_MS)
    harness.engine.call(Register(caller=harness.who("new"), replaces="bob"))
    assert begin(harness, "new").outcome is Outcome.STOPPED
    assert begin(harness, "bob").ok
    harness.leave("new")
    assert begin(harness, "new").ok


def test_a_person_acknowledges_for_another(harness: LockHarness) -> None:
    """MSG-3: a person may do so, no other agent; the log says who did."""
    sent = alarm(harness, "bob")
    for caller in (harness.who("ann"), Caller("ida@host:7-1", tool="claude")):
        with pytest.raises(Refused, match="only a person"):
            harness.engine.call(AckMessages(caller, (sent.id,), "bob"))
    harness.engine.call(AckMessages(PERSON, (sent.id,), "bob"))
    assert begin(harness, "bob").ok
    (event,) = harness.events("message.delivered")
    assert (event["session"], event["by"]) == ("bob", "ida@host:7-1")


def test_a_long_emergency_to_many_is_refused(harness: LockHarness) -> None:
    """The copies have to fit into one commit."""
    for number in range(200):
        harness.beat(f"s-{number}")
    with pytest.raises(LimitReached, match="too long for 201 sessions"):
        alarm(harness, "", body=LONG)
    assert len(alarm(harness, "", body="short").recipients) == 201


def test_a_call_without_an_emergency_costs_what_it_did(harness: LockHarness) -> None:
    """PRF: the session says whether there is one, and a hook reads that record anyway."""
    begin(harness, "bob")
    send(harness, "ann", "bob", "no emergency")
    reads = harness.read_by(lambda: begin(harness, "bob"))
    assert reads == harness.read_by(lambda: begin(harness, "bob", despite_emergency=True))
