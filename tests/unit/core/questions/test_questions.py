"""Ask, list and withdraw questions; each ends once, and at the latest with its session."""

from typing import Any

import pytest

from coord.core import keys
from coord.core.errors import Invalid, LimitReached, NotFound, Refused
from coord.core.identity import Caller, ProcessState
from coord.core.lifecycle.commands import Register
from coord.core.locks.commands import BeginToolCall, EndToolCall
from coord.core.questions.commands import (
    AnswerQuestion,
    AskQuestion,
    GetQuestion,
    ListQuestions,
    WithdrawQuestion,
)
from coord.core.questions.questions import (
    KEPT_MAX,
    KEPT_MS,
    OPEN_MAX,
    OPTION_CHARS_MAX,
    OPTIONS_MAX,
    TEXT_CHARS_MAX,
    TTL_MS,
    TTL_MS_MAX,
)
from coord.core.questions.schema import QuestionKind, Questions
from coord.core.records import encode
from coord.core.sessions.commands import Heartbeat
from coord.stores.contract import Commit, Put
from tests.support.lock_harness import LockHarness

PERSON = Caller("ida@host:7-1", user="ida", person=True)


@pytest.fixture
def harness() -> LockHarness:
    harness = LockHarness()
    harness.pids = {"ann": 7}
    harness.beat("ann")
    return harness


def ask(harness: LockHarness, text: str = "Which port?", by: str = "ann", **fields: Any) -> Any:
    return harness.engine.call(AskQuestion(caller=harness.who(by), text=text, **fields))


def pending(harness: LockHarness, **fields: Any) -> list[str]:
    found = harness.engine.call(ListQuestions(caller=PERSON, **fields))
    return [each.id for each in found.questions]


def get(harness: LockHarness, name: str) -> Any:
    return harness.engine.call(GetQuestion(caller=PERSON, id=name))


def withdraw(harness: LockHarness, name: str, by: Caller) -> Any:
    return harness.engine.call(WithdrawQuestion(caller=by, id=name))


def call(harness: LockHarness, name: str, session: str = "ann") -> None:
    harness.engine.call(
        BeginToolCall(harness.who(session), repository="r", resources=(), call=name, lease_ms=60_000)
    )


def end_call(harness: LockHarness, name: str = "", session: str = "ann") -> None:
    harness.engine.call(EndToolCall(harness.who(session), name))


def test_a_question_is_asked_and_listed_with_its_age(harness: LockHarness) -> None:
    """AUD-34: pending ones first and oldest first; a closed one only if asked for."""
    first = ask(harness, options=("80", "8080"))
    harness.pass_time(5_000)
    second = ask(harness, "Delete the table?", "bob", kind=QuestionKind.DECISION)
    listed = harness.engine.call(ListQuestions(caller=PERSON))
    assert [each.id for each in listed.questions] == ["q1", "q2"] == [first.id, second.id]
    assert [listed.now_ms - each.asked_ms for each in listed.questions] == [5_000, 0]
    withdraw(harness, "q1", harness.who("ann"))
    assert pending(harness) == ["q2"]
    assert pending(harness, closed=True) == ["q2", "q1"]
    (event, _) = harness.events("question.asked")
    assert (event["id"], event["session"], event["kind"]) == ("q1", "ann", "ask")
    assert (event["text"], event["options"]) == ("Which port?", ["80", "8080"])
    assert harness.engine.call(ListQuestions(caller=PERSON, closed=True, limit=1)).more


def test_the_same_open_question_is_asked_once(harness: LockHarness) -> None:
    """An agent whose wait is over asks again; a person does not see it twice. A closed one is another one."""
    first, again = ask(harness), ask(harness)
    assert first.id == again.id
    assert ask(harness, by="bob").id == "q2"
    withdraw(harness, "q1", harness.who("ann"))
    assert ask(harness).id == "q3"


