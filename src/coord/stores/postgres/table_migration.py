"""Migrating a Postgres store, with the rights of its owner. A trigger seals it for everybody."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import msgspec

from coord.core.errors import Refused
from coord.stores.checksums import Checksums, keys_total
from coord.stores.contract import Entry, Record
from coord.stores.migration import MIGRATED_ID, MIGRATED_URL, migrated_message
from coord.stores.postgres.arrays import Bigints, Blobs, Texts
from coord.stores.postgres.table_statements import Statements

# Dropping and creating a trigger waits for running commits, and later commits wait for it.
SEAL = """
CREATE FUNCTION {schema}.refuse_migrated() RETURNS trigger LANGUAGE plpgsql AS $migrated$
BEGIN
    RAISE EXCEPTION '%', (SELECT value FROM {schema}.meta WHERE name = 'migrated_message');
END $migrated$;
CREATE TRIGGER migrated BEFORE INSERT OR UPDATE ON {schema}.log
    FOR EACH ROW EXECUTE FUNCTION {schema}.refuse_migrated();
"""
REOPEN = """
DROP TRIGGER IF EXISTS migrated ON {schema}.log;
DROP FUNCTION IF EXISTS {schema}.refuse_migrated();
"""
HEADS = "SELECT tenant, head FROM {schema}.log WHERE (head & 1099511627775) <> 0 ORDER BY tenant"
# The low 40 bits are 0 in a log without entries, whatever its epoch.
SET_METADATA = (
    "INSERT INTO {schema}.meta VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
DROP_METADATA = "DELETE FROM {schema}.meta WHERE name = %s"
ZERO = """UPDATE {schema}.log SET head = 0, at = 0, floor = 0, records = 0, indexed = 0, digest = 0
WHERE id = %s"""
DROP_RECORDS = "DELETE FROM {schema}.record WHERE log = %s"
DROP_ENTRIES = "DELETE FROM {schema}.entry WHERE log = %s"
ADD = """
INSERT INTO {schema}.record (log, key, version, checksum, value, index_key)
SELECT l.id, p.* FROM {schema}.log l, unnest(%s, %s, %s, %s, %s) p (key, version, checksum, value, index_key)
WHERE l.tenant = %s
"""
BEGIN = """
UPDATE {schema}.log SET head = %s, at = %s, floor = %s WHERE tenant = %s AND head = 0 RETURNING id
"""
ENTRY = "INSERT INTO {schema}.entry VALUES (%s, %s, %s, %s, %s, %s)"
COUNT = """
UPDATE {schema}.log SET (records, indexed, digest) = (
    SELECT count(*), count(*) FILTER (WHERE index_key <> ''), coalesce(sum(checksum - version), 0)
    FROM {schema}.record WHERE log = %s) WHERE id = %s
"""
KEYS = "SELECT {live_keys} FROM {schema}.record WHERE log = %s"
ADD_KEYS = "UPDATE {schema}.log SET digest = digest + %s WHERE id = %s"

_events_encode = msgspec.msgpack.Encoder().encode


class PostgresMigrator:
    """The steps of `Migrator`."""

    def __init__(self, database: Any) -> None:
        self._database = database
        self._sql: Statements = database.address.sql

    def heads(self) -> dict[str, int]:
        with self._transaction() as connection:
            return dict(connection.execute(self._sql.named(HEADS)).fetchall())

    def metadata(self) -> dict[str, str]:
        with self._transaction() as connection:
            return dict(connection.execute(self._sql.meta).fetchall())

    def set_metadata(self, **values: str) -> None:
        with self._transaction() as connection:
            self._set_metadata(connection, values)

    def set_epoch(self, epoch: int) -> None:
        self.set_metadata(epoch=str(epoch))

    def seal(self, url: str, store_id: str) -> None:
        metadata = {MIGRATED_URL: url, MIGRATED_ID: store_id, "migrated_message": migrated_message(url)}
        with self._transaction() as connection:
            connection.execute(self._sql.named(REOPEN), prepare=False)
            self._set_metadata(connection, metadata)
            connection.execute(self._sql.named(SEAL), prepare=False)

    def reopen(self) -> None:
        with self._transaction() as connection:
            connection.execute(self._sql.named(REOPEN), prepare=False)
            self._set_metadata(connection, {MIGRATED_URL: "", MIGRATED_ID: "", "migrated_message": ""})

    def clear(self, tenant: str) -> None:
        with self._transaction() as connection:
            log = connection.execute(self._sql.open_log, (tenant,)).fetchall()[0][1]
            for statement in (ZERO, DROP_RECORDS, DROP_ENTRIES):
                connection.execute(self._sql.named(statement), (log,))

    def add(self, tenant: str, records: Sequence[Record]) -> None:
        digest = self._checksums(tenant).digest
        columns = (
            Texts([each.key for each in records]),
            Bigints([each.version for each in records]),
            Bigints([digest(each.key, each.value, each.index_key) + each.version for each in records]),
            Blobs([each.value or b"" for each in records]),
            Texts([each.index_key for each in records]),
        )
        with self._transaction() as connection:
            connection.execute(self._sql.named(ADD), (*columns, tenant))

    def begin(self, tenant: str, entry: Entry) -> None:
        id_ = (entry.offset, entry.at, entry.offset, tenant)
        with self._transaction() as connection:
            begun = connection.execute(self._sql.named(BEGIN), id_).fetchall()
            if not begun:
                raise Refused(f"the log of tenant {tenant} exists already", hint="use another store")
            log, events = begun[0][0], _events_encode(entry.events)
            checksum = self._checksums(tenant).entry_digest(entry.at, entry.id, events) + entry.offset
            row = (log, entry.offset, checksum, entry.at, entry.id, events)
            connection.execute(self._sql.named(ENTRY), row)
            connection.execute(self._sql.named(COUNT), (log, log))
            ((joined,),) = connection.execute(self._sql.named(KEYS), (log,)).fetchall()
            connection.execute(self._sql.named(ADD_KEYS), (keys_total(joined), log))

    def _checksums(self, tenant: str) -> Checksums:
        return Checksums(self._database.store_id, tenant, self._database.address.redacted)

    def _set_metadata(self, connection: Any, values: dict[str, str]) -> None:
        for name, value in values.items():
            if value:
                connection.execute(self._sql.named(SET_METADATA), (name, value))
            else:
                connection.execute(self._sql.named(DROP_METADATA), (name,))

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        """Run one transaction on a separate connection."""
        database = self._database
        with (
            closing(database.address.connect()) as connection,
            database.using(connection),
            connection.transaction(),
        ):
            yield connection
