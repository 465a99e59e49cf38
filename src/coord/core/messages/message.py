"""Messages: each session has an inbox in order; a broadcast is one record with its recipients of that moment.

A message is shown at least once and normally once: `receive` marks it as offered, `ack` ends it for good; one
that was offered and not acknowledged in time is offered again under the same id. Nothing vanishes silently:
a message whose time is up, or whose recipient has ended, comes back to its sender as `undelivered`.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any

import msgspec

from coord.core import keys
from coord.core.errors import Gone, LimitReached, NotFound, Refused
from coord.core.messages.commands import (
    AckMessages,
    AckReply,
    MessageInfo,
    PeekMessages,
    ReceiveMessages,
    ReceiveReply,
    SendMessage,
    SendReply,
)
from coord.core.messages.schema import MessageDelivered, MessageLost, MessageSent
from coord.core.records import Stored
from coord.core.sessions.identify import ensure_session, find_session
from coord.core.sessions.liveness import evidence_of, liveness
from coord.core.sessions.queries import every_session, find_peer
from coord.core.sessions.schema import Liveness, Session
from coord.core.transaction import Transaction

SYSTEM = "system"
OFFER_MS = 60_000
RATE_WINDOW_MS = 60_000
RATE_MAX, RATE_BROADCASTS_MAX = 120, 10
PENDING_MAX = 1000
HOPS_MAX = 8
SHOWN_MAX = 100
COPIED_BYTES_MAX = 1024 * 1024
"""What one command may write of messages, so that it always finds room in a commit."""
TTL_MS = 7 * 24 * 3600 * 1000
NUMBER_DIGITS_MAX = 12


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


def send_message(tx: Transaction, command: SendMessage, now: int) -> SendReply:
    """Send to one session, or to all others that are there."""
    sender = ensure_session(tx, command.caller, now)
    hops = _hops(tx, sender.session_id, command)
    _count_sending(tx, sender.session_id, now, broadcast=not command.to)
    message = Message(
        from_session_id=sender.session_id,
        sent_ms=now,
        kind=command.kind,
        subject=command.subject,
        body=command.body,
        blob=command.blob,
        priority=command.priority,
        hops=hops,
        reply_to=command.reply_to,
        expires_ms=now + (command.ttl_ms or TTL_MS),
    )
    if command.to:
        return _send_to_one(tx, message, find_peer(tx, command.to), now)
    return _send_to_all(tx, message, now, live_only=command.live_only)


def _send_to_one(tx: Transaction, message: Message, to: str, now: int) -> SendReply:
    peer = tx.get(keys.session(to), Session)
    assert peer is not None, "find_peer found it"
    if peer.ended_ms and peer.end_reason != "dead":
        raise Gone(f"session {to} has ended", hint="coord peers lists who is there")
    mailbox = _mailbox(tx, to)
    if mailbox.pending >= PENDING_MAX:
        raise LimitReached(
            f"{mailbox.pending} messages wait for {to}", hint="it does not read them: look at it"
        )
    stored = put_message(tx, message, to)
    tx.emit(MessageSent(stored.id, message.from_session_id, (to,), message.kind, message.subject))
    return SendReply(stored.id, {to: liveness(peer, now, evidence_of(tx, peer))})


def _send_to_all(tx: Transaction, message: Message, now: int, *, live_only: bool) -> SendReply:
    recipients: dict[str, Liveness] = {}
    for session in every_session(tx):
        alive = liveness(session, now, evidence_of(tx, session))
        silent = alive in (Liveness.STALE, Liveness.HUNG, Liveness.DEAD)
        if session.session_id == message.from_session_id or session.ended_ms or (live_only and silent):
            continue
        recipients[session.session_id] = alive
    head = tx.get(keys.BROADCAST_HEAD, Broadcasts) or Broadcasts()
    number = head.newest + 1
    named = msgspec.structs.replace(message, id=f"{message.sent_ms}-b{number}", recipients=tuple(recipients))
    tx.put(keys.BROADCAST_HEAD, msgspec.structs.replace(head, newest=number))
    tx.put(keys.broadcast(number), named, keys.due(named.expires_ms))
    tx.emit(MessageSent(named.id, named.from_session_id, named.recipients, named.kind, named.subject))
    return SendReply(named.id, recipients)


def notify(
    tx: Transaction, to: str, kind: str, subject: str, now: int, blob: dict[str, Any] | None = None
) -> None:
    """Send a message of the system to a session, if it is there to read it."""
    session = tx.get(keys.session(to), Session)
    if session is None or (session.ended_ms and session.end_reason != "dead"):
        return
    message = Message(
        from_session_id=SYSTEM,
        sent_ms=now,
        kind=kind,
        subject=f"[System] {subject}",
        blob=blob or {},
        expires_ms=now + TTL_MS,
    )
    if _mailbox(tx, to).pending < PENDING_MAX:
        stored = put_message(tx, message, to)
        tx.emit(MessageSent(stored.id, SYSTEM, (to,), kind, message.subject))


def put_message(tx: Transaction, message: Message, to: str) -> Message:
    """Put a message into an inbox, behind those that are there."""
    mailbox = _mailbox(tx, to)
    number = mailbox.next
    stored = msgspec.structs.replace(
        message, id=message.id or f"{message.sent_ms}-{number}", to_session_id=to, recipients=()
    )
    changed = msgspec.structs.replace(mailbox, next=number + 1, pending=mailbox.pending + 1)
    tx.put(keys.mailbox(to), changed)
    tx.put(keys.inbox(to, number), stored, keys.due(stored.expires_ms))
    return stored


def _mailbox(tx: Transaction, session: str) -> Mailbox:
    return tx.get(keys.mailbox(session), Mailbox) or Mailbox()


def _hops(tx: Transaction, sender: str, command: SendMessage) -> int:
    """Return how many times a message was passed on; loops between automatic senders end here."""
    hops = command.hops
    if command.reply_to:
        answered = _find(tx, sender, (command.reply_to,)).get(command.reply_to)
        hops = max(hops, answered[1].hops + 1 if answered is not None else 1)
    if hops > HOPS_MAX:
        raise Refused(
            f"the message was passed on {hops} times", hint="a loop of automatic answers? stop one side"
        )
    return hops


def _count_sending(tx: Transaction, sender: str, now: int, *, broadcast: bool) -> None:
    mailbox = _mailbox(tx, sender)
    if now >= mailbox.window_ms + RATE_WINDOW_MS:
        mailbox = msgspec.structs.replace(mailbox, window_ms=now, window_sent=0, window_broadcasts=0)
    sent, broadcasts = mailbox.window_sent + 1, mailbox.window_broadcasts + broadcast
    if sent > RATE_MAX or broadcasts > RATE_BROADCASTS_MAX:
        wait_s = (mailbox.window_ms + RATE_WINDOW_MS - now) // 1000 + 1
        raise LimitReached(
            f"{sender} sent {sent - 1} messages ({broadcasts - broadcast} to all) within a minute",
            hint=f"try again in {wait_s} s",
        )
    tx.put(
        keys.mailbox(sender),
        msgspec.structs.replace(mailbox, window_sent=sent, window_broadcasts=broadcasts),
    )


def _inbox(tx: Transaction, session: str) -> Iterator[tuple[str, Message]]:
    """Go through what waits in an inbox, oldest first."""
    yield from _messages(tx, keys.inbox_prefix(session), "")


def _messages(tx: Transaction, prefix: str, after_key: str) -> Iterator[tuple[str, Message]]:
    for page in tx.pages(prefix, limit=SHOWN_MAX, after=("", after_key)):
        for entry in page:
            message = tx.get(entry.key, Message)
            if message is not None:
                yield entry.key, message


def _find(tx: Transaction, session: str, ids: Sequence[str]) -> dict[str, tuple[str, Message]]:
    """Return the messages with these ids; most ids end with the number of their place."""
    numbers = [name.rpartition("-")[2] for name in ids]
    places = [keys.inbox(session, int(n)) for n in numbers if n.isdecimal() and len(n) <= NUMBER_DIGITS_MAX]
    tx.prefetch(*places)
    found = {message.id: (key, message) for key in places if (message := tx.get(key, Message)) is not None}
    if not found.keys() >= set(ids):
        found |= {message.id: (key, message) for key, message in _inbox(tx, session)}
    return {name: found[name] for name in ids if name in found}


def receive_messages(tx: Transaction, command: ReceiveMessages, now: int) -> ReceiveReply:
    """Offer what waits, or with `drain` deliver it for good; as much as one commit holds."""
    session = ensure_session(tx, command.caller, now).session_id
    more = _collect_broadcasts(tx, session)
    room = tx.size + COPIED_BYTES_MAX
    shown: list[MessageInfo] = []
    for key, message in _inbox(tx, session):
        if now >= message.expires_ms or not (command.drain or now >= message.offered_ms + OFFER_MS):
            continue
        if len(shown) == SHOWN_MAX or tx.size > room:
            return ReceiveReply(shown, more=True)
        offered = msgspec.structs.replace(message, state="offered", offered_ms=now)
        if command.drain:
            _deliver(tx, key, message, session)
            offered = msgspec.structs.replace(offered, state="delivered")
        else:
            tx.put(key, offered, keys.due(message.expires_ms))
        shown.append(_shown(offered))
    return ReceiveReply(shown, more=more)


def peek_messages(tx: Transaction, command: PeekMessages, now: int) -> ReceiveReply:
    """Show what waits and change nothing."""
    open_ = waiting_messages(tx, find_session(tx, command.caller, now), now)
    return ReceiveReply([_shown(message) for message in open_[:SHOWN_MAX]], more=len(open_) > SHOWN_MAX)


def waiting_messages(tx: Transaction, session: str, now: int) -> list[Message]:
    """Return what waits for a session, up to one more than is shown at once."""
    unseen = (
        msgspec.structs.replace(message, to_session_id=session, recipients=())
        for _, message in _unseen_broadcasts(tx, session)
    )
    waiting = chain((message for _, message in _inbox(tx, session)), unseen)
    return list(islice((message for message in waiting if now < message.expires_ms), SHOWN_MAX + 1))


def _unseen_broadcasts(tx: Transaction, session: str) -> Iterator[tuple[int, Message]]:
    """Go through the broadcasts to a session that it has not got yet, with their numbers."""
    seen = _mailbox(tx, session).broadcasts_seen
    newest = tx.get(keys.BROADCAST_HEAD, Broadcasts)
    if newest is None or newest.newest <= seen:
        return
    for key, message in _messages(tx, keys.BROADCAST_PREFIX, keys.broadcast(seen)):
        if session in message.recipients:
            yield int(keys.parts(key)[1]), message


def _collect_broadcasts(tx: Transaction, session: str) -> bool:
    """Copy what was sent to all since the last time into the session's own inbox; whether some is left."""
    newest = tx.get(keys.BROADCAST_HEAD, Broadcasts)
    if newest is None or newest.newest <= _mailbox(tx, session).broadcasts_seen:
        return False
    seen = newest.newest
    room = tx.size + COPIED_BYTES_MAX
    for number, message in _unseen_broadcasts(tx, session):
        if tx.size > room:
            seen = number - 1
            break
        put_message(tx, message, session)  # one whose time is up goes back to its sender from there
    _see_broadcasts(tx, session, seen)
    return seen < newest.newest


