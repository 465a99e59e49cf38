"""What was done in a time, for people: a query of the log that keeps no state.

The counts are those of the metrics, taken of the events of that time alone. The report adds what counters
cannot say: percentiles, who did how much, and which files were wanted most.
"""

from array import array
from collections import Counter
from typing import Any

import msgspec

from coord.core.errors import Invalid
from coord.followers.follower import LogSource
from coord.followers.metrics.counts import SEPARATOR, Counts
from coord.sdk.log_reader import LoggedEvent, first_offset, logged_events, newest_offset, pages
from coord.sdk.reports.activity import DurationStats, duration_stats
from coord.stores.contract import Store

SLOTS = 24
"""The parts of the time whose completed tasks are shown beside each other."""
HOTSPOTS_MAX = 5
AGENTS_MAX = 50
CLAIM_ENDS = frozenset(("task.completed", "task.expired", "task.released", "task.superseded"))
CONTENTION = frozenset(("lock.denied", "lock.waiting"))
ZOMBIES = frozenset(("stale_generation", "session_mismatch"))


class AgentWork(msgspec.Struct, frozen=True):
    """What an agent did: `seen_s` is the time from its first to its last event, `busy_s` that of claims."""

    agent: str
    done: int
    busy_s: float
    seen_s: float

    @property
    def utilisation(self) -> float:
        """The share of its time in which it had a claim."""
        return min(1.0, self.busy_s / self.seen_s) if self.seen_s else 0.0


class Hotspot(msgspec.Struct, frozen=True):
    """A resource that sessions were denied, or had to wait for."""

    resource: str
    times: int


class Report(msgspec.Struct, frozen=True):
    """What was done from `from_ms` to `until_ms`; `begins_at` if older entries of that time were trimmed."""

    from_ms: int
    until_ms: int
    begins_at: int
    events: int
    tasks_done: int
    tasks_per_hour: float
    completion: DurationStats
    claims: int
    leases_expired: int
    zombies_refused: int
    locks_granted: int
    lock_waits: DurationStats
    overwrites_prevented: dict[str, int]
    overwrites_undone: int
    deadlocks: int
    recovery: DurationStats
    interventions: dict[str, int]
    agents: list[AgentWork]
    hotspots: list[Hotspot]
    done_by_slot: list[int]
    """How many tasks were completed in each of `SLOTS` equal parts of the time."""


class _Agent:
    """One agent while events are read."""

    def __init__(self, at_ms: int) -> None:
        self.first_ms = self.last_ms = at_ms
        self.busy_ms = self.done = 0
        self.open: dict[str, int] = {}
        """The begin of each claim that has not ended, by task."""


