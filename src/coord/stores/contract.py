"""The contract that every store keeps. `tests/contract/` checks each clause on each store.

A store holds, for one tenant, *records* and one *log*. A record has a key, a value, a version and at most
one *index key*, by which records can be read in order (a position in a queue, or a deadline). The log is the
sequence of commits.

- **One commit, one entry, one order.** `commit` applies a whole `Commit` or nothing. It succeeds if and only
  if every expected version is current. Its offset is then head + 1, without gaps, and every key it put or
  deleted has that offset as its version. When `commit` returns, the entry is durable (if `limits.durable`)
  and `tail` shows it. A commit must expect a version of every key it puts or deletes.
- **A commit without writes** appends nothing. The store checks the expected versions and returns the head, so
  a refusal is as linearizable as a grant.
- **Absence has a version.** A deleted key reads as `value=None` with the offset of its deletion. A key that
  never existed, or whose tombstone was trimmed, reads with the store's *floor* (its compacted version). So a
  key that was absent, created and deleted again does not look unchanged (no ABA), and the version of a key
  never falls.
- **Errors say whether the commit happened.** `Conflict`, `Unavailable`: it did not. A store may report a
  conflict of every key if other writers keep coming first. `Unknown`: it may have happened. `Invalid`,
  `LimitReached`: the commit is malformed or too large, and did not happen. `Corrupt`: stored data is damaged;
  a store never skips it. `Unsupported`: a newer version wrote the store. A store raises no other error.
- **No retries inside.** The next call reopens a lost connection; the engine decides whether to retry.
- `load` returns the newest committed state of every key and range, all at one *read point* that is not older
  than any commit that returned before the call. The caller may pass that read point to `commit`. With
  `allow_stale` the read point may be older, and the result says so: the caller must then commit, and the
  commit detects it.
- A range returns live records by key or by index key, in byte order (equal index keys are ordered by key),
  strictly after the given position. `scan` loads one range. Ranges are *not* protected against phantoms: a
  decision that relies on absence from a range must also expect the version of a record that every writer to
  that range puts.
- `tail` returns entries after an offset, in order. A reader that saw offset n never later sees a new entry
  <= n. `tail` raises `Trimmed` if entries after the given offset were removed.
- `wait` is a hint: it may return early without news, and it never sleeps longer than its timeout.
- `trim` removes entries and tombstones below an offset and raises the floor to it. It never removes records.
- `now` is the store's clock in milliseconds. `seen` is the newest offset that this object has seen, and the
  time in that entry.

Stores are synchronous: one committer uses a store at a time, and async callers await futures.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from coord.core.errors import Invalid, LimitReached, Unsupported
from coord.core.ranges import By, Range

FORMAT = 3
"""The format that stores write. A store with another format is refused when it is opened."""


class OlderFormat(Unsupported):
    """An older version of coord made the store, and this one cannot read it."""


def check_format(found: str | int | None, where: str) -> None:
    """Refuse a store that another version of coord made."""
    if str(found) != str(FORMAT):
        message = f"{where} has format {found}; this version of coord reads {FORMAT}"
        if str(found).isdecimal() and int(str(found)) < FORMAT:
            raise OlderFormat(message, hint="an older coord made it: create a new store")
        raise Unsupported(message, hint="upgrade coord")


RECORD_BYTES = 256 * 1024
KEY_BYTES = 700


class Record(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A key at some read point; `value` is None if the key is absent."""

    key: str
    version: int
    value: bytes | None
    index_key: str = ""


