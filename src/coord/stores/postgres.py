"""The Postgres store (table shape): tables in one schema of a database, any number of machines.

A commit is one round trip: a function that locks the head row, compares, and writes (`postgres_sql.py`). Who
waits is woken by NOTIFY, sent after the commit and only if somebody listens: inside the commit it would hold
a lock of the whole server until the disk has answered.

    postgresql://user@host/database?schema=coord    `schema` is ours, the rest is libpq's
"""

import contextlib
import os
import re
import secrets
import select
import threading
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec
import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.types.numeric import Int4, Int8

from coord.core.errors import (
    Conflict,
    CoordError,
    Corrupt,
    Invalid,
    LimitReached,
    Trimmed,
    Unavailable,
    Unknown,
    Unsupported,
)
from coord.stores.check import Check
from coord.stores.database import Database
from coord.stores.known_versions import KnownVersions
from coord.stores.listener import Ear, Listener
from coord.stores.moved import not_installed, unavailable
from coord.stores.postgres_arrays import ArrayDumper, Bigints, Blobs, Texts
from coord.stores.postgres_sql import ABOVE_ALL, LIBPQ, SESSION, Statements
from coord.stores.server_clock import ServerClock, uptime_ms
from coord.stores.store import FORMAT, Commit, Entry, Head, Limits, Record, check_commit, prefix_end
from coord.stores.url import shown, without_parameter

SERVER_VERSION = 130000
COMMIT_BYTES = 16 * 1024 * 1024
FORGET_AT_ONCE = 10_000
SCHEMA = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,47}")
_events_encode, _events_decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(list[bytes]).decode
_inherited: list[object] = []
"""What a forked child must keep: its parent's connections, lest they are closed as garbage."""

Row = tuple[Any, ...]
Connection = psycopg.Connection[Row]


def translated(error: psycopg.Error, *, committing: bool = False) -> CoordError:
    """Return what a driver error means."""
    message = f"Postgres: {' '.join(str(error).split())}"
    state, severity = error.sqlstate or "", error.diag.severity_nonlocalized
    if severity in ("FATAL", "PANIC") or (not state and not isinstance(error, psycopg.DataError)):
        # The session ended: a restart, pg_terminate_backend, the network. FATAL is probably a plain no, for
        # a server holds it back while it commits; but to look into the log costs little, to guess may lie.
        return Unknown(message) if committing else Unavailable(message)
    # From here on the answer was ERROR: the statement, which was its whole transaction, is rolled back.
    if not state or state.startswith("22"):  # a data exception: not Unicode, or a NUL
        return Invalid(message)
    if state.startswith("54"):  # a limit of the program
        return LimitReached(message)
    if state in ("XX001", "XX002", "P0002", "42P01", "42703", "42883", "3F000"):
        # A damaged page or index; a log, table, column, function or schema that was there before.
        return Corrupt(message, hint="restore the store from a copy; nothing was changed")
    # Lock or statement timeout, deadlock, serialization failure, no space, no privilege, read-only, moved …
    return unavailable(message)


@contextlib.contextmanager
def _using(connection: Connection, *, committing: bool = False) -> Iterator[None]:
    """Translate errors; whatever went wrong, the next call begins with a fresh connection."""
    try:
        yield
    except BaseException as error:
        connection.close()
        if isinstance(error, psycopg.Error):
            raise translated(error, committing=committing) from error
        if isinstance(error, UnicodeEncodeError):
            raise Invalid(f"{error.object!r} is not valid Unicode") from error
        raise


