"""Send a message to one session, or to all that are registered."""

import msgspec

from coord.core import keys
from coord.core.errors import Gone, LimitReached, Refused
from coord.core.messages.commands import SendMessage, SendReply
from coord.core.messages.inbox import PENDING_MAX, TTL_MS, find_messages, mailbox_of, put_message
from coord.core.messages.schema import Broadcasts, Message, MessageSent
from coord.core.sessions.identify import ensure_session
from coord.core.sessions.liveness import evidence_of, liveness
from coord.core.sessions.queries import every_session, find_peer
from coord.core.sessions.schema import Liveness, Session
from coord.core.transaction import Transaction

RATE_WINDOW_MS = 60_000
RATE_MAX, RATE_BROADCASTS_MAX = 120, 10
HOPS_MAX = 8


def send_message(tx: Transaction, command: SendMessage, now: int) -> SendReply:
    """Send a message to one session, or to all others that have not ended."""
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
        raise Gone(f"session {to} has ended", hint="coord peers lists the sessions")
    mailbox = mailbox_of(tx, to)
    if mailbox.pending >= PENDING_MAX:
        raise LimitReached(
            f"{mailbox.pending} messages wait for {to}",
            hint="it does not read its messages: check that session",
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


def _count_sending(tx: Transaction, sender: str, now: int, *, broadcast: bool) -> None:
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
