"""Migrating a MySQL store, with the rights of its owner. A flag in the row of every log seals it."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import msgspec

from coord.core.errors import Refused
from coord.stores.checksums import Checksums
from coord.stores.contract import Entry, Record
from coord.stores.migration import MIGRATED_ID, MIGRATED_URL
from coord.stores.mysql.statements import Statements, quoted

# Opening a new log takes this lock too: the log exists before and is sealed, or is created sealed.
LOCK = "SELECT value FROM {meta} WHERE name = 'epoch' FOR UPDATE"
SEAL = "UPDATE {log} SET sealed = 1"
REOPEN = "UPDATE {log} SET sealed = 0"
HEADS = "SELECT tenant, head FROM {log} WHERE (head & 1099511627775) <> 0 ORDER BY tenant"
# The low 40 bits are 0 in a log without entries, whatever its epoch.
SET_METADATA = "INSERT INTO {meta} VALUES ('%b', '%b') ON DUPLICATE KEY UPDATE value = VALUES(value)"
DROP_METADATA = "DELETE FROM {meta} WHERE name = '%b'"
ZERO = """
UPDATE {log} SET head = 0, at = 0, floor = 0, records = 0, indexed = 0, digest = 0, key_sum = 0 WHERE id = %d
"""
DROP_RECORDS = "DELETE FROM {record} WHERE log = %d"
DROP_ENTRIES = "DELETE FROM {entry} WHERE log = %d"
ADD = "INSERT INTO {record} (log, `key`, version, checksum, value, index_key) VALUES "
ADD_BYTES = 1024 * 1024
BEGIN = "UPDATE {log} SET head = %d, at = %d, floor = %d WHERE id = %d AND head = 0; SELECT ROW_COUNT()"
ENTRY = "INSERT INTO {entry} VALUES (%d, %d, %d, %d, '%b', '%b')"
COUNT = """
UPDATE {log} l, ({found_totals}) t SET l.records = t.records, l.indexed = t.indexed, l.digest = t.digest,
    l.key_sum = t.key_sum WHERE l.id = %d
"""

_events_encode = msgspec.msgpack.Encoder().encode


class MysqlMigrator:
    """The steps of `Migrator`."""

    def __init__(self, database: Any) -> None:
        self._database = database
        self._sql: Statements = database.address.sql

    def heads(self) -> dict[str, int]:
        with self._transaction() as session:
            (rows,) = session.ask(self._sql.named(HEADS))
            return {tenant.decode(): head for tenant, head in rows}

    def metadata(self) -> dict[str, str]:
        metadata: dict[str, str] = self._database.current_metadata()
        return metadata

    def set_metadata(self, **values: str) -> None:
        with self._transaction() as session:
            self._set_metadata(session, values)

    def set_epoch(self, epoch: int) -> None:
        self.set_metadata(epoch=str(epoch))

    def seal(self, url: str, store_id: str) -> None:
        with self._transaction() as session:
            self._set_metadata(session, {MIGRATED_URL: url, MIGRATED_ID: store_id})
            session.ask(self._sql.named(SEAL))

    def reopen(self) -> None:
        with self._transaction() as session:
            self._set_metadata(session, {MIGRATED_URL: "", MIGRATED_ID: ""})
            session.ask(self._sql.named(REOPEN))

    def clear(self, tenant: str) -> None:
        log = self._database.open_log(tenant)
        with self._transaction() as session:
            for statement in (ZERO, DROP_RECORDS, DROP_ENTRIES):
                session.ask(self._sql.named(statement) % log)

    def add(self, tenant: str, records: Sequence[Record]) -> None:
        log = self._database.open_log(tenant)
        with self._transaction() as session:
            for rows in _portions(log, records, self._checksums(tenant)):
                session.ask(self._sql.named(ADD) + b",".join(rows))

    def begin(self, tenant: str, entry: Entry) -> None:
        log = self._database.open_log(tenant)
        events = _events_encode(entry.events)
        checksums = self._checksums(tenant)
        checksum = checksums.entry_digest(entry.at, entry.id, events) + entry.offset
        with self._transaction() as session:
            begin = self._sql.named(BEGIN) % (entry.offset, entry.at, entry.offset, log)
            if session.ask(begin)[1] != ((1,),):
                raise Refused(f"the log of tenant {tenant} exists already", hint="use another store")
            id_ = entry.id.replace(b"'", b"''")
            row = (log, entry.offset, checksum, entry.at, id_, events.replace(b"'", b"''"))
            session.ask(self._sql.named(ENTRY) % row)
            session.ask(self._sql.seeded(COUNT, checksums.seed_text) % (log, log))

    def _checksums(self, tenant: str) -> Checksums:
        return Checksums(self._database.store_id, tenant, self._database.address.redacted)

    def _set_metadata(self, session: Any, values: dict[str, str]) -> None:
        for name, value in values.items():
            if value:
                session.ask(self._sql.named(SET_METADATA) % (quoted(name), quoted(value)))
            else:
                session.ask(self._sql.named(DROP_METADATA) % quoted(name))

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        """Run one transaction in a separate session, which rolls it back if it fails."""
        with closing(self._database.address.connect()) as session:
            session.ask(b"START TRANSACTION")
            session.ask(self._sql.named(LOCK))
            yield session
            session.ask(b"COMMIT", commits=1)


def _portions(log: int, records: Sequence[Record], checksums: Checksums) -> Iterator[list[bytes]]:
    """Yield the rows of records in portions that fit into a packet."""
    rows: list[bytes] = []
    size = 0
    for record in records:
        key, version, value, index_key = record.key, record.version, record.value or b"", record.index_key
        checksum = checksums.digest(key, value, index_key) + version
        value = value.replace(b"'", b"''")
        rows.append(
            b"(%d,'%b',%d,%d,'%b','%b')" % (log, quoted(key), version, checksum, value, quoted(index_key))
        )
        size += len(rows[-1])
        if size > ADD_BYTES:
            yield rows
            rows, size = [], 0
    if rows:
        yield rows
