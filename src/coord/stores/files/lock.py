"""A tenant's lock file. It is never unlinked, and it also holds the *mark*.

The mark says how far the log is durable, and the floor. It is written after every commit and never synced,
because it is only ever true: an offset is marked when its entry is on disk. So a reader

- that meets an entry beyond the mark makes it durable itself before it shows it to anybody (its writer is
  about to, or died): who saw an offset will find it there after a power cut;
- that finds no entry where the mark says there is one knows that the log was trimmed beneath it, or damaged;
- learns the floor that another process has set.

In a store that was moved it also says where to, and whoever asks for the lock is refused.
"""

import contextlib
import errno
import fcntl
import os
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from coord.core.errors import Corrupt, Unavailable
from coord.stores.files.io import FileLayer
from coord.stores.local.fair_lock import lock_within
from coord.stores.migration import migrated_error

WAIT_S = 5.0
WATERMARK_BYTES_MAX = 4096
TORN_TRIES = 5


class Watermark(NamedTuple):
    """Entries up to `head` are durable, those below `floor` are removed; `migrated_to` is the new url."""

    head: int
    floor: int
    migrated_to: str = ""


NO_WATERMARK = Watermark(0, 0)


class LockFile:
    """The lock and the mark of one tenant, whose name is in it: no folder passes for another."""

    def __init__(self, layer: FileLayer, home: int, tenant: str) -> None:
        self._layer = layer
        self._tenant = tenant.encode()
        self._process = os.getpid()
        self._bytes = b""
        self._watermark: Watermark | None = None
        self._file, self.writable = self._open(home)
        try:
            layer.regular(self._file, "lock")
            self.watermark()
        except BaseException:
            self.close()
            raise

    def _open(self, home: int) -> tuple[int, bool]:
        try:
            return self._layer.open("lock", os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, home), True
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
                raise
            return self._layer.open("lock", os.O_RDONLY | os.O_NONBLOCK, home), False

    @contextlib.contextmanager
    def held(self, seconds: float = WAIT_S, *, migrating: bool = False) -> Iterator[None]:
        """Hold the lock against all other processes; in a store that was moved, only who moves it gets it."""
        if not self.writable:
            raise Unavailable("the folder is read-only for this process", hint="check its owner")
        if os.getpid() != self._process:
            raise Unavailable("the store was opened before a fork", hint="open it anew in the child")
        if not lock_within(self._file, seconds):
            raise Unavailable(f"another process has held the lock for {seconds:g} s", hint="is it stopped?")
        try:
            watermark = self.watermark()
            if watermark is not None and watermark.migrated_to and not migrating:
                raise migrated_error(watermark.migrated_to)
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def watermark(self) -> Watermark | None:
        """Return the newest mark; None where there is none yet, or a power cut has damaged it."""
        for _ in range(TORN_TRIES):  # somebody may be writing it at this moment
            found = self._layer.read_at(self._file, WATERMARK_BYTES_MAX, 0)
            if found == self._bytes:
                return self._watermark
            watermark = self._read(found)
            if watermark is not None:
                self._bytes, self._watermark = found, watermark
                return watermark
        return None

    def _read(self, found: bytes) -> Watermark | None:
        text, _, check = found.rstrip(b"\n").rpartition(b" ")
        if check != _check(text):
            return None
        head, floor, tenant, *url = text.split(b" ")
        if tenant != self._tenant:
            raise Corrupt(
                f"the folder of tenant {self._tenant.decode()} was made for tenant {tenant.decode()}",
                hint="somebody moved it, or the file system does not tell upper from lower case",
            )
        return Watermark(int(head), int(floor), b" ".join(url).decode())

    def write(self, watermark: Watermark) -> None:
        """Say how far the log is durable; only ever while the lock is held, and when it is true."""
        text = b"%016d %016d %s" % (watermark.head, watermark.floor, self._tenant)
        if watermark.migrated_to:
            text += b" " + watermark.migrated_to.encode()
        data = b"%s %s\n" % (text, _check(text))
        data = data.ljust(len(self._bytes), b"\n")  # what was there may be longer
        self._layer.write_at(self._file, data, 0)
        self._bytes, self._watermark = data, watermark

    def sync(self) -> None:
        """Make the mark durable, which only who moves a store needs."""
        self._layer.sync_file(self._file)

    def check_place(self) -> None:
        """Refuse to go on in a folder that was removed or replaced."""
        if not self._layer.status(self._file).st_nlink:
            raise Corrupt("the store was removed while it was open", hint="close it, and look what is there")

    def close(self) -> None:
        self._layer.close(self._file)


def _check(text: bytes) -> bytes:
    return b"%08x" % zlib.crc32(text)
