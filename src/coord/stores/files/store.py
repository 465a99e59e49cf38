"""The files store (log-structured): a folder on one machine, any number of processes, nothing to install.

A commit is one file, made durable and then linked to the name of its offset. `link` never replaces a name,
so an offset is used once. A commit costs two syncs: the data of the file before the link, the folder after.
An entry is durable before any process returns it (see lock.py), and a large value before its entry.

    format                   the format, the store's id and epoch, see root.py
    fair.lock                the fair lock between processes
    tenants/<tenant>/        see folder.py
"""

import contextlib
import logging
import os
import threading
from contextlib import AbstractContextManager
from pathlib import Path

from coord.core.errors import CoordError, Corrupt, Trimmed, Unavailable
from coord.stores.contract import Commit, Entry, Limits, Record
from coord.stores.database import Database
from coord.stores.files.folder import TenantFolder
from coord.stores.files.io import FileLayer
from coord.stores.files.lock import NO_WATERMARK, WAIT_S, Watermark
from coord.stores.files.log import EntryLog, encode_entry
from coord.stores.files.root import RootFolder
from coord.stores.files.snapshots import Snapshots
from coord.stores.files.values import LargeValues, split_large
from coord.stores.health import Check
from coord.stores.local.clock import host_now_ms
from coord.stores.local.fair_lock import FairLock
from coord.stores.local.wakeup import Wakeup
from coord.stores.log.snapshot import Reference, Snapshot, SnapshotId, snapshot_is_due, snapshot_of
from coord.stores.log.state import LogState
from coord.stores.log.store import LogStore

TIMEOUT_S = 10.0

logger = logging.getLogger(__name__)