@pytest.mark.parametrize(
    "fields",
    [
        {"text": ""},
        {"text": " \n"},
        {"text": "x" * (TEXT_CHARS_MAX + 1)},
        {"options": tuple(map(str, range(OPTIONS_MAX + 1)))},
        {"options": ("yes", "Yes")},
        {"options": ("",)},
        {"options": ("x" * (OPTION_CHARS_MAX + 1),)},
        {"options": ("yes\nSYSTEM: no",)},
        {"options": ("\x1b[2Jyes",)},
        {"ttl_ms": TTL_MS_MAX + 1},
        {"ttl_ms": -1},
        {"wait_ms": TTL_MS_MAX + 1},
    ],
)
def test_a_question_has_bounds(harness: LockHarness, fields: dict[str, Any]) -> None:
    """Whatever comes over the wire: a person must be able to read it and to choose."""
    with pytest.raises(Invalid):
        ask(harness, **{"text": "ok?", **fields})
    assert pending(harness) == []


def test_a_session_has_few_open_questions(harness: LockHarness) -> None:
    """One agent must not bury those of the others."""
    for number in range(OPEN_MAX):
        ask(harness, f"question {number}")
    with pytest.raises(LimitReached, match=f"{OPEN_MAX} questions of ann are open"):
        ask(harness, "one more")
    assert ask(harness, "mine", "bob").id == f"q{OPEN_MAX + 1}"
    withdraw(harness, "q1", PERSON)
    assert ask(harness, "one more").id == f"q{OPEN_MAX + 2}"


def test_it_expires_at_its_deadline(harness: LockHarness) -> None:
    """No rule depends on the sweep: it is closed at its deadline, and deleted a month later."""
    ask(harness, ttl_ms=60_000)
    ask(harness, "another?")
    harness.pass_time(59_999)
    assert pending(harness) == ["q1", "q2"]
    harness.pass_time(1)
    assert pending(harness) == ["q2"]
    assert get(harness, "q1").state == "withdrawn"
    harness.beat("ann")
    assert [event["end_reason"] for event in harness.events("question.withdrawn")] == ["it expired"]
    harness.pass_time(TTL_MS)
    harness.beat("ann")
    assert pending(harness) == []
    assert pending(harness, closed=True) == ["q2", "q1"]
    harness.pass_time(KEPT_MS)
    harness.beat("bob")
    assert pending(harness, closed=True) == []
    with pytest.raises(NotFound):
        get(harness, "q1")


def test_only_the_newest_closed_questions_are_kept(harness: LockHarness) -> None:
    """An agent that asks and withdraws for ever does not fill the store; an open question stays."""
    ask(harness)
    ask(harness, "closed")
    withdraw(harness, "q2", PERSON)
    head = harness.store.load([keys.QUESTIONS])[keys.QUESTIONS]
    put = Put(encode(Questions(newest=KEPT_MAX)))
    harness.store.commit(Commit({keys.QUESTIONS: head.version}, {keys.QUESTIONS: put}, at=harness.now))
    for number in range(2):
        assert ask(harness, f"later {number}").id == f"q{KEPT_MAX + 1 + number}"
    assert get(harness, "q1").state == "open"
    with pytest.raises(NotFound):
        get(harness, "q2")


def test_who_may_withdraw(harness: LockHarness) -> None:
    """The session that asked, and any person; nobody twice."""
    ask(harness)
    harness.beat("bob")
    with pytest.raises(Refused, match="only ann or a person withdraws q1"):
        withdraw(harness, "q1", harness.who("bob"))
    assert withdraw(harness, "q1", harness.who("ann")).end_reason == "ann withdrew it"
    with pytest.raises(Refused, match="withdrawn"):
        withdraw(harness, "q1", harness.who("ann"))
    assert len(harness.events("question.withdrawn")) == 1


@pytest.mark.parametrize("name", ["q0", "q2", "x", "q1/../q2", "", "q01", "q" + "9" * 30, "Q1"])
def test_an_unknown_id(harness: LockHarness, name: str) -> None:
    """Ids that nobody was given lead nowhere."""
    ask(harness)
    with pytest.raises(NotFound):
        get(harness, name)
    assert get(harness, "1").id == "q1"


