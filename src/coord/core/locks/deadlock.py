"""Deadlocks: sessions that wait for each other in a cycle, found when the last of these waits begins.

The search starts from the new wait only, since the last edge closes the cycle. It follows waiting
and denied requests: a session waits for the holders that block its request, and for the requests
ahead of it in the queue. The search reads `waits/<session>` of every session that it visits, so a
cycle cannot close unseen. Only a lock that a session gets while its sub-agent waits closes a cycle
without a new wait: the sub-agent searches again when it confirms its wait.

The victim is the session that would lose least: the lowest priority, of its request and of the locks
that the others need; then one that is preemptible; then the one that has held its locks for the
shortest time. Its wait is refused with its loss, and the locks that the others need are revoked, in
the same commit.

If the cycle contains a denied request, nobody is blocked for certain. The victim is notified at once.
If every denied request is still renewed after `DENIED_PATIENCE_MS`, its locks are asked back as
`preempt` does it, and end after `GRACE_MS`. Shortly before that, `warning_deadline` lets the victim
keep them if a denied request was not renewed since.

The victim reads what it lost, to whom, and the one command to run next. The message, the command line
and the SDK show the same sentence.
"""

from collections.abc import Sequence
from shlex import quote

import msgspec

from coord.core import keys
from coord.core.locks.cycles import CycleSearch, Edge, TaskWaitAt, Waiting
from coord.core.locks.locks import LockAt, claims_of, end_lock
from coord.core.locks.resources import Resource
from coord.core.locks.revoke import ask_back, withdraw_ask
from coord.core.locks.schema import (
    DeadlockFound,
    DeadlockWarning,
    EndReason,
    Lock,
    LockRequest,
    SessionWaits,
    WaitState,
)
from coord.core.locks.table import LockTable, RequestAt, resources_of
from coord.core.locks.wait_queue import (
    drop_request,
    effective_priority,
    grant_waiters,
    leave_queue,
    put_waits,
)
from coord.core.messages.inbox import notify
from coord.core.transaction import Transaction

DENIED_PATIENCE_MS, GRACE_MS = 20_000, 30_000
"""A cycle with denied requests ends within a minute (DLK-13), if each of them is renewed every 10 s."""
RECHECK_MS = 5_000
"""How long before the end of the grace the denied requests are checked once more."""
WARNING_KEPT_MS = 120_000


def break_deadlocks(tx: Transaction, new: Waiting, known: dict[str, LockTable], now: int) -> tuple[str, ...]:
    """Break every cycle that a new wait closes; return the sessions of the last cycle found.

    `known` are lock tables that are loaded already, by the keys of their requests.
    """
    path: tuple[str, ...] = ()
    search = CycleSearch(tx, now, known)
    while True:
        waiting = _still_waiting(tx, new)
        if waiting is None:
            return path
        # Waits first: a cycle with a denied request must not hide one that certainly blocks everybody.
        skipped: list[str] = []
        cycle = search.find(waiting, skipped)
        if not cycle and skipped:
            cycle = search.find(waiting)
        if not cycle:
            return path
        path = (*(edge.session for edge in cycle), cycle[0].session)
        if not _resolve(tx, search, cycle, path, now):
            return path
        search = CycleSearch(tx, now, {})


def _still_waiting(tx: Transaction, new: Waiting) -> Waiting | None:
    """Return a wait as it is now, or None if it has ended."""
    if isinstance(new, TaskWaitAt):
        waits = tx.get(new.key, SessionWaits)
        task = waits.task if waits is not None else None
        return TaskWaitAt(new.key, task) if task is not None and task.state is WaitState.WAITING else None
    request = tx.get(new.key, LockRequest)
    if request is None or request.state is not WaitState.WAITING:
        return None
    return RequestAt(new.key, request)


