"""What happened: events read from the log, who held what when, and how long locks were held and waited for.

The log is read in pages, from its end where only the newest is wanted. Where its beginning was trimmed, the
answer begins with the first entry that is left, and says so.
"""

from array import array
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from coord.core import keys
from coord.core.errors import CoordError, Corrupt, Invalid, Trimmed
from coord.core.events import SEED_NAMES, event_names
from coord.core.ids import shown
from coord.core.locks.locks import EndedLock, Lock, end_ms, ended_by_time
from coord.core.locks.resources import Resource, parse_resource
from coord.core.records import decode
from coord.sdk.client.connection import Connection
from coord.stores.contract import Entry, Record, Store

PAGE = 500
SHOWN = 50
ACTORS = ("session", "agent", "by", "by_session", "victim")
"""The fields of an event that name who did it, or on whose behalf."""

_EVENT = msgspec.json.Decoder(dict[str, Any])
_NAMES = event_names()
_BY_SEED_NAME = {seed: name for name, seed in SEED_NAMES.items()}


class LoggedEvent(msgspec.Struct, frozen=True):
    """One event, and the offset and time of its entry."""

    offset: int
    at_ms: int
    event: str
    details: dict[str, Any]


class Activity(msgspec.Struct, frozen=True):
    """Events in order. `begins_at`: the first offset that is left, where earlier ones were trimmed."""

    events: list[LoggedEvent]
    head: int
    begins_at: int = 0


class DurationStats(msgspec.Struct, frozen=True):
    """How long something took, in seconds."""

    count: int
    p50_s: float
    p95_s: float
    max_s: float


class Stats(msgspec.Struct, frozen=True):
    """The log in numbers: how often each event, how long locks were held and waited for, how they ended."""

    entries: int
    events: dict[str, int]
    holds: DurationStats
    waits: DurationStats
    endings: dict[str, int]
    begins_at: int = 0


class LockPeriod(msgspec.Struct, frozen=True):
    """Who held a lock from when to when; `until_ms` is 0 while it stands."""

    resource: str
    owner: str
    agent: str
    mode: str
    fence: int
    from_ms: int
    until_ms: int
    end_reason: str = ""
    by: str = ""
    reason: str = ""


class EventFilter(msgspec.Struct, frozen=True):
    """Which events. `op` is an event or what is before its dot; resources are those it has to meet."""

    op: str = ""
    actor: str = ""
    resources: tuple[Resource, ...] = ()
    since_ms: int = 0
    repository: str = ""

    def matches(self, happening: LoggedEvent) -> bool:
        """Whether an event is one of them."""
        details = happening.details
        if happening.at_ms < self.since_ms:
            return False
        if self.op and self.op not in (happening.event, happening.event.partition(".")[0]):
            return False
        if self.actor and self.actor not in [details.get(field) for field in ACTORS]:
            return False
        return not self.resources or self._meets(details)

    def _meets(self, details: dict[str, Any]) -> bool:
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
    """Return which events are asked for, from words of the outside."""
    repository = connection.location.repository_id
    return EventFilter(
        _known(op),
        actor,
        tuple(each for text in connection.resolve(resources) for each in parse_resource(text, repository)),
        0 if since_s is None else log_of(connection).now() - round(since_s * 1000),
        repository,
    )


def newest_events(connection: Connection, which: EventFilter, most: int = SHOWN) -> Activity:
    """Return the newest events of those wanted, oldest first, reading from the end of the log."""
    if most < 1:
        raise Invalid(f"{most} events are none", hint="ask for 1 or more")
    log = log_of(connection)
    found: deque[LoggedEvent] = deque()
    begins_at = beginning(log)
    head = _head(log)
    for page in pages_backwards(log, begins_at):
        for happening in reversed(list(logged_events(page))):
            if len(found) < most and which.matches(happening):
                found.appendleft(happening)
        if page[0].at < which.since_ms or len(found) == most:
            break
    return Activity(list(found), head, begins_at)


def pages_backwards(log: Store, begins_at: int) -> Iterator[list[Entry]]:
    """Yield pages of the log from its end to its beginning, each in order."""
    up_to = _head(log)
    while up_to >= max(begins_at, 1):
        after = max(up_to - PAGE, begins_at - 1, 0)
        page = [entry for entry in log.tail(after, up_to - after) if entry.offset <= up_to]
        if page:
            yield page
        up_to = after


def follow(
    connection: Connection, which: EventFilter, after: int, wait_s: float
) -> Iterator[list[LoggedEvent]]:
    """Yield what happens after an offset, for ever; an empty list when nothing did for a while."""
    log = log_of(connection)
    while True:
        page = log.tail(after, PAGE)
        if page:
            after = page[-1].offset
        else:
            log.wait(after, wait_s)
        yield [happening for happening in logged_events(page) if which.matches(happening)]


def stats(connection: Connection, which: EventFilter) -> Stats:
    """Return the wanted part of the log in numbers."""
    log = log_of(connection)
    counts: Counter[str] = Counter()
    endings: Counter[str] = Counter()
    holds, waits = array("d"), array("d")
    entries, begins_at = 0, beginning(log)
    for page in pages(log, begins_at):
        entries += len(page)
        for happening in filter(which.matches, logged_events(page)):
            counts[happening.event] += 1
            details = happening.details
            if happening.event == "lock.released":
                holds.append(details["held_s"])
                endings[details["end_reason"]] += 1
            elif happening.event == "lock.acquired" and details.get("waited_ms"):
                waits.append(details["waited_ms"] / 1000)
    return Stats(
        entries, _sorted(counts), duration_stats(holds), duration_stats(waits), _sorted(endings), begins_at
    )


