"""Deadlocks: sessions that wait for each other in a cycle, found when the last of these waits begins.

The search starts from the new wait only, since the last edge closes the cycle. It follows waiting
and denied requests: a session waits for the holders that block its request, and for the requests
ahead of it in the queue. The search reads `waits/<session>` of every session that it visits, so a
cycle cannot close unseen.

The victim is the session with the lowest effective priority, then one that is preemptible, then the
one that has held its locks for the shortest time. Its wait is refused with the cycle, and the locks
that the others need are revoked, in the same commit. If the cycle contains a denied request, nobody
is blocked for certain: the victim is notified at once, and loses its locks after
`DENIED_PATIENCE_MS`, if every denied request was renewed by then.
"""

from collections.abc import Iterable
from itertools import takewhile
from typing import NamedTuple

from coord.core import keys
from coord.core.locks.locks import LockAt, compatible, end_lock, locks_of
from coord.core.locks.schema import (
    DeadlockFound,
    DeadlockWarning,
    EndReason,
    Guard,
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

DENIED_PATIENCE_MS = 30_000
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
            if not request.denied or self._now < request.renewed_ms + 2 * DENIED_PATIENCE_MS:
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
    """Break a cycle; False if its victim is only notified for now."""
    tables = [search.table_of(edge.waiting) for edge in cycle]
    index = _victim(tx, cycle, tables, now)
    victim, before = cycle[index], cycle[index - 1]
    warning_key = keys.deadlock("\n".join(sorted({edge.session for edge in cycle})))
    warning = tx.get(warning_key, DeadlockWarning)
    denied = [edge.waiting.request for edge in cycle if edge.waiting.request.denied]
    if denied and not (
        warning and now - warning.since_ms >= DENIED_PATIENCE_MS and _renewed(denied, warning.since_ms)
    ):
        if warning is None:
            new_warning = DeadlockWarning(since_ms=now, victim=victim.session)
            tx.put(warning_key, new_warning, keys.due(now + WARNING_KEPT_MS))
            tx.emit(DeadlockFound(path, victim.session, False, now))
            notify(tx, victim.session, "preempt", _plea(before, path), now, {"cycle": list(path)})
        return False
    if warning is not None:
        tx.delete(warning_key)
    tx.emit(DeadlockFound(path, victim.session, True, warning.since_ms if warning else now))
    _revoke(tx, victim, tables[index - 1], path, now)
    return True


def _renewed(denied: list[LockRequest], since_ms: int) -> bool:
    return all(request.renewed_ms > since_ms for request in denied)


def _victim(tx: Transaction, cycle: list[Edge], tables: list[LockTable], now: int) -> int:
    """Return the index of the session that loses least."""

    def cost(index: int) -> tuple[int, bool, int, str]:
        session, (_, request) = cycle[index]
        needed = _needed(tx, session, tables[index - 1])
        work_ms = now - min((lock_at.lock.acquired_ms for lock_at in needed), default=now)
        preemptible = request.preemptible or any(lock_at.lock.preemptible for lock_at in needed)
        return effective_priority(request, now), not preemptible, work_ms, session

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
    needed = {lock_at.key: lock_at for lock_at in _needed(tx, victim.session, table)}
    winner = table.request.session
    notify(tx, victim.session, "preempt", _loss(needed, winner, path), now, {"cycle": list(path)})
    freed = resources_of(victim.waiting.request)
    if victim.waiting.request.denied:
        drop_request(tx, victim.waiting, "deadlock")
    else:
        leave_queue(tx, victim.waiting, WaitState.REFUSED, path)
    for lock_at in needed.values():
        freed += end_lock(tx, lock_at, EndReason.DEADLOCK, now, by=winner, note=" -> ".join(path))
    grant_waiters(tx, freed, now)


def _plea(before: Edge, path: tuple[str, ...]) -> str:
    wanted = ", ".join(before.waiting.request.resources)
    return f"Deadlock: {' -> '.join(path)}. Please release {wanted}, which {before.session} needs"


def _loss(needed: dict[str, LockAt], winner: str, path: tuple[str, ...]) -> str:
    lost = ", ".join(lock_at.lock.resource for lock_at in needed.values()) or "your place in the wait queue"
    return f"Deadlock: {' -> '.join(path)}. You lost {lost} to {winner}; back out and try again"
