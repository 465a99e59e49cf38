"""Commands about messages, and their replies: the API."""

from typing import Any

from coord.core.commands import Reply, SessionCommand
from coord.core.sessions.schema import Liveness


class MessageInfo(Reply, frozen=True):
    """A message as its recipient sees it."""

    id: str
    from_session_id: str
    to_session_id: str
    sent_ms: int
    kind: str
    subject: str
    body: str
    blob: dict[str, Any]
    priority: int
    hops: int
    reply_to: str
    state: str
    expires_ms: int


class SendReply(Reply, frozen=True):
    """The id of a message that was sent, and how alive each recipient is."""

    id: str
    recipients: dict[str, Liveness]


class SendMessage(SessionCommand, frozen=True, kw_only=True):
    """Send a message to a session, or to all that have not ended."""

    rule = "coord.core.messages.send:send_message"
    prefetch_keys = "coord.core.sessions.identify:caller_reads"
    reply = SendReply
    to: str = ""
    kind: str
    subject: str
    body: str = ""
    blob: dict[str, Any] = {}
    priority: int = 0
    ttl_ms: int = 0
    hops: int = 0
    reply_to: str = ""
    live_only: bool = False


class ReceiveReply(Reply, frozen=True):
    """Messages for this session, oldest first; `more`: there are others."""

    messages: list[MessageInfo]
    more: bool = False


class ReceiveMessages(SessionCommand, frozen=True):
    """Receive the waiting messages; with `drain` they count as acknowledged."""

    rule = "coord.core.messages.receive:receive_messages"
    prefetch_keys = "coord.core.sessions.identify:caller_reads"
    reply = ReceiveReply
    drain: bool = False


class PeekMessages(SessionCommand, frozen=True):
    """Show the waiting messages and change nothing."""

    rule = "coord.core.messages.receive:peek_messages"
    reply = ReceiveReply
    reads_only = True


class AckReply(Reply, frozen=True):
    """The messages that are acknowledged now."""

    acked: list[str]


class AckMessages(SessionCommand, frozen=True):
    """Acknowledge messages."""

    rule = "coord.core.messages.receive:ack_messages"
    reply = AckReply
    ids: tuple[str, ...]
