"""Deadlocks: sessions that wait for each other in a circle, found when the last of these waits begins.

The search starts from the new wait only, since the last edge closes the circle. It follows waits and bids:
a session waits for those whose holds stand in the way of what it wants, and for those ahead of it in line.
`waits/<session>` is expected of every session that the search visits, so a circle cannot close unseen.

The victim is the one with the lowest effective priority, then one that said it is preemptible, then the one
that has held its locks for the shortest time. Its wait is refused with the circle, and what the others need
of it is revoked, in the same commit. Where a bid is part of the circle nobody is blocked for certain: the
victim is told at once; its locks are revoked after `DENIED_PATIENCE_MS`, and only if every bid was renewed.
"""

from collections.abc import Iterable
from itertools import takewhile
from typing import NamedTuple

from coord.core import keys
from coord.core.locks.locks import LockAt, compatible, end_lock, locks_of, requester_of
from coord.core.locks.schema import (
    DeadlockFound,
    DeadlockWarning,
    EndReason,
    Guard,
    LockRequest,
    SessionWaits,
    WaitState,
)
from coord.core.locks.wait_queue import (
    RequestAt,
    blockers,
    conflicts_with,
    drop_request,
    effective_priority,
    grant_waiters,
    leave_queue,
    resources_of,
    resulting_locks,
    waiters,
)
from coord.core.messages.send import notify
from coord.core.transaction import Transaction

DENIED_PATIENCE_MS = 30_000
TOLD_KEPT_MS = 120_000
VISITS_MAX, DEPTH_MAX = 1000, 200


class Edge(NamedTuple):
    """One session's wait inside a circle; it is for what the next session in the circle has."""

    session: str
    waiting: RequestAt


def break_deadlocks(tx: Transaction, new: RequestAt, now: int) -> tuple[str, ...]:
    """Resolve every circle that a new wait or bid closes; return the last one met, as sessions."""
    shown: tuple[str, ...] = ()
    while True:
        request = tx.get(new.key, LockRequest)
        if request is None or request.state is not WaitState.WAITING:
            return shown
        waiting = RequestAt(new.key, request)
        # Waits alone first: a circle with a bid in it must not hide one that blocks everybody for certain.
        passed_over: list[str] = []
        circle = find_cycle(tx, waiting, now, passed_over)
        if not circle and passed_over:
            circle = find_cycle(tx, waiting, now)
        if not circle:
            return shown
        shown = (*(edge.session for edge in circle), circle[0].session)
        if not _resolve(tx, circle, shown, now):
            return shown


def find_cycle(tx: Transaction, new: RequestAt, now: int, passed_over: list[str] | None = None) -> list[Edge]:
    """Return the waits of a circle through the new one, beginning with it; empty if there is none.

    With `passed_over` the bids of others are not followed, but named there.
    """
    start = new.request.session
    trail: list[Edge] = [Edge(start, new)]
    visited: set[str] = set()
    line: dict[
        str, RequestAt
    ] = {}  # read once, and left by those visited: else the search would be quadratic
    read = False

    def add_dependent(waiting: RequestAt) -> bool:
        nonlocal read
        if not read and not waiting.request.denied:
            read = True
            line.update((each.key, each) for each in waiters(tx, resources_of(waiting.request)))
        ahead = takewhile(lambda each: each.key < waiting.key, line.values())
        sessions = _waits_for(tx, waiting, ahead, now)
        tx.prefetch(*(keys.waits(session) for session in sessions))
        for session in sessions:
            if session == start:
                return True
            if session in visited or len(visited) >= VISITS_MAX or len(trail) >= DEPTH_MAX:
                continue
            visited.add(session)
            theirs = _waits_of(tx, session, now)
            for each in theirs:
                line.pop(each.key, None)
            for each in theirs:
                if each.request.denied and passed_over is not None:
                    passed_over.append(each.key)
                    continue
                trail.append(Edge(session, each))
                if add_dependent(each):
                    return True
                trail.pop()
        return False

    return trail if add_dependent(new) else []


def _waits_of(tx: Transaction, session: str, now: int) -> list[RequestAt]:
    """Return what a session waits and bids for."""
    waits = tx.get(keys.waits(session), SessionWaits)
    found = []
    for key in waits.keys if waits is not None else ():
        request = tx.get(key, LockRequest)
        lapsed = request is not None and request.denied and now >= request.renewed_ms + 2 * DENIED_PATIENCE_MS
        if request is not None and request.state is WaitState.WAITING and not lapsed:
            found.append(RequestAt(key, request))
    return found


