"""A courteous turn between processes: a short wait for a file lock keeps 32 of them from starving each other.

Correctness never rests on it: whoever does not get the lock in time goes on without.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator

from coord.stores.local.backoff import pause

WAIT_S = 0.2
PAUSE_S = 0.002


@contextlib.contextmanager
def courtesy_turn(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the lock file (never unlinked) if it can be had in a short time."""
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
    """Lock an open file against other processes; return whether that could be had in time."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            pause(PAUSE_S)  # flock cannot wait with a limit
        except OSError:  # it cannot be locked at all (closed, or the file system knows no locks)
            return False
