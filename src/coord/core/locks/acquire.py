"""Taking locks: at once, or in line, or not; and what a request in line can still do.

A request first clears its way: holds whose deadline passed are ended, and those of owners proven dead; what
came free goes to those in line. Then it is granted, or gets in line, or leaves a bid and is refused.
"""

import msgspec

from coord.core import keys
from coord.core.errors import Invalid, LimitReached
from coord.core.locks.commands import (
    AcquireLocks,
    ConfirmWait,
    LockInfo,
    LockReply,
    Outcome,
    PeekWait,
    WaitInfo,
    WithdrawWait,
)
from coord.core.locks.expiry import end_by_time
from coord.core.locks.locks import (
    LockAt,
    Requester,
    after_loss,
    compatible,
    deadline_key,
    end_lock,
    ended_by_death,
    ended_by_time,
    lock_info,
    overlapping_locks,
    read_lock,
    requester_of,
)
from coord.core.locks.resources import Resource, parse_resources
from coord.core.locks.schema import (
    PROFILES,
    EndReason,
    Lock,
    LockDenied,
    LockRequest,
    LockWaiting,
    Mode,
    SessionWaits,
    WaitState,
)
from coord.core.locks.wait_queue import (
    GONE,
    RequestAt,
    alive,
    blockers,
    conflicts_with,
    drop_request,
    grant_request,
    grant_waiters,
    prefetch_liveness,
    put_request,
    rank_of,
    resources_of,
    resulting_locks,
    waiters,
    widens,
)
from coord.core.messages.send import notify
from coord.core.sessions.identify import caller_reads, ensure_session, find_session
from coord.core.transaction import Transaction

RESOURCES_MAX = 64
WAITS_MAX = 64
"""What a session may wait and bid for at once: each of these is looked at by every deadlock search."""
DENIED_QUIET_MS = 5_000
RENEW_QUIET_MS = 4_000
LOOK_MS = 2_000
"""How often a request in line looks whether a holder has died, if nothing else happens."""


def acquire_locks(tx: Transaction, command: AcquireLocks, now: int) -> LockReply:
    """Grant all that is asked for, or none of it."""
    session = ensure_session(tx, command.caller, now)
    if command.profile and command.profile not in PROFILES:
        raise Invalid(f"there is no profile {command.profile!r}", hint=f"use one of {', '.join(PROFILES)}")
    resources = parse_resources(command.resources, command.repository, RESOURCES_MAX, command.exact)
    request = LockRequest(
        session=session.session_id,
        agent=session.agent,
        repository=command.repository,
        resources=tuple(resource.text for resource in resources),
        mode=_mode(command.mode),
        profile=command.profile,
        ttl_ms=command.ttl_ms,
        reason=command.reason,
        priority=command.priority,
        preemptible=command.preemptible,
        since_ms=now,
        renewed_ms=now,
        until_ms=now + command.wait_ms,
        process=command.waiter,
        leased=command.leased,
        denied=not command.wait_ms,
        worktree=command.worktree,
        exact=tuple(resource.text for resource in resources if resource.exact),
    )
    return _attempt(tx, request, command.wait_id, now)


def _mode(text: str) -> Mode | None:
    if text and text not in list(Mode):
        raise Invalid(f"{text!r} is not a mode", hint="use read, write or exclusive")
    return Mode(text) if text else None


def _attempt(tx: Transaction, request: LockRequest, wait_id: str, now: int) -> LockReply:
    prefetch_locks(tx, [request], keys.waits(request.session))
    requester = requester_of(tx, request.session)
    expire_blockers(tx, requester, request, now)
    in_way = blockers(tx, requester, request, now)
    # Where it would stand in line; who does not wait would be the last of its rank.
    key = keys.wait(rank_of(request) + 1, "") if request.denied else keys.wait(rank_of(request), wait_id)
    ahead = [] if _extends(tx, request, now) else _ahead(tx, key, request)
    if not in_way and not ahead:
        return _granted(tx, request, now)
    if request.denied:
        return _refuse(tx, request, in_way, len(ahead) + 1, now)
    return _wait(tx, key, request, now)


