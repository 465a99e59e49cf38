"""Keep every other process out of a SQLite file that may be damaged, while a repair replaces it.

SQLite could not lock such a file: it reads it first. So we take the locks that SQLite documents. The pending
byte of the file keeps out who opens it. In the -shm file, one byte keeps out writers, and one checkpoints,
which move the WAL into the file. Processes that have the file open can still read it.
"""

import contextlib
import fcntl
import os
import struct
import time
from collections.abc import Iterator

from coord.core.errors import Unavailable
from coord.stores.local.backoff import back_off
from coord.stores.local.folders import file_id

WAIT_S = 10.0
BACKOFF_S = 0.01
_PENDING = (0x40000000, 1)
_WRITE_AND_CHECKPOINT = (120, 2)


@contextlib.contextmanager
def excluded(path: str, expected: tuple[int, int] | None, wait_s: float = WAIT_S) -> Iterator[None]:
    """Keep others out of the file that `expected` identifies; refuse if the path has another one by now."""
    deadline = time.monotonic() + wait_s
    made = False
    with contextlib.ExitStack() as files:
        _lock(files, path, os.O_RDWR, _PENDING, deadline)
        if file_id(path) != expected:
            raise Unavailable(f"{path} was replaced by another process", hint="run coord doctor")
        made = not os.path.exists(f"{path}-shm")  # nobody has the file open, and nobody can open it now
        try:
            _lock(files, f"{path}-shm", os.O_RDWR | os.O_CREAT, _WRITE_AND_CHECKPOINT, deadline)
            yield
        finally:
            if made and file_id(path) == expected:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(f"{path}-shm")


def _lock(files: contextlib.ExitStack, path: str, flags: int, span: tuple[int, int], deadline: float) -> None:
    """Lock bytes of a file until the stack is closed."""
    file = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    files.callback(os.close, file)
    while True:
        try:
            lock_bytes(file, fcntl.F_WRLCK, *span)
            return
        except OSError as error:
            if not isinstance(error, BlockingIOError | PermissionError):
                raise
        if time.monotonic() > deadline:
            raise Unavailable(f"{path} is in use by another process", hint="try again")
        back_off(BACKOFF_S)


def lock_bytes(file: int, kind: int, start: int, size: int) -> None:
    """Lock as SQLite does; where possible so that closing another descriptor keeps the lock."""
    if hasattr(fcntl, "F_OFD_SETLK"):
        # type, whence, start, length, process: as in struct flock of Linux
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi0q", kind, os.SEEK_SET, start, size, 0))
    else:
        mode = fcntl.LOCK_SH if kind == fcntl.F_RDLCK else fcntl.LOCK_EX
        fcntl.lockf(file, mode | fcntl.LOCK_NB, size, start)
