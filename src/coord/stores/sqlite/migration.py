"""Migrating a SQLite store. Triggers seal it, also for processes that opened it before."""

import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from coord.core.errors import Refused
from coord.stores.checksums import Checksums, Totals, keys_total
from coord.stores.contract import Entry, Record
from coord.stores.migration import MIGRATED_ID, MIGRATED_URL, migrated_message
from coord.stores.sqlite.rows import make_log_row, set_metadata
from coord.stores.sqlite.statements import ADD_ENTRY, ADD_LOG, TOTALS

SEAL = """
CREATE TRIGGER migrated_commit BEFORE UPDATE ON log BEGIN SELECT RAISE(ABORT, '{message}'); END;
CREATE TRIGGER migrated_tenant BEFORE INSERT ON log BEGIN SELECT RAISE(ABORT, '{message}'); END;
"""
REOPEN = ("DROP TRIGGER IF EXISTS migrated_commit", "DROP TRIGGER IF EXISTS migrated_tenant")
LOG = "SELECT id FROM log WHERE tenant = ?"
BEGIN = "UPDATE log SET head = ?, at = ?, floor = ?, sums = ? WHERE id = ? AND head = 0"

_events_encode = msgspec.msgpack.Encoder().encode


class Transactions(Protocol):
    """The open database, as far as a migration needs it."""

    path: str
    store_id: str

    def reading(self) -> AbstractContextManager[sqlite3.Cursor]: ...
    def writing(self) -> AbstractContextManager[sqlite3.Cursor]: ...


HEADS = "SELECT tenant, head FROM log WHERE (head & 1099511627775) <> 0 ORDER BY tenant"
# The low 40 bits are 0 in a log without entries, whatever its epoch.


class SqliteMigrator:
    """The steps of `Migrator`."""

    def __init__(self, database: Transactions) -> None:
        self._database = database

    def heads(self) -> dict[str, int]:
        with self._database.reading() as cursor:
            return dict(cursor.execute(HEADS))

    def metadata(self) -> dict[str, str]:
        with self._database.reading() as cursor:
            return dict(cursor.execute("SELECT name, value FROM meta"))

    def set_metadata(self, **values: str) -> None:
        with self._database.writing() as cursor:
            set_metadata(cursor, values)

    def set_epoch(self, epoch: int) -> None:
        self.set_metadata(epoch=str(epoch))

    def seal(self, url: str, store_id: str) -> None:
        message = migrated_message(url).replace("'", "''")
        with self._database.writing() as cursor:
            _reopen(cursor)
            for statement in SEAL.format(message=message).split("END;")[:-1]:
                cursor.execute(f"{statement} END")
            set_metadata(cursor, {MIGRATED_URL: url, MIGRATED_ID: store_id})

    def reopen(self) -> None:
        with self._database.writing() as cursor:
            _reopen(cursor)
            set_metadata(cursor, {MIGRATED_URL: "", MIGRATED_ID: ""})

    def clear(self, tenant: str) -> None:
        with self._database.writing() as cursor:
            checksums = self._checksums(tenant)
            row = make_log_row(checksums, 0, 0, 0, Totals())
            logs = dict(cursor.execute("SELECT tenant, id FROM log NOT INDEXED"))
            if tenant not in logs:
                cursor.execute(ADD_LOG, (tenant, 0, 0, 0, row.sums))
                set_metadata(cursor, {"logs": str(len(logs) + 1)})
            cursor.execute(
                "UPDATE log SET head = 0, at = 0, floor = 0, sums = ? WHERE tenant = ?", (row.sums, tenant)
            )
            cursor.execute(f"DELETE FROM record WHERE log = ({LOG})", (tenant,))  # noqa: S608 - LOG is a constant
            cursor.execute(f"DELETE FROM entry WHERE log = ({LOG})", (tenant,))  # noqa: S608

    def add(self, tenant: str, records: Sequence[Record]) -> None:
        digest = self._checksums(tenant).digest
        rows = [
            (tenant, key, version, digest(key, value, index_key) + version, index_key, value)
            for key, version, value, index_key in map(msgspec.structs.astuple, records)
        ]
        with self._database.writing() as cursor:
            cursor.executemany(f"INSERT INTO record VALUES (({LOG}), ?, ?, ?, ?, ?)", rows)  # noqa: S608

    def begin(self, tenant: str, entry: Entry) -> None:
        checksums, events = self._checksums(tenant), _events_encode(entry.events)
        with self._database.writing() as cursor:
            (log,) = cursor.execute(LOG, (tenant,)).fetchone()
            rows, indexed, digest, keys, *_ = cursor.execute(TOTALS, (log,)).fetchone()
            totals = Totals(rows, int(indexed), digest, keys_total(keys))
            row = make_log_row(checksums, entry.offset, entry.at, entry.offset, totals)
            cursor.execute(BEGIN, (row.head, row.at, row.floor, row.sums, log))
            if not cursor.rowcount:
                raise Refused(f"the log of tenant {tenant} exists already", hint="use another store")
            checksum = checksums.entry_digest(entry.at, entry.id, events) + entry.offset
            cursor.execute(ADD_ENTRY, (log, entry.offset, checksum, entry.at, entry.id, events))

    def _checksums(self, tenant: str) -> Checksums:
        return Checksums(self._database.store_id, tenant, self._database.path)


def _reopen(cursor: sqlite3.Cursor) -> None:
    for statement in REOPEN:
        cursor.execute(statement)