class Address:
    """Where a store is: what libpq needs, and the schema."""

    def __init__(self, url: str) -> None:
        self.shown = shown(url)
        self.libpq: dict[str, Any] = {}
        with contextlib.suppress(ValueError, psycopg.Error):
            rest, schemas = without_parameter(url, "schema")
            self.libpq = {**LIBPQ, **conninfo_to_dict(rest), "client_encoding": "UTF8"}
        if not self.libpq:  # raised here and not from the driver's error, whose words hold the password
            raise Invalid(f"{self.shown!r} is not a url that Postgres understands")
        schema = ",".join(schemas) if schemas else "coord"
        if not SCHEMA.fullmatch(schema):
            raise Invalid(f"{schema!r} cannot be a schema", hint="1 to 48 of a-z, 0-9 and _, not pg_…")
        self.sql = Statements(schema)

    def connect(self) -> Connection:
        """Open a connection that is set up as the statements expect."""
        try:
            connection: Connection = psycopg.connect(autocommit=True, prepare_threshold=0, **self.libpq)
        except psycopg.Error as error:
            raise translated(error) from error
        with _using(connection):
            self._set_up(connection)
        return connection

    def _set_up(self, connection: Connection) -> None:
        version = connection.info.server_version
        if version < SERVER_VERSION:
            raise Unsupported(f"{self.shown} is Postgres {version // 10000}", hint="13 or newer is needed")
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise Unsupported(f"{self.shown} keeps text as {encoding}", hint="create the database as UTF8")
        for array in (Texts, Blobs, Bigints):
            connection.adapters.register_dumper(array, ArrayDumper)
        connection.execute(self.sql.set_up, (Texts(SESSION), Texts(SESSION.values())))


def install(url: str) -> None:
    """Make schema, tables and functions where they are missing; safe to call again, and at the same time."""
    address = Address(url)
    sql = address.sql
    with contextlib.closing(address.connect()) as connection, _using(connection):
        with connection.transaction():
            connection.execute(sql.lock_installation)
            has_schema, has_tables = connection.execute(sql.installed).fetchall()[0]
            if not has_tables:
                if not has_schema:
                    connection.execute(sql.create_schema)
                connection.execute(sql.create, prepare=False)
                values = {"format": str(FORMAT), "store_id": secrets.token_hex(16), "epoch": "0"}
                connection.cursor().executemany(sql.put_meta, list(values.items()))
            views_wanted, views = sql.views()
            if connection.execute(views_wanted).fetchall()[0][0]:
                connection.execute(views, prepare=False)
        _meta(address, connection)


def grants(url: str) -> list[str]:
    """Return what gives one role the rights to install a store here, and another those to work with it."""
    from coord.stores.postgres_rights import granted

    return granted(Address(url))


def _meta(address: Address, connection: Connection) -> dict[str, str]:
    """Return what the store says of itself; refuse one that is not there or not ours to write."""
    try:
        meta: dict[str, str] = dict(connection.execute(address.sql.meta).fetchall())
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName) as error:
        raise not_installed(address.shown) from error
    if meta.get("format") != str(FORMAT):
        raise Unsupported(
            f"{address.shown} has format {meta.get('format')}; this version of coord writes {FORMAT}",
            hint="upgrade coord",
        )
    return meta


