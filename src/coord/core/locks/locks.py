"""The rules of a single lock: what it excludes, and how it begins and ends.

A session has one record per locked resource. The *fence* of a lock is the offset of the commit that
granted it. A later grant of anything that overlaps has a larger fence, so a holder that was away
cannot prove anything.

Two locks exclude each other if their resources overlap, unless both only read, or one belongs to an
ancestor of the other's session. A sub-agent works under the lock of its parent, and its own lock
ends with that one.

A deadline acts when it passes: rules ask `ended_by_time`, whether or not a sweep has recorded the
end. Every change to a lock writes the guard of its space, and every refusal reads it, so a decision
that relies on the absence of a lock is safe.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from coord.core import keys
from coord.core.dispatch import dispatch
from coord.core.identity import ProcessState
from coord.core.locks.commands import EndClaimOfLock, LockCommand, LockInfo
from coord.core.locks.resources import Resource, parse_resource, prefetch_keys
from coord.core.locks.schema import (
    LOST,
    EndedLock,
    EndReason,
    Expiry,
    Guard,
    Lock,
    LockAcquired,
    LockEnded,
    LockRef,
    LockRenewed,
    LockRequest,
    LostHookLock,
    Mode,
    SessionWaits,
)
from coord.core.locks.uses import claims_using, expiry_of, without_uses
from coord.core.messages.inbox import notify
from coord.core.messages.quoting import quote_name
from coord.core.ranges import Range
from coord.core.sessions.changes import next_change
from coord.core.sessions.identify import ancestors, caller_reads
from coord.core.sessions.liveness import evidence_of, thresholds_of
from coord.core.sessions.schema import Session
from coord.core.settings import held_work
from coord.core.transaction import PAGE, Found, Transaction

ENDED_LOCK_KEPT_MS = 90 * 24 * 3600 * 1000
LOST_HOOK_LOCK_KEPT_MS = 24 * 3600 * 1000


FINISHED_STATES = ("completed", "failed")
"""The states of a session that end its file claims."""
LOSS_KEPT_MS = 24 * 3600 * 1000
"""A new holder is warned for this time about edits that a lost lock may have left."""
GRANTS_MAX = 10_000
"""How many later locks are read; beyond that, `SOMEBODY` counts as the holder of the resource."""
SOMEBODY = "somebody"


class LockAt(NamedTuple):
    """A lock with its key and its resource."""

    key: str
    lock: Lock
    resource: Resource


def lock_reads(command: LockCommand) -> list[str]:
    """Return the keys that a command about locks is going to read."""
    reads, session = caller_reads(command), command.caller.session
    for resource in prefetch_keys(command.resources, command.repository):
        lock_key = resource.lock_key(session)
        reads += resource.guard, lock_key
        if not command.reads_only:  # the index is only written; its name takes a digest
            reads.append(keys.session_lock(session, lock_key))
    return [*reads, keys.waits(session), keys.HELD_WORK]


def refuse_if_stopped(tx: Transaction, session: Session) -> None:
    """Refuse a new lock to an agent while a person has stopped all agents."""
    if found := held_work(tx, person=session.person):
        from coord.core.messages.work_mode import refuse_stopped  # noqa: PLC0415 - hardly ever

        refuse_stopped(found)


def lock_ranges(command: LockCommand) -> list[Range]:
    """Return the ranges with every lock that may block a command."""
    resources = prefetch_keys(command.resources, command.repository)
    return [Range(prefix, "key", PAGE) for resource in resources for prefix in resource.ranges]


def resource_of(lock: Lock) -> Resource:
    """Return the resource of a lock."""
    return parse_resource(lock.resource, lock.repository, lock.exact, lock.nested)[0]


def projects_nest(tx: Transaction, texts: Iterable[str]) -> bool:
    """Whether a request names a project or an area, and projects cover their areas."""
    if not any(text.startswith("project:") for text in texts):
        return False
    from coord.core.settings import settings_of  # noqa: PLC0415 - few requests name a project

    return settings_of(tx).project_lock_nesting == "on"


def read_lock(tx: Transaction, key: str) -> Lock | None:
    """Return a lock with its fence, or None."""
    lock = tx.get(key, Lock)
    if lock is None or lock.fence:
        return lock
    return msgspec.structs.replace(lock, fence=tx.version(key))


def require_lock(tx: Transaction, key: str) -> Lock:
    """Return a lock that was just listed, with its fence."""
    lock = read_lock(tx, key)
    assert lock is not None, f"{key} was just listed"
    return lock


def overlapping_locks(tx: Transaction, resource: Resource) -> Iterator[LockAt]:
    """Yield every lock that overlaps a resource, including expired ones."""
    tx.prefetch(prefixes=resource.ranges)
    for prefix in resource.ranges:
        for page in tx.pages(prefix):
            for found in page:
                lock_at = read_lock_at(tx, found.key)
                if resource.overlaps(lock_at.resource):
                    yield lock_at


def read_lock_at(tx: Transaction, key: str) -> LockAt:
    """Return the lock that a scan has just found."""
    lock = tx.get(key, Lock)
    assert lock is not None, f"{key} was just scanned"
    return LockAt(key, lock, resource_of(lock))


def ended_by_time(lock: Lock, now: int) -> EndReason | None:
    """Return the reason for which a passed deadline has ended a lock, or None."""
    if lock.preempted_by and now >= lock.preempt_ms:
        return EndReason.PREEMPTED
    if now < lock.expires_ms:
        return None
    if lock.provisional:
        return EndReason.LAPSED
    return EndReason.EXPIRED if expiry_of(lock) is Expiry.AUTO else None


def end_ms(lock: Lock, end_reason: EndReason, now: int) -> int:
    """Return when a lock ended: a deadline ends it when it passes, not when a rule notices."""
    if end_reason is EndReason.PREEMPTED:
        return min(now, lock.preempt_ms)
    if end_reason is EndReason.EXPIRED and expiry_of(lock) is Expiry.SWEEP:
        return now  # it lasted until the sweep
    return min(now, lock.expires_ms) if end_reason in (EndReason.EXPIRED, EndReason.LAPSED) else now


def ended_by_death(tx: Transaction, lock: Lock, now: int) -> tuple[EndReason, str] | None:
    """Return the reason, with evidence, for which a dead or silent owner has lost a lock, or None."""
    expiry = expiry_of(lock)
    if expiry is Expiry.STEAL_ONLY and not lock.progress_ms:
        return None
    tx.prefetch(keys.session(lock.owner), keys.SETTINGS)
    owner = tx.get(keys.session(lock.owner), Session)
    idle_ms = _idle_ms(tx, lock, owner, now) if owner is not None and not owner.ended_ms else 0
    if idle_ms:
        return EndReason.EXPIRED, f"its owner made no progress for {idle_ms // 1000} s"
    if expiry is Expiry.STEAL_ONLY:
        return None
    if owner is None or owner.ended_ms:
        return EndReason.SESSION_ENDED, f"session {lock.owner} has ended"
    evidence = evidence_of(tx, owner)
    if evidence is not None and evidence.life is ProcessState.DEAD:
        return EndReason.OWNER_DEAD, evidence.detail
    known_alive = evidence is not None and evidence.life is ProcessState.ALIVE
    if expiry is Expiry.PID_CHECKED and now - owner.beat_ms >= thresholds_of(tx).suspect_ms:
        end_reason = EndReason.OWNER_SILENT if known_alive else EndReason.OWNER_DEAD
        return end_reason, f"no heartbeat for {(now - owner.beat_ms) // 1000} s"
    if expiry is Expiry.PID_CHECKED and now >= lock.expires_ms and not known_alive:
        return EndReason.EXPIRED, "its lease has expired, and nothing shows that its owner is alive"
    if expiry is Expiry.SWEEP and owner.state in FINISHED_STATES:
        return EndReason.SESSION_ENDED, f"session {lock.owner} has {owner.state}"
    if expiry is Expiry.SWEEP and now >= lock.expires_ms:
        return EndReason.EXPIRED, f"its time was over {(now - lock.expires_ms) // 1000} s ago"
    return None


def _idle_ms(tx: Transaction, lock: Lock, owner: Session, now: int) -> int:
    """Return for how long the owner made no progress; 0 if the progress timeout has not passed.

    A heartbeat, a renewal and a tool call under way are progress. A session that waits in the queue sends
    heartbeats too, but makes none: this is what ends a deadlock that no search can see.
    """
    from coord.core.settings import settings_of  # noqa: PLC0415 - only a blocking lock is looked at

    timeout_ms = lock.progress_ms or settings_of(tx).progress_timeout_seconds * 1000
    called = any(until_ms > now for until_ms in owner.calls.values())
    if not timeout_ms or called or lock.provisional:
        return 0
    waits = tx.get(keys.waits(lock.owner), SessionWaits)
    requests = [tx.get(key, LockRequest) for key in (waits.keys if waits is not None else ())]
    waiting = [each.since_ms for each in requests if each is not None and not each.denied]
    idle_ms = now - max(lock.expires_ms - lock.ttl_ms, min([owner.beat_ms, *waiting]))
    return idle_ms if idle_ms >= timeout_ms else 0


def prefetch_owners(tx: Transaction, locks_at: Iterable[LockAt]) -> None:
    """Prefetch what `ended_by_death` reads for each lock, so that the rule does not read once per owner."""
    owners = {
        lock_at.lock.owner: keys.session(lock_at.lock.owner)
        for lock_at in locks_at
        if expiry_of(lock_at.lock) is not Expiry.STEAL_ONLY
    }
    tx.prefetch(*owners.values())
    sessions = [tx.get(key, Session) for key in owners.values()]
    processes = [session.process for session in sessions if session is not None and not session.ended_ms]
    tx.evidence(*(process for process in processes if process is not None))


def compatible(one: Mode, other: Mode) -> bool:
    """Whether overlapping locks may have these modes."""
    return one is Mode.READ and other is Mode.READ


class Requester(msgspec.Struct, frozen=True):
    """The session that requests a lock, and its ancestors."""

    session: str
    above: tuple[str, ...]


def requester_of(tx: Transaction, session: str) -> Requester:
    """Return the session with its ancestors."""
    return Requester(session, tuple(ancestors(tx, session)))


def conflicting(requester: Requester, mode: Mode, overlapping: Iterable[LockAt], now: int) -> list[LockAt]:
    """Return those of the overlapping locks that exclude a lock in this mode now."""
    return [lock_at for lock_at in overlapping if excludes(requester, mode, lock_at.lock, now)]


def excludes(requester: Requester, mode: Mode, lock: Lock, now: int) -> bool:
    """Whether an overlapping lock excludes a lock in this mode now."""
    return (
        lock.owner != requester.session
        and lock.owner not in requester.above
        and not compatible(mode, lock.mode)
        and ended_by_time(lock, now) is None
    )


def grant(
    tx: Transaction, resource: Resource, lock: Lock, *, refreshed: bool = False, waited_ms: int = 0
) -> Lock:
    """Write a lock and its event; one that is only refreshed keeps its index entry and its guard."""
    key = resource.lock_key(lock.owner)
    tx.put(key, lock, deadline_key(lock))
    if refreshed:
        tx.emit(LockRenewed(lock.resource, lock.owner, lock.fence, lock.expires_ms))
        return lock
    tx.put(keys.session_lock(lock.owner, key), LockRef(key=key))
    touch_guard(tx, resource, owner=lock.owner)
    names = (lock.resource, lock.owner, lock.agent, lock.mode.value)
    tx.emit(LockAcquired(*names, lock.expires_ms, lock.reason, waited_ms))
    return lock


def deadline_key(lock: Lock) -> str:
    """Return the index key of a lock: the next time at which the sweep has to check it."""
    deadlines = [lock.preempt_ms] if lock.preempted_by else []
    if lock.provisional or expiry_of(lock) is not Expiry.STEAL_ONLY:
        deadlines.append(lock.expires_ms)
    if lock.progress_ms:
        deadlines.append(lock.expires_ms - lock.ttl_ms + lock.progress_ms)
    return keys.due(min(deadlines)) if deadlines else ""


def end_lock(
    tx: Transaction,
    lock_at: LockAt,
    end_reason: EndReason,
    now: int,
    *,
    by: str = "",
    note: str = "",
    ended_uses: Collection[str] = (),
) -> list[Resource]:
    """End a lock with what depends on it, and return what was freed.

    The locks that sub-agents of its owner have under it end too, and so do the claims that need it, with all
    their locks, except claims in `ended_uses`. A lock that ended together with another one is left alone.
    """
    lock = read_lock(tx, lock_at.key)
    if lock is None:
        return []
    end_reason = ended_by_time(lock, now) or end_reason  # a passed deadline has ended it earlier
    until_ms = end_ms(lock, end_reason, now)
    tx.delete(lock_at.key)
    tx.delete(keys.session_lock(lock.owner, lock_at.key))
    lost_ms = until_ms if end_reason in LOST else 0
    touch_guard(tx, lock_at.resource, lost_ms=lost_ms, owner=lock.owner)
    record_end(
        tx, lock_at.key, EndedLock(lock=lock, until_ms=until_ms, end_reason=end_reason, by=by, note=note), now
    )
    if lock.worktree and end_reason in LOST:
        tx.put(
            keys.lost_hook_lock(lock.owner, lock_at.key),
            LostHookLock(fence=lock.fence),
            keys.due(now + LOST_HOOK_LOCK_KEPT_MS),
        )
    freed = [lock_at.resource]
    owner = tx.get(keys.session(lock.owner), Session)
    if owner is None or owner.children:
        for child in list(overlapping_locks(tx, lock_at.resource)):
            if child.lock.under == lock.owner and not _lent_on(tx, child, now):
                freed += end_lock(tx, child, EndReason.PARENT_ENDED, until_ms, by=by)
    for claim in claims_using(lock, ended_uses):
        freed += dispatch(tx, EndClaimOfLock(*claim, lock.resource, lock.fence, end_reason.value, by), now)
    return freed


def end_uses(
    tx: Transaction, lock_at: LockAt, uses: Collection[str], end_reason: EndReason, now: int
) -> list[Resource]:
    """End some uses of a lock, and the lock itself if no other is left; return what was freed."""
    lock = read_lock(tx, lock_at.key)
    if lock is None:
        return []
    left = without_uses(lock, uses)
    if left is None:
        return end_lock(tx, lock_at, end_reason, now, ended_uses=uses)
    tx.put(lock_at.key, left, deadline_key(left))
    return []


def record_end(tx: Transaction, key: str, ended: EndedLock, now: int) -> None:
    """Record that a lock has ended: its fence proves nothing new from now on."""
    lock = ended.lock
    tx.put(
        keys.ended_lock(resource_of(lock).space, lock.fence, key), ended, keys.due(now + ENDED_LOCK_KEPT_MS)
    )
    held_s = (ended.until_ms - lock.acquired_ms) / 1000
    names = (lock.resource, lock.owner, lock.agent, lock.fence, ended.end_reason.value)
    tx.emit(LockEnded(*names, ended.until_ms, held_s, ended.by, ended.note))


def granted_since(tx: Transaction, resource: Resource, fence: int) -> Iterator[Lock]:
    """Yield the overlapping locks that were granted after a fence, those on record first."""
    for lock_at in overlapping_locks(tx, resource):
        lock = read_lock(tx, lock_at.key)
        if lock is not None and lock.fence > fence:
            yield lock
    yield from ended_since(tx, resource, fence, GRANTS_MAX)


def ended_since(tx: Transaction, resource: Resource, fence: int, limit: int) -> Iterator[Lock]:
    """Yield the overlapping locks that were granted after a fence and have ended.

    After `limit` locks that may not overlap, it yields one of `SOMEBODY` and stops: doubt counts as taken.
    """
    seen, prefix = 0, keys.ended_lock_prefix(resource.space)
    for page in tx.pages(prefix, after=("", f"{prefix}{fence:016d}/~")):
        tx.prefetch(*(found.key for found in page))
        for found in page:
            ended = tx.get(found.key, EndedLock)
            if ended is not None and resource.overlaps(resource_of(ended.lock)):
                yield ended.lock
        seen += len(page)
        if seen >= limit:
            yield Lock(owner=SOMEBODY, fence=fence + 1)
            return


def _lent_on(tx: Transaction, child: LockAt, now: int) -> bool:
    """Whether the lock of a sub-agent is also under another lock of the same ancestor."""
    return any(
        lock_at.lock.owner == child.lock.under and ended_by_time(lock_at.lock, now) is None
        for lock_at in overlapping_locks(tx, child.resource)
    )


def touch_guard(
    tx: Transaction, resource: Resource, waiters: int = 0, lost_ms: int = 0, owner: str = ""
) -> None:
    """Write the guard of a space; count requests that begin or stop to wait, and locks of an owner."""
    guard = tx.get(resource.guard, Guard) or Guard()
    lost_ms = max(guard.lost_ms, lost_ms)
    counted = next_change(guard, owner) if owner else {}
    changed = msgspec.structs.replace(guard, waiters=guard.waiters + waiters, lost_ms=lost_ms, **counted)
    tx.put_late(resource.guard, changed)


def after_loss(tx: Transaction, resources: Iterable[Resource], now: int) -> bool:
    """Whether a lock in these spaces was lost recently, so that unfinished edits may be left."""
    guards = [tx.get(key, Guard) for key in sorted({resource.guard for resource in resources})]
    return any(guard is not None and now - guard.lost_ms < LOSS_KEPT_MS for guard in guards)


def locks_of(tx: Transaction, session: str) -> list[LockAt]:
    """Return all locks of a session."""
    return [each for page in tx.pages(keys.session_lock_prefix(session)) for each in listed_locks(tx, page)]


def listed_locks(tx: Transaction, page: Iterable[Found]) -> list[LockAt]:
    """Return the locks that a page of a session's index lists."""
    return [LockAt(key, lock, resource_of(lock)) for key, lock in _listed(tx, page)]


