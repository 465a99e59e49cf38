"""A command with an id runs once: the same id within an hour gets the same reply."""

from typing import Any

import msgspec

from coord.core import keys
from coord.core.dispatch import TARGETS, dispatch
from coord.core.errors import Invalid
from coord.core.records import Stored
from coord.core.transaction import Transaction
from coord.engine.pending import PendingCommand

KEPT_MS = 3_600_000


class SavedReply(Stored, frozen=True, tag=1):
    """The reply to a command id, and a digest of the command."""

    digest: str = ""
    reply: msgspec.Raw = msgspec.Raw(b"null")


def run_once(tx: Transaction, job: PendingCommand, now: int) -> Any:
    """Run a command, or return the reply that its id got before."""
    command = job.command
    if not job.command_id:
        return TARGETS[command.rule](
            tx, command, now
        )  # without a call of `dispatch`: most commands pass here
    key = keys.done(job.command_id)
    from hashlib import sha256  # slow to import, and most commands have no id

    digest = sha256(msgspec.json.encode(command.content())).hexdigest()
    before = tx.get(key, SavedReply)
    if before is not None and before.digest != digest:
        raise Invalid(
            f"command id {job.command_id!r} was used for another command",
            hint="use a new id for each command",
        )
    if before is not None:
        reply = msgspec.json.decode(before.reply, type=command.reply)
        return reply.with_fence(tx.version(key)) if command.fenced else reply
    reply = dispatch(tx, command, now)
    if tx.writes:
        tx.put(key, SavedReply(digest, msgspec.Raw(msgspec.json.encode(reply))), keys.due(now + KEPT_MS))
    return reply
