"""The contract that every store keeps; `tests/contract/` proves it clause by clause.

A store holds, for one tenant, *records* and one *log*. A record is a key with a value, a version, and
perhaps one place in an ordered *line* (its turn, or its deadline). The log is the sequence of commits.

- **One commit, one entry, one order.** `commit` applies all of a `Commit` or nothing. It succeeds if and
  only if every expected version is current; then its offset is head + 1, without gaps, and every put and
  every tombstone has that offset as its version. It is durable when `commit` returns (if
  `limits.durable`), and its entry is in `tail`. Every key that is put or deleted must also be expected.
- **A commit that writes nothing** appends nothing; it verifies its expectations and returns the head, so
  that refusals are as linearizable as grants.
- **Absence has a version.** A deleted key reads as `value=None` with the offset of its deletion; a key
  never seen, or whose tombstone was trimmed, reads with the store's *floor*. So absent, created, deleted
  again is noticed (no ABA), and versions of one key never fall.
- **Errors say whether it happened.** `Conflict` and `Unavailable`: nothing happened. A store may also call it
  a conflict of all keys if others keep coming first. `Unknown`: perhaps.
  `Invalid` and `LimitReached`: the commit is malformed or too large, nothing happened. `Corrupt`: what is
  stored is damaged; it is never skipped. `Unsupported`: written by a newer version. Nothing else is raised.
- **No retries inside.** A lost connection is opened anew by the next call; the engine decides what to repeat.
- `load` gives the newest committed state of every key and of every range, all as of one moment that is not
  older than any commit finished before the call; it says which, and a commit may bring it back (`as_of`). A
  `hasty` load may be of an older moment, if it says so: whoever decides on it has to commit, and learns it
  there.
- A range gives live records by key or by line, in byte order (lines tie by key), strictly after the given
  place; `scan` is a load of one. It is *not* guarded against phantoms: a decision that rests on absence over
  a range must also expect a record that every such writer puts.
- `tail` gives entries after an offset, in order; who saw offset n never later sees a new entry <= n. It
  raises `Trimmed` when entries after the given offset are forgotten.
- `wait` is a hint: it may return early for nothing, and never sleeps longer than told.
- `trim` forgets entries and tombstones below an offset and raises the floor to it; never records.
- `now` is the store's clock in milliseconds; `seen` is the newest offset this store object has met and the
  time in its entry.

Stores are synchronous on purpose: one committer owns a store at a time, async callers await futures.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from coord.core.errors import Invalid, LimitReached
from coord.core.ranges import By, Range

FORMAT = 1
"""The layout of what stores write; another major number is refused at open."""

RECORD_BYTES = 256 * 1024
KEY_BYTES = 700


class Record(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One key as of some offset; `value` is None where the key is absent."""

    key: str
    version: int
    value: bytes | None
    index_key: str = ""