def _resolve(
    tx: Transaction, search: CycleSearch, cycle: list[Edge], path: tuple[str, ...], now: int
) -> bool:
    """Break a cycle; False if its victim is only notified, or asked, for now."""
    needed = [search.needed_locks(edge.session, cycle[index - 1].waiting) for index, edge in enumerate(cycle)]
    index = _victim(cycle, needed, now)
    victim, before = cycle[index], cycle[index - 1]
    warning_key = keys.deadlock("\n".join(sorted({edge.session for edge in cycle})))
    warning = tx.get(warning_key, DeadlockWarning)
    denied = tuple(edge.waiting.key for edge in cycle if edge.waiting.request.denied)
    if denied:
        if warning is None:
            _warn(tx, warning_key, victim, before, needed[index], path, denied, now)
            return False
        if warning.until_ms or now - warning.since_ms < DENIED_PATIENCE_MS:
            return False
        if not _renewed(tx, denied, warning.since_ms):
            return False
        if needed[index]:
            asked = msgspec.structs.replace(warning, victim=victim.session, denied=denied)
            _ask(tx, warning_key, asked, needed[index], before.waiting.request.session, path, now)
            return False
    if warning is not None:
        _end_warning(tx, warning_key, warning, now)
    tx.emit(DeadlockFound(path, victim.session, True, warning.since_ms if warning else now))
    _revoke(tx, victim, before, needed[index], path, now)
    return True


def _warn(
    tx: Transaction,
    key: str,
    victim: Edge,
    before: Edge,
    needed: list[LockAt],
    path: tuple[str, ...],
    denied: tuple[str, ...],
    now: int,
) -> None:
    """Notify the victim of a cycle that may end by itself."""
    warning = DeadlockWarning(since_ms=now, victim=victim.session, denied=denied)
    tx.put(key, warning, keys.due(now + WARNING_KEPT_MS))
    tx.emit(DeadlockFound(path, victim.session, False, now))
    wanted = [lock_at.lock.resource for lock_at in needed] or victim.waiting.request.resources
    subject = f"Deadlock: {' -> '.join(path)}. Please release {', '.join(map(word, wanted))}"
    notify(
        tx, victim.session, "preempt", f"{subject}, which {before.session} needs", now, {"cycle": list(path)}
    )


def _renewed(tx: Transaction, denied: tuple[str, ...], since_ms: int) -> bool:
    """Whether every denied request of a cycle was renewed since a time."""
    requests = [tx.get(key, LockRequest) for key in denied]
    return all(request is not None and request.renewed_ms > since_ms for request in requests)


def _ask(
    tx: Transaction,
    key: str,
    warning: DeadlockWarning,
    needed: list[LockAt],
    by: str,
    path: tuple[str, ...],
    now: int,
) -> None:
    """Ask the locks of a victim back; those that were asked back before keep their deadline."""
    until_ms = now + GRACE_MS
    locks = {lock_at.key: lock_at for lock_at in needed if not lock_at.lock.preempted_by}
    for lock_at in locks.values():
        ask_back(tx, lock_at, by, f"deadlock: {' -> '.join(path)}", until_ms, now)
    asked = msgspec.structs.replace(warning, asked_ms=now, until_ms=until_ms, by=by, locks=tuple(locks))
    tx.put(key, asked, keys.due(until_ms - RECHECK_MS))
    tx.emit(DeadlockFound(path, warning.victim, False, warning.since_ms, until_ms))


def warning_deadline(tx: Transaction, key: str, now: int) -> None:
    """Forget a cycle; if a denied request was not renewed since, its victim keeps what was asked back.

    The warning then stays, with the patience from now on, so that the victim is not warned again at once.
    """
    warning = tx.get(key, DeadlockWarning)
    if warning is None:
        return
    if now >= warning.until_ms:
        tx.delete(key)
    elif _renewed(tx, warning.denied, warning.asked_ms):
        tx.put(key, warning, keys.due(warning.until_ms))
    else:
        _end_warning(tx, key, warning, now)
        patient = DeadlockWarning(since_ms=now, victim=warning.victim, denied=warning.denied)
        tx.put(key, patient, keys.due(now + WARNING_KEPT_MS))


def _end_warning(tx: Transaction, key: str, warning: DeadlockWarning, now: int) -> None:
    tx.delete(key)
    for lock_key in warning.locks:
        withdraw_ask(tx, lock_key, warning.by, warning.until_ms, now)


