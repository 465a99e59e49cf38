"""Deadlocks: sessions that wait for each other in a circle, found when the last of these waits begins.

The search starts from the new wait only, since the last edge closes the circle. It follows waits and bids:
a session waits for those whose holds stand in the way of what it wants, and for those ahead of it in line.
`waits/<session>` is expected of every session that the search visits, so a circle cannot close unseen.

The victim is the one with the lowest effective priority, then one that said it is preemptible, then the one
that has held its locks for the shortest time. Its wait is refused with the circle, and what the others need
of it is revoked, in the same commit. Where a bid is part of the circle nobody is blocked for certain: the
victim is told at once, and its locks are revoked after `BID_PATIENCE_MS` only if every bid was renewed since.
"""

from collections.abc import Iterable
from itertools import takewhile
from typing import NamedTuple

from coord.core import keys
from coord.core.events import DeadlockFound
from coord.core.locks.locks import Ending, Guard, Standing, asker_of, compatible, end_hold, holds_of
from coord.core.locks.wait_queue import (
    Request,
    Waiting,
    Waits,
    WaitState,
    blockers,
    competes,
    drop_request,
    effective_priority,
    in_line,
    leave_line,
    resources_of,
    serve,
    would_hold,
)
from coord.core.messages.message import tell
from coord.core.records import Stored
from coord.core.transaction import View

BID_PATIENCE_MS = 30_000
TOLD_KEPT_MS = 120_000
VISITS_MAX, DEPTH_MAX = 1000, 200


class Told(Stored, frozen=True, tag=1):
    """A circle with bids in it, and since when its victim knows."""

    since_ms: int = 0
    victim: str = ""


class Edge(NamedTuple):
    """One session's wait inside a circle; it is for what the next session in the circle has."""

    session: str
    waiting: Waiting


def break_deadlocks(view: View, new: Waiting, now: int) -> tuple[str, ...]:
    """Resolve every circle that a new wait or bid closes; return the last one met, as sessions."""
    shown: tuple[str, ...] = ()
    while True:
        request = view.get(new.key, Request)
        if request is None or request.state is not WaitState.WAITING:
            return shown
        waiting = Waiting(new.key, request)
        # Waits alone first: a circle with a bid in it must not hide one that blocks everybody for certain.
        passed_over: list[str] = []
        circle = find_circle(view, waiting, now, passed_over)
        if not circle and passed_over:
            circle = find_circle(view, waiting, now)
        if not circle:
            return shown
        shown = (*(edge.session for edge in circle), circle[0].session)
        if not _resolve(view, circle, shown, now):
            return shown


def find_circle(view: View, new: Waiting, now: int, passed_over: list[str] | None = None) -> list[Edge]:
    """Return the waits of a circle through the new one, beginning with it; empty if there is none.

    With `passed_over` the bids of others are not followed, but named there.
    """
    start = new.request.session
    trail: list[Edge] = [Edge(start, new)]
    visited: set[str] = set()
    line: dict[str, Waiting] = {}  # read once, and left by those visited: else the search would be quadratic
    read = False

    def follow(waiting: Waiting) -> bool:
        nonlocal read
        if not read and not waiting.request.bid:
            read = True
            line.update((each.key, each) for each in in_line(view, resources_of(waiting.request)))
        ahead = takewhile(lambda each: each.key < waiting.key, line.values())
        sessions = _waits_for(view, waiting, ahead, now)
        view.want(*(keys.waits(session) for session in sessions))
        for session in sessions:
            if session == start:
                return True
            if session in visited or len(visited) >= VISITS_MAX or len(trail) >= DEPTH_MAX:
                continue
            visited.add(session)
            theirs = _waits_of(view, session, now)
            for each in theirs:
                line.pop(each.key, None)
            for each in theirs:
                if each.request.bid and passed_over is not None:
                    passed_over.append(each.key)
                    continue
                trail.append(Edge(session, each))
                if follow(each):
                    return True
                trail.pop()
        return False

    return trail if follow(new) else []


def _waits_of(view: View, session: str, now: int) -> list[Waiting]:
    """Return what a session waits and bids for."""
    waits = view.get(keys.waits(session), Waits)
    found = []
    for key in waits.keys if waits is not None else ():
        request = view.get(key, Request)
        lapsed = request is not None and request.bid and now >= request.renewed_ms + 2 * BID_PATIENCE_MS
        if request is not None and request.state is WaitState.WAITING and not lapsed:
            found.append(Waiting(key, request))
    return found


