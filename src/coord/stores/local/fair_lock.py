"""A fair lock between processes: a short wait for a file lock keeps 32 of them from starving each other.

Correctness never depends on it: a process that does not get the lock in time goes on without it.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator

from coord.stores.local.backoff import back_off

WAIT_S = 0.2
BACKOFF_S = 0.002


@contextlib.contextmanager
def fair_lock(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the lock file, which is never unlinked, if it becomes free within a short time."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        yield
        return
    try:
        lock_within(file, WAIT_S)
        yield
    finally:
        os.close(file)


def lock_within(file: int, seconds: float) -> bool:
    """Lock an open file against other processes; return whether that succeeded in time."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            back_off(BACKOFF_S)  # flock has no timeout
        except OSError:  # the file is closed, or its file system has no locks
            return False
