"""Migrating a SQLite store. Triggers seal it, also for processes that opened it before."""

import sqlite3
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from coord.core.errors import Refused
from coord.stores.contract import Entry, Record
from coord.stores.migration import MIGRATED_ID, MIGRATED_URL, migrated_message

# Opening an existing log also runs an INSERT, which has no effect; it must still work, to read the log.
SEAL = """
CREATE TRIGGER migrated_commit BEFORE UPDATE ON log BEGIN SELECT RAISE(ABORT, '{message}'); END;
CREATE TRIGGER migrated_tenant BEFORE INSERT ON log
WHEN NOT EXISTS (SELECT 1 FROM log WHERE tenant = NEW.tenant)
BEGIN SELECT RAISE(ABORT, '{message}'); END;
"""
REOPEN = ("DROP TRIGGER IF EXISTS migrated_commit", "DROP TRIGGER IF EXISTS migrated_tenant")
LOG = "SELECT id FROM log WHERE tenant = ?"

_events_encode = msgspec.msgpack.Encoder().encode


class Transactions(Protocol):
    """The open database, as far as a migration needs it."""

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
            _set_metadata(cursor, values)

    def set_epoch(self, epoch: int) -> None:
        self.set_metadata(epoch=str(epoch))

    def seal(self, url: str, store_id: str) -> None:
        message = migrated_message(url).replace("'", "''")
        with self._database.writing() as cursor:
            _reopen(cursor)
            for statement in SEAL.format(message=message).split("END;")[:-1]:
                cursor.execute(f"{statement} END")
            _set_metadata(cursor, {MIGRATED_URL: url, MIGRATED_ID: store_id})

    def reopen(self) -> None:
        with self._database.writing() as cursor:
            _reopen(cursor)
            _set_metadata(cursor, {MIGRATED_URL: "", MIGRATED_ID: ""})

    def clear(self, tenant: str) -> None:
        with self._database.writing() as cursor:
            cursor.execute(
                "INSERT OR IGNORE INTO log (tenant, head, at, floor) VALUES (?, 0, 0, 0)", (tenant,)
            )
            cursor.execute("UPDATE log SET head = 0, at = 0, floor = 0 WHERE tenant = ?", (tenant,))
            cursor.execute(f"DELETE FROM record WHERE log = ({LOG})", (tenant,))  # noqa: S608 - LOG is a constant
            cursor.execute(f"DELETE FROM entry WHERE log = ({LOG})", (tenant,))  # noqa: S608

    def add(self, tenant: str, records: Sequence[Record]) -> None:
        rows = [(tenant, each.key, each.version, each.value, each.index_key) for each in records]
        with self._database.writing() as cursor:
            cursor.executemany(f"INSERT INTO record VALUES (({LOG}), ?, ?, ?, ?)", rows)  # noqa: S608

    def begin(self, tenant: str, entry: Entry) -> None:
        values = (entry.offset, entry.at, entry.offset, tenant)
        with self._database.writing() as cursor:
            cursor.execute("UPDATE log SET head = ?, at = ?, floor = ? WHERE tenant = ? AND head = 0", values)
            if not cursor.rowcount:
                raise Refused(f"the log of tenant {tenant} exists already", hint="use another store")
            cursor.execute(
                f"INSERT INTO entry VALUES (({LOG}), ?, ?, ?, ?)",  # noqa: S608
                (tenant, entry.offset, entry.at, entry.id, _events_encode(entry.events)),
            )


def _reopen(cursor: sqlite3.Cursor) -> None:
    for statement in REOPEN:
        cursor.execute(statement)


def _set_metadata(cursor: sqlite3.Cursor, values: dict[str, str]) -> None:
    for name, value in values.items():
        if value:
            cursor.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))
        else:
            cursor.execute("DELETE FROM meta WHERE name = ?", (name,))