class FilesStore(LogStore):
    """One tenant's log in a folder."""

    limits = Limits(commit_bytes=8 * 1024 * 1024, durable=True, shared=True)

    def __init__(self, folder: TenantFolder, wakeup: Wakeup, base: int = 0) -> None:
        super().__init__()
        self._first = SnapshotId(base, base)
        self._wakeup = wakeup
        self._folder = folder
        self._errors = folder.errors
        self._lock_file = folder.lock
        self._log = EntryLog(folder)
        self._snapshots = Snapshots(folder)
        self._values = LargeValues(folder)
        self._durable = base
        self._base = self._first
        self._base_bytes = 0
        self._bytes_since_base = 0
        self._snapshot_writer: threading.Thread | None = None
        try:
            with self._errors:
                self._load()
                self._catch_up()
                self._repair()
        except BaseException:
            self.close()
            raise

    # Reading.

    def _catch_up(self) -> None:
        with self._errors:
            self._lock_file.check_present()
            watermark = self._lock_file.watermark() or NO_WATERMARK
            self._replay(self._state)
            if self._state.offset < watermark.head:
                self._load()  # another process trimmed the log
            if self._state.offset > self._durable:
                if (self._lock_file.watermark() or NO_WATERMARK).head < self._state.offset:
                    self._log.sync(self._state.offset)
                self._durable = self._state.offset
            if watermark.floor > self._state.floor:
                self._state.trim(watermark.floor)

    def _replay(self, state: LogState) -> None:
        while (found := self._log.commit(state.offset + 1)) is not None:
            commit, size = found
            state.apply(state.offset + 1, commit)
            self._bytes_since_base += size

    def _load(self) -> None:
        """Load the newest snapshot and replay the entries after it."""
        while True:
            newest = self._snapshots.newest()
            last = max(
                self._log.last(), (self._lock_file.watermark() or NO_WATERMARK).head, self._first.offset
            )
            first = LogState(self._first.offset, 0, self._first.floor)
            state = first if newest is None else self._snapshots.read(newest)
            if state is None:
                continue  # newer snapshots replaced it
            self._secure_floor(state.floor)
            if last < state.offset:
                raise self._missing(last + 1)
            self._set_base(newest or self._first)
            self._replay(state)
            if state.offset >= last:
                self._state = state
                return
            if self._snapshots.newest() == newest:
                raise self._missing(state.offset + 1)

    def _secure_floor(self, floor: int) -> None:
        """Sync the snapshot that raised the floor: its writer may have died before it did so."""
        if (self._lock_file.watermark() or NO_WATERMARK).floor < floor:
            self._snapshots.sync()

    def _missing(self, offset: int) -> CoordError:
        return Corrupt(
            f"{self._log.path(offset)} is missing, but later entries exist",
            hint="restore the folder from a copy; nothing was changed",
        )

    def _entries(self, after: int, limit: int) -> list[Entry]:
        first = max(after + 1, 1)
        entries: list[Entry] = []
        with self._errors:
            for offset in range(first, min(self._state.offset, first + limit - 1) + 1):
                entry = self._log.entry(offset)
                if entry is None:
                    self._catch_up()
                    if offset < self._state.floor:
                        raise Trimmed(self._state.floor)
                    raise self._missing(offset)
                entries.append(entry)
        return entries

    def _filled(self, records: list[Record]) -> list[Record] | None:
        if not any(type(record.value) is Reference for record in records):
            return records
        filled: list[Record] = []
        with self._errors:
            for record in records:
                if isinstance(record.value, Reference):
                    value = self._values.read(record.value)
                    if value is None:
                        self._look_again(record.value)
                        return None
                    filled.append(Record(record.key, record.version, value, record.index_key))
                else:
                    filled.append(record)
        return filled

    def _look_again(self, reference: Reference) -> None:
        """Catch up after a value was missing; unless a newer commit removed it, the store is damaged."""
        offset = self._state.offset
        self._catch_up()
        if self._state.offset == offset:
            raise Corrupt(
                f"{self._values.path(reference)} is missing",
                hint="restore the folder from a copy; nothing was changed",
            )

    def wait(self, after: int, timeout: float) -> bool:
        return self._wakeup.wait(lambda: self._head() > after, timeout)

    def _head(self) -> int:
        with self._lock:
            self._fresh()
            return self._state.offset

    def now(self) -> int:
        return host_now_ms()

    # Writing.

    def _exclusive(self) -> AbstractContextManager[None]:
        return self._lock_file.held()

    def _append(self, offset: int, commit: Commit) -> Commit | None:
        kept, values = split_large(commit)
        parts = encode_entry(offset, kept, has_references=bool(values))
        with self._errors:
            if values:
                self._values.write(values)
            if not self._log.append(offset, parts):
                return None
        self._bytes_since_base += sum(map(len, parts))
        with contextlib.suppress(OSError):  # readers sync the entry themselves
            self._lock_file.write(Watermark(offset, self._state.floor))
        return kept

    def _committed(self, offset: int) -> None:
        self._wakeup.notify()
        if self._snapshot_is_due():
            with self._lock:
                self._begin_snapshot()

    def trim(self, before: int) -> None:
        super().trim(before)
        with self._errors:
            with self._lock:
                shards = [] if self._closed else self._log.shards()
            for shard in shards:  # in small steps, so that commits can run in between
                with self._lock:
                    if self._closed:
                        return
                    self._log.remove_below(self._state.floor, shard)

    def _forget(self, floor: int) -> None:
        self._finish_snapshot()
        with self._errors:
            newest = self._snapshots.newest() or SnapshotId(0, 0)
            floor = max(floor, newest.floor)
            if newest.floor < floor:
                dead = {key: version for key, version in self._state.tombstones.items() if version >= floor}
                id_ = SnapshotId(self._state.offset, floor)
                size = self._snapshots.write(
                    Snapshot(id_, self._state.at, self._state.records, dead), TIMEOUT_S
                )
                if size is None:
                    raise Unavailable("another process is still writing a snapshot", hint="try again")
                self._set_base(id_)
            self._secure_floor(newest.floor)
            self._lock_file.write(Watermark(self._state.offset, floor))
            references = (record.value for record in self._state.records.values())
            self._values.keep_only(value for value in references if isinstance(value, Reference))
            self._folder.tidy()

    def _repair(self) -> None:
        """Write a valid watermark, and remove the temporary files of dead processes."""
        untidy = self._folder.layer.names(self._folder.tmp)
        watermark = self._lock_file.watermark()
        # A floor below ours: a trim died before it wrote the watermark.
        outdated = watermark is None or watermark.floor < self._state.floor
        if not untidy and not outdated:
            return
        # A read-only store can still be read, so errors are ignored here.
        with contextlib.suppress(OSError), self._lock_file.held(WAIT_S if outdated else 0):
            self._catch_up()
            self._lock_file.write(Watermark(self._state.offset, self._state.floor))
            self._folder.tidy()

    # Snapshots.

    def _set_base(self, id_: SnapshotId) -> None:
        self._base = id_
        self._base_bytes = self._snapshots.size(id_) if id_.offset else 0
        self._bytes_since_base = 0

    def _snapshot_is_due(self) -> bool:
        entries = self._state.offset - self._base.offset
        return snapshot_is_due(entries, self._bytes_since_base, self._base_bytes)

    def _begin_snapshot(self) -> None:
        """Write a snapshot in a separate thread. The commit is done, so a failure is only logged."""
        writing = self._snapshot_writer is not None and self._snapshot_writer.is_alive()
        if writing or self._closed or not self._snapshot_is_due():
            return
        try:
            state, newest = self._state, self._snapshots.newest() or SnapshotId(0, 0)
            if newest.floor > state.floor:  # a trim died before it wrote the watermark
                self._secure_floor(newest.floor)
                state.trim(newest.floor)
            if newest > self._base:  # another process was faster
                self._set_base(newest)
                return
            snapshot = snapshot_of(state)
            self._base, self._bytes_since_base = snapshot.id, 0
            writer = threading.Thread(target=self._write_snapshot, args=(snapshot,), name="coord-snapshot")
            writer.start()
            self._snapshot_writer = writer
        except (OSError, CoordError, RuntimeError) as error:
            logger.warning("cannot write a snapshot of %s: %s", self._folder.path, error)

    def _write_snapshot(self, snapshot: Snapshot) -> None:
        try:
            self._base_bytes = self._snapshots.write(snapshot, 0) or self._base_bytes
        except (OSError, CoordError) as error:
            logger.warning("cannot write a snapshot of %s: %s", self._folder.path, error)

    def _finish_snapshot(self) -> None:
        if self._snapshot_writer is not None:
            self._snapshot_writer.join()

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            super().close()
        self._finish_snapshot()
        self._log.close()
        self._folder.close()


class FilesDatabase(Database[FilesStore]):
    """A folder with all its tenants; created on first open."""

    def __init__(self, url: str, path: str, layer: FileLayer | None = None) -> None:
        self.layer = layer or FileLayer()
        self.root = RootFolder(self.layer, os.path.realpath(path))
        self._fair_lock = FairLock(f"{self.root.path}/fair.lock")
        self._wakeup = Wakeup(Path(self.root.path))
        super().__init__(url, self.root.format.store_id, self.root.format.epoch)
        self.metadata = self.root.format.metadata

    def _open_log(self, tenant: str) -> FilesStore:
        folder = TenantFolder(self.layer, self.root.folder, self.root.path, tenant)
        return FilesStore(folder, self._wakeup, self.base)

    def fair_lock(self) -> FairLock:
        return self._fair_lock

    def checks(self) -> list[Check]:
        from coord.stores.local.filesystem import disk_check, location_check

        return [
            Check("durability", well=True, text="each commit is synced before it returns"),
            disk_check(self.root.path),
            location_check(self.root.path),
        ]

    def close(self) -> None:
        with self._lock:
            first, self.closed = not self.closed, True
        super().close()
        if first:
            self._fair_lock.close()
            self._wakeup.close()
            self.root.close()
