"""Commands with an id are carried out once: asked again within the hour, they get the same reply."""

from typing import Any

import msgspec

from coord.core import keys
from coord.core.dispatch import TARGETS, dispatch
from coord.core.errors import Invalid
from coord.core.records import Stored
from coord.core.transaction import Transaction
from coord.engine.pending import PendingCommand

KEPT_MS = 3_600_000


class Done(Stored, frozen=True, tag=1):
    """The reply that a command id was given, and a digest of what was asked."""

    digest: str = ""
    reply: msgspec.Raw = msgspec.Raw(b"null")


def run_once(tx: Transaction, job: PendingCommand, now: int) -> Any:
    """Decide a command, or return the reply that its id was given before."""
    command = job.command
    if not job.command_id:
        return TARGETS[command.rule](
            tx, command, now
        )  # without a call of `dispatch`: most commands pass here
    key = keys.done(job.command_id)
    from hashlib import sha256  # slow to import, and most commands have no id

    digest = sha256(msgspec.json.encode(command.content())).hexdigest()
    before = tx.get(key, Done)
    if before is not None and before.digest != digest:
        raise Invalid(
            f"command id {job.command_id!r} was used for another command",
            hint="draw a new id for each command",
        )
    if before is not None:
        reply = msgspec.json.decode(before.reply, type=command.reply)
        return reply.with_fence(tx.version(key)) if command.fenced else reply
    reply = dispatch(tx, command, now)
    if tx.writes:
        tx.put(key, Done(digest, msgspec.Raw(msgspec.json.encode(reply))), keys.due(now + KEPT_MS))
    return reply
