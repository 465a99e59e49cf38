"""Act on deadlines that have passed, by the kind of the record that has the deadline."""

from coord.core import keys
from coord.core.commands import Command, Reply
from coord.core.dispatch import TARGETS
from coord.core.ranges import Range
from coord.core.transaction import Transaction

SWEEP_MAX = 32
"""How many deadlines one command acts on."""


class SweepReply(Reply, frozen=True):
    """The number of deadlines acted on, the next one (None: there is none), and the entries trimmed."""

    passed: int
    next_ms: int | None = None
    trimmed: int = 0


class Sweep(Command, frozen=True):
    """Act on passed deadlines; the engine adds this to a batch when something may be due."""

    rule = "coord.core.sweep:sweep"
    prefetch_ranges = "coord.core.sweep:sweep_ranges"
    reply = SweepReply
    tenant: str
    limit: int


DEADLINES = {
    "pending-update": "coord.core.tasks.dependencies:update_remaining",
    "history": "coord.core.tasks.queries:forget_generation",
    "blob": "coord.core.tasks.chunks:remove_unreferenced",
    "lock": "coord.core.locks.expiry:lock_deadline",
    "wait": "coord.core.locks.expiry:request_deadline",
    "denied": "coord.core.locks.expiry:request_deadline",
    "deadlock": "coord.core.locks.deadlock:warning_deadline",
    "session": "coord.core.lifecycle.end:session_deadline",
    "inbox": "coord.core.messages.undelivered:message_deadline",
    "broadcast": "coord.core.messages.undelivered:broadcast_deadline",
    "token": "coord.core.tokens.tokens:token_deadline",
    "question": "coord.core.questions.questions:question_deadline",
}
"""The rule for the deadline of each kind of record, imported on first use."""
DELETED_WHEN_DUE = (
    "done",
    "rejected",
    "ended",
    "mailbox",
    "agent",
    "record",
    "lost",
    "lost-hook",
    "usage",
    "usage-state",
    "spent",
    "over-budget",
)
"""Kinds of records that are deleted at their deadline."""


def sweep(tx: Transaction, command: Sweep, now: int) -> SweepReply:
    """Act on up to `limit` deadlines; return how many, and the next one."""
    passed = 0
    after = ("", "")
    updated = False
    while page := tx.scan(keys.DUE_PREFIX, by="index_key", limit=command.limit, after=after):
        for found in page:
            deadline = keys.due_ms(found.index_key)
            if deadline > now or passed == command.limit:
                return SweepReply(passed, 0 if updated else deadline)
            after = (found.index_key, found.key)
            written = tx.writes.get(found.key)
            if written is not None and written.index_key != found.index_key:
                continue  # this sweep has ended it, or moved its deadline
            if found.key.startswith(keys.PENDING_UPDATE_PREFIX):
                if updated:
                    continue  # one of them is enough work for a sweep
                updated = True
            passed += _act_on_deadline(tx, command.tenant, found.key, now)
    return SweepReply(passed, 0 if updated else None)


def sweep_ranges(command: Sweep) -> list[Range]:
    """Return the range of deadlines."""
    return [Range(keys.DUE_PREFIX, "index_key", command.limit)]


def _act_on_deadline(tx: Transaction, tenant: str, key: str, now: int) -> bool:
    """Act on a deadline; return False for a kind that only a newer version knows."""
    kind, *rest = keys.parts(key)
    if kind == "task":
        from coord.core.tasks.commands import TaskCommand  # most sweeps find no claim

        TARGETS["coord.core.tasks.claims:expire"](tx, TaskCommand(tenant, *rest), now)
    elif kind in DEADLINES:
        TARGETS[DEADLINES[kind]](tx, key, now)
    elif kind in DELETED_WHEN_DUE:
        tx.delete(key)
    else:
        return False
    return True