class PostgresStore:
    """One tenant's log in a Postgres schema."""

    def __init__(self, database: "PostgresDatabase", tenant: str) -> None:
        self._database = database
        self._sql = database.address.sql
        self.seen = Head(0, 0)
        self._known = KnownVersions(0, 0, {})
        self._log = Int4(database.ask(self._sql.open_log, tenant)[0][1])
        self._read(self._sql.head)

    @property
    def limits(self) -> Limits:
        return self._database.limits

    def _read(self, query: str, *values: object) -> tuple[int, int, list[Row]]:
        """Return head, floor and what was found, all of one snapshot; note the head."""
        newest = self.seen.offset
        rows = self._database.ask(query, *values, self._log)
        if not rows:
            raise Corrupt(f"log {self._log} is gone", hint="restore the store from a copy")
        _, head, at, floor, *_ = rows[0]
        if head < newest:
            raise Corrupt(f"the log went back from {newest} to {head}", hint="was the store restored?")
        self._see(Head(head, at))
        return head, floor, [row[4:] for row in rows if len(row) > 4 and row[4] is not None]

    def _see(self, head: Head) -> None:
        if head.offset > self.seen.offset:
            self.seen = head

    def load(self, keys: Iterable[str]) -> dict[str, Record]:
        wanted = Texts(keys)
        head, floor, rows = self._read(self._sql.load, wanted)
        found = {row[0]: Record(*row) for row in rows}
        records = {key: found.get(key) or Record(key, floor, None) for key in wanted}
        self._known = self._known.learned(head, floor, records)
        return records

    def scan(
        self, prefix: str, *, by: Literal["key", "line"], after: Record | None = None, limit: int
    ) -> list[Record]:
        end = prefix_end(prefix) or ABOVE_ALL
        if by == "line":
            low = max((prefix, ""), (after.line, after.key) if after else ("", ""))  # no key is empty
            _, _, rows = self._read(self._sql.scan_lines, *low, end, Int8(limit))
        elif after is None or after.key < prefix:
            _, _, rows = self._read(self._sql.scan_keys_from, prefix, end, Int8(limit))
        else:
            _, _, rows = self._read(self._sql.scan_keys_after, after.key, end, Int8(limit))
        return [Record(*row) for row in rows]

    def commit(self, commit: Commit) -> int:
        check_commit(commit, self.limits)
        expects = commit.expects
        if not commit.writes:
            head, _, rows = self._read(self._sql.changed, Texts(expects), Bigints(expects.values()))
            if rows:
                raise Conflict(row[0] for row in rows)
            return head
        known, written = self._known, dict.fromkeys([*commit.puts, *commit.deletes])
        keys = Texts([*written, *(key for key in expects if key not in written)])
        ((_, offset, changed, heard),) = self._database.ask(
            self._sql.commit,
            self._log,
            Int8(known.head if known.cover(expects) else -1),
            Int8(known.floor),
            keys,
            Bigints([expects[key] for key in keys]),
            Int4(len(written)),
            Blobs([put.value for put in commit.puts.values()]),
            Texts([put.line for put in commit.puts.values()]),
            Int8(commit.at),
            commit.id,
            _events_encode(commit.events),
            committing=True,
        )
        if changed is not None:
            raise Conflict(changed)
        self._see(Head(offset, commit.at))
        if heard:
            self._database.ring(self._log, offset)
        return int(offset)

    def tail(self, after: int, limit: int) -> list[Entry]:
        _, floor, rows = self._read(self._sql.tail, Int8(after), Int8(limit))
        if after + 1 < floor:
            raise Trimmed(floor)
        try:
            return [Entry(offset, at, id_, _events_decode(events)) for offset, at, id_, events in rows]
        except msgspec.MsgspecError as error:
            raise Corrupt(f"an entry after offset {after} cannot be read: {error}") from error

    def wait(self, after: int, timeout: float) -> bool:
        return self.seen.offset > after or self._database.wait(self._log, after, timeout)

    def trim(self, before: int) -> None:
        ask, sql, log = self._database.ask, self._sql, self._log
        floor = Int8(ask(sql.trim, log, Int8(before), committing=True)[0][1])
        # Nobody sees entries below the floor any more; there may be millions, so they leave in portions.
        portion = forgotten = FORGET_AT_ONCE
        while forgotten == portion:
            forgotten = ask(sql.forget, log, floor, Int8(portion), log, committing=True)[0][1]

    def now(self) -> int:
        return self._database.clock.now()

    def close(self) -> None:
        """Nothing of its own: the database owns the connections."""


