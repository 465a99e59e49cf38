"""Deadlocks: sessions that wait for each other in a cycle, found when the last of these waits begins.

The search starts from the new wait only, since the last edge closes the cycle. It follows waiting
and denied requests: a session waits for the holders that block its request, and for the requests
ahead of it in the queue. The search reads `waits/<session>` of every session that it visits, so a
cycle cannot close unseen.

The victim is the session that would lose least: the lowest priority, of its request and of the locks
that the others need; then one that is preemptible; then the one that has held its locks for the
shortest time. Its wait is refused with its loss, and the locks that the others need are revoked, in
the same commit.

If the cycle contains a denied request, nobody is blocked for certain. The victim is notified at once.
If every denied request is still renewed after `DENIED_PATIENCE_MS`, its locks are asked back as
`preempt` does it, and end after `GRACE_MS`. Shortly before that, `warning_deadline` lets the victim
keep them if a denied request was not renewed since.
"""

from collections.abc import Iterable
from itertools import takewhile
from typing import NamedTuple

import msgspec

from coord.core import keys
from coord.core.locks.locks import LockAt, claims_of, compatible, end_lock, locks_of
from coord.core.locks.losses import deadlock_text, word
from coord.core.locks.revoke import ask_back, withdraw_ask
from coord.core.locks.schema import (
    DeadlockFound,
    DeadlockWarning,
    EndReason,
    Guard,
    Lock,
    LockRequest,
    SessionWaits,
    WaitState,
)
from coord.core.locks.table import (
    LockTable,
    RequestAt,
    blocking_locks,
    conflicts_with,
    load_table,
    resources_of,
    waiters,
)
from coord.core.locks.wait_queue import drop_request, effective_priority, grant_waiters, leave_queue
from coord.core.messages.inbox import notify
from coord.core.transaction import Transaction

DENIED_PATIENCE_MS, GRACE_MS = 20_000, 30_000
"""A cycle with denied requests ends within a minute (DLK-13), if each of them is renewed every 10 s."""
DENIED_FRESH_MS = 60_000
RECHECK_MS = 5_000
"""How long before the end of the grace the denied requests are checked once more."""
WARNING_KEPT_MS = 120_000
VISITS_MAX, DEPTH_MAX = 1000, 200


class Edge(NamedTuple):
    """One request in a cycle; the next session in the cycle blocks it."""

    session: str
    waiting: RequestAt


class CycleSearch:
    """A search for cycles that looks at each request and at the wait queue once.

    It is valid until a lock or a request changes.
    """

    def __init__(self, tx: Transaction, now: int, known: dict[str, LockTable]) -> None:
        self._tx = tx
        self._now = now
        self._tables = known
        self._queue: list[RequestAt] | None = None

    def table_of(self, waiting: RequestAt) -> LockTable:
        """Return the lock table of a request; its wait queue is empty."""
        table = self._tables.get(waiting.key)
        if table is None:
            table = load_table(self._tx, waiting.request, self._now, waiting=())
            self._tables[waiting.key] = table
        return table

    def find(self, new: RequestAt, skipped: list[str] | None = None) -> list[Edge]:
        """Return the waits of a cycle through the new one, beginning with it; empty if there is none.

        With `skipped`, the search does not follow the denied requests of other sessions but lists them there.
        """
        trail = _Trail(self, new, skipped)
        return trail.edges if trail.closes(new) else []

    def queue_for(self, request: LockRequest) -> dict[str, RequestAt]:
        """Return the wait queue in which a request waits, by key."""
        if self._queue is None:
            self._queue = waiters(self._tx, resources_of(request))
        return {each.key: each for each in self._queue}

    def sessions_waited_for(self, waiting: RequestAt, ahead: Iterable[RequestAt]) -> list[str]:
        """Return the sessions that a request waits for: holders, and conflicting requests ahead of it."""
        tx, request = self._tx, waiting.request
        found = [lock_at.lock.owner for lock_at in blocking_locks(self.table_of(waiting), self._now)]
        if not request.denied:
            for guard in sorted({resource.guard for resource in resources_of(request)}):
                tx.get(guard, Guard)  # the search relies on nobody else having joined
            found += [other.session for _, other in ahead if conflicts_with(request, other)]
        sessions = list(dict.fromkeys(found))
        tx.prefetch(*(keys.waits(session) for session in sessions))
        return sessions

    def requests_of(self, session: str) -> list[RequestAt]:
        """Return the waiting and the recently denied requests of a session."""
        waits = self._tx.get(keys.waits(session), SessionWaits)
        found = []
        for key in waits.keys if waits is not None else ():
            request = self._tx.get(key, LockRequest)
            if request is None or request.state is not WaitState.WAITING:
                continue
            if not request.denied or self._now < request.renewed_ms + DENIED_FRESH_MS:
                found.append(RequestAt(key, request))
        return found


class _Trail:
    """The path of one search from the new wait; `edges` is the cycle once it closes."""

    def __init__(self, search: CycleSearch, new: RequestAt, skipped: list[str] | None) -> None:
        self.edges = [Edge(new.request.session, new)]
        self._search = search
        self._skipped = skipped
        self._visited: set[str] = set()
        # Visited requests leave this copy of the queue: otherwise the search would be quadratic.
        self._queue: dict[str, RequestAt] | None = None

    def closes(self, waiting: RequestAt) -> bool:
        """Follow a wait; True if the path comes back to the session of the new wait."""
        if self._queue is None and not waiting.request.denied:
            self._queue = self._search.queue_for(waiting.request)
        queue = self._queue.values() if self._queue is not None else ()
        ahead = takewhile(lambda each: each.key < waiting.key, queue)
        for session in self._search.sessions_waited_for(waiting, ahead):
            if session == self.edges[0].session:
                return True
            if session in self._visited or len(self._visited) >= VISITS_MAX or len(self.edges) >= DEPTH_MAX:
                continue
            self._visited.add(session)
            if self._closes_from(session):
                return True
        return False

    def _closes_from(self, session: str) -> bool:
        requests = self._search.requests_of(session)
        for each in requests:
            if self._queue is not None:
                self._queue.pop(each.key, None)
        for each in requests:
            if each.request.denied and self._skipped is not None:
                self._skipped.append(each.key)
                continue
            self.edges.append(Edge(session, each))
            if self.closes(each):
                return True
            self.edges.pop()
        return False


