"""Answer a question, and whether a caller may.

| caller | may answer |
|---|---|
| a person in a terminal | every question |
| a request with a token of role operate or admin, without a limit to a session | questions of others |
| an agent | none: neither its own nor those of other agents |

A token with which a question was asked does not answer it, unless it is an admin's. A process of the same
user can imitate a person, or read a token from the disk: nothing here prevents that.
"""

import msgspec

from coord.core import keys
from coord.core.errors import Invalid, Refused
from coord.core.identity import Caller, ProcessState
from coord.core.messages.inbox import notify
from coord.core.messages.quoting import quote, quote_name
from coord.core.questions.commands import AnswerQuestion, AnswerReply
from coord.core.questions.questions import check_open, check_project, close, find_question, info
from coord.core.questions.schema import Question, QuestionAnswered, QuestionKind, QuestionState
from coord.core.sessions.identify import find_session, is_person, name_of_person
from coord.core.sessions.liveness import evidence_of
from coord.core.sessions.schema import Session
from coord.core.tokens.permission import limits_of_caller, successors
from coord.core.tokens.schema import Role, Token
from coord.core.transaction import Transaction

ANSWER_CHARS_MAX = 500
QUOTED_CHARS_MAX = 120


def answer_question(tx: Transaction, command: AnswerQuestion, now: int) -> AnswerReply:
    """Answer an open question once; the session that asked finds the answer in its inbox."""
    question = find_question(tx, command.id)
    check_project(tx, command.caller, question, now)
    by = _who_answers(tx, command.caller, question, now)
    check_open(tx, question, now)
    _check_heard(tx, question, now)
    answer = _chosen(question, command)
    answered = msgspec.structs.replace(
        question,
        state=QuestionState.ANSWERED,
        answer=answer,
        reason=command.reason,
        answered_by=by,
    )
    close(tx, answered, now)
    tx.emit(
        QuestionAnswered(
            question.id,
            question.session,
            question.agent,
            question.kind,
            answer,
            by,
            command.reason,
            "" if command.caller.token else command.caller.session,
            question.project,
        )
    )
    answered = msgspec.structs.replace(answered, closed_ms=now)
    return AnswerReply(info(answered, now), _send_answer(tx, answered, now))


def _who_answers(tx: Transaction, caller: Caller, question: Question, now: int) -> str:
    """Return the name of whoever answers; refuse agents, and the token that asked."""
    by, limits = find_person(tx, caller, "answers questions", "coord decide", now)
    if limits is None:
        return by
    asked_with = (question.token, *successors(tx, question.token)) if question.token else ()
    if limits.id in asked_with and not limits.role.allows(Role.ADMIN):
        raise Refused(
            f"{question.id} was asked with the same token, {limits.id}", hint="answer it with another token"
        )
    return by


def find_person(
    tx: Transaction, caller: Caller, does: str, command: str, now: int
) -> tuple[str, Token | None]:
    """Return the name of a person, and the token with which the request came; refuse agents."""
    limits = limits_of_caller(tx, caller, now)
    if limits is None:
        own = find_session(tx, caller, now)
        if not is_person(caller, own):
            raise Refused(
                f"{own} is an agent; only a person {does}",
                hint=f"a person runs {command} in another terminal",
            )
        return name_of_person(caller), None
    if limits.session:
        raise Refused(
            f"token {limits.id} is limited to session {limits.session}; only a person {does}",
            hint="use a token without that limit",
        )
    if not limits.role.allows(Role.OPERATE):
        raise Refused(f"token {limits.id} has role {limits.role}", hint="use a token with role operate")
    return caller.user or limits.user or limits.label or limits.id, limits


def _check_heard(tx: Transaction, question: Question, now: int) -> None:
    """Refuse an answer that would reach nobody."""
    if question.kind is QuestionKind.PERMISSION and now >= question.heard_until_ms:
        raise Refused(
            f"no hook waits for {question.id}: {question.agent or question.session} asks in its own terminal",
            hint="answer it there; with hooks.permission_wait in coord.toml hooks wait for coord decide",
        )
    session = tx.get(keys.session(question.session), Session)
    evidence = None if session is None else evidence_of(tx, session)
    if evidence is not None and evidence.life is ProcessState.DEAD:
        raise Refused(
            f"session {question.session}, which asked {question.id}, is dead",
            hint="nothing was changed; coord peers shows the sessions",
        )


def _chosen(question: Question, command: AnswerQuestion) -> str:
    """Return the answer, spelled as its option."""
    answer = command.answer
    if not answer.strip() or len(answer) > ANSWER_CHARS_MAX or not answer.isprintable():
        raise Invalid("the answer is not one line of text", hint=f"use 1 to {ANSWER_CHARS_MAX} characters")
    if len(command.reason) > ANSWER_CHARS_MAX or not command.reason.isprintable():
        raise Invalid("the reason is not one line of text", hint=f"use at most {ANSWER_CHARS_MAX} characters")
    by_spelling = {each.casefold(): each for each in question.options}
    chosen = by_spelling.get(answer.casefold())
    if chosen is not None:
        return chosen
    if question.options and (not command.other or question.kind is QuestionKind.PERMISSION):
        other = "" if question.kind is QuestionKind.PERMISSION else "; --other takes another answer"
        options = ", ".join(map(quote_name, question.options))
        raise Invalid(f"{quote(answer)} is none of the options of {question.id}", hint=f"{options}{other}")
    return answer


def _send_answer(tx: Transaction, question: Question, now: int) -> bool:
    """Put the answer into the inbox of the session that asked; a hook waits for that to a permission."""
    if question.kind is QuestionKind.PERMISSION:
        return True
    reason = f" because {quote(question.reason)}" if question.reason else ""
    subject = (
        f"{question.id} is answered: {quote(question.answer)}{reason}, "
        f"by {quote_name(question.answered_by)}; it was {quote(question.text, QUOTED_CHARS_MAX)}"
    )
    about = {"question": question.id, "answer": question.answer, "reason": question.reason}
    return notify(tx, question.session, "reply", subject, now, about)
