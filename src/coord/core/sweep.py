"""Passing deadlines: everything that stands in the due line is dealt with by the kind of its key."""

from coord.core import keys
from coord.core.commands import Sweep, TaskCommand
from coord.core.dispatch import imported
from coord.core.ranges import Range
from coord.core.replies import SweepReply
from coord.core.transaction import Transaction

DEADLINES = {
    "unsettled": "tasks.dependencies.update_remaining",
    "history": "tasks.queries.forget_generation",
    "blob": "tasks.chunks.remove_unheld",
    "lock": "lifecycle.deadlines.pass_hold",
    "wait": "lifecycle.deadlines.pass_request",
    "denied": "lifecycle.deadlines.pass_request",
    "session": "lifecycle.deadlines.pass_session",
    "inbox": "lifecycle.deadlines.pass_message",
    "broadcast": "messages.message.return_broadcast",
}
"""What passes the deadline of a kind; it is imported when there is one to pass."""
KEPT_FOR_A_TIME = ("done", "rejected", "ended", "deadlock", "mailbox", "agent", "record", "lost", "lost-hook")
"""Kinds of records that are simply not needed any more when their time is up."""


def sweep(tx: Transaction, command: Sweep, now: int) -> SweepReply:
    """Pass up to `most` deadlines; return how many, and when the next one is."""
    passed = 0
    after = ("", "")
    settled = False
    while page := tx.scan(keys.DUE_PREFIX, by="index_key", limit=command.most, after=after):
        for found in page:
            deadline = keys.due_ms(found.index_key)
            if deadline > now or passed == command.most:
                return SweepReply(passed, 0 if settled else deadline)
            after = (found.index_key, found.key)
            if found.key.startswith(keys.UNSETTLED_PREFIX):
                if settled:
                    continue  # one of them is work enough
                settled = True
            passed += _pass_deadline(tx, command.tenant, found.key, now)
    return SweepReply(passed, 0 if settled else None)


def sweep_ranges(command: Sweep) -> list[Range]:
    """Return where deadlines stand."""
    return [Range(keys.DUE_PREFIX, "index_key", command.most)]


def _pass_deadline(tx: Transaction, tenant: str, key: str, now: int) -> bool:
    """Do what a deadline means for this kind of record; False for a kind that only a newer version knows."""
    kind, *rest = keys.parts(key)
    if kind == "task":
        imported("tasks.claims.expire")(tx, TaskCommand(tenant, *rest), now)
    elif kind in DEADLINES:
        imported(DEADLINES[kind])(tx, key, now)
    elif kind in KEPT_FOR_A_TIME:
        tx.delete(key)
    else:
        return False
    return True