def held_locks(tx: Transaction, session: str) -> list[tuple[str, Lock]]:
    """Return all locks of a session with their keys; their fences may be missing (`read_lock`)."""
    return [each for page in tx.pages(keys.session_lock_prefix(session)) for each in _listed(tx, page)]


def _listed(tx: Transaction, page: Iterable[Found]) -> list[tuple[str, Lock]]:
    indexes = [index for entry in page if (index := tx.get(entry.key, LockRef)) is not None]
    tx.prefetch(*(index.key for index in indexes))  # together: one by one, each would restart the rule
    return [(index.key, lock) for index in indexes if (lock := tx.get(index.key, Lock)) is not None]


def claims_of(lock: Lock) -> list[str]:
    """Return the tasks whose claims need a lock."""
    return [task_id for _, task_id, _ in claims_using(lock)]


def lock_info(lock: Lock, now: int, *, refreshed: bool = False, waiters: Sequence[str] = ()) -> LockInfo:
    """Return a lock as its owner and others see it."""
    ends = min(lock.expires_ms, lock.preempt_ms) if lock.preempted_by else lock.expires_ms
    return LockInfo(
        resource=lock.resource,
        mode=lock.mode.value,
        fence=lock.fence,
        owner=lock.owner,
        agent=lock.agent,
        acquired_ms=lock.acquired_ms,
        expires_ms=lock.expires_ms,
        expires_in_s=max(0, ends - now) / 1000,
        profile=lock.profile,
        reason=lock.reason,
        priority=lock.priority,
        scope=lock.resource.partition(":")[0],
        refreshed=refreshed,
        provisional=lock.provisional,
        preempted_by=lock.preempted_by,
        worktree=lock.worktree,
        exact=lock.exact,
        waiters=list(waiters),
        uses=lock.uses,
    )


def _named(resource: str) -> str:
    """Return a lock in the words of the founding documents: `file lock on src/a.py`."""
    kind, _, name = resource.partition(":")
    return f"file lock on {quote_name(name)}" if kind == "file" else f"lock on {quote_name(resource)}"


def end_by_time(tx: Transaction, lock_at: LockAt, now: int) -> list[Resource]:
    """End a lock whose deadline passed, and notify its owner; return what was freed."""
    lock = lock_at.lock
    end_reason = ended_by_time(lock, now)
    assert end_reason is not None, f"{lock_at.key} has not ended"
    if end_reason is EndReason.EXPIRED:
        notify(
            tx,
            lock.owner,
            "warn",
            f"Your {_named(lock.resource)} has expired.",
            now,
            {"resource": lock.resource},
        )
    elif end_reason is EndReason.PREEMPTED:
        subject = f"Your lock on {quote_name(lock.resource)} went to {lock.preempted_by}."
        notify(tx, lock.owner, "preempt", subject, now, {"resource": lock.resource})
    return end_lock(tx, lock_at, end_reason, now, by=lock.preempted_by)
