"""How far a follower has read the log: entries that it has not read are not trimmed, up to a bound.

See `engine/trim.py`.
"""

from coord.core import keys
from coord.core.commands import Command
from coord.core.records import Stored
from coord.core.transaction import Transaction


class Cursor(Stored, frozen=True, tag=1):
    """The newest offset that a follower has read, and when it said so."""

    offset: int = 0
    at_ms: int = 0


class SetCursor(Command, frozen=True):
    """Record how far a follower has read; with `offset` -1, forget the follower. The reply is the offset."""

    rule = "coord.core.log_cursor:set_cursor"
    reply = int
    name: str
    offset: int


def set_cursor(tx: Transaction, command: SetCursor, now: int) -> int:
    """Move the cursor of a follower forwards, or delete it."""
    key = keys.cursor(command.name)
    if command.offset < 0:
        tx.delete(key)
        return command.offset
    before = tx.get(key, Cursor)
    offset = max(command.offset, before.offset if before is not None else 0)
    tx.put(key, Cursor(offset, now))
    return offset