class _Reader:
    """Reduces the events of a time."""

    def __init__(self, tenant: str, from_ms: int, until_ms: int) -> None:
        self.counts = Counts(tenant)
        self.from_ms, self.until_ms = from_ms, until_ms
        self.events = 0
        self.completions, self.waits, self.recoveries = array("d"), array("d"), array("d")
        self.slots = [0] * SLOTS
        self.agents: dict[str, _Agent] = {}
        self.wanted: Counter[str] = Counter()

    def apply(self, logged: LoggedEvent) -> None:
        """Take one event."""
        self.counts.apply(logged)
        self.events += 1
        details, at_ms = logged.details, logged.at_ms
        if agent := details.get("agent"):
            self._agent(str(agent), logged.event, details, at_ms)
        if logged.event == "task.completed":
            self.completions.append(details.get("age_ms", 0) / 1000)
            whole = max(1, self.until_ms - self.from_ms)
            self.slots[min(SLOTS - 1, max(0, at_ms - self.from_ms) * SLOTS // whole)] += 1
        elif logged.event == "lock.acquired" and details.get("waited_ms"):
            self.waits.append(details["waited_ms"] / 1000)
        elif logged.event == "lock.deadlock" and details.get("resolved"):
            self.recoveries.append(max(0, at_ms - details["since_ms"]) / 1000)
        elif logged.event in CONTENTION:
            self.wanted.update(map(str, details["resources"]))

    def _agent(self, name: str, event: str, details: dict[str, Any], at_ms: int) -> None:
        agent = self.agents.setdefault(name, _Agent(at_ms))
        agent.last_ms = max(agent.last_ms, at_ms)
        task = f"{details.get('project')}/{details.get('task')}"
        if event == "task.claimed":
            agent.open[task] = at_ms
        elif event in CLAIM_ENDS:
            agent.open.pop(task, None)
            began_ms = max(self.from_ms, at_ms - details.get("worked_ms", 0))
            agent.first_ms = min(agent.first_ms, began_ms)
            agent.busy_ms += at_ms - began_ms
            agent.done += event == "task.completed"

    def report(self, begins_at: int) -> Report:
        """Return the report."""
        hours = max(1, self.until_ms - self.from_ms) / 3_600_000
        done = sum(self.slots)
        results = self._by("results_total", 2)
        return Report(
            from_ms=self.from_ms,
            until_ms=self.until_ms,
            begins_at=begins_at,
            events=self.events,
            tasks_done=done,
            tasks_per_hour=round(done / hours, 2),
            completion=duration_stats(self.completions),
            claims=self._by("claims_total", 2).get("granted", 0),
            leases_expired=sum(self._by("lease_expirations_total", 1).values()),
            zombies_refused=sum(number for name, number in results.items() if name in ZOMBIES),
            locks_granted=self._by("coord_locks_acquired_total").get("", 0),
            lock_waits=duration_stats(self.waits),
            overwrites_prevented=self._by("coord_overwrites_prevented_total"),
            overwrites_undone=self._by("coord_overwrites_undone_total").get("", 0),
            deadlocks=self._by("coord_deadlocks_total").get("", 0),
            recovery=duration_stats(self.recoveries),
            interventions=self._by("coord_manual_interventions_total"),
            agents=self._agents(),
            hotspots=[Hotspot(*each) for each in self._most_wanted()],
            done_by_slot=self.slots,
        )

    def _by(self, name: str, label: int = 0) -> dict[str, int]:
        """Return the counts of a metric by one of its labels."""
        found: Counter[str] = Counter()
        for key, numbers in sorted(self.counts.series.get(name, {}).items()):
            found[key.split(SEPARATOR)[label]] += round(numbers[0])
        return dict(found)

    def _agents(self) -> list[AgentWork]:
        found = []
        for name, agent in self.agents.items():
            last_ms = self.until_ms if agent.open else agent.last_ms
            busy_ms = agent.busy_ms + sum(self.until_ms - began_ms for began_ms in agent.open.values())
            seen_s = (last_ms - agent.first_ms) / 1000
            found.append(AgentWork(name, agent.done, round(busy_ms / 1000, 1), round(seen_s, 1)))
        return sorted(found, key=lambda each: (-each.done, -each.busy_s, each.agent))[:AGENTS_MAX]

    def _most_wanted(self) -> list[tuple[str, int]]:
        return sorted(self.wanted.items(), key=lambda each: (-each[1], each[0]))[:HOTSPOTS_MAX]


def report(source: LogSource, since_s: float) -> Report:
    """Return what was done in the last seconds."""
    if not since_s > 0:
        raise Invalid("a report is about a time before now", hint="for example --since 24h")
    until_ms = source.now()
    from_ms = max(0, until_ms - round(since_s * 1000))
    log = source.log
    trimmed_at = first_offset(log)
    first = _first_since(log, from_ms, max(1, trimmed_at))
    reader = _Reader(source.tenant, from_ms, until_ms)
    for page in pages(log, first):
        for logged in logged_events(page):
            if logged.at_ms >= from_ms:
                reader.apply(logged)
    return reader.report(trimmed_at if first == trimmed_at else 0)


def _first_since(log: Store, from_ms: int, first: int) -> int:
    """Return the offset of the first entry at a time or later, by halves."""
    low, high = first, newest_offset(log) + 1
    while low < high:
        middle = (low + high) // 2
        entries = log.tail(middle - 1, 1)
        if entries and entries[0].at < from_ms:
            low = middle + 1
        else:
            high = middle
    return low
