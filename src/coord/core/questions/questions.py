"""Ask, list and withdraw questions to people.

An open question ends once: with an answer, with the end of its session, when its agent goes on without it,
or at its deadline. Every rule reads a question as of now, so a late answer is refused, swept or not.
"""

import re
from collections.abc import Iterator

import msgspec

from coord.core import keys
from coord.core.errors import Invalid, LimitReached, NotFound, Refused
from coord.core.identity import Caller
from coord.core.ids import short_repr
from coord.core.messages.quoting import quote, quote_name
from coord.core.messages.send import count_sending
from coord.core.questions.commands import (
    AskQuestion,
    GetQuestion,
    ListQuestions,
    QuestionInfo,
    QuestionList,
    WithdrawQuestion,
)
from coord.core.questions.schema import (
    Question,
    QuestionAsked,
    QuestionKind,
    Questions,
    QuestionState,
    QuestionWithdrawn,
)
from coord.core.sessions.identify import count_questions, ensure_session, is_person, name_of_person
from coord.core.sessions.schema import Session
from coord.core.tokens.permission import limits_of_caller
from coord.core.transaction import Transaction

TEXT_CHARS_MAX = 2000
OPTIONS_MAX, OPTION_CHARS_MAX = 10, 100
OPEN_MAX = 20
"""How many questions of one session may be open."""
TTL_MS = 7 * 24 * 3600 * 1000
TTL_MS_MAX = 30 * 24 * 3600 * 1000
KEPT_MS = 30 * 24 * 3600 * 1000
KEPT_MAX = 1000
"""How long closed questions are kept, and how many."""
LISTED_MAX = 1000
OF_A_CALL = (QuestionKind.PERMISSION, QuestionKind.ATTENTION)
"""Kinds that come from a tool which has stopped: they end when it goes on."""
_ID = re.compile(r"q?([1-9][0-9]{0,7})")


def number_of(name: str) -> int:
    """Return the number in the id of a question, `q17` or `17`."""
    found = _ID.fullmatch(name)
    if found is None:
        raise NotFound(
            f"there is no question {short_repr(name)}", hint="coord decisions lists them: q1, q2, …"
        )
    return int(found[1])


def ask_question(tx: Transaction, command: AskQuestion, now: int) -> QuestionInfo:
    """Ask a person something; return the question, or the open one that is the same."""
    _check(command)
    session = ensure_session(tx, command.caller, now)
    waiting = [each for each in questions_of(tx, session) if is_open(each, now)]
    heard_until_ms = now + command.wait_ms if command.wait_ms else 0
    same = next((each for each in waiting if _asks_the_same(each, command)), None)
    if same is not None:
        if heard_until_ms > same.heard_until_ms:
            same = msgspec.structs.replace(same, heard_until_ms=heard_until_ms)
            tx.put(keys.question(number_of(same.id)), same, keys.due(same.expires_ms))
        return info(same, now)
    if len(waiting) >= OPEN_MAX:
        raise LimitReached(
            f"{len(waiting)} questions of {session.session_id} are open",
            hint="wait for an answer, or withdraw one: coord decisions lists them",
        )
    count_sending(tx, session.session_id, now)
    question = Question(
        id=f"q{_next_number(tx)}",
        session=session.session_id,
        agent=session.agent,
        project=session.project,
        kind=command.kind,
        text=command.text,
        options=command.options,
        call=command.call,
        token=session.token,
        asked_ms=now,
        expires_ms=now + (command.ttl_ms or TTL_MS),
        heard_until_ms=heard_until_ms,
    )
    _put_new(tx, question)
    return info(question, now)


def _put_new(tx: Transaction, question: Question) -> None:
    number = number_of(question.id)
    tx.put(keys.question(number), question, keys.due(question.expires_ms))
    tx.put_marker(keys.asking(question.session, number))
    count_questions(tx, question.session, 1)
    name, session, agent = question.id, question.session, question.agent
    kind, text, options = question.kind, question.text, question.options
    tx.emit(QuestionAsked(name, session, agent, kind, text, options, question.expires_ms, question.project))


