"""The SQLite store (table-based): one file, any number of processes of one machine.

With WAL and synchronous=FULL, a commit is on disk when it returns. Writers use `BEGIN IMMEDIATE`. A writer
that finds the file busy retries at random intervals: SQLite's own backoff makes writers wait in convoys.
Checkpoints are PASSIVE (SQLite's automatic ones), so that they never block a reader.
"""

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Sequence
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
from coord.stores.checksums import Changes, Checksums, Totals, check_totals, damaged, keys_total
from coord.stores.contract import (
    FORMAT,
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
from coord.stores.local.clock import host_now_ms, uptime_ms
from coord.stores.local.fair_lock import FairLock
from coord.stores.local.folders import file_id, make_private_folder
from coord.stores.local.wakeup import Wakeup
from coord.stores.migration import unavailable_error
from coord.stores.sqlite.rows import (
    NO_LOG_ROW,
    LogRow,
    check_metadata,
    make_log_row,
    read_log_row,
    sealed_metadata,
    set_metadata,
)
from coord.stores.sqlite.statements import (
    ADD_ENTRY,
    ADD_LOG,
    ADVANCE,
    CELLS,
    DEAD,
    DEAD_TOTALS,
    FIND,
    INDEXED,
    LOAD,
    LOGS,
    PUT_ROWS,
    SCHEMA,
    SEE,
    TAIL,
    TOTALS,
    cells_of,
    json_list,
    put_statement,
    scan_statement,
)

if TYPE_CHECKING:
    from coord.stores.sqlite.read_only import Reader

BUSY_TRIES = 40
BUSY_BACKOFF_S = 0.1
PAGE_BYTES = 2048
"""Half of SQLite's default: a commit writes every page that it changes, and most of its records are small."""
CHECKPOINT_PAGES = 8000
VERIFY_EVERY_S = 60
"""How often a process that stays checks again that no record has vanished."""
VERIFY_ROWS = 10_000
"""Up to this number of rows every opening checks that (6 ms); with more, one process in a minute does."""
CACHE_KIB = 32 * 1024
DAMAGE = (
    "SQLITE_CORRUPT",
    "SQLITE_NOTADB",
    "SQLITE_MISMATCH",
    "SQLITE_CONSTRAINT_PRIMARYKEY",
    "SQLITE_CONSTRAINT_UNIQUE",
    "SQLITE_CONSTRAINT_NOTNULL",
)
"""Errors of a damaged file. No statement breaks a constraint of a table while the file is whole."""
APPLICATION_ID = 0x636F6F72  # "coor": identifies a file of coord

_events_encode = msgspec.msgpack.Encoder().encode


def _name(error: sqlite3.Error) -> str:
    return str(getattr(error, "sqlite_errorname", ""))


def translated(
    error: sqlite3.Error, path: str = "the SQLite file", *, committing: bool = False
) -> CoordError:
    """Return the store error for a driver error."""
    name = _name(error)
    if name.startswith(DAMAGE) or str(error).startswith(("no such ", "Could not decode")):
        return damaged(f"{path} is damaged: {error}")
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
        self._checksums = Checksums(database.store_id, tenant, f"tenant {tenant} in {database.path}")
        self._log = database.find_log(tenant, self._checksums)
        self._row = NO_LOG_ROW
        self.seen = Head(0, 0)
        self._verified_ms = 0.0
        with database.reading() as cursor:
            self._see(cursor)
            if self._row.totals.rows <= VERIFY_ROWS or not database.verified_lately():
                self._verify(cursor)

    def _know(self, row: LogRow) -> LogRow:
        """Take over the newest row of the log."""
        if row is not self._row:
            self._row = row
            self.seen = Head(row.head, row.at)
        return row

    def load(self, keys: Iterable[str], ranges: Sequence[Range] = (), *, allow_stale: bool = False) -> Loaded:
        wanted = sorted(keys)  # in the order of the file, so that neighbours are read from the same page
        checksums = self._checksums
        checksums.limit_memory()
        verify = uptime_ms() - self._verified_ms >= VERIFY_EVERY_S * 1000
        with self._database.reading(in_one_statement=not (ranges or verify)) as cursor:
            self._database.execute_when_free(LOAD, (self._log, json_list(wanted)))
            rows = cursor.fetchall()
            if not rows or rows[0][0] is not None:
                raise damaged(f"log {self._log} is missing in {self._database.path}")
            row = self._know(read_log_row(checksums, self._row, rows.pop(0)[1:]))
            records = {record.key: record for record in checksums.checked_all(rows)}
            scanned = [self._read_range(cursor, range_) for range_ in ranges]
            if verify:
                self._verify(cursor)
        if len(records) < len(wanted):
            for key in wanted:
                if key not in records:
                    records[key] = checksums.absent(key, row.floor)
        return Loaded(records, ReadPoint(row.head, row.floor), scanned)

    def _read_range(self, cursor: sqlite3.Cursor, range_: Range) -> list[Record]:
        """Return the records of a range; what the index names has to be there."""
        rows = cursor.execute(*scan_statement(self._log, range_)).fetchall()
        if range_.by == "key":
            return self._checksums.checked_all(rows)
        for key, _, _, value, _, indexed_key in rows:
            if key is None or value is None:
                raise damaged(
                    f"the index of {self._database.path} names {indexed_key!r}, which has no record"
                )
        return self._checksums.checked_all(row[:-1] for row in rows)

    def verify(self) -> None:
        """Run every check of SQLite itself, and count the records."""
        with self._database.reading() as cursor:
            ((problem,),) = cursor.execute("PRAGMA integrity_check(1)").fetchall()
            if problem != "ok":
                raise damaged(f"{self._database.path} is damaged: {problem.splitlines()[-1]}")
            self._see(cursor)
            self._verify(cursor)

    def _verify(self, cursor: sqlite3.Cursor) -> None:
        """Check that exactly the records that the log has counted are there, and that the index has them."""
        self._verified_ms = uptime_ms()
        row, where = self._row, self._database.path
        rows, indexed, digest, keys, newest, dead = cursor.execute(TOTALS, (self._log,)).fetchone()
        check_totals(where, row.totals, Totals(rows, int(indexed), digest, keys_total(keys)))
        if newest is not None and newest > row.head:
            raise damaged(f"{where} has a record of offset {newest}; its log ends at {row.head}")
        (found,) = cursor.execute(INDEXED, (self._log,)).fetchone()
        check_totals(where, row.totals, row.totals._replace(indexed=found))
        tombstones = cursor.execute(DEAD, (self._log,)).fetchall()
        if len(tombstones) != dead:
            raise damaged(f"an index of {where} does not have the {dead} tombstones of its records")
        # No range reads tombstones: a live record that lost its value would look like one.
        for key, version, checksum in tombstones:
            self._checksums.checked(key, version, checksum, None, "")
        # The next commit writes beside the newest entry.
        newest_entries = cursor.execute(TAIL, (self._log, row.head - 1, 2)).fetchall()
        self._checksums.checked_page(newest_entries, row.head - 1, 2, row.head, row.floor)

    def commit(self, commit: Commit) -> int:
        check_commit(commit, self.limits)
        if not commit.writes:
            with self._database.reading() as cursor:
                self._check(cursor, commit, self._see(cursor))
                return self.seen.offset
        with self._database.writing() as cursor:
            row, changes = self._advance(cursor, commit)
            offset = row.head
            cells = cells_of(commit, offset, changes.digests)
            for at in range(0, len(cells), CELLS * PUT_ROWS):
                part = cells[at : at + CELLS * PUT_ROWS]
                cursor.execute(put_statement(len(part) // CELLS), (self._log, offset, *part))
            events = _events_encode(commit.events)
            checksum = self._checksums.entry_digest(commit.at, commit.id, events) + offset
            cursor.execute(ADD_ENTRY, (self._log, offset, checksum, commit.at, commit.id, events))
            self._know(row)  # inside: another thread may see a later offset right after
        self._database.wakeup.notify()
        return offset

    def _advance(self, cursor: sqlite3.Cursor, commit: Commit) -> tuple[LogRow, Changes]:
        """Take the next offset if no expected version changed; at the read point none can have changed."""
        changes, row = self._checksums.changes(commit), self._row
        if changes and commit.read_point[:2] == (row.head, row.floor):
            written = self._write_row(cursor, commit, changes)
            if written:
                return written, changes
        self._check(cursor, commit, self._see(cursor))
        if changes is None:
            self._remember(cursor, [*commit.puts, *commit.deletes])
            changes = self._checksums.changes(commit)
        written = self._write_row(cursor, commit, changes) if changes else None
        if changes is None or written is None:
            raise damaged(f"{self._database.path} answers two questions about one record differently")
        return written, changes

    def _write_row(self, cursor: sqlite3.Cursor, commit: Commit, changes: Changes) -> LogRow | None:
        """Return the row of the log after a commit; None if the log is not where we saw it."""
        head, _, floor, _, totals = self._row
        row = make_log_row(self._checksums, head + 1, commit.at, floor, totals.plus(changes.totals))
        cursor.execute(ADVANCE, (row.head, row.at, row.sums, self._log, head, floor))
        return row if cursor.rowcount else None

    def _remember(self, cursor: sqlite3.Cursor, keys: list[str]) -> None:
        """Read records, so that a commit can replace them."""
        found = {row[0]: row for row in cursor.execute(FIND, (self._log, json_list(keys)))}
        for key in keys:
            if key in found:
                self._checksums.checked(*found[key])
            else:
                self._checksums.absent(key, self._row.floor)

    def _see(self, cursor: sqlite3.Cursor) -> int:
        """Read the row of the log; return the floor."""
        found = cursor.execute(SEE, (self._log,)).fetchone()
        if found is None:
            raise damaged(f"log {self._log} is missing in {self._database.path}")
        return self._know(read_log_row(self._checksums, self._row, found)).floor

    def _check(self, cursor: sqlite3.Cursor, commit: Commit, floor: int) -> None:
        if commit.read_point[:2] == (self.seen.offset, floor):
            return
        wanted = json_list(list(commit.expected_versions))
        rows = cursor.execute(FIND, (self._log, wanted)).fetchall()
        found = {row[0]: self._checksums.checked(*row).version for row in rows}
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
            head = self._row.head
        return self._checksums.checked_page(rows, after, limit, head, floor)

    def wait(self, after: int, timeout: float) -> bool:
        return self._database.wakeup.wait(lambda: self._head() > after, timeout)

    def _head(self) -> int:
        with self._database.reading() as cursor:
            self._see(cursor)
            return self.seen.offset

    def trim(self, before: int) -> None:
        with self._database.writing() as cursor:
            floor = max(self._see(cursor), min(before, self.seen.offset))
            log, (head, at, _, _, totals) = self._log, self._row
            rows, digest, keys = cursor.execute(DEAD_TOTALS, (log, floor)).fetchone()
            removed = Totals(-rows, 0, -digest, -keys_total(keys))
            row = make_log_row(self._checksums, head, at, floor, totals.plus(removed))
            cursor.execute("UPDATE log SET floor = ?, sums = ? WHERE id = ?", (floor, row.sums, log))
            cursor.execute('DELETE FROM entry WHERE log = ? AND "offset" < ?', (log, floor))
            cursor.execute("DELETE FROM record WHERE log = ? AND value IS NULL AND version < ?", (log, floor))
            self._know(row)
            self._verify(cursor)  # a damaged index may have led to records that are not dead

    def now(self) -> int:
        return host_now_ms()

    def close(self) -> None:
        """Do nothing: the database owns the connection."""


class Transaction:
    """A use of the connection by one thread. It is no generator, which would take several times as long."""

    __slots__ = ("_begin", "_commits", "_database")

    def __init__(self, database: "SqliteDatabase", begin: str, *, commits: bool = False) -> None:
        self._database = database
        self._begin = begin
        self._commits = commits

    def __enter__(self) -> sqlite3.Cursor:
        return self._database.begin(self._begin)

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._database.end(error, commits=self._commits)


class SqliteDatabase(Database[SqliteStore]):
    """A SQLite file with all its tenants; created on first open."""

    def __init__(self, url: str, path: str) -> None:
        self.path = os.path.abspath(path)
        self._process = os.getpid()
        self._fair_lock = FairLock(f"{self.path}-fair.lock")
        self._connection_lock = threading.RLock()
        self._reader = _reader(self.path)
        self._connection = self._connect()
        self._file = file_id(self.path)
        self._cursor = self._connection.cursor()
        self._reading_once = Transaction(self, "")
        self._reading = Transaction(self, "BEGIN")
        self._writing = Transaction(self, "BEGIN IMMEDIATE", commits=True)
        try:
            meta = self._prepare()
        except BaseException:
            self._close_connection()
            raise
        self.wakeup = Wakeup(self.path)
        super().__init__(url, meta["store_id"], int(meta["epoch"]))
        self.metadata = meta

    def _connect(self) -> sqlite3.Connection:
        path = self.path
        try:
            make_private_folder(os.path.dirname(path))
            if os.path.islink(path) or (os.path.exists(path) and not os.path.isfile(path)):
                raise Corrupt(
                    f"{path} is not a regular file",
                    hint="name the file itself, or run coord init --new-store",
                )
            if self._reader is not None:
                return self._reader.connect()
            # Create the file for its owner only; SQLite gives its other files the same permissions. An
            # existing file is not opened here: closing it would drop the locks that this process may have on
            # it, and the next process to end would think it is the last one and remove the WAL in use.
            with contextlib.suppress(FileExistsError):
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            return sqlite3.connect(path, timeout=0.05, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise translated(error, self.path) from error
        except CoordError:
            raise  # Unavailable is an OSError too
        except OSError as error:
            raise Unavailable(
                f"{path} cannot be opened: {error.strerror}",
                hint="check who owns the folder, and whether the disk is full or read-only",
            ) from error

    def _prepare(self) -> dict[str, str]:
        """Set up the connection, create the tables in a new file, and return the metadata."""
        with self.reading(in_one_statement=True) as cursor:
            # Check the owner before any setting, because WAL is written into the file. Read the tables first:
            # a process that creates them writes the application id in the same transaction.
            self.execute_when_free("SELECT count(*) FROM sqlite_master")
            tables = cursor.fetchone()[0]
            self.execute_when_free("PRAGMA application_id")
            if tables and cursor.fetchone()[0] != APPLICATION_ID:
                raise Corrupt(f"{self.path} is not a database of coord", hint="use another file")
            if self._reader is None:
                self.execute_when_free(f"PRAGMA page_size = {PAGE_BYTES}")  # of a file that is still empty
                self.execute_when_free("PRAGMA journal_mode = WAL")
            self.execute_when_free("PRAGMA synchronous = FULL")
            self.execute_when_free(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
            self.execute_when_free(f"PRAGMA cache_size = -{CACHE_KIB}")
            self.execute_when_free("PRAGMA cell_size_check = ON")
        with self.reading() if tables else self.writing() as cursor:
            if not cursor.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                for statement in SCHEMA.split(";")[:-1]:
                    cursor.execute(statement)
                cursor.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                values = {"format": str(FORMAT), "store_id": os.urandom(16).hex(), "epoch": "0", "logs": "0"}
                cursor.executemany("INSERT INTO meta VALUES (?, ?)", sealed_metadata(values).items())
            meta: dict[str, str] = dict(cursor.execute("SELECT name, value FROM meta"))
        if "format" in meta:  # before the checksum, which another format may compute otherwise
            check_format(meta["format"], self.path)
        check_metadata(self.path, meta)
        return meta

    def find_log(self, tenant: str, checksums: Checksums) -> int:
        """Return the number of a tenant's log; create the log if it is missing."""
        with self.reading() as cursor:
            found = self._read_logs(cursor)
        if tenant not in found:
            with self.writing() as cursor:
                found = self._read_logs(cursor)
                if tenant not in found:
                    self._check_tenants(cursor)
                    row = make_log_row(checksums, self.base, 0, self.base, Totals())
                    cursor.execute(ADD_LOG, (tenant, row.head, row.at, row.floor, row.sums))
                    set_metadata(cursor, {"logs": str(len(found) + 1)})
                    found = self._read_logs(cursor)
        return found[tenant]

    def _read_logs(self, cursor: sqlite3.Cursor) -> dict[str, int]:
        """Return the number of each tenant's log; refuse a file in which one is missing."""
        meta = dict(cursor.execute("SELECT name, value FROM meta"))
        check_metadata(self.path, meta)
        rows = cursor.execute(LOGS).fetchall()
        if len(rows) != int(meta["logs"]):
            raise damaged(f"{self.path} has {len(rows)} logs; it counted {meta['logs']}")
        return {tenant: id_ for id_, tenant, *_ in rows}

    def _open_log(self, tenant: str) -> SqliteStore:
        return SqliteStore(self, tenant)

    def _check_tenants(self, cursor: sqlite3.Cursor) -> None:
        """Check every log before another one is created: the tenant may be there under a damaged name."""
        for _, tenant, *row in cursor.execute(LOGS).fetchall():
            checksums = Checksums(self.store_id, str(tenant), f"tenant {tenant} in {self.path}")
            read_log_row(checksums, NO_LOG_ROW, tuple(row))

    def install_views(self) -> None:
        from coord.stores.sqlite.views import renew_views

        with self.writing() as cursor:
            renew_views(cursor)

    def verified_lately(self) -> bool:
        """Return whether a process checked a large file in the last minute; if not, this one is to do it."""
        mark = f"{self.path}-verified"
        try:
            age_s = time.time() - os.stat(mark).st_mtime
        except OSError:
            age_s = -1.0
        if 0 <= age_s < VERIFY_EVERY_S:
            return True
        with contextlib.suppress(OSError):  # read-only: then everybody checks
            os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
            os.utime(mark)
        return False

    def fair_lock(self) -> FairLock:
        return self._fair_lock

    def checks(self) -> list[Check]:
        from coord.stores.sqlite.health import check_sqlite

        return check_sqlite(self, self.path)

    def reading(self, *, in_one_statement: bool = False) -> "Transaction":
        """Read at one read point; a single statement needs no transaction for that."""
        return self._reading_once if in_one_statement else self._reading

    def writing(self) -> "Transaction":
        """Run one transaction that has the write lock from its start."""
        if self._reader is not None:
            raise self._reader.error()
        return self._writing

    def begin(self, statement: str) -> sqlite3.Cursor:
        """Take the connection for this thread, and begin a transaction unless the statement is empty."""
        if os.getpid() != self._process:
            raise Unavailable("SQLite was opened before a fork", hint="open the store again in the child")
        self._connection_lock.acquire()
        try:
            if self._reader is not None and self._reader.is_outdated():
                self._reconnect()
            self.roll_back()
            if statement:
                self.execute_when_free(statement)
            self._check_file()  # at last: a repair may have replaced it while we waited
        except BaseException as error:
            self.end(error, commits=False)
            raise
        return self._cursor

    def end(self, error: BaseException | None, *, commits: bool) -> None:
        """Commit or roll back, and free the connection; raise the store error for an error of SQLite."""
        try:
            if error is None and commits:
                self._commit()
            self.roll_back()
            if error is None and self._reader is not None:
                self._reader.check()
        finally:
            self._connection_lock.release()
        if error is None:
            return
        if isinstance(error, sqlite3.Error):
            raise translated(error, self.path) from error
        if isinstance(error, UnicodeEncodeError):
            raise Invalid(f"not valid Unicode: {error}") from error
        if isinstance(error, UnicodeDecodeError):
            raise damaged(f"{self.path} is damaged: it has text that is not UTF-8") from error

    def _commit(self) -> None:
        try:
            self._cursor.execute("COMMIT")
        except sqlite3.Error as error:
            self.roll_back()
            raise translated(error, self.path, committing=True) from error

    def _check_file(self) -> None:
        if file_id(self.path) != self._file:  # others use another file, or none, under this name
            raise Corrupt(
                f"{self.path} was removed or replaced while this process used it",
                hint="after a repair, start this process again; else restore it, or coord init --new-store",
            )

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
        try:
            if self._connection.in_transaction:
                self._cursor.execute("ROLLBACK")
        except sqlite3.Error:  # it is closed, or has ended the transaction itself
            return

    def close(self) -> None:
        super().close()
        self._fair_lock.close()
        self.wakeup.close()
        with self._connection_lock:
            self._close_connection()

    def _close_connection(self) -> None:
        self._connection.close()
        if self._reader is not None:
            self._reader.close()
