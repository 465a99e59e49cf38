"""Random histories of questions, compared with a naive model after every step."""

import os
from random import Random

import pytest

from coord.core.errors import CoordError, Refused
from coord.core.identity import Caller
from coord.core.locks.commands import BeginToolCall, EndToolCall
from coord.core.messages.commands import ReceiveMessages
from coord.core.questions.commands import (
    AnswerQuestion,
    AskQuestion,
    GetQuestion,
    ListQuestions,
    WithdrawQuestion,
)
from coord.core.questions.schema import QuestionKind
from tests.support.lock_harness import LockHarness
from tests.support.models.naive_questions import NaiveQuestions

PERSON = Caller("ida@host:7-1", user="ida", person=True)
SESSIONS = ("ann", "bob", "eve")
CALLS = ("c1", "c2")
ACTS = (
    "ask",
    "ask",
    "ask",
    "ask",
    "answer",
    "answer",
    "withdraw",
    "withdraw",
    "begin",
    "end",
    "stop",
    "leave",
    "pass_time",
)
STEPS = 150


class Walk:
    """One history: each step asks coord and the model the same."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.harness = LockHarness()
        self.model = NaiveQuestions()
        self.answers: dict[str, list[str]] = {name: [] for name in SESSIONS}
        self.met: set[str] = set()
        for name in SESSIONS:
            self.harness.beat(name)

    def step(self) -> None:
        act = self.chance.choice(ACTS)
        getattr(self, f"_{act}")(self.chance.choice(SESSIONS))
        self.harness.pass_time(self.chance.choice((1, 500, 4_000)))
        self.model.pass_to(self.harness.now)
        self._compare()

    def _compare(self) -> None:
        call = self.harness.engine.call
        listed = call(ListQuestions(caller=PERSON)).questions
        assert [each.id for each in listed] == [each.name for each in self.model.open()]
        for each in self.model.asked[-5:]:
            assert call(GetQuestion(caller=PERSON, id=each.name)).state == each.state
        for name, expected in self.answers.items():
            received = call(ReceiveMessages(self.harness.who(name), drain=True)).messages
            assert [each.blob["question"] for each in received] == expected
            expected.clear()

    def _ask(self, session: str) -> None:
        kind = self.chance.choice(list(QuestionKind))
        text, call = self.chance.choice("xyz"), self.chance.choice(CALLS)
        ttl, wait = self.chance.choice((3_000, 90_000)), self.chance.choice((0, 20_000))
        now = self.harness.now
        asked = self.harness.engine.call(
            AskQuestion(
                caller=self.harness.who(session), text=text, kind=kind, call=call, ttl_ms=ttl, wait_ms=wait
            )
        )
        heard = now + wait if wait else 0
        assert asked.id == self.model.ask(session, kind.value, text, call, now + ttl, heard)

    def _some(self) -> str:
        newest = len(self.model.asked)
        return f"q{self.chance.randint(max(1, newest - 3), newest + 1)}"

    def _answer(self, session: str) -> None:
        name = self._some()
        agent = self.harness.who(session)
        with pytest.raises(CoordError):
            self.harness.engine.call(AnswerQuestion(caller=agent, id=name, answer="mine"))
        try:
            reply = self.harness.engine.call(AnswerQuestion(caller=PERSON, id=name, answer="yes"))
        except CoordError:
            assert not self.model.answer(name, self.harness.now)
            self.met.add("late")
            return
        assert self.model.answer(name, self.harness.now)
        if reply.question.kind is not QuestionKind.PERMISSION:
            self.answers[reply.question.session_id].append(name)
        self.met.add(f"answered {reply.question.kind}")

    def _withdraw(self, session: str) -> None:
        name = self._some()
        mine = [each for each in self.model.open(session) if each.name == name]
        try:
            self.harness.engine.call(WithdrawQuestion(caller=self.harness.who(session), id=name))
        except CoordError:
            assert not mine
            return
        (found,) = mine
        found.state = "withdrawn"
        self.met.add("withdrawn")

    def _begin(self, session: str) -> None:
        call = self.chance.choice(CALLS)
        self.harness.engine.call(
            BeginToolCall(self.harness.who(session), repository="r", resources=(), call=call, lease_ms=60_000)
        )
        self.model.go_on(session, call, ended=False)

    def _end(self, session: str) -> None:
        call = self.chance.choice(CALLS)
        self.harness.engine.call(EndToolCall(self.harness.who(session), call))
        self.model.go_on(session, call, ended=True)

    def _stop(self, session: str) -> None:
        self.harness.engine.call(EndToolCall(self.harness.who(session)))
        self.model.go_on(session, "", ended=True)

    def _leave(self, session: str) -> None:
        self.harness.leave(session)
        self.model.end(session)
        self.harness.beat(session)
        self.met.add("left")

    def _pass_time(self, _session: str) -> None:
        self.harness.pass_time(self.chance.choice((2_000, 9_000)))
        self.model.pass_to(self.harness.now)


SEEDS = 30 if os.environ.get("COORD_SOAK") else 6
EVERYTHING = {"late", "withdrawn", "left", *(f"answered {kind}" for kind in QuestionKind)}


def test_any_history() -> None:
    """Every question is open, answered once or withdrawn, exactly as the model has it."""
    met = set[str]()
    for seed in range(SEEDS):
        walk = Walk(seed)
        for _ in range(STEPS):
            walk.step()
        met |= walk.met
    assert met == EVERYTHING, "a walk that meets less proves less"


def test_the_model_refuses_too() -> None:
    """A model that answers everything would prove nothing."""
    model = NaiveQuestions()
    name = model.ask("ann", "permission", "x", "c1", 100, 10)
    assert not model.answer(name, 10)
    assert model.answer(name, 9)
    assert not model.answer(name, 9)
    assert issubclass(Refused, CoordError)
