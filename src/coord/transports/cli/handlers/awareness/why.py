"""Say why a task, a lock or an agent does not go on, and which command frees it."""

import shlex

from coord.core.errors import Invalid
from coord.core.messages.quoting import visible
from coord.core.why.commands import Reason, WhyReply
from coord.sdk.client.client import Client
from coord.transports import arguments
from coord.transports.cli.args import Args
from coord.transports.cli.output import Answer, fields_of
from coord.transports.cli.table import wrapped

COLUMNS = ("depth", "kind", "text", "time")
INDENT = "  "


class WhyArgs(Args, frozen=True):
    """The arguments of `coord why`."""

    what: str
    name: str


def why(client: Client, args: WhyArgs) -> Answer:
    """Say what holds something up, and what frees it."""
    if not args.name and args.what != "agent":
        raise Invalid(f"coord why {args.what} needs a name", hint=f"coord why {args.what} NAME")
    if args.what == "task":
        reply = client.why_task(args.name)
    elif args.what == "lock":
        reply = client.why_lock(args.name)
    else:
        reply = client.why_session(args.name)
    rows = [
        {"depth": each.depth, "kind": each.kind, "text": each.text, "time": time_text(each, reply.now_ms)}
        for each in reply.reasons
    ]
    fields = {"answer": reply.answer, "reasons": fields_of(reply.reasons)}
    if reply.remedy is not None:
        command = command_line(reply.remedy.command)
        fields["remedy"] = {**fields_of(reply.remedy), "line": command}
    return Answer(fields, reply.answer, rows, COLUMNS, drawn=lambda room: drawn(reply, room))


def command_line(words: list[str]) -> str:
    """Return the words of a command as a shell takes them."""
    return shlex.join(["coord", *words])


def time_text(reason: Reason, now_ms: int) -> str:
    """Return since when a reason holds and when it ends by itself, as far as that is known."""
    since = f"for {arguments.span(max(0, now_ms - reason.since_ms) / 1000)}" if reason.since_ms else ""
    left = f"{arguments.span((reason.until_ms - now_ms) / 1000)} left" if reason.until_ms > now_ms else ""
    return ", ".join(filter(None, (since, left)))


def drawn(reply: WhyReply, room: int) -> str:
    """Return the chain below its answer, as lines of at most `room` cells, each below what it explains."""
    lines: list[str] = []
    for reason in reply.reasons:
        indent = INDENT * (reason.depth + 1)
        time = time_text(reason, reply.now_ms)
        text = visible(f"{reason.text}{f' ({time})' if time else ''}")
        lines += [f"{indent}{line}" for line in wrapped(text, max(20, room - len(indent)))]
    if reply.remedy is not None:
        lines += [
            *wrapped(f"To free it: {reply.remedy.text}", room),
            f"{INDENT}{command_line(reply.remedy.command)}",
        ]
    return "".join(f"{line.rstrip()}\n" for line in lines)
