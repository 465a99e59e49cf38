"""Numbers over time, counted from the log: per minute for the newest day and a half, per hour for all of it.

The rules are data (`core/page/series.py`). `Numbers` reads each entry once and keeps what it counted, so that
an open page costs no repeated reads.
"""

import math
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from coord.core.errors import Trimmed
from coord.core.page.series import BOUNDS_S, COUNTED, COUNTS, EVENTS, LEVELS, SPANS, TIMED
from coord.stores.contract import Entry, Store

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
MINUTES_KEPT = 36 * 60
OPEN_MAX = 100_000
"""How many things of a level are remembered at a time."""
AMOUNT_MAX = 1e15
"""A larger number comes from nobody who measured it."""
READ_S = 1.0
"""How long one request may count; the next one goes on."""
PAGE_ENTRIES = 1000
_DAY = 24 * 60
WIDTHS_MS = tuple(
    minutes * MINUTE_MS
    for minutes in (
        *(1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720),
        *(_DAY, 2 * _DAY, 7 * _DAY, 14 * _DAY, 30 * _DAY, 90 * _DAY, 365 * _DAY),
    )
)
_FIRST = b'{"event":"'
_TAGS = frozenset(_FIRST + name.encode() for name in EVENTS)
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Bucket(msgspec.Struct):
    """What was counted in a minute or an hour."""

    counts: dict[str, float] = {}
    spans: dict[str, list[int]] = {}
    """How many durations are in each class of `BOUNDS_S`."""
    levels: dict[str, float] = {}
    """How many things existed, times the milliseconds."""
    after: int = -1
    """The offset before its first entry; -1 if it has none."""


class Series(msgspec.Struct, frozen=True):
    """Numbers in buckets of `width_ms` from a time on; a level is the average of its bucket."""

    from_ms: int
    width_ms: int
    counts: dict[str, list[float]]
    spans: dict[str, list[list[int]]]
    levels: dict[str, list[float]]
    left_out: int | None = None
    """The offset before the first entry that does not count, because its minute or hour had not ended."""


class Counter:
    """Counts events into minutes and hours."""

    def __init__(self) -> None:
        self.begins_ms = 0
        self.newest_ms = 0
        self._minutes: dict[int, Bucket] = {}
        self._hours: dict[int, Bucket] = {}
        self._open: dict[str, set[tuple[str, ...]]] = {name: set() for name in LEVELS}
        self._since_ms: dict[str, int] = dict.fromkeys(LEVELS, 0)

    def count(self, at: int, event: str, details: dict[str, Any], offset: int = 0) -> None:
        """Count one event of the entry at an offset; times never fall, whatever an entry says."""
        at = self.newest_ms = max(at, self.newest_ms)
        self.begins_ms = self.begins_ms or at
        buckets = self._at(at, offset)
        for rule in COUNTS.get(event, ()):
            amount = _amount(details.get(rule["field"])) if "field" in rule else 1
            for bucket in buckets if amount else ():
                bucket.counts[rule["series"]] = bucket.counts.get(rule["series"], 0) + amount
        if (span := SPANS.get(event)) is not None and (taken := _amount(details.get(span["field"]))):
            position = bisect_left(BOUNDS_S, taken / span["scale"])
            for bucket in buckets:
                bucket.spans.setdefault(span["series"], [0] * (len(BOUNDS_S) + 1))[position] += 1
        for name, level in LEVELS.items():
            if (fields := level["begins"].get(event)) is not None:
                if details.get(level.get("unless", "")) is not True:
                    self._change(name, at, _key(details, fields), begins=True)
            elif (fields := level["ends"].get(event)) is not None:
                self._change(name, at, _key(details, fields), begins=False)

    def _change(self, name: str, at: int, key: tuple[str, ...], *, begins: bool) -> None:
        found = self._open[name]
        if begins is (key in found) or (begins and len(found) >= OPEN_MAX):
            return
        self._add_level(name, at)
        (found.add if begins else found.discard)(key)

    def _add_level(self, name: str, at: int) -> None:
        """Add the time since the last change of a level to the buckets that it lies in."""
        size, since = len(self._open[name]), self._since_ms[name]
        self._since_ms[name] = max(at, since)
        for buckets, width in ((self._minutes, MINUTE_MS), (self._hours, HOUR_MS)):
            first = since if width == HOUR_MS else max(since, at - MINUTES_KEPT * MINUTE_MS)
            for number, spent in _parts(first, at, width) if size else ():
                bucket = buckets.setdefault(number, Bucket())
                bucket.levels[name] = bucket.levels.get(name, 0) + size * spent

    def _at(self, at: int, offset: int) -> tuple[Bucket, Bucket]:
        """Return the buckets of a time; one that exists for its levels gets its first entry now."""
        minute, hour = at // MINUTE_MS, at // HOUR_MS
        if minute not in self._minutes:
            self._minutes[minute] = Bucket()
            if len(self._minutes) > 2 * MINUTES_KEPT:
                kept = minute - MINUTES_KEPT
                self._minutes = {each: found for each, found in self._minutes.items() if each >= kept}
        if hour not in self._hours:
            self._hours[hour] = Bucket()
        found = self._minutes[minute], self._hours[hour]
        for bucket in found:
            bucket.after = offset - 1 if bucket.after < 0 else bucket.after
        return found

    def series(self, since_ms: int, now_ms: int, buckets_max: int, until_ms: int | None = None) -> Series:
        """Return the numbers from a time until now in at most `buckets_max` + 1 buckets of a round width.

        With `until_ms` only the minutes or hours that had ended by then count.
        """
        now_ms = max(now_ms, self.newest_ms)
        for name in LEVELS:
            self._add_level(name, now_ms)
        oldest_minute = now_ms - MINUTES_KEPT * MINUTE_MS
        now_ms = now_ms if until_ms is None else max(until_ms, self.begins_ms)
        since_ms = min(max(since_ms, self.begins_ms), now_ms) if self.begins_ms else now_ms
        in_minutes = since_ms > oldest_minute
        wanted = max((now_ms - since_ms) / buckets_max, MINUTE_MS if in_minutes else HOUR_MS)
        width = WIDTHS_MS[min(bisect_left(WIDTHS_MS, wanted), len(WIDTHS_MS) - 1)]
        source, step = (self._minutes, MINUTE_MS) if width < HOUR_MS else (self._hours, HOUR_MS)
        first = since_ms // width
        size = now_ms // width - first + 1
        whole = math.inf if until_ms is None else until_ms // step
        ended = {each: bucket for each, bucket in source.items() if each < whole}
        left_out = [source[each].after for each in source.keys() - ended if source[each].after >= 0]
        full_ms = min(now_ms, whole * step)
        counts = {name: [0.0] * size for name in COUNTED}
        spans = {name: [list[int]() for _ in range(size)] for name in TIMED}
        levels = {name: [0.0] * size for name in LEVELS}
        for number, bucket in ended.items():
            position = number * step // width - first
            if not 0 <= position < size:
                continue
            for name, amount in bucket.counts.items():
                counts[name][position] += amount
            for name, found in bucket.spans.items():
                before = spans[name][position] or [0] * len(found)
                spans[name][position] = [one + other for one, other in zip(before, found, strict=True)]
            for name, amount in bucket.levels.items():
                levels[name][position] += amount
        for averages in levels.values():
            for position in range(size):
                begins = max((first + position) * width, self.begins_ms)
                averages[position] /= max(1, min((first + position + 1) * width, full_ms) - begins)
        return Series(first * width, width, counts, spans, levels, min(left_out, default=None))


