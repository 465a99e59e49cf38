"""Records and events of messages: the format on disk."""

from coord.core.events import Event


class MessageSent(Event, frozen=True, tag="message.sent"):
    """A message went to one session, or to all that were there."""

    id: str
    session: str
    to: tuple[str, ...]
    kind: str
    subject: str


class MessageDelivered(Event, frozen=True, tag="message.delivered"):
    """A message reached its recipient for good."""

    id: str
    session: str


class MessageLost(Event, frozen=True, tag="message.undelivered"):
    """A message will not be read any more: its time was up, or its recipient has gone."""

    id: str
    session: str
    sender: str
    reason: str
