"""What a rule may see and do: read a record, scan a range, put, delete, emit.

A `Transaction` belongs to one command. It reads through the batch, remembers every key it read, and
collects the writes; nothing happens until the engine commits them. A read that the draft does not hold
raises `ReadNeeded`: the engine loads it and decides the command again, so rules read as if all were at hand.
What is known about a process being alive (`evidence`) is asked for in the same way.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from coord.core.identity import Evidence, Process
from coord.core.ranges import By, Range
from coord.core.records import MARKER, Stored, encode, encode_known

AnyStored = TypeVar("AnyStored", bound=Stored)


class ReadNeeded(Exception):
    """The draft does not hold these reads yet: the rule is suspended, not failed."""

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
    """The rule rests on the version of what this batch has yet to commit: it waits for the next one."""


class Written(msgspec.Struct, frozen=True, gc=False):
    """A record as a command leaves it; `value` is None where it is deleted.

    `data` is empty where the record is encoded only when the batch is committed (`Transaction.put_late`).
    """

    value: Stored | None
    data: bytes
    index_key: str


class Found(msgspec.Struct, frozen=True):
    """A record that a scan met."""

    key: str
    index_key: str


class Source(Protocol):
    """What a view reads from: the draft of the batch. What stands in `known` need not be asked for."""

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
"""What a write weighs in a log entry besides its key, index key and value."""


class Transaction:
    """One command's reads and writes."""

    __slots__ = ("_known", "_source", "conflicts", "events", "reads", "scanned", "size", "writes")

    def __init__(self, source: Source, conflicts: int = 0) -> None:
        self._source = source
        self._known = source.known
        self.conflicts = conflicts
        """How often others were faster: who could as well do something else does not try the same again."""
        self.size = 0
        self.scanned = False
        self.reads: list[str] = []
        """What was read, in order; more than once what was read more than once."""
        self.writes: dict[str, Written] = {}
        self.events: list[bytes] = []

    def prefetch(self, *keys: str, prefixes: Iterable[str] = (), limit: int = PAGE) -> None:
        """Ask for several records at once, and ranges to `scan` after, so that they are loaded together."""
        self._source.prefetch(keys, [Range(prefix, "key", limit) for prefix in prefixes])

    @property
    def batch_size(self) -> int:
        """How many commands are decided together: where they are many, a rule may load what the next need."""
        return self._source.batch_size

    def not_loaded(self, *keys: str) -> bool:
        """Whether one of these is not loaded yet."""
        return self._source.not_loaded(keys)

    def prefetch_scans(self, ranges: Sequence[Range]) -> None:
        """Ask for several scans at once, of keys or of index keys."""
        self._source.prefetch((), ranges)

    def get(self, key: str, kind: type[AnyStored]) -> AnyStored | None:
        """Return the record, or None where it is absent; either way the answer becomes an expectation."""
        item = self.writes.get(key)
        if item is None:
            self.reads.append(key)
            item = self._known.get(key)
            if item is None:
                return self._source.get(key, kind)
        value: Any = item.value  # of the kind, since a key has only one
        return value  # type: ignore[no-any-return]

    def version(self, key: str) -> int:
        """Return the offset of the commit that wrote a record; 0 where this very command did."""
        return 0 if key in self.writes else self._source.version(key)

    def evidence(self, *processes: Process) -> list[Evidence]:
        """Return what is known about processes being alive, as seen from here."""
        return self._source.evidence(processes)

    def scan(
        self, prefix: str, *, by: By = "key", limit: int, after: tuple[str, str] = ("", "")
    ) -> list[Found]:
        """Return what stands in a range, in order. It is no expectation: `get` what a decision rests on."""
        self.scanned = True
        return self._source.scan(Range(prefix, by, limit, after), self.writes)

    def pages(
        self, prefix: str, *, limit: int = PAGE, after: tuple[str, str] = ("", "")
    ) -> "Iterator[list[Found]]":
        """Go through a range of keys, a page at a time; what is on a page may be deleted meanwhile."""
        page = self.scan(prefix, limit=limit, after=after)
        while page:
            yield page
            if len(page) < limit:
                return
            page = self.scan(prefix, limit=limit, after=(page[-1].index_key, page[-1].key))

    def put(self, key: str, value: Stored, index_key: str = "") -> None:
        """Write a record; its key becomes an expectation too."""
        data = encode(value) if value.unknown else encode_known(value)
        before = self.writes.get(key)
        self.writes[key] = Written(value, data, index_key)
        if before is None:
            self.size += len(key) + len(data) + len(index_key) + WRITE_BYTES
        else:  # only the last one is committed
            self.size += len(data) + len(index_key) - len(before.data) - len(before.index_key)

    def put_late(self, key: str, value: Stored) -> None:
        """Write a small record that many commands of a batch change: only its last value is encoded."""
        self.writes[key] = Written(value, b"", "")
        self.size += len(key) + WRITE_BYTES

    def put_marker(self, key: str) -> None:
        """Write an index entry: a record that says all it has to say by being there."""
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

    def withdraw(self) -> None:
        """Take back everything that was written; what was read stays read."""
        self.writes.clear()
        self.events.clear()
        self.size = 0


encode_event = msgspec.json.Encoder().encode
