"""The messages that still exist, for a person who looks: nothing is delivered, and nothing counts as read.

A message to one session lies in its inbox until it is acknowledged; one to several stays until it expires. Of
earlier ones only the log knows, and only the subject.
"""

from collections.abc import Iterator

import msgspec

from coord.core import keys
from coord.core.messages.schema import Message
from coord.core.records import decode
from coord.stores.contract import Record, Store

INBOX_PREFIX = "inbox/"
PAGE = 200
"""How many records are in memory at once: each may have 64 KiB."""
SHOWN_MAX = 500
BODY_CHARS_MAX = 4000
"""A longer text is cut, unless the message is asked for by its id."""


class PageMessage(msgspec.Struct, frozen=True):
    """A message that exists; `waiting`: it lies in the inbox of its recipient, `cut`: its text goes on."""

    id: str
    sender: str
    to: list[str]
    sent_ms: int
    kind: str
    subject: str
    body: str
    cut: bool
    priority: int
    reply_to: str
    expires_ms: int
    waiting: bool
    from_repository: str


def page_messages(log: Store, *, session: str = "", message_id: str = "") -> list[PageMessage]:
    """Return the newest `SHOWN_MAX` messages, newest first: those of a session, or one by its id, or all."""
    found: dict[str, PageMessage] = {}
    for record, value in _records(log):
        if len(found) >= 2 * SHOWN_MAX:
            found = {each.id: each for each in _newest(found)}
        message = decode(value, Message, record.key)
        waiting = record.key.startswith(INBOX_PREFIX)
        to = [message.to_session_id] if waiting else list(message.recipients)
        if (message_id and message.id != message_id) or (
            session and session not in (message.from_session_id, *to)
        ):
            continue
        known = found.get(message.id)
        if known is not None:  # copies of one message, in several inboxes
            to = list(dict.fromkeys([*known.to, *to]))
            waiting = waiting or known.waiting
        found[message.id] = _shown(message, to, waiting=waiting, whole=bool(message_id))
    return _newest(found)


def _records(log: Store) -> Iterator[tuple[Record, bytes]]:
    """Yield every message, read page by page; those of one inbox follow each other."""
    for prefix in (INBOX_PREFIX, keys.BROADCAST_PREFIX):
        after: Record | None = None
        while records := log.scan(prefix, by="key", after=after, limit=PAGE):
            yield from ((each, each.value) for each in records if each.value is not None)
            after = records[-1]


def _newest(found: dict[str, PageMessage]) -> list[PageMessage]:
    """Return the newest messages; copies of one message have the same time, so all count or none."""
    return sorted(found.values(), key=lambda each: (-each.sent_ms, each.id))[:SHOWN_MAX]


def _shown(message: Message, to: list[str], *, waiting: bool, whole: bool) -> PageMessage:
    cut = not whole and len(message.body) > BODY_CHARS_MAX
    return PageMessage(
        message.id,
        message.from_session_id,
        to,
        message.sent_ms,
        message.kind,
        message.subject,
        message.body[:BODY_CHARS_MAX] if cut else message.body,
        cut,
        message.priority,
        message.reply_to,
        message.expires_ms,
        waiting,
        message.from_repository,
    )
