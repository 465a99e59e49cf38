"""What happened in a store: filtered events, lock periods, and how long locks were held and waited for.

Reports that want the newest events read the log from its end. Where old entries were trimmed, a report
starts at the first entry that is left, and says so.
"""

from array import array
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec

from coord.core.errors import CoordError, Invalid
from coord.core.events import SEED_NAMES, event_names
from coord.core.ids import short_repr
from coord.core.locks.commands import ListLockPeriods, LockPeriod, LockPeriods
from coord.core.locks.resources import Resource, parse_resource
from coord.sdk.client.connection import Connection
from coord.sdk.log_reader import (
    LoggedEvent,
    first_offset,
    follow_pages,
    logged_events,
    newest_offset,
    pages,
    pages_backwards,
)

EVENTS_MAX = 50
ACTORS = ("session", "agent", "by", "by_session", "victim")
"""The fields of an event that name who did it, or on whose behalf."""

_NAMES = event_names()
_BY_SEED_NAME = {seed: name for name, seed in SEED_NAMES.items()}


class Activity(msgspec.Struct, frozen=True):
    """Events in log order; `begins_at` is the first offset that is left if earlier entries were trimmed."""

    events: list[LoggedEvent]
    head: int
    begins_at: int = 0


class DurationStats(msgspec.Struct, frozen=True):
    """The spread of durations in seconds."""

    count: int
    p50_s: float
    p95_s: float
    max_s: float


class BriefStats(msgspec.Struct, frozen=True):
    """What hooks gave to agents so that they know of each other; tokens are estimated."""

    count: int = 0
    chars: int = 0
    tokens: int = 0
    by_agent: dict[str, int] = {}
    """The tokens of each agent."""


class Stats(msgspec.Struct, frozen=True):
    """The log in numbers: events by name, durations of locks and waits, how locks ended, what briefs cost."""

    entries: int
    events: dict[str, int]
    holds: DurationStats
    waits: DurationStats
    endings: dict[str, int]
    begins_at: int = 0
    briefs: BriefStats = BriefStats()


class EventFilter(msgspec.Struct, frozen=True):
    """Selects events: `op` is an event name or its first part, `resources` must overlap the event's."""

    op: str = ""
    actor: str = ""
    resources: tuple[Resource, ...] = ()
    since_ms: int = 0
    repository: str = ""

    def matches(self, logged: LoggedEvent) -> bool:
        """Whether an event passes the filter."""
        details = logged.details
        if logged.at_ms < self.since_ms:
            return False
        if self.op and self.op not in (logged.event, logged.event.partition(".")[0]):
            return False
        if self.actor and self.actor not in [details.get(field) for field in ACTORS]:
            return False
        return not self.resources or self._overlaps(details)

    def _overlaps(self, details: dict[str, Any]) -> bool:
        named = [details["resource"]] if "resource" in details else details.get("resources", ())
        theirs = [each for text in named for each in _parsed(text, self.repository)]
        return any(mine.overlaps(other) for mine in self.resources for other in theirs)


def event_filter(
    connection: Connection,
    *,
    op: str = "",
    actor: str = "",
    resources: Iterable[str] = (),
    since_s: float | None = None,
) -> EventFilter:
    """Return a filter from the words that a person typed; raise `Invalid` for an unknown event."""
    repository = connection.location.repository_id
    return EventFilter(
        _event_name(op),
        actor,
        tuple(each for text in connection.resolve(resources) for each in parse_resource(text, repository)),
        0 if since_s is None else connection.log.now() - round(since_s * 1000),
        repository,
    )


def newest_events(connection: Connection, which: EventFilter, limit: int = EVENTS_MAX) -> Activity:
    """Return the newest events that pass a filter, oldest first."""
    if limit < 1:
        raise Invalid(f"invalid event count: {limit}", hint="use 1 or more")
    log = connection.log
    found: deque[LoggedEvent] = deque()
    begins_at = first_offset(log)
    head = newest_offset(log)
    for page in pages_backwards(log, begins_at):
        for logged in reversed(list(logged_events(page))):
            if len(found) < limit and which.matches(logged):
                found.appendleft(logged)
        if page[0].at < which.since_ms or len(found) == limit:
            break
    return Activity(list(found), head, begins_at)


