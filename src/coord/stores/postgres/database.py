"""An open Postgres schema of either layout: one connection, one listener, and what a fork means for them."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, ClassVar

import psycopg
from psycopg.types.numeric import Int4, Int8

from coord.core.errors import CoordError, Corrupt, Trimmed, Unavailable
from coord.stores.checksums import Checksums
from coord.stores.contract import Entry, Head, Limits
from coord.stores.database import AnyStore, Reconnected
from coord.stores.health import Check
from coord.stores.local.clock import uptime_ms
from coord.stores.postgres.arrays import Bigints
from coord.stores.postgres.connection import Address, Connection, Row, is_gone, meta_of, using
from coord.stores.postgres.table_statements import Statements
from coord.stores.server.clock import ServerClock
from coord.stores.server.database import ServerDatabase
from coord.stores.server.listener import Subscription

COMMIT_BYTES = 16 * 1024 * 1024
FORGET_AT_ONCE = 10_000


class OpenSchema(ServerDatabase[AnyStore]):
    """A schema with all its tenants; created by `install`."""

    statements: ClassVar[type[Statements]]
    using = staticmethod(using)

    def __init__(self, url: str) -> None:
        super().__init__(url, store_id="")
        self.address = Address(url, self.statements)
        self.clock = ServerClock()
        self.limits = Limits(commit_bytes=COMMIT_BYTES, durable=True, shared=True)
        self.connections = 0
        self._begin()
        with self._connection_lock:
            self._connected()

    def _begin(self) -> None:
        """Start without connections, in this process."""
        super()._begin()
        self._connection_lock = threading.RLock()
        self._connection: Connection | None = None
        self._cursor: psycopg.Cursor[Row]

    def ask(self, query: str, *values: object, committing: bool = False, on: int | None = None) -> list[Row]:
        """Return the rows, whose first column is the server's clock; one statement is one transaction.

        With `on`, only if the current connection has that number; otherwise raise `Reconnected`.
        """
        self._in_this_process()
        with self._connection_lock:
            connection = self._connected()
            if on not in (None, self.connections):
                raise Reconnected
            asked = uptime_ms()
            with using(connection, committing=committing):
                rows = self._cursor.execute(query, values).fetchall()
        if rows:
            self.clock.observe(rows[0][0], asked)
        return rows

    def _connected(self) -> Connection:
        """Return the connection; open a new one if it was lost, because nothing has been sent yet."""
        if self.closed:
            raise Unavailable("the database is closed")
        if self._connection is None or is_gone(self._connection):
            self._connection = self.connect()
            self._cursor = self._connection.cursor(binary=True)  # one for all: a new one takes 5 µs
            self.connections += 1
        return self._connection

    def connect(self) -> Connection:
        """Open a connection, and check that the server still has this store."""
        connection = self.address.connect()
        with using(connection):
            meta = meta_of(self.address, connection)
            durable, standby = connection.execute(self.address.sql.state).fetchall()[0]
            if standby:
                raise Unavailable(f"{self.address.redacted} is a standby", hint="connect to the primary")
            if self.store_id not in ("", meta["store_id"]):
                raise Corrupt(f"{self.address.redacted} is another store now", hint="open it again")
        self.store_id, self.epoch, self.metadata = meta["store_id"], int(meta["epoch"]), meta
        self.limits = Limits(commit_bytes=COMMIT_BYTES, durable=durable, shared=True)
        return connection

    def checks(self) -> list[Check]:
        from coord.stores.postgres.health import check_server

        return check_server(self.ask)

    def notify(self, log: int, offset: int) -> None:
        """Notify listeners that a log has grown; nobody depends on it."""
        sql = self.address.sql
        with contextlib.suppress(CoordError):
            self.ask(sql.notify, sql.channel(log), str(offset))

    @contextlib.contextmanager
    def _subscribe(self) -> Iterator[Subscription]:
        sql = self.address.sql
        channels: dict[str, int] = {}

        def listen(logs: frozenset[int], seconds: float) -> dict[int, int]:
            new = logs.difference(channels.values())
            for log in new:
                connection.execute(f'LISTEN "{sql.channel(log)}"', prepare=False)
                connection.execute(sql.share_lock, (Int4(log),))
                channels[sql.channel(log)] = log
            notified = [] if new else list(connection.notifies(timeout=seconds, stop_after=1))
            if notified:
                return {
                    channels[one.channel]: int(one.payload) for one in notified if one.payload.isdecimal()
                }
            return dict(connection.execute(sql.heads, (Bigints(logs),)).fetchall())

        with contextlib.closing(self.connect()) as connection, using(connection):
            yield listen

    def close(self) -> None:
        super().close()
        with self._connection_lock:
            if self._connection is not None:
                self._connection.close()


class TenantLog:
    """The log of one tenant in either layout: every answer contains its head."""

    def __init__(self, database: OpenSchema[Any], tenant: str) -> None:
        self.database = database
        self.sql = database.address.sql
        self.checksums = Checksums(
            database.store_id, tenant, f"tenant {tenant} in {database.address.redacted}"
        )
        self.seen = Head(0, 0)
        self.id = Int4(database.ask(self.sql.open_log, tenant)[0][1])
        self.read(self.sql.head)

    def read(self, query: str, *values: object) -> tuple[int, int, list[Row]]:
        """Return head, floor and rows of one snapshot; record the head."""
        newest = self.seen.offset
        rows = self.database.ask(query, *values, self.id)
        if not rows:
            raise Corrupt(f"log {self.id} is missing", hint="restore the store from a copy")
        _, head, at, floor, *_ = rows[0]
        if head < newest:
            raise Corrupt(
                f"the log went back from {newest} to {head}", hint="check whether an old copy was restored"
            )
        self.see(Head(head, at))
        return head, floor, [row[4:] for row in rows if len(row) > 4 and row[4] is not None]

    def see(self, head: Head) -> None:
        """Record a head."""
        if head.offset > self.seen.offset:
            self.seen = head

    def tail(self, after: int, limit: int) -> list[Entry]:
        """Return entries after an offset."""
        head, floor, rows = self.read(self.sql.tail, Int8(after), Int8(limit))
        if after + 1 < floor:
            raise Trimmed(floor)
        return self.checksums.checked_page(rows, after, limit, head, floor)

    def wait(self, after: int, timeout: float) -> bool:
        """Wait for an entry after an offset."""
        return self.seen.offset > after or self.database.wait(self.id, after, timeout)

    def forget_below(self, floor: int) -> None:
        """Remove the entries below the floor in portions, because there may be millions."""
        portion = forgotten = FORGET_AT_ONCE
        while forgotten == portion:
            portions = (self.id, Int8(floor), Int8(portion), self.id)
            forgotten = self.database.ask(self.sql.forget, *portions, committing=True)[0][1]
