"""Migrating a Redis store: its metadata seals it, because every commit reads the metadata."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import msgspec

from coord.core.errors import Refused
from coord.stores.checksums import Checksums, damaged
from coord.stores.contract import Entry, Record
from coord.stores.migration import MIGRATED_ID, MIGRATED_URL, migrated_message
from coord.stores.redis import scripts
from coord.stores.redis.records import metadata_of, packed

_encode = msgspec.msgpack.Encoder().encode


class RedisMigrator:
    """The steps of `Migrator`."""

    def __init__(self, database: Any) -> None:
        self._address = database.address
        self._store_id = database.store_id

    def heads(self) -> dict[str, int]:
        with self._wire() as wire:
            tenants = sorted(tenant.decode() for tenant in wire.ask("SMEMBERS", self._keys("")[1]))
            found = {tenant: wire.ask("HGET", self._keys(tenant)[2], "head") for tenant in tenants}
        for tenant, head in found.items():
            if head is None:
                raise damaged(f"tenant {tenant} in {self._address.redacted} has lost its head")
        return {tenant: int(head) for tenant, head in found.items()}

    def metadata(self) -> dict[str, str]:
        with self._wire() as wire:
            return metadata_of(wire.ask("HGETALL", self._address.meta))

    def set_metadata(self, **values: str) -> None:
        said = [word for pair in values.items() if pair[1] for word in pair]
        unsaid = [name for name, value in values.items() if not value]
        with self._wire() as wire:
            wire.run(scripts.set_metadata, (self._address.meta,), _encode((said, unsaid)))

    def set_epoch(self, epoch: int) -> None:
        self.set_metadata(epoch=str(epoch))

    def seal(self, url: str, store_id: str) -> None:
        self.set_metadata(
            **{MIGRATED_URL: url, MIGRATED_ID: store_id, "migrated_message": migrated_message(url)}
        )

    def reopen(self) -> None:
        self.set_metadata(**{MIGRATED_URL: "", MIGRATED_ID: "", "migrated_message": ""})

    def clear(self, tenant: str) -> None:
        with self._wire() as wire:
            wire.run(scripts.clear, self._keys(tenant), tenant)

    def add(self, tenant: str, records: Sequence[Record]) -> None:
        sizes, lines, texts = packed(
            self._checksums(tenant), ((each.key, each.version, each) for each in records)
        )
        keys = [each.key for each in records]
        with self._wire() as wire:
            wire.run(scripts.add, self._keys(tenant), _encode((keys, sizes, lines)), texts)

    def begin(self, tenant: str, entry: Entry) -> None:
        events = _encode(entry.events)
        checksum = self._checksums(tenant).entry_digest(entry.at, entry.id, events) + entry.offset
        values = (entry.offset, entry.at, entry.id, events, tenant, checksum)
        with self._wire() as wire:
            if not wire.run(scripts.begin, self._keys(tenant), *values):
                raise Refused(f"the log of tenant {tenant} exists already", hint="use another store")

    def _checksums(self, tenant: str) -> Checksums:
        return Checksums(self._store_id, tenant, self._address.redacted)

    def _keys(self, tenant: str) -> tuple[str, ...]:
        return scripts.keys_of(self._address.prefix, tenant)

    @contextmanager
    def _wire(self) -> Iterator[Any]:
        """Open a separate connection."""
        wire, _ = self._address.connect()
        with closing(wire), wire.using():
            yield wire