class PostgresDatabase(Database[PostgresStore]):
    """A schema with all its tenants; made by `install`."""

    using = staticmethod(_using)

    def __init__(self, url: str) -> None:
        super().__init__(url, store_id="")
        self.address = Address(url)
        self.clock = ServerClock()
        self.limits = Limits(commit_bytes=COMMIT_BYTES, durable=True, shared=True)
        self._begin()
        with self._connection_lock:
            self._connected()

    def _begin(self) -> None:
        """Begin without connections, in this process."""
        self._process = os.getpid()
        self._connection_lock = threading.RLock()
        self._connection: Connection | None = None
        self._listener = Listener(self._ear)

    def _in_this_process(self) -> None:
        """After a fork leave the parent's connections alone: its sessions end when anybody closes them."""
        if self._process != os.getpid():
            _inherited.append((self._connection, self._listener))
            self._begin()

    def _open_log(self, tenant: str) -> PostgresStore:
        return PostgresStore(self, tenant)

    def ask(self, query: str, *values: object, committing: bool = False) -> list[Row]:
        """Return the answer, whose first column is the server's clock; one statement is one transaction."""
        self._in_this_process()
        with self._connection_lock:
            connection = self._connected()
            asked = uptime_ms()
            with _using(connection, committing=committing):
                rows = connection.execute(query, values, binary=True).fetchall()
        if rows:
            self.clock.told(rows[0][0], asked)
        return rows

    def _connected(self) -> Connection:
        """Return the connection, opened anew if it is gone: what was not sent yet cannot be lost."""
        if self.closed:
            raise Unavailable("the database is closed")
        if self._connection is None or _is_gone(self._connection):
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> Connection:
        connection = self.address.connect()
        with _using(connection):
            meta = _meta(self.address, connection)
            durable, standby = connection.execute(self.address.sql.state).fetchall()[0]
            if standby:
                raise Unavailable(f"{self.address.shown} is a standby", hint="connect to the primary")
            if self.store_id not in ("", meta["store_id"]):
                raise Corrupt(f"{self.address.shown} holds another store now", hint="open it again")
        self.store_id, self.epoch, self.notes = meta["store_id"], int(meta["epoch"]), meta
        self.limits = Limits(commit_bytes=COMMIT_BYTES, durable=durable, shared=True)
        return connection

    def checks(self) -> list[Check]:
        from coord.stores.postgres_checks import look

        return look(self.ask)

    def ring(self, log: int, offset: int) -> None:
        """Tell who listens that a log has grown; nobody depends on it."""
        sql = self.address.sql
        with contextlib.suppress(CoordError):
            self.ask(sql.notify, sql.channel(log), str(offset))

    def wait(self, log: int, after: int, seconds: float) -> bool:
        """Wait for a log to grow beyond an offset, at most so long; return whether it did."""
        self._in_this_process()
        if self.closed:
            raise Unavailable("the database is closed")
        return self._listener.wait(log, after, seconds)

    @contextlib.contextmanager
    def _ear(self) -> Iterator[Ear]:
        sql = self.address.sql
        channels: dict[str, int] = {}

        def hear(logs: frozenset[int], seconds: float) -> dict[int, int]:
            unheard = logs.difference(channels.values())
            for log in unheard:
                connection.execute(f'LISTEN "{sql.channel(log)}"', prepare=False)
                connection.execute(sql.share_lock, (Int4(log),))
                channels[sql.channel(log)] = log
            rung = [] if unheard else list(connection.notifies(timeout=seconds, stop_after=1))
            if rung:
                return {channels[one.channel]: int(one.payload) for one in rung if one.payload.isdecimal()}
            return dict(connection.execute(sql.heads, (Bigints(logs),)).fetchall())

        with contextlib.closing(self._connect()) as connection, _using(connection):
            yield hear

    def close(self) -> None:
        super().close()
        self._in_this_process()
        self._listener.close()
        with self._connection_lock:
            if self._connection is not None:
                self._connection.close()


def _is_gone(connection: Connection) -> bool:
    """Whether the server has hung up since the last answer; if so, the connection is closed here too."""
    socket = select.poll()
    with contextlib.suppress(psycopg.Error):
        socket.register(connection.fileno(), select.POLLIN)
        while socket.poll(0):
            connection.pgconn.consume_input()
        return False
    connection.close()
    return True
