"""Commands about reactions: the API of the follower that performs them."""

from coord.core.commands import Command, SessionCommand
from coord.core.messages.commands import SendReply
from coord.core.reactions.schema import ReactionDropped, ReactionFailed, ReactionRan, ReactionRefused


class NoteReactions(Command, frozen=True):
    """Log what became of reactions. The reply is the number of events."""

    rule = "coord.core.reactions.outcomes:note_reactions"
    reply = int
    ran: tuple[ReactionRan, ...] = ()
    failed: tuple[ReactionFailed, ...] = ()
    dropped: tuple[ReactionDropped, ...] = ()
    refused: tuple[ReactionRefused, ...] = ()


class SendReactionMessage(Command, frozen=True, kw_only=True):
    """Send a message of coord itself, in nobody's name, to those whom an address means."""

    rule = "coord.core.reactions.outcomes:send_reaction_message"
    reply = SendReply
    to: str
    subject: str
    body: str = ""
    reaction: str
    hops: int = 0


class DecideReaction(SessionCommand, frozen=True, kw_only=True):
    """Have a failed delivery tried again, or dropped; the process that runs reactions does it."""

    rule = "coord.core.reactions.outcomes:decide_reaction"
    reply = bool
    id: str
    retry: bool
