"""Acquire locks: grant them, wait in the queue for them, or be denied.

A request loads its lock table once. Locks that have expired and locks of dead owners end first, and
the waiters get what was freed. Then `outcome_of` decides on the table, and one function carries the
outcome out.
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
from coord.core.locks.expiry import expire_blockers
from coord.core.locks.locks import (
    LockAt,
    after_loss,
    deadline_key,
    end_lock,
    ended_by_time,
    lock_info,
    prefetch_owners,
    projects_nest,
    read_lock,
    refuse_if_stopped,
)
from coord.core.locks.resources import REQUEST_RESOURCES_MAX, Resource, parse_resources
from coord.core.locks.schema import (
    PROFILES,
    EndReason,
    Lock,
    LockDenied,
    LockRenewed,
    LockRequest,
    LockWaiting,
    Mode,
    SessionWaits,
    WaitState,
)
from coord.core.locks.table import (
    LockTable,
    RequestAt,
    blocking_locks,
    has_all,
    load_table,
    requests_ahead,
    resources_of,
)
from coord.core.locks.uses import USES_MAX
from coord.core.locks.wait_queue import (
    drop_request,
    grant_request,
    grant_waiters,
    put_request,
    rank_of,
)
from coord.core.sessions.identify import caller_reads, ensure_session, find_session
from coord.core.sessions.schema import Session
from coord.core.transaction import Transaction

WAITS_MAX = 64
"""How many waiting and denied requests a session may have: a deadlock search visits each of them."""
DENIED_QUIET_MS = 5_000
RENEW_QUIET_MS = 4_000
LOOK_MS = 2_000
"""A waiting request checks this often whether a holder has died."""


def acquire_locks(tx: Transaction, command: AcquireLocks, now: int) -> LockReply:
    """Acquire all locks of a request or none; a request that is not granted waits or is denied."""
    session = ensure_session(tx, command.caller, now)
    refuse_if_stopped(tx, session)
    request = _request_of(command, session, projects_nest(tx, command.resources), now)
    return _acquire(tx, request, command.wait_id, now)


def _acquire(tx: Transaction, request: LockRequest, wait_id: str, now: int) -> LockReply:
    table = load_table(tx, request, now, also=[keys.waits(request.session)])
    _prefetch_blockers(tx, table, now)
    table = expire_blockers(tx, table, now)
    match outcome_of(table, wait_id, now):
        case Grant():
            return _grant(tx, table, now)
        case Wait(key):
            return _enqueue(tx, key, table, now)
        case Deny(blocking, position):
            return _deny(tx, table, blocking, position, now)


def _request_of(command: AcquireLocks, session: Session, nested: bool, now: int) -> LockRequest:
    if command.profile and command.profile not in PROFILES:
        raise Invalid(f"unknown profile {command.profile!r}", hint=f"use one of {', '.join(PROFILES)}")
    resources = parse_resources(command.resources, command.repository, REQUEST_RESOURCES_MAX, command.exact)
    return LockRequest(
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
        nested=nested,
        use=command.use,
        progress_ms=command.progress_ms,
    )


def _mode(text: str) -> Mode | None:
    if text and text not in list(Mode):
        raise Invalid(f"{text!r} is not a mode", hint="use read, write or exclusive")
    return Mode(text) if text else None


def _prefetch_blockers(tx: Transaction, table: LockTable, now: int) -> None:
    """Prefetch what a wait or a denial reads about the holders, all in one question."""
    blocking = blocking_locks(table, now)
    if not blocking:
        return
    request, owners = table.request, sorted({lock_at.lock.owner for lock_at in blocking})
    wanted = [key for owner in owners for key in (keys.session(owner), keys.waits(owner))]
    wanted.append(keys.SETTINGS)
    wanted += [keys.mailbox(owner) for owner in owners]
    if request.denied:
        wanted.append(_denied_key(request))
    tx.prefetch(*wanted)
    prefetch_owners(tx, blocking)


class Grant(msgspec.Struct, frozen=True):
    """Nothing blocks the request."""


class Wait(msgspec.Struct, frozen=True):
    """The request joins the wait queue under this key."""

    key: str


class Deny(msgspec.Struct, frozen=True):
    """The request does not wait, and something blocks it; `position` is where it would wait."""

    blocking: list[LockAt]
    position: int


def outcome_of(table: LockTable, wait_id: str, now: int) -> Grant | Wait | Deny:
    """Decide a request: it is granted if no lock and no request ahead of it blocks it.

    A session that renews what it has does not queue behind the waiters.
    """
    request = table.request
    key = _last_key(request) if request.denied else keys.wait(rank_of(request), wait_id)
    blocking = blocking_locks(table, now)
    ahead = [] if has_all(table, now) else requests_ahead(table, key)
    if not blocking and not ahead and table.held_up is None:
        return Grant()
    return Deny(blocking, len(ahead) + 1) if request.denied else Wait(key)


def _last_key(request: LockRequest) -> str:
    """Return the position behind all waiters of the same rank: a denied request has none itself."""
    return keys.wait(rank_of(request) + 1, "")


def _denied_key(request: LockRequest) -> str:
    return keys.denied_request(request.session, "\n".join(request.resources))


def _grant(tx: Transaction, table: LockTable, now: int) -> LockReply:
    request = table.request
    for own in table.own.values():
        if request.use not in own.uses and len(own.uses) >= USES_MAX:
            raise LimitReached(
                f"this session needs {own.resource} for {len(own.uses)} things already",
                hint="end some of the commands that hold it",
            )
    waits = tx.get(keys.waits(request.session), SessionWaits)
    for key in waits.keys if waits is not None else ():
        denied = tx.get(key, LockRequest)
        if denied is not None and denied.denied and set(denied.resources) <= set(request.resources):
            drop_request(tx, RequestAt(key, denied), "granted")
    locks = grant_request(tx, table, now)
    infos = [
        lock_info(lock, now, refreshed=bool(lock.resource in table.own and lock.fence)) for lock in locks
    ]
    return LockReply(Outcome.GRANTED, infos, after_loss=after_loss(tx, resources_of(request), now))


def _deny(tx: Transaction, table: LockTable, blocking: list[LockAt], position: int, now: int) -> LockReply:
    """Deny a request and keep it for the deadlock search, unless its session has too many of them."""
    request, key = table.request, _denied_key(table.request)
    before = tx.get(key, LockRequest)
    if before is not None:
        request = msgspec.structs.replace(request, since_ms=before.since_ms)
    holder = _last_to_end(tx, blocking, now)
    waits = tx.get(keys.waits(request.session), SessionWaits)
    if before is None and waits is not None and len(waits.keys) >= WAITS_MAX:
        return LockReply(Outcome.HELD, holder=holder, position=position)
    if (
        before is None
        or now - before.renewed_ms >= DENIED_QUIET_MS
        or (before.mode, before.exact) != (request.mode, request.exact)
    ):
        put_request(tx, key, request)
    if before is None:
        _notify_holders(tx, request, blocking, now)
        names = (request.session, request.agent, holder.owner if holder else "")
        tx.emit(LockDenied(request.resources, *names, request.use))
    cycle = _break_deadlocks(tx, RequestAt(key, request), table, now)
    if cycle:  # if it was broken in favour of this request, grant it now, before anybody else comes
        table = load_table(tx, request, now)
        blocking = blocking_locks(table, now)
        if not blocking and not requests_ahead(table, _last_key(request)):
            return _grant(tx, table, now)
        holder = _last_to_end(tx, blocking, now)
    return LockReply(Outcome.HELD, holder=holder, position=position, cycle=list(cycle))


def _notify_holders(tx: Transaction, request: LockRequest, blocking: list[LockAt], now: int) -> None:
    from coord.core.messages.wait_notices import Notice, notify_holder  # most requests are granted

    notice = Notice(
        request.session,
        request.agent,
        request.resources,
        request.reason,
        not request.denied,
        request.until_ms,
    )
    for owner in sorted({lock_at.lock.owner for lock_at in blocking}):
        notify_holder(tx, owner, notice, now)


def _last_to_end(tx: Transaction, blocking: list[LockAt], now: int) -> LockInfo | None:
    """Return the blocking lock that expires last: the reply names its holder."""
    if not blocking:
        return None
    last = max(blocking, key=lambda lock_at: (lock_at.lock.expires_ms, lock_at.key))
    lock = read_lock(tx, last.key)
    return lock_info(last.lock if lock is None else lock, now)


def _enqueue(tx: Transaction, key: str, table: LockTable, now: int) -> LockReply:
    """Put a request into the wait queue, unless this closes a cycle and the request is its victim."""
    request = table.request
    waits = tx.get(keys.waits(request.session), SessionWaits)
    if waits is not None and len(waits.keys) >= WAITS_MAX:
        raise LimitReached(
            f"{request.session} already waits for {len(waits.keys)} requests",
            hint="ask for everything in one request",
        )
    put_request(tx, key, request)
    blocking = blocking_locks(table, now)
    holder = blocking[0].lock.owner if blocking else ""
    named = (request.resources, request.session, request.agent, holder, request.priority)
    tx.emit(LockWaiting(*named, request.since_ms, keys.wait_id(key)))
    _notify_holders(tx, request, blocking, now)
    cycle = _break_deadlocks(tx, RequestAt(key, request), table, now)
    return _wait_reply(tx, key, None if cycle else table, now)


def _break_deadlocks(tx: Transaction, waiting: RequestAt, table: LockTable, now: int) -> tuple[str, ...]:
    from coord.core.locks.deadlock import break_deadlocks  # most requests are granted and need none of it

    return break_deadlocks(tx, waiting, {waiting.key: table}, now)


def _wait_reply(tx: Transaction, key: str, table: LockTable | None, now: int) -> LockReply:
    """Return the state of a request in the wait queue, and confirm a hand-off.

    `table` is the table of the request, if no lock has changed since it was loaded.
    """
    request = tx.get(key, LockRequest)
    if request is None:
        return LockReply(Outcome.WITHDRAWN)
    if request.state is WaitState.REFUSED:
        tx.delete(key)
        return LockReply(
            Outcome.DEADLOCK,
            cycle=list(request.cycle),
            lost=list(request.lost),
            lost_to=request.lost_to,
            claims=list(request.claims),
            again=sorted({*request.resources, *request.lost}),
        )
    if request.state is WaitState.GRANTED:
        return _confirm_hand_off(tx, key, request, now)
    if table is None:
        table = load_table(tx, request, now)
    blocking = blocking_locks(table, now)
    position = len(requests_ahead(table, key)) + 1
    deadlines = [_deadline(lock_at.lock) for lock_at in blocking]
    look_ms = min([*(at for at in deadlines if at > now), now + LOOK_MS])
    holder = _last_to_end(tx, blocking, now)
    return LockReply(Outcome.WAITING, holder=holder, wait=WaitInfo(key, position, look_ms), position=position)


def _deadline(lock: Lock) -> int:
    """Return the time at which a lock ends unless it is renewed."""
    return min(lock.expires_ms, lock.preempt_ms) if lock.preempted_by else lock.expires_ms


def _confirm_hand_off(tx: Transaction, key: str, request: LockRequest, now: int) -> LockReply:
    """Confirm a hand-off. If it has expired, the request is decided again while its wait time lasts."""
    locks: list[tuple[Resource, Lock]] = []
    for resource in resources_of(request):
        lock = read_lock(tx, resource.lock_key(request.session))
        if lock is None or ended_by_time(lock, now) is not None:
            tx.delete(key)
            if now >= request.until_ms:
                return LockReply(Outcome.WITHDRAWN)
            again = msgspec.structs.replace(request, state=WaitState.WAITING, renewed_ms=now)
            return _acquire(tx, again, keys.wait_id(key), now)
        locks.append((resource, lock))
    tx.delete(key)
    infos = []
    for resource, lock in locks:
        kept_ms = 0 if lock.provisional else lock.expires_ms  # the session had this one before
        expires_ms = max(now + lock.ttl_ms, kept_ms)
        confirmed = msgspec.structs.replace(lock, provisional=False, expires_ms=expires_ms)
        tx.put(resource.lock_key(confirmed.owner), confirmed, deadline_key(confirmed))
        tx.emit(LockRenewed(confirmed.resource, confirmed.owner, confirmed.fence, expires_ms))
        infos.append(lock_info(confirmed, now))
    return LockReply(Outcome.GRANTED, infos, after_loss=after_loss(tx, resources_of(request), now))


def wait_reads(command: ConfirmWait | PeekWait) -> list[str]:
    """Return the keys that a look at a waiting request reads, so that it is one question to the store."""
    return [*caller_reads(command), command.wait_key]


def confirm_reads(command: ConfirmWait) -> list[str]:
    """Return the keys that the confirmation of a request reads."""
    return [*wait_reads(command), keys.HELD_WORK]


def confirm_wait(tx: Transaction, command: ConfirmWait, now: int) -> LockReply:
    """Keep a waiting request alive, end blocking locks whose owner is gone, and confirm a hand-off."""
    session = ensure_session(tx, command.caller, now)
    request = _own_request(tx, command.wait_key, session.session_id)
    if request is None:
        return LockReply(Outcome.WITHDRAWN)
    table = None
    if request.state is WaitState.WAITING:
        if request.leased and now - request.renewed_ms >= RENEW_QUIET_MS:
            request = msgspec.structs.replace(request, renewed_ms=now)
            put_request(tx, command.wait_key, request)
        table = expire_blockers(tx, load_table(tx, request, now), now)
        if (
            table.held_up is None
            and not blocking_locks(table, now)
            and not requests_ahead(table, command.wait_key)
        ):
            grant_waiters(tx, resources_of(request), now)  # the commit that freed this had no room left
            table = None
        elif session.parent and _break_deadlocks(tx, RequestAt(command.wait_key, request), table, now):
            table = None  # its parent has got a lock since: this closes a cycle without a new wait
    return _wait_reply(tx, command.wait_key, table, now)


def peek_wait(tx: Transaction, command: PeekWait, now: int) -> bool:
    """Whether a waiting request has been decided."""
    request = _own_request(tx, command.wait_key, find_session(tx, command.caller, now))
    return request is None or request.state is not WaitState.WAITING


def withdraw_wait(tx: Transaction, command: WithdrawWait, now: int) -> bool:
    """Leave the wait queue, and let the requests behind go on."""
    session = find_session(tx, command.caller, now)
    key = command.wait_key
    if not key.startswith(keys.WAIT_PREFIX):  # the reply was never read, so only the id is known
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
        raise Invalid(f"{key!r} is not a wait id", hint="use the one from the reply to the request")
    request = tx.get(key, LockRequest)
    return request if request is not None and request.session == session else None
