"""What a rule may do: read a record, scan a range, put, delete, emit.

A `Transaction` belongs to one command. It reads through the batch, remembers every key it read, and
collects the writes; nothing happens until the engine commits them. A read that is not loaded raises
`ReadNeeded`: the engine loads it and runs the rule again, so a rule reads as if everything were at hand.
Evidence about processes is requested in the same way.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from coord.core.identity import Evidence, Process
from coord.core.ranges import By, Range
from coord.core.records import MARKER, Stored, encode, encode_known

AnyStored = TypeVar("AnyStored", bound=Stored)


class ReadNeeded(Exception):
    """These reads are not loaded yet: the rule is suspended, not failed."""

    def __init__(
        self,
        keys: Iterable[str] = (),
        ranges: "Iterable[Range]" = (),
        processes: Iterable[Process] = (),
    ) -> None:
        super().__init__(keys, ranges, processes)
        self.keys = keys
        self.ranges = ranges
        self.processes = processes


class NextBatch(Exception):
    """The rule needs the version of a record that this batch has yet to commit, so it waits."""


class Written(msgspec.Struct, frozen=True, gc=False):
    """A record as a command writes it; `value` is None if it is deleted.

    `data` is empty if the record is encoded only at the commit (`Transaction.put_late`).
    """

    value: Stored | None
    data: bytes
    index_key: str


class Found(msgspec.Struct, frozen=True):
    """A record that a scan found."""

    key: str
    index_key: str


class Source(Protocol):
    """What a transaction reads from: the batch. `known` holds decoded records for a faster path."""

    known: dict[str, Written]

    batch_size: int

    def get(self, key: str, kind: type[AnyStored]) -> AnyStored | None: ...
    def not_loaded(self, keys: Iterable[str]) -> bool: ...
    def prefetch(self, keys: Sequence[str], ranges: Sequence[Range] = ()) -> None: ...
    def version(self, key: str) -> int: ...
    def evidence(self, processes: Sequence[Process]) -> list[Evidence]: ...
    def scan(self, range_: Range, own: dict[str, Written]) -> list[Found]: ...


GONE = Written(None, b"", "")
_MARKER = Written(MARKER, encode(MARKER), "")
PAGE = 500
"""How many records of a range are read at once."""
WRITE_BYTES = 64
"""The size of a write in a log entry, besides its key, index key and value."""


class Transaction:
    """One command's reads and writes."""

    __slots__ = ("_known", "_source", "conflicts", "events", "reads", "scanned", "size", "writes")

    def __init__(self, source: Source, conflicts: int = 0) -> None:
        self._source = source
        self._known = source.known
        self.conflicts = conflicts
        """How often this command conflicted: a rule with alternatives then tries another one."""
        self.size = 0
        self.scanned = False
        self.reads: list[str] = []
        """The keys that were read, in order, with repetitions."""
        self.writes: dict[str, Written] = {}
        self.events: list[bytes] = []

    def prefetch(self, *keys: str, prefixes: Iterable[str] = (), limit: int = PAGE) -> None:
        """Request several records, and ranges to `scan` later, so that they are loaded together."""
        self._source.prefetch(keys, [Range(prefix, "key", limit) for prefix in prefixes])

    @property
    def batch_size(self) -> int:
        """The number of commands in the batch: in a large one a rule may load what the next ones need."""
        return self._source.batch_size

    def not_loaded(self, *keys: str) -> bool:
        """Whether one of these keys is not loaded yet."""
        return self._source.not_loaded(keys)

    def prefetch_scans(self, ranges: Sequence[Range]) -> None:
        """Request several scans together, of keys or of index keys."""
        self._source.prefetch((), ranges)

    def get(self, key: str, kind: type[AnyStored]) -> AnyStored | None:
        """Return the record, or None if it is absent; the commit verifies either."""
        item = self.writes.get(key)
        if item is None:
            self.reads.append(key)
            item = self._known.get(key)
            if item is None:
                return self._source.get(key, kind)
        value: Any = item.value  # of this kind: a key has only one
        return value  # type: ignore[no-any-return]

    def peek(self, key: str, kind: type[AnyStored]) -> AnyStored | None:
        """Return the record as far as it is known; the commit does not verify it, so it is only a hint."""
        item = self.writes.get(key) or self._known.get(key)
        if item is None:
            return self._source.get(key, kind)
        value: Any = item.value
        return value  # type: ignore[no-any-return]

    def version(self, key: str) -> int:
        """Return the offset of the commit that wrote a record; 0 if this command did."""
        return 0 if key in self.writes else self._source.version(key)

    def evidence(self, *processes: Process) -> list[Evidence]:
        """Return the evidence about processes, as seen from this machine."""
        return self._source.evidence(processes)

    def scan(
        self, prefix: str, *, by: By = "key", limit: int, after: tuple[str, str] = ("", "")
    ) -> list[Found]:
        """Return the entries of a range, in order. The commit does not verify a scan: `get` what matters."""
        self.scanned = True
        return self._source.scan(Range(prefix, by, limit, after), self.writes)

    def pages(
        self, prefix: str, *, limit: int = PAGE, after: tuple[str, str] = ("", "")
    ) -> "Iterator[list[Found]]":
        """Yield a range of keys page by page; the caller may delete what is on a page.

        Each page is twice as long as the one before: a rule that is restarted for every page of a long range
        then runs only a few times.
        """
        page = self.scan(prefix, limit=limit, after=after)
        while page:
            yield page
            if len(page) < limit:
                return
            limit *= 2
            page = self.scan(prefix, limit=limit, after=(page[-1].index_key, page[-1].key))

    def put(self, key: str, value: Stored, index_key: str = "") -> None:
        """Write a record; the commit verifies its old version, too."""
        data = encode(value) if value.unknown else encode_known(value)
        before = self.writes.get(key)
        self.writes[key] = Written(value, data, index_key)
        if before is None:
            self.size += len(key) + len(data) + len(index_key) + WRITE_BYTES
        else:  # only the last one is committed
            self.size += len(data) + len(index_key) - len(before.data) - len(before.index_key)

    def put_late(self, key: str, value: Stored) -> None:
        """Write a small record that many commands of a batch change; only its last value is encoded."""
        self.writes[key] = Written(value, b"", "")
        self.size += len(key) + WRITE_BYTES

    def put_marker(self, key: str) -> None:
        """Write an empty record that only marks a key as present."""
        self.writes[key] = _MARKER
        self.size += len(key) + WRITE_BYTES

    def delete(self, key: str) -> None:
        """Delete a record."""
        self.writes[key] = GONE
        self.size += len(key) + WRITE_BYTES

    def emit(self, event: msgspec.Struct) -> None:
        """Add an event to the log entry of this commit."""
        data = encode_event(event)
        self.events.append(data)
        self.size += len(data)

    def add_origin(self, field: bytes) -> None:
        """Add a field, encoded, to every event: where the command came from."""
        self.events = [b"%b%b}" % (event[:-1], field) for event in self.events]
        self.size += len(field) * len(self.events)

    def withdraw(self) -> None:
        """Drop all writes and events; keep the reads."""
        self.writes.clear()
        self.events.clear()
        self.size = 0


encode_event = msgspec.json.Encoder().encode
