"""The Postgres store in the log shape, for a busy hub: the server keeps the log, we fold records.

A commit is one round trip: it is checked against the fold and appended at head + 1, and only if somebody else
has appended in between (or trimmed) is it looked at again. A load is one round trip, too: it brings what was
appended since. Every process holds all records in memory, except large values, which are fetched by key.

    postgresql+log://user@host/database?schema=coord    as the table shape, in a schema of its own
"""

import logging
import threading
from collections.abc import Sequence

from psycopg.types.numeric import Int8

from coord.core.errors import CoordError, Corrupt
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
    """One tenant's log in a Postgres schema."""

    append_is_conditional = True

    def __init__(self, database: "PostgresLogDatabase", tenant: str) -> None:
        super().__init__()
        self._database = database
        self._sql = LogStatements(database.address.schema)
        self._log = TenantLog(database, tenant)
        self._snapshots = Snapshots(self._log, self._sql)
        self._snapshot_writer: threading.Thread | None = None
        self._heard = False
        self._begin_anew()
        self._catch_up()

    @property
    def limits(self) -> Limits:  # type: ignore[override]  # it may change with the connection
        return self._database.limits

    @property
    def seen(self) -> Head:
        return self._log.seen

    # Reading.

    def _begin_anew(self) -> None:
        """Become the newest snapshot; what came after it is still to be folded in."""
        self._connection = self._database.connections
        self._body: bytes | None = None
        while True:
            place, size, floor = self._snapshots.newest()
            if place is None and floor % 2**EPOCH_BITS:
                raise Corrupt("the log was trimmed, but there is no snapshot", hint=RESTORE)
            if place is not None and place.offset + 1 < floor:
                raise Corrupt(f"entry {place.offset + 1} is missing, and no snapshot has it", hint=RESTORE)
            state = LogState(floor, 0, floor) if place is None else self._snapshots.read(place)
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
                self._recognise()
                head = -1
                continue
            if after + 1 < floor and not (rows and rows[0][0] == after + 1):
                self._begin_anew()  # the log was trimmed beneath us
                continue
            self._replay(rows)
            if not rows and head != after:
                raise Corrupt(f"entry {after + 1} is missing", hint=RESTORE)
        if floor > self._state.floor:
            self._state.trim(floor)

    def _recognise(self) -> None:
        """See that the log has the newest entry known here, through a new connection: after a failover, or
        from a copy that was restored, it may have another one in its place."""
        connection, after = self._database.connections, self._state.offset
        _, floor, rows = self._log.read(self._sql.entries, Int8(after - 1), Int8(1))
        for offset, at, body in rows:
            if offset == after and (at, body) != (self._state.at, self._body or body):
                raise Corrupt(
                    f"entry {after} is another than it was", hint="was the store restored? Open it again"
                )
        if after < floor:  # it is gone
            self._begin_anew()
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
        """Catch up after a value was found gone: either a newer commit explains that, or nothing does."""
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
        body = encoded(Body(puts, commit.deletes, index_keys))
        appended, heard = self._appended(
            self._log.id,
            Int8(offset - 1),
            Int8(self._state.floor),
            Int8(commit.at),
            commit.id,
            encoded(commit.events),
            body,
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
        """Append through the connection that the fold rests on; return whether it was, and who listens."""
        try:
            answer = self._database.ask(self._sql.append, *values, committing=True, on=self._connection)
        except Reconnected:
            return False, False
        return answer[0][1], answer[0][2]

    def _large_among(self, keys: list[str]) -> list[str]:
        """Return those keys whose value is a row of its own until now."""
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
        newest = self._snapshots.newest().place
        if floor > self._state.floor and (newest is None or newest.offset + 1 < floor):
            self._snapshots.write(snapshot_of(self._state), patient=True)
        self._database.ask(self._sql.raise_floor, Int8(floor), self._log.id, committing=True)

    # Snapshots.

    def _snapshot_is_due(self, snapshot_delay: int = 1) -> bool:
        entries = self._state.offset - self._base
        return snapshot_is_due(entries, self._bytes_since_base // snapshot_delay, self._base_bytes)

    def _begin_snapshot(self) -> None:
        """Write a snapshot in a thread of its own; the commit has happened, so failing here is no failure."""
        writing = self._snapshot_writer is not None and self._snapshot_writer.is_alive()
        if writing or self._closed or not self._snapshot_is_due():
            return
        try:
            place, size, _ = self._snapshots.newest()
            if place is not None and place.offset > self._base:  # another process was faster
                self._base, self._base_bytes = place.offset, size
                self._bytes_since_base = 0
                return
            snapshot = snapshot_of(self._state)
            self._base, self._bytes_since_base = snapshot.id.offset, 0
            self._snapshot_writer = threading.Thread(
                target=self._write_snapshot, args=(snapshot,), name="coord-snapshot"
            )
            self._snapshot_writer.start()
        except (CoordError, RuntimeError) as error:
            logger.warning("no snapshot of %s could be written: %s", self._database.address.redacted, error)

    def _write_snapshot(self, snapshot: Snapshot) -> None:
        try:
            self._base_bytes = self._snapshots.write(snapshot, patient=False) or self._base_bytes
        except CoordError as error:
            logger.warning("no snapshot of %s could be written: %s", self._database.address.redacted, error)

    def close(self) -> None:
        super().close()
        if self._snapshot_writer is not None and self._snapshot_writer.ident is not None:
            self._snapshot_writer.join()


class PostgresLogDatabase(OpenSchema[PostgresLogStore]):
    """A schema of logs with all its tenants; made by `install`."""

    statements = LogStatements

    def _open_log(self, tenant: str) -> PostgresLogStore:
        return PostgresLogStore(self, tenant)


def install(url: str) -> None:
    """Make schema, tables and functions where they are missing; safe to call again, and at the same time."""
    install_at(Address(url, LogStatements))


def grants(url: str) -> list[str]:
    """Return what an administrator runs so that the store can be installed, and used with few rights."""
    from coord.stores.postgres.grants import granted

    return granted(Address(url, LogStatements))
