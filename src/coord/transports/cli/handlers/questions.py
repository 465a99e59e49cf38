"""Ask people, answer questions, and list what needs a person."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from coord.core.errors import Refused
from coord.core.lifecycle.commands import Need, NeedsReply
from coord.core.messages.quoting import quote, quote_name
from coord.core.questions.commands import QuestionInfo
from coord.core.questions.schema import QuestionState
from coord.sdk.client.client import Client
from coord.transports import arguments, exit_codes
from coord.transports.cli.args import Args
from coord.transports.cli.output import Answer, count, fields_of
from coord.transports.cli.waiting.line import showing_wait

COLUMNS = ("id", "age", "agent", "kind", "text", "options", "state", "answer", "answered_by")
NEED_COLUMNS = ("what", "id", "age", "agent", "text", "next")
NOUNS = {
    "question": ("question", "questions"),
    "session": ("silent session", "silent sessions"),
    "task": ("failed task", "failed tasks"),
    "agent": ("blocked agent", "blocked agents"),
    "budget": ("budget that is spent", "budgets that are spent"),
    "alert": ("alert", "alerts"),
    "reactions": ("reaction without a process", "reactions without a process"),
}
"""What each kind of need is called."""


class AskArgs(Args, frozen=True):
    """The arguments of `coord ask`."""

    text: str
    options: Sequence[str] | None
    wait_s: float
    kind: str
    ttl_s: float | None


def ask(client: Client, args: AskArgs) -> Answer:
    """Ask a person, and wait for the answer if wanted."""

    def asked(question: Any, _age_s: float) -> str:
        return f"coord decide {question.id} answers it"

    with showing_wait(client, "an answer", args.wait_s, asked):
        question = client.ask(
            args.text, options=args.options or (), kind=args.kind, ttl_s=args.ttl_s, wait_s=args.wait_s
        )
    if question.state is QuestionState.OPEN and args.wait_s:
        line = f"Nobody answered {question.id} within {arguments.span(args.wait_s)}"
        hint = "it stays open, and its answer comes as a message"
        failure = exit_codes.Failure(exit_codes.TIMED_OUT, "timed_out", line, hint)
        return answer_of(question)._replace(line=line, failure=failure)
    return answer_of(question)


def answer_of(question: QuestionInfo) -> Answer:
    """Return a question, and its answer if it has one."""
    fields = {"question": fields_of(question)}
    if question.state is QuestionState.ANSWERED:
        return Answer({"answer": question.answer, **fields}, f"{question.id}: {quote(question.answer)}")
    if question.state is QuestionState.WITHDRAWN:
        line = f"{question.id} was withdrawn: {quote(question.end_reason)}"
        failure = exit_codes.Failure(exit_codes.REFUSED, Refused.code, line, "ask again if it still matters")
        return Answer(fields, line, failure=failure)
    return Answer(fields, f"Asked {question.id}; its answer comes as a message")


class AnswerArgs(Args, frozen=True):
    """The arguments of `coord decide`."""

    id: str
    answer: str
    reason: str
    other: bool


def answer(client: Client, args: AnswerArgs) -> Answer:
    """Answer a question."""
    reply = client.answer(args.id, args.answer, reason=args.reason, other=args.other)
    question = reply.question
    missed = "" if reply.delivered else "; its inbox is full, so only a waiting command gets it"
    line = f"Answered {question.id} of {_who(question)}: {quote(question.answer)}{missed}"
    return Answer(fields_of(reply), line)


class DecisionsArgs(Args, frozen=True):
    """The arguments of `coord decisions`."""

    all: bool


def decisions(client: Client, args: DecisionsArgs) -> Answer:
    """List questions, the pending ones first."""
    found = client.questions(_project(client), closed=args.all)
    rows = [
        {**fields_of(each), "age": arguments.span(max(0, found.now_ms - each.asked_ms) / 1000)}
        for each in found.questions
    ]
    pending = [each for each in found.questions if each.state is QuestionState.OPEN]
    line = f"{count(len(pending), 'pending decision')}" + (", more are not shown" if found.more else "")
    if pending:
        line += f" ({_age(found.now_ms, pending[0].asked_ms)})"
    columns = COLUMNS if args.all else COLUMNS[:6]
    fields = {"pending": len(pending), "decisions": rows, "more": found.more}
    return Answer(fields, line, rows, columns)


class WithdrawArgs(Args, frozen=True):
    """The arguments of `coord withdraw`."""

    id: str
    reason: str


def withdraw(client: Client, args: WithdrawArgs) -> Answer:
    """Withdraw a question."""
    question = client.withdraw_question(args.id, reason=args.reason)
    return Answer({"question": fields_of(question)}, f"Withdrew {question.id} of {_who(question)}")


def needs(client: Client, _args: Args) -> Answer:
    """List what needs a person."""
    found = client.needs_you(_project(client))
    found = _with_reactions(client, found)
    rows = [need_row(need, found.now_ms) for need in found.needs]
    fields = {"needs": rows, "counts": found.counts}
    return Answer(fields, needs_line(found) or "Nothing needs you", rows, NEED_COLUMNS)


def _with_reactions(client: Client, found: NeedsReply) -> NeedsReply:
    """Return the needs with the reactions that nobody performs, which only this machine knows."""
    from coord.followers.direct import log_source
    from coord.followers.reactions.performer import NEXT, find_performer

    performer = find_performer(log_source(client))
    if not performer.problem:
        return found
    need = Need(
        kind="reactions",
        id="reactions",
        what="reactions",
        text=performer.problem,
        urgency=max((each.urgency for each in found.needs), default=0),
        since_ms=0,
        next=NEXT,
    )
    return replace(found, needs=[*found.needs, need], counts={**found.counts, "reactions": 1})


def need_row(need: Need, now_ms: int) -> dict[str, Any]:
    """Return a need as a row, with its age."""
    return {**fields_of(need), "age": _age(now_ms, need.since_ms) if need.since_ms else ""}


def needs_line(found: NeedsReply) -> str:
    """Return what needs a person in one line; empty if nothing does."""
    parts = []
    for kind, number in found.counts.items():
        one, many = NOUNS.get(kind, (kind, f"{kind}s"))
        age = f" ({_age(found.now_ms, found.oldest_question_ms)})" if kind == "question" else ""
        parts.append(f"{number} {one if number == 1 else many}{age}")
    return f"Needs you: {', '.join(parts)}" if parts else ""


def _project(client: Client) -> str:
    """Return the project that the user named; without one, all projects count."""
    return client.project if client.project_given else ""


def _age(now_ms: int, since_ms: int) -> str:
    return arguments.span(max(0, now_ms - since_ms) / 1000)


def _who(question: QuestionInfo) -> str:
    return quote_name(question.agent or question.session_id)
