"""The wait queue: requests that wait for locks, and the grants they get.

A tenant has one queue, in the order of `enqueued − weight · priority`. A high priority is a head
start and not a right of way, so every request gets through in the end (linear aging, fixed when the
wait begins). A request is granted when it conflicts with no lock and with no request ahead of it.
The commit that frees a lock checks this (`grant_waiters`), so nobody can slip in between.

A hand-off is provisional until the waiting process confirms it. If that process has died, the lock
expires and the next waiter gets it. A *denied request* is one that did not wait: the deadlock
search sees it and the holder is notified, but it is never granted and blocks nobody.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from coord.core import keys
from coord.core.identity import ProcessState
from coord.core.locks.locks import (
    LockAt,
    deadline_key,
    end_by_time,
    end_lock,
    ended_by_time,
    grant,
    read_lock,
    record_end,
    touch_guard,
)
from coord.core.locks.resources import Resource
from coord.core.locks.schema import (
    PROFILES,
    EndedLock,
    EndReason,
    Lock,
    LockRequest,
    LockWithdrawn,
    SessionWaits,
    TaskWait,
    WaitEnded,
    WaitState,
)
from coord.core.locks.table import (
    LockTable,
    RequestAt,
    WantedLock,
    blocking_locks,
    conflicts_with,
    exceeds,
    load_table,
    of_people,
    parsed,
    prefetch_locks,
    resources_of,
    stop_of,
    waiters,
    widens,
)
from coord.core.locks.uses import with_use
from coord.core.sessions.commands import GrantAllWaiters, IsWaiting
from coord.core.sessions.identify import ancestors, mark_parent
from coord.core.sessions.liveness import evidence_of
from coord.core.sessions.schema import Session
from coord.core.transaction import Transaction

AGING_MS = 60_000
"""The waiting time that equals one step of priority."""
CONFIRM_MS = 15_000
LEASE_MS = 15_000
DENIED_KEPT_MS = 60_000
BELOW_MAX = 256
"""How many waiting sub-agents a session lists for the deadlock search."""
GRANTED_BYTES_MAX = 256 * 1024
PREFETCH_MAX = 32
GONE = "its process is gone or its wait time is over"


def rank_of(request: LockRequest) -> int:
    """Return the rank of a request: the smallest is granted first."""
    return max(0, request.since_ms - AGING_MS * request.priority)


def effective_priority(request: LockRequest | TaskWait, now: int) -> int:
    """Return the priority of a request, raised by one for every minute it has waited."""
    return request.priority + max(0, now - request.since_ms) // AGING_MS


def _deadline_key(request: LockRequest) -> str:
    """Return the index key of a request: the end of its wait time or of its lease."""
    if request.denied:
        return keys.due(request.renewed_ms + DENIED_KEPT_MS)
    lease_ms = request.renewed_ms + LEASE_MS if request.leased else request.until_ms
    return keys.due(min(request.until_ms, lease_ms))


def put_request(tx: Transaction, key: str, request: LockRequest) -> None:
    """Write a request, and add it to the requests of its session."""
    if tx.get(key, LockRequest) is None:
        waits = tx.get(keys.waits(request.session), SessionWaits) or SessionWaits()
        put_waits(tx, request.session, msgspec.structs.replace(waits, keys=(*waits.keys, key)))
        if not request.denied:
            _count_waiter(tx, request, 1)
    tx.put(key, request, _deadline_key(request))


def leave_queue(tx: Transaction, waiting: RequestAt, state: WaitState, **loss: Any) -> None:
    """Take a request out of the wait queue; its record stays for its process to read, with any loss."""
    _forget_wait(tx, waiting)
    _count_waiter(tx, waiting.request, -1)
    done = msgspec.structs.replace(waiting.request, state=state, **loss)
    tx.put(waiting.key, done, keys.due(max(done.until_ms, done.renewed_ms) + CONFIRM_MS))
    tx.emit(WaitEnded(done.resources, done.session, state, keys.wait_id(waiting.key)))


def drop_request(tx: Transaction, waiting: RequestAt, reason: str) -> None:
    """Delete a request; if it was in the wait queue, an event gives the reason."""
    tx.delete(waiting.key)
    if waiting.request.state is not WaitState.WAITING:
        return
    _forget_wait(tx, waiting)
    if not waiting.request.denied:
        _count_waiter(tx, waiting.request, -1)
        names = (waiting.request.resources, waiting.request.session)
        tx.emit(LockWithdrawn(*names, reason, keys.wait_id(waiting.key)))


def is_waiting(tx: Transaction, command: IsWaiting, _now: int) -> bool:
    """Whether a session waits in the queue for exactly these resources."""
    waits = tx.get(keys.waits(command.session), SessionWaits)
    requests = [tx.get(key, LockRequest) for key in waits.keys] if waits is not None else []
    return any(
        request is not None and not request.denied and request.resources == command.resources
        for request in requests
    )


def _forget_wait(tx: Transaction, waiting: RequestAt) -> None:
    session = waiting.request.session
    waits = tx.get(keys.waits(session), SessionWaits) or SessionWaits()
    left = tuple(other for other in waits.keys if other != waiting.key)
    put_waits(tx, session, msgspec.structs.replace(waits, keys=left))


def put_waits(tx: Transaction, session: str, waits: SessionWaits) -> None:
    """Write what a session waits for; its ancestors list it while it waits."""
    before = tx.get(keys.waits(session), SessionWaits)
    waits_now = bool(waits.keys or waits.task)
    _put_waits(tx, session, waits)
    if waits_now == (before is not None and bool(before.keys or before.task)):
        return
    for name in ancestors(tx, session):
        above = tx.get(keys.waits(name), SessionWaits) or SessionWaits()
        below = tuple(other for other in above.below if other != session)
        below = (*below, session)[-BELOW_MAX:] if waits_now else below
        _put_waits(tx, name, msgspec.structs.replace(above, below=below))


def forget_task_wait(tx: Transaction, session: str) -> bool:
    """Forget that a session waits for a task; return whether it did."""
    waits = tx.get(keys.waits(session), SessionWaits)
    if waits is None or waits.task is None:
        return False
    put_waits(tx, session, msgspec.structs.replace(waits, task=None))
    return True


def _put_waits(tx: Transaction, session: str, waits: SessionWaits) -> None:
    if waits.keys or waits.below or waits.task:
        tx.put(keys.waits(session), waits)
    else:
        tx.delete(keys.waits(session))


def _count_waiter(tx: Transaction, request: LockRequest, by: int) -> None:
    spaces = {resource.guard: resource for resource in resources_of(request)}
    for guard in sorted(spaces):
        touch_guard(tx, spaces[guard], waiters=by)


def prefetch_liveness(tx: Transaction, requests: Sequence[LockRequest | TaskWait]) -> None:
    """Prefetch what `alive` reads for each request, so that the rule is not restarted once per request."""
    tx.prefetch(*(keys.session(request.session) for request in requests))
    sessions = [tx.get(keys.session(request.session), Session) for request in requests]
    processes = [session.process for session in sessions if session is not None and not session.ended_ms]
    processes += [request.process for request in requests if not request.leased]
    tx.evidence(*(process for process in processes if process is not None))


def alive(tx: Transaction, request: LockRequest | TaskWait, now: int) -> bool:
    """Whether a process still waits for this request, and its session is not proven dead."""
    session = tx.get(keys.session(request.session), Session)
    if now >= request.until_ms or session is None or session.ended_ms:
        return False
    evidence = evidence_of(tx, session)
    if evidence is not None and evidence.life is ProcessState.DEAD:
        return False
    if request.leased:
        return now < request.renewed_ms + LEASE_MS
    return request.process is None or tx.evidence(request.process)[0].life is not ProcessState.DEAD


def _overlaps(request: LockRequest, freed: list[Resource]) -> bool:
    """Whether a request may profit from freed resources, whatever lock it would be merged with."""
    paths = parsed(request.resources, request.repository, (), request.nested)
    return any(mine.overlaps(free) for mine in paths for free in freed)


def grant_waiters(tx: Transaction, freed: list[Resource], now: int) -> None:
    """Grant freed resources to the waiters whose turn it is, and drop the waiters that are gone."""
    while freed:
        freed = _grant_waiters_once(tx, freed, now)


def _grant_waiters_once(tx: Transaction, freed: list[Resource], now: int) -> list[Resource]:
    """Go through the wait queue once; return what was freed by ending expired locks.

    A release must never fail. So a waiter for which this commit has no room is granted when it next confirms.
    While a person has stopped all agents, their requests keep their places and get nothing.
    """
    ahead: list[LockRequest] = []
    expired: list[Resource] = []
    queue = waiters(tx, freed)
    if queue and stop_of(tx) is not None:
        queue = of_people(tx, queue)
    affected = [waiting.request for waiting in queue if _overlaps(waiting.request, freed)]
    prefetch_liveness(tx, affected)
    _prefetch_grants(tx, affected)
    room = tx.size + GRANTED_BYTES_MAX
    for waiting in queue:
        request = waiting.request
        if tx.size > room:
            break
        if not _overlaps(request, freed):
            ahead.append(request)
        elif not alive(tx, request, now):
            drop_request(tx, waiting, GONE)
            freed = freed + resources_of(request)
        elif any(conflicts_with(request, other) for other in ahead):
            ahead.append(request)
        else:
            table = load_table(tx, request, now, waiting=())
            if blocking_locks(table, now):
                ahead.append(request)
                continue
            leave_queue(tx, waiting, WaitState.GRANTED)
            if ended := end_expired(tx, table, now):
                expired += ended
                table = load_table(tx, request, now, waiting=())
            grant_request(tx, table, now, provisional=True)
            freed = freed + resources_of(request)  # it is ahead of nobody now: its sub-agents may go on
    return expired


def grant_all_waiters(tx: Transaction, _command: GrantAllWaiters, now: int) -> None:
    """Grant what is free to those who waited while all agents were stopped, in their order."""
    found: list[LockRequest] = []
    for page in tx.pages(keys.WAIT_PREFIX):
        found += [request for entry in page if (request := tx.get(entry.key, LockRequest)) is not None]
    wanted = {resource.prefix: resource for request in found for resource in resources_of(request)}
    grant_waiters(tx, list(wanted.values()), now)


def _prefetch_grants(tx: Transaction, requests: list[LockRequest]) -> None:
    """Prefetch the tables of the next grants, so that the rule is not restarted once per grant."""
    likely: list[LockRequest] = []
    for request in requests:
        if len(likely) == PREFETCH_MAX:
            break
        if not any(conflicts_with(request, other) for other in likely):
            likely.append(request)
    prefetch_locks(tx, likely, guards=False)


def grant_request(tx: Transaction, table: LockTable, now: int, *, provisional: bool = False) -> list[Lock]:
    """Grant everything a request asks for; nothing blocks it."""
    return [_grant_one(tx, table, wanted, now, provisional) for wanted in table.wanted]


def _grant_one(tx: Transaction, table: LockTable, wanted: WantedLock, now: int, provisional: bool) -> Lock:
    request, resource, mode = table.request, wanted.resource, wanted.mode
    profile = request.profile or resource.kind
    ttl_ms = request.ttl_ms or PROFILES[profile].ttl_ms
    key = resource.lock_key(request.session)
    before = read_lock(tx, key)
    ended = None if before is None else ended_by_time(before, now)
    if before is not None and ended is not None:
        end_lock(tx, LockAt(key, before, resource), ended, now)
        before = None
    same = before is not None and not exceeds(before, resource, mode)
    if before is not None and same and provisional and not before.provisional:
        return _add_use(tx, key, before, request.use)  # a confirmed lock does not become provisional
    under = "" if before is None else before.under
    if before is not None and widens(before, resource):  # work done under its fence stays valid
        record_end(tx, key, EndedLock(lock=before, until_ms=now, end_reason=EndReason.RELEASED), now)
    if before is None or widens(before, resource):
        under = _lender(tx, table.requester.above, wanted.overlapping, now)
    lock = msgspec.structs.replace(
        before or Lock(),
        resource=resource.text if before is None else before.resource,  # of several spellings, the first
        repository=request.repository,
        owner=request.session,
        agent=request.agent,
        profile=profile,
        ttl_ms=ttl_ms,
        expires_ms=now + (CONFIRM_MS if provisional else ttl_ms),
        reason=request.reason or (before.reason if before is not None else ""),
        priority=request.priority,
        preemptible=request.preemptible,
        provisional=provisional,
        worktree=request.worktree,
        under=under,
        nested=resource.nested,
        uses=with_use(before, request.use),
        progress_ms=request.progress_ms,
    )
    if before is not None and before.uses != (request.use,):
        lock = _with_terms_of_both(lock, before)
    if not same:
        lock = msgspec.structs.replace(lock, mode=mode, exact=resource.exact, acquired_ms=now, fence=0)
    return grant(tx, resource, lock, refreshed=same, waited_ms=now - request.since_ms)


def _add_use(tx: Transaction, key: str, lock: Lock, use: str) -> Lock:
    if use not in lock.uses:
        lock = msgspec.structs.replace(lock, uses=with_use(lock, use))
        tx.put(key, lock, deadline_key(lock))
    return lock


def _with_terms_of_both(lock: Lock, before: Lock) -> Lock:
    """Return a lock that is needed for two things: the longer lease and the higher priority count."""
    patient = not lock.progress_ms or not before.progress_ms
    return msgspec.structs.replace(
        lock,
        ttl_ms=max(lock.ttl_ms, before.ttl_ms),
        expires_ms=max(lock.expires_ms, before.expires_ms),
        priority=max(lock.priority, before.priority),
        preemptible=lock.preemptible and before.preemptible,
        worktree=lock.worktree or before.worktree,
        progress_ms=0 if patient else max(lock.progress_ms, before.progress_ms),
    )


def _lender(tx: Transaction, above: tuple[str, ...], overlapping: list[LockAt], now: int) -> str:
    """Return the nearest ancestor that has an overlapping lock: the new lock ends with that one."""
    owners = set()
    for lock_at in overlapping if above else ():
        if lock_at.lock.owner in above and ended_by_time(lock_at.lock, now) is None:
            tx.version(lock_at.key)  # wait for a grant of this batch: the later fence must be larger
            owners.add(lock_at.lock.owner)
    lender = next((ancestor for ancestor in above if ancestor in owners), "")
    if lender:
        mark_parent(tx, lender)
    return lender


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
