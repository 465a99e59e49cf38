"""Migrate the store of a repository to another URL: copy the records with their versions, then move the pin.

1. The new store records which store it is a copy of. A store with other content is refused.
2. The old store is sealed: it rejects later commits, and the error names the new URL.
3. Each tenant is copied and compared. Records keep their versions, because fences are versions. The new log
   continues after the last entry of the old one; earlier entries count as trimmed.
4. The new store records that the copy is complete, and the pin moves.

If the process is killed, the same call continues: it copies again each tenant that was not compared. Until
step 4 the old store is the valid one, and `cancel_migration` reopens it.
"""

import contextlib
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from coord.core.errors import Corrupt, Invalid, NotFound, Refused, Unavailable
from coord.host.store_location import (
    StoreLocation,
    check_pinned,
    check_store_exists,
    move_pin,
    pinned_location,
    store_exists,
)
from coord.sdk.client.open import open_timeout_s
from coord.stores.contract import Record, Store
from coord.stores.database import Database
from coord.stores.local.fair_lock import lock_within
from coord.stores.migration import (
    COPIED_FROM,
    COPYING_FROM,
    EARLIER_IDS,
    MIGRATED_ID,
    MIGRATED_URL,
    MIGRATION_COMPLETE,
    earlier_ids,
)
from coord.stores.open import install, migrator, open_store
from coord.stores.tenants import STORE_ID_PREFIX
from coord.stores.urls import redact

_encode = msgspec.msgpack.Encoder().encode
PAGE_RECORDS = 128
"""A page stays small even if all its records are chunks of large results."""
PAGE_BYTES = 4 * 1024 * 1024

Progress = Callable[[str, int], None]
"""Called after each page with the tenant and the number of its records copied."""


class MigrationReport(msgspec.Struct, frozen=True):
    """Number of migrated records by tenant and kind; `resumed` if an earlier attempt had begun."""

    from_url: str
    to_url: str
    records: dict[str, dict[str, int]]
    migrated: bool
    resumed: bool = False