def _waits_for(tx: Transaction, waiting: RequestAt, ahead: Iterable[RequestAt], now: int) -> list[str]:
    """Return the sessions that a request waits for: holders, and those of the ones ahead that compete."""
    request = waiting.request
    found = [lock_at.lock.owner for lock_at in blockers(tx, requester_of(tx, request.session), request, now)]
    if not request.denied:
        for guard in sorted({resource.guard for resource in resources_of(request)}):
            tx.get(guard, Guard)  # nobody else has come
        found += [other.session for _, other in ahead if conflicts_with(request, other)]
    return list(dict.fromkeys(found))


def _resolve(tx: Transaction, circle: list[Edge], shown: tuple[str, ...], now: int) -> bool:
    """Break a circle; False if its victim is only told for now."""
    place = _victim(tx, circle, now)
    victim, before = circle[place], circle[place - 1]
    told_key = keys.deadlock("\n".join(sorted({edge.session for edge in circle})))
    told = tx.get(told_key, DeadlockWarning)
    bids = [edge.waiting.request for edge in circle if edge.waiting.request.denied]
    if bids and not (told and now - told.since_ms >= DENIED_PATIENCE_MS and _renewed(bids, told.since_ms)):
        if told is None:
            tx.put(
                told_key, DeadlockWarning(since_ms=now, victim=victim.session), keys.due(now + TOLD_KEPT_MS)
            )
            tx.emit(DeadlockFound(shown, victim.session, False, now))
            notify(
                tx,
                victim.session,
                "preempt",
                _sentence(before, "give back", shown),
                now,
                {"cycle": list(shown)},
            )
        return False
    if told is not None:
        tx.delete(told_key)
    tx.emit(DeadlockFound(shown, victim.session, True, told.since_ms if told else now))
    _revoke(tx, victim, before.waiting.request, shown, now)
    return True


def _renewed(bids: list[LockRequest], since_ms: int) -> bool:
    return all(denied.renewed_ms > since_ms for denied in bids)


def _victim(tx: Transaction, circle: list[Edge], now: int) -> int:
    """Return the place in the circle of whom it costs least."""

    def cost(place: int) -> tuple[int, bool, int, str]:
        session, (_, request) = circle[place]
        needed = _needed(tx, session, circle[place - 1].waiting.request, now)
        work_ms = now - min((lock_at.lock.acquired_ms for lock_at in needed), default=now)
        preemptible = request.preemptible or any(lock_at.lock.preemptible for lock_at in needed)
        return effective_priority(request, now), not preemptible, work_ms, session

    return min(range(len(circle)), key=cost)


def _needed(tx: Transaction, session: str, wanted: LockRequest, now: int) -> list[LockAt]:
    """Return the holds of a session that stand in the way of a request."""
    return [
        lock_at
        for lock_at in locks_of(tx, session)
        for resource, mode in resulting_locks(tx, wanted, now)
        if resource.overlaps(lock_at.resource) and not compatible(mode, lock_at.lock.mode)
    ]


def _revoke(tx: Transaction, victim: Edge, wanted: LockRequest, shown: tuple[str, ...], now: int) -> None:
    needed = {lock_at.key: lock_at for lock_at in _needed(tx, victim.session, wanted, now)}
    notify(tx, victim.session, "preempt", _sentence_lost(needed, wanted, shown), now, {"cycle": list(shown)})
    freed = resources_of(victim.waiting.request)
    if victim.waiting.request.denied:
        drop_request(tx, victim.waiting, "deadlock")
    else:
        leave_queue(tx, victim.waiting, WaitState.REFUSED, shown)
    for lock_at in needed.values():
        freed += end_lock(tx, lock_at, EndReason.DEADLOCK, now, by=wanted.session, note=" -> ".join(shown))
    grant_waiters(tx, freed, now)


def _sentence(before: Edge, verb: str, shown: tuple[str, ...]) -> str:
    wanted = ", ".join(before.waiting.request.resources)
    return f"Deadlock: {' -> '.join(shown)}. Please {verb} {wanted}, which {before.session} needs"


def _sentence_lost(needed: dict[str, LockAt], wanted: LockRequest, shown: tuple[str, ...]) -> str:
    lost = ", ".join(lock_at.lock.resource for lock_at in needed.values()) or "your place in line"
    return f"Deadlock: {' -> '.join(shown)}. You lost {lost} to {wanted.session}; back out and try again"