def _parts(since: int, until: int, width: int) -> Iterator[tuple[int, int]]:
    """Yield the number of each bucket that a time lies in, and how much of it."""
    while since < until:
        number = since // width
        end = min(until, (number + 1) * width)
        yield number, end - since
        since = end


def _amount(value: Any) -> float:
    """Return a number that may be added; anybody who has the store may have written something else."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < AMOUNT_MAX:
        return 0
    return value if math.isfinite(value) else 0


def _key(details: dict[str, Any], fields: Iterable[str]) -> tuple[str, ...]:
    return tuple(str(details.get(name, "")) for name in fields)


class Numbers:
    """The numbers of one log, as far as it was read; `project`: only events that state it."""

    def __init__(self, log: Store, project: str = "") -> None:
        self.offset = 0
        self._log = log
        self._project = project
        self._counter = Counter()

    def read(
        self, since_ms: int, buckets_max: int, until_ms: int | None = None, *, read_s: float = READ_S
    ) -> tuple[Series, int, bool]:
        """Return the numbers from a time on, the offset up to which they are, and whether that is all.

        With `until_ms` they end with the last full minute or hour before that time. One thread at a time.
        """
        whole = self._read_on(time.monotonic() + read_s)
        now = self._log.now() if whole else self._counter.newest_ms
        found = self._counter.series(since_ms, now, buckets_max, until_ms)
        return found, self.offset if found.left_out is None else found.left_out, whole

    def _read_on(self, until_s: float) -> bool:
        while True:
            try:
                page = self._log.tail(self.offset, PAGE_ENTRIES)
            except Trimmed as error:
                self.offset = max(self.offset + 1, error.first - 1)
                continue
            if not page:
                return True
            for entry in page:
                self._take(entry)
            self.offset = page[-1].offset
            if time.monotonic() > until_s:
                return False

    def _take(self, entry: Entry) -> None:
        for raw in entry.events:
            if raw.startswith(_FIRST) and raw[: raw.find(b'"', len(_FIRST))] not in _TAGS:
                continue  # most events are of no interest, and are not decoded
            try:
                details = _decode(raw)
            except (ValueError, RecursionError):
                continue
            name = str(details.get("event"))
            if name in EVENTS and (not self._project or details.get("project") == self._project):
                self._counter.count(entry.at, name, details, entry.offset)
