"""An obvious lock manager: lists of holds and requests, everything found by looking at everything."""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from coord.core.locks.resources import parse_resource

PROFILES = {
    "file": (300_000, "auto", "write"),
    "name": (3_600_000, "steal_only", "exclusive"),
    "ticket": (300_000, "pid_checked", "write"),
}
PATHS = ("x", "x/z", "d", "d/y", "d/y/q", "d/z", "d/yy", "e/z")
"""All files that there are; each two resources of the walks that can meet do so in one of them."""
FOREVER = 2**60


class Refusal(Exception):
    """A command that fails; it changes nothing."""


@lru_cache
def files(resource: str) -> frozenset[str]:
    """Everything that a resource covers, by trying all there is."""
    kind, _, text = resource.partition(":")
    if kind != "file":
        return frozenset({resource})
    pattern = re.escape(text).replace(r"\*", "[^/]*") + ("" if "*" in text else "(/.*)?")
    return frozenset(path for path in PATHS if re.fullmatch(pattern, path))


Thing = tuple[str, bool]
"""A resource, and whether it is a single file."""


@lru_cache
def meet(one: Thing, other: Thing) -> bool:
    """Whether something belongs to both; that a path is a single file counts between it and a glob."""
    globs = "*" in one[0] or "*" in other[0]
    mine, theirs = (
        files(name) & {name.partition(":")[2]} if exact and globs else files(name)
        for name, exact in (one, other)
    )
    return bool(mine & theirs)


@dataclass(eq=False)
class Seat:
    """A session."""

    pid: int
    parent: str
    beat: int
    look: int
    state: str = "here"
    children: bool = False
    doomed: bool = False
    """Whether its lead has ended, and a sweep has yet to end it."""


@dataclass(eq=False)
class LockRequest:
    """A request for locks; `key` is its place in line."""

    session: str
    resources: tuple[str, ...]
    mode: str
    profile: str
    ttl: int
    priority: int
    preemptible: bool
    since: int
    renewed: int
    until: int
    denied: bool
    key: str = ""
    state: str = "waiting"
    cycles: tuple[tuple[str, ...], ...] = ()
    exact: tuple[str, ...] = ()

    def things(self) -> list[Thing]:
        return [(resource, resource in self.exact) for resource in self.resources]

    def mode_of(self, resource: str) -> str:
        return self.mode or PROFILES[self.profile or resource.partition(":")[0]][2]

    @property
    def rank(self) -> int:
        return self.since - 60_000 * self.priority

    def due(self) -> int:
        if self.denied:
            return self.renewed + 60_000
        patience = min(self.until, self.renewed + 15_000)
        return patience if self.state == "waiting" else max(self.until, self.renewed) + 15_000

    def conflicts_with(self, other: "LockRequest") -> bool:
        return self.session != other.session and any(
            meet(mine, theirs) and not self.mode_of(mine[0]) == other.mode_of(theirs[0]) == "read"
            for mine in self.things()
            for theirs in other.things()
        )


@dataclass(eq=False)
class Lock:
    """A hold; a fence of 0 is to be filled in by whoever knows the offset of the commit."""

    resource: str
    owner: str
    mode: str
    profile: str
    acquired: int
    ttl: int
    expires: int
    priority: int
    preemptible: bool
    provisional: bool
    under: str
    fence: int = 0
    preempted_by: str = ""
    preempt_at: int = 0
    look: int = 0
    exact: bool = False

    @property
    def thing(self) -> Thing:
        return self.resource, self.exact

    @property
    def expiry(self) -> str:
        return PROFILES[self.profile][1]

    def ended(self, now: int) -> str:
        if self.preempted_by and now >= self.preempt_at:
            return "preempted"
        if now < self.expires:
            return ""
        return "lapsed" if self.provisional else "expired" if self.expiry == "auto" else ""

    def due(self) -> int:
        lease = self.expires if self.provisional or self.expiry != "steal_only" else FOREVER
        return min(lease, self.preempt_at if self.preempted_by else FOREVER)


class Link(NamedTuple):
    """One wait in a circle: of a session that blocks by a lock or by its place, or of a sub-agent."""

    session: str
    holds: bool
    request: LockRequest


@dataclass(eq=False)
class Warned:
    """A circle with bids whose victim was told; later asked to give back its holds for the session `by`."""

    since: int
    asked: int = 0
    until: int = 0
    by: str = ""
    holds: list[Lock] = field(default_factory=list)
    bids: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def due(self) -> int:
        return self.until - 5_000 if self.until and not self.checked else self.until or self.since + 120_000

    checked: bool = False


