"""The lock file of a tenant. It is never unlinked, and it contains the *watermark*.

The watermark is the newest offset that is known to be durable, and the floor. It is written after every
commit and never synced, because it is always true: an entry is on disk before the watermark names it. So a
reader

- that finds an entry above the watermark syncs it before it returns it (its writer is about to do so, or
  died): an offset that somebody saw is still there after a power failure;
- that finds no entry at or below the watermark knows that the log was trimmed or damaged;
- learns the floor that another process set.

In a migrated store it also contains the new url, and nobody but the migration gets the lock.
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
from coord.stores.local.filesystem import READ_ONLY_HINT
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
    """The lock and the watermark of one tenant. It has the tenant's name, so folders cannot be swapped."""

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
        """Hold the lock against all other processes; in a migrated store only with `migrating`."""
        if not self.writable:
            raise Unavailable("the store is read-only here; nothing was changed", hint=READ_ONLY_HINT)
        if os.getpid() != self._process:
            raise Unavailable("the store was opened before a fork", hint="open it again in the child")
        if not lock_within(self._file, seconds):
            raise Unavailable(
                f"another process has held the lock for {seconds:g} s",
                hint="check whether that process is stopped",
            )
        try:
            watermark = self.watermark()
            if watermark is not None and watermark.migrated_to and not migrating:
                raise migrated_error(watermark.migrated_to)
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def watermark(self) -> Watermark | None:
        """Return the newest watermark; None if there is none yet, or a power failure damaged it."""
        for _ in range(TORN_TRIES):  # another process may be writing it
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
                hint="the folder was renamed, or the file system ignores upper and lower case",
            )
        return Watermark(int(head), int(floor), b" ".join(url).decode())

    def write(self, watermark: Watermark) -> None:
        """Write the watermark. The caller holds the lock, and the entries up to `head` are durable."""
        text = b"%016d %016d %s" % (watermark.head, watermark.floor, self._tenant)
        if watermark.migrated_to:
            text += b" " + watermark.migrated_to.encode()
        data = b"%s %s\n" % (text, _check(text))
        data = data.ljust(len(self._bytes), b"\n")  # the old watermark may be longer
        self._layer.write_at(self._file, data, 0)
        self._bytes, self._watermark = data, watermark

    def sync(self) -> None:
        """Make the watermark durable; only a migration needs this."""
        self._layer.sync_file(self._file)

    def check_present(self) -> None:
        """Refuse to use a folder that was removed or replaced."""
        if not self._layer.status(self._file).st_nlink:
            raise Corrupt("the store was removed while it was open", hint="close it and check the folder")

    def close(self) -> None:
        self._layer.close(self._file)


def _check(text: bytes) -> bytes:
    return b"%08x" % zlib.crc32(text)
