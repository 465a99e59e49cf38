"""Send, read and acknowledge messages."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from coord.core.messages.commands import GroupInfo, MessageInfo, SendReply
from coord.core.messages.quoting import MARK, quote, quote_name, visible
from coord.core.sessions.schema import Liveness
from coord.sdk.client.client import Client
from coord.transports import arguments, exit_codes
from coord.transports.cli.args import Args
from coord.transports.cli.output import Answer, count, fields_of, timestamp
from coord.transports.cli.waiting.line import showing_wait

if TYPE_CHECKING:
    from coord.transports.cli.waiting.notices import Notices

NAMED_MAX = 5
DELEGATION_COLUMNS = ("id", "from_session_id", "to_session_id", "task", "since_at", "what")


class SendingArgs(Args, frozen=True):
    """The content of a message."""

    kind: str
    subject: str
    body: str
    blob: Any
    priority: int
    ttl_s: float | None


class SendArgs(SendingArgs, frozen=True):
    """The arguments of `coord send`."""

    to: str
    reply_to: str


def send(client: Client, args: SendArgs) -> Answer:
    """Send a message to a session, an agent, a role or a group."""
    return _sent(client.send(args.to, args.kind, args.subject, reply_to=args.reply_to, **_content(args)))


class BroadcastArgs(SendingArgs, frozen=True):
    """The arguments of `coord broadcast`."""

    live_only: bool


def broadcast(client: Client, args: BroadcastArgs) -> Answer:
    """Send a message to every session."""
    return _sent(client.broadcast(args.kind, args.subject, live_only=args.live_only, **_content(args)))


class RecvArgs(Args, frozen=True):
    """The arguments of `coord recv`."""

    drain: bool
    peek: bool
    wait_s: float


def recv(client: Client, args: RecvArgs) -> Answer:
    """Read the messages to this session."""
    notices = _notices() if args.wait_s else None  # an invalid setting must not cost a message
    with showing_wait(client, "a message", args.wait_s, lambda _reply, _age_s: ""):
        reply = client.recv(drain=args.drain, peek=args.peek, wait_s=args.wait_s)
    number = len(reply.messages)
    if notices and number:
        first = reply.messages[0]
        notices.send(f"message from {first.from_session_id}: {quote(first.subject)}")
    line = (
        f"{count(number, 'message') if number else 'No messages'}{', more are waiting' if reply.more else ''}"
    )
    failure = None
    if args.wait_s and not number:
        line = f"No message arrived within {arguments.span(args.wait_s)}"
        failure = exit_codes.Failure(exit_codes.TIMED_OUT, "timed_out", line, "retry, or wait longer")
    return Answer(fields_of(reply), line, failure=failure, drawn=lambda room: _texts(reply.messages, room))


def _notices() -> "Notices":
    from coord.transports.cli.waiting.notices import find_notices

    return find_notices(os.environ)


def _texts(messages: Sequence[MessageInfo], room: int) -> str:
    """Return messages with their whole texts, because a drained message is shown once.

    Each line of a sender has a mark in front, so that no text can imitate another message, or coord.
    """
    from coord.transports.cli.table import ago, paragraphs, wrapped

    shown = []
    for each in messages:
        at = f" in {quote_name(each.from_repository)}" if each.from_repository else ""
        sender = f"from {quote_name(each.from_session_id)}{at}"
        parts = [each.id, quote_name(each.kind), sender, ago(timestamp(each.sent_ms) or "")]
        parts += [f"priority {each.priority}"] if each.priority else []
        parts += [f"answers {each.reply_to}"] if each.reply_to else []
        head = wrapped(visible(" · ".join(parts)), room)
        texts = [
            each.subject,
            each.body,
            f"data: {msgspec.json.encode(each.blob).decode()}" if each.blob else "",
        ]
        body = "".join(paragraphs(text, room, MARK) for text in texts if text)
        shown.append("\n  ".join(head) + "\n" + body)
    return "\n".join(shown)


class AckArgs(Args, frozen=True):
    """The arguments of `coord ack`."""

    ids: list[str]
    of: str


def ack(client: Client, args: AckArgs) -> Answer:
    """Acknowledge messages."""
    reply = client.ack(args.ids, of=args.of)
    return Answer(fields_of(reply), f"Acknowledged: {', '.join(reply.acked) or 'none'}")


class GroupArgs(Args, frozen=True):
    """The arguments of the commands about one group."""

    name: str


def group_create(client: Client, args: GroupArgs) -> Answer:
    """Begin a group."""
    return _group(client.join_group(args.name, create=True))


def group_join(client: Client, args: GroupArgs) -> Answer:
    """Join a group."""
    return _group(client.join_group(args.name))


def group_leave(client: Client, args: GroupArgs) -> Answer:
    """Leave a group."""
    return _group(client.leave_group(args.name))


def group_show(client: Client, args: GroupArgs) -> Answer:
    """Show the members of a group."""
    return _group(client.group(args.name))


def group_list(client: Client, _args: Args) -> Answer:
    """List the groups."""
    found = fields_of(client.groups())
    return Answer({"groups": found}, count(len(found), "group"), found, ("name", "members"))


def _group(reply: GroupInfo) -> Answer:
    members = ", ".join(reply.members) or "nobody"
    return Answer({"group": fields_of(reply)}, f"{reply.name}: {members}")


class DelegationAddArgs(Args, frozen=True):
    """The arguments of `coord delegation add`."""

    to: str
    what: str
    task: str


def delegation_add(client: Client, args: DelegationAddArgs) -> Answer:
    """Delegate work to a session or an agent."""
    reply = client.delegate(args.to, args.what, task=args.task)
    line = f"Delegated {reply.delegation.id} to {reply.delegation.to_session_id}"
    if reply.similar:
        line += f"; possible duplicates: {'; '.join(map(str, reply.similar))}"
    return Answer(fields_of(reply), line)


def delegation_list(client: Client, _args: Args) -> Answer:
    """List the delegations that are not done."""
    found = fields_of(client.delegations())
    return Answer({"delegations": found}, count(len(found), "delegation"), found, DELEGATION_COLUMNS)


class DelegationArgs(Args, frozen=True):
    """The arguments of the commands about one delegation."""

    id: str


def delegation_done(client: Client, args: DelegationArgs) -> Answer:
    """Report that delegated work is done."""
    reply = client.end_delegation(args.id)
    return Answer({"delegation": fields_of(reply)}, f"Done: {quote(reply.what)}")


def delegation_cancel(client: Client, args: DelegationArgs) -> Answer:
    """Cancel a delegation of this session."""
    reply = client.end_delegation(args.id, cancel=True)
    return Answer({"delegation": fields_of(reply)}, f"Cancelled: {quote(reply.what)}")


def _content(args: SendingArgs) -> dict[str, Any]:
    return {"body": args.body, "blob": args.blob, "priority": args.priority, "ttl_s": args.ttl_s}


def _sent(reply: SendReply) -> Answer:
    silent = [name for name, life in reply.recipients.items() if life is not Liveness.LIVE]
    warning = f"; no sign of life from {', '.join(silent[:5])}" if silent else ""
    names = ", ".join([*reply.recipients][:NAMED_MAX])
    more = f" and {len(reply.recipients) - NAMED_MAX} more" if len(reply.recipients) > NAMED_MAX else ""
    return Answer(fields_of(reply), f"Sent {reply.id} to {names or 'nobody'}{more}{warning}")
