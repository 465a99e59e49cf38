"""Sessions, locks and wait queues as every commit leaves them, read from its events and records alone.

After each commit: no two locks conflict; each lock begins and ends with its event, at the right time and for
the right reason; no request waits for a free resource; and no cycle of waits lasts.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from coord.stores.contract import Commit
from tests.linearizability.ledger import require
from tests.simulation.resources import Thing, default_mode, overlap

Value = dict[str, Any]
CYCLE_MS_MAX = 60_000
BEAT_QUIET_MS = 15_000
SILENT_MS = 120_000
LEASE_MS = 15_000
STEAL_ONLY = ("name", "project")


@dataclass(slots=True)
class Grant:
    """A lock from its grant to its end, also after it passes to another session."""

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
class WaitingRequest:
    """A request that waits, or a denied one."""

    key: str
    session: str
    wants: tuple[tuple[Thing, str], ...]
    denied: bool
    until_ms: int
    leased_until_ms: int
    process: Any
    since_ms: int

    def conflicts_with(self, other: "WaitingRequest") -> bool:
        return self.session != other.session and any(
            _excludes(mine, theirs) for mine in self.wants for theirs in other.wants
        )


def _excludes(one: tuple[Thing, str], other: tuple[Thing, str]) -> bool:
    return not (one[1] == other[1] == "read") and overlap(one[0], other[0])


class LockOracle:
    """The locks, requests and sessions after the newest commit, and all locks before it."""

    def __init__(self, is_dead: Callable[[Value], bool]) -> None:
        self._is_dead = is_dead
        self.at = self.newest_ms = 0
        self.locks: dict[str, Grant] = {}
        self.granted: dict[tuple[str, int], list[Grant]] = defaultdict(list)
        self.waiters: dict[str, WaitingRequest] = {}
        self.sessions: dict[str, Value] = {}
        self.counts: Counter[str] = Counter()
        self.longest_cycle_ms = 0
        self._served: list[WaitingRequest] = []
        self._stood: set[str] = set()
        self._cycles: dict[frozenset[str], int] = {}

    def add(self, commit: Commit, offset: int) -> None:
        """Read one commit."""
        events = [json.loads(event) for event in commit.events]
        self.at = commit.at  # earlier than the newest where the commit was long on its way
        self.newest_ms = max(self.newest_ms, commit.at)
        puts = {key: json.loads(put.value) for key, put in commit.puts.items()}
        self._read_sessions(puts, commit.deletes, events)
        by_kind = _by_kind(events)
        self._end_locks(commit.deletes, puts, by_kind, offset)
        granted = self._put_locks(puts, by_kind, offset)
        for kind in ("lock.acquired", "lock.released", "lock.moved"):
            require(not by_kind[kind], "an event without a change:", offset, by_kind[kind])
        for held in granted:
            self._check_exclusion(held, offset)
        self._read_waiters(puts, commit.deletes)
        if any(key.startswith(("lock/", "wait/", "denied/")) for key in (*puts, *commit.deletes)):
            self._check_waiters(offset)
            self._check_cycles(offset)

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
        require(event["end_reason"] != "terminated" or event.get("by"), "terminated by nobody:", event)
        if session.get("children") and not event.get("successor"):
            self._check_children(event, puts)
        if event["end_reason"] != "dead":
            return
        process = session.get("process")
        silent = self.at - session.get("beat_ms", 0) >= SILENT_MS
        tickets = any(
            held.owner == event["session"] and held.profile == "ticket" for held in self.locks.values()
        )
        proven = process is not None and self._is_dead(process)
        require(proven or (silent and tickets), "declared dead without proof:", event, session)

    def _check_children(self, event: Value, puts: dict[str, Value]) -> None:
        """Check that no sub-agent goes on after the commit that ends its lead, unless it registers again."""
        for name, before in self.sessions.items():
            if before.get("parent") != event["session"] or before.get("ended_ms"):
                continue
            child = puts.get(f"session/{name}", before)
            over = child.get("ended_ms") or child.get("terminated_by")
            again = child.get("started_ms") == self.at
            require(over or again, "a sub-agent outlives its lead:", event, child)
            self.counts["sub-agent over"] += 1

    def ancestors(self, session: str) -> list[str]:
        found: list[str] = []
        while (session := self.sessions.get(session, {}).get("parent", "")) and session not in found:
            found.append(session)
        return found

    # Locks.

    def _end_locks(
        self, deletes: list[str], puts: dict[str, Value], events: dict[str, list[Value]], offset: int
    ) -> None:
        """Check the event of each lock that this commit ends; a lock that moves stays the same."""
        for key in deletes:
            if not key.startswith("lock/"):
                continue
            held = self.locks.pop(key)
            moved = _take(events["lock.moved"], resource=held.resource, session=held.owner)
            if moved is not None:
                held.owner = moved["successor"]
                place = f"{key.rpartition('=')[0]}={held.owner}"
                require(puts[place].get("fence") == held.fence, "a lock that moves keeps its fence:", key)
                self.locks[place] = held
                continue
            self._end(held, events, offset)

    def grants(self, resource: str, fence: int) -> list[Grant]:
        """All that was ever granted under a fence, however it is spelled."""
        return self.granted.get((resource.casefold(), fence), [])

    def _end(self, held: Grant, events: dict[str, list[Value]], offset: int) -> None:
        event = _take(events["lock.released"], **_names_of(held))
        require(event is not None, "a lock is gone without an event:", offset, held)
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
        require(end_reason != "released" or not held.over(self.at), "released after its end:", event, held)
        if end_reason == "owner_dead":
            self._check_death(held, event)

    def _check_death(self, held: Grant, event: Value) -> None:
        session = self.sessions[held.owner]
        process = session.get("process")
        silent = held.profile == "ticket" and "no heartbeat" in event.get("note", "")
        declared = session.get("end_reason") == "dead" or session.get("started_ms") == self.at
        require(declared or silent or (process and self._is_dead(process)), "freed without proof:", event)

    def _put_locks(self, puts: dict[str, Value], events: dict[str, list[Value]], offset: int) -> list[Grant]:
        """Read the locks that this commit grants or changes; return them."""
        changed = []
        for key, value in puts.items():
            if not key.startswith("lock/"):
                continue
            fence = value.get("fence") or offset
            held = self.locks.get(key)
            if held is not None and held.fence != fence:
                self._replaced(held, events, value, offset)
                held = None
            if held is None:
                require(fence == offset, "a grant under a fence of the past:", offset, value)
                event = _take(events["lock.acquired"], resource=value["resource"], session=value["owner"])
                require(event is not None, "a grant without an event:", offset, value)
                held = Grant(value["resource"], value["owner"], "", "", fence, 0)
                self.granted[held.resource.casefold(), fence].append(held)
                self.locks[key] = held
            renewed = held.mode and held.expires_ms != value["expires_ms"]
            require(not (renewed and held.over(self.at)), "renewed after its end:", offset, held, value)
            held.resource = value["resource"]
            require(held.owner == value["owner"], "a lock in another's name:", key, value)
            confirmed = held.mode and not held.provisional
            require(
                not (confirmed and value.get("provisional")),
                "a confirmed lock is provisional again:",
                value,
            )
            held.mode, held.profile = value.get("mode", "write"), value.get("profile", "file")
            held.expires_ms, held.provisional = value["expires_ms"], value.get("provisional", False)
            held.preempt_ms, held.under = value.get("preempt_ms", 0), value.get("under", "")
            held.exact = value.get("exact", False)
            changed.append(held)
        return changed

    def _replaced(self, held: Grant, events: dict[str, list[Value]], value: Value, offset: int) -> None:
        """Check a new grant of a lock: the old one ended, or was widened, or upgraded from read to write."""
        widened = held.exact and not value.get("exact", False)
        if widened and not held.over(self.at):
            self.counts["widened"] += 1
        over = held.over(self.at) or _ticket_ended(held, events["lock.released"])
        if not widened and held.mode == "read" and value.get("mode", "write") != "read" and not over:
            held.ended = offset
            self.counts["upgraded"] += 1
        else:
            self._end(held, events, offset)

    def _check_exclusion(self, held: Grant, offset: int) -> None:
        above = self.ancestors(held.owner)
        for other in self.locks.values():
            if other.owner == held.owner or other.over(self.at):
                continue
            if not _excludes((held.thing, held.mode), (other.thing, other.mode)):
                continue
            below = held.owner in self.ancestors(other.owner)
            related = other.owner in above or (below and (held.fence < offset or other.under == held.owner))
            require(related, "two locks conflict at", offset, held, other)
            require(held.fence >= other.fence or held.fence < offset, "fences fall:", held, other)

    # The wait queue.

    def _read_waiters(self, puts: dict[str, Value], deletes: list[str]) -> None:
        self._served, self._stood = [], self.waiters.keys() - deletes
        for key in deletes:
            self.waiters.pop(key, None)
        for key, value in puts.items():
            if key.startswith(("wait/", "denied/")):
                self.waiters.pop(key, None)
                if value.get("state", "waiting") == "waiting":
                    self.waiters[key] = read_request(key, value)
                elif value["state"] == "granted":
                    self._served.append(read_request(key, value))
                elif value["state"] == "refused":
                    self.counts["victim"] += 1

    def waiting(self) -> list[WaitingRequest]:
        """The requests that wait, first come first."""
        return [self.waiters[key] for key in sorted(self.waiters) if not self.waiters[key].denied]

    def alive(self, request: WaitingRequest) -> bool:
        process = self.sessions.get(request.session, {}).get("process")
        if self.newest_ms >= request.until_ms or (process and self._is_dead(process)):
            return False
        if request.leased_until_ms:
            return self.newest_ms < request.leased_until_ms
        return request.process is None or not self._is_dead(request.process)

    def waits_for(self, request: WaitingRequest, waiters: list[WaitingRequest]) -> Iterator[str]:
        """The sessions that a request waits for: holders, and those ahead of it in the queue."""
        above, wants = self.ancestors(request.session), self._would_lock(request)
        for held in self.locks.values():
            blocks = any(_excludes(want, (held.thing, held.mode)) for want in wants)
            if held.owner != request.session and held.owner not in above and blocks:
                yield held.owner
        for other in waiters:
            if other.key < request.key and not request.denied and request.conflicts_with(other):
                yield other.session

    def _would_lock(self, request: WaitingRequest) -> list[tuple[Thing, str]]:
        """What a request asks for, with what its session holds of it already."""
        found = list(request.wants)
        for held in self.locks.values():
            for number, ((name, exact), mode) in enumerate(request.wants):
                same = held.owner == request.session and held.resource.casefold() == name.casefold()
                if same and not held.over(self.at) and (held.exact > exact or held.mode == "read" != mode):
                    both = mode if held.mode == "read" else held.mode
                    found[number] = (name, exact and held.exact), both
        return found

    def _check_waiters(self, offset: int) -> None:
        """A hand-off is part of the commit that frees something: nobody waits for what is free."""
        waiters = self.waiting()
        for request in waiters:
            if self.alive(request):
                overtaken = [
                    one for one in self._served if one.key > request.key and one.conflicts_with(request)
                ]
                require(
                    not overtaken or request.key not in self._stood,
                    "overtaken in the queue:",
                    offset,
                    request,
                    overtaken,
                )
                free = not any(self.waits_for(request, waiters))
                require(
                    not free or self._has_new_ancestor(request), "waits for what is free:", offset, request
                )

    def _has_new_ancestor(self, request: WaitingRequest) -> bool:
        """Whether its family grew while it waits: it may go on beside their locks when it looks again."""
        started = (
            self.sessions.get(name, {}).get("started_ms", 0) for name in self.ancestors(request.session)
        )
        return any(at_ms > request.since_ms for at_ms in started)

    def _check_cycles(self, offset: int) -> None:
        waiters = [request for request in self.waiting() if self.alive(request)]
        edges = {request.key: set(self.waits_for(request, waiters)) for request in waiters}
        left = dict(edges)
        while True:  # take away whoever waits for nobody that waits; what remains is a cycle
            sessions = {self.waiters[key].session for key in left}
            ends = [key for key, others in left.items() if not others & sessions]
            if not ends:
                break
            for key in ends:
                del left[key]
        cycle = frozenset(left)
        self._cycles = {cycle: self._cycles.get(cycle, self.newest_ms)} if cycle else {}
        for since in self._cycles.values():
            lasted_ms = self.newest_ms - since
            self.longest_cycle_ms = max(self.longest_cycle_ms, lasted_ms)
            require(lasted_ms <= CYCLE_MS_MAX, "a cycle of waits lasts:", offset, sorted(cycle))


def read_request(key: str, value: Value) -> WaitingRequest:
    """A request as its record says it."""
    profile = value.get("profile", "")
    exact = value.get("exact", ())
    wants = tuple(
        ((text, text in exact), value.get("mode") or default_mode(text, profile))
        for text in value["resources"]
    )
    leased_until = value["renewed_ms"] + LEASE_MS if value.get("leased", True) else 0
    return WaitingRequest(
        key,
        value["session"],
        wants,
        value.get("denied", False),
        value.get("until_ms", 0),
        leased_until,
        value.get("process"),
        value.get("since_ms", 0),
    )


def _of_kind(puts: dict[str, Value], prefix: str) -> Iterator[tuple[str, Value]]:
    return ((key[len(prefix) :], value) for key, value in puts.items() if key.startswith(prefix))


def _by_kind(events: list[Value]) -> dict[str, list[Value]]:
    found: dict[str, list[Value]] = defaultdict(list)
    for event in events:
        found[event["event"]].append(event)
    return found


def _ticket_ended(held: Grant, released: list[Value]) -> bool:
    """Whether the log ends a ticket: evidence about its owner ends it, a deadline alone does not."""
    return held.profile == "ticket" and any(_fits(event, **_names_of(held)) for event in released)


def _names_of(held: Grant) -> Value:
    return {"resource": held.resource, "session": held.owner, "fence": held.fence}


def _fits(event: Value, **fields: Any) -> bool:
    return all(_spelled(event.get(name)) == _spelled(value) for name, value in fields.items())


def _spelled(value: Any) -> Any:
    """Return a name in one spelling: a lock is shown as it was last requested."""
    return value.casefold() if isinstance(value, str) and value.startswith("name:") else value


def _take(events: list[Value], **fields: Any) -> Value | None:
    """Take out the event with these fields; None if there is none."""
    for event in events:
        if _fits(event, **fields):
            events.remove(event)
            return event
    return None