def follow(
    connection: Connection, which: EventFilter, after: int, wait_s: float
) -> Iterator[list[LoggedEvent]]:
    """Yield matching events after an offset, for ever; an empty list after each `wait_s` without news."""
    for page in follow_pages(connection.log, after, wait_s):
        yield [logged for logged in logged_events(page) if which.matches(logged)]


def stats(connection: Connection, which: EventFilter) -> Stats:
    """Return the events that pass a filter in numbers."""
    log = connection.log
    counts: Counter[str] = Counter()
    endings: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    chars = 0
    holds, waits = array("d"), array("d")
    entries, begins_at = 0, first_offset(log)
    for page in pages(log, begins_at):
        entries += len(page)
        for logged in filter(which.matches, logged_events(page)):
            counts[logged.event] += 1
            details = logged.details
            if logged.event == "lock.released":
                holds.append(details["held_s"])
                endings[details["end_reason"]] += 1
            elif logged.event == "lock.acquired" and details.get("waited_ms"):
                waits.append(details["waited_ms"] / 1000)
            elif logged.event == "brief.delivered":
                tokens[details["agent"] or details["session"]] += details["tokens"]
                chars += details["chars"]
    briefs = BriefStats(counts["brief.delivered"], chars, tokens.total(), _sorted(tokens))
    return Stats(
        entries,
        _sorted(+counts),
        duration_stats(holds),
        duration_stats(waits),
        _sorted(endings),
        begins_at,
        briefs,
    )


def lock_periods(connection: Connection, which: EventFilter, limit: int = EVENTS_MAX) -> list[LockPeriod]:
    """Return the newest periods in which resources were locked, by fence; current holders come last."""
    spaces = sorted({resource.space for resource in which.resources}) or [""]
    found: dict[tuple[int, str, str], LockPeriod] = {}
    for ended in (False, True):  # a current lock that ends in between is found again among the ended ones
        for space in spaces:
            selected = (each for each in _periods(connection, which, space, ended) if _selects(which, each))
            found.update((_identity(each), each) for each in islice(selected, limit if ended else None))
    return sorted(found.values(), key=lambda period: (not period.until_ms, period.fence))[-limit:]


def _periods(connection: Connection, which: EventFilter, space: str, ended: bool) -> Iterator[LockPeriod]:
    """Yield the periods of a space: current ones, or ended ones, newest first."""
    texts = tuple(resource.text for resource in which.resources if resource.space == space)
    command, more = ListLockPeriods(space, ended, resources=texts), True
    while more:
        page: LockPeriods = connection.call(command)
        yield from page.periods
        more = bool(page.after or page.before)
        command = msgspec.structs.replace(command, after=page.after, before=page.before)


def _identity(period: LockPeriod) -> tuple[int, str, str]:
    return period.fence, period.resource, period.owner


def _selects(which: EventFilter, period: LockPeriod) -> bool:
    """Whether a filter for events selects a period, by its resource, its owner and its end."""
    if period.until_ms and period.until_ms < which.since_ms:
        return False
    details = {"resource": period.resource, "session": period.owner}
    return which.matches(LoggedEvent(0, which.since_ms, which.op, details))


def duration_stats(seconds: "array[float]") -> DurationStats:
    """Return count, median, 95th percentile (nearest rank) and maximum.

    >>> duration_stats(array("d", [1, 2, 3, 4]))
    DurationStats(count=4, p50_s=2.0, p95_s=4.0, max_s=4.0)
    """
    ordered = sorted(seconds)
    if not ordered:
        return DurationStats(0, 0.0, 0.0, 0.0)
    p50_s, p95_s = (round(ordered[-(-len(ordered) * percent // 100) - 1], 3) for percent in (50, 95))
    return DurationStats(len(ordered), p50_s, p95_s, round(ordered[-1], 3))


def _event_name(op: str) -> str:
    """Return coord's own name of an event, or of a group of events."""
    name = _BY_SEED_NAME.get(op, op)
    if name and name not in _NAMES and name not in {each.partition(".")[0] for each in _NAMES}:
        raise Invalid(
            f"unknown event {short_repr(op)}", hint="for example lock.denied, or lock for all lock events"
        )
    return name


def _parsed(text: str, repository: str) -> tuple[Resource, ...]:
    """Return a resource that an event names; one that no longer parses overlaps nothing."""
    try:
        return parse_resource(text, repository)
    except CoordError:
        return ()


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))
