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
from coord.core.commands import AckMessages, PeekMessages, ReceiveMessages, SendMessage
from coord.core.errors import Gone, LimitReached, NotFound, Refused
from coord.core.events import MessageDelivered, MessageLost, MessageSent
from coord.core.records import Stored
from coord.core.replies import Acked, Liveness, MessageShown, Received, Sent
from coord.core.sessions.session import (
    Session,
    enlist,
    every_session,
    evidence_of,
    find_peer,
    find_session,
    liveness,
)
from coord.core.transaction import View

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


def send_message(view: View, command: SendMessage, now: int) -> Sent:
    """Send to one session, or to all others that are there."""
    sender = enlist(view, command.caller, now)
    hops = _hops(view, sender.session_id, command)
    _count_sending(view, sender.session_id, now, broadcast=not command.to)
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
        return _send_to_one(view, message, find_peer(view, command.to), now)
    return _send_to_all(view, message, now, live_only=command.live_only)


def _send_to_one(view: View, message: Message, to: str, now: int) -> Sent:
    peer = view.get(keys.session(to), Session)
    assert peer is not None, "find_peer found it"
    if peer.ended_ms and peer.ending != "dead":
        raise Gone(f"session {to} has ended", hint="coord peers lists who is there")
    mailbox = _mailbox(view, to)
    if mailbox.pending >= PENDING_MAX:
        raise LimitReached(
            f"{mailbox.pending} messages wait for {to}", hint="it does not read them: look at it"
        )
    stored = put_message(view, message, to)
    view.emit(MessageSent(stored.id, message.from_session_id, (to,), message.kind, message.subject))
    return Sent(stored.id, {to: liveness(peer, now, evidence_of(view, peer))})


def _send_to_all(view: View, message: Message, now: int, *, live_only: bool) -> Sent:
    recipients: dict[str, Liveness] = {}
    for session in every_session(view):
        alive = liveness(session, now, evidence_of(view, session))
        silent = alive in (Liveness.STALE, Liveness.HUNG, Liveness.DEAD)
        if session.session_id == message.from_session_id or session.ended_ms or (live_only and silent):
            continue
        recipients[session.session_id] = alive
    head = view.get(keys.BROADCAST_HEAD, Broadcasts) or Broadcasts()
    number = head.newest + 1
    named = msgspec.structs.replace(message, id=f"{message.sent_ms}-b{number}", recipients=tuple(recipients))
    view.put(keys.BROADCAST_HEAD, msgspec.structs.replace(head, newest=number))
    view.put(keys.broadcast(number), named, keys.due(named.expires_ms))
    view.emit(MessageSent(named.id, named.from_session_id, named.recipients, named.kind, named.subject))
    return Sent(named.id, recipients)


def tell(view: View, to: str, kind: str, subject: str, now: int, blob: dict[str, Any] | None = None) -> None:
    """Send a message of the system to a session, if it is there to read it."""
    session = view.get(keys.session(to), Session)
    if session is None or (session.ended_ms and session.ending != "dead"):
        return
    message = Message(
        from_session_id=SYSTEM,
        sent_ms=now,
        kind=kind,
        subject=f"[System] {subject}",
        blob=blob or {},
        expires_ms=now + TTL_MS,
    )
    if _mailbox(view, to).pending < PENDING_MAX:
        stored = put_message(view, message, to)
        view.emit(MessageSent(stored.id, SYSTEM, (to,), kind, message.subject))


def put_message(view: View, message: Message, to: str) -> Message:
    """Put a message into an inbox, behind those that are there."""
    mailbox = _mailbox(view, to)
    number = mailbox.next
    stored = msgspec.structs.replace(
        message, id=message.id or f"{message.sent_ms}-{number}", to_session_id=to, recipients=()
    )
    changed = msgspec.structs.replace(mailbox, next=number + 1, pending=mailbox.pending + 1)
    view.put(keys.mailbox(to), changed)
    view.put(keys.inbox(to, number), stored, keys.due(stored.expires_ms))
    return stored


def _mailbox(view: View, session: str) -> Mailbox:
    return view.get(keys.mailbox(session), Mailbox) or Mailbox()


def _hops(view: View, sender: str, command: SendMessage) -> int:
    """Return how many times a message was passed on; loops between automatic senders end here."""
    hops = command.hops
    if command.reply_to:
        answered = _find(view, sender, (command.reply_to,)).get(command.reply_to)
        hops = max(hops, answered[1].hops + 1 if answered is not None else 1)
    if hops > HOPS_MAX:
        raise Refused(
            f"the message was passed on {hops} times", hint="a loop of automatic answers? stop one side"
        )
    return hops