class Checksum:
    """Counts records by kind and computes a digest of all."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self._digest = hashlib.sha256()

    def add(self, records: list[Record]) -> None:
        """Add records in the order of their keys."""
        self.kinds.update(record.key.partition("/")[0] for record in records)
        for record in records:
            self._digest.update(_encode(record))

    @property
    def value(self) -> tuple[int, str]:
        """Number and digest; equal only if keys, values, versions and index keys are equal."""
        return self.kinds.total(), self._digest.hexdigest()


def migrate(
    to_url: str, *, cwd: str | None = None, dry_run: bool = False, progress: Progress | None = None
) -> MigrationReport:
    """Migrate the store of the repository at `cwd`; with `dry_run` only count the records."""
    location = _pinned_store(cwd)
    with _exclusive(location), contextlib.ExitStack() as opened:
        source = opened.enter_context(contextlib.closing(_open(location.url)))
        check_pinned(location, source.store_id, source.epoch)
        target = _open_target(to_url, dry_run=dry_run)
        if target is not None:
            opened.enter_context(contextlib.closing(target))
            _check_target(source, target)
        if dry_run or target is None:
            return MigrationReport(redact(location.url), redact(to_url), _counts(source), migrated=False)
        return _Migration(location, source, target, progress or (lambda _tenant, _count: None)).run()


def cancel_migration(cwd: str | None = None) -> bool:
    """Reopen the old store unless its copy is complete; return whether it was sealed."""
    location = _pinned_store(cwd)
    with _exclusive(location), contextlib.closing(_open(location.url)) as source:
        check_pinned(location, source.store_id, source.epoch)
        metadata = migrator(source).metadata()
        if MIGRATED_URL not in metadata:
            return False
        if MIGRATION_COMPLETE in metadata:
            raise Refused(
                f"the migration to {metadata[MIGRATED_URL]} is complete and cannot be cancelled",
                hint=f"run coord migrate --to-url {metadata[MIGRATED_URL]} to move the pin of this clone",
            )
        migrator(source).reopen()
        return True


class _Migration:
    """One attempt to migrate."""

    def __init__(
        self, location: StoreLocation, source: Database[Any], target: Database[Any], on_progress: Progress
    ) -> None:
        self._location = location
        self._source, self._target = source, target
        self._from, self._to = migrator(source), migrator(target)
        self._epoch = max(source.epoch, target.epoch)
        self._on_progress = on_progress

    def run(self) -> MigrationReport:
        resumed = COPYING_FROM in self._target.metadata
        if self._target.metadata.get(COPIED_FROM) != self._source.store_id:
            self._to.set_metadata(**{COPYING_FROM: self._source.store_id})
            self._to.set_epoch(self._epoch)
            self._from.seal(_writable(self._target.url), self._target.store_id)
            counts = self._copy()
            self._from.set_metadata(**{MIGRATION_COMPLETE: "yes"})
            own = {
                name: id_ for name, id_ in self._from.metadata().items() if name.startswith(STORE_ID_PREFIX)
            }
            earlier = " ".join((*earlier_ids(self._from.metadata()), self._source.store_id))
            copied = {COPYING_FROM: "", COPIED_FROM: self._source.store_id, EARLIER_IDS: earlier}
            self._to.set_metadata(**{**copied, **own})
        else:
            counts = _counts(self._target)
        location = move_pin(
            self._location,
            url=self._target.url,
            store_id=self._target.store_id,
            epoch=self._epoch,
        )
        return MigrationReport(
            redact(self._location.url), redact(location.url), counts, migrated=True, resumed=resumed
        )

    def _copy(self) -> dict[str, dict[str, int]]:
        heads, arrived = self._from.heads(), self._to.heads()
        for tenant in arrived.keys() - heads.keys():
            self._to.clear(tenant)  # left by an attempt that was cancelled
        counts = {}
        for tenant, head in heads.items():
            whole = (
                self._copy_tenant(tenant)
                if arrived.get(tenant) != head
                else _checksum_of(self._source, tenant)
            )
            if _checksum_of(self._target, tenant).value != whole.value:
                self._to.clear(tenant)
                raise Corrupt(
                    f"the copy of tenant {tenant} differs from the original",
                    hint="try again, or return to the old store with coord migrate --cancel",
                )
            counts[tenant] = dict(whole.kinds)
        if self._from.heads() != heads:
            raise Unavailable("the store changed while it was copied", hint="try again")
        return counts

    def _copy_tenant(self, tenant: str) -> Checksum:
        self._to.clear(tenant)
        log, copied = self._source.log(tenant), Checksum()
        for page in _pages(log):
            self._to.add(tenant, page)
            copied.add(page)
            self._on_progress(tenant, copied.value[0])
        (last,) = log.tail(log.seen.offset - 1, 1)
        self._to.begin(tenant, last)
        return copied


def _pinned_store(cwd: str | None) -> StoreLocation:
    location = pinned_location(os.getcwd() if cwd is None else os.path.abspath(cwd))
    if not location.pinned:
        raise NotFound("this repository has no store yet", hint="run coord init --url URL to create one")
    check_store_exists(location)
    return location


def _open(url: str) -> Database[Any]:
    return open_store(url, migrating=True, timeout=open_timeout_s(os.environ))


def _open_target(to_url: str, *, dry_run: bool) -> Database[Any] | None:
    """Open the new store and create it if needed; in a dry run return None if it does not exist."""
    if to_url.startswith("memory:"):
        raise Invalid("a store in memory keeps no data", hint="pass the URL of another store")
    if not dry_run:
        install(to_url, timeout=open_timeout_s(os.environ))
        return _open(to_url)
    if not store_exists(StoreLocation(to_url, "", None, "", 0, "")):
        return None
    try:
        return _open(to_url)
    except NotFound:  # a server where nothing is installed
        return None


def _check_target(source: Database[Any], target: Database[Any]) -> None:
    metadata, away = migrator(target).metadata(), migrator(source).metadata()
    if target.store_id == source.store_id:
        raise Invalid(f"{redact(target.url)} is the current store", hint="pass the URL of another store")
    if away.get(MIGRATED_ID, target.store_id) != target.store_id:
        raise Refused(
            f"the store is being migrated to {away[MIGRATED_URL]}",
            hint="finish that migration, or run coord migrate --cancel first",
        )
    ours = source.store_id in (metadata.get(COPYING_FROM), metadata.get(COPIED_FROM))
    if MIGRATED_URL in metadata or (not ours and (COPYING_FROM in metadata or migrator(target).heads())):
        raise Refused(f"{redact(target.url)} is not empty", hint="pass the URL of an empty store")


def _pages(log: Store) -> Iterator[list[Record]]:
    """Yield all records in the order of their keys, in pages of about `PAGE_BYTES`."""
    after: Record | None = None
    limit = PAGE_RECORDS
    while page := log.scan("", by="key", after=after, limit=limit):
        yield page
        after = page[-1]
        size = sum(len(record.value or b"") + len(record.key) for record in page) // len(page)
        limit = max(1, min(PAGE_RECORDS, PAGE_BYTES // max(1, size)))


def _checksum_of(database: Database[Any], tenant: str) -> Checksum:
    total = Checksum()
    for page in _pages(database.log(tenant)):
        total.add(page)
    return total


def _counts(database: Database[Any]) -> dict[str, dict[str, int]]:
    return {tenant: dict(_checksum_of(database, tenant).kinds) for tenant in migrator(database).heads()}


def _writable(url: str) -> str:
    """Return a URL in a form that a store may keep and show: without passwords and spaces."""
    return redact(url).replace(" ", "%20")


@contextlib.contextmanager
def _exclusive(location: StoreLocation) -> Iterator[None]:
    """Lock the repository against a second migration."""
    folder = os.open(location.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not lock_within(folder, 0):
            raise Unavailable("another migration of this repository is running", hint="wait until it ends")
        yield
    finally:
        os.close(folder)