def lock_periods(
    connection: Connection, which: EventFilter, most: int = SHOWN, *, now: int | None = None
) -> list[LockPeriod]:
    """Return who held the wanted resources when, in the order of fences; who holds them now comes last."""
    log = log_of(connection)
    now = log.now() if now is None else now
    # What stands is read first: what ends meanwhile is met again among the grants, never missed.
    found = {_identity(tenure): tenure for tenure in _standing(log, which, now)}
    newest: deque[LockPeriod] = deque(maxlen=most)
    for space in sorted({resource.space for resource in which.resources}) or [""]:
        newest.extend(_granted(log, which, space))
    found.update((_identity(tenure), tenure) for tenure in newest)
    return sorted(found.values(), key=lambda tenure: (not tenure.until_ms, tenure.fence))[-most:]


def _identity(tenure: LockPeriod) -> tuple[int, str, str]:
    return tenure.fence, tenure.resource, tenure.owner


def _standing(log: Store, which: EventFilter, now: int) -> Iterator[LockPeriod]:
    """Yield the holds there are; a deadline that passed has ended one, even if nobody wrote that down."""
    for record in records(log, keys.LOCK_PREFIX):
        lock = decode(record.value or b"", Lock, record.key)
        if _is_wanted(which, lock.resource, lock.owner):
            end_reason = ended_by_time(lock, now)
            until_ms = end_ms(lock, end_reason, now) if end_reason else 0
            yield _tenure(
                lock, lock.fence or record.version, until_ms, end_reason.value if end_reason else ""
            )


def _granted(log: Store, which: EventFilter, space: str) -> Iterator[LockPeriod]:
    for record in records(log, keys.ended_lock_prefix(space)):
        ended = decode(record.value or b"", EndedLock, record.key)
        lock = ended.lock
        if ended.until_ms >= which.since_ms and _is_wanted(which, lock.resource, lock.owner):
            yield _tenure(lock, lock.fence, ended.until_ms, ended.end_reason.value, ended.by)


def pages(log: Store, begins_at: int) -> Iterator[list[Entry]]:
    """Yield the whole log in pages."""
    after = max(begins_at - 1, 0)
    while page := log.tail(after, PAGE):
        yield page
        after = page[-1].offset


def records(log: Store, prefix: str) -> Iterator[Record]:
    """Yield the records of a range, read in pages."""
    after: Record | None = None
    while page := log.scan(prefix, by="key", after=after, limit=PAGE):
        yield from page
        after = page[-1]


def duration_stats(seconds: "array[float]") -> DurationStats:
    """Return count, median, 95th percentile (nearest rank) and maximum.

    >>> spread(array("d", [1, 2, 3, 4]))
    Spread(count=4, p50_s=2.0, p95_s=4.0, max_s=4.0)
    """
    ordered = sorted(seconds)
    if not ordered:
        return DurationStats(0, 0.0, 0.0, 0.0)
    p50_s, p95_s = (round(ordered[-(-len(ordered) * percent // 100) - 1], 3) for percent in (50, 95))
    return DurationStats(len(ordered), p50_s, p95_s, round(ordered[-1], 3))


def log_of(connection: Connection) -> Store:
    """Return the log that a connection works in."""
    log: Store = connection.database.log(connection.tenant)
    return log


def _head(log: Store) -> int:
    log.load(["head"])  # any read makes the store look
    return log.seen.offset


def beginning(log: Store) -> int:
    """Return the first offset there is, or 0 if nothing was trimmed."""
    try:
        log.tail(0, 1)
    except Trimmed as trimmed:
        return trimmed.first
    return 0


def logged_events(page: Iterable[Entry]) -> Iterator[LoggedEvent]:
    """Yield the events of entries."""
    for entry in page:
        for event in entry.events:
            try:
                details = _EVENT.decode(event)
                yield LoggedEvent(entry.offset, entry.at, str(details.pop("event")), details)
            except (msgspec.MsgspecError, KeyError) as error:
                raise Corrupt(f"an event at offset {entry.offset} cannot be read: {error}") from error


def _is_wanted(which: EventFilter, resource: str, owner: str) -> bool:
    details = {"resource": resource, "session": owner}
    return which.matches(LoggedEvent(0, which.since_ms, which.op, details))


def _tenure(lock: Lock, fence: int, until_ms: int, end_reason: str, by: str = "") -> LockPeriod:
    names = (lock.resource, lock.owner, lock.agent, lock.mode.value)
    return LockPeriod(*names, fence, lock.acquired_ms, until_ms, end_reason, by, lock.reason)


def _known(op: str) -> str:
    """Return an event, or a kind of event, by the name that coord has for it."""
    name = _BY_SEED_NAME.get(op, op)
    if name and name not in _NAMES and name not in {each.partition(".")[0] for each in _NAMES}:
        raise Invalid(f"{shown(op)} is no event", hint="for example lock.denied, or lock for all of its kind")
    return name


def _parsed(text: str, repository: str) -> tuple[Resource, ...]:
    """Return a resource that was written down; what cannot be parsed any more meets nothing."""
    try:
        return parse_resource(text, repository)
    except CoordError:
        return ()


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))
