"""The log shape: a store that can only append at an offset and read what came after.

Records are a `Fold` kept in memory. To commit: catch up, check, append at head + 1. If another process
took that offset first, catch up and look again: the commit goes in behind it if nothing it expects has
changed, and is a `Conflict` otherwise, or if that goes on too long. A subclass gives `_append` and
`_entries`; one that is shared also `_catch_up`, and it may hold a lock of its own (`_exclusive`) and keep
large values elsewhere (`_filled`).
"""

import threading
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import chain, islice

from coord.core.errors import Conflict, Trimmed, Unavailable
from coord.core.ranges import Range
from coord.stores.contract import Commit, Entry, Head, Limits, Loaded, RangeReader, Record, check_commit
from coord.stores.log.sole_writer import Burst
from coord.stores.log.state import Fold

TRIES = 32
"""So often a commit is tried while others come first; then its engine sees whether somebody still waits."""


class LogStore(RangeReader):
    """Everything of the contract that follows from `_append` and `_entries`."""

    limits: Limits
    _foresees = False
    """Whether `_append` asks a server, which refuses an offset that is taken: nobody has to look before."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._fold = Fold()
        self._closed = False
        self._burst = Burst()

    # What a subclass gives.

    def _append(self, offset: int, commit: Commit) -> Commit | None:
        """Make the entry durable; return the commit as the fold keeps it, or None if the offset is taken."""
        raise AssertionError("each log store appends in its own way")

    def _entries(self, after: int, limit: int) -> list[Entry]:
        """Return entries after the offset, in order."""
        raise AssertionError("each log store reads in its own way")

    def _catch_up(self) -> None:
        """Fold in what others have appended."""

    def _exclusive(self) -> AbstractContextManager[None]:
        """Keep others from appending, where that can be had; `_append` does not rest on it."""
        return nullcontext()

    def _filled(self, records: list[Record]) -> list[Record] | None:
        """Return the records with their values at hand; None if the fold moved on meanwhile: look again."""
        return records

    def _forget(self, floor: int) -> None:
        """Remove what the log keeps below the floor; from now on it may be gone."""

    def _committed(self, offset: int) -> None:
        """Wake who waits, and do what may be done now that the commit is durable."""

    # The contract.

    @property
    def seen(self) -> Head:
        return Head(self._fold.offset, self._fold.at)

    def load(self, keys: Iterable[str], ranges: Sequence[Range] = (), *, allow_stale: bool = False) -> Loaded:
        keys = list(keys)
        with self._lock:
            stale = allow_stale and not (ranges or self._closed) and self._burst.goes_on(self.seen.offset)
            while True:
                if not stale:
                    self._fresh()
                parts = [self._fold.get_all(keys), *map(self._fold.scan, ranges)]
                filled = self._filled(list(chain.from_iterable(parts)))
                if filled is not None:
                    rest = iter(filled)
                    found, *scanned = [list(islice(rest, len(part))) for part in parts]
                    records = zip(keys, found, strict=True)
                    return Loaded(records, self._fold.read_point, scanned, maybe_stale=stale)

    def commit(self, commit: Commit) -> int:
        check_commit(commit, self.limits)
        with self._lock:
            if not commit.writes:
                self._check(commit)
                return self._fold.offset
            self._refuse_if_closed()  # before the lock: a closed one's number may belong to another file now
            with self._exclusive():
                for _ in range(1 if commit.maybe_stale else TRIES):
                    self._check(commit)
                    offset = self._fold.offset + 1
                    kept = self._append(offset, commit)
                    if kept is not None:
                        break
                else:
                    raise Conflict(
                        self._fold.changed(commit) if commit.maybe_stale else commit.expected_versions
                    )
                self._fold.apply(offset, kept)
                if self._foresees:
                    self._burst.commit(offset)
        self._committed(offset)
        return offset

    def _check(self, commit: Commit) -> None:
        self._refuse_if_closed()
        if self._foresees and commit.writes and not self._fold.changed(commit):
            return
        self._catch_up()
        changed = self._fold.changed(commit)
        if changed or (commit.maybe_stale and commit.read_point.offset != self._fold.offset):
            raise Conflict(changed)

    def tail(self, after: int, limit: int) -> list[Entry]:
        with self._lock:
            self._fresh()
            if after + 1 < self._fold.floor:
                raise Trimmed(self._fold.floor)
            return self._entries(after, limit)

    def trim(self, before: int) -> None:
        with self._lock:
            self._refuse_if_closed()
            self._trim(before)

    def _trim(self, before: int) -> None:
        with self._exclusive():
            self._fresh()
            floor = max(self._fold.floor, min(before, self._fold.offset))
            self._forget(floor)
            self._fold.trim(floor)

    def close(self) -> None:
        with self._lock:
            self._closed = True

    def _fresh(self) -> None:
        self._refuse_if_closed()
        self._catch_up()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise Unavailable("the store is closed")
