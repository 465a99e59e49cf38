"""Receive and acknowledge messages.

A message is shown at least once, and normally once. `receive_messages` marks it as offered, `ack_messages`
ends it. A message that was offered and not acknowledged in time is offered again under the same id.
"""

from collections.abc import Iterator
from itertools import chain

import msgspec

from coord.core import keys
from coord.core.errors import NotFound, Refused
from coord.core.messages.commands import (
    AckMessages,
    AckReply,
    MessageInfo,
    PeekMessages,
    ReceiveMessages,
    ReceiveReply,
)
from coord.core.messages.inbox import (
    SHOWN_MAX,
    find_messages,
    inbox_messages,
    mailbox_of,
    mark_broadcasts_seen,
    put_message,
    remove_message,
    unseen_broadcasts,
    urgency,
)
from coord.core.messages.schema import Broadcasts, Message, MessageDelivered
from coord.core.messages.wait_notices import is_pointless, withdraw_notice
from coord.core.sessions.identify import ensure_session, find_session, is_person
from coord.core.sessions.queries import find_peer
from coord.core.transaction import Transaction

OFFER_MS = 60_000
COPIED_BYTES_MAX = 1024 * 1024
"""Messages that one command may write, in bytes, so that it always fits into a commit."""


def receive_messages(tx: Transaction, command: ReceiveMessages, now: int) -> ReceiveReply:
    """Offer the waiting messages, or with `drain` deliver them; as many as one commit can hold."""
    session = ensure_session(tx, command.caller, now).session_id
    more = collect_broadcasts(tx, session)
    room = tx.size + COPIED_BYTES_MAX
    shown: list[MessageInfo] = []
    for key, message in _by_urgency(inbox_messages(tx, session)):
        if now >= message.expires_ms or not (command.drain or now >= message.offered_ms + OFFER_MS):
            continue
        if len(shown) == SHOWN_MAX or tx.size > room:
            return ReceiveReply(shown, more=True)
        if is_pointless(tx, message, now):
            withdraw_notice(tx, key, message, session)
            continue
        offered = msgspec.structs.replace(message, state="offered", offered_ms=now)
        if command.drain:
            _deliver(tx, key, message, session)
            offered = msgspec.structs.replace(offered, state="delivered")
        else:
            tx.put(key, offered, keys.due(message.expires_ms))
        shown.append(message_info(offered))
    return ReceiveReply(shown, more=more)


def peek_messages(tx: Transaction, command: PeekMessages, now: int) -> ReceiveReply:
    """Show the waiting messages and change nothing."""
    open_ = waiting_messages(tx, find_session(tx, command.caller, now), now)
    return ReceiveReply([message_info(message) for message in open_[:SHOWN_MAX]], more=len(open_) > SHOWN_MAX)


def waiting_messages(tx: Transaction, session: str, now: int) -> list[Message]:
    """Return the waiting messages of a session, the most urgent first, at most `SHOWN_MAX` + 1."""
    unseen = (
        ("", msgspec.structs.replace(message, to_session_id=session, recipients=()))
        for _, message in unseen_broadcasts(tx, session)
    )
    found: list[Message] = []
    for _, message in _by_urgency(chain(inbox_messages(tx, session), unseen)):
        if now < message.expires_ms and not is_pointless(tx, message, now):
            found.append(message)
            if len(found) > SHOWN_MAX:
                break
    return found


def _by_urgency(found: Iterator[tuple[str, Message]]) -> list[tuple[str, Message]]:
    return sorted(found, key=lambda each: urgency(each[1]))


def collect_broadcasts(tx: Transaction, session: str) -> bool:
    """Copy unseen broadcasts into the inbox; return whether some are left."""
    newest = tx.get(keys.BROADCAST_HEAD, Broadcasts)
    if newest is None or newest.newest <= mailbox_of(tx, session).broadcasts_seen:
        return False
    seen = newest.newest
    room = tx.size + COPIED_BYTES_MAX
    for number, message in unseen_broadcasts(tx, session):
        if tx.size > room:
            seen = number - 1
            break
        put_message(tx, message, session)  # an expired one returns to its sender from there
    mark_broadcasts_seen(tx, session, seen)
    return seen < newest.newest


def ack_messages(tx: Transaction, command: AckMessages, now: int) -> AckReply:
    """Acknowledge messages; skip those that are acknowledged already."""
    own = ensure_session(tx, command.caller, now).session_id
    session = own
    if command.session:
        session = find_peer(tx, command.session)
        if session != own and not is_person(command.caller, own):
            raise Refused(
                f"only a person may acknowledge the messages of {session}",
                hint="ask the person you work for",
            )
    by_id = find_messages(tx, session, command.ids)
    unknown = [name for name in command.ids if name not in by_id]
    if unknown and len(unknown) == len(command.ids):
        raise NotFound(f"no message {unknown[0]} waits for {session}", hint="coord recv --peek lists them")
    for name in command.ids:
        if name in by_id:
            _deliver(tx, *by_id.pop(name), session, by="" if session == own else own)
    return AckReply([name for name in command.ids if name not in unknown])


def _deliver(tx: Transaction, key: str, message: Message, session: str, by: str = "") -> None:
    remove_message(tx, key, message, session)
    tx.emit(MessageDelivered(message.id, session, by))


def message_info(message: Message) -> MessageInfo:
    return MessageInfo(
        message.id,
        message.from_session_id,
        message.to_session_id,
        message.sent_ms,
        message.kind,
        message.subject,
        message.body,
        message.blob,
        message.priority,
        message.hops,
        message.reply_to,
        message.state,
        message.expires_ms,
        message.from_repository,
    )