def prefetch_locks(tx: Transaction, requests: list[LockRequest], *others: str) -> None:
    """Ask at once for what requests look at: resource by resource, a rule would begin anew for each."""
    wanted = [(request.session, resource) for request in requests for resource in resources_of(request)]
    tx.prefetch(
        *sorted({resource.guard for _, resource in wanted}),
        *(resource.lock_key(session) for session, resource in wanted),
        *others,
    )
    tx.prefetch(prefixes=dict.fromkeys(prefix for _, resource in wanted for prefix in resource.ranges))


def expire_blockers(tx: Transaction, requester: Requester, request: LockRequest, now: int) -> None:
    """End the holds in the way that time or death has ended, pass over who is gone, serve those in line."""
    freed: list[Resource] = []
    for resource, mode in resulting_locks(tx, request, now):
        for lock_at in list(overlapping_locks(tx, resource)):
            if tx.get(lock_at.key, Lock) is None:
                continue  # ended together with another one
            if ended_by_time(lock_at.lock, now) is not None:
                freed += end_by_time(tx, lock_at, now)
            elif lock_at.lock.owner != requester.session and not compatible(mode, lock_at.lock.mode):
                freed += end_if_owner_gone(tx, lock_at, now)
    rivals = [each for each in waiters(tx, resources_of(request)) if conflicts_with(request, each.request)]
    prefetch_liveness(tx, [waiting.request for waiting in rivals])
    for waiting in rivals:
        if not alive(tx, waiting.request, now):
            drop_request(tx, waiting, GONE)
            freed += resources_of(waiting.request)
    if freed:
        grant_waiters(tx, freed, now)


def end_if_owner_gone(tx: Transaction, lock_at: LockAt, now: int) -> list[Resource]:
    """End a hold whose owner is dead or silent, where its profile says so; return what came free."""
    gone = ended_by_death(tx, lock_at.lock, now)
    if gone is None:
        return []
    end_reason, evidence = gone
    if end_reason is EndReason.OWNER_DEAD:
        from coord.core.lifecycle.end import declare_dead  # it brings the rules of tasks along

        return declare_dead(tx, lock_at.lock.owner, evidence, now)
    return end_lock(tx, lock_at, end_reason, now, note=evidence)


def _extends(tx: Transaction, request: LockRequest, now: int) -> bool:
    """Whether all that is asked for is held already: a holder goes ahead of those in line."""
    for resource in resources_of(request):
        lock = tx.get(resource.lock_key(request.session), Lock)
        if lock is None or ended_by_time(lock, now) is not None or widens(lock, resource):
            return False
    return True


def _ahead(tx: Transaction, key: str, request: LockRequest) -> list[LockRequest]:
    """Return those in line whose turn is before this one's and who stand in its way."""
    return [
        other
        for other_key, other in waiters(tx, resources_of(request))
        if other_key < key and conflicts_with(request, other)
    ]


def _granted(tx: Transaction, request: LockRequest, now: int) -> LockReply:
    waits = tx.get(keys.waits(request.session), SessionWaits)
    for key in waits.keys if waits is not None else ():
        denied = tx.get(key, LockRequest)
        if denied is not None and denied.denied and set(denied.resources) <= set(request.resources):
            drop_request(tx, RequestAt(key, denied), "granted")
    before = {
        resource.text: tx.get(resource.lock_key(request.session), Lock) for resource in resources_of(request)
    }
    locks = grant_request(tx, request, now)
    infos = [lock_info(lock, now, refreshed=bool(before[lock.resource] and lock.fence)) for lock in locks]
    return LockReply(Outcome.GRANTED, infos, after_loss=after_loss(tx, resources_of(request), now))


