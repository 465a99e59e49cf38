"""The SQLite store (table-based): one file, any number of processes of one machine.

With WAL and synchronous=FULL, a commit is on disk when it returns. Writers use `BEGIN IMMEDIATE`. A writer
that finds the file busy retries at random intervals: SQLite's own backoff makes writers wait in convoys.
Checkpoints are PASSIVE (SQLite's automatic ones), so that they never block a reader.
"""

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import msgspec

from coord.core.errors import (
    Conflict,
    CoordError,
    Corrupt,
    Invalid,
    Trimmed,
    Unavailable,
    Unknown,
)
from coord.core.ranges import Range
from coord.stores.contract import (
    FORMAT,
    NO_READ_POINT,
    Commit,
    Entry,
    Head,
    Limits,
    Loaded,
    RangeReader,
    ReadPoint,
    Record,
    check_commit,
    check_format,
)
from coord.stores.database import Database
from coord.stores.health import Check
from coord.stores.local.backoff import back_off
from coord.stores.local.clock import host_now_ms
from coord.stores.local.fair_lock import fair_lock
from coord.stores.local.folders import make_private_folder
from coord.stores.local.wakeup import Wakeup
from coord.stores.migration import unavailable_error
from coord.stores.sqlite.statements import (
    ADD_LOG,
    ADVANCE,
    FIND_VERSIONS,
    LOAD,
    LOG,
    PUT_ROWS,
    SCHEMA,
    TAIL,
    cells_of,
    json_list,
    put_statement,
    scan_statement,
)

if TYPE_CHECKING:
    from coord.stores.sqlite.read_only import Reader

BUSY_TRIES = 40
BUSY_BACKOFF_S = 0.1
CHECKPOINT_PAGES = 4000
CACHE_KIB = 32 * 1024
APPLICATION_ID = 0x636F6F72  # "coor": identifies a file of coord

_events_encode = msgspec.msgpack.Encoder().encode
_events_decode = msgspec.msgpack.Decoder(list[bytes]).decode


def _name(error: sqlite3.Error) -> str:
    return str(getattr(error, "sqlite_errorname", ""))


