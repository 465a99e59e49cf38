"""Migrating a NATS store: a control message seals each log, and a copy starts with a snapshot."""

from collections.abc import Sequence
from typing import Any

from coord.core.errors import Refused
from coord.stores.contract import Commit, Entry, Record
from coord.stores.migration import MIGRATED_ID, MIGRATED_URL
from coord.stores.nats.entries import ControlMessage, Segment, encode_control, encode_entry, new_token
from coord.stores.nats.jetstream import NatsServer
from coord.stores.nats.meta import change, read_meta, set_epoch
from coord.stores.nats.snapshots import Manifest, Snapshot, Snapshots


class NatsMigrator:
    """The steps of `Migrator`. Added records stay in memory until `begin` writes them as a snapshot."""

    def __init__(self, database: Any) -> None:
        self._database = database
        self._server: NatsServer = database.server
        self._address = database.address
        self._added: dict[str, dict[str, Record]] = {}

    def heads(self) -> dict[str, int]:
        return {tenant: self._database.log(tenant).head() for tenant in self._tenants()}

    def metadata(self) -> dict[str, str]:
        return read_meta(self._server)

    def set_metadata(self, **values: str) -> None:
        change(self._server, values)

    def set_epoch(self, epoch: int) -> None:
        set_epoch(self._server, epoch)

    def seal(self, url: str, store_id: str) -> None:
        change(self._server, {MIGRATED_URL: url, MIGRATED_ID: store_id})  # first: it cannot be opened now
        self._mark_all(url)

    def reopen(self) -> None:
        self._mark_all("")
        change(self._server, {MIGRATED_URL: "", MIGRATED_ID: ""})

    def clear(self, tenant: str) -> None:
        self._added[tenant] = {}
        self._server.delete(self._address.log_stream(tenant))
        Snapshots(self._server, tenant).clear()
        self._create(tenant)

    def add(self, tenant: str, records: Sequence[Record]) -> None:
        self._added[tenant].update({each.key: each for each in records})

    def begin(self, tenant: str, entry: Entry) -> None:
        offset = entry.offset
        control = ControlMessage(b"", new_token(), offset - 1, offset, copied=True)
        token = new_token()
        commit = Commit(events=entry.events, at=entry.at, id=entry.id)
        first = self._put(tenant, encode_control(control), 0)
        if not first or not self._put(tenant, encode_entry(control.token, token, offset, commit), 1):
            raise Refused(f"the log of tenant {tenant} exists already", hint="use another store")
        manifest = Manifest(2, token, offset, entry.at, offset, control, [Segment(offset, 2)], [], 0, 0, 0)
        snapshot = Snapshot(manifest, self._added.pop(tenant), {})
        Snapshots(self._server, tenant).write(snapshot, lambda _: True)

    def _put(self, tenant: str, data: bytes, after: int) -> bool:
        expected = {"Nats-Expected-Last-Sequence": str(after)}
        return self._server.put(self._address.log_subject(tenant), data, expected) is not None

    def _create(self, tenant: str) -> None:
        replicas = int(read_meta(self._server)["replicas"])
        self._server.create(self._address.log_stream(tenant), [self._address.log_subject(tenant)], replicas)

    def _tenants(self) -> list[str]:
        """Return the tenants with a log."""
        found = []
        for stream in self._server.streams(self._address.subject("log", "*")):
            info = self._server.info(stream)
            if info is not None and info.state.last_seq:
                found.append(self._address.tenant_of(stream))
        return found

    def _mark_all(self, url: str) -> None:
        for stream in self._server.streams(self._address.subject("log", "*")):
            self._database.log(self._address.tenant_of(stream)).set_migrated(url)
