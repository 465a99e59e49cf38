"""Commands about messages."""

from types import SimpleNamespace
from typing import Any

from coord.core.replies import Liveness, SendReply
from coord.sdk.client.client import Client
from coord.transports import arguments as words
from coord.transports import exit_codes as render
from coord.transports.cli.output import Answer, fields_of

COLUMNS = ("id", "kind", "from_session_id", "sent_at", "subject", "body")


def send(client: Client, given: SimpleNamespace) -> Answer:
    """Send a message to a session."""
    return _sent(
        client.send(given.peer, given.kind, given.subject, reply_to=given.reply_to, **_content(given))
    )


def broadcast(client: Client, given: SimpleNamespace) -> Answer:
    """Send a message to every session."""
    return _sent(client.broadcast(given.kind, given.subject, live_only=given.live_only, **_content(given)))


def recv(client: Client, given: SimpleNamespace) -> Answer:
    """Read the messages to this session."""
    reply = client.recv(drain=given.drain, peek=given.peek, wait_s=given.wait)
    count = len(reply.messages)
    line = (
        f"{count or 'no'} {'message' if count == 1 else 'messages'}{', and more wait' if reply.more else ''}"
    )
    failure = None
    if given.wait and not count:
        line = f"No message came within {words.span(given.wait)}"
        failure = render.Failure(render.TIMED_OUT, "timed_out", line, "try again")
    return Answer(fields_of(reply), line, fields_of(reply.messages), COLUMNS, failure)


def ack(client: Client, given: SimpleNamespace) -> Answer:
    """Say that messages were dealt with."""
    reply = client.ack(given.id)
    return Answer(fields_of(reply), f"dealt with: {', '.join(reply.acked) or 'nothing'}")


def _content(given: SimpleNamespace) -> dict[str, Any]:
    return {"body": given.body, "blob": given.blob, "priority": given.priority, "ttl_s": given.ttl}


def _sent(reply: SendReply) -> Answer:
    silent = [name for name, life in reply.recipients.items() if life is not Liveness.LIVE]
    warning = f"; without a sign of life: {', '.join(silent[:5])}" if silent else ""
    return Answer(fields_of(reply), f"sent {reply.id} to {len(reply.recipients)}{warning}")