def _see_broadcasts(tx: Transaction, session: str, number: int) -> None:
    mailbox = msgspec.structs.replace(_mailbox(tx, session), broadcasts_seen=number)
    tx.put(keys.mailbox(session), mailbox)


def ack_messages(tx: Transaction, command: AckMessages, now: int) -> AckReply:
    """End messages for good; those ended before are passed over."""
    session = ensure_session(tx, command.caller, now).session_id
    by_id = _find(tx, session, command.ids)
    unknown = [name for name in command.ids if name not in by_id]
    if unknown and len(unknown) == len(command.ids):
        raise NotFound(f"no message {unknown[0]} waits for {session}", hint="coord recv --peek lists them")
    for name in command.ids:
        if name in by_id:
            _deliver(tx, *by_id.pop(name), session)
    return AckReply([name for name in command.ids if name not in unknown])


def _deliver(tx: Transaction, key: str, message: Message, session: str) -> None:
    _take_out(tx, key, session)
    tx.emit(MessageDelivered(message.id, session))


def _take_out(tx: Transaction, key: str, session: str) -> None:
    mailbox = _mailbox(tx, session)
    tx.delete(key)
    tx.put(keys.mailbox(session), msgspec.structs.replace(mailbox, pending=mailbox.pending - 1))


def return_message(tx: Transaction, key: str, reason: str, now: int) -> None:
    """Take out a message that will not be read any more and let its sender know."""
    message = tx.get(key, Message)
    if message is not None:
        _take_out(tx, key, message.to_session_id)
        _tell_lost(tx, message, message.to_session_id, reason, now)


