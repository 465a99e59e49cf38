"""Take a lock from its holder: steal it by the rules or by force, or ask the holder to release it."""

from collections.abc import Sequence

import msgspec

from coord.core import keys
from coord.core.errors import Invalid, NotFound, NotStealable, Refused
from coord.core.locks.commands import LockReply, Outcome, PreemptLock, PreemptReply, StealLock
from coord.core.locks.expiry import declare_dead
from coord.core.locks.locks import (
    LockAt,
    conflicting,
    deadline_key,
    end_lock,
    ended_by_time,
    lock_info,
    overlapping_locks,
    projects_nest,
    read_lock,
    refuse_if_stopped,
    requester_of,
    require_lock,
)
from coord.core.locks.resources import REQUEST_RESOURCES_MAX, Resource, parse_resources
from coord.core.locks.schema import (
    PROFILES,
    EndReason,
    Guard,
    Lock,
    LockRequest,
    PreemptionAsked,
    PreemptionWithdrawn,
)
from coord.core.locks.table import blocking_locks, load_table
from coord.core.locks.wait_queue import end_expired, grant_request, grant_waiters
from coord.core.messages.inbox import notify
from coord.core.messages.quoting import quote, quote_name, quote_names
from coord.core.sessions.identify import ensure_session
from coord.core.sessions.liveness import evidence_of, thresholds_of
from coord.core.sessions.schema import Session
from coord.core.settings import settings_of
from coord.core.transaction import Transaction

NAMES_MAX = 3
STEAL_AGE_MS = 600_000
"""A lock younger than this is never stolen under the strict rule (LCK-50)."""


def steal_lock(tx: Transaction, command: StealLock, now: int) -> LockReply:
    """End the blocking locks, if each may be stolen; grant the request of the thief, or those that wait."""
    if command.force and not command.reason:
        raise Invalid("--force requires --reason", hint="--force --reason 'why'")
    thief = ensure_session(tx, command.caller, now)
    refuse_if_stopped(tx, thief)
    nested = projects_nest(tx, command.resources)
    resources = parse_resources(
        command.resources, command.repository, REQUEST_RESOURCES_MAX, command.exact, nested
    )
    request = LockRequest(
        session=thief.session_id,
        agent=thief.agent,
        repository=command.repository,
        resources=tuple(resource.text for resource in resources),
        ttl_ms=command.ttl_ms,
        reason=command.reason,
        since_ms=now,
        exact=tuple(resource.text for resource in resources if resource.exact),
        nested=nested,
    )
    for resource in resources:
        tx.get(resource.guard, Guard)
    table = load_table(tx, request, now, waiting=())
    blocking = {lock_at.key: lock_at for lock_at in blocking_locks(table, now)}
    if not blocking:
        raise _not_locked(resources)
    fences = {key: require_lock(tx, key).fence for key in blocking}
    if command.fence and command.fence not in fences.values():
        holder = next(iter(blocking.values())).lock
        raise NotStealable(
            f"the lock with fence {command.fence} has ended; "
            f"{quote_name(holder.resource)} is with {holder.owner}",
            hint="see coord locks, and decide again",
        )
    if command.fence and command.release:  # the others keep theirs: nobody gets the resource
        blocking = {key: lock_at for key, lock_at in blocking.items() if fences[key] == command.fence}
    notes = {key: _may_steal(tx, lock_at, command, now) for key, lock_at in blocking.items()}
    freed: list[Resource] = []
    for key, lock_at in blocking.items():
        if tx.get(key, Lock) is None:
            continue
        owner = lock_at.lock.owner
        freed += end_lock(tx, lock_at, EndReason.STOLEN, now, by=thief.session_id, note=notes[key])
        why = f"by force: {quote(command.reason)}" if command.force else notes[key]
        subject = f"{thief.session_id} took your lock on {quote_name(lock_at.lock.resource)}: {why}"
        notify(tx, owner, "preempt", subject, now, {"resource": lock_at.lock.resource})
        if command.dead_owner:
            freed += declare_dead(tx, owner, notes[key], now)
    if command.release:
        grant_waiters(tx, freed, now)
        return LockReply(Outcome.GRANTED)
    table = load_table(tx, request, now, waiting=())
    if expired := end_expired(tx, table, now):
        freed += expired
        table = load_table(tx, request, now, waiting=())
    locks = grant_request(tx, table, now)
    grant_waiters(tx, freed, now)  # everything else that was freed
    return LockReply(Outcome.GRANTED, [lock_info(lock, now) for lock in locks], after_loss=True)


