"""Send a message to a session, to several, or to all that are registered."""

import msgspec

from coord.core import keys
from coord.core.errors import Gone, LimitReached, Refused
from coord.core.events import Event
from coord.core.messages.commands import DeliverMessage, SendElsewhere, SendMessage, SendReply
from coord.core.messages.inbox import (
    EMERGENCY,
    PENDING_MAX,
    TTL_MS,
    find_messages,
    mailbox_of,
    put_message,
)
from coord.core.messages.recipients import (
    SILENT,
    Recipients,
    alive,
    find_recipients,
    has_left,
    prefetch_evidence,
)
from coord.core.messages.schema import Broadcasts, GroupMessageSent, Message, MessageSent
from coord.core.sessions.identify import ensure_session
from coord.core.sessions.queries import every_session
from coord.core.sessions.schema import Session
from coord.core.transaction import Transaction

RATE_WINDOW_MS = 60_000
RATE_MAX, RATE_BROADCASTS_MAX = 120, 10
HOPS_MAX = 8
COPIES_BYTES_MAX = 1024 * 1024
"""The copies of an emergency that one commit holds, in bytes."""


def send_message(tx: Transaction, command: SendMessage, now: int) -> SendReply:
    """Send a message to the sessions that `to` means, or to all others that have not ended."""
    sender = ensure_session(tx, command.caller, now).session_id
    hops = _hops(tx, sender, command)
    count_sending(tx, sender, now, broadcast=not command.to)
    message = msgspec.structs.replace(_content(command, now), from_session_id=sender, hops=hops)
    if command.to:
        return send_to(tx, message, find_recipients(tx, command.to, sender, now), now)
    others = _everybody(tx, sender, now, live_only=command.live_only)
    return send_to(tx, message, Recipients(others, everybody=True), now)


def send_elsewhere(tx: Transaction, command: SendElsewhere, now: int) -> DeliverMessage:
    """Count and log a message to sessions of other repositories; return what to run in their stores."""
    sender = ensure_session(tx, command.caller, now).session_id
    hops = _hops(tx, sender, command)
    count_sending(tx, sender, now)
    name = shared_id(tx, sender, now)
    tx.emit(MessageSent(name, sender, command.sessions, command.kind, command.subject))
    return DeliverMessage(
        id=name,
        from_session_id=sender,
        from_repository=command.from_repository,
        to=command.sessions,
        kind=command.kind,
        subject=command.subject,
        body=command.body,
        blob=command.blob,
        priority=command.priority,
        ttl_ms=command.ttl_ms,
        hops=hops,
        reply_to=command.reply_to,
    )


def deliver_message(tx: Transaction, command: DeliverMessage, now: int) -> SendReply:
    """Put a message from another repository into the inboxes of sessions, given by their full ids."""
    found = [tx.get(keys.session(name), Session) for name in command.to]
    present = [session for session in found if session is not None and not has_left(session)]
    if not present:
        raise Gone(f"session {', '.join(command.to)} has ended", hint="coord peers lists the sessions")
    message = msgspec.structs.replace(
        _content(command, now),
        id=command.id,
        from_session_id=command.from_session_id,
        from_repository=command.from_repository,
        hops=command.hops,
    )
    return send_to(tx, message, Recipients(present), now)


def _content(command: SendMessage | DeliverMessage, now: int) -> Message:
    return Message(
        sent_ms=now,
        kind=command.kind,
        subject=command.subject,
        body=command.body,
        blob=command.blob,
        priority=command.priority,
        reply_to=command.reply_to,
        expires_ms=now + (command.ttl_ms or TTL_MS),
    )


def send_to(tx: Transaction, message: Message, recipients: Recipients, now: int) -> SendReply:
    """Send a message to sessions: into their inboxes, or for several as one record that all of them read.

    An emergency always goes into the inboxes, because hooks must find it without a search.
    """
    sessions = recipients.sessions
    names = tuple(session.session_id for session in sessions)
    if message.kind == EMERGENCY or (len(names) == 1 and not recipients.everybody):
        message = _put_copies(tx, message, names, now)
    else:
        message = _put_broadcast(tx, message, names)
    tx.emit(_event(message, recipients, names))
    return SendReply(message.id, {session.session_id: alive(tx, session, now) for session in sessions})


def _event(message: Message, recipients: Recipients, names: tuple[str, ...]) -> Event:
    sender, kind, subject = message.from_session_id, message.kind, message.subject
    if recipients.group:
        return GroupMessageSent(message.id, sender, recipients.group, names, kind, subject)
    agent, role = recipients.agent, recipients.role
    if len(names) == 1:
        agent, role = recipients.sessions[0].agent, recipients.sessions[0].role
    return MessageSent(message.id, sender, names, kind, subject, agent, role, message.from_repository)


def _put_copies(tx: Transaction, message: Message, names: tuple[str, ...], now: int) -> Message:
    """Put a message into each inbox, under the same id."""
    if len(names) > 1 and not message.id:
        message = msgspec.structs.replace(message, id=shared_id(tx, message.from_session_id, now))
    room = tx.size + COPIES_BYTES_MAX
    tx.prefetch(*(key for name in names for key in (keys.mailbox(name), keys.session(name))))
    for name in names:
        waiting = mailbox_of(tx, name).pending
        if waiting >= PENDING_MAX:
            raise LimitReached(
                f"{waiting} messages wait for {name}",
                hint="it does not read its messages: check that session",
            )
        message = put_message(tx, message, name)
        if tx.size > room:
            raise LimitReached(f"the message is too long for {len(names)} sessions", hint="shorten its body")
    return message


def _put_broadcast(tx: Transaction, message: Message, names: tuple[str, ...]) -> Message:
    """Put one record for several sessions; each of them copies it into its inbox when it reads."""
    head = tx.get(keys.BROADCAST_HEAD, Broadcasts) or Broadcasts()
    number = head.newest + 1
    named = msgspec.structs.replace(
        message, id=message.id or f"{message.sent_ms}-b{number}", recipients=names
    )
    tx.put(keys.BROADCAST_HEAD, msgspec.structs.replace(head, newest=number))
    tx.put(keys.broadcast(number), named, keys.due(named.expires_ms))
    return named


def shared_id(tx: Transaction, sender: str, now: int) -> str:
    """Return an id for a message to several inboxes; its sender sends no other one with the same count."""
    return f"{now}-{keys.digest(f'{sender}/{now}/{mailbox_of(tx, sender).window_sent}')[:8]}"


def _everybody(tx: Transaction, sender: str, now: int, *, live_only: bool) -> list[Session]:
    others = [each for each in every_session(tx) if each.session_id != sender and not each.ended_ms]
    prefetch_evidence(tx, others)
    return [each for each in others if not (live_only and alive(tx, each, now) in SILENT)]


def _hops(tx: Transaction, sender: str, command: SendMessage) -> int:
    """Return how often a message was forwarded; refuse loops between automatic senders."""
    hops = command.hops
    if command.reply_to:
        answered = find_messages(tx, sender, (command.reply_to,)).get(command.reply_to)
        hops = max(hops, answered[1].hops + 1 if answered is not None else 1)
    if hops > HOPS_MAX:
        raise Refused(
            f"the message was forwarded {hops} times", hint="stop one side if automatic replies form a loop"
        )
    return hops


def count_sending(tx: Transaction, sender: str, now: int, *, broadcast: bool = False) -> None:
    """Count a message of a session; refuse one that exceeds the rate."""
    mailbox = mailbox_of(tx, sender)
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
