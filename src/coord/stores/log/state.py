"""The records of a log-structured store in memory: the result of applying the entries of its log in order."""

from collections.abc import Iterable, Iterator
from itertools import islice

from sortedcontainers import SortedList

from coord.core.ranges import Range
from coord.stores.contract import Commit, ReadPoint, Record, prefix_end

Item = str | tuple[str, str]
"""A key, or an index key with its key."""


class SortedIndex:
    """Sorted items that are cheap to change in bulk: changes are merged at the next read."""

    def __init__(self) -> None:
        self._items: SortedList[Item] = SortedList()
        self._added: set[Item] = set()
        self._removed: set[Item] = set()

    def add_all(self, items: Iterable[Item]) -> None:
        again = self._removed.intersection(items) if self._removed else ()
        self._removed.difference_update(again)
        self._added.update(items)
        self._added.difference_update(again)

    def remove(self, item: Item) -> None:
        if item in self._added:
            self._added.discard(item)
        else:
            self._removed.add(item)

    def between(self, low: Item, high: Item | None, *, after: bool) -> Iterator[Item]:
        """Yield the items from `low` (or after it) up to but without `high`, in order."""
        for item in self._removed:
            self._items.remove(item)
        self._removed.clear()
        self._items.update(self._added)
        self._added.clear()
        return self._items.irange(low, high, inclusive=(not after, False))


class LogState:
    """Live records, tombstones and index keys at one offset."""

    def __init__(self, offset: int = 0, at: int = 0, floor: int = 0) -> None:
        self.offset = offset
        self.at = at
        self.floor = floor
        self.records: dict[str, Record] = {}
        self.tombstones: dict[str, int] = {}
        self._by_key = SortedIndex()
        self._by_index_key = SortedIndex()
        self._started = 0
        """The number of commits that `apply` has started: an interrupted one may have changed records."""

    def get_all(self, keys: Iterable[str]) -> list[Record]:
        """Return the records; an absent one has the version of its absence."""
        records, tombstones, floor = self.records, self.tombstones, self.floor
        return [records.get(key) or Record(key, tombstones.get(key, floor), None) for key in keys]

    @property
    def read_point(self) -> ReadPoint:
        """The read point of a load now."""
        return ReadPoint(self.offset, self.floor, self._started)

    def changed(self, commit: Commit) -> list[str]:
        """Return the keys whose version is not the expected one."""
        if commit.read_point == self.read_point:
            return []
        records, tombstones, floor = self.records, self.tombstones, self.floor
        return [
            key
            for key, version in commit.expected_versions.items()
            if (records[key].version if key in records else tombstones.get(key, floor)) != version
        ]

    def apply(self, offset: int, commit: Commit) -> None:
        """Apply a commit at this offset."""
        self._started += 1
        records, tombstones = self.records, self.tombstones
        by_key, by_index_key = self._by_key, self._by_index_key
        new_keys: list[Item] = []
        new_index_keys: list[Item] = []
        for key, put in commit.puts.items():
            index_key = put.index_key
            old = records.get(key)
            if old is None:
                tombstones.pop(key, None)
                new_keys.append(key)
                if index_key:
                    new_index_keys.append((index_key, key))
            elif old.index_key != index_key:
                if old.index_key:
                    by_index_key.remove((old.index_key, key))
                if index_key:
                    new_index_keys.append((index_key, key))
            records[key] = Record(key, offset, put.value, index_key)
        by_key.add_all(new_keys)
        by_index_key.add_all(new_index_keys)
        for key in commit.deletes:
            old = records.pop(key, None)
            if old is not None:
                by_key.remove(key)
                if old.index_key:
                    by_index_key.remove((old.index_key, key))
            self.tombstones[key] = offset
        self.offset = offset
        self.at = commit.at

    def scan(self, range_: Range) -> list[Record]:
        """Return live records in byte order of key or index key."""
        prefix, by, limit, after = range_
        end = prefix_end(prefix)
        if by == "key":
            passed = after[1] >= prefix
            keys = self._by_key.between(after[1] if passed else prefix, end, after=passed)
            return [self.records[str(key)] for key in islice(keys, limit)]
        high = None if end is None else (end, "")
        positions = self._by_index_key.between(max(after, (prefix, "")), high, after=True)  # no key is empty
        return [self.records[position[1]] for position in islice(positions, limit)]

    def trim(self, before: int) -> None:
        """Remove tombstones below the offset and raise the floor to it, but never above the head.

        If the floor were above the head, it would equal the version of the next put, and absence would look
        unchanged.
        """
        self.floor = max(self.floor, min(before, self.offset))
        self.tombstones = {key: version for key, version in self.tombstones.items() if version >= self.floor}

    def add(self, records: Iterable[Record], tombstones: dict[str, int]) -> None:
        """Add records and tombstones of a snapshot, none of which is here yet."""
        added = {record.key: record for record in records}
        self.records.update(added)
        self._by_key.add_all(list(added))
        self._by_index_key.add_all(
            [(record.index_key, key) for key, record in added.items() if record.index_key]
        )
        self.tombstones.update(tombstones)