def _refuse(
    tx: Transaction, request: LockRequest, in_way: list[LockAt], position: int, now: int
) -> LockReply:
    """Refuse a request that does not wait; its bid stays for a while, unless there are many already."""
    key = keys.denied_request(request.session, "\n".join(request.resources))
    before = tx.get(key, LockRequest)
    if before is not None:
        request = msgspec.structs.replace(request, since_ms=before.since_ms)
    holder = _first_shown(tx, in_way, now)
    waits = tx.get(keys.waits(request.session), SessionWaits)
    if before is None and waits is not None and len(waits.keys) >= WAITS_MAX:
        return LockReply(Outcome.HELD, holder=holder, position=position)
    if before is None or now - before.renewed_ms >= DENIED_QUIET_MS or before.exact != request.exact:
        put_request(tx, key, request)
    if before is None:
        for owner in sorted({lock_at.lock.owner for lock_at in in_way}):
            subject = f"{request.agent or request.session} wants {', '.join(request.resources)}"
            blob = {
                "session_id": request.session,
                "resources": list(request.resources),
                "reason": request.reason,
            }
            notify(tx, owner, "request", subject, now, blob)
        tx.emit(LockDenied(request.resources, request.session, request.agent, holder.owner if holder else ""))
    cycle = _break_deadlocks(tx, RequestAt(key, request), now)
    if cycle:  # broken in favour of this very request, perhaps: nobody may slip in
        in_way = blockers(tx, requester_of(tx, request.session), request, now)
        if not in_way and not _ahead(tx, keys.wait(rank_of(request) + 1, ""), request):
            return _granted(tx, request, now)
        holder = _first_shown(tx, in_way, now)
    return LockReply(Outcome.HELD, holder=holder, position=position, cycle=list(cycle))


def _first_shown(tx: Transaction, locks_at: list[LockAt], now: int) -> LockInfo | None:
    """Return the hold that stays longest in the way, as a denial names it."""
    if not locks_at:
        return None
    longest = max(locks_at, key=lambda lock_at: (lock_at.lock.expires_ms, lock_at.key))
    lock = read_lock(tx, longest.key)
    return lock_info(longest.lock if lock is None else lock, now)


def _wait(tx: Transaction, key: str, request: LockRequest, now: int) -> LockReply:
    """Get in line, unless that closes a circle whose victim is this very request."""
    waits = tx.get(keys.waits(request.session), SessionWaits)
    if waits is not None and len(waits.keys) >= WAITS_MAX:
        raise LimitReached(
            f"{request.session} waits for {len(waits.keys)} things already",
            hint="ask for them in one request",
        )
    put_request(tx, key, request)
    requester = requester_of(tx, request.session)
    in_way = blockers(tx, requester, request, now)
    holder = in_way[0].lock.owner if in_way else ""
    tx.emit(LockWaiting(request.resources, request.session, request.agent, holder, request.priority))
    _break_deadlocks(tx, RequestAt(key, request), now)
    return _state(tx, key, now)


def _break_deadlocks(tx: Transaction, waiting: RequestAt, now: int) -> tuple[str, ...]:
    from coord.core.locks.deadlock import break_deadlocks  # most requests are granted, and need none of it

    return break_deadlocks(tx, waiting, now)


def _state(tx: Transaction, key: str, now: int) -> LockReply:
    """Return what became of a request in line; a hand-off is taken over."""
    request = tx.get(key, LockRequest)
    if request is None:
        return LockReply(Outcome.WITHDRAWN)
    if request.state is WaitState.REFUSED:
        tx.delete(key)
        return LockReply(Outcome.DEADLOCK, cycle=list(request.cycle))
    if request.state is WaitState.GRANTED:
        return _take_over(tx, key, request, now)
    requester = requester_of(tx, request.session)
    in_way = blockers(tx, requester, request, now)
    position = len(_ahead(tx, key, request)) + 1
    deadlines = [_deadline(lock_at.lock) for lock_at in in_way]
    look_ms = min([*(at for at in deadlines if at > now), now + LOOK_MS])
    holder = _first_shown(tx, in_way, now)
    return LockReply(Outcome.WAITING, holder=holder, wait=WaitInfo(key, position, look_ms), position=position)


