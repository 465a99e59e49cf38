"""The commands of one commit: what was loaded, what they have written so far, and what each of them read.

Commands run in order, and each sees what the earlier ones of its batch wrote. The commit expects the version
of everything that was read. On a conflict only the commands that read a changed key run again, and those that
read what these had written; the others keep their replies.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from coord.core.identity import Evidence, Process
from coord.core.ranges import By, Range
from coord.core.records import Stored, decode, encode
from coord.core.transaction import GONE, Found, NextBatch, ReadNeeded, Transaction, Written
from coord.engine.overlay import CachedRange, Completed, OwnKeys, WriteIndex
from coord.engine.pending import PendingCommand
from coord.stores.contract import NO_READ_POINT, Commit, Put, Record, Store

AnyStored = TypeVar("AnyStored", bound=Stored)
RANGES_AT_ONCE = 200
SPARE_RECORDS = 64
"""How many more records a scan reads than asked for, once writes of the batch have hidden some."""
SORTED_WRITES_MIN = 64
"""From how many writes of one rule on its scans look them up in order."""
Beginning = tuple[str, By, tuple[str, str]]
"""The start of a range: its prefix, its order, and the entry that it follows."""


class LoadFailed(Exception):
    """The store failed while a rule ran: this fails the batch, not the command alone."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class Batch:
    """The reads and writes of the commands of one commit, over the store."""

    def __init__(self, store: Store, probe: Callable[[Process], Evidence], batch_size: int = 1) -> None:
        self.batch_size = batch_size
        self._store = store
        self._probe = probe
        self._evidence: dict[Process, Evidence] = {}
        self._loaded: dict[str, Record] = {}
        self._read_point = NO_READ_POINT
        """The read point of the first load. While nobody commits, later loads are of the same point."""
        self._cached_ranges: dict[Beginning, CachedRange] = {}
        self._spare = 0
        self._written: dict[str, Written] = {}
        self.known: dict[str, Written] = {}
        """Records that the batch wrote, and loaded records that are decoded."""
        self.completed: list[Completed] = []
        self._write_index = WriteIndex(self.completed)
        self._own_keys = OwnKeys({})
        self.size = 0
        self.reads_of_store = 0
        self.one_read_point = True
        """Whether all loads were of one read point: then a reply that changes nothing needs no check."""
        self.maybe_stale = False
        """Whether the first load may be stale: then a reply that changes nothing is verified, too."""
        self.conflicts = 0
        self.loads_at_once = False
        """Whether a rule loads what it needs where it stands: no other command can share the load."""

    # Read by transactions.

    def get(self, key: str, kind: type[AnyStored]) -> AnyStored | None:
        record = self._loaded.get(key)
        if record is None:
            self._need((key,))
            record = self._loaded[key]
        if record.value is None:
            self.known[key] = GONE
            return None
        value = decode(record.value, kind, key)
        self.known[key] = Written(value, b"", "")
        return value

    def prefetch(self, keys: Sequence[str], ranges: Sequence[Range] = ()) -> None:
        if self.not_loaded(keys) or not self._cached_ranges.keys() >= {
            _beginning(range_) for range_ in ranges
        }:
            self._need(keys, ranges)

    def not_loaded(self, keys: Iterable[str]) -> bool:
        return not self._loaded.keys() >= set(keys)

    def version(self, key: str) -> int:
        if key in self._written:
            raise NextBatch
        return self._loaded[key].version

    def evidence(self, processes: Sequence[Process]) -> list[Evidence]:
        if not self._evidence.keys() >= set(processes):
            self._need(processes=processes)
        return [self._evidence[process] for process in processes]

    def scan(self, range_: Range, own: dict[str, Written]) -> list[Found]:
        beginning = _beginning(range_)
        while (cached := self._cached_ranges.get(beginning)) is None or (
            len(positions := cached.seen(range_.limit, self._written, own)) < range_.limit
            and not cached.whole
        ):
            if cached is not None:
                # The store has more in this range than was read of it, or than writes have left: read on.
                del self._cached_ranges[beginning]
                self._spare = max(self._spare, len(self._written) + len(own) + SPARE_RECORDS)
            self._need(ranges=(range_,))
        by_index_key, start = range_.by == "index_key", _start(range_)
        read = len(positions)
        positions += self._write_index.within(range_, start, self._written, own)
        for key in self._written_by_rule(range_, own):
            item = own[key]
            at = (item.index_key, key) if by_index_key else (key, "")
            within = at[0].startswith(range_.prefix) and (not by_index_key or item.index_key)
            if item.value is not None and within and at > start:
                positions.append((key, item.index_key))
        if len(positions) > read:  # else they are in order, as the store has them
            positions.sort(key=lambda at: (at[1], at[0]) if by_index_key else (at[0], ""))
        return [Found(*at) for at in positions[: range_.limit]]

    def _written_by_rule(self, range_: Range, own: dict[str, Written]) -> Iterable[str]:
        """Return the keys of a rule's own writes that may be in a range; a long list of them is sorted."""
        if range_.by == "index_key" or len(own) < SORTED_WRITES_MIN:
            return own
        if self._own_keys.own is not own:
            self._own_keys = OwnKeys(own)
        return self._own_keys.within(range_.prefix)

    def _need(
        self, keys: Sequence[str] = (), ranges: Sequence[Range] = (), processes: Sequence[Process] = ()
    ) -> None:
        """Load what a rule needs now, or suspend the rule if other commands may need reads, too.

        The rule is pure: it goes on as it would if it ran again with everything loaded.
        """
        if not self.loads_at_once:
            raise ReadNeeded(keys, ranges, processes)
        try:
            self.load(set(keys), ranges, processes)
        except Exception as error:
            raise LoadFailed(error) from error

    # Called by the engine.

    def load(self, keys: set[str], ranges: Iterable[Range] = (), processes: Iterable[Process] = ()) -> None:
        """Load what transactions needed and did not find."""
        for process in processes:
            if process not in self._evidence:
                self._evidence[process] = self._probe(process)
        missing = keys.difference(self._loaded)
        more = len(self._written) + self._spare
        unread = {
            _beginning(range_): range_._replace(limit=range_.limit + more)
            for range_ in ranges
            if _beginning(range_) not in self._cached_ranges
        }
        while missing or unread:
            at_once = [unread.pop(beginning) for beginning in [*unread][:RANGES_AT_ONCE]]
            self._read(missing, at_once)
            missing = set()

    def _read(self, keys: set[str], ranges: list[Range]) -> None:
        found = self._store.load(keys, ranges, allow_stale=True)  # the commit verifies it
        if not self.reads_of_store:
            self._read_point, self.maybe_stale = found.read_point, found.maybe_stale
        elif found.maybe_stale or found.read_point != self._read_point:
            self.one_read_point = False
        self.reads_of_store += 1
        self._loaded.update(found)
        for range_, records in zip(ranges, found.ranges, strict=True):
            self._cached_ranges[_beginning(range_)] = CachedRange(records, whole=len(records) < range_.limit)
            for record in records:
                self._loaded.setdefault(record.key, record)

    def accept(self, job: PendingCommand, tx: Transaction) -> None:
        """Add a command that ran to the batch."""
        self._written.update(tx.writes)
        self.known.update(tx.writes)
        self.completed.append((job, tx))
        self.size += tx.size

    def accept_failure(self, job: PendingCommand, tx: Transaction) -> None:
        """Add a command that failed: it writes nothing, and its error counts only if its reads are verified.

        Reads of one command may come from several read points; only the commit shows that they are
        consistent. A rule that saw an inconsistent mix may fail for that reason alone, and then runs again.
        """
        tx.withdraw()
        self.accept(job, tx)

    def deadline(self) -> float:
        """Return the latest deadline of the callers."""
        return max((job.deadline for job, _ in self.completed), default=0.0)

    def load_unread(self) -> None:
        """Load records that were written without being read: the commit expects their versions, too."""
        if not self._written.keys() <= self._loaded.keys():
            self.load(self._written.keys() - self._loaded.keys())

    def commit(self, at: int, commit_id: bytes) -> Commit:
        """Return the batch as one commit."""
        loaded = self._loaded
        reads = set(self._written).union(*[tx.reads for _, tx in self.completed])
        expected_versions = {key: loaded[key].version for key in reads}
        written = self._written.items()
        puts = {
            key: Put(item.data or encode(item.value), item.index_key)
            for key, item in written
            if item.value is not None
        }
        deletes = [key for key, item in written if item.value is None and loaded[key].value is not None]
        events = [event for _, tx in self.completed for event in tx.events]
        return Commit(
            expected_versions,
            puts,
            deletes,
            events,
            at,
            commit_id,
            self._read_point,
            self.maybe_stale and not self.conflicts,
        )

    def forget(self, changed: Iterable[str]) -> list[PendingCommand]:
        """Drop what depends on changed keys; return the commands that have to run again."""
        self.conflicts += 1
        tainted = set(changed)
        for key in tainted:
            self._loaded.pop(key, None)
            self.known.pop(key, None)
        self._cached_ranges.clear()
        again: list[PendingCommand] = []
        kept: list[Completed] = []
        unwritten = False
        for job, tx in self.completed:
            # A scan depends on every write before it: a dropped write may have added or hidden a record.
            stale_scan = tx.scanned and unwritten
            if tainted.isdisjoint(tx.reads) and tainted.isdisjoint(tx.writes) and not stale_scan:
                kept.append((job, tx))
            else:
                again.append(job)
                tainted.update(tx.writes)
                unwritten = unwritten or bool(tx.writes)
        self.start_over()
        for job, tx in kept:
            self.accept(job, tx)
        return again

    def start_over(self) -> list[PendingCommand]:
        """Drop every result and keep what was loaded; return the commands."""
        dropped, self.completed = self.completed, []
        for key in self._written:
            self.known.pop(key, None)
        self._written = {}
        self._write_index = WriteIndex(self.completed)
        for cached in self._cached_ranges.values():
            cached.first = 0
        self.size = 0
        return [job for job, _ in dropped]


def _beginning(range_: Range) -> Beginning:
    """Return the start of a range: scans that differ only in their limit share one read of the store."""
    return range_.prefix, range_.by, range_.after


def _start(range_: Range) -> tuple[str, str]:
    """Return the start of a range as an entry to compare with."""
    index_key, key = range_.after
    if not key:
        return ("", "")
    return (index_key, key) if range_.by == "index_key" else (key, "")
