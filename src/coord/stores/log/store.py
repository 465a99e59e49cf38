"""A log-structured store: a store that can only append at an offset and read the entries after one.

The records are a `LogState` in memory. To commit, the store catches up, checks the expected versions, and
appends at head + 1. If another process took that offset first, it catches up and checks again: the commit
goes in behind the other one if no expected version changed, and otherwise fails with `Conflict`; so it does
if others keep coming first. A subclass implements `_append` and `_entries`; a shared one also `_catch_up`. It
may hold a lock between processes (`_exclusive`) and keep large values elsewhere (`_filled`).
"""

import threading
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain, islice

from coord.core.errors import Conflict, Trimmed, Unavailable
from coord.core.ranges import Range
from coord.stores.contract import Commit, Entry, Head, Limits, Loaded, RangeReader, Record, check_commit
from coord.stores.log.sole_writer import SoleWriter
from coord.stores.log.state import LogState

TRIES = 32
"""The attempts of a commit while others come first; then the engine checks whether anybody still waits."""


class LogStore(RangeReader):
    """The contract in terms of `_append` and `_entries`."""

    limits: Limits
    append_is_conditional = False
    """Whether the server refuses an append at a taken offset; then a commit need not catch up before."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._state = LogState()
        self._closed = False
        self._sole_writer = SoleWriter()

    # Implemented by subclasses.

    @abstractmethod
    def _append(self, offset: int, commit: Commit) -> Commit | None:
        """Make the entry durable; return the commit as the state keeps it, or None if the offset is taken."""

    @abstractmethod
    def _entries(self, after: int, limit: int) -> list[Entry]:
        """Return entries after the offset, in order."""

    def _catch_up(self) -> None:
        """Apply the entries that others have appended."""

    def _exclusive(self) -> AbstractContextManager[None]:
        """Keep others from appending if possible; `_append` does not depend on it."""
        return nullcontext()

    def _filled(self, records: list[Record]) -> list[Record] | None:
        """Return the records with their values; None if the state changed while reading, then retry."""
        return records

    def _forget(self, floor: int) -> None:
        """Remove the entries below the floor; nobody may need them after this call."""

    def _committed(self, offset: int) -> None:
        """Wake waiters and do deferred work, now that the commit is durable."""

    # The contract.

    @property
    def seen(self) -> Head:
        return Head(self._state.offset, self._state.at)

    def load(self, keys: Iterable[str], ranges: Sequence[Range] = (), *, allow_stale: bool = False) -> Loaded:
        keys = list(keys)
        with self._lock:
            may_skip = allow_stale and not (ranges or self._closed)
            stale = may_skip and self._sole_writer.allows_stale_read(self.seen.offset)
            while True:
                if not stale:
                    self._fresh()
                parts = [self._state.get_all(keys), *map(self._state.scan, ranges)]
                filled = self._filled(list(chain.from_iterable(parts)))
                if filled is not None:
                    rest = iter(filled)
                    found, *scanned = [list(islice(rest, len(part))) for part in parts]
                    records = zip(keys, found, strict=True)
                    return Loaded(records, self._state.read_point, scanned, maybe_stale=stale)

    def commit(self, commit: Commit) -> int:
        check_commit(commit, self.limits)
        with self._lock:
            if not commit.writes:
                self._check(commit)
                return self._state.offset
            self._refuse_if_closed()  # before the lock: its file descriptor may be another file now
            with self._exclusive():
                for _ in range(1 if commit.maybe_stale else TRIES):
                    self._check(commit)
                    offset = self._state.offset + 1
                    kept = self._append(offset, commit)
                    if kept is not None:
                        break
                else:
                    raise Conflict(
                        self._state.changed(commit) if commit.maybe_stale else commit.expected_versions
                    )
                self._state.apply(offset, kept)
                if self.append_is_conditional:
                    self._sole_writer.commit(offset)
        self._committed(offset)
        return offset

    def _check(self, commit: Commit) -> None:
        self._refuse_if_closed()
        if self.append_is_conditional and commit.writes and not self._state.changed(commit):
            return
        self._catch_up()
        changed = self._state.changed(commit)
        if changed or (commit.maybe_stale and commit.read_point.offset != self._state.offset):
            raise Conflict(changed)

    def tail(self, after: int, limit: int) -> list[Entry]:
        with self._lock:
            self._fresh()
            if after + 1 < self._state.floor:
                raise Trimmed(self._state.floor)
            return self._entries(after, limit)

    def trim(self, before: int) -> None:
        with self._lock:
            self._refuse_if_closed()
            self._trim(before)

    def _trim(self, before: int) -> None:
        with self._exclusive():
            self._fresh()
            floor = max(self._state.floor, min(before, self._state.offset))
            self._forget(floor)
            self._state.trim(floor)

    def close(self) -> None:
        with self._lock:
            self._closed = True

    def _fresh(self) -> None:
        self._refuse_if_closed()
        self._catch_up()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed")
