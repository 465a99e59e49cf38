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
    """A message on its way; `recipients` says how alive each one seems."""

    id: str
    recipients: dict[str, Liveness]


class SendMessage(SessionCommand, frozen=True, kw_only=True):
    """Send a message to a session, or without one to all that are there."""

    rule = "coord.core.messages.message:send_message"
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
    """Messages for this session, oldest first; `more` says that others wait."""

    messages: list[MessageInfo]
    more: bool = False


class ReceiveMessages(SessionCommand, frozen=True):
    """Be offered what waits; with `drain` it is delivered for good."""

    rule = "coord.core.messages.message:receive_messages"
    prefetch_keys = "coord.core.sessions.identify:caller_reads"
    reply = ReceiveReply
    drain: bool = False


class PeekMessages(SessionCommand, frozen=True):
    """Look at what waits."""

    rule = "coord.core.messages.message:peek_messages"
    reply = ReceiveReply
    reads_only = True


class AckReply(Reply, frozen=True):
    """Messages that are delivered for good."""

    acked: list[str]


class AckMessages(SessionCommand, frozen=True):
    """Say that messages were delivered."""

    rule = "coord.core.messages.message:ack_messages"
    reply = AckReply
    ids: tuple[str, ...]
