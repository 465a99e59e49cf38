"""Questions about locks: check, list, watch, and whether a fence is still valid.

A fence is valid while its lock is held, and after its holder released it, because the work was
finished then. It is *superseded* if the holder lost the lock (by time, death or force) and somebody
else was granted an overlapping lock since: then the late holder must not win.
"""

from collections.abc import Iterator
from itertools import islice

import msgspec

from coord.core import keys
from coord.core.errors import Invalid
from coord.core.ids import short_repr
from coord.core.locks.commands import (
    CheckFences,
    CheckLocks,
    CheckReply,
    FenceInfo,
    GetLocks,
    ListLockPeriods,
    ListLockRequests,
    ListLocks,
    LockInfo,
    LockPage,
    LockPeriod,
    LockPeriods,
    LockRequestInfo,
    LockWatch,
    NamedLocksCommand,
    WatchLocks,
)
from coord.core.locks.locks import (
    LockAt,
    Requester,
    compatible,
    end_ms,
    ended_by_death,
    ended_by_time,
    excludes,
    granted_since,
    listed_locks,
    lock_info,
    locks_of,
    overlapping_locks,
    prefetch_owners,
    projects_nest,
    read_lock,
    read_lock_at,
    requester_of,
    require_lock,
    resource_of,
)
from coord.core.locks.resources import (
    NAMED_RESOURCES_MAX,
    TENANT_WIDE,
    Resource,
    parse_resource,
    parse_resources,
)
from coord.core.locks.schema import PROFILES, EndedLock, EndReason, Guard, Lock, LockRequest, Mode, WaitState
from coord.core.locks.table import RequestAt, blocking_among, mode_of, resources_of, waiters
from coord.core.ranges import Range
from coord.core.sessions.identify import caller_reads, find_session
from coord.core.sessions.queries import find_peer
from coord.core.transaction import PAGE, Transaction

FENCES_MAX = 256
FENCE_END = 10**16 - 1
"""Above every fence: it has 16 digits in a key."""
READ_MAX = 4 * PAGE
"""After how many ended locks a page ends, though few of them may be asked for."""
WIDER = 8
IN_ORDER = (EndReason.RELEASED, EndReason.SESSION_ENDED)
"""Reasons that the holder itself chose."""


def check_fences(tx: Transaction, command: CheckFences, now: int) -> list[FenceInfo]:
    """Return for each fence the state of its lock, and the session that superseded it."""
    if len(command.fences) > FENCES_MAX:
        raise Invalid(f"{len(command.fences)} fences in one request", hint=f"at most {FENCES_MAX}")
    return [_check(tx, fence, text, part, command.repository, now) for fence, text, part in command.fences]


def _check(tx: Transaction, fence: int, text: str, part: str, repository: str, now: int) -> FenceInfo:
    resources = parse_resource(text, repository)
    meant = parse_resource(part, repository, exact=True) if part else resources
    if len(resources) != 1 or len(meant) != 1 or not 0 < fence < 10**16:
        raise Invalid(f"{fence} is not a fence of {short_repr(text)}", hint="a fence belongs to one resource")
    (resource,) = resources
    tx.get(resource.guard, Guard)  # a fence that is not superseded relies on absence
    found = _live(tx, resource, fence, now) or _ended(tx, resource, fence)
    if found is None:
        return FenceInfo(text, fence, "", "unknown")
    lock, end_reason = found
    if end_reason is None or end_reason in IN_ORDER:
        return FenceInfo(text, fence, lock.owner, end_reason.value if end_reason else "held")
    part_of = msgspec.structs.replace(meant[0], nested=lock.nested)
    for later in granted_since(tx, part_of, fence):
        if later.owner != lock.owner and later.mode is not Mode.READ:
            return FenceInfo(text, fence, lock.owner, end_reason.value, True, later.owner, later.fence)
    return FenceInfo(text, fence, lock.owner, end_reason.value)