def break_deadlocks(tx: Transaction, new: RequestAt, table: LockTable, now: int) -> tuple[str, ...]:
    """Break every cycle that a new request closes; return the sessions of the last cycle found."""
    path: tuple[str, ...] = ()
    search = CycleSearch(tx, now, {new.key: table})
    while True:
        request = tx.get(new.key, LockRequest)
        if request is None or request.state is not WaitState.WAITING:
            return path
        waiting = RequestAt(new.key, request)
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


def _resolve(
    tx: Transaction, search: CycleSearch, cycle: list[Edge], path: tuple[str, ...], now: int
) -> bool:
    """Break a cycle; False if its victim is only notified, or asked, for now."""
    tables = [search.table_of(edge.waiting) for edge in cycle]
    index = _victim(tx, cycle, tables, now)
    victim, table = cycle[index], tables[index - 1]
    warning_key = keys.deadlock("\n".join(sorted({edge.session for edge in cycle})))
    warning = tx.get(warning_key, DeadlockWarning)
    denied = tuple(edge.waiting.key for edge in cycle if edge.waiting.request.denied)
    if denied:
        if warning is None:
            _warn(tx, warning_key, victim.session, cycle[index - 1], path, denied, now)
            return False
        if warning.until_ms or now - warning.since_ms < DENIED_PATIENCE_MS:
            return False
        if not _renewed(tx, denied, warning.since_ms):
            return False
        if needed := _needed(tx, victim.session, table):
            asked = msgspec.structs.replace(warning, victim=victim.session, denied=denied)
            _ask(tx, warning_key, asked, needed, table.request.session, path, now)
            return False
    if warning is not None:
        _end_warning(tx, warning_key, warning, now)
    tx.emit(DeadlockFound(path, victim.session, True, warning.since_ms if warning else now))
    _revoke(tx, victim, table, path, now)
    return True


def _warn(
    tx: Transaction,
    key: str,
    victim: str,
    before: Edge,
    path: tuple[str, ...],
    denied: tuple[str, ...],
    now: int,
) -> None:
    """Notify the victim of a cycle that may end by itself."""
    warning = DeadlockWarning(since_ms=now, victim=victim, denied=denied)
    tx.put(key, warning, keys.due(now + WARNING_KEPT_MS))
    tx.emit(DeadlockFound(path, victim, False, now))
    wanted = ", ".join(map(word, before.waiting.request.resources))
    subject = f"Deadlock: {' -> '.join(path)}. Please release {wanted}, which {before.session} needs"
    notify(tx, victim, "preempt", subject, now, {"cycle": list(path)})


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


def _victim(tx: Transaction, cycle: list[Edge], tables: list[LockTable], now: int) -> int:
    """Return the index of the session that loses least."""

    def cost(index: int) -> tuple[int, bool, int, str]:
        session, (_, request) = cycle[index]
        needed = _needed(tx, session, tables[index - 1])
        priority = max([effective_priority(request, now), *(lock_at.lock.priority for lock_at in needed)])
        work_ms = now - min((lock_at.lock.acquired_ms for lock_at in needed), default=now)
        preemptible = request.preemptible or any(lock_at.lock.preemptible for lock_at in needed)
        return priority, not preemptible, work_ms, session

    return min(range(len(cycle)), key=cost)


def _needed(tx: Transaction, session: str, table: LockTable) -> list[LockAt]:
    """Return the locks of a session that block a request."""
    return [
        lock_at
        for lock_at in locks_of(tx, session)
        for wanted in table.wanted
        if wanted.resource.overlaps(lock_at.resource) and not compatible(wanted.mode, lock_at.lock.mode)
    ]


def _revoke(tx: Transaction, victim: Edge, table: LockTable, path: tuple[str, ...], now: int) -> None:
    """Refuse the wait of a victim, revoke the locks that block the request of the table, and say so."""
    needed = {lock_at.key: lock_at for lock_at in _needed(tx, victim.session, table)}
    request, winner = victim.waiting.request, table.request.session
    lost = tuple(sorted(lock_at.lock.resource for lock_at in needed.values()))
    claims = tuple(sorted(set().union(*(claims_of(lock_at.lock) for lock_at in needed.values()))))
    subject = deadlock_text(lost, winner, sorted({*request.resources, *lost}), claims)
    notify(tx, victim.session, "preempt", subject, now, {"cycle": list(path)})
    freed = resources_of(request)
    if request.denied:
        drop_request(tx, victim.waiting, "deadlock")
    else:
        loss = {"cycle": path, "lost": lost, "lost_to": winner, "claims": claims}
        leave_queue(tx, victim.waiting, WaitState.REFUSED, **loss)
    for lock_at in needed.values():
        if tx.get(lock_at.key, Lock) is not None:
            freed += end_lock(tx, lock_at, EndReason.DEADLOCK, now, by=winner, note=" -> ".join(path))
    grant_waiters(tx, freed, now)