def _check(command: AskQuestion) -> None:
    """Refuse a question that nobody could read or answer."""
    text, options = command.text, command.options
    if not text.strip() or len(text) > TEXT_CHARS_MAX:
        raise Invalid(
            f"the question has {len(text)} characters", hint=f"write 1 to {TEXT_CHARS_MAX}, and link the rest"
        )
    if len(options) > OPTIONS_MAX or len({each.casefold() for each in options}) < len(options):
        raise Invalid(
            f"the question has {len(options)} options", hint=f"give at most {OPTIONS_MAX} different ones"
        )
    for each in options:
        if not each.strip() or len(each) > OPTION_CHARS_MAX or not each.isprintable():
            raise Invalid(
                f"{short_repr(each)} is not an option",
                hint=f"use one line of 1 to {OPTION_CHARS_MAX} printable characters",
            )
    if not 0 <= command.ttl_ms <= TTL_MS_MAX or not 0 <= command.wait_ms <= TTL_MS_MAX:
        raise Invalid("the question would be open for too long", hint="let it expire within 30 days")


def _asks_the_same(question: Question, command: AskQuestion) -> bool:
    return (question.kind, question.text, question.options, question.call) == (
        command.kind,
        command.text,
        command.options,
        command.call,
    )


def _next_number(tx: Transaction) -> int:
    """Return the number of a new question; the oldest closed one is forgotten for it."""
    head = tx.get(keys.QUESTIONS, Questions) or Questions()
    number = head.newest + 1
    tx.put(keys.QUESTIONS, msgspec.structs.replace(head, newest=number))
    old = keys.question(number - KEPT_MAX) if number > KEPT_MAX else ""
    found = tx.get(old, Question) if old else None
    if found is not None and found.state is not QuestionState.OPEN:
        tx.delete(old)
    return number


def is_open(question: Question, now: int) -> bool:
    """Whether a question waits for an answer now."""
    return question.state is QuestionState.OPEN and now < question.expires_ms


def questions_of(tx: Transaction, session: Session) -> list[Question]:
    """Return the questions of a session that are not closed, oldest first."""
    if not session.questions:
        return []
    return list(_unclosed(tx, keys.asking_prefix(session.session_id)))


def _unclosed(tx: Transaction, prefix: str) -> Iterator[Question]:
    for page in tx.pages(prefix):
        names = [keys.question(int(keys.parts(entry.key)[2])) for entry in page]
        tx.prefetch(*names)
        for name in names:
            question = tx.get(name, Question)
            if question is not None:
                yield question


def open_questions(tx: Transaction, now: int, project: str = "") -> list[Question]:
    """Return the open questions of a project, or of all, oldest first.

    A session that was terminated has none, although the sweep has yet to withdraw them.
    """
    found = [
        each
        for each in _unclosed(tx, keys.ASKING_PREFIX)
        if is_open(each, now) and project in ("", each.project)
    ]
    tx.prefetch(*(keys.session(each.session) for each in found))
    alive = [each for each in found if not _has_ended(tx.get(keys.session(each.session), Session))]
    return sorted(alive, key=lambda each: (each.asked_ms, number_of(each.id)))


def _has_ended(session: Session | None) -> bool:
    return session is None or session.ended_ms > 0 or bool(session.terminated_by)


def find_question(tx: Transaction, name: str) -> Question:
    """Return a question by its id."""
    question = tx.get(keys.question(number_of(name)), Question)
    if question is None:
        raise NotFound(f"there is no question {name}", hint="coord decisions --all lists those that are kept")
    return question


def check_open(tx: Transaction, question: Question, now: int) -> None:
    """Refuse a question that was answered, withdrawn or left behind."""
    hint = "nothing was changed; coord decisions lists the open ones"
    if question.state is QuestionState.ANSWERED:
        raise Refused(f"{question.id} was answered by {quote_name(question.answered_by)} already", hint=hint)
    if question.state is QuestionState.WITHDRAWN:
        raise Refused(f"{question.id} was withdrawn: {quote(question.end_reason)}", hint=hint)
    if not is_open(question, now):
        raise Refused(f"{question.id} has expired", hint=hint)
    if _has_ended(tx.get(keys.session(question.session), Session)):
        raise Refused(f"session {question.session}, which asked {question.id}, has ended", hint=hint)


def close(tx: Transaction, question: Question, now: int) -> None:
    """Write a question that was answered or withdrawn, and take it from those of its session."""
    number = number_of(question.id)
    closed = msgspec.structs.replace(question, closed_ms=now)
    tx.put(keys.question(number), closed, keys.due(now + KEPT_MS))
    tx.delete(keys.asking(question.session, number))
    count_questions(tx, question.session, -1)