def _waits_for(view: View, waiting: Waiting, ahead: Iterable[Waiting], now: int) -> list[str]:
    """Return the sessions that a request waits for: holders, and those of the ones ahead that compete."""
    request = waiting.request
    found = [
        standing.hold.owner for standing in blockers(view, asker_of(view, request.session), request, now)
    ]
    if not request.bid:
        for guard in sorted({resource.guard for resource in resources_of(request)}):
            view.get(guard, Guard)  # nobody else has come
        found += [other.session for _, other in ahead if competes(request, other)]
    return list(dict.fromkeys(found))


def _resolve(view: View, circle: list[Edge], shown: tuple[str, ...], now: int) -> bool:
    """Break a circle; False if its victim is only told for now."""
    place = _victim(view, circle, now)
    victim, before = circle[place], circle[place - 1]
    told_key = keys.deadlock("\n".join(sorted({edge.session for edge in circle})))
    told = view.get(told_key, Told)
    bids = [edge.waiting.request for edge in circle if edge.waiting.request.bid]
    if bids and not (told and now - told.since_ms >= BID_PATIENCE_MS and _renewed(bids, told.since_ms)):
        if told is None:
            view.put(told_key, Told(since_ms=now, victim=victim.session), keys.due(now + TOLD_KEPT_MS))
            view.emit(DeadlockFound(shown, victim.session, False, now))
            tell(
                view,
                victim.session,
                "preempt",
                _sentence(before, "give back", shown),
                now,
                {"cycle": list(shown)},
            )
        return False
    if told is not None:
        view.delete(told_key)
    view.emit(DeadlockFound(shown, victim.session, True, told.since_ms if told else now))
    _revoke(view, victim, before.waiting.request, shown, now)
    return True


def _renewed(bids: list[Request], since_ms: int) -> bool:
    return all(bid.renewed_ms > since_ms for bid in bids)


def _victim(view: View, circle: list[Edge], now: int) -> int:
    """Return the place in the circle of whom it costs least."""

    def cost(place: int) -> tuple[int, bool, int, str]:
        session, (_, request) = circle[place]
        needed = _needed(view, session, circle[place - 1].waiting.request, now)
        work_ms = now - min((standing.hold.acquired_ms for standing in needed), default=now)
        preemptible = request.preemptible or any(standing.hold.preemptible for standing in needed)
        return effective_priority(request, now), not preemptible, work_ms, session

    return min(range(len(circle)), key=cost)


def _needed(view: View, session: str, wanted: Request, now: int) -> list[Standing]:
    """Return the holds of a session that stand in the way of a request."""
    return [
        standing
        for standing in holds_of(view, session)
        for resource, mode in would_hold(view, wanted, now)
        if resource.meets(standing.resource) and not compatible(mode, standing.hold.mode)
    ]


def _revoke(view: View, victim: Edge, wanted: Request, shown: tuple[str, ...], now: int) -> None:
    needed = {standing.key: standing for standing in _needed(view, victim.session, wanted, now)}
    tell(view, victim.session, "preempt", _sentence_lost(needed, wanted, shown), now, {"cycle": list(shown)})
    freed = resources_of(victim.waiting.request)
    if victim.waiting.request.bid:
        drop_request(view, victim.waiting, "deadlock")
    else:
        leave_line(view, victim.waiting, WaitState.REFUSED, shown)
    for standing in needed.values():
        freed += end_hold(view, standing, Ending.DEADLOCK, now, by=wanted.session, note=" -> ".join(shown))
    serve(view, freed, now)


def _sentence(before: Edge, verb: str, shown: tuple[str, ...]) -> str:
    wanted = ", ".join(before.waiting.request.resources)
    return f"Deadlock: {' -> '.join(shown)}. Please {verb} {wanted}, which {before.session} needs"


def _sentence_lost(needed: dict[str, Standing], wanted: Request, shown: tuple[str, ...]) -> str:
    lost = ", ".join(standing.hold.resource for standing in needed.values()) or "your place in line"
    return f"Deadlock: {' -> '.join(shown)}. You lost {lost} to {wanted.session}; back out and try again"
