"""Holds whose time is over: the commit that notices writes their end down, and their owners are told."""

from collections.abc import Iterable

from coord.core.locks.locks import LockAt, end_lock, ended_by_time, overlapping_locks
from coord.core.locks.resources import Resource
from coord.core.locks.schema import EndReason, Lock
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


def end_expired(tx: Transaction, resources: Iterable[Resource], now: int) -> list[Resource]:
    """End what time has ended in the way of a grant: the commit that passes a hold over writes its end.

    Else a renewal that was decided in time could still land after the grant. Return what came free.
    """
    freed: list[Resource] = []
    for resource in resources:
        for lock_at in list(overlapping_locks(tx, resource)):
            if ended_by_time(lock_at.lock, now) is not None and tx.get(lock_at.key, Lock) is not None:
                freed += end_by_time(tx, lock_at, now)
    return freed
