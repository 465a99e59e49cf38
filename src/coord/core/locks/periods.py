"""When locks were held: those on record now, and the ended ones of the last months."""

from collections.abc import Iterator

from coord.core import keys
from coord.core.errors import Invalid
from coord.core.locks.commands import ListLockPeriods, LockPeriod, LockPeriods
from coord.core.locks.locks import end_ms, ended_by_time, read_lock, resource_of
from coord.core.locks.resources import NAMED_RESOURCES_MAX, TENANT_WIDE, parse_resource
from coord.core.locks.schema import EndedLock, Lock
from coord.core.transaction import PAGE, Transaction

FENCE_END = 10**16 - 1
"""Above every fence: it has 16 digits in a key."""
READ_MAX = 4 * PAGE
"""After how many ended locks a page ends, though few of them may be asked for."""
WIDER = 8


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
    return _ended(tx, command) if command.ended else _present(tx, command, now)


def _present(tx: Transaction, command: ListLockPeriods, now: int) -> LockPeriods:
    prefix = f"{keys.locks(command.space)}/" if command.space else keys.LOCK_PREFIX
    page = tx.scan(prefix, limit=command.limit, after=("", command.after))
    tx.prefetch(*(found.key for found in page))
    locks = [lock for found in page if (lock := read_lock(tx, found.key)) is not None]
    periods = [_period(lock, now) for lock in locks if _is_selected(lock, command)]
    return LockPeriods(periods, page[-1].key if len(page) == command.limit else "")


def _ended(tx: Transaction, command: ListLockPeriods) -> LockPeriods:
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
    return not command.resources or any(_overlaps(lock, text) for text in command.resources)


def _overlaps(lock: Lock, text: str) -> bool:
    mine = resource_of(lock)
    if mine.kind != text.partition(":")[0]:
        return False
    return any(mine.overlaps(each) for each in parse_resource(text, lock.repository, nested=lock.nested))


def _period(lock: Lock, now: int) -> LockPeriod:
    """Return the period of a lock on record; its deadline may have ended it already."""
    end_reason = ended_by_time(lock, now)
    if end_reason is None:
        return _held(lock, 0, "")
    return _held(lock, end_ms(lock, end_reason, now), end_reason.value)


def _former(ended: EndedLock) -> LockPeriod:
    return _held(ended.lock, ended.until_ms, ended.end_reason.value, ended.by)


def _held(lock: Lock, until_ms: int, end_reason: str, by: str = "") -> LockPeriod:
    names = (lock.resource, lock.owner, lock.agent, lock.mode.value)
    return LockPeriod(*names, lock.fence, lock.acquired_ms, until_ms, end_reason, by, lock.reason)