def _count_sending(view: View, sender: str, now: int, *, broadcast: bool) -> None:
    mailbox = _mailbox(view, sender)
    if now >= mailbox.window_ms + RATE_WINDOW_MS:
        mailbox = msgspec.structs.replace(mailbox, window_ms=now, window_sent=0, window_broadcasts=0)
    sent, broadcasts = mailbox.window_sent + 1, mailbox.window_broadcasts + broadcast
    if sent > RATE_MAX or broadcasts > RATE_BROADCASTS_MAX:
        wait_s = (mailbox.window_ms + RATE_WINDOW_MS - now) // 1000 + 1
        raise LimitReached(
            f"{sender} sent {sent - 1} messages ({broadcasts - broadcast} to all) within a minute",
            hint=f"try again in {wait_s} s",
        )
    view.put(
        keys.mailbox(sender),
        msgspec.structs.replace(mailbox, window_sent=sent, window_broadcasts=broadcasts),
    )


def _inbox(view: View, session: str) -> Iterator[tuple[str, Message]]:
    """Go through what waits in an inbox, oldest first."""
    yield from _messages(view, keys.inbox_prefix(session), "")


def _messages(view: View, prefix: str, after_key: str) -> Iterator[tuple[str, Message]]:
    for page in view.pages(prefix, limit=SHOWN_MAX, after=("", after_key)):
        for entry in page:
            message = view.get(entry.key, Message)
            if message is not None:
                yield entry.key, message


def _find(view: View, session: str, ids: Sequence[str]) -> dict[str, tuple[str, Message]]:
    """Return the messages with these ids; most ids end with the number of their place."""
    numbers = [name.rpartition("-")[2] for name in ids]
    places = [keys.inbox(session, int(n)) for n in numbers if n.isdecimal() and len(n) <= NUMBER_DIGITS_MAX]
    view.want(*places)
    found = {message.id: (key, message) for key in places if (message := view.get(key, Message)) is not None}
    if not found.keys() >= set(ids):
        found |= {message.id: (key, message) for key, message in _inbox(view, session)}
    return {name: found[name] for name in ids if name in found}


def receive_messages(view: View, command: ReceiveMessages, now: int) -> Received:
    """Offer what waits, or with `drain` deliver it for good; as much as one commit holds."""
    session = enlist(view, command.caller, now).session_id
    more = _collect_broadcasts(view, session)
    room = view.size + COPIED_BYTES_MAX
    shown: list[MessageShown] = []
    for key, message in _inbox(view, session):
        if now >= message.expires_ms or not (command.drain or now >= message.offered_ms + OFFER_MS):
            continue
        if len(shown) == SHOWN_MAX or view.size > room:
            return Received(shown, more=True)
        offered = msgspec.structs.replace(message, state="offered", offered_ms=now)
        if command.drain:
            _deliver(view, key, message, session)
            offered = msgspec.structs.replace(offered, state="delivered")
        else:
            view.put(key, offered, keys.due(message.expires_ms))
        shown.append(_shown(offered))
    return Received(shown, more=more)


def peek_messages(view: View, command: PeekMessages, now: int) -> Received:
    """Show what waits and change nothing."""
    open_ = waiting_messages(view, find_session(view, command.caller, now), now)
    return Received([_shown(message) for message in open_[:SHOWN_MAX]], more=len(open_) > SHOWN_MAX)


def waiting_messages(view: View, session: str, now: int) -> list[Message]:
    """Return what waits for a session, up to one more than is shown at once."""
    unseen = (
        msgspec.structs.replace(message, to_session_id=session, recipients=())
        for _, message in _unseen_broadcasts(view, session)
    )
    waiting = chain((message for _, message in _inbox(view, session)), unseen)
    return list(islice((message for message in waiting if now < message.expires_ms), SHOWN_MAX + 1))


def _unseen_broadcasts(view: View, session: str) -> Iterator[tuple[int, Message]]:
    """Go through the broadcasts to a session that it has not got yet, with their numbers."""
    seen = _mailbox(view, session).broadcasts_seen
    newest = view.get(keys.BROADCAST_HEAD, Broadcasts)
    if newest is None or newest.newest <= seen:
        return
    for key, message in _messages(view, keys.BROADCAST_PREFIX, keys.broadcast(seen)):
        if session in message.recipients:
            yield int(keys.parts(key)[1]), message


def _collect_broadcasts(view: View, session: str) -> bool:
    """Copy what was sent to all since the last time into the session's own inbox; whether some is left."""
    newest = view.get(keys.BROADCAST_HEAD, Broadcasts)
    if newest is None or newest.newest <= _mailbox(view, session).broadcasts_seen:
        return False
    seen = newest.newest
    room = view.size + COPIED_BYTES_MAX
    for number, message in _unseen_broadcasts(view, session):
        if view.size > room:
            seen = number - 1
            break
        put_message(view, message, session)  # one whose time is up goes back to its sender from there
    _see_broadcasts(view, session, seen)
    return seen < newest.newest


