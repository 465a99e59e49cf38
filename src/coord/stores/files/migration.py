"""Migrating a files store: the copy becomes a snapshot, like the start of a log after a trim."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Protocol

from coord.core.errors import Refused, Unavailable
from coord.stores.contract import Commit, Entry, Put, Record
from coord.stores.files.folder import PARTS, TenantFolder
from coord.stores.files.io import FileErrors, FileLayer
from coord.stores.files.lock import NO_WATERMARK, Watermark
from coord.stores.files.log import SHARD, EntryLog, encode_entry
from coord.stores.files.root import RootFolder
from coord.stores.files.snapshots import Snapshots
from coord.stores.files.values import LargeValues, split_large
from coord.stores.log.snapshot import Snapshot, SnapshotId
from coord.stores.migration import MIGRATED_ID, MIGRATED_URL

TIMEOUT_S = 10.0


class Rooted(Protocol):
    """The open database, as far as a migration needs it."""

    layer: FileLayer
    root: RootFolder


class FilesMigrator:
    """The steps of `Migrator`. Added records stay in memory until `begin` writes them as a snapshot."""

    def __init__(self, database: Rooted) -> None:
        self._layer = database.layer
        self._root = database.root
        self._added: dict[str, dict[str, Record]] = {}

    def heads(self) -> dict[str, int]:
        found = {}
        for tenant in self._tenants():
            with self._opened(tenant) as folder:
                head = max(EntryLog(folder).last(), (folder.lock.watermark() or NO_WATERMARK).head)
                if head or Snapshots(folder).newest():  # without entries: damaged, or a copy before `begin`
                    found[tenant] = head
        return found

    def metadata(self) -> dict[str, str]:
        return self._root.metadata()

    def set_metadata(self, **values: str) -> None:
        self._root.set_metadata(values)

    def set_epoch(self, epoch: int) -> None:
        self._root.set_metadata({}, epoch)

    def seal(self, url: str, store_id: str) -> None:
        self._root.set_metadata({MIGRATED_URL: url, MIGRATED_ID: store_id})  # first: it cannot be opened now
        self._seal_all(url)

    def reopen(self) -> None:
        self._seal_all("")
        self._root.set_metadata({MIGRATED_URL: "", MIGRATED_ID: ""})

    def clear(self, tenant: str) -> None:
        self._added[tenant] = {}
        with self._opened(tenant) as folder, folder.errors, folder.lock.held():
            log = EntryLog(folder)
            folder.lock.write(NO_WATERMARK)
            for shard in log.shards():
                log.remove_below((shard + 1) * SHARD, shard)
            for part in PARTS[1:]:
                with folder.opened(part) as opened:
                    for name in self._layer.names(opened):
                        self._layer.unlink(name, opened)

    def add(self, tenant: str, records: Sequence[Record]) -> None:
        puts = {each.key: Put(each.value or b"", each.index_key) for each in records}
        kept, values = split_large(Commit(puts=puts))
        if values:
            with self._opened(tenant) as folder, folder.errors, folder.lock.held():
                LargeValues(folder).write(values)
        for each in records:
            put = kept.puts[each.key]
            self._added[tenant][each.key] = Record(each.key, each.version, put.value, put.index_key)

    def begin(self, tenant: str, entry: Entry) -> None:
        offset = entry.offset
        snapshot = Snapshot(SnapshotId(offset, offset), entry.at, self._added.pop(tenant), {})
        with self._opened(tenant) as folder, folder.errors, folder.lock.held():
            log, snapshots = EntryLog(folder), Snapshots(folder)
            if log.last() or snapshots.newest():
                raise Refused(f"the log of tenant {tenant} exists already", hint="use another store")
            if snapshots.write(snapshot, TIMEOUT_S) is None:
                raise Unavailable("another process is still writing a snapshot", hint="try again")
            log.make_shard(offset // SHARD)
            log.make_shard((offset + 1) // SHARD)
            commit = Commit(events=entry.events, at=entry.at, id=entry.id)
            log.append(offset, encode_entry(offset, commit, has_references=False))
            log.close()
            folder.lock.write(Watermark(offset, offset))

    def _seal_all(self, url: str) -> None:
        for tenant in self._tenants():
            with self._opened(tenant) as folder, folder.errors, folder.lock.held(migrating=True):
                folder.lock.write((folder.lock.watermark() or NO_WATERMARK)._replace(migrated_to=url))
                folder.lock.sync()

    def _tenants(self) -> list[str]:
        with FileErrors(self._root.path):
            tenants = self._layer.open_folder("tenants", self._root.folder)
            try:
                return sorted(self._layer.names(tenants))
            finally:
                self._layer.close(tenants)

    @contextlib.contextmanager
    def _opened(self, tenant: str) -> Iterator[TenantFolder]:
        with contextlib.closing(
            TenantFolder(self._layer, self._root.folder, self._root.path, tenant)
        ) as folder:
            yield folder
