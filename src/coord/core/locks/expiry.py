"""End locks and drop requests whose time has expired or whose owner is gone."""

from coord.core import keys
from coord.core.dispatch import dispatch
from coord.core.locks.locks import (
    LockAt,
    compatible,
    end_by_time,
    end_lock,
    ended_by_death,
    ended_by_time,
    require_lock,
    resource_of,
)
from coord.core.locks.resources import Resource
from coord.core.locks.schema import EndReason, Lock, LockRequest, WaitState
from coord.core.locks.table import LockTable, RequestAt, conflicts_with, load_table, resources_of, waiters
from coord.core.locks.wait_queue import GONE, alive, drop_request, grant_waiters, prefetch_liveness
from coord.core.messages.inbox import notify
from coord.core.sessions.commands import DeclareDead
from coord.core.transaction import Transaction


def end_if_owner_gone(tx: Transaction, lock_at: LockAt, now: int) -> list[Resource]:
    """End a lock whose owner is dead or silent, if its profile allows it; return what was freed."""
    gone = ended_by_death(tx, lock_at.lock, now)
    if gone is None:
        return []
    end_reason, evidence = gone
    if end_reason is EndReason.OWNER_DEAD:
        return declare_dead(tx, lock_at.lock.owner, evidence, now)
    if end_reason is EndReason.EXPIRED:
        from coord.core.messages.quoting import quote_name  # noqa: PLC0415 - few locks expire

        subject = f"Your lock on {quote_name(lock_at.lock.resource)} has expired: {evidence}."
        notify(tx, lock_at.lock.owner, "warn", subject, now, {"resource": lock_at.lock.resource})
    return end_lock(tx, lock_at, end_reason, now, note=evidence)


def expire_blockers(tx: Transaction, table: LockTable, now: int) -> LockTable:
    """End overlapping locks that expired or whose owner is gone, and drop waiters that are gone.

    Return the table to decide on: the same one if nothing was freed.
    """
    freed: list[Resource] = []
    for wanted in table.wanted:
        for lock_at in wanted.overlapping:
            if freed and tx.get(lock_at.key, Lock) is None:
                continue  # it ended together with another lock
            if ended_by_time(lock_at.lock, now) is not None:
                freed += end_by_time(tx, lock_at, now)
            elif lock_at.lock.owner != table.request.session and not compatible(
                wanted.mode, lock_at.lock.mode
            ):
                freed += end_if_owner_gone(tx, lock_at, now)
    waiting = waiters(tx, resources_of(table.request)) if freed else table.waiting
    rivals = [each for each in waiting if conflicts_with(table.request, each.request)]
    prefetch_liveness(tx, [each.request for each in rivals])
    for each in rivals:
        if not alive(tx, each.request, now):
            drop_request(tx, each, GONE)
            freed += resources_of(each.request)
    if not freed:
        return table
    grant_waiters(tx, freed, now)
    return load_table(tx, table.request, now)


LOOK_AGAIN_MS = 30_000
"""The sweep checks a ticket past its lease again after this time while its owner lives."""


def lock_deadline(tx: Transaction, key: str, now: int) -> None:
    """End a lock whose deadline passed, or set the time at which the sweep checks it again."""
    lock = tx.get(key, Lock)
    if lock is None:
        return
    lock_at = LockAt(key, lock, resource_of(lock))
    freed = (
        end_by_time(tx, lock_at, now)
        if ended_by_time(lock, now) is not None
        else end_if_owner_gone(tx, lock_at, now)
    )
    if freed:
        grant_waiters(tx, freed, now)
    if tx.get(key, Lock) != lock:
        return  # it ended, and its owner may have got it again
    still_held = require_lock(tx, key)  # with its fence: rewriting the record changes its version
    tx.put(key, still_held, keys.due(now + LOOK_AGAIN_MS))


def request_deadline(tx: Transaction, key: str, now: int) -> None:
    """Drop a request that nobody waits for any more, or a denied request that has expired."""
    request = tx.get(key, LockRequest)
    if request is None:
        return
    in_queue = request.state is WaitState.WAITING and not request.denied
    if in_queue and alive(tx, request, now):
        return
    drop_request(tx, RequestAt(key, request), GONE)
    if in_queue:
        grant_waiters(tx, resources_of(request), now)


def declare_dead(tx: Transaction, session: str, evidence: str, now: int) -> list[Resource]:
    """End a dead session with everything it holds; return what was freed."""
    freed: list[Resource] = dispatch(tx, DeclareDead(session, evidence), now)
    return freed
