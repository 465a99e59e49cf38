"""The line: requests for locks that wait their turn, and bids of those that did not wait.

One line per tenant, in the order of `enqueued − weight · priority`: a high priority is a head start, not a
right of way for ever, so whoever waits long enough gets through (linear aging, fixed when the wait begins).
A request is granted when it conflicts with no holder and with nobody ahead of it. That is looked at in the
very commit that frees something (`grant_waiters`), so nobody can slip in between.

A hand-off is provisional until the process that waits confirms it; if it died meanwhile, the hold lapses and
the next one is served. A *bid* is a request that was refused and went away: the deadlock search sees it and
the holder is told, but it is never granted and stands in nobody's way.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from coord.core import keys
from coord.core.identity import ProcessState
from coord.core.locks.expiry import end_expired
from coord.core.locks.locks import (
    LockAt,
    Requester,
    compatible,
    conflicts,
    end_lock,
    ended_by_time,
    grant,
    overlapping_locks,
    read_lock,
    record_end,
    requester_of,
    touch_guard,
)
from coord.core.locks.resources import Resource, parse_resource
from coord.core.locks.schema import (
    PROFILES,
    EndedLock,
    EndReason,
    Guard,
    Lock,
    LockRequest,
    LockWithdrawn,
    Mode,
    SessionWaits,
    WaitState,
)
from coord.core.sessions.identify import mark_parent
from coord.core.sessions.liveness import evidence_of
from coord.core.sessions.schema import Session
from coord.core.transaction import Transaction

AGING_MS = 60_000
"""One step of priority is worth so long a wait."""
CONFIRM_MS = 15_000
LEASE_MS = 15_000
DENIED_KEPT_MS = 60_000
SERVED_BYTES_MAX = 256 * 1024
FORESEEN_MAX = 32
GONE = "its process is gone or its time was up"


class RequestAt(NamedTuple):
    """A request where it stands."""

    key: str
    request: LockRequest


def resources_of(request: LockRequest) -> list[Resource]:
    """Return what a request asks for."""
    return list(_parsed(request.resources, request.repository, request.exact))


@lru_cache(maxsize=1024)
def _parsed(texts: tuple[str, ...], repository: str, exact: tuple[str, ...]) -> tuple[Resource, ...]:
    return tuple(each for text in texts for each in parse_resource(text, repository, text in exact))


def mode_of(request: LockRequest, resource: Resource) -> Mode:
    """Return the mode that a request means for a resource."""
    return request.mode or PROFILES[request.profile or resource.kind].mode


def rank_of(request: LockRequest) -> int:
    """Return the turn of a request: smaller is sooner."""
    return max(0, request.since_ms - AGING_MS * request.priority)


def effective_priority(request: LockRequest, now: int) -> int:
    """Return the priority of a request, one step more for each that it waited."""
    return request.priority + max(0, now - request.since_ms) // AGING_MS


def deadline_key(request: LockRequest) -> str:
    """Return the deadline of a request: its patience, or its lease."""
    if request.denied:
        return keys.due(request.renewed_ms + DENIED_KEPT_MS)
    lease_ms = request.renewed_ms + LEASE_MS if request.leased else request.until_ms
    return keys.due(min(request.until_ms, lease_ms))


def waiters(tx: Transaction, resources: Iterable[Resource]) -> list[RequestAt]:
    """Return the requests that wait, in order; none where the guards of these spaces say so."""
    guards = [tx.get(key, Guard) for key in sorted({resource.guard for resource in resources})]
    if not any(guard.waiters for guard in guards if guard is not None):
        return []
    found: list[RequestAt] = []
    for page in tx.pages(keys.WAIT_PREFIX):
        for entry in page:
            request = tx.get(entry.key, LockRequest)
            if request is not None and request.state is WaitState.WAITING:
                found.append(RequestAt(entry.key, request))
    return found


def conflicts_with(one: LockRequest, other: LockRequest) -> bool:
    """Whether two requests exclude each other."""
    return one.session != other.session and _exclude(_wanted(one), _wanted(other))


def _wanted(request: LockRequest) -> tuple[Any, ...]:
    return (request.resources, request.repository, request.exact), request.mode, request.profile


@lru_cache(maxsize=16_384)  # a long line is gone through again and again, and each look may be 64 × 64
def _exclude(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether what two requests ask for meets, unless both only read."""
    mine, theirs = (
        [(resource, mode or PROFILES[profile or resource.kind].mode) for resource in _parsed(*named)]
        for named, mode, profile in (one, other)
    )
    return any(a.overlaps(b) and not compatible(x, y) for a, x in mine for b, y in theirs)


