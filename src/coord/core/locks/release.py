"""Release and renew locks."""

import msgspec

from coord.core.errors import LockLost, NotFound, NotOwner, Refused
from coord.core.locks.commands import (
    NamedLocksCommand,
    ReleaseLocks,
    ReleaseReply,
    RenewLocks,
    RenewReply,
)
from coord.core.locks.locks import (
    LockAt,
    deadline_key,
    end_uses,
    ended_by_time,
    lock_info,
    locks_of,
    overlapping_locks,
    read_lock,
    require_lock,
    resource_of,
)
from coord.core.locks.queries import unheld_readings
from coord.core.locks.resources import NAMED_RESOURCES_MAX, Resource, parse_resources
from coord.core.locks.schema import EndReason, Guard, Lock, LockRenewed
from coord.core.locks.uses import claims_using, is_claim
from coord.core.locks.wait_queue import grant_waiters
from coord.core.sessions.identify import ensure_session
from coord.core.transaction import Transaction


def release_locks(tx: Transaction, command: ReleaseLocks, now: int) -> ReleaseReply:
    """Release the named locks, all or none; the same commit grants them to waiters.

    A lock that a claim needs stays. To name one that nothing else needs is a mistake, which is refused.
    """
    session = ensure_session(tx, command.caller, now)
    locks_at = own_locks(tx, command, session.session_id, now, command.fence, despite_loss=True)
    for lock_at in locks_at if command.resources else ():
        _check_use(lock_at.lock, command.use)
    freed: list[Resource] = []
    released: list[str] = []
    kept: list[str] = []
    for lock_at in locks_at:
        ended = [command.use] if command.use else [use for use in lock_at.lock.uses if not is_claim(use)]
        freed += end_uses(tx, lock_at, ended, EndReason.RELEASED, now)
        gone = tx.get(lock_at.key, Lock) is None
        (released if gone else kept).append(lock_at.lock.resource)
    grant_waiters(tx, freed, now)
    return ReleaseReply(released, kept)


def renew_locks(tx: Transaction, command: RenewLocks, now: int) -> RenewReply:
    """Renew the leases of locks, all or none: refused if one is lost or promised to another session."""
    session = ensure_session(tx, command.caller, now)
    renewed_locks = []
    for lock_at in own_locks(tx, command, session.session_id, now, command.fence):
        lock = lock_at.lock
        if lock.preempted_by:
            raise LockLost(
                f"{lock.preempted_by} was promised {lock.resource}",
                hint="finish, release it (coord unlock), and ask for it again",
            )
        ttl_ms = command.ttl_ms or lock.ttl_ms
        expires_ms = now + ttl_ms
        if claims_using(lock):  # a claim does not outlive its locks
            expires_ms = max(expires_ms, lock.expires_ms)
        renewed = msgspec.structs.replace(lock, ttl_ms=ttl_ms, expires_ms=expires_ms)
        tx.put(lock_at.key, renewed, deadline_key(renewed))
        tx.emit(LockRenewed(lock.resource, lock.owner, lock.fence, renewed.expires_ms))
        renewed_locks.append(lock_info(renewed, now))
    return RenewReply(renewed_locks)


def _check_use(lock: Lock, use: str) -> None:
    """Refuse to release a use that has ended, or a lock that only claims need."""
    if use and use not in lock.uses:
        raise LockLost(f"{lock.resource} was locked again since", hint="coord locks shows what holds it")
    if not use and all(map(is_claim, lock.uses)):
        _, task_id, _ = claims_using(lock)[0]
        raise Refused(
            f"{lock.resource} belongs to the claim of {task_id}",
            hint=f"it ends with the claim: coord task done {task_id}, or coord task release {task_id}",
        )


def own_locks(
    tx: Transaction,
    command: NamedLocksCommand,
    session: str,
    now: int,
    fence: int = 0,
    *,
    despite_loss: bool = False,
) -> list[LockAt]:
    """Return the named locks, or all; refuse unless the session holds every one of them.

    Of a text that means several resources, the session needs those that it has ever locked with the others;
    `despite_loss`, one of them is enough.
    """
    if not command.resources:
        return [
            LockAt(lock_at.key, require_lock(tx, lock_at.key), lock_at.resource)
            for lock_at in locks_of(tx, session)
            if ended_by_time(lock_at.lock, now) is None
        ]
    resources = parse_resources(command.resources, command.repository, NAMED_RESOURCES_MAX)
    tx.prefetch(*(resource.lock_key(session) for resource in resources))
    unheld = unheld_readings(tx, command, resources, session, now, despite_loss=despite_loss)
    return [_own_one(tx, each, session, fence, now) for each in resources if each.prefix not in unheld]


def _own_one(tx: Transaction, resource: Resource, session: str, fence: int, now: int) -> LockAt:
    key = resource.lock_key(session)
    lock = read_lock(tx, key)
    if lock is None:
        tx.get(resource.guard, Guard)  # the refusal relies on absence
        others = [
            lock_at.lock
            for lock_at in overlapping_locks(tx, resource)
            if lock_at.resource.prefix == resource.prefix and ended_by_time(lock_at.lock, now) is None
        ]
        if others:
            raise NotOwner(
                f"{resource.text} is held by {others[0].owner}, not by {session}",
                hint="only its owner can release it; coord steal takes it from an owner that is gone",
            )
        raise NotFound(f"nobody holds {resource.text}", hint="coord locks lists the locks")
    if fence and fence != lock.fence:
        raise LockLost(
            f"{resource.text} is held under fence {lock.fence}, not {fence}",
            hint="it was granted again since",
        )
    if ended_by_time(lock, now) is not None:
        raise LockLost(f"the lock on {resource.text} has expired", hint="ask for it again (coord lock)")
    return LockAt(key, lock, resource_of(lock))
