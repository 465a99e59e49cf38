"""Ranges as a batch sees them: the records of the store, with the writes of the batch on top."""

from bisect import bisect_left, insort
from collections.abc import Iterator
from itertools import islice

from coord.core.ranges import Range
from coord.core.transaction import Transaction, Written
from coord.engine.pending import PendingCommand
from coord.stores.contract import Record

Completed = tuple[PendingCommand, Transaction]
"""A command that ran: its reply is in the first, its reads and writes are in the second."""


class CachedRange:
    """The records that were read of a range; leading ones that the batch has overwritten are skipped once."""

    __slots__ = ("first", "records", "whole")

    def __init__(self, records: list[Record], *, whole: bool) -> None:
        self.records = records
        self.whole = whole
        self.first = 0

    def seen(self, limit: int, written: dict[str, Written], own: dict[str, Written]) -> list[tuple[str, str]]:
        """Return the first records that no write hides."""
        records, at = self.records, self.first
        if not (written or own):
            return [(record.key, record.index_key) for record in records[:limit]]
        while at < len(records) and records[at].key in written:
            at += 1
        self.first = at
        found: list[tuple[str, str]] = []
        while at < len(records) and len(found) < limit:
            key = records[at].key
            if key not in written and key not in own:
                found.append((key, records[at].index_key))
            at += 1
        return found


class WriteIndex:
    """The writes of a batch in order, so that a scan costs what it finds, not what was written."""

    __slots__ = ("_arranged", "_decided", "_index_keys", "_keys")

    def __init__(self, completed: list[Completed]) -> None:
        self._keys: list[tuple[str, str]] = []
        self._index_keys: list[tuple[str, str]] = []
        self._decided = completed
        self._arranged = 0
        """The number of commands whose writes are sorted in; the others follow at the next scan."""

    def within(
        self, range_: Range, start: tuple[str, str], written: dict[str, Written], own: dict[str, Written]
    ) -> list[tuple[str, str]]:
        """Return the keys and index keys of writes inside a range, up to its limit."""
        if self._arranged < len(self._decided):
            self._arrange()
        by_index_key = range_.by == "index_key"
        positions = self._index_keys if by_index_key else self._keys
        found: list[tuple[str, str]] = []
        at = bisect_left(positions, max(start, (range_.prefix, "")))
        while (
            at < len(positions) and len(found) < range_.limit and positions[at][0].startswith(range_.prefix)
        ):
            key = positions[at][1] if by_index_key else positions[at][0]
            item = written[key]
            stands = item.value is not None and (not by_index_key or item.index_key == positions[at][0])
            if stands and key not in own and positions[at] != start:
                found.append((key, item.index_key))
            at += 1
        return found

    def _arrange(self) -> None:
        fresh = [tx.writes for _, tx in self._decided[self._arranged :]]
        keys = [(key, "") for writes in fresh for key in writes]
        index_keys = [
            (item.index_key, key) for writes in fresh for key, item in writes.items() if item.index_key
        ]
        self._arranged = len(self._decided)
        self._keys = _merge(self._keys, keys)
        self._index_keys = _merge(self._index_keys, index_keys)


class OwnKeys:
    """The keys that one command has written, in order, so that its scans cost what they find."""

    __slots__ = ("_keys", "own")

    def __init__(self, own: dict[str, Written]) -> None:
        self.own = own
        self._keys: list[str] = []

    def within(self, prefix: str) -> Iterator[str]:
        """Yield the written keys with a prefix; a dict keeps the order in which its keys came."""
        for key in islice(reversed(self.own), len(self.own) - len(self._keys)):
            insort(self._keys, key)
        for at in range(bisect_left(self._keys, prefix), len(self._keys)):
            if not self._keys[at].startswith(prefix):
                return
            yield self._keys[at]


def _merge(ordered: list[tuple[str, str]], more: list[tuple[str, str]]) -> list[tuple[str, str]]:
    if len(more) > 64:
        return sorted({*ordered, *more})
    for entry in more:
        at = bisect_left(ordered, entry)
        if at == len(ordered) or ordered[at] != entry:
            ordered.insert(at, entry)
    return ordered