def withdraw(tx: Transaction, question: Question, why: str, now: int, by: str = "") -> Question:
    """End an open question without an answer."""
    ended = msgspec.structs.replace(question, state=QuestionState.WITHDRAWN, end_reason=why, withdrawn_by=by)
    close(tx, ended, now)
    who = (question.id, question.session, question.agent)
    tx.emit(QuestionWithdrawn(*who, question.kind, why, by, question.project))
    return ended


def withdraw_question(tx: Transaction, command: WithdrawQuestion, now: int) -> QuestionInfo:
    """Withdraw a question, as the session that asked it or as a person."""
    own = ensure_session(tx, command.caller, now).session_id
    question = find_question(tx, command.id)
    if question.session != own and not is_person(command.caller, own):
        raise Refused(f"only {question.session} or a person withdraws {question.id}", hint="leave it to them")
    by = own if question.session == own else name_of_person(command.caller)
    check_open(tx, question, now)
    why = command.reason or f"{by} withdrew it"
    return info(withdraw(tx, question, why, now, by), now)


def end_questions(tx: Transaction, session: Session, successor: str, now: int) -> None:
    """End the questions of a session that ends; its successor takes over what the agent itself asked."""
    for question in questions_of(tx, session):
        if not successor or question.kind in OF_A_CALL:
            withdraw(tx, question, f"session {session.session_id} has ended", now)
            continue
        number = number_of(question.id)
        tx.put(
            keys.question(number),
            msgspec.structs.replace(question, session=successor),
            keys.due(question.expires_ms),
        )
        tx.delete(keys.asking(session.session_id, number))
        tx.put_marker(keys.asking(successor, number))
        count_questions(tx, successor, 1)


def tool_goes_on(
    tx: Transaction, session: Session, now: int, call: str = "", *, all_calls: bool = False
) -> None:
    """Withdraw the questions of a tool that goes on: for attention, and those about an ended call.

    Its user has answered in the terminal, or has given it something else to do.
    """
    for question in questions_of(tx, session):
        over = all_calls or (call and call == question.call)
        if question.kind is QuestionKind.ATTENTION or (question.kind is QuestionKind.PERMISSION and over):
            withdraw(tx, question, "its tool went on", now)


def question_deadline(tx: Transaction, key: str, now: int) -> None:
    """Withdraw a question that has expired; delete one that was closed long ago."""
    question = tx.get(key, Question)
    if question is None:
        return
    if question.state is QuestionState.OPEN:
        withdraw(tx, question, "it expired", now)
    else:
        tx.delete(key)


def get_question(tx: Transaction, command: GetQuestion, now: int) -> QuestionInfo:
    """Return a question, if the token of the caller covers its project."""
    question = find_question(tx, command.id)
    check_project(tx, command.caller, question, now)
    return info(question, now)


def check_project(tx: Transaction, caller: Caller, question: Question, now: int) -> None:
    """Refuse a token of another project, as if the question did not exist."""
    limits = limits_of_caller(tx, caller, now)
    if limits is not None and limits.project not in ("", question.project):
        raise NotFound(
            f"there is no question {question.id} in project {limits.project}",
            hint="use a token without that limit",
        )


def list_questions(tx: Transaction, command: ListQuestions, now: int) -> QuestionList:
    """Return the open questions, oldest first, and with `closed` those that were closed, newest first."""
    limit = min(command.limit, LISTED_MAX)
    found = open_questions(tx, now, command.project)
    if command.closed:
        waiting = {each.id for each in found}
        others = [
            question
            for page in tx.pages(keys.QUESTION_PREFIX)
            for entry in page
            if (question := tx.get(entry.key, Question)) is not None
            and question.id not in waiting
            and command.project in ("", question.project)
        ]
        found += reversed(others)
    return QuestionList(now, [info(each, now) for each in found[:limit]], more=len(found) > limit)


def info(question: Question, now: int) -> QuestionInfo:
    """Return a question as others see it now."""
    state, end_reason = question.state, question.end_reason
    if state is QuestionState.OPEN and not is_open(question, now):
        state, end_reason = QuestionState.WITHDRAWN, "it expired"
    return QuestionInfo(
        question.id,
        question.session,
        question.agent,
        question.project,
        question.kind,
        question.text,
        list(question.options),
        state,
        question.asked_ms,
        question.expires_ms,
        question.heard_until_ms,
        question.closed_ms,
        question.answer,
        question.reason,
        question.answered_by,
        end_reason,
    )