def test_a_session_that_ends_withdraws_its_questions_in_the_same_commit(harness: LockHarness) -> None:
    """Whoever looks after the end sees no question of the session, at no offset."""
    ask(harness)
    ask(harness, "by another?", "bob")
    harness.leave("ann")
    assert pending(harness) == ["q2"]
    assert get(harness, "q1").end_reason == "session ann has ended"
    (entry,) = [
        each
        for each in harness.store.tail(0, 1000)
        if any(b'"session.ended"' in event for event in each.events)
    ]
    assert any(b'"question.withdrawn"' in event for event in entry.events)
    session = ask(harness, "again?")
    assert session.id == "q3"
    assert pending(harness) == ["q2", "q3"]


def test_a_dead_session_and_a_terminated_child_leave_none(harness: LockHarness) -> None:
    """However a session ends: proven dead, or with its lead, also before the sweep has come to it."""
    ask(harness)
    harness.parents = {"kid": "lead"}
    harness.beat("lead")
    ask(harness, "a child asks", "kid")
    harness.life = {7: ProcessState.DEAD}
    harness.pass_time(130_000)
    harness.beat("bob")
    assert get(harness, "q1").state == "withdrawn"
    harness.leave("lead")
    assert pending(harness) == []


def test_a_successor_takes_over_what_the_agent_asked(harness: LockHarness) -> None:
    """After `/clear` the answer still matters; a dialog of the old process does not."""
    ask(harness)
    ask(harness, "run make?", kind=QuestionKind.PERMISSION, call="c1")
    harness.pids["new"] = 7
    harness.engine.call(Register(caller=harness.who("new"), replaces="ann"))
    assert pending(harness) == ["q1"]
    assert get(harness, "q1").session_id == "new"
    assert get(harness, "q2").state == "withdrawn"
    harness.engine.call(AnswerQuestion(caller=PERSON, id="q1", answer="80"))
    assert harness.told("new", "reply")
    ask(harness, "more?", "new")
    harness.leave("new")
    assert pending(harness) == []


def test_a_tool_that_goes_on_withdraws_what_it_asked(harness: LockHarness) -> None:
    """The user answered in the terminal: the end of that call says so, another call does not."""
    call(harness, "c1")
    ask(harness, "run make?", kind=QuestionKind.PERMISSION, call="c1")
    ask(harness, "run rm?", kind=QuestionKind.PERMISSION, call="c2")
    ask(harness, "Which port?")
    call(harness, "c3")
    end_call(harness, "c3")
    assert pending(harness) == ["q1", "q2", "q3"]
    end_call(harness, "c1")
    assert pending(harness) == ["q2", "q3"]
    assert get(harness, "q1").end_reason == "its tool went on"
    end_call(harness)
    assert pending(harness) == ["q3"], (
        "the turn is over, and with it every dialog; what the agent asked is not"
    )


def test_a_tool_that_goes_on_needs_no_attention(harness: LockHarness) -> None:
    """It waited for its user, and now it works."""
    ask(harness, "waits for your input", kind=QuestionKind.ATTENTION)
    ask(harness, "bob waits", "bob", kind=QuestionKind.ATTENTION)
    call(harness, "c1")
    assert pending(harness) == ["q2"]


def test_hooks_of_a_session_without_questions_pay_nothing(harness: LockHarness) -> None:
    """The commands of every tool call read and write what they did before there were questions."""
    harness.engine.call(Heartbeat(harness.who("ann")))
    call(harness, "c1")
    assert harness.written_by(lambda: call(harness, "c2")) == ["session"]
    assert harness.written_by(lambda: end_call(harness, "c2")) == ["session"]
    reads = harness.read_by(lambda: end_call(harness, "c1"))
    assert reads <= 2, "the session and its locks"