@dataclass(eq=False)
class Books:
    """Who is there, who holds what, who waits; and what ends, loses and gains."""

    now: int
    seats: dict[str, Seat] = field(default_factory=dict)
    holds: list[Lock] = field(default_factory=list)
    requests: list[LockRequest] = field(default_factory=list)
    told: dict[frozenset[str], Warned] = field(default_factory=dict)
    dead_pids: set[int] = field(default_factory=set)
    ended: list[tuple[str, str, str, int]] = field(default_factory=list)
    freed: set[Thing] = field(default_factory=set)

    # Sessions.

    def life(self, session: str) -> str:
        seat = self.seats.get(session)
        if seat is None or seat.state != "here":
            return "gone"
        return "unknown" if not seat.pid else "dead" if seat.pid in self.dead_pids else "alive"

    def above(self, session: str) -> list[str]:
        seat = self.seats.get(session)
        return [seat.parent, *self.above(seat.parent)] if seat is not None and seat.parent else []

    def ensure_session(self, caller: Any) -> str:
        seat = self.seats.get(caller.session)
        if seat is not None and (seat.doomed or seat.state in {"dead", "terminated"}):
            raise Refusal("dead")
        pid = caller.process.pid if caller.process else 0
        if seat is None or seat.state == "left":
            children = seat is not None and seat.children
            self.seats[caller.session] = Seat(
                pid, caller.parent, self.now, self.now + 120_000, children=children
            )
            self.mark_parent(caller.parent)
        elif self.now - seat.beat >= 15_000 or pid != seat.pid:
            seat.pid, seat.beat, seat.look = pid, self.now, self.now + 120_000
        return str(caller.session)

    def mark_parent(self, session: str) -> None:
        """Note that a session has sub-agents; it is looked at anew."""
        seat = self.seats.get(session)
        if seat is not None and not seat.children:
            seat.children = True
            here = seat.beat if seat.doomed else seat.beat + 120_000
            seat.look = here if seat.state == "here" else seat.look

    def end_session(self, session: str, state: str) -> None:
        seat = self.seats[session]
        seat.state, seat.look, seat.doomed = state, self.now + 24 * 3_600_000, False
        for request in [request for request in self.requests if request.session == session]:
            if request.state == "waiting":
                self.drop(request)

    def declare_dead(self, session: str) -> None:
        """End a dead session; a sweep ends its children."""
        if self.life(session) != "gone":
            self.end_dead(session)
            for child in self.children(session):
                self.seats[child].doomed, self.seats[child].look = True, self.now

    def end_dead(self, session: str) -> None:
        self.end_session(session, "dead")
        for hold in [hold for hold in self.holds if hold.owner == session]:
            if hold.expiry != "steal_only":
                self.end(hold, "owner_dead")

    def children(self, session: str) -> list[str]:
        known = self.seats[session].children
        return [
            name
            for name, seat in self.seats.items()
            if known and seat.parent == session and seat.state == "here"
        ]

    def terminate(self, session: str) -> None:
        """End a session whose lead has ended, and those below it."""
        self.end_session(session, "terminated")
        for hold in [hold for hold in self.holds if hold.owner == session]:
            self.end(hold, "parent_ended")
        self.terminate_children(session)

    def terminate_children(self, session: str) -> None:
        for child in self.children(session):
            self.terminate(child)

    # Holds.

    def end(self, hold: Lock, end_reason: str, at: int | None = None) -> None:
        """End a hold, unless it has ended before; what stood under it alone ends at the same moment."""
        if hold not in self.holds:
            return
        self.holds.remove(hold)
        self.freed.add(hold.thing)
        now = self.now if at is None else at
        end_reason = hold.ended(now) or end_reason
        until = {"expired": hold.expires, "lapsed": hold.expires, "preempted": hold.preempt_at}
        ended = min(now, until.get(end_reason, now))
        self.ended.append((hold.resource, hold.owner, end_reason, ended))
        for child in list(self.holds):
            if child.under == hold.owner and meet(child.thing, hold.thing):
                lenders = [h for h in self.holds if h.owner == hold.owner and not h.ended(now)]
                if not any(meet(h.thing, child.thing) for h in lenders):
                    self.end(child, "parent_ended", ended)

    def death(self, hold: Lock) -> str:
        """How its owner's death or silence has ended a hold."""
        life = self.life(hold.owner)
        if hold.expiry == "steal_only":
            return ""
        if life in {"gone", "dead"}:
            return "session_ended" if life == "gone" else "owner_dead"
        if hold.expiry == "auto":
            return ""
        if self.now - self.seats[hold.owner].beat >= 120_000:
            return "owner_silent" if life == "alive" else "owner_dead"
        return "expired" if self.now >= hold.expires and life != "alive" else ""

    def end_if_owner_gone(self, hold: Lock) -> None:
        end_reason = self.death(hold)
        if end_reason == "owner_dead":
            self.declare_dead(hold.owner)
        elif end_reason:
            self.end(hold, end_reason)

    def own(self, session: str, resource: str) -> Lock | None:
        return next((hold for hold in self.holds if (hold.owner, hold.resource) == (session, resource)), None)

    def in_way(self, session: str, thing: Thing, mode: str) -> list[Lock]:
        return [
            hold
            for hold in self.holds
            if hold.owner not in {session, *self.above(session)}
            and meet(hold.thing, thing)
            and not mode == hold.mode == "read"
            and not hold.ended(self.now)
        ]

    def blockers(self, request: LockRequest) -> list[Lock]:
        return [
            hold for thing, mode in self.wanted(request) for hold in self.in_way(request.session, thing, mode)
        ]

    def wanted(self, request: LockRequest) -> list[tuple[Thing, str]]:
        """What a request would hold: where more is asked for than is held, all that is held stays held."""
        found = []
        for resource, exact in request.things():
            own, mode = self.own(request.session, resource), request.mode_of(resource)
            if own is not None and not own.ended(self.now):
                if own.exact and not exact:
                    mode = mode if own.mode == "read" else own.mode
                elif own.mode == "read" != mode:
                    found.append(((resource, exact and own.exact), mode))
                    continue
            found.append(((resource, exact), mode))
        return found

    def grant(self, request: LockRequest, *, provisional: bool = False) -> list[Lock]:
        for hold in list(self.holds):
            if hold.ended(self.now) and any(meet(hold.thing, thing) for thing, _ in self.wanted(request)):
                self.end(hold, "")
        return [self._grant_one(request, *wanted, provisional) for wanted in self.wanted(request)]

    def _grant_one(self, request: LockRequest, thing: Thing, mode: str, provisional: bool) -> Lock:
        resource, exact = thing
        profile = request.profile or resource.partition(":")[0]
        ttl = request.ttl or PROFILES[profile][0]
        hold = self.own(request.session, resource)
        lenders = {other.owner for other in self.holds if meet(other.thing, thing)}
        under = next((name for name in self.above(request.session) if name in lenders), "")
        if hold is None:
            self.mark_parent(under)
            hold = Lock(resource, request.session, mode, profile, self.now, ttl, 0, 0, False, True, under)
            hold.exact = exact
            self.holds.append(hold)
        elif hold.exact and not exact:
            self.ended.append((resource, hold.owner, "released", self.now))
            self.mark_parent(under)
            hold.exact, hold.under = False, under
            hold.mode, hold.fence, hold.acquired = mode, 0, self.now
        elif hold.mode == "read" != mode:
            hold.mode, hold.fence, hold.acquired = mode, 0, self.now
        elif provisional and not hold.provisional:
            return hold  # what is held already does not become less certain
        hold.profile, hold.ttl, hold.priority = profile, ttl, request.priority
        hold.preemptible, hold.provisional = request.preemptible, provisional
        hold.expires = self.now + (15_000 if provisional else ttl)
        hold.look = hold.due()
        return hold

    # The line.

    def line(self) -> list[LockRequest]:
        waiting = [request for request in self.requests if request.key and request.state == "waiting"]
        return sorted(waiting, key=lambda request: request.key)

    def ahead_of(self, request: LockRequest) -> list[LockRequest]:
        return [other for other in self.line() if other.key < request.key and request.conflicts_with(other)]

    def alive(self, request: LockRequest) -> bool:
        in_time = self.now < request.until and self.now < request.renewed + 15_000
        return in_time and self.life(request.session) not in {"dead", "gone"}

    def drop(self, request: LockRequest) -> None:
        self.requests.remove(request)
        self.freed.update(request.things())

    def serve(self) -> None:
        """Grant whatever can be granted of what came free, in order, and pass over who is gone."""
        freed, self.freed = self.freed, set()
        for request in self.line():
            if not any(meet((resource, False), thing) for resource in request.resources for thing in freed):
                continue
            if not self.alive(request):
                self.requests.remove(request)
                freed.update(request.things())
            elif not self.ahead_of(request) and not self.blockers(request):
                request.state = "granted"
                self.grant(request, provisional=True)
                freed.update(request.things())
        if self.freed:
            self.serve()

    def sweep(self) -> None:
        """Do what is due, in the order of time, then of the keys."""
        due: list[tuple[int, str, str, Any]] = [
            *((request.due(), request.key or "denied", "request", request) for request in self.requests),
            *((hold.look, key_of(hold), "lock", hold) for hold in self.holds),
            *((seat.look, f"session/{name}", "session", name) for name, seat in self.seats.items()),
            *((warned.due(), "deadlock", "deadlock", circle) for circle, warned in self.told.items()),
        ]
        for _, _, kind, what in sorted((item for item in due if item[0] <= self.now), key=lambda i: i[:2]):
            if kind == "request" and what in self.requests:
                if what.key and what.state == "waiting":
                    self.drop(what)
                else:
                    self.requests.remove(what)
            elif kind == "lock" and what in self.holds and what.look <= self.now:
                if what.ended(self.now):
                    self.end(what, what.ended(self.now))
                else:
                    self.end_if_owner_gone(what)
                    what.look = self.now + 30_000
            elif kind == "session" and self.seats[what].look <= self.now:
                self._look_at(what)
            elif kind == "deadlock" and what in self.told:
                self._recheck(what)
            self.serve()

    def _look_at(self, session: str) -> None:
        seat = self.seats[session]
        if seat.state != "here":
            del self.seats[session]
        elif seat.doomed:
            self.terminate(session)
        elif self.life(session) == "dead":
            self.end_dead(session)
            self.terminate_children(session)
        else:
            age = self.now - seat.beat
            step = next((step for step in (120_000, 300_000, 600_000) if step > age), 0)
            seat.look = seat.beat + step if step else self.now + 3_600_000

    # Deadlocks.

    def circles(self, new: LockRequest) -> list[list[Link]]:
        """All circles through a request, found by walking every way.

        Whoever waits for what a session holds also waits for what its sub-agents wait for.
        """
        found: list[list[Link]] = []
        above = self.above(new.session)

        def follow(trail: list[Link]) -> None:
            last = trail[-1].request
            ahead = [] if last.denied else self.ahead_of(last)
            blocking = {*((h.owner, True) for h in self.blockers(last)), *((a.session, False) for a in ahead)}
            for session, holds in blocking:
                if session == new.session or (holds and session in above):
                    found.append([Link(session, holds, new), *trail[1:]])
                elif (session, holds) not in {link[:2] for link in trail[1:]}:
                    for request in self.requests:
                        own = request.session == session
                        below = holds and session in self.above(request.session)
                        if (own or below) and request.state == "waiting":
                            follow([*trail, Link(session, holds, request)])

        follow([Link(new.session, True, new)])
        return found

    def needed(self, session: str, wanted: LockRequest) -> list[Lock]:
        return [
            hold
            for hold in self.holds
            if hold.owner == session
            and any(
                meet(hold.thing, thing) and not hold.mode == mode == "read"
                for thing, mode in self.wanted(wanted)
            )
        ]

    def victim(self, circle: list[Link]) -> int:
        def cost(place: int) -> tuple[int, bool, int, str]:
            session, _, request = circle[place]
            needed = self.needed(session, circle[place - 1].request)
            work = self.now - min((hold.acquired for hold in needed), default=self.now)
            preemptible = request.preemptible or any(hold.preemptible for hold in needed)
            age = (self.now - request.since) // 60_000
            priority = max([request.priority + age, *(hold.priority for hold in needed)])
            return priority, not preemptible, work, session

        return min(range(len(circle)), key=cost)

    def break_deadlocks(self, new: LockRequest, found: list[dict[str, Any]]) -> None:
        """Resolve every circle; where there are several, `found` says which were taken, in which order."""
        new.cycles = ()
        while new.state == "waiting" and new in self.requests and (circles := self.circles(new)):
            pure = [circle for circle in circles if not any(link.request.denied for link in circle)]
            if not found:
                assert not pure, f"a circle of waits was left: {pure}"
                unripe = [circle for circle in circles if self.told_of(circle) and not self.ripe(circle)]
                assert unripe, f"nobody was told of {circles}"
                new.cycles = tuple(names(circle) for circle in unripe)
                return
            event = found.pop(0)
            fitting = [circle for circle in pure or circles if names(circle) == tuple(event["cycle"])]
            assert fitting, f"{event} is none of {[names(circle) for circle in circles]}"
            taken = [
                circle
                for circle in fitting
                if circle[self.victim(circle)].session == event["victim"]
                and (self.fits(circle, event) or not event["resolved"])
            ]
            assert taken, f"{event}: the victim is not the cheapest, or lost the wrong locks"
            taken.sort(key=lambda circle: circle[self.victim(circle)].request.denied)
            if event.get("until_ms"):  # several circles of the same names: the one that was asked is ripe
                taken.sort(key=lambda circle: (not self.ripe(circle), not self.asks(circle, event)))
            circle, new.cycles = taken[0], (tuple(event["cycle"]),)
            who = frozenset(link.session for link in circle)
            if any(link.request.denied for link in circle) and not self.ripe(circle):
                assert not event["resolved"], f"{who} had less than 20 s"
                assert who not in self.told, f"{who} were told twice"
                self.told[who] = Warned(self.now)
                return
            place = self.victim(circle)
            needed = self.needed(circle[place].session, circle[place - 1].request)
            if any(link.request.denied for link in circle) and needed:
                assert not event["resolved"], f"{who} had no grace"
                self._ask_back(circle, needed, circle[place - 1].request.session)
                return
            assert event["resolved"]
            self._forget(who)
            self._revoke(circle, place)

    def told_of(self, circle: list[Link]) -> bool:
        return frozenset(link.session for link in circle) in self.told

    def ripe(self, circle: list[Link]) -> bool:
        warned = self.told.get(frozenset(link.session for link in circle))
        if warned is None or warned.until:
            return False
        return self.now - warned.since >= 20_000 and all(
            link.request.renewed > warned.since for link in circle if link.request.denied
        )

    def _ask_back(self, circle: list[Link], needed: list[Lock], by: str) -> None:
        warned = self.told[frozenset(link.session for link in circle)]
        warned.asked, warned.until, warned.by = self.now, self.now + 30_000, by
        warned.bids = [(r.session, r.resources) for _, _, r in circle if r.denied]
        for hold in needed:
            if not hold.preempted_by:
                hold.preempted_by, hold.preempt_at = by, warned.until
                hold.look = hold.due()
                warned.holds.append(hold)

    def _recheck(self, who: frozenset[str]) -> None:
        """Forget a circle, unless its victim was asked and every bid was renewed since."""
        warned = self.told[who]
        renewed = {(r.session, r.resources) for r in self.requests if r.denied and r.renewed > warned.asked}
        if self.now < warned.until and renewed.issuperset(warned.bids):
            warned.checked = True
        else:
            self._forget(who)
            if self.now < warned.until:
                self.told[who] = Warned(self.now)

    def _forget(self, who: frozenset[str]) -> None:
        """Forget a circle; its victim keeps what was asked back if there is time."""
        warned = self.told.pop(who, Warned(0))
        for hold in warned.holds if self.now < warned.until else ():
            if hold in self.holds and (hold.preempted_by, hold.preempt_at) == (warned.by, warned.until):
                hold.preempted_by, hold.preempt_at = "", 0
                hold.look = hold.due()

    def fits(self, circle: list[Link], event: dict[str, Any]) -> bool:
        """Whether breaking this circle takes what was taken."""
        place = self.victim(circle)
        loser = circle[place].request
        lost = {hold.resource for hold in self.needed(circle[place].session, circle[place - 1].request)}
        refused = event["refused"].get(loser.key) in {(), names(circle)}
        return lost == event["lost"] and (loser.denied or refused)

    def asks(self, circle: list[Link], event: dict[str, Any]) -> bool:
        """Whether asking the victim of this circle asks for what was asked."""
        victim, before = self.victim(circle), circle[self.victim(circle) - 1].request
        needed = self.needed(circle[victim].session, before)
        return {(h.resource, before.session) for h in needed if not h.preempted_by} == event["asked"]

    def _revoke(self, circle: list[Link], place: int) -> None:
        session, _, loser = circle[place]
        self.drop(loser)
        if not loser.denied:
            self.requests.append(loser)
        loser.state, loser.cycles = "refused", (names(circle),)
        for hold in self.needed(session, circle[place - 1].request):
            self.end(hold, "deadlock")
        self.serve()


def key_of(hold: Lock) -> str:
    """Where a hold stands in the store; it matters only where two things are due at the same moment."""
    return parse_resource(hold.resource, "r")[0].lock_key(hold.owner)


def names(circle: list[Link]) -> tuple[str, ...]:
    """The sessions of a circle, the first one again at the end."""
    return (*(link.session for link in circle), circle[0].session)
