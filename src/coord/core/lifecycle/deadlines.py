"""What a deadline means for locks, requests in line, sessions and messages."""

from coord.core import keys
from coord.core.locks.expiry import end_by_time, end_if_owner_gone
from coord.core.locks.locks import LockAt, ended_by_time, read_lock, resource_of
from coord.core.locks.schema import Lock, LockRequest, WaitState
from coord.core.locks.table import RequestAt, resources_of
from coord.core.locks.wait_queue import alive, drop_request, grant_waiters
from coord.core.transaction import Transaction

LOOK_AGAIN_MS = 30_000
"""A ticket past its lease whose owner lives is looked at again after this time."""


def pass_hold(tx: Transaction, key: str, now: int) -> None:
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
    if tx.get(key, Lock) is not None:
        tx.put(key, _with_fence(tx, key, lock), keys.due(now + LOOK_AGAIN_MS))


def _with_fence(tx: Transaction, key: str, lock: Lock) -> Lock:
    """Return the hold as it may be rewritten: its fence was the version it has now."""
    fenced = read_lock(tx, key)
    return lock if fenced is None else fenced


def pass_request(tx: Transaction, key: str, now: int) -> None:
    request = tx.get(key, LockRequest)
    if request is None:
        return
    waiters = request.state is WaitState.WAITING and not request.denied
    if waiters and alive(tx, request, now):
        return
    drop_request(tx, RequestAt(key, request), "its process is gone or its time was up")
    if waiters:
        grant_waiters(tx, resources_of(request), now)
