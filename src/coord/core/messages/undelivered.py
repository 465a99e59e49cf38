"""Return messages that nobody will read.

Nothing vanishes silently: a message that expires, or whose recipient ends, comes back to its sender as
`undelivered`.
"""

from coord.core import keys
from coord.core.messages.inbox import (
    SYSTEM,
    TTL_MS,
    inbox_messages,
    mailbox_of,
    mark_broadcasts_seen,
    notify,
    put_message,
    remove_message,
    unseen_broadcasts,
)
from coord.core.messages.quoting import quote
from coord.core.messages.receive import COPIED_BYTES_MAX, collect_broadcasts
from coord.core.messages.schema import Mailbox, Message, MessageLost
from coord.core.transaction import Transaction


def return_message(tx: Transaction, key: str, reason: str, now: int) -> None:
    """Remove a message that nobody will read, and notify its sender."""
    message = tx.get(key, Message)
    if message is not None:
        remove_message(tx, key, message, message.to_session_id)
        _report_lost(tx, message, message.to_session_id, reason, now)


def _report_lost(tx: Transaction, message: Message, session: str, reason: str, now: int) -> None:
    tx.emit(MessageLost(message.id, session, message.from_session_id, reason))
    if message.from_session_id != SYSTEM:
        about = {"id": message.id, "to_session_id": session, "kind": message.kind}
        notify(tx, message.from_session_id, "undelivered", f"{quote(message.subject)}: {reason}", now, about)


def broadcast_deadline(tx: Transaction, key: str, now: int) -> None:
    """Delete an expired broadcast, and notify its sender which sessions have not read it."""
    message = tx.get(key, Message)
    if message is None:
        return
    number = int(keys.parts(key)[1])
    tx.prefetch(*(keys.mailbox(session) for session in message.recipients))
    unread = [name for name in message.recipients if mailbox_of(tx, name).broadcasts_seen < number]
    tx.delete(key)
    reason = "nobody read it in time"
    for session in unread:
        tx.emit(MessageLost(message.id, session, message.from_session_id, reason))
    if unread:
        about = {"id": message.id, "to_session_ids": unread, "kind": message.kind}
        notify(tx, message.from_session_id, "undelivered", f"{quote(message.subject)}: {reason}", now, about)


def return_all(tx: Transaction, session: str, now: int) -> None:
    """Return all waiting messages of a session that ends."""
    waiting, unseen = list(inbox_messages(tx, session)), list(unseen_broadcasts(tx, session))
    _prefetch_senders(tx, [message for _, message in (*waiting, *unseen)])
    reason = f"session {session} has ended"
    for key, _ in waiting:
        return_message(tx, key, reason, now)
    for _, message in unseen:
        _report_lost(tx, message, session, reason, now)
    if unseen:
        mark_broadcasts_seen(tx, session, unseen[-1][0])
    mailbox = tx.get(keys.mailbox(session), Mailbox)
    if mailbox is not None:  # the cursor stays, so that a session with the same id sees no broadcast twice
        tx.put(keys.mailbox(session), mailbox, keys.due(now + TTL_MS))


def move_messages(tx: Transaction, session: str, successor: str, now: int) -> None:
    """Move the inbox of a session to its successor; return messages that do not fit into one commit."""
    collect_broadcasts(tx, session)
    waiting = list(inbox_messages(tx, session))
    _prefetch_senders(tx, [message for _, message in waiting])
    room = tx.size + COPIED_BYTES_MAX
    for key, message in waiting:
        if tx.size > room:
            return_message(tx, key, f"session {session} was replaced and had too much to read", now)
            continue
        remove_message(tx, key, message, session)
        put_message(tx, message, successor)
    for _, message in unseen_broadcasts(tx, session):
        _report_lost(tx, message, session, f"session {session} was replaced", now)


def _prefetch_senders(tx: Transaction, messages: list[Message]) -> None:
    """Prefetch what `notify` reads for each sender, so that the rule is not restarted once per sender."""
    senders = sorted({message.from_session_id for message in messages} - {SYSTEM})
    tx.prefetch(*(key for name in senders for key in (keys.session(name), keys.mailbox(name))))


def message_deadline(tx: Transaction, key: str, now: int) -> None:
    """Act on the deadline of a message."""
    return_message(tx, key, "nobody read it in time", now)