def _may_steal(tx: Transaction, lock_at: LockAt, command: StealLock, now: int) -> str:
    """Return why a lock may be stolen; refuse with what is missing if it may not."""
    lock = lock_at.lock
    if command.force:
        return f"by force: {command.reason}"
    owner = tx.get(keys.session(lock.owner), Session)
    gone = owner is None or owner.ended_ms > 0
    evidence = None if owner is None or gone else evidence_of(tx, owner)
    dead = evidence is not None and evidence.refutes
    if command.dead_owner:
        if gone or dead:
            return evidence.detail if evidence is not None else f"session {lock.owner} has ended"
        known = evidence.detail if evidence is not None else "no process known"
        raise NotStealable(
            f"{lock.owner} is not proven dead ({known})",
            hint="wait until the strict rule allows it, or --force --reason 'why'",
        )
    if settings_of(tx).steal_policy == "dead_or_expired":
        if dead or gone:
            return f"its owner is gone: {evidence.detail if evidence is not None else lock.owner}"
        if now >= lock.expires_ms:
            return f"its lease has expired {(now - lock.expires_ms) // 1000} s ago"
        raise NotStealable(
            f"{quote_name(lock.resource)} of {lock.owner} may not be stolen: its owner is not proven dead, "
            f"and its lease lasts {(lock.expires_ms - now) // 1000} s more",
            hint="wait for one of both, or --force --reason 'why'",
        )
    silent_ms = 0 if owner is None else now - owner.beat_ms
    missing = []
    stale_ms = thresholds_of(tx).stale_ms
    if not (gone or dead or silent_ms >= stale_ms):
        missing.append(f"its owner was active {silent_ms // 1000} s ago (needs {stale_ms // 1000})")
    if now < lock.expires_ms:
        missing.append(f"its lease lasts {(lock.expires_ms - now) // 1000} s more")
    if now < lock.acquired_ms + STEAL_AGE_MS:
        missing.append(f"it is {(now - lock.acquired_ms) // 1000} s old (needs {STEAL_AGE_MS // 1000})")
    if missing:
        raise NotStealable(
            f"{quote_name(lock.resource)} of {lock.owner} may not be stolen: {'; '.join(missing)}",
            hint="--dead-owner if its process has died; --force --reason 'why' otherwise",
        )
    return "its owner is stale, its lease has expired, and it is old enough"


def _not_locked(resources: Sequence[Resource]) -> NotFound:
    names = quote_names([each.text.removeprefix("file:") for each in resources], NAMES_MAX)
    return NotFound(f"nobody else holds {names} now", hint="coord lock takes it")


def preempt_lock(tx: Transaction, command: PreemptLock, now: int) -> PreemptReply:
    """Ask holders of lower priority to release their locks; after the grace time the locks are revoked."""
    asking = ensure_session(tx, command.caller, now)
    refuse_if_stopped(tx, asking)
    if not command.reason:
        raise Invalid("preempt requires --reason", hint="--reason 'why'")
    requester = requester_of(tx, asking.session_id)
    asked: list[str] = []
    deadlines: list[int] = []
    nested = projects_nest(tx, command.resources)
    resources = parse_resources(
        command.resources, command.repository, REQUEST_RESOURCES_MAX, command.exact, nested
    )
    for resource in resources:
        tx.get(resource.guard, Guard)
        for lock_at in conflicting(
            requester, PROFILES[resource.kind].mode, overlapping_locks(tx, resource), now
        ):
            lock = read_lock(tx, lock_at.key)
            assert lock is not None, f"{lock_at.key} was just read"
            if lock.priority >= command.priority:
                raise Refused(
                    f"{quote_name(lock.resource)} is held by {lock.owner} with priority {lock.priority}",
                    hint=f"only a priority above {lock.priority} can preempt it",
                )
            if not lock.preempted_by:
                ask_back(tx, lock_at, asking.session_id, quote(command.reason), now + command.grace_ms, now)
                asked.append(lock.owner)
            deadlines.append(lock.preempt_ms if lock.preempted_by else now + command.grace_ms)
    if not deadlines:
        raise _not_locked(resources)
    return PreemptReply(sorted(set(asked)), max(deadlines))


def ask_back(tx: Transaction, lock_at: LockAt, by: str, reason: str, until_ms: int, now: int) -> None:
    """Ask a holder to release a lock for the session `by`; it ends at `until_ms` at the latest."""
    lock = require_lock(tx, lock_at.key)
    marked = msgspec.structs.replace(lock, preempted_by=by, preempt_ms=until_ms)
    assert ended_by_time(marked, now) is None or until_ms <= now, "it ends at the end of its grace"
    tx.put(lock_at.key, marked, deadline_key(marked))
    tx.emit(PreemptionAsked(lock.resource, lock.owner, by, reason, until_ms))
    within_s = (until_ms - now) // 1000
    subject = f"{by} needs {quote_name(lock.resource)} ({reason}): release it within {within_s} s"
    notify(tx, lock.owner, "preempt", subject, now, {"resource": lock.resource, "until_ms": until_ms})


def withdraw_ask(tx: Transaction, key: str, by: str, until_ms: int, now: int) -> None:
    """Let a holder keep a lock that was asked back, unless it has ended or others ask for it, too."""
    lock = read_lock(tx, key)
    if lock is None or now >= until_ms or (lock.preempted_by, lock.preempt_ms) != (by, until_ms):
        return
    kept = msgspec.structs.replace(lock, preempted_by="", preempt_ms=0)
    tx.put(key, kept, deadline_key(kept))
    tx.emit(PreemptionWithdrawn(lock.resource, lock.owner, by))
    subject = f"{by} no longer asks for {quote_name(lock.resource)}: keep it"
    notify(tx, lock.owner, "preempt", subject, now, {"resource": lock.resource})
