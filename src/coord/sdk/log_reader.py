"""Read the log of a store as pages of entries and as events.

A reader asks the store and nothing else: it needs no session and no connection. Where old entries were
trimmed, reading starts at the first entry that is left (`first_offset`).
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from coord.core.errors import Trimmed
from coord.core.events import UNREADABLE, read_or_name
from coord.stores.contract import Entry, Store
from coord.stores.database import EPOCH_BITS

PAGE_ENTRIES = 500


class LoggedEvent(msgspec.Struct, frozen=True):
    """An event with the offset and the time of its log entry."""

    offset: int
    at_ms: int
    event: str
    details: dict[str, Any]


def newest_offset(log: Store) -> int:
    """Return the offset of the newest entry; 0 if there is none."""
    log.load(["head"])  # any read makes the store look
    return log.seen.offset


def first_offset(log: Store) -> int:
    """Return the offset of the first entry that is left, or 0 if nothing was trimmed."""
    try:
        log.tail(0, 1)
    except Trimmed as trimmed:
        return trimmed.first
    return 0


def is_beginning(first: int) -> bool:
    """Whether nothing was trimmed of a log with this first offset: a new log begins where its epoch does.

    A log that was repaired begins one entry later, with the records that were saved.
    """
    return first % (1 << EPOCH_BITS) == 0


def pages(log: Store, first: int) -> Iterator[list[Entry]]:
    """Yield the log from an offset to its end, in pages."""
    after = max(first - 1, 0)
    while page := log.tail(after, PAGE_ENTRIES):
        yield page
        after = page[-1].offset


def pages_backwards(log: Store, first: int) -> Iterator[list[Entry]]:
    """Yield the log from its end back to an offset, in pages; the entries of a page are in log order."""
    up_to, oldest = newest_offset(log), max(first - 1, 0)
    while up_to > oldest:
        after = max(up_to - PAGE_ENTRIES, oldest)
        page = [entry for entry in log.tail(after, up_to - after) if entry.offset <= up_to]
        if page:
            yield page
            up_to = after
        else:  # offsets leap where a new epoch begins
            up_to = _newest_up_to(log, after, oldest)


def _newest_up_to(log: Store, offset: int, oldest: int) -> int:
    """Return the newest offset with an entry, by halves; `oldest` if there is none after that one."""
    low, high = oldest, offset
    while low < high:
        middle = (low + high + 1) // 2
        (entry, *_) = log.tail(middle - 1, 1)
        low, high = (middle, high) if entry.offset <= offset else (low, middle - 1)
    return low


def follow_pages(log: Store, after: int, wait_s: float) -> Iterator[list[Entry]]:
    """Yield the entries after an offset, for ever; an empty page after each `wait_s` without a new entry."""
    while True:
        page = log.tail(after, PAGE_ENTRIES)
        if page:
            after = page[-1].offset
        else:
            log.wait(after, wait_s)
        yield page


def logged_events(page: Iterable[Entry]) -> Iterator[LoggedEvent]:
    """Yield the events of log entries; one that cannot be read has the name `unreadable`, as in streams.

    Anybody who has the store may have written it, so it must not stop those who read the others.
    """
    for entry in page:
        for raw in entry.events:
            details = read_or_name(raw)
            yield LoggedEvent(entry.offset, entry.at, str(details.pop("event", UNREADABLE)), details)
