"""Migrating a log-structured Postgres store: the copy becomes a snapshot, the start of the new log."""

from collections.abc import Sequence
from typing import Any

from psycopg.types.numeric import Int8

from coord.core.errors import Refused
from coord.stores.contract import Entry, Record
from coord.stores.log.snapshot import INLINE_BYTES, Reference, Snapshot, SnapshotId
from coord.stores.postgres.arrays import Bigints, Blobs, Texts
from coord.stores.postgres.log_entry import NOTHING, encoded
from coord.stores.postgres.log_snapshots import write_snapshot
from coord.stores.postgres.log_statements import LogStatements
from coord.stores.postgres.table_migration import BEGIN, ZERO, PostgresMigrator

DROP = tuple(
    f"DELETE FROM {{schema}}.{table} WHERE log = %s"  # noqa: S608 - constant table names
    for table in ("entry", "value", "snapshot", "chunk")
)
ENTRY = "INSERT INTO {schema}.entry VALUES (%s, %s, %s, %s, %s, %s, %s)"


class PostgresLogMigrator(PostgresMigrator):
    """The steps of `Migrator`. Added records stay in memory until `begin` writes them as a snapshot."""

    def __init__(self, database: Any) -> None:
        super().__init__(database)
        self._statements = LogStatements(database.address.schema)
        self._added: dict[str, dict[str, Record]] = {}

    def clear(self, tenant: str) -> None:
        self._added[tenant] = {}
        with self._transaction() as connection:
            log = connection.execute(self._sql.open_log, (tenant,)).fetchall()[0][1]
            for statement in (ZERO, *DROP):
                connection.execute(self._sql.named(statement), (log,))

    def add(self, tenant: str, records: Sequence[Record]) -> None:
        added = self._added[tenant]
        large = [each for each in records if len(each.value or b"") > INLINE_BYTES]
        for each in records:
            added[each.key] = each
        for each in large:
            added[each.key] = Record(each.key, each.version, Reference(), each.index_key)
        columns = (
            Texts([each.key for each in large]),
            Bigints([each.version for each in large]),
            Blobs([each.value or b"" for each in large]),
        )
        with self._transaction() as connection:
            connection.execute(self._statements.add_values, (*columns, tenant))

    def begin(self, tenant: str, entry: Entry) -> None:
        offset = entry.offset
        snapshot = Snapshot(SnapshotId(offset, offset), entry.at, self._added.pop(tenant), {})
        with self._transaction() as connection:
            begun = connection.execute(self._sql.named(BEGIN), (offset, entry.at, offset, tenant)).fetchall()
            if not begun:
                raise Refused(f"the log of tenant {tenant} exists already", hint="use another store")
            log = begun[0][0]
            write_snapshot(connection, self._statements, log, snapshot)
            events = encoded(entry.events)
            checksum = self._checksums(tenant).entry_digest(entry.at, entry.id, events) + offset
            row = (log, Int8(offset), Int8(checksum), Int8(entry.at), entry.id, events)
            connection.execute(self._sql.named(ENTRY), (*row, NOTHING))
