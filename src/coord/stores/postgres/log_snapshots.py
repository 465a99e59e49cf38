"""Snapshots of a log-structured store in Postgres: rows of chunks. Only one process writes one at a time."""

from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

import msgspec
from psycopg.types.numeric import Int4, Int8

from coord.core.errors import Corrupt
from coord.stores.log.snapshot import Snapshot, SnapshotId, chunks, state_of
from coord.stores.log.state import LogState
from coord.stores.postgres.arrays import Blobs
from coord.stores.postgres.connection import Connection, using
from coord.stores.postgres.database import TenantLog
from coord.stores.postgres.log_statements import LogStatements

SENT_BYTES = 1024 * 1024
READ_CHUNKS = 64


class Newest(NamedTuple):
    """The newest snapshot (None if there is none), its size, and the floor of the log."""

    id_: SnapshotId | None
    size: int
    floor: int


class Snapshots:
    """The snapshots of one tenant."""

    def __init__(self, log: TenantLog, sql: LogStatements) -> None:
        self._log = log
        self._sql = sql

    def newest(self) -> Newest:
        """Return the newest snapshot."""
        _, floor, rows = self._log.read(self._sql.newest)
        for offset, its_floor, size in rows:
            return Newest(SnapshotId(offset, its_floor), size, floor)
        return Newest(None, 0, floor)

    def read(self, id_: SnapshotId) -> LogState | None:
        """Return the state of a snapshot; None if a newer one replaced it."""
        try:
            return state_of(id_, self._chunks(id_))
        except (ValueError, msgspec.MsgspecError) as error:
            if self.newest().id_ != id_:
                return None
            raise Corrupt(
                f"the snapshot of offset {id_.offset} is damaged: {error}",
                hint="restore the store from a copy; nothing was changed",
            ) from error

    def _chunks(self, id_: SnapshotId) -> Iterator[bytes]:
        first = 0
        while True:
            page = Int8(id_.offset), Int8(first), Int8(READ_CHUNKS)
            _, _, rows = self._log.read(self._sql.chunks, *page)
            yield from (body for _, body in rows)
            if len(rows) < READ_CHUNKS:
                return
            first = rows[-1][0] + 1

    def write(self, snapshot: Snapshot, *, wait: bool) -> int:
        """Make a snapshot durable and return its size; 0 if it is not needed.

        It is not needed if another process wrote a newer one, or is writing one and `wait` is not set.
        """
        sql, log = self._sql, self._log.id
        lock = sql.lock_snapshots if wait else sql.try_lock_snapshots
        with closing(self._log.database.connect()) as connection, using(connection):
            if not connection.execute(lock, (log,)).fetchall()[0][0]:
                return 0
            # Use this connection: the other one may be closed already.
            newer = connection.execute(sql.snapshots_from, (log, Int8(snapshot.id.offset))).fetchall()
            if newer:
                return 0
            connection.execute(sql.drop_chunks, (log, log))  # of a writer that died
            size = write_snapshot(connection, sql, log, snapshot)
            connection.execute(sql.drop_snapshots, (log, log))
            connection.execute(sql.drop_chunks, (log, log))
            return size


def write_snapshot(connection: Connection, sql: LogStatements, log: int, snapshot: Snapshot) -> int:
    """Write all rows of a snapshot, last the row that makes it valid; return its size."""
    id_, sent, size, waiting = snapshot.id, 0, 0, Blobs()

    def send() -> None:
        nonlocal sent
        connection.execute(sql.add_chunks, (Int4(log), Int8(id_.offset), Int8(sent), waiting))
        sent += len(waiting)
        waiting.clear()

    unsent = 0
    for chunk in chunks(snapshot):
        waiting.append(chunk)
        size += len(chunk)
        unsent += len(chunk)
        if unsent >= SENT_BYTES:
            send()
            unsent = 0
    send()
    connection.execute(sql.add_snapshot, (Int4(log), Int8(id_.offset), Int8(id_.floor), Int8(size)))
    return size