class Put(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A new value for a key, and its index key ("" for none)."""

    value: bytes
    index_key: str = ""


class ReadPoint(NamedTuple):
    """The point of the log at which a load read: head, floor, and the connection that was used.

    A server that failed may have lost commits and may reuse their offsets, but never within one connection.
    """

    offset: int
    floor: int
    connection: int = 0


NO_READ_POINT = ReadPoint(-1, -1, -1)
"""The reads have different read points, or an unknown one."""


class Loaded(dict[str, Record]):
    """The result of a load: a record for every requested key, and the records of each range.

    All were read at one read point. It is the newest one unless `maybe_stale` is set.
    """

    __slots__ = ("maybe_stale", "ranges", "read_point")

    def __init__(
        self,
        records: Iterable[tuple[str, Record]] | dict[str, Record],
        read_point: ReadPoint,
        ranges: Sequence[list[Record]] = (),
        *,
        maybe_stale: bool = False,
    ) -> None:
        super().__init__(records)
        self.read_point = read_point
        self.ranges = ranges
        self.maybe_stale = maybe_stale


class Commit(msgspec.Struct, frozen=True, array_like=True):
    """A change that is applied completely or not at all. Its `id` finds it in the log if the reply is lost.

    `read_point` promises that every expected version was read at that point. If head and floor have not
    moved since, the store may skip the version checks. If the read may be stale and somebody has committed
    since, the commit fails with `Conflict`, even if no key changed: its timestamp might lie in the past.
    """

    expected_versions: dict[str, int] = {}
    puts: dict[str, Put] = {}
    deletes: list[str] = []
    events: list[bytes] = []
    at: int = 0
    id: bytes = b""
    read_point: ReadPoint = NO_READ_POINT
    maybe_stale: bool = False

    @property
    def writes(self) -> bool:
        """Whether this commit appends an entry."""
        return bool(self.puts or self.deletes or self.events)


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """A commit as the log shows it."""

    offset: int
    at: int
    id: bytes
    events: list[bytes]


class Head(NamedTuple):
    """The newest offset and the time in its entry (0, 0 for an empty log)."""

    offset: int
    at: int


class Limits(msgspec.Struct, frozen=True):
    """The sizes that a store accepts, and whether it is durable and shared between processes."""

    commit_bytes: int
    durable: bool
    shared: bool
    record_bytes: int = RECORD_BYTES
    key_bytes: int = KEY_BYTES


class RangeReader(ABC):
    """The base of every store: `scan` in terms of `load`."""

    @abstractmethod
    def load(self, keys: Iterable[str], ranges: Sequence[Range] = (), *, allow_stale: bool = False) -> Loaded:
        """Return records and ranges at one read point."""

    def scan(self, prefix: str, *, by: By, after: Record | None = None, limit: int) -> list[Record]:
        start = ("", "") if after is None else (after.index_key, after.key)
        return self.load((), [Range(prefix, by, limit, start)]).ranges[0]


class Store(Protocol):
    """One tenant's records and log."""

    @property
    def limits(self) -> Limits: ...
    @property
    def seen(self) -> Head: ...
    def load(
        self, keys: Iterable[str], ranges: Sequence[Range] = (), *, allow_stale: bool = False
    ) -> Loaded: ...
    def scan(self, prefix: str, *, by: By, after: Record | None = None, limit: int) -> list[Record]: ...
    def commit(self, commit: Commit) -> int: ...
    def tail(self, after: int, limit: int) -> list[Entry]: ...
    def wait(self, after: int, timeout: float) -> bool: ...
    def trim(self, before: int) -> None: ...
    def now(self) -> int: ...
    def close(self) -> None: ...


def check_commit(commit: Commit, limits: Limits) -> None:
    """Refuse a malformed or oversized commit before anything is written."""
    expected, deletes, record_bytes = commit.expected_versions, commit.deletes, limits.record_bytes
    check_texts(expected, limits)
    index_keys, size = list[str](), sum(map(len, commit.events))
    for key, put in commit.puts.items():
        value_size, index_key = len(put.value), put.index_key
        if value_size > record_bytes:
            raise LimitReached(f"the value of {key!r} has {value_size} bytes; the limit is {record_bytes}")
        if key not in expected:
            raise Invalid(f"{key!r} is put without an expected version", hint="load it first")
        size += len(key) + len(index_key) + value_size
        if index_key:
            index_keys.append(index_key)
    if index_keys:
        check_texts(index_keys, limits)
    if deletes:
        _check_deletes(commit)
        size += sum(map(len, deletes))
    if size > limits.commit_bytes:
        raise LimitReached(f"the commit has {size} bytes; the limit is {limits.commit_bytes}")


def _check_deletes(commit: Commit) -> None:
    deletes = set(commit.deletes)
    if not deletes <= commit.expected_versions.keys() or not deletes.isdisjoint(commit.puts):
        key = next(key for key in commit.deletes if key not in commit.expected_versions or key in commit.puts)
        raise Invalid(f"{key!r} is deleted without an expected version, or also put")
    if len(deletes) != len(commit.deletes):
        raise Invalid("the commit deletes a key twice")


def check_texts(texts: Collection[str], limits: Limits) -> None:
    """Refuse keys or index keys that some store cannot keep; plain ASCII ones are checked in one step."""
    joined = "".join(texts)
    plain = joined.isascii() and "\0" not in joined and "" not in texts
    if not plain or max(map(len, texts), default=0) > limits.key_bytes:
        for text in texts:
            check_text(text, limits)


def check_text(text: str, limits: Limits) -> None:
    """Refuse a key or index key that some store cannot keep."""
    if not text or "\0" in text:
        raise Invalid(f"{text!r} cannot be a key or an index key")
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError as error:
        raise Invalid(f"{text!r} is not valid Unicode") from error
    if size > limits.key_bytes:
        raise Invalid(f"{text[:40]!r}… has {size} bytes; the limit is {limits.key_bytes}")


def in_order(records: Iterable[Record], by: By) -> list[Record]:
    """Return the records of a range in byte order, which for UTF-8 is the order of code points."""
    if by == "index_key":
        return sorted(records, key=lambda record: (record.index_key, record.key))
    return sorted(records, key=lambda record: record.key)


def prefix_end(prefix: str) -> str | None:
    """Return the least string above every string with this prefix, or None if there is none.

    >>> prefix_end("due/")
    'due0'
    """
    for last in range(len(prefix) - 1, -1, -1):
        point = ord(prefix[last])
        if point < 0x10FFFF:
            above = 0xE000 if point == 0xD7FF else point + 1
            return prefix[:last] + chr(above)
    return None
