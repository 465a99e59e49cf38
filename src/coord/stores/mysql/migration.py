"""Moving a MySQL store, with the rights of its owner; a mark in every log keeps a moved one shut for all."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import msgspec

from coord.core.errors import Refused
from coord.stores.contract import Entry, Record
from coord.stores.migration import MIGRATED_ID, MIGRATED_URL
from coord.stores.mysql.statements import Statements, quoted

# Whoever opens a new log shares this lock: it is made before, and marked; or after, and knows.
LOCK = "SELECT value FROM {meta} WHERE name = 'epoch' FOR UPDATE"
SHUT = "UPDATE {log} SET shut = 1"
REOPEN = "UPDATE {log} SET shut = 0"
HEADS = "SELECT tenant, head FROM {log} WHERE (head & 1099511627775) <> 0 ORDER BY tenant"
# The low 40 bits: a log of a later epoch that nobody wrote to has not begun either.
SET_NOTE = "INSERT INTO {meta} VALUES ('%b', '%b') ON DUPLICATE KEY UPDATE value = VALUES(value)"
DROP_NOTE = "DELETE FROM {meta} WHERE name = '%b'"
ZERO = "UPDATE {log} SET head = 0, at = 0, floor = 0 WHERE id = %d"
DROP_RECORDS = "DELETE FROM {record} WHERE log = %d"
DROP_ENTRIES = "DELETE FROM {entry} WHERE log = %d"
ADD = "INSERT INTO {record} (log, `key`, version, value, index_key) VALUES "
ADD_BYTES = 1024 * 1024
BEGIN = "UPDATE {log} SET head = %d, at = %d, floor = %d WHERE id = %d AND head = 0; SELECT ROW_COUNT()"
ENTRY = "INSERT INTO {entry} VALUES (%d, %d, %d, '%b', '%b')"

_events_encode = msgspec.msgpack.Encoder().encode


class MysqlMigrator:
    """See `migrating.Migrator`."""

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
            session.ask(self._sql.named(SHUT))

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
            for rows in _portions(log, records):
                session.ask(self._sql.named(ADD) + b",".join(rows))

    def begin(self, tenant: str, entry: Entry) -> None:
        log = self._database.open_log(tenant)
        events = _events_encode(entry.events).replace(b"'", b"''")
        with self._transaction() as session:
            begin = self._sql.named(BEGIN) % (entry.offset, entry.at, entry.offset, log)
            if session.ask(begin)[1] != ((1,),):
                raise Refused(f"somebody else began the log of {tenant}", hint="name another store")
            id_ = entry.id.replace(b"'", b"''")
            session.ask(self._sql.named(ENTRY) % (log, entry.offset, entry.at, id_, events))

    def _set_metadata(self, session: Any, values: dict[str, str]) -> None:
        for name, value in values.items():
            if value:
                session.ask(self._sql.named(SET_NOTE) % (quoted(name), quoted(value)))
            else:
                session.ask(self._sql.named(DROP_NOTE) % quoted(name))

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        """One transaction on a session of its own; where it fails, it ends with its session."""
        with closing(self._database.address.connect()) as session:
            session.ask(b"START TRANSACTION")
            session.ask(self._sql.named(LOCK))
            yield session
            session.ask(b"COMMIT", commits=1)


def _portions(log: int, records: Sequence[Record]) -> Iterator[list[bytes]]:
    """Give the rows of records, as many at once as fit into a packet."""
    rows: list[bytes] = []
    size = 0
    for record in records:
        value = (record.value or b"").replace(b"'", b"''")
        rows.append(
            b"(%d,'%b',%d,'%b','%b')"
            % (log, quoted(record.key), record.version, value, quoted(record.index_key))
        )
        size += len(rows[-1])
        if size > ADD_BYTES:
            yield rows
            rows, size = [], 0
    if rows:
        yield rows
