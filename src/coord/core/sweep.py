"""Passing deadlines: everything that stands in the due line is dealt with by the kind of its key."""

from coord.core import keys
from coord.core.commands import Command, Reply
from coord.core.dispatch import TARGETS
from coord.core.ranges import Range
from coord.core.transaction import Transaction

SWEEP_MAX = 32
"""How many due records one command passes."""


class SweepReply(Reply, frozen=True):
    """How many deadlines were passed, and when the next one is (None: there is none)."""

    passed: int
    next_ms: int | None = None


class Sweep(Command, frozen=True):
    """Pass deadlines: the engine adds one to a batch when something may be due."""

    rule = "coord.core.sweep:sweep"
    prefetch_ranges = "coord.core.sweep:sweep_ranges"
    reply = SweepReply
    tenant: str
    most: int


DEADLINES = {
    "pending-update": "coord.core.tasks.dependencies:update_remaining",
    "history": "coord.core.tasks.queries:forget_generation",
    "blob": "coord.core.tasks.chunks:remove_unreferenced",
    "lock": "coord.core.locks.expiry:lock_deadline",
    "wait": "coord.core.locks.expiry:request_deadline",
    "denied": "coord.core.locks.expiry:request_deadline",
    "session": "coord.core.lifecycle.end:session_deadline",
    "inbox": "coord.core.messages.undelivered:message_deadline",
    "broadcast": "coord.core.messages.undelivered:broadcast_deadline",
}
"""What passes the deadline of a kind; it is imported when there is one to pass."""
KEPT_FOR_A_TIME = ("done", "rejected", "ended", "deadlock", "mailbox", "agent", "record", "lost", "lost-hook")
"""Kinds of records that are simply not needed any more when their time is up."""


def sweep(tx: Transaction, command: Sweep, now: int) -> SweepReply:
    """Pass up to `most` deadlines; return how many, and when the next one is."""
    passed = 0
    after = ("", "")
    updated = False
    while page := tx.scan(keys.DUE_PREFIX, by="index_key", limit=command.most, after=after):
        for found in page:
            deadline = keys.due_ms(found.index_key)
            if deadline > now or passed == command.most:
                return SweepReply(passed, 0 if updated else deadline)
            after = (found.index_key, found.key)
            if found.key.startswith(keys.PENDING_UPDATE_PREFIX):
                if updated:
                    continue  # one of them is work enough
                updated = True
            passed += _pass_deadline(tx, command.tenant, found.key, now)
    return SweepReply(passed, 0 if updated else None)


def sweep_ranges(command: Sweep) -> list[Range]:
    """Return where deadlines stand."""
    return [Range(keys.DUE_PREFIX, "index_key", command.most)]


def _pass_deadline(tx: Transaction, tenant: str, key: str, now: int) -> bool:
    """Do what a deadline means for this kind of record; False for a kind that only a newer version knows."""
    kind, *rest = keys.parts(key)
    if kind == "task":
        from coord.core.tasks.commands import TaskCommand  # most sweeps meet no claim

        TARGETS["coord.core.tasks.claims:expire"](tx, TaskCommand(tenant, *rest), now)
    elif kind in DEADLINES:
        TARGETS[DEADLINES[kind]](tx, key, now)
    elif kind in KEPT_FOR_A_TIME:
        tx.delete(key)
    else:
        return False
    return True
