"""Random histories of messages, compared with a naive model after every step."""

from random import Random
from typing import Any

import pytest

from coord.core.errors import Gone, NotFound
from coord.core.identity import Caller
from coord.core.lifecycle.commands import Register
from coord.core.locks.commands import BeginToolCall, EndToolCall, Outcome
from coord.core.messages.commands import (
    AckMessages,
    JoinGroup,
    LeaveGroup,
    PeekMessages,
    ReceiveMessages,
    SendMessage,
)
from coord.core.sessions.commands import GetSession
from tests.support.lock_harness import LockHarness
from tests.support.models.naive_messages import NaiveMessages

SESSIONS = ("s-1", "s-2", "s-3", "s-4", "otto")
AGENTS = ("otto", "rem", "")
ROLES = ("lead", "tester")
ADDRESSES = (*SESSIONS, *AGENTS, "role:lead", "role:tester", "group:ui", "group:api", "nobody")
KINDS = ("status", "request", "emergency")
ACTS = [
    "send",
    "send",
    "send",
    "receive",
    "drain",
    "ack",
    "ack",
    "join",
    "part",
    "leave",
    "tool",
    "tool",
    "pass_time",
]
STEPS = 150


class Walk:
    """One history: each step asks coord and the model the same."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.harness = LockHarness()
        self.model = NaiveMessages()
        self.met: set[str] = set()
        for name in SESSIONS:
            self._enter(name)

    def _call(self, command: Any) -> Any:
        return self.harness.engine.call(command)

    def _who(self) -> Caller:
        return self.harness.who(self.chance.choice(sorted(self.model.agents)))

    def _enter(self, name: str) -> None:
        agent, role = self.chance.choice(AGENTS), self.chance.choice(ROLES)
        self._call(Register(caller=Caller(name, agent=agent, role=role)))
        known = self.harness.engine.call(PeekMessages(self.harness.who(name)))
        assert known.messages == [], "who begins again has an empty inbox"
        self.model.enter(name, *self._described(name))

    def _described(self, name: str) -> tuple[str, str]:
        shown = self._call(GetSession(self.harness.who(name), name))
        return shown.agent, shown.role

    def step(self) -> None:
        act = self.chance.choice(ACTS)
        getattr(self, f"_{act}")()
        self.harness.pass_time(self.chance.choice((1, 7, 20_011)))
        for name in self.model.agents:
            self.harness.beat(name)
            shown = self._call(PeekMessages(self.harness.who(name))).messages
            assert [one.id for one in shown] == [one.id for one in self.model.waiting(name)]

    def _send(self) -> None:
        by, to = self._who(), self.chance.choice(ADDRESSES)
        kind, priority = self.chance.choice(KINDS), self.chance.choice((0, 0, 1, 5))
        expected = self.model.mean(to, by.session)
        ask = SendMessage(caller=by, to=to, kind=kind, subject="x", priority=priority)
        if not expected and to:
            self.met.add("nobody")
            with pytest.raises((NotFound, Gone)):
                self._call(ask)
            return
        sent = self._call(ask)
        assert sorted(sent.recipients) == expected
        self.met.add(f"to {min(len(expected), 2)}")
        self.model.send(sent.id, kind, "x", priority, expected, self.harness.now)

    def _receive(self) -> None:
        who = self._who()
        shown = self._call(ReceiveMessages(who)).messages
        expected = self.model.offer(who.session, self.harness.now)
        assert [one.id for one in shown] == [one.id for one in expected]

    def _drain(self) -> None:
        who = self._who()
        shown = self._call(ReceiveMessages(who, drain=True)).messages
        assert [one.id for one in shown] == [one.id for one in self.model.waiting(who.session)]
        self.model.inboxes[who.session].clear()

    def _ack(self) -> None:
        """Acknowledge one of the messages that the session has received, or of another session."""
        who = self._who()
        self._call(ReceiveMessages(who))
        self.model.offer(who.session, self.harness.now)
        names = sorted({letter.id for inbox in self.model.inboxes.values() for letter in inbox})
        if not names:
            return
        name = self.chance.choice(names)
        known = self.model.ack(who.session, name)
        try:
            assert self._call(AckMessages(who, (name,))).acked == [name]
            assert known
        except NotFound:
            assert not known

    def _join(self) -> None:
        who, name = self._who(), self.chance.choice(("ui", "api"))
        members = self.model.groups.setdefault(name, [])
        created = not self._group_exists(name)
        self._call(JoinGroup(caller=who, name=name, create=created))
        if who.session not in members:
            members.append(who.session)

    def _group_exists(self, name: str) -> bool:
        return bool(self.harness.store.load([f"group/{name}"])[f"group/{name}"].value)

    def _part(self) -> None:
        who, name = self._who(), self.chance.choice(("ui", "api"))
        members = self.model.groups.get(name, [])
        try:
            self._call(LeaveGroup(caller=who, name=name))
            assert who.session in members
            members.remove(who.session)
        except NotFound:
            assert who.session not in members

    def _leave(self) -> None:
        """A session ends, its messages return to their senders, and it may begin again."""
        if self.chance.random() < 0.7 or len(self.model.agents) < 3:
            return
        name = self._who().session
        self.harness.leave(name)
        self.model.leave(name)
        for other in self.model.agents:  # what came back is read at once, so that the model need not know
            self._call(ReceiveMessages(self.harness.who(other), drain=True))
            self.model.inboxes[other].clear()
        self._enter(name)

    def _call_tool(self, name: str) -> Any:
        return self._call(BeginToolCall(self.harness.who(name), "r", (), call="c", lease_ms=1_000))

    def _pass_time(self) -> None:
        self.harness.pass_time(70_013)

    def _tool(self) -> None:
        who = self._who()
        reply = self._call_tool(who.session)
        stopped = self.model.stopped(who.session)
        assert (reply.outcome is Outcome.STOPPED) == stopped
        self.met.add("stopped" if stopped else "passed")
        if not stopped:
            self._call(EndToolCall(who, "c"))


@pytest.mark.parametrize("seed", range(12))
def test_histories(seed: int) -> None:
    """MSG-3, MSG-5, MSG-18: recipients, order, acknowledgement and emergencies are those of the model."""
    walk = Walk(seed)
    for _ in range(STEPS):
        walk.step()
    assert walk.met >= {"to 1", "to 2", "nobody", "stopped", "passed"}
