"""The log-structured Postgres store, for a busy hub: the server keeps the log, we keep the records.

A commit is one round trip: it is checked against the state in memory and appended at head + 1. It is checked
again only if somebody else appended or trimmed in between. A load is one round trip too: it returns the new
entries. Every process has all records in memory, except large values, which are read by key.

    postgresql+log://user@host/database?schema=coord    like the table-based store, in a separate schema
"""

import logging
import threading
from collections.abc import Sequence

from psycopg.types.numeric import Int8

from coord.core.errors import CoordError, Corrupt
from coord.stores.checksums import sealed
from coord.stores.contract import Commit, Entry, Head, Limits, Record
from coord.stores.database import EPOCH_BITS, Reconnected
from coord.stores.log.snapshot import INLINE_BYTES, Reference, Snapshot, snapshot_is_due, snapshot_of
from coord.stores.log.state import LogState
from coord.stores.log.store import LogStore
from coord.stores.postgres.arrays import Blobs, Texts
from coord.stores.postgres.connection import Address, Row, install_at
from coord.stores.postgres.database import OpenSchema, TenantLog
from coord.stores.postgres.log_entry import Body, commit_of, encoded, with_references
from coord.stores.postgres.log_snapshots import Snapshots
from coord.stores.postgres.log_statements import LogStatements

PAGE = 128
RESTORE = "restore the store from a copy; nothing was changed"

logger = logging.getLogger(__name__)


