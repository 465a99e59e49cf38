"""Sessions, locks and the line as every commit leaves them, read from its events and records alone.

After each commit: no two holds that exclude each other stand; each hold begins and ends with the event that
tells of it, at the time and for the reason that is true; nobody in line waits for what is free; and no circle
of waits lasts.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from coord.stores.contract import Commit
from tests.linearizability.ledger import require
from tests.simulation.resources import Thing, default_mode, meet

Value = dict[str, Any]
CIRCLE_MS_MAX = 60_000
BEAT_QUIET_MS = 15_000
SILENT_MS = 120_000
LEASE_MS = 15_000
STEAL_ONLY = ("name", "project")


@dataclass(slots=True)
class LockRef:
    """A hold from its grant to its end, whoever it passes to."""

    resource: str
    owner: str
    mode: str
    profile: str
    fence: int
    expires_ms: int
    ended: int = 0
    provisional: bool = False
    preempt_ms: int = 0
    under: str = ""
    exact: bool = False

    @property
    def thing(self) -> Thing:
        return self.resource, self.exact

    def over(self, now: int) -> bool:
        """Whether a deadline has ended it, written down or not."""
        by_lease = self.provisional or self.profile == "file"
        return (by_lease and now >= self.expires_ms) or (0 < self.preempt_ms <= now)


@dataclass(slots=True)
class InLine:
    """A request that waits, or a bid."""

    key: str
    session: str
    wants: tuple[tuple[Thing, str], ...]
    denied: bool
    until_ms: int
    leased_until_ms: int
    process: Any

    def conflicts_with(self, other: "InLine") -> bool:
        return self.session != other.session and any(
            _excludes(mine, theirs) for mine in self.wants for theirs in other.wants
        )


def _excludes(one: tuple[Thing, str], other: tuple[Thing, str]) -> bool:
    return not (one[1] == other[1] == "read") and meet(one[0], other[0])


class LockBooks:
    """What stands after the newest commit, and what stood before."""

    def __init__(self, is_dead: Callable[[Value], bool]) -> None:
        self._is_dead = is_dead
        self.at = self.newest_ms = 0
        self.holds: dict[str, LockRef] = {}
        self.granted: dict[tuple[str, int], list[LockRef]] = defaultdict(list)
        self.line: dict[str, InLine] = {}
        self.sessions: dict[str, Value] = {}
        self.counts: Counter[str] = Counter()
        self.longest_circle_ms = 0
        self._served: list[InLine] = []
        self._stood: set[str] = set()
        self._circles: dict[frozenset[str], int] = {}

    def add(self, commit: Commit, offset: int) -> None:
        """Read one commit."""
        events = [json.loads(event) for event in commit.events]
        self.at = commit.at  # earlier than the newest where the commit was long on its way
        self.newest_ms = max(self.newest_ms, commit.at)
        puts = {key: json.loads(put.value) for key, put in commit.puts.items()}
        self._read_sessions(puts, commit.deletes, events)
        told = _by_kind(events)
        self._end_holds(commit.deletes, puts, told, offset)
        granted = self._put_holds(puts, told, offset)
        for kind in ("lock.acquired", "lock.released", "lock.moved"):
            require(not told[kind], "an event without a change:", offset, told[kind])
        for held in granted:
            self._check_exclusion(held, offset)
        self._read_line(puts, commit.deletes)
        if any(key.startswith(("lock/", "wait/", "denied/")) for key in (*puts, *commit.deletes)):
            self._check_line(offset)
            self._check_circles(offset)

    # Sessions.

    def _read_sessions(self, puts: dict[str, Value], deletes: list[str], events: list[Value]) -> None:
        for event in events:
            if event["event"] == "session.ended":
                self._check_end(event, puts)
        for key, value in _of_kind(puts, "session/"):
            before = self.sessions.get(key)
            if before is not None and not before.get("ended_ms"):
                changed = {
                    name for name in before.keys() | value.keys() if before.get(name) != value.get(name)
                }
                soon = value.get("beat_ms", 0) - before.get("beat_ms", 0) < BEAT_QUIET_MS
                require(not (changed == {"beat_ms"} and soon), "a heartbeat too soon after another:", key)
            self.sessions[key] = value
        for key in deletes:
            self.sessions.pop(key.partition("/")[2], None) if key.startswith("session/") else None

    def _check_end(self, event: Value, puts: dict[str, Value]) -> None:
        session = self.sessions.get(event["session"]) or puts[f"session/{event['session']}"]
        self.counts[f"session {event['end_reason']}"] += 1
        if event["end_reason"] != "dead":
            return
        process = session.get("process")
        silent = self.at - session.get("beat_ms", 0) >= SILENT_MS
        tickets = any(
            held.owner == event["session"] and held.profile == "ticket" for held in self.holds.values()
        )
        proven = process is not None and self._is_dead(process)
        require(proven or (silent and tickets), "declared dead without proof:", event, session)

    def ancestors(self, session: str) -> list[str]:
        found: list[str] = []
        while (session := self.sessions.get(session, {}).get("parent", "")) and session not in found:
            found.append(session)
        return found

    # Holds.

    def _end_holds(
        self, deletes: list[str], puts: dict[str, Value], told: dict[str, list[Value]], offset: int
    ) -> None:
        """Holds that this commit ends, each with its event; one that moves is still the same hold."""
        for key in deletes:
            if not key.startswith("lock/"):
                continue
            held = self.holds.pop(key)
            moved = _take(told["lock.moved"], resource=held.resource, session=held.owner)
            if moved is not None:
                held.owner = moved["successor"]
                place = f"{key.rpartition('=')[0]}={held.owner}"
                require(puts[place].get("fence") == held.fence, "a hold that moves keeps its fence:", key)
                self.holds[place] = held
                continue
            self._end(held, told, offset)

    def grants(self, resource: str, fence: int) -> list[LockRef]:
        """All that was ever granted under a fence, however it is spelled."""
        return self.granted.get((resource.casefold(), fence), [])

    def _end(self, held: LockRef, told: dict[str, list[Value]], offset: int) -> None:
        event = _take(told["lock.released"], **_names_of(held))
        require(event is not None, "a hold is gone and nobody tells:", offset, held)
        assert event is not None, "required above"
        held.ended = offset
        end_reason, until = event["end_reason"], event["until_ms"]
        self.counts[f"ended {end_reason}"] += 1
        require(
            end_reason != "expired" or self.at >= held.expires_ms, "expired before its time:", event, held
        )
        if end_reason in ("expired", "lapsed"):
            require(
                until == min(held.expires_ms, self.at), "ended at another time than its lease:", event, held
            )
        elif end_reason == "preempted":
            require(until == held.preempt_ms, "ended at another time than promised:", event, held)
        elif end_reason == "parent_ended":
            require(until <= self.at, "ended after its end:", event)
        else:
            require(until == self.at, "ended at another time than now:", event)
        require(end_reason != "released" or not held.over(self.at), "given back after its end:", event, held)
        if end_reason == "owner_dead":
            self._check_death(held, event)

    def _check_death(self, held: LockRef, event: Value) -> None:
        session = self.sessions[held.owner]
        process = session.get("process")
        silent = held.profile == "ticket" and "no heartbeat" in event.get("note", "")
        declared = session.get("end_reason") == "dead" or session.get("started_ms") == self.at
        require(declared or silent or (process and self._is_dead(process)), "freed without proof:", event)

    def _put_holds(self, puts: dict[str, Value], told: dict[str, list[Value]], offset: int) -> list[LockRef]:
        """Holds that this commit grants or changes; return those that have to be looked at."""
        changed = []
        for key, value in puts.items():
            if not key.startswith("lock/"):
                continue
            fence = value.get("fence") or offset
            held = self.holds.get(key)
            if held is not None and held.fence != fence:
                self._replaced(held, told, value, offset)
                held = None
            if held is None:
                require(fence == offset, "a grant under a fence of the past:", offset, value)
                event = _take(told["lock.acquired"], resource=value["resource"], session=value["owner"])
                require(event is not None, "a grant and nobody tells:", offset, value)
                held = LockRef(value["resource"], value["owner"], "", "", fence, 0)
                self.granted[held.resource.casefold(), fence].append(held)
                self.holds[key] = held
            renewed = held.mode and held.expires_ms != value["expires_ms"]
            require(not (renewed and held.over(self.at)), "renewed after its end:", offset, held, value)
            held.resource = value["resource"]
            require(held.owner == value["owner"], "a hold in another's name:", key, value)
            confirmed = held.mode and not held.provisional
            require(
                not (confirmed and value.get("provisional")),
                "a hold that was certain is not any more:",
                value,
            )
            held.mode, held.profile = value.get("mode", "write"), value.get("profile", "file")
            held.expires_ms, held.provisional = value["expires_ms"], value.get("provisional", False)
            held.preempt_ms, held.under = value.get("preempt_ms", 0), value.get("under", "")
            held.exact = value.get("exact", False)
            changed.append(held)
        return changed

    def _replaced(self, held: LockRef, told: dict[str, list[Value]], value: Value, offset: int) -> None:
        """A new grant in place of a hold: that ended or is wider now, or its reader writes from now on."""
        widened = held.exact and not value.get("exact", False)
        if widened and not held.over(self.at):
            self.counts["widened"] += 1
        over = held.over(self.at) or _ticket_ended(held, told["lock.released"])
        if not widened and held.mode == "read" and value.get("mode", "write") != "read" and not over:
            held.ended = offset
            self.counts["upgraded"] += 1
        else:
            self._end(held, told, offset)

    def _check_exclusion(self, held: LockRef, offset: int) -> None:
        above = self.ancestors(held.owner)
        for other in self.holds.values():
            if other.owner == held.owner or other.over(self.at):
                continue
            if not _excludes((held.thing, held.mode), (other.thing, other.mode)):
                continue
            parent_process = held.owner in self.ancestors(other.owner)
            kin = other.owner in above or (
                parent_process and (held.fence < offset or other.under == held.owner)
            )
            require(kin, "two holds exclude each other at", offset, held, other)
            require(held.fence >= other.fence or held.fence < offset, "fences fall:", held, other)

    # The line.

    def _read_line(self, puts: dict[str, Value], deletes: list[str]) -> None:
        self._served, self._stood = [], self.line.keys() - deletes
        for key in deletes:
            self.line.pop(key, None)
        for key, value in puts.items():
            if key.startswith(("wait/", "denied/")):
                self.line.pop(key, None)
                if value.get("state", "waiting") == "waiting":
                    self.line[key] = read_request(key, value)
                elif value["state"] == "granted":
                    self._served.append(read_request(key, value))
                elif value["state"] == "refused":
                    self.counts["victim"] += 1

    def waiting(self) -> list[InLine]:
        """Requests in line, in the order of their turn."""
        return [self.line[key] for key in sorted(self.line) if not self.line[key].denied]

    def alive(self, request: InLine) -> bool:
        process = self.sessions.get(request.session, {}).get("process")
        if self.newest_ms >= request.until_ms or (process and self._is_dead(process)):
            return False
        if request.leased_until_ms:
            return self.newest_ms < request.leased_until_ms
        return request.process is None or not self._is_dead(request.process)

    def waits_for(self, request: InLine, line: list[InLine]) -> Iterator[str]:
        """The sessions that a request waits for: holders, and those ahead of it in line."""
        above, wants = self.ancestors(request.session), self._would_hold(request)
        for held in self.holds.values():
            blocks = any(_excludes(want, (held.thing, held.mode)) for want in wants)
            if held.owner != request.session and held.owner not in above and blocks:
                yield held.owner
        for other in line:
            if other.key < request.key and not request.denied and request.conflicts_with(other):
                yield other.session

    def _would_hold(self, request: InLine) -> list[tuple[Thing, str]]:
        """What a request asks for, with what its session holds of it already."""
        found = list(request.wants)
        for held in self.holds.values():
            for number, ((name, exact), mode) in enumerate(request.wants):
                same = held.owner == request.session and held.resource.casefold() == name.casefold()
                if same and not held.over(self.at) and (held.exact > exact or held.mode == "read" != mode):
                    both = mode if held.mode == "read" else held.mode
                    found[number] = (name, exact and held.exact), both
        return found

    def _check_line(self, offset: int) -> None:
        """A hand-off is part of the commit that frees something: nobody waits for what is free."""
        line = self.waiting()
        for request in line:
            if self.alive(request):
                overtaken = [
                    one for one in self._served if one.key > request.key and one.conflicts_with(request)
                ]
                require(
                    not overtaken or request.key not in self._stood,
                    "overtaken in line:",
                    offset,
                    request,
                    overtaken,
                )
                require(any(self.waits_for(request, line)), "waits for what is free:", offset, request)

    def _check_circles(self, offset: int) -> None:
        line = [request for request in self.waiting() if self.alive(request)]
        edges = {request.key: set(self.waits_for(request, line)) for request in line}
        left = dict(edges)
        while True:  # take away whoever waits for nobody that waits; what remains goes in circles
            sessions = {self.line[key].session for key in left}
            ends = [key for key, others in left.items() if not others & sessions]
            if not ends:
                break
            for key in ends:
                del left[key]
        circle = frozenset(left)
        self._circles = {circle: self._circles.get(circle, self.newest_ms)} if circle else {}
        for since in self._circles.values():
            lasted_ms = self.newest_ms - since
            self.longest_circle_ms = max(self.longest_circle_ms, lasted_ms)
            require(lasted_ms <= CIRCLE_MS_MAX, "a circle of waits lasts:", offset, sorted(circle))


def read_request(key: str, value: Value) -> InLine:
    """A request as its record says it."""
    profile = value.get("profile", "")
    exact = value.get("exact", ())
    wants = tuple(
        ((text, text in exact), value.get("mode") or default_mode(text, profile))
        for text in value["resources"]
    )
    leased_until = value["renewed_ms"] + LEASE_MS if value.get("leased", True) else 0
    return InLine(
        key,
        value["session"],
        wants,
        value.get("denied", False),
        value.get("until_ms", 0),
        leased_until,
        value.get("process"),
    )


def _of_kind(puts: dict[str, Value], prefix: str) -> Iterator[tuple[str, Value]]:
    return ((key[len(prefix) :], value) for key, value in puts.items() if key.startswith(prefix))


def _by_kind(events: list[Value]) -> dict[str, list[Value]]:
    found: dict[str, list[Value]] = defaultdict(list)
    for event in events:
        found[event["event"]].append(event)
    return found


def _ticket_ended(held: LockRef, released: list[Value]) -> bool:
    """Whether the log tells the end of a ticket; what is known of its owner ends it, no deadline alone."""
    return held.profile == "ticket" and any(_fits(event, **_names_of(held)) for event in released)


def _names_of(held: LockRef) -> Value:
    return {"resource": held.resource, "session": held.owner, "fence": held.fence}


def _fits(event: Value, **fields: Any) -> bool:
    return all(_spelled(event.get(name)) == _spelled(value) for name, value in fields.items())


def _spelled(value: Any) -> Any:
    """Names mean the same however they are spelled, and a hold is shown as it was last asked for."""
    return value.casefold() if isinstance(value, str) and value.startswith("name:") else value


def _take(events: list[Value], **fields: Any) -> Value | None:
    """Take out the event with these fields; None if there is none."""
    for event in events:
        if _fits(event, **fields):
            events.remove(event)
            return event
    return None
