"""A fair lock between processes: a short wait for a file lock keeps 32 of them from starving each other.

Correctness never depends on it: a process that does not get the lock in time goes on without it.
"""

import contextlib
import fcntl
import os
import time

from coord.stores.local.backoff import back_off

WAIT_S = 0.2
BACKOFF_S = 0.002


class FairLock:
    """A lock file, which is never unlinked; threads of one process share the lock.

    It stays open between uses, because opening a file takes longer than locking it.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = -1

    def __enter__(self) -> None:
        """Hold the lock if it becomes free within a short time."""
        if self._file < 0:
            with contextlib.suppress(OSError):
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
                self._file = os.open(self._path, flags, 0o600)
        if self._file >= 0:
            lock_within(self._file, WAIT_S)

    def __exit__(self, *_: object) -> None:
        if self._file >= 0:
            with contextlib.suppress(OSError):
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, -1
        if file >= 0:
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
