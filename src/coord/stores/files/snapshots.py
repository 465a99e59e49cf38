"""Snapshots of a files store, so that opening it need not replay the whole log.

A snapshot file is named by its offset and floor. It has a header line and then frames: the length of the
body, a SHA-256 of all bodies so far, and the body, which is one chunk of the snapshot.
"""

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator

import msgspec

from coord.core.errors import Corrupt
from coord.stores.contract import FORMAT
from coord.stores.files.folder import SNAPSHOT, TenantFolder
from coord.stores.local.fair_lock import lock_within
from coord.stores.log.snapshot import Snapshot, SnapshotId, chunks, state_of
from coord.stores.log.state import LogState

KEPT = 2
FRAME_BYTES = 64 * 1024 * 1024
HEADER = b"coord-snapshot %d\n" % FORMAT
LENGTH_BYTES = 4
HASH_BYTES = 32
NAME = re.compile(r"(\d{16})-(\d{16})")


class Snapshots:
    """The snapshots of one tenant."""

    def __init__(self, folder: TenantFolder) -> None:
        self._folder = folder
        self._layer = folder.layer

    def newest(self) -> SnapshotId | None:
        """Return the newest snapshot, or None."""
        with self._folder.opened("snapshots") as folder:
            return max(self._ids(folder), default=None)

    def _ids(self, folder: int) -> list[SnapshotId]:
        found = map(NAME.fullmatch, self._layer.names(folder))
        return [SnapshotId(int(name[1]), int(name[2])) for name in found if name]

    # Writing.

    def write(self, snapshot: Snapshot, timeout_s: float) -> int | None:
        """Make a snapshot durable and return its size; None if another process kept writing one."""
        with self._folder.opened("snapshots") as folder:
            if not lock_within(folder, timeout_s):
                return None
            with self._folder.written(SNAPSHOT, _encoded(snapshot)) as (name, size):
                with contextlib.suppress(FileExistsError):  # then it has the same content
                    self._layer.link(name, self._folder.tmp, _name(snapshot.id), folder)
                self._layer.sync_folder(folder)  # even if it existed: its writer may have died before this
            for id_ in sorted(self._ids(folder))[:-KEPT]:
                self._folder.remove(_name(id_), folder)
            return size

    def sync(self) -> None:
        """Make a snapshot durable that another process linked."""
        with self._folder.opened("snapshots") as folder:
            self._layer.sync_folder(folder)

    # Reading.

    def size(self, id_: SnapshotId) -> int:
        """Return the size of a snapshot; 0 if it was removed."""
        with self._opened(id_) as file:
            return 0 if file is None else self._layer.regular(file, _name(id_))

    def read(self, id_: SnapshotId) -> LogState | None:
        """Return the state of a snapshot; None if it was removed."""
        where = f"{self._folder.path}/snapshots/{_name(id_)}"
        with self._opened(id_) as file:
            if file is None:
                return None
            self._layer.regular(file, where)
            try:
                return state_of(id_, self._bodies(file))
            except (ValueError, msgspec.MsgspecError) as error:
                raise Corrupt(
                    f"{where} is damaged: {error}", hint="restore the folder from a copy; nothing was changed"
                ) from error

    @contextlib.contextmanager
    def _opened(self, id_: SnapshotId) -> Iterator[int | None]:
        with self._folder.opened("snapshots") as folder:
            try:
                file = self._layer.open(_name(id_), os.O_RDONLY | os.O_NONBLOCK, folder)
            except FileNotFoundError:
                yield None
                return
        try:
            yield file
        finally:
            self._layer.close(file)

    def _bodies(self, file: int) -> Iterator[bytes]:
        if self._exactly(file, len(HEADER)) != HEADER:
            raise ValueError("it is not a snapshot of this version")
        checksum = hashlib.sha256()
        while head := self._exactly(file, LENGTH_BYTES + HASH_BYTES):
            length = int.from_bytes(head[:LENGTH_BYTES])
            body = self._exactly(file, length) if length <= FRAME_BYTES else b""
            checksum.update(body)
            if head[LENGTH_BYTES:] != checksum.digest():
                raise ValueError("a checksum is wrong")
            yield body

    def _exactly(self, file: int, count: int) -> bytes:
        """Read `count` bytes; fewer only at the end of the file."""
        data = self._layer.read(file, count)
        while 0 < len(data) < count and (more := self._layer.read(file, count - len(data))):
            data += more
        return data


def _name(id_: SnapshotId) -> str:
    return f"{id_.offset:016d}-{id_.floor:016d}"


def _encoded(snapshot: Snapshot) -> Iterator[bytes]:
    checksum = hashlib.sha256()
    yield HEADER
    for body in chunks(snapshot):
        checksum.update(body)
        yield b"".join((len(body).to_bytes(LENGTH_BYTES), checksum.digest(), body))
