"""Snapshots of a files store: the whole fold as of an offset, so that opening need not read the whole log.

A snapshot is named by its offset and its floor. It is a line, then frames: the length of the body, a SHA-256
of all bodies so far, and the body, which is a piece of the image.
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
        """Return the newest snapshot there is."""
        with self._folder.opened("snapshots") as folder:
            return max(self._places(folder), default=None)

    def _places(self, folder: int) -> list[SnapshotId]:
        found = map(NAME.fullmatch, self._layer.names(folder))
        return [SnapshotId(int(name[1]), int(name[2])) for name in found if name]

    # Writing.

    def write(self, snapshot: Snapshot, patience_s: float) -> int | None:
        """Make a snapshot durable and return its size; None if some process was writing one all the time."""
        with self._folder.opened("snapshots") as folder:
            if not lock_within(folder, patience_s):
                return None
            with self._folder.written(SNAPSHOT, _encoded(snapshot)) as (name, size):
                with contextlib.suppress(FileExistsError):  # then it is the same state
                    self._layer.link(name, self._folder.tmp, _name(snapshot.id), folder)
                self._layer.sync_folder(folder)  # also if it was there: its writer may have died before this
            for place in sorted(self._places(folder))[:-KEPT]:
                self._folder.remove(_name(place), folder)
            return size

    def sync(self) -> None:
        """Make a snapshot durable that somebody else has linked."""
        with self._folder.opened("snapshots") as folder:
            self._layer.sync_folder(folder)

    # Reading.

    def size(self, place: SnapshotId) -> int:
        """Return how large a snapshot is; 0 if it is gone."""
        with self._opened(place) as file:
            return 0 if file is None else self._layer.regular(file, _name(place))

    def read(self, place: SnapshotId) -> LogState | None:
        """Return the fold of a snapshot; None if it is gone."""
        where = f"{self._folder.path}/snapshots/{_name(place)}"
        with self._opened(place) as file:
            if file is None:
                return None
            self._layer.regular(file, where)
            try:
                return state_of(place, self._bodies(file))
            except (ValueError, msgspec.MsgspecError) as error:
                raise Corrupt(
                    f"{where} is damaged: {error}", hint="restore the folder from a copy; nothing was changed"
                ) from error

    @contextlib.contextmanager
    def _opened(self, place: SnapshotId) -> Iterator[int | None]:
        with self._folder.opened("snapshots") as folder:
            try:
                file = self._layer.open(_name(place), os.O_RDONLY | os.O_NONBLOCK, folder)
            except FileNotFoundError:
                yield None
                return
        try:
            yield file
        finally:
            self._layer.close(file)

    def _bodies(self, file: int) -> Iterator[bytes]:
        if self._exactly(file, len(HEADER)) != HEADER:
            raise ValueError("it is no snapshot of this version")
        checksum = hashlib.sha256()
        while head := self._exactly(file, LENGTH_BYTES + HASH_BYTES):
            length = int.from_bytes(head[:LENGTH_BYTES])
            body = self._exactly(file, length) if length <= FRAME_BYTES else b""
            checksum.update(body)
            if head[LENGTH_BYTES:] != checksum.digest():
                raise ValueError("a checksum is wrong")
            yield body

    def _exactly(self, file: int, count: int) -> bytes:
        """Read so many bytes; fewer only at the end of the file."""
        data = self._layer.read(file, count)
        while 0 < len(data) < count and (more := self._layer.read(file, count - len(data))):
            data += more
        return data


def _name(place: SnapshotId) -> str:
    return f"{place.offset:016d}-{place.floor:016d}"


def _encoded(snapshot: Snapshot) -> Iterator[bytes]:
    checksum = hashlib.sha256()
    yield HEADER
    for body in chunks(snapshot):
        checksum.update(body)
        yield b"".join((len(body).to_bytes(LENGTH_BYTES), checksum.digest(), body))