def _victim(cycle: list[Edge], needed: list[list[LockAt]], now: int) -> int:
    """Return the index of the session that loses least."""

    def cost(index: int) -> tuple[bool, int, bool, int, str]:
        session, (_, request) = cycle[index]
        locks = [lock_at.lock for lock_at in needed[index]]
        blocks_by_claim = not locks and isinstance(cycle[index - 1].waiting, TaskWaitAt)
        priority = max([effective_priority(request, now), *(lock.priority for lock in locks)])
        work_ms = now - min((lock.acquired_ms for lock in locks), default=now)
        preemptible = request.preemptible or any(lock.preemptible for lock in locks)
        return blocks_by_claim, priority, not preemptible, work_ms, session

    return min(range(len(cycle)), key=cost)


def _revoke(
    tx: Transaction, victim: Edge, before: Edge, needed: list[LockAt], path: tuple[str, ...], now: int
) -> None:
    """Refuse the wait of a victim, revoke the locks that block the one before it, and say so."""
    request, winner = victim.waiting.request, before.waiting.request.session
    lost = tuple(sorted(lock_at.lock.resource for lock_at in needed))
    claims = tuple(sorted({task for lock_at in needed for task in claims_of(lock_at.lock)}))
    again, task = sorted({*request.resources, *lost}), isinstance(victim.waiting, TaskWaitAt)
    subject = deadlock_text(lost, winner, again, claims, task=task)
    for name in dict.fromkeys((victim.session, request.session)):
        notify(tx, name, "preempt", subject, now, {"cycle": list(path)})
    freed = _refuse(tx, victim.waiting, path, lost, winner, claims)
    for lock_at in needed:
        if tx.get(lock_at.key, Lock) is not None:
            freed += end_lock(tx, lock_at, EndReason.DEADLOCK, now, by=winner, note=" -> ".join(path))
    grant_waiters(tx, freed, now)


def _refuse(
    tx: Transaction,
    waiting: Waiting,
    path: tuple[str, ...],
    lost: tuple[str, ...],
    winner: str,
    claims: tuple[str, ...],
) -> list[Resource]:
    """End a wait with the loss, which its process reads; return what the wait no longer blocks."""
    loss = {"cycle": path, "lost": lost, "lost_to": winner, "claims": claims}
    if isinstance(waiting, TaskWaitAt):
        waits = tx.get(waiting.key, SessionWaits) or SessionWaits()
        refused = msgspec.structs.replace(waiting.request, state=WaitState.REFUSED, **loss)
        put_waits(tx, refused.session, msgspec.structs.replace(waits, task=refused))
        return []
    if waiting.request.denied:
        drop_request(tx, waiting, "deadlock")
    else:
        leave_queue(tx, waiting, WaitState.REFUSED, **loss)
    return resources_of(waiting.request)


def loss_text(lost: Sequence[str], lost_to: str, *, task: bool = False) -> str:
    """Return what a session lost in a deadlock; `task`: it waited for a task, not for locks."""
    if not lost and task:
        return f"Deadlock: {lost_to} waits behind the task that you hold. Submit or release it"
    if not lost:
        return f"Deadlock: you lost your place in the wait queue to {lost_to}, but no lock"
    them = "it" if len(lost) == 1 else "them"
    verb = "editing" if all(resource.startswith("file:") for resource in lost) else "using"
    return f"Deadlock: you lost {', '.join(map(word, lost))} to {lost_to}. Stop {verb} {them}"


def next_command(again: Sequence[str], claims: Sequence[str] = (), *, task: bool = False) -> str:
    """Return the command that requests everything together, and the lost tasks after it.

    A session that waits for a task waits first, while it blocks nobody.
    """
    commands = [f"coord lock {' '.join(quote(word(resource)) for resource in again)}"] if again else []
    if task:
        return " && ".join(["coord task next --wait 10m", *commands])
    return " && ".join([*commands, *(f"coord task claim {quote(name)}" for name in claims)])


def deadlock_text(
    lost: Sequence[str], lost_to: str, again: Sequence[str], claims: Sequence[str] = (), *, task: bool = False
) -> str:
    """Return the whole sentence: the loss, and what to run next."""
    joint = ", then run:" if lost or task else ". To wait again, run:"
    return f"{loss_text(lost, lost_to, task=task)}{joint} {next_command(again, claims, task=task)}"


def word(resource: str) -> str:
    """Return a resource as people type it."""
    return resource.removeprefix("file:")
