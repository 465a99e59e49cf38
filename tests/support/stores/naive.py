"""The contract of stores once more, as plainly as it can be said: no index, no lock, nothing clever."""

from collections.abc import Iterable
from typing import Literal

from coord.core.errors import Conflict, Trimmed
from coord.stores.contract import Commit, Entry, Record


class NaiveStore:
    """Records in a dict, entries in a list; every question looks at everything."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self.entries: list[Entry] = []
        self.head = 0
        self.floor = 0

    def _get(self, key: str) -> Record:
        return self.records.get(key, Record(key, self.floor, None))

    def load(self, keys: Iterable[str]) -> dict[str, Record]:
        return {key: self._get(key) for key in keys}

    def scan(
        self, prefix: str, *, by: Literal["key", "index_key"], after: Record | None = None, limit: int
    ) -> list[Record]:
        def place(record: Record) -> tuple[bytes, ...]:
            key, index_key = record.key.encode(), record.index_key.encode()
            return (key,) if by == "key" else (index_key, key)

        live = [record for record in self.records.values() if record.value is not None]
        if by == "index_key":
            live = [record for record in live if record.index_key]
        found = [
            record for record in live if (record.key if by == "key" else record.index_key).startswith(prefix)
        ]
        if after is not None:
            found = [record for record in found if place(record) > place(after)]
        return sorted(found, key=place)[:limit]

    def commit(self, commit: Commit) -> int:
        changed = [
            key for key, version in commit.expected_versions.items() if self._get(key).version != version
        ]
        if changed:
            raise Conflict(changed)
        if commit.puts or commit.deletes or commit.events:
            self.head += 1
            self.entries.append(Entry(self.head, commit.at, commit.id, commit.events))
            for key, put in commit.puts.items():
                self.records[key] = Record(key, self.head, put.value, put.index_key)
            for key in commit.deletes:
                self.records[key] = Record(key, self.head, None)
        return self.head

    def tail(self, after: int, limit: int) -> list[Entry]:
        if after + 1 < self.floor:
            raise Trimmed(self.floor)
        return [entry for entry in self.entries if entry.offset > after][:limit]

    def trim(self, before: int) -> None:
        self.floor = max(self.floor, min(before, self.head))
        self.entries = [entry for entry in self.entries if entry.offset >= self.floor]
        self.records = {
            key: record
            for key, record in self.records.items()
            if record.value is not None or record.version >= self.floor
        }
