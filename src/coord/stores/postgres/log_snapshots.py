"""Snapshots of a log in Postgres: an image in rows of their own. Who writes one keeps others from it."""

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
    """The newest snapshot (None if there is none), its size, and the floor of the log at that moment."""

    place: SnapshotId | None
    size: int
    floor: int


class Snapshots:
    """The snapshots of one tenant."""

    def __init__(self, log: TenantLog, sql: LogStatements) -> None:
        self._log = log
        self._sql = sql

    def newest(self) -> Newest:
        """Return the newest snapshot there is."""
        _, floor, rows = self._log.read(self._sql.newest)
        for offset, its_floor, size in rows:
            return Newest(SnapshotId(offset, its_floor), size, floor)
        return Newest(None, 0, floor)

    def read(self, place: SnapshotId) -> LogState | None:
        """Return the fold of a snapshot; None if a newer one has replaced it."""
        try:
            return state_of(place, self._chunks(place))
        except (ValueError, msgspec.MsgspecError) as error:
            if self.newest().place != place:
                return None
            raise Corrupt(
                f"the snapshot of offset {place.offset} is damaged: {error}",
                hint="restore the store from a copy; nothing was changed",
            ) from error

    def _chunks(self, place: SnapshotId) -> Iterator[bytes]:
        first = 0
        while True:
            page = Int8(place.offset), Int8(first), Int8(READ_CHUNKS)
            _, _, rows = self._log.read(self._sql.chunks, *page)
            yield from (body for _, body in rows)
            if len(rows) < READ_CHUNKS:
                return
            first = rows[-1][0] + 1

    def write(self, snapshot: Snapshot, *, patient: bool) -> int:
        """Make a snapshot durable and return its size; 0 if there was no need to.

        There is none where another process has a newer one, or is writing one and nobody is patient.
        """
        sql, log = self._sql, self._log.id
        lock = sql.lock_snapshots if patient else sql.try_lock_snapshots
        with closing(self._log.database.connect()) as connection, using(connection):
            if not connection.execute(lock, (log,)).fetchall()[0][0]:
                return 0
            # On this connection: the other may be closed already, and then this is the last that is done.
            newer = connection.execute(sql.snapshots_from, (log, Int8(snapshot.id.offset))).fetchall()
            if newer:
                return 0
            connection.execute(sql.drop_chunks, (log, log))  # what a writer that died has left
            size = write_image(connection, sql, log, snapshot)
            connection.execute(sql.drop_snapshots, (log, log))
            connection.execute(sql.drop_chunks, (log, log))
            return size


def write_image(connection: Connection, sql: LogStatements, log: int, snapshot: Snapshot) -> int:
    """Write all rows of a snapshot, the one that makes it valid last; return its size."""
    place, sent, size, waiting = snapshot.id, 0, 0, Blobs()

    def send() -> None:
        nonlocal sent
        connection.execute(sql.add_chunks, (Int4(log), Int8(place.offset), Int8(sent), waiting))
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
    connection.execute(sql.add_snapshot, (Int4(log), Int8(place.offset), Int8(place.floor), Int8(size)))
    return size
