"""Holds whose time is over: the commit that notices writes their end down, and their owners are told."""

from coord.core.locks.locks import LockAt, end_lock, ended_by_death, ended_by_time
from coord.core.locks.resources import Resource
from coord.core.locks.schema import EndReason, Lock
from coord.core.locks.table import LockTable
from coord.core.messages.send import notify
from coord.core.transaction import Transaction


def end_by_time(tx: Transaction, lock_at: LockAt, now: int) -> list[Resource]:
    """End a hold whose deadline passed, and tell its owner; return what came free."""
    lock = lock_at.lock
    end_reason = ended_by_time(lock, now)
    assert end_reason is not None, f"{lock_at.key} has not ended"
    if end_reason is EndReason.EXPIRED:
        notify(
            tx,
            lock.owner,
            "warn",
            f"Your lock on {lock.resource} has expired.",
            now,
            {"resource": lock.resource},
        )
    elif end_reason is EndReason.PREEMPTED:
        subject = f"Your lock on {lock.resource} went to {lock.preempted_by}."
        notify(tx, lock.owner, "preempt", subject, now, {"resource": lock.resource})
    return end_lock(tx, lock_at, end_reason, now, by=lock.preempted_by)


def end_expired(tx: Transaction, table: LockTable, now: int) -> list[Resource]:
    """End the expired locks that overlap a grant, and return what was freed.

    The commit that grants writes their end. Otherwise a renewal decided in time could land after the grant.
    """
    freed: list[Resource] = []
    for wanted in table.wanted:
        for lock_at in wanted.overlapping:
            if ended_by_time(lock_at.lock, now) is not None and tx.get(lock_at.key, Lock) is not None:
                freed += end_by_time(tx, lock_at, now)
    return freed


def end_if_owner_gone(tx: Transaction, lock_at: LockAt, now: int) -> list[Resource]:
    """End a lock whose owner is dead or silent, if its profile allows it; return what was freed."""
    gone = ended_by_death(tx, lock_at.lock, now)
    if gone is None:
        return []
    end_reason, evidence = gone
    if end_reason is EndReason.OWNER_DEAD:
        from coord.core.lifecycle.end import declare_dead  # noqa: PLC0415 - it brings the rules of tasks along

        return declare_dead(tx, lock_at.lock.owner, evidence, now)
    return end_lock(tx, lock_at, end_reason, now, note=evidence)
