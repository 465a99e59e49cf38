"""Log what became of reactions, send their messages, and log what people decide about those that failed."""

from coord.core.messages.commands import SendReply
from coord.core.messages.inbox import SYSTEM, TTL_MS
from coord.core.messages.recipients import find_recipients
from coord.core.messages.schema import Message
from coord.core.messages.send import send_to
from coord.core.reactions.commands import DecideReaction, NoteReactions, SendReactionMessage
from coord.core.reactions.schema import ReactionDecided
from coord.core.sessions.identify import ensure_session, name_of_person
from coord.core.transaction import Transaction

KIND = "reaction"
"""The kind of messages that reactions send."""


def note_reactions(tx: Transaction, command: NoteReactions, _now: int) -> int:
    """Emit the outcomes of reactions."""
    events = (*command.ran, *command.failed, *command.dropped, *command.refused)
    for event in events:
        tx.emit(event)
    return len(events)


def send_reaction_message(tx: Transaction, command: SendReactionMessage, now: int) -> SendReply:
    """Send a message whose sender is the system."""
    message = Message(
        from_session_id=SYSTEM,
        sent_ms=now,
        kind=KIND,
        subject=f"[System] {command.subject}",
        body=command.body,
        blob={"reaction": command.reaction},
        hops=command.hops,
        expires_ms=now + TTL_MS,
    )
    return send_to(tx, message, find_recipients(tx, command.to, SYSTEM, now), now)


def decide_reaction(tx: Transaction, command: DecideReaction, now: int) -> bool:
    """Log a decision; the follower finds it there, whichever process runs it."""
    caller, decision = command.caller, "retry" if command.retry else "drop"
    if caller.session or not caller.token:
        session = ensure_session(tx, caller, now)
        tx.emit(ReactionDecided(command.id, decision, session.session_id, session.agent))
    else:  # the origin of the event names who decided
        tx.emit(ReactionDecided(command.id, decision, "", name_of_person(caller)))
    return True