class Put(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A new value for a key, and its place in line ("" for none)."""

    value: bytes
    index_key: str = ""


class AsOf(NamedTuple):
    """The moment of a load: the head of the log, its floor, and through what they were seen.

    A server may lose commits, and give their offsets away again; but not within one connection.
    """

    offset: int
    floor: int
    through: int = 0


NO_MOMENT = AsOf(-1, -1, -1)
"""Of several moments, or of none that is known."""


class Loaded(dict[str, Record]):
    """What a load gave: a record for every key that was asked for and those of the ranges, of one moment.

    Of the newest one, unless it is `hasty`: then nobody has looked whether there is a newer one.
    """

    __slots__ = ("as_of", "hasty", "ranges")

    def __init__(
        self,
        records: Iterable[tuple[str, Record]] | dict[str, Record],
        as_of: AsOf,
        ranges: Sequence[list[Record]] = (),
        *,
        hasty: bool = False,
    ) -> None:
        super().__init__(records)
        self.as_of = as_of
        self.ranges = ranges
        self.hasty = hasty


class Commit(msgspec.Struct, frozen=True, array_like=True):
    """A change to make whole or not at all. `id` marks it, so that a lost answer can be settled.

    Who gives `as_of` vouches that all it expects was loaded at that moment: while head and floor are the
    same, nothing can have changed, and the store need not look at each expectation. If that load was
    `hasty` and others have committed since, it is a conflict, perhaps of no key: its time may be the past.
    """

    expects: dict[str, int] = {}
    puts: dict[str, Put] = {}
    deletes: list[str] = []
    events: list[bytes] = []
    at: int = 0
    id: bytes = b""
    as_of: AsOf = NO_MOMENT
    hasty: bool = False

    @property
    def writes(self) -> bool:
        """Whether this commit appends an entry."""
        return bool(self.puts or self.deletes or self.events)


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """One commit as the log shows it."""

    offset: int
    at: int
    id: bytes
    events: list[bytes]


class Head(NamedTuple):
    """The newest offset met and the time in its entry (0, 0 for an empty log)."""

    offset: int
    at: int


class Limits(msgspec.Struct, frozen=True):
    """What a store can take and what it promises."""

    commit_bytes: int
    durable: bool
    shared: bool
    record_bytes: int = RECORD_BYTES
    key_bytes: int = KEY_BYTES


class Scans:
    """A scan by itself, for every store."""

    def load(self, keys: Iterable[str], ranges: Sequence[Range] = (), *, hasty: bool = False) -> Loaded:
        raise AssertionError("each store loads in its own way")

    def scan(self, prefix: str, *, by: By, after: Record | None = None, limit: int) -> list[Record]:
        start = ("", "") if after is None else (after.index_key, after.key)
        return self.load((), [Range(prefix, by, limit, start)]).ranges[0]


class Store(Protocol):
    """One tenant's records and log."""

    @property
    def limits(self) -> Limits: ...
    @property
    def seen(self) -> Head: ...
    def load(self, keys: Iterable[str], ranges: Sequence[Range] = (), *, hasty: bool = False) -> Loaded: ...
    def scan(self, prefix: str, *, by: By, after: Record | None = None, limit: int) -> list[Record]: ...
    def commit(self, commit: Commit) -> int: ...
    def tail(self, after: int, limit: int) -> list[Entry]: ...
    def wait(self, after: int, timeout: float) -> bool: ...
    def trim(self, before: int) -> None: ...
    def now(self) -> int: ...
    def close(self) -> None: ...


def check_commit(commit: Commit, limits: Limits) -> None:
    """Refuse a malformed or oversized commit before anything is touched."""
    expects, puts, deletes = commit.expects, commit.puts, set(commit.deletes)
    index_keys = [put.index_key for put in puts.values() if put.index_key]
    check_texts(expects, limits)
    check_texts(index_keys, limits)
    value_sizes = [len(put.value) for put in puts.values()]
    if max(value_sizes, default=0) > limits.record_bytes:
        key, put = next(item for item in puts.items() if len(item[1].value) > limits.record_bytes)
        taken = f"the value of {key!r} has {len(put.value)} bytes"
        raise LimitReached(f"{taken}; the limit is {limits.record_bytes}")
    if not puts.keys() <= expects.keys():
        key = next(key for key in puts if key not in expects)
        raise Invalid(f"{key!r} is written but not expected", hint="load it first and expect its version")
    if not deletes <= expects.keys() or not deletes.isdisjoint(puts):
        key = next(key for key in commit.deletes if key not in expects or key in puts)
        raise Invalid(f"{key!r} is deleted but not expected, or put as well")
    if len(deletes) != len(commit.deletes):
        raise Invalid("a key is deleted twice in one commit")
    texts = sum(map(len, puts)) + sum(map(len, index_keys)) + sum(map(len, commit.deletes))
    size = sum(map(len, commit.events)) + sum(value_sizes) + texts
    if size > limits.commit_bytes:
        raise LimitReached(f"the commit has {size} bytes; the limit is {limits.commit_bytes}")


def check_texts(texts: Collection[str], limits: Limits) -> None:
    """Refuse keys or lines that some store could not keep; the usual ones are passed all at once."""
    joined = "".join(texts)
    usual = joined.isascii() and "\0" not in joined and "" not in texts
    if not usual or max(map(len, texts), default=0) > limits.key_bytes:
        for text in texts:
            check_text(text, limits)


def check_text(text: str, limits: Limits) -> None:
    """Refuse a key or line that some store could not keep."""
    if not text or "\0" in text:
        raise Invalid(f"{text!r} cannot be a key or a line")
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError as error:
        raise Invalid(f"{text!r} is not valid Unicode") from error
    if size > limits.key_bytes:
        raise Invalid(f"{text[:40]!r}… has {size} bytes; the limit is {limits.key_bytes}")


def in_order(records: Iterable[Record], by: By) -> list[Record]:
    """Return records of a range in the order of their bytes, which is that of their letters' numbers."""
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