class PostgresLogStore(LogStore):
    """The log of one tenant in a Postgres schema."""

    append_is_conditional = True

    def __init__(self, database: "PostgresLogDatabase", tenant: str) -> None:
        super().__init__()
        self._database = database
        self._sql = LogStatements(database.address.schema)
        self._log = TenantLog(database, tenant)
        self._snapshots = Snapshots(self._log, self._sql)
        self._snapshot_writer: threading.Thread | None = None
        self._heard = False
        self._reload()
        self._catch_up()

    @property
    def limits(self) -> Limits:  # type: ignore[override]  # it may change with the connection
        return self._database.limits

    @property
    def seen(self) -> Head:
        return self._log.seen

    # Reading.

    def _reload(self) -> None:
        """Load the newest snapshot; the entries after it are not applied yet."""
        self._connection = self._database.connections
        self._body: bytes | None = None
        while True:
            id_, size, floor = self._snapshots.newest()
            if id_ is None and floor % 2**EPOCH_BITS:
                raise Corrupt("the log was trimmed, but there is no snapshot", hint=RESTORE)
            if id_ is not None and id_.offset + 1 < floor:
                raise Corrupt(f"entry {id_.offset + 1} is missing, and no snapshot has it", hint=RESTORE)
            state = LogState(floor, 0, floor) if id_ is None else self._snapshots.read(id_)
            if state is not None:
                break
        self._state = state
        self._base, self._base_bytes, self._bytes_since_base = state.offset, size, 0

    def _catch_up(self) -> None:
        head, floor = -1, 0
        while self._state.offset != head:
            after = self._state.offset
            head, floor, rows = self._log.read(self._sql.entries, Int8(after), Int8(PAGE))
            if self._connection != self._database.connections:
                self._verify_newest()
                head = -1
                continue
            if after + 1 < floor and not (rows and rows[0][0] == after + 1):
                self._reload()  # another process trimmed the log
                continue
            self._replay(rows)
            if not rows and head != after:
                raise Corrupt(f"entry {after + 1} is missing", hint=RESTORE)
        if floor > self._state.floor:
            self._state.trim(floor)

    def _verify_newest(self) -> None:
        """Check through a new connection that the log still has the newest entry known here.

        After a failover or a restored copy, that offset may belong to another entry.
        """
        connection, after = self._database.connections, self._state.offset
        _, floor, rows = self._log.read(self._sql.entries, Int8(after - 1), Int8(1))
        for offset, at, body in rows:
            if offset == after and (at, body) != (self._state.at, self._body or body):
                raise Corrupt(
                    f"entry {after} has changed", hint="if an old copy was restored, open the store again"
                )
        if after < floor:  # it was trimmed
            self._reload()
        self._connection = connection

    def _replay(self, rows: Sequence[Row]) -> None:
        state = self._state
        for offset, at, body in rows:
            if offset != state.offset + 1:
                raise Corrupt(f"entry {state.offset + 1} is missing", hint=RESTORE)
            state.apply(offset, commit_of(offset, at, body))
            self._body = body
            self._bytes_since_base += len(body)

    def _filled(self, records: list[Record]) -> list[Record] | None:
        keys = Texts(record.key for record in records if type(record.value) is Reference)
        if not keys:
            return records
        _, _, rows = self._log.read(self._sql.values, keys)
        values = {(key, offset): value for key, offset, value in rows}
        filled = []
        for record in records:
            value = record.value
            if type(value) is Reference:
                value = values.get((record.key, record.version))
                if value is None:
                    self._look_again(record)
                    return None
            filled.append(Record(record.key, record.version, value, record.index_key))
        return filled

    def _look_again(self, record: Record) -> None:
        """Catch up after a value was missing; unless a newer commit removed it, the store is damaged."""
        offset = self._state.offset
        self._catch_up()
        if self._state.offset == offset:
            raise Corrupt(f"the value of {record.key!r} is missing", hint=RESTORE)

    def tail(self, after: int, limit: int) -> list[Entry]:
        return self._entries(after, limit)  # the answer contains the head: there is no need to catch up

    def _entries(self, after: int, limit: int) -> list[Entry]:
        return self._log.tail(after, limit)

    def wait(self, after: int, timeout: float) -> bool:
        return self._log.wait(after, timeout)

    def now(self) -> int:
        return self._database.clock.now()

    # Writing.

    def _append(self, offset: int, commit: Commit) -> Commit | None:
        large = {key: put for key, put in commit.puts.items() if len(put.value) > INLINE_BYTES}
        puts = {key: put for key, put in commit.puts.items() if key not in large} if large else commit.puts
        index_keys = {key: put.index_key for key, put in large.items()}
        body, events = sealed(encoded(Body(puts, commit.deletes, index_keys))), encoded(commit.events)
        appended, heard = self._appended(
            self._log.id,
            Int8(offset - 1),
            Int8(self._state.floor),
            Int8(commit.at),
            commit.id,
            events,
            body,
            Int8(self._log.checksums.entry_digest(commit.at, commit.id, events)),
            Texts(self._large_among([*puts, *commit.deletes])),
            Texts(large),
            Blobs([put.value for put in large.values()]),
        )
        if not appended:
            self._catch_up()
            return None
        self._bytes_since_base += len(body)
        self._heard, self._body = heard, body
        self._log.see(Head(offset, commit.at))
        return Commit({}, with_references(puts, index_keys), commit.deletes, [], commit.at)

    def _appended(self, *values: object) -> tuple[bool, bool]:
        """Append through the connection of the state; return whether it was appended, and is heard."""
        try:
            answer = self._database.ask(self._sql.append, *values, committing=True, on=self._connection)
        except Reconnected:
            return False, False
        return answer[0][1], answer[0][2]

    def _large_among(self, keys: list[str]) -> list[str]:
        """Return the keys whose current value is in a separate row."""
        found = map(self._state.records.get, keys)
        return [record.key for record in found if record is not None and type(record.value) is Reference]

    def _committed(self, offset: int) -> None:
        if self._heard:
            self._database.notify(self._log.id, offset)
        if self._snapshot_is_due(self._sole_writer.snapshot_delay):
            with self._lock:
                self._begin_snapshot()

    def trim(self, before: int) -> None:
        super().trim(before)
        self._log.forget_below(self._state.floor)

    def _forget(self, floor: int) -> None:
        newest = self._snapshots.newest().id_
        if floor > self._state.floor and (newest is None or newest.offset + 1 < floor):
            self._snapshots.write(snapshot_of(self._state), wait=True)
        self._database.ask(self._sql.raise_floor, Int8(floor), self._log.id, committing=True)

    # Snapshots.

    def _snapshot_is_due(self, snapshot_delay: int = 1) -> bool:
        entries = self._state.offset - self._base
        return snapshot_is_due(entries, self._bytes_since_base // snapshot_delay, self._base_bytes)

    def _begin_snapshot(self) -> None:
        """Write a snapshot in a separate thread. The commit is done, so a failure is only logged."""
        writing = self._snapshot_writer is not None and self._snapshot_writer.is_alive()
        if writing or self._closed or not self._snapshot_is_due():
            return
        try:
            id_, size, _ = self._snapshots.newest()
            if id_ is not None and id_.offset > self._base:  # another process was faster
                self._base, self._base_bytes = id_.offset, size
                self._bytes_since_base = 0
                return
            snapshot = snapshot_of(self._state)
            self._base, self._bytes_since_base = snapshot.id.offset, 0
            writer = threading.Thread(target=self._write_snapshot, args=(snapshot,), name="coord-snapshot")
            writer.start()
            self._snapshot_writer = writer
        except (CoordError, RuntimeError) as error:
            logger.warning("cannot write a snapshot of %s: %s", self._database.address.redacted, error)

    def _write_snapshot(self, snapshot: Snapshot) -> None:
        try:
            self._base_bytes = self._snapshots.write(snapshot, wait=False) or self._base_bytes
        except CoordError as error:
            logger.warning("cannot write a snapshot of %s: %s", self._database.address.redacted, error)

    def close(self) -> None:
        super().close()
        if self._snapshot_writer is not None:
            self._snapshot_writer.join()


class PostgresLogDatabase(OpenSchema[PostgresLogStore]):
    """A log-structured schema with all its tenants; created by `install`."""

    statements = LogStatements

    def _open_log(self, tenant: str) -> PostgresLogStore:
        return PostgresLogStore(self, tenant)


def install(url: str) -> None:
    """Create the schema, tables and functions that are missing; safe to call again, even at the same time."""
    install_at(Address(url, LogStatements))


def grants(url: str) -> list[str]:
    """Return the statements with which an administrator prepares a store that is used with few rights."""
    from coord.stores.postgres.grants import granted

    return granted(Address(url, LogStatements))
