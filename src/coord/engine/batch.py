"""The draft of one batch: what was loaded, what its commands have written so far, and who read what.

Commands are decided in order, each seeing what the earlier ones of its batch wrote. Every read is an
expectation of the commit. On a conflict only the commands that read a changed key are decided again, and
those that read what these had written; the others keep their answers.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from coord.core.identity import Evidence, Process
from coord.core.ranges import By, Range
from coord.core.records import Stored, decode, encode
from coord.core.transaction import GONE, Found, NextBatch, ReadNeeded, Transaction, Written
from coord.engine.pending import PendingCommand
from coord.stores.contract import NO_READ_POINT, Commit, Put, Record, Store

AnyStored = TypeVar("AnyStored", bound=Stored)

RANGES_AT_ONCE = 200
SPARE_RECORDS = 64
"""How many more records than asked for a scan reads once writes of the batch have hidden some."""


Decided = tuple[PendingCommand, Transaction]
"""A command as it was decided: its answer is in the job, its reads and writes are in the view."""

Beginning = tuple[str, By, tuple[str, str]]
"""Where a range begins: its prefix, the order, and after what."""


class Batch:
    """An overlay over the store for the commands of one batch."""

    def __init__(self, store: Store, probe: Callable[[Process], Evidence], batch_size: int = 1) -> None:
        self.batch_size = batch_size
        self._store = store
        self._probe = probe
        self._evidence: dict[Process, Evidence] = {}
        self._loaded: dict[str, Record] = {}
        self._read_point = NO_READ_POINT
        """The moment of the first of them: while it is the newest, all that was read later is of it, too."""
        self._stretches: dict[Beginning, Stretch] = {}
        self._spare = 0
        self._written: dict[str, Written] = {}
        self.known: dict[str, Written] = {}
        """What was written, and what was loaded and has been decoded."""
        self.decided: list[Decided] = []
        self._places = Places(self.decided)
        self.size = 0
        self.reads_of_store = 0
        self.maybe_stale = False
        """Whether the first load may be stale: then an answer that changes nothing is verified, too."""
        self.conflicts = 0

    # What views read.

    def get(self, key: str, kind: type[AnyStored]) -> AnyStored | None:
        record = self._loaded.get(key)
        if record is None:
            raise ReadNeeded((key,))
        if record.value is None:
            self.known[key] = GONE
            return None
        value = decode(record.value, kind, key)
        self.known[key] = Written(value, b"", "")
        return value

    def prefetch(self, keys: Sequence[str], ranges: Sequence[Range] = ()) -> None:
        if self.not_loaded(keys) or not self._stretches.keys() >= {_beginning(range_) for range_ in ranges}:
            raise ReadNeeded(keys, ranges)

    def not_loaded(self, keys: Iterable[str]) -> bool:
        return not self._loaded.keys() >= set(keys)

    def version(self, key: str) -> int:
        if key in self._written:
            raise NextBatch
        return self._loaded[key].version

    def evidence(self, processes: Sequence[Process]) -> list[Evidence]:
        if not self._evidence.keys() >= set(processes):
            raise ReadNeeded(processes=processes)
        return [self._evidence[process] for process in processes]

    def scan(self, range_: Range, own: dict[str, Written]) -> list[Found]:
        stretch = self._stretches.get(_beginning(range_))
        if stretch is None:
            raise ReadNeeded(ranges=(range_,))
        places = stretch.seen(range_.limit, self._written, own)
        if len(places) < range_.limit and not stretch.whole:
            # The store has more in this range than was read of it, or than writes have left: read further.
            del self._stretches[_beginning(range_)]
            self._spare = max(self._spare, len(self._written) + len(own) + SPARE_RECORDS)
            raise ReadNeeded(ranges=(range_,))
        by_index_key, start = range_.by == "index_key", _start(range_)
        read = len(places)
        places += self._places.within(range_, start, self._written, own)
        for key, item in own.items():
            place = (item.index_key, key) if by_index_key else (key, "")
            within = place[0].startswith(range_.prefix) and (not by_index_key or item.index_key)
            if item.value is not None and within and place > start:
                places.append((key, item.index_key))
        if len(places) > read:  # else they are in order, as the store has them
            places.sort(key=lambda place: (place[1], place[0]) if by_index_key else (place[0], ""))
        return [Found(*place) for place in places[: range_.limit]]

    # What the engine does.

    def load(self, keys: set[str], ranges: Iterable[Range] = (), processes: Iterable[Process] = ()) -> None:
        """Bring in what views missed."""
        for process in processes:
            if process not in self._evidence:
                self._evidence[process] = self._probe(process)
        missing = keys.difference(self._loaded)
        more = len(self._written) + self._spare
        unread = {
            _beginning(range_): range_._replace(limit=range_.limit + more)
            for range_ in ranges
            if _beginning(range_) not in self._stretches
        }
        while missing or unread:
            at_once = [unread.pop(beginning) for beginning in [*unread][:RANGES_AT_ONCE]]
            self._read(missing, at_once)
            missing = set()

    def _read(self, keys: set[str], ranges: list[Range]) -> None:
        found = self._store.load(keys, ranges, allow_stale=True)  # the commit looks anyway
        if not self.reads_of_store:
            self._read_point, self.maybe_stale = found.read_point, found.maybe_stale
        self.reads_of_store += 1
        self._loaded.update(found)
        for range_, records in zip(ranges, found.ranges, strict=True):
            self._stretches[_beginning(range_)] = Stretch(records, whole=len(records) < range_.limit)
            for record in records:
                self._loaded.setdefault(record.key, record)

    def accept(self, job: PendingCommand, tx: Transaction) -> None:
        """Take a decided command into the batch."""
        self._written.update(tx.writes)
        self.known.update(tx.writes)
        self.decided.append((job, tx))
        self.size += tx.size

    def accept_failure(self, job: PendingCommand, tx: Transaction) -> None:
        """Take in a command that failed: it writes nothing, and its error stands only if what it read does.

        Reads of one command come from several moments; only the commit shows that they belong together. A
        rule that met a mixture may fail for no other reason, and is then decided again.
        """
        tx.withdraw()
        self.accept(job, tx)

    def deadline(self) -> float:
        """Return until when the most patient caller waits."""
        return max((job.deadline for job, _ in self.decided), default=0.0)

    def load_unread(self) -> None:
        """Bring in what was written without being read: it is expected, too, so its version is needed."""
        if not self._written.keys() <= self._loaded.keys():
            self.load(self._written.keys() - self._loaded.keys())

    def commit(self, at: int, commit_id: bytes) -> Commit:
        """Return the batch as one commit."""
        loaded = self._loaded
        reads = set(self._written).union(*[tx.reads for _, tx in self.decided])
        expected_versions = {key: loaded[key].version for key in reads}
        written = self._written.items()
        puts = {
            key: Put(item.data or encode(item.value), item.index_key)
            for key, item in written
            if item.value is not None
        }
        deletes = [key for key, item in written if item.value is None and loaded[key].value is not None]
        events = [event for _, tx in self.decided for event in tx.events]
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
        """Drop what rests on changed keys; return the commands that have to be decided again."""
        self.conflicts += 1
        tainted = set(changed)
        for key in tainted:
            self._loaded.pop(key, None)
            self.known.pop(key, None)
        self._stretches.clear()
        again: list[PendingCommand] = []
        kept: list[Decided] = []
        unwritten = False
        for job, tx in self.decided:
            # A scan rests on every write before it: the dropped one may have shown a record or hidden one.
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
        """Drop every decision and keep what was loaded; return the commands they were about."""
        dropped, self.decided = self.decided, []
        for key in self._written:
            self.known.pop(key, None)
        self._written = {}
        self._places = Places(self.decided)
        for stretch in self._stretches.values():
            stretch.first = 0
        self.size = 0
        return [job for job, _ in dropped]


def _beginning(range_: Range) -> Beginning:
    """What scans have alike that differ only in how far they go: one reading of the store serves them."""
    return range_.prefix, range_.by, range_.after


def _start(range_: Range) -> tuple[str, str]:
    """Where a range begins, as a place to compare with."""
    index_key, key = range_.after
    if not key:
        return ("", "")
    return (index_key, key) if range_.by == "index_key" else (key, "")


class Stretch:
    """What was read of a range; whatever the batch has written at its beginning is not looked at again."""

    __slots__ = ("first", "records", "whole")

    def __init__(self, records: list[Record], *, whole: bool) -> None:
        self.records = records
        self.whole = whole
        self.first = 0

    def seen(self, limit: int, written: dict[str, Written], own: dict[str, Written]) -> list[tuple[str, str]]:
        """Return the first records that no write hides."""
        records, place = self.records, self.first
        while place < len(records) and records[place].key in written:
            place += 1
        self.first = place
        found: list[tuple[str, str]] = []
        while place < len(records) and len(found) < limit:
            key = records[place].key
            if key not in written and key not in own:
                found.append((key, records[place].index_key))
            place += 1
        return found


class Places:
    """Where the writes of a batch stand, in order: a scan costs what it finds, not what was written."""

    __slots__ = ("_arranged", "_decided", "_index_keys", "_keys")

    def __init__(self, decided: list[Decided]) -> None:
        self._keys: list[tuple[str, str]] = []
        self._index_keys: list[tuple[str, str]] = []
        self._decided = decided
        self._arranged = 0
        """Of how many commands the writes are in order: the others', only when somebody scans."""

    def within(
        self, range_: Range, start: tuple[str, str], written: dict[str, Written], own: dict[str, Written]
    ) -> list[tuple[str, str]]:
        """Return up to as many places as a range asks for."""
        if self._arranged < len(self._decided):
            self._arrange()
        by_index_key = range_.by == "index_key"
        places = self._index_keys if by_index_key else self._keys
        found: list[tuple[str, str]] = []
        at = bisect_left(places, max(start, (range_.prefix, "")))
        while at < len(places) and len(found) < range_.limit and places[at][0].startswith(range_.prefix):
            key = places[at][1] if by_index_key else places[at][0]
            item = written[key]
            stands = item.value is not None and (not by_index_key or item.index_key == places[at][0])
            if stands and key not in own and places[at] != start:
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
        self._keys = _merged(self._keys, keys)
        self._index_keys = _merged(self._index_keys, index_keys)


def _merged(ordered: list[tuple[str, str]], more: list[tuple[str, str]]) -> list[tuple[str, str]]:
    if len(more) > 64:
        return sorted({*ordered, *more})
    for place in more:
        at = bisect_left(ordered, place)
        if at == len(ordered) or ordered[at] != place:
            ordered.insert(at, place)
    return ordered