def _tell_lost(tx: Transaction, message: Message, session: str, reason: str, now: int) -> None:
    tx.emit(MessageLost(message.id, session, message.from_session_id, reason))
    if message.from_session_id != SYSTEM:
        about = {"id": message.id, "to_session_id": session, "kind": message.kind}
        notify(tx, message.from_session_id, "undelivered", f"{message.subject}: {reason}", now, about)


def return_broadcast(tx: Transaction, key: str, now: int) -> None:
    """End a broadcast whose time is up; its sender learns who has not read it."""
    message = tx.get(key, Message)
    if message is None:
        return
    number = int(keys.parts(key)[1])
    tx.prefetch(*(keys.mailbox(session) for session in message.recipients))
    unread = [name for name in message.recipients if _mailbox(tx, name).broadcasts_seen < number]
    tx.delete(key)
    reason = "nobody read it in time"
    for session in unread:
        tx.emit(MessageLost(message.id, session, message.from_session_id, reason))
    if unread:
        about = {"id": message.id, "to_session_ids": unread, "kind": message.kind}
        notify(tx, message.from_session_id, "undelivered", f"{message.subject}: {reason}", now, about)


def return_all(tx: Transaction, session: str, now: int) -> None:
    """Return everything that still waits for a session that ends."""
    waiting, unseen = list(_inbox(tx, session)), list(_unseen_broadcasts(tx, session))
    _foresee_senders(tx, [message for _, message in (*waiting, *unseen)])
    reason = f"session {session} has ended"
    for key, _ in waiting:
        return_message(tx, key, reason, now)
    for _, message in unseen:
        _tell_lost(tx, message, session, reason, now)
    if unseen:
        _see_broadcasts(tx, session, unseen[-1][0])
    mailbox = tx.get(keys.mailbox(session), Mailbox)
    if mailbox is not None:  # its cursor stays: under the same id nothing is delivered twice
        tx.put(keys.mailbox(session), mailbox, keys.due(now + TTL_MS))


def move_messages(tx: Transaction, session: str, successor: str, now: int) -> None:
    """Hand the inbox of a session to the one that replaces it; what one commit cannot hold is returned."""
    _collect_broadcasts(tx, session)
    waiting = list(_inbox(tx, session))
    _foresee_senders(tx, [message for _, message in waiting])
    room = tx.size + COPIED_BYTES_MAX
    for key, message in waiting:
        if tx.size > room:
            return_message(tx, key, f"session {session} was replaced and had too much to read", now)
            continue
        _take_out(tx, key, session)
        put_message(tx, message, successor)
    for _, message in _unseen_broadcasts(tx, session):
        _tell_lost(tx, message, session, f"session {session} was replaced", now)


def _foresee_senders(tx: Transaction, messages: list[Message]) -> None:
    """Ask together for what `notify` reads of each sender: one by one, the rule would begin anew for each."""
    senders = sorted({message.from_session_id for message in messages} - {SYSTEM})
    tx.prefetch(*(key for name in senders for key in (keys.session(name), keys.mailbox(name))))


def _shown(message: Message) -> MessageInfo:
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
    )
