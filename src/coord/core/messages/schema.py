"""Records and events of messages: the format on disk."""

from typing import Any

from coord.core.events import Event
from coord.core.records import Stored


class MessageSent(Event, frozen=True, tag="message.sent"):
    """A message was sent to one session or to several; `to_agent` and `to_role` describe them."""

    id: str
    session: str
    to: tuple[str, ...]
    kind: str
    subject: str
    to_agent: str = ""
    to_role: str = ""
    from_repository: str = ""


class GroupMessageSent(Event, frozen=True, tag="message.sent_to_group"):
    """A message was sent to the members of a group."""

    id: str
    session: str
    group: str
    to: tuple[str, ...]
    kind: str
    subject: str


class MessageDelivered(Event, frozen=True, tag="message.delivered"):
    """A message was acknowledged by its recipient, or by a person (`by`) in its place."""

    id: str
    session: str
    by: str = ""


class MessageLost(Event, frozen=True, tag="message.undelivered"):
    """A message will never be read: it expired, has become pointless, or its recipient ended."""

    id: str
    session: str
    sender: str
    reason: str


class GroupJoined(Event, frozen=True, tag="group.joined"):
    """A session joined a group."""

    group: str
    session: str


class GroupLeft(Event, frozen=True, tag="group.left"):
    """A session left a group."""

    group: str
    session: str


class DelegationAdded(Event, frozen=True, tag="delegation.added"):
    """A session delegated work to another one."""

    id: str
    session: str
    to: str
    to_agent: str
    to_role: str
    what: str
    task: str = ""


class DelegationCancelled(Event, frozen=True, tag="delegation.cancelled"):
    """Delegated work was cancelled."""

    id: str
    session: str
    to: str
    to_agent: str
    to_role: str
    what: str


class DelegationEnded(Event, frozen=True, tag="delegation.ended"):
    """Delegated work was done, or the session that got it has ended."""

    id: str
    session: str
    end_reason: str


class Message(Stored, frozen=True, tag=1):
    """A message in an inbox, or one to several sessions (then with its recipients).

    `waiter`: the message only matters while this session waits for the resources in `blob`.
    `from_repository`: the repository of a sender that works in another one.
    """

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
    waiter: str = ""
    from_repository: str = ""


class Mailbox(Stored, frozen=True, tag=1):
    """A session's counters of messages.

    `heard`: the requests that this session heard of, and until when each counts as the same request.
    """

    next: int = 1
    pending: int = 0
    broadcasts_seen: int = 0
    window_ms: int = 0
    window_sent: int = 0
    window_broadcasts: int = 0
    heard: dict[str, int] = {}


class Group(Stored, frozen=True, tag=1):
    """The sessions that get the messages to a group."""

    members: tuple[str, ...] = ()


class Delegation(Stored, frozen=True, tag=1):
    """Work that one session asked another one to do, until it is done or cancelled."""

    id: str = ""
    from_session_id: str = ""
    to_session_id: str = ""
    to_agent: str = ""
    to_role: str = ""
    what: str = ""
    task: str = ""
    since_ms: int = 0


class Broadcasts(Stored, frozen=True, tag=1):
    """The number of the newest broadcast."""

    newest: int = 0