def _deadline(lock: Lock) -> int:
    """Return when a hold may end by itself."""
    return min(lock.expires_ms, lock.preempt_ms) if lock.preempted_by else lock.expires_ms


def _take_over(tx: Transaction, key: str, request: LockRequest, now: int) -> LockReply:
    """Confirm a hand-off, unless it has lapsed: then it is back where it was, if it has time left."""
    locks: list[tuple[Resource, Lock]] = []
    for resource in resources_of(request):
        lock = read_lock(tx, resource.lock_key(request.session))
        if lock is None or ended_by_time(lock, now) is not None:
            tx.delete(key)
            if now >= request.until_ms:
                return LockReply(Outcome.WITHDRAWN)
            again = msgspec.structs.replace(request, state=WaitState.WAITING, renewed_ms=now)
            return _attempt(tx, again, key.rpartition("/")[2], now)
        locks.append((resource, lock))
    tx.delete(key)
    infos = []
    for resource, lock in locks:
        confirmed = msgspec.structs.replace(lock, provisional=False, expires_ms=now + lock.ttl_ms)
        tx.put(resource.lock_key(confirmed.owner), confirmed, deadline_key(confirmed))
        infos.append(lock_info(confirmed, now))
    return LockReply(Outcome.GRANTED, infos, after_loss=after_loss(tx, resources_of(request), now))


def wait_reads(command: ConfirmWait | PeekWait) -> list[str]:
    """Return what a look at a request in line reads, so that a look is one read of the store."""
    return [*caller_reads(command), command.wait_key]


def confirm_wait(tx: Transaction, command: ConfirmWait, now: int) -> LockReply:
    """Look after a request in line: keep it alive, see whether holders are gone, take over a hand-off."""
    session = ensure_session(tx, command.caller, now)
    request = _own_request(tx, command.wait_key, session.session_id)
    if request is None:
        return LockReply(Outcome.WITHDRAWN)
    if request.state is WaitState.WAITING:
        if request.leased and now - request.renewed_ms >= RENEW_QUIET_MS:
            request = msgspec.structs.replace(request, renewed_ms=now)
            put_request(tx, command.wait_key, request)
        requester = requester_of(tx, request.session)
        expire_blockers(tx, requester, request, now)
        if not blockers(tx, requester, request, now) and not _ahead(tx, command.wait_key, request):
            grant_waiters(tx, resources_of(request), now)  # it was passed over: too many came free at once
    return _state(tx, command.wait_key, now)


def peek_wait(tx: Transaction, command: PeekWait, now: int) -> bool:
    """Whether a request in line has been decided."""
    request = _own_request(tx, command.wait_key, find_session(tx, command.caller, now))
    return request is None or request.state is not WaitState.WAITING


def withdraw_wait(tx: Transaction, command: WithdrawWait, now: int) -> bool:
    """Leave the line; those behind may go on."""
    session = find_session(tx, command.caller, now)
    key = command.wait_key
    if not key.startswith(keys.WAIT_PREFIX):  # its answer was never read, so only the id is known
        waits = tx.get(keys.waits(session), SessionWaits)
        key = next((each for each in waits.keys if each.endswith(f"/{key}")), "") if waits is not None else ""
    request = _own_request(tx, key, session) if key else None
    if request is None:
        return False
    freed = resources_of(request)
    drop_request(tx, RequestAt(key, request), "withdrawn")
    if request.state is WaitState.GRANTED:
        for resource in resources_of(request):
            lock_key = resource.lock_key(request.session)
            lock = tx.get(lock_key, Lock)
            if lock is not None and lock.provisional:
                freed += end_lock(tx, LockAt(lock_key, lock, resource), EndReason.LAPSED, now)
    grant_waiters(tx, freed, now)
    return True


def _own_request(tx: Transaction, key: str, session: str) -> LockRequest | None:
    if not key.startswith(keys.WAIT_PREFIX):
        raise Invalid(f"{key!r} is not a place in line", hint="use the one that the request was given")
    request = tx.get(key, LockRequest)
    return request if request is not None and request.session == session else None