def _see_broadcasts(view: View, session: str, number: int) -> None:
    mailbox = msgspec.structs.replace(_mailbox(view, session), broadcasts_seen=number)
    view.put(keys.mailbox(session), mailbox)


def ack_messages(view: View, command: AckMessages, now: int) -> Acked:
    """End messages for good; those ended before are passed over."""
    session = enlist(view, command.caller, now).session_id
    by_id = _find(view, session, command.ids)
    unknown = [name for name in command.ids if name not in by_id]
    if unknown and len(unknown) == len(command.ids):
        raise NotFound(f"no message {unknown[0]} waits for {session}", hint="coord recv --peek lists them")
    for name in command.ids:
        if name in by_id:
            _deliver(view, *by_id.pop(name), session)
    return Acked([name for name in command.ids if name not in unknown])


def _deliver(view: View, key: str, message: Message, session: str) -> None:
    _take_out(view, key, session)
    view.emit(MessageDelivered(message.id, session))


def _take_out(view: View, key: str, session: str) -> None:
    mailbox = _mailbox(view, session)
    view.delete(key)
    view.put(keys.mailbox(session), msgspec.structs.replace(mailbox, pending=mailbox.pending - 1))


def return_message(view: View, key: str, reason: str, now: int) -> None:
    """Take out a message that will not be read any more and let its sender know."""
    message = view.get(key, Message)
    if message is not None:
        _take_out(view, key, message.to_session_id)
        _tell_lost(view, message, message.to_session_id, reason, now)


def _tell_lost(view: View, message: Message, session: str, reason: str, now: int) -> None:
    view.emit(MessageLost(message.id, session, message.from_session_id, reason))
    if message.from_session_id != SYSTEM:
        about = {"id": message.id, "to_session_id": session, "kind": message.kind}
        tell(view, message.from_session_id, "undelivered", f"{message.subject}: {reason}", now, about)


def return_broadcast(view: View, key: str, now: int) -> None:
    """End a broadcast whose time is up; its sender learns who has not read it."""
    message = view.get(key, Message)
    if message is None:
        return
    number = int(keys.parts(key)[1])
    view.want(*(keys.mailbox(session) for session in message.recipients))
    unread = [name for name in message.recipients if _mailbox(view, name).broadcasts_seen < number]
    view.delete(key)
    reason = "nobody read it in time"
    for session in unread:
        view.emit(MessageLost(message.id, session, message.from_session_id, reason))
    if unread:
        about = {"id": message.id, "to_session_ids": unread, "kind": message.kind}
        tell(view, message.from_session_id, "undelivered", f"{message.subject}: {reason}", now, about)


def return_all(view: View, session: str, now: int) -> None:
    """Return everything that still waits for a session that ends."""
    waiting, unseen = list(_inbox(view, session)), list(_unseen_broadcasts(view, session))
    _foresee_senders(view, [message for _, message in (*waiting, *unseen)])
    reason = f"session {session} has ended"
    for key, _ in waiting:
        return_message(view, key, reason, now)
    for _, message in unseen:
        _tell_lost(view, message, session, reason, now)
    if unseen:
        _see_broadcasts(view, session, unseen[-1][0])
    mailbox = view.get(keys.mailbox(session), Mailbox)
    if mailbox is not None:  # its cursor stays: under the same id nothing is delivered twice
        view.put(keys.mailbox(session), mailbox, keys.due(now + TTL_MS))


def move_messages(view: View, session: str, successor: str, now: int) -> None:
    """Hand the inbox of a session to the one that replaces it; what one commit cannot hold is returned."""
    _collect_broadcasts(view, session)
    waiting = list(_inbox(view, session))
    _foresee_senders(view, [message for _, message in waiting])
    room = view.size + COPIED_BYTES_MAX
    for key, message in waiting:
        if view.size > room:
            return_message(view, key, f"session {session} was replaced and had too much to read", now)
            continue
        _take_out(view, key, session)
        put_message(view, message, successor)
    for _, message in _unseen_broadcasts(view, session):
        _tell_lost(view, message, session, f"session {session} was replaced", now)


def _foresee_senders(view: View, messages: list[Message]) -> None:
    """Ask together for what `tell` reads of each sender: one by one, the rule would begin anew for each."""
    senders = sorted({message.from_session_id for message in messages} - {SYSTEM})
    view.want(*(key for name in senders for key in (keys.session(name), keys.mailbox(name))))


def _shown(message: Message) -> MessageShown:
    return MessageShown(
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