def put_request(tx: Transaction, key: str, request: LockRequest) -> None:
    """Write a request, and where a deadlock search finds it."""
    if tx.get(key, LockRequest) is None:
        waits = tx.get(keys.waits(request.session), SessionWaits) or SessionWaits()
        tx.put(keys.waits(request.session), msgspec.structs.replace(waits, keys=(*waits.keys, key)))
        if not request.denied:
            _count_waiter(tx, request, 1)
    tx.put(key, request, deadline_key(request))


def leave_queue(tx: Transaction, waiting: RequestAt, state: WaitState, cycle: tuple[str, ...] = ()) -> None:
    """Take a request out of the line; what became of it stays for its process to read."""
    _forget_wait(tx, waiting)
    _count_waiter(tx, waiting.request, -1)
    done = msgspec.structs.replace(waiting.request, state=state, cycle=cycle)
    tx.put(waiting.key, done, keys.due(max(done.until_ms, done.renewed_ms) + CONFIRM_MS))


def drop_request(tx: Transaction, waiting: RequestAt, reason: str) -> None:
    """Forget a request that waits no more; `reason` is told where it was still in line."""
    tx.delete(waiting.key)
    if waiting.request.state is not WaitState.WAITING:
        return
    _forget_wait(tx, waiting)
    if not waiting.request.denied:
        _count_waiter(tx, waiting.request, -1)
        tx.emit(LockWithdrawn(waiting.request.resources, waiting.request.session, reason))


def _forget_wait(tx: Transaction, waiting: RequestAt) -> None:
    key = keys.waits(waiting.request.session)
    waits = tx.get(key, SessionWaits) or SessionWaits()
    left = tuple(other for other in waits.keys if other != waiting.key)
    if left:
        tx.put(key, msgspec.structs.replace(waits, keys=left))
    else:
        tx.delete(key)


def _count_waiter(tx: Transaction, request: LockRequest, by: int) -> None:
    spaces = {resource.guard: resource for resource in resources_of(request)}
    for guard in sorted(spaces):
        touch_guard(tx, spaces[guard], waiters=by)


def prefetch_liveness(tx: Transaction, requests: list[LockRequest]) -> None:
    """Ask together for what `alive` reads of each: a rule that asks one by one begins anew each time."""
    tx.prefetch(*(keys.session(request.session) for request in requests))
    sessions = [tx.get(keys.session(request.session), Session) for request in requests]
    processes = [session.process for session in sessions if session is not None and not session.ended_ms]
    processes += [request.process for request in requests if not request.leased]
    tx.evidence(*(process for process in processes if process is not None))


def alive(tx: Transaction, request: LockRequest, now: int) -> bool:
    """Whether somebody still waits for this request, in the name of a session that is not proven dead."""
    session = tx.get(keys.session(request.session), Session)
    if now >= request.until_ms or session is None or session.ended_ms:
        return False
    evidence = evidence_of(tx, session)
    if evidence is not None and evidence.life is ProcessState.DEAD:
        return False
    if request.leased:
        return now < request.renewed_ms + LEASE_MS
    return request.process is None or tx.evidence(request.process)[0].life is not ProcessState.DEAD


def blockers(tx: Transaction, requester: Requester, request: LockRequest, now: int) -> list[LockAt]:
    """Return the holds that stand in the way of a request now."""
    found: dict[str, LockAt] = {}
    for resource, mode in resulting_locks(tx, request, now):
        for lock_at in conflicts(tx, requester, resource, mode, now):
            found[lock_at.key] = lock_at
    return list(found.values())


def resulting_locks(tx: Transaction, request: LockRequest, now: int) -> list[tuple[Resource, Mode]]:
    """Return what a session would hold after a request, and how; it is judged by that.

    One hold stands for all that a session has of a resource: where it writes to a single file and asks to
    read what is below that too, it would write there.
    """
    found = []
    for resource in resources_of(request):
        own = tx.get(resource.lock_key(request.session), Lock)
        lives = own if own is not None and ended_by_time(own, now) is None else None
        found.append(_together(lives, resource, mode_of(request, resource)))
    return found


def _together(own: Lock | None, resource: Resource, mode: Mode) -> tuple[Resource, Mode]:
    if own is None or not _exceeds(own, resource, mode):
        return resource, mode
    both = msgspec.structs.replace(resource, exact=resource.exact and own.exact)
    return both, mode if own.mode is Mode.READ else own.mode


def _exceeds(own: Lock, resource: Resource, mode: Mode) -> bool:
    """Whether more is asked for than is held: to write, or what is below a single file."""
    return (own.mode is Mode.READ and mode is not Mode.READ) or widens(own, resource)


def widens(own: Lock, resource: Resource) -> bool:
    """Whether a path is asked for of which only the single file is held."""
    return own.exact and not resource.exact