def _file_id(path: str) -> tuple[int, int] | None:
    """Return the identity of the file at a path; None if it is gone."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def translated(error: sqlite3.Error, *, committing: bool = False) -> CoordError:
    """Return the store error for a driver error."""
    name = _name(error)
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return Corrupt(
            f"the SQLite file is damaged: {error}", hint="restore it from a copy; nothing was changed"
        )
    if committing and not name.startswith(("SQLITE_BUSY", "SQLITE_FULL", "SQLITE_READONLY")):
        return Unknown(f"the commit was interrupted: {error}")
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return Unavailable(
            f"the SQLite file cannot be written: {error}", hint="check its owner and its folder"
        )
    if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
        return Unavailable(
            f"the disk cannot be written: {error}", hint="the disk may be full; nothing was changed"
        )
    return unavailable_error(f"SQLite: {error}")


def _reader(path: str) -> "Reader | None":
    """Return the reader of a file that this process may not write; None if it may, or if there is no file."""
    writable = os.access(path, os.W_OK) and os.access(os.path.dirname(path), os.W_OK)
    if writable or not os.path.isfile(path):
        return None
    from coord.stores.sqlite.read_only import Reader

    return Reader(path)


class SqliteStore(RangeReader):
    """One tenant's log in a SQLite file."""

    limits = Limits(commit_bytes=16 * 1024 * 1024, durable=True, shared=True)

    def __init__(self, database: "SqliteDatabase", tenant: str) -> None:
        self._database = database
        with database.reading() as cursor:
            row = cursor.execute(LOG, (tenant,)).fetchone()
        if row is None:
            with database.writing() as cursor:
                cursor.execute(ADD_LOG, (tenant, database.base))
                row = cursor.execute(LOG, (tenant,)).fetchone()
        self._log: int = row[0]
        self.seen = Head(row[1], row[2])

    def load(self, keys: Iterable[str], ranges: Sequence[Range] = (), *, allow_stale: bool = False) -> Loaded:
        wanted = sorted(keys)  # in the order of the file, so that neighbours are read from the same page
        with self._database.reading(in_one_statement=not ranges) as cursor:
            self._database.execute_when_free(LOAD, (self._log, json_list(wanted)))
            found = {row[0]: row for row in cursor}
            _, head, at, floor = found.pop(None)
            self.seen = Head(head, at)
            scanned = [
                [Record(*row) for row in cursor.execute(*scan_statement(self._log, range_))]
                for range_ in ranges
            ]
        records = {
            key: Record(*row) if (row := found.get(key)) else Record(key, floor, None) for key in wanted
        }
        return Loaded(records, ReadPoint(head, floor), scanned)

    def commit(self, commit: Commit) -> int:
        check_commit(commit, self.limits)
        if not commit.writes:
            with self._database.reading() as cursor:
                self._check(cursor, commit, self._see(cursor))
                return self.seen.offset
        with self._database.writing() as cursor:
            offset = self._advance(cursor, commit)
            cells = cells_of(commit)
            for at in range(0, len(cells), 3 * PUT_ROWS):
                part = cells[at : at + 3 * PUT_ROWS]
                cursor.execute(put_statement(len(part) // 3), (self._log, offset, *part))
            cursor.execute(
                "INSERT INTO entry VALUES (?, ?, ?, ?, ?)",
                (self._log, offset, commit.at, commit.id, _events_encode(commit.events)),
            )
            self.seen = Head(offset, commit.at)  # inside: another thread may see a later offset right after
        self._database.wakeup.notify()
        return offset

    def _advance(self, cursor: sqlite3.Cursor, commit: Commit) -> int:
        """Take the next offset if no expected version changed; at the read point none can have changed."""
        if commit.read_point is not NO_READ_POINT:
            head, floor, _ = commit.read_point
            cursor.execute(ADVANCE, (commit.at, self._log, head, floor))
            if cursor.rowcount:
                return head + 1
        floor = self._see(cursor)
        self._check(cursor, commit, floor)
        cursor.execute(ADVANCE, (commit.at, self._log, self.seen.offset, floor))
        return self.seen.offset + 1

    def _see(self, cursor: sqlite3.Cursor) -> int:
        """Record the newest offset; return the floor."""
        head, at, floor = cursor.execute(
            "SELECT head, at, floor FROM log WHERE id = ?", (self._log,)
        ).fetchone()
        self.seen = Head(head, at)
        return int(floor)

    def _check(self, cursor: sqlite3.Cursor, commit: Commit, floor: int) -> None:
        if commit.read_point[:2] == (self.seen.offset, floor):
            return
        found = dict(cursor.execute(FIND_VERSIONS, (self._log, json_list(list(commit.expected_versions)))))
        changed = [
            key for key, version in commit.expected_versions.items() if found.get(key, floor) != version
        ]
        if changed:
            raise Conflict(changed)

    def tail(self, after: int, limit: int) -> list[Entry]:
        with self._database.reading() as cursor:
            floor = self._see(cursor)
            if after + 1 < floor:
                raise Trimmed(floor)
            rows = cursor.execute(TAIL, (self._log, after, limit)).fetchall()
        try:
            return [Entry(offset, at, id_, _events_decode(events)) for offset, at, id_, events in rows]
        except msgspec.MsgspecError as error:
            raise Corrupt(f"an entry after offset {after} cannot be read: {error}") from error

    def wait(self, after: int, timeout: float) -> bool:
        return self._database.wakeup.wait(lambda: self._head() > after, timeout)

    def _head(self) -> int:
        with self._database.reading() as cursor:
            self._see(cursor)
            return self.seen.offset

    def trim(self, before: int) -> None:
        with self._database.writing() as cursor:
            floor = max(self._see(cursor), min(before, self.seen.offset))
            log = self._log
            cursor.execute("UPDATE log SET floor = ? WHERE id = ?", (floor, log))
            cursor.execute('DELETE FROM entry WHERE log = ? AND "offset" < ?', (log, floor))
            cursor.execute("DELETE FROM record WHERE log = ? AND value IS NULL AND version < ?", (log, floor))

    def now(self) -> int:
        return host_now_ms()

    def close(self) -> None:
        """Do nothing: the database owns the connection."""


class SqliteDatabase(Database[SqliteStore]):
    """A SQLite file with all its tenants; created on first open."""

    def __init__(self, url: str, path: str) -> None:
        self._path = os.path.abspath(path)
        self._process = os.getpid()
        self._fair_lock_path = f"{self._path}-fair.lock"
        self._connection_lock = threading.RLock()
        self._reader = _reader(self._path)
        self._connection = self._connect()
        self._file = _file_id(self._path)
        self._cursor = self._connection.cursor()
        try:
            meta = self._prepare()
        except BaseException:
            self._close_connection()
            raise
        self.wakeup = Wakeup(self._path)
        super().__init__(url, meta["store_id"], int(meta["epoch"]))
        self.metadata = meta

    def _connect(self) -> sqlite3.Connection:
        path = self._path
        try:
            make_private_folder(os.path.dirname(path))
            if os.path.islink(path) or (os.path.exists(path) and not os.path.isfile(path)):
                raise Corrupt(f"{path} is not a regular file", hint="use the path of the file itself")
            if self._reader is not None:
                return self._reader.connect()
            # Create the file for its owner only; SQLite gives its other files the same permissions. An
            # existing file is not opened here: closing it would drop the locks that this process may have on
            # it, and the next process to end would think it is the last one and remove the WAL in use.
            with contextlib.suppress(FileExistsError):
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            return sqlite3.connect(path, timeout=0.05, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise translated(error) from error
        except CoordError:
            raise  # Unavailable is an OSError too
        except OSError as error:
            raise Unavailable(f"{path} cannot be opened: {error.strerror}") from error

    def _prepare(self) -> dict[str, str]:
        """Set up the connection, create the tables in a new file, and return the metadata."""
        with self.using() as cursor:
            # Check the owner before any setting, because WAL is written into the file. Read the tables first:
            # a process that creates them writes the application id in the same transaction.
            self.execute_when_free("SELECT count(*) FROM sqlite_master")
            tables = cursor.fetchone()[0]
            self.execute_when_free("PRAGMA application_id")
            if tables and cursor.fetchone()[0] != APPLICATION_ID:
                raise Corrupt(f"{self._path} is not a database of coord", hint="use another file")
            if self._reader is None:
                self.execute_when_free("PRAGMA journal_mode = WAL")
            self.execute_when_free("PRAGMA synchronous = FULL")
            self.execute_when_free(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
            self.execute_when_free(f"PRAGMA cache_size = -{CACHE_KIB}")
        with self.reading() if tables else self.writing() as cursor:
            if not cursor.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                for statement in SCHEMA.split(";")[:-1]:
                    cursor.execute(statement)
                cursor.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                values = {"format": str(FORMAT), "store_id": os.urandom(16).hex(), "epoch": "0"}
                cursor.executemany("INSERT INTO meta VALUES (?, ?)", list(values.items()))
            meta: dict[str, str] = dict(cursor.execute("SELECT name, value FROM meta"))
        check_format(meta["format"], self._path)
        return meta

    def _open_log(self, tenant: str) -> SqliteStore:
        return SqliteStore(self, tenant)

    def fair_lock(self) -> AbstractContextManager[None]:
        return fair_lock(self._fair_lock_path)

    def checks(self) -> list[Check]:
        from coord.stores.sqlite.health import check_sqlite

        return check_sqlite(self, self._path)

    @contextlib.contextmanager
    def reading(self, *, in_one_statement: bool = False) -> Iterator[sqlite3.Cursor]:
        """Read at one read point; a single statement needs no transaction for that."""
        with self.using() as cursor:
            self.roll_back()
            try:
                if not in_one_statement:
                    self.execute_when_free("BEGIN")
                yield cursor
            finally:
                self.roll_back()
            if self._reader is not None:
                self._reader.check()

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Cursor]:
        """Run one transaction that has the write lock from its start."""
        if self._reader is not None:
            raise self._reader.error()
        with self.using() as cursor:
            self.roll_back()
            try:
                self.execute_when_free("BEGIN IMMEDIATE")
                yield cursor
            except BaseException:
                self.roll_back()
                raise
            try:
                cursor.execute("COMMIT")
            except sqlite3.Error as error:
                self.roll_back()
                raise translated(error, committing=True) from error

    @contextlib.contextmanager
    def using(self) -> Iterator[sqlite3.Cursor]:
        if os.getpid() != self._process:
            raise Unavailable("SQLite was opened before a fork", hint="open the store again in the child")
        if _file_id(self._path) != self._file:  # others use another file, or none, under this name
            raise Corrupt(
                f"{self._path} was removed or replaced while this process used it",
                hint="restore it, or create a new store with coord init --new-store",
            )
        with self._connection_lock:
            try:
                if self._reader is not None and self._reader.is_outdated():
                    self._reconnect()
                yield self._cursor
            except sqlite3.Error as error:
                raise translated(error) from error
            except UnicodeEncodeError as error:
                raise Invalid(f"not valid Unicode: {error}") from error

    def _reconnect(self) -> None:
        self._connection.close()
        self._connection = self._connect()
        self._cursor = self._connection.cursor()

    def execute_when_free(self, statement: str, values: tuple[object, ...] = ()) -> None:
        """Execute a statement; retry while another process has the file locked."""
        for tries in range(1, BUSY_TRIES + 1):
            try:
                self._cursor.execute(statement, values)
                return
            except sqlite3.OperationalError as error:
                if tries == BUSY_TRIES or not _name(error).startswith("SQLITE_BUSY"):
                    raise
                back_off(BUSY_BACKOFF_S)

    def roll_back(self) -> None:
        """End the transaction, even one that a signal interrupted."""
        with contextlib.suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._cursor.execute("ROLLBACK")

    def close(self) -> None:
        super().close()
        self.wakeup.close()
        with self._connection_lock:
            self._close_connection()

    def _close_connection(self) -> None:
        self._connection.close()
        if self._reader is not None:
            self._reader.close()
