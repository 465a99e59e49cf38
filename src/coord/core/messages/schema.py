"""Records and events of messages: the format on disk."""

from typing import Any

from coord.core.events import Event
from coord.core.records import Stored


class MessageSent(Event, frozen=True, tag="message.sent"):
    """A message was sent to one session, or to all."""

    id: str
    session: str
    to: tuple[str, ...]
    kind: str
    subject: str


class MessageDelivered(Event, frozen=True, tag="message.delivered"):
    """A message was acknowledged by its recipient."""

    id: str
    session: str


class MessageLost(Event, frozen=True, tag="message.undelivered"):
    """A message will never be read: it expired, or its recipient ended."""

    id: str
    session: str
    sender: str
    reason: str


class Message(Stored, frozen=True, tag=1):
    """A message in an inbox, or a broadcast (then with its recipients)."""

    id: str = ""
    from_session_id: str = ""
    to_session_id: str = ""
    recipients: tuple[str, ...] = ()
    sent_ms: int = 0
    kind: str = ""
    subject: str = ""
    body: str = ""
    blob: dict[str, Any] = {}
    priority: int = 0
    hops: int = 0
    reply_to: str = ""
    state: str = "pending"
    offered_ms: int = 0
    expires_ms: int = 0


class Mailbox(Stored, frozen=True, tag=1):
    """A session's counters of messages."""

    next: int = 1
    pending: int = 0
    broadcasts_seen: int = 0
    window_ms: int = 0
    window_sent: int = 0
    window_broadcasts: int = 0


class Broadcasts(Stored, frozen=True, tag=1):
    """The number of the newest broadcast."""

    newest: int = 0
