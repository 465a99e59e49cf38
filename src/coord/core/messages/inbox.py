"""The inbox of a session: put a message into it, read it in order, find the broadcasts not yet seen.

Emergencies come first. The others come in the order of `sent − weight · priority`, as in the wait queue: a
high priority is a head start of a minute per step, so that every message is read in the end.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from coord.core import keys
from coord.core.messages.schema import Broadcasts, Mailbox, Message, MessageSent
from coord.core.sessions.identify import count_emergencies
from coord.core.sessions.schema import Session
from coord.core.transaction import Transaction

SYSTEM = "system"
EMERGENCY = "emergency"
AGING_MS = 60_000
"""The waiting time that equals one step of priority."""
TTL_MS = 7 * 24 * 3600 * 1000
PENDING_MAX = 1000
SHOWN_MAX = 100
NUMBER_DIGITS_MAX = 12


def mailbox_of(tx: Transaction, session: str) -> Mailbox:
    return tx.get(keys.mailbox(session), Mailbox) or Mailbox()


def notify(
    tx: Transaction,
    to: str,
    kind: str,
    subject: str,
    now: int,
    blob: dict[str, Any] | None = None,
    *,
    waiter: str = "",
) -> bool:
    """Send a system message to a session, unless it has ended or its inbox is full."""
    session = tx.get(keys.session(to), Session)
    if session is None or (session.ended_ms and session.end_reason != "dead"):
        return False
    if mailbox_of(tx, to).pending >= PENDING_MAX:
        return False
    message = Message(
        from_session_id=SYSTEM,
        sent_ms=now,
        kind=kind,
        subject=f"[System] {subject}",
        blob=blob or {},
        expires_ms=now + TTL_MS,
        waiter=waiter,
    )
    stored = put_message(tx, message, to)
    tx.emit(MessageSent(stored.id, SYSTEM, (to,), kind, message.subject))
    return True


def put_message(tx: Transaction, message: Message, to: str) -> Message:
    """Append a message to an inbox."""
    mailbox = mailbox_of(tx, to)
    number = mailbox.next
    stored = msgspec.structs.replace(
        message, id=message.id or f"{message.sent_ms}-{number}", to_session_id=to, recipients=()
    )
    changed = msgspec.structs.replace(mailbox, next=number + 1, pending=mailbox.pending + 1)
    tx.put(keys.mailbox(to), changed)
    tx.put(keys.inbox(to, number), stored, keys.due(stored.expires_ms))
    if stored.kind == EMERGENCY:
        count_emergencies(tx, to, 1)
    return stored


def urgency(message: Message) -> tuple[bool, int]:
    """Return a key that sorts messages, the most urgent first; equal ones keep their order."""
    return message.kind != EMERGENCY, message.sent_ms - AGING_MS * message.priority


def inbox_messages(tx: Transaction, session: str) -> Iterator[tuple[str, Message]]:
    """Yield the messages of an inbox with their keys, oldest first."""
    yield from _read_messages(tx, keys.inbox_prefix(session), "")


def _read_messages(tx: Transaction, prefix: str, after_key: str) -> Iterator[tuple[str, Message]]:
    for page in tx.pages(prefix, limit=SHOWN_MAX, after=("", after_key)):
        for entry in page:
            message = tx.get(entry.key, Message)
            if message is not None:
                yield entry.key, message


def find_messages(tx: Transaction, session: str, ids: Sequence[str]) -> dict[str, tuple[str, Message]]:
    """Return the messages with these ids; most ids end with the number of their inbox entry."""
    numbers = [name.rpartition("-")[2] for name in ids]
    inbox_keys = [
        keys.inbox(session, int(n)) for n in numbers if n.isdecimal() and len(n) <= NUMBER_DIGITS_MAX
    ]
    tx.prefetch(*inbox_keys)
    found = {
        message.id: (key, message) for key in inbox_keys if (message := tx.get(key, Message)) is not None
    }
    if not found.keys() >= set(ids):
        found |= {message.id: (key, message) for key, message in inbox_messages(tx, session)}
    return {name: found[name] for name in ids if name in found}


def unseen_broadcasts(tx: Transaction, session: str) -> Iterator[tuple[int, Message]]:
    """Yield the broadcasts to a session that it has not seen, with their numbers."""
    seen = mailbox_of(tx, session).broadcasts_seen
    newest = tx.get(keys.BROADCAST_HEAD, Broadcasts)
    if newest is None or newest.newest <= seen:
        return
    for key, message in _read_messages(tx, keys.BROADCAST_PREFIX, keys.broadcast(seen)):
        if session in message.recipients:
            yield int(keys.parts(key)[1]), message


def mark_broadcasts_seen(tx: Transaction, session: str, number: int) -> None:
    mailbox = msgspec.structs.replace(mailbox_of(tx, session), broadcasts_seen=number)
    tx.put(keys.mailbox(session), mailbox)


def remove_message(tx: Transaction, key: str, message: Message, session: str) -> None:
    """Delete a message from an inbox."""
    mailbox = mailbox_of(tx, session)
    tx.delete(key)
    tx.put(keys.mailbox(session), msgspec.structs.replace(mailbox, pending=mailbox.pending - 1))
    if message.kind == EMERGENCY:
        count_emergencies(tx, session, -1)