def _live(tx: Transaction, resource: Resource, fence: int, now: int) -> tuple[Lock, EndReason | None] | None:
    """Return the lock of a fence, and why it ended if no commit has recorded that yet."""
    for lock_at in overlapping_locks(tx, resource):
        lock = read_lock(tx, lock_at.key)
        if lock is not None and lock.fence == fence and lock_at.resource.prefix == resource.prefix:
            death = ended_by_death(tx, lock, now)
            return lock, ended_by_time(lock, now) or (death[0] if death else None)
    return None


def _ended(tx: Transaction, resource: Resource, fence: int) -> tuple[Lock, EndReason] | None:
    """Return the ended lock of a fence, and why it ended."""
    for page in tx.pages(keys.ended_lock_prefix(resource.space, fence)):
        for found in page:
            grant = tx.get(found.key, EndedLock)
            if grant is not None and resource_of(grant.lock).prefix == resource.prefix:
                return grant.lock, grant.end_reason
    return None


def unheld_readings(
    tx: Transaction,
    command: NamedLocksCommand,
    resources: list[Resource],
    session: str,
    now: int,
    *,
    despite_loss: bool = False,
) -> set[str]:
    """Return the prefixes of resources that a session does not have, but another reading of the same text.

    A lock that the session lost while it kept the other is not among them, unless `despite_loss`.
    """
    unheld: set[str] = set()
    for texts in command.readings:
        prefixes = {each.prefix for text in texts for each in parse_resource(text, command.repository)}
        group = [resource for resource in resources if resource.prefix in prefixes]
        locks = {each.prefix: read_lock(tx, each.lock_key(session)) for each in group}
        fences = {lock.fence for lock in locks.values() if lock and ended_by_time(lock, now) is None}
        for resource in group if fences else ():
            lock = locks[resource.prefix]
            if lock is None:
                gone = despite_loss or not any(_was_lost(tx, resource, fence, session) for fence in fences)
            else:
                gone = despite_loss and ended_by_time(lock, now) is not None
            unheld |= {resource.prefix} if gone else set()
    return unheld


def _was_lost(tx: Transaction, resource: Resource, fence: int, session: str) -> bool:
    """Whether a session had a lock on this under a fence, and did not release it itself."""
    ended = _ended(tx, resource, fence)
    return ended is not None and ended[0].owner == session and ended[1] not in IN_ORDER


def list_lock_periods(tx: Transaction, command: ListLockPeriods, now: int) -> LockPeriods:
    """Return a page of the periods in which locks were held: present ones by key, ended ones by fence."""
    wrong = command.after if command.ended else command.before
    if wrong or command.limit < 1 or not 0 <= command.before <= FENCE_END:
        raise Invalid(
            "there is no such page of lock periods", hint="use what the last page gave, and a limit"
        )
    if len(command.resources) > NAMED_RESOURCES_MAX:
        raise Invalid(
            f"{len(command.resources)} resources in one request", hint=f"at most {NAMED_RESOURCES_MAX}"
        )
    for text in command.resources:
        parse_resource(text, TENANT_WIDE)  # each lock says in which repository it is
    return _ended_periods(tx, command) if command.ended else _present_periods(tx, command, now)


def _present_periods(tx: Transaction, command: ListLockPeriods, now: int) -> LockPeriods:
    prefix = f"{keys.locks(command.space)}/" if command.space else keys.LOCK_PREFIX
    page = tx.scan(prefix, limit=command.limit, after=("", command.after))
    tx.prefetch(*(found.key for found in page))
    locks = [lock for found in page if (lock := read_lock(tx, found.key)) is not None]
    periods = [_period(lock, now) for lock in locks if _is_selected(lock, command)]
    return LockPeriods(periods, page[-1].key if len(page) == command.limit else "")