def _meets(request: LockRequest, freed: list[Resource]) -> bool:
    """Whether a request may be better off; it may have to hold more than it asks for."""
    paths = _parsed(request.resources, request.repository, ())
    return any(mine.overlaps(free) for mine in paths for free in freed)


def grant_waiters(tx: Transaction, freed: list[Resource], now: int) -> None:
    """Grant what came free to those whose turn it is, and pass over those that are gone."""
    while freed:
        freed = _grant_waiters_once(tx, freed, now)


def _grant_waiters_once(tx: Transaction, freed: list[Resource], now: int) -> list[Resource]:
    """Go through the line once; return what else came free, of holds that had expired.

    Whom a commit has no room for is served when it looks after its place: giving back must never fail.
    """
    ahead: list[LockRequest] = []
    expired: list[Resource] = []
    line = waiters(tx, freed)
    meeting = [waiting.request for waiting in line if _meets(waiting.request, freed)]
    prefetch_liveness(tx, meeting)
    _foresee_grants(tx, meeting)
    room = tx.size + SERVED_BYTES_MAX
    for waiting in line:
        request = waiting.request
        if tx.size > room:
            break
        if not _meets(request, freed):
            ahead.append(request)
        elif not alive(tx, request, now):
            drop_request(tx, waiting, GONE)
            freed = freed + resources_of(request)
        elif any(conflicts_with(request, other) for other in ahead) or blockers(
            tx, requester_of(tx, request.session), request, now
        ):
            ahead.append(request)
        else:
            leave_queue(tx, waiting, WaitState.GRANTED)
            expired += end_expired(tx, (one for one, _ in resulting_locks(tx, request, now)), now)
            grant_request(tx, request, now, provisional=True)
            freed = freed + resources_of(request)  # it is ahead of nobody now: its sub-agents may go on
    return expired


def _foresee_grants(tx: Transaction, requests: list[LockRequest]) -> None:
    """Ask together for what the next grants will read: one by one, the rule would begin anew each time."""
    likely: list[LockRequest] = []
    for request in requests:
        if len(likely) == FORESEEN_MAX:
            break
        if not any(conflicts_with(request, other) for other in likely):
            likely.append(request)
    wanted = [(request, resource) for request in likely for resource in resources_of(request)]
    tx.prefetch(*(resource.lock_key(request.session) for request, resource in wanted))
    tx.prefetch(prefixes=dict.fromkeys(place for _, resource in wanted for place in resource.ranges))


def grant_request(
    tx: Transaction, request: LockRequest, now: int, *, provisional: bool = False
) -> list[Lock]:
    """Grant all that a request asks for; nothing stands in its way."""
    wanted = resulting_locks(tx, request, now)
    return [_grant_one(tx, request, resource, mode, now, provisional) for resource, mode in wanted]


def _grant_one(
    tx: Transaction, request: LockRequest, resource: Resource, mode: Mode, now: int, provisional: bool
) -> Lock:
    profile = request.profile or resource.kind
    ttl_ms = request.ttl_ms or PROFILES[profile].ttl_ms
    key = resource.lock_key(request.session)
    before = read_lock(tx, key)
    ended = None if before is None else ended_by_time(before, now)
    if before is not None and ended is not None:
        end_lock(tx, LockAt(key, before, resource), ended, now)
        before = None
    same = before is not None and not _exceeds(before, resource, mode)
    if before is not None and same and provisional and not before.provisional:
        return before  # what is held already does not become less certain
    under = "" if before is None else before.under
    if before is not None and widens(before, resource):  # what was done under its fence stays proven
        record_end(tx, key, EndedLock(lock=before, until_ms=now, end_reason=EndReason.RELEASED), now)
    if before is None or widens(before, resource):
        under = _lender(tx, request.session, resource, now)
    lock = msgspec.structs.replace(
        before or Lock(),
        resource=resource.text,
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
    )
    if not same:
        lock = msgspec.structs.replace(lock, mode=mode, exact=resource.exact, acquired_ms=now, fence=0)
    return grant(tx, resource, lock, refreshed=same, waited_ms=now - request.since_ms)


def _lender(tx: Transaction, session: str, resource: Resource, now: int) -> str:
    """Return the nearest ancestor whose own lock covers this, so that the grant ends with it."""
    above = requester_of(tx, session).above
    owners = set()
    for lock_at in overlapping_locks(tx, resource) if above else ():
        if lock_at.lock.owner in above and ended_by_time(lock_at.lock, now) is None:
            tx.version(lock_at.key)  # one granted in this batch is let settle: the later fence is larger
            owners.add(lock_at.lock.owner)
    lender = next((ancestor for ancestor in above if ancestor in owners), "")
    if lender:
        mark_parent(tx, lender)
    return lender