def _ended_periods(tx: Transaction, command: ListLockPeriods) -> LockPeriods:
    """Return former periods of the newest fences, and below which fence to go on: none is left out.

    Stores list keys upwards, so it reads the fences of one window after the other; in a window that has more
    than a page of locks, fewer fences.
    """
    spaces = [command.space] if command.space else list(_spaces(tx))
    periods: list[LockPeriod] = []
    before, width, read = command.before or FENCE_END, command.limit, 0
    while spaces and before > 1 and len(periods) < command.limit and read < READ_MAX:
        since = max(1, before - width)
        window = [_granted_between(tx, space, since, before) for space in spaces]
        if None in window:
            width = max(1, width // WIDER)
            continue
        found = [key for of_space in window for key in of_space or ()]
        tx.prefetch(*found)
        ended = [each for key in found if (each := tx.get(key, EndedLock)) is not None]
        ended.sort(key=lambda each: -each.lock.fence)
        periods += [_former(each) for each in ended if _is_selected(each.lock, command)]
        before, read = since, read + len(found)
        if len(found) * WIDER < command.limit:
            width *= WIDER
    if len(periods) > command.limit:
        before = periods[command.limit - 1].fence
        periods = [period for period in periods if period.fence >= before]
    return LockPeriods(periods, before=before if spaces and before > 1 else 0)


def _spaces(tx: Transaction) -> Iterator[str]:
    """Yield the spaces with ended locks."""
    after = ""
    while found := tx.scan(keys.ended_lock_prefix(), limit=1, after=("", after)):
        space = keys.space_of_ended_lock(found[0].key)
        yield space
        after = f"{keys.ended_lock_prefix(space)}:"  # follows all digits


def _granted_between(tx: Transaction, space: str, since: int, before: int) -> list[str] | None:
    """Return the keys of the ended locks of some fences; None if they are many and of several fences."""
    first, end = (keys.ended_lock_prefix(space, fence) for fence in (since, before))
    page = tx.scan(keys.ended_lock_prefix(space), limit=PAGE, after=("", first))
    found = [each.key for each in page if each.key < end]
    if len(found) < PAGE:
        return found
    return [each.key for some in tx.pages(first) for each in some] if before - since == 1 else None


def _is_selected(lock: Lock, command: ListLockPeriods) -> bool:
    """Whether a lock overlaps one of the resources that are asked for, if there are any."""
    return not command.resources or any(_lock_overlaps(lock, text) for text in command.resources)


def _lock_overlaps(lock: Lock, text: str) -> bool:
    mine = resource_of(lock)
    if mine.kind != text.partition(":")[0]:
        return False
    return any(mine.overlaps(each) for each in parse_resource(text, lock.repository, nested=lock.nested))


def _period(lock: Lock, now: int) -> LockPeriod:
    """Return the period of a lock on record; its deadline may have ended it already."""
    end_reason = ended_by_time(lock, now)
    if end_reason is None:
        return _period_of(lock, 0, "")
    return _period_of(lock, end_ms(lock, end_reason, now), end_reason.value)


def _former(ended: EndedLock) -> LockPeriod:
    return _period_of(ended.lock, ended.until_ms, ended.end_reason.value, ended.by)


def _period_of(lock: Lock, until_ms: int, end_reason: str, by: str = "") -> LockPeriod:
    names = (lock.resource, lock.owner, lock.agent, lock.mode.value)
    return LockPeriod(*names, lock.fence, lock.acquired_ms, until_ms, end_reason, by, lock.reason)


def list_lock_requests(tx: Transaction, _: ListLockRequests, now: int) -> list[LockRequestInfo]:
    """Return the lock requests whose deadline has not passed: waiting ones, then denied ones."""
    return [
        LockRequestInfo(request.session, request.resources, request.since_ms, request.denied)
        for prefix in (keys.WAIT_PREFIX, keys.DENIED_PREFIX)
        for _, request in waiting_requests(tx, prefix, now)
    ]


def check_locks(tx: Transaction, command: CheckLocks, now: int) -> CheckReply:
    """Return whether resources are free for the caller, or with a fence, whether it holds them under it."""
    session = find_session(tx, command.caller, now)
    nested = projects_nest(tx, command.resources)
    resources = parse_resources(
        command.resources, command.repository, NAMED_RESOURCES_MAX, command.exact, nested
    )
    if command.mode and command.mode not in list(Mode):
        raise Invalid(f"{command.mode!r} is not a mode", hint="use read, write or exclusive")
    requester = requester_of(tx, session)
    unheld = unheld_readings(tx, command, resources, session, now) if command.fence else set()
    holders: dict[str, LockInfo] = {}
    free = True
    for asked in resources:
        tx.get(asked.guard, Guard)  # that a resource is free relies on absence
        own = read_lock(tx, asked.lock_key(session)) if command.fence else None
        resource = asked if own is None else resource_of(own)  # a fence is about what is held
        mode = Mode(command.mode) if command.mode else PROFILES[resource.kind].mode
        for lock_at in _living(tx, _excluding(tx, requester, resource, mode, now), command.limit, now):
            if lock_at.key not in holders and len(holders) == command.limit > 0:
                return CheckReply(False, list(holders.values()), more=True)  # no other lock can change this
            holders[lock_at.key] = lock_info(require_lock(tx, lock_at.key), now)
            free = False
        if command.fence and asked.prefix not in unheld:
            free = free and own is not None and own.fence == command.fence and ended_by_time(own, now) is None
    return CheckReply(free, list(holders.values()))


def _excluding(
    tx: Transaction, requester: Requester, resource: Resource, mode: Mode, now: int
) -> Iterator[LockAt]:
    for lock_at in overlapping_locks(tx, resource):
        if excludes(requester, mode, lock_at.lock, now):
            yield lock_at


def _living(tx: Transaction, locks_at: Iterator[LockAt], limit: int, now: int) -> Iterator[LockAt]:
    """Yield the locks whose owner is not gone, and read no more of them at once than the caller needs."""
    while some := list(islice(locks_at, limit + 1 if limit else PAGE)):
        prefetch_owners(tx, some)
        for lock_at in some:
            if ended_by_death(tx, lock_at.lock, now) is None:
                yield lock_at


def list_locks(tx: Transaction, command: ListLocks, now: int) -> list[LockInfo]:
    """Return the locks that are held now, of one session or of all."""
    if command.session or command.own:
        name = find_session(tx, command.caller, now) if command.own else find_peer(tx, command.session)
        locks_at = locks_of(tx, name)
    else:
        locks_at = [read_lock_at(tx, found.key) for page in tx.pages(keys.LOCK_PREFIX) for found in page]
    return [
        lock_info(require_lock(tx, lock_at.key), now)
        for lock_at in locks_at
        if ended_by_time(lock_at.lock, now) is None
    ]


def page_ranges(command: GetLocks) -> list[Range]:
    """Return the ranges that a page of locks reads."""
    locks = Range(keys.LOCK_PREFIX, "key", command.limit + 1, ("", command.after))
    return [*([] if command.session else [locks]), Range(keys.WAIT_PREFIX, "key", PAGE)]


def get_locks(tx: Transaction, command: GetLocks, now: int) -> LockPage:
    """Return a page of the locks that are held now, in the order of their keys."""
    name = find_peer(tx, command.session) if command.session else ""
    prefix = keys.session_lock_prefix(name) if name else keys.LOCK_PREFIX
    if command.after and not command.after.startswith(prefix):
        raise Invalid(f"{short_repr(command.after)} is not on this list", hint="use what the last page gave")
    found = tx.scan(prefix, limit=command.limit + 1, after=("", command.after))
    page = found[: command.limit]
    locks_at = listed_locks(tx, page) if name else [read_lock_at(tx, entry.key) for entry in page]
    locks_at = [lock_at for lock_at in locks_at if ended_by_time(lock_at.lock, now) is None]
    waiting = _waiters(tx, locks_at, now)
    return LockPage(
        [
            lock_info(require_lock(tx, lock_at.key), now, waiters=waiting.get(lock_at.key, ()))
            for lock_at in locks_at
        ],
        page[-1].key if len(found) > len(page) else "",
    )


def waiting_requests(tx: Transaction, prefix: str, now: int) -> Iterator[RequestAt]:
    """Yield the requests below a prefix that wait now, in order; a page of them is loaded together."""
    for page in tx.pages(prefix):
        tx.prefetch(*(found.key for found in page))
        for found in page:
            request = tx.get(found.key, LockRequest)
            if request is None or request.state is not WaitState.WAITING:
                continue
            if now < keys.due_ms(found.index_key):
                yield RequestAt(found.key, request)


def _waiters(tx: Transaction, locks_at: list[LockAt], now: int) -> dict[str, list[str]]:
    """Return the sessions that wait for each of these locks, by the key of the lock."""
    requests = [request for _, request in waiting_requests(tx, keys.WAIT_PREFIX, now)]
    own = [each.lock_key(request.session) for request in requests for each in resources_of(request)]
    tx.prefetch(*(keys.session(request.session) for request in requests), *own)
    found: dict[str, list[str]] = {}
    for request in requests:
        for lock_at in blocking_among(tx, request, locks_at, now):
            found.setdefault(lock_at.key, []).append(request.session)
    return found


def watch_reads(command: WatchLocks) -> list[str]:
    """Return the keys that a look at held locks reads, so that it is one question to the store."""
    resources = _watched(command)
    guards = {resource.guard for resource in resources} if command.waiters else ()
    session = command.caller.session
    return [*caller_reads(command), *(resource.lock_key(session) for resource in resources), *guards]


def watch_locks(tx: Transaction, command: WatchLocks, now: int) -> list[LockWatch]:
    """Return the state of each lock: held, asked for by another session, or lost."""
    session = find_session(tx, command.caller, now)
    return [
        _watch(tx, resource, fence, session, command, now)
        for resource, fence in zip(_watched(command), command.fences, strict=True)
    ]


def _watched(command: WatchLocks) -> list[Resource]:
    return [parse_resource(text, command.repository)[0] for text in command.resources]


def _watch(
    tx: Transaction, resource: Resource, fence: int, session: str, command: WatchLocks, now: int
) -> LockWatch:
    key = resource.lock_key(session)
    lock = read_lock(tx, key)
    if lock is None or command.use not in lock.uses:
        ended = tx.get(keys.ended_lock(resource.space, fence, key), EndedLock)
        if ended is None:  # only the use ended: this session released it
            return LockWatch(resource.text, fence, held=False, end_reason="released")
        return LockWatch(
            resource.text, fence, held=False, end_reason=ended.end_reason.value, by=ended.by, note=ended.note
        )
    end_reason = ended_by_time(lock, now)
    if end_reason is not None:
        return LockWatch(
            resource.text, lock.fence, held=False, end_reason=end_reason.value, by=lock.preempted_by
        )
    return LockWatch(
        resource.text,
        lock.fence,
        held=True,
        asked_by=lock.preempted_by,
        ends_in_ms=lock.preempt_ms - now if lock.preempted_by else 0,
        waiters=_waiters_of(tx, resource, lock) if command.waiters else (),
    )


def _waiters_of(tx: Transaction, resource: Resource, lock: Lock) -> tuple[str, ...]:
    """Return the sessions in the wait queue that this lock blocks, in the order of the queue."""
    found = []
    for _, request in waiters(tx, [resource]):
        blocked = any(
            resource.overlaps(wanted) and not compatible(lock.mode, mode_of(request, wanted))
            for wanted in resources_of(request)
        )
        if blocked and request.session != lock.owner:
            found.append(request.session)
    return tuple(dict.fromkeys(found))
