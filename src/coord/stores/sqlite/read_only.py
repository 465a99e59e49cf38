"""Read a SQLite file that this process may not write, as in a sandbox.

SQLite reads a file with a WAL through the -shm file. A process that cannot create the -shm file can only use
one that exists: another process has the file open, or was killed. If there is none, the last process that
closed the file moved the WAL into it, so the file is the whole state, and SQLite can read it as `immutable`.
Before a process removes the WAL and the -shm file, it needs an exclusive lock on the file. We hold a shared
one, so from the first process that opens the file on, the -shm file stays and we notice it.
"""

import errno
import fcntl
import os
import sqlite3

from coord.core.errors import Unavailable
from coord.stores.local.backoff import back_off
from coord.stores.local.exclusion import lock_bytes
from coord.stores.local.filesystem import READ_ONLY_HINT
from coord.stores.urls import quoted

TRIES = 40
BACKOFF_S = 0.05
_SHARED_FIRST, _SHARED_SIZE = 0x40000002, 510
"""The bytes that SQLite locks for a reader."""
_BUSY = (errno.EACCES, errno.EAGAIN)


class Reader:
    """Opens a file for reading, and notices when its connection would read old pages."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = -1
        self._status: tuple[int, int] = (0, 0)
        self._problem = ""

    def connect(self) -> sqlite3.Connection:
        """Return a connection that reads the newest state."""
        self.close()
        for _ in range(TRIES):
            if os.path.exists(f"{self._path}-shm"):
                found = self._connect("mode=ro")
            else:
                found = self._connect("immutable=1") if self._lock_closed_file() else None
            if found is not None:
                return found
            self.close()
            back_off(BACKOFF_S)
        raise Unavailable(
            f"{self._path} cannot be read here: {self._problem}",
            hint="try again; check who may read its folder",
        )

    def error(self) -> Unavailable:
        """Return the error for a change of this file."""
        return Unavailable(f"{self._path} is read-only here; nothing was changed", hint=READ_ONLY_HINT)

    def is_outdated(self) -> bool:
        """Whether another process has opened the file since, so that its WAL counts."""
        return self._file >= 0 and os.path.exists(f"{self._path}-shm")

    def check(self) -> None:
        """Refuse what was read if the file changed at the same time."""
        if self.is_outdated() and self._now() != self._status:
            raise Unavailable(f"{self._path} changed while it was read", hint="try again")

    def close(self) -> None:
        """Give up the shared lock."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def _connect(self, how: str) -> sqlite3.Connection | None:
        """Return a connection; None if the files have changed since we looked."""
        found = sqlite3.connect(
            f"file:{quoted(self._path)}?{how}",
            uri=True,
            timeout=0.05,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            found.execute("SELECT count(*) FROM sqlite_master").fetchone()  # from now on it holds a lock
        except sqlite3.OperationalError as error:
            found.close()
            if error.sqlite_errorname.startswith(("SQLITE_CANTOPEN", "SQLITE_BUSY", "SQLITE_READONLY")):
                self._problem = str(error)
                return None
            raise
        except sqlite3.Error:
            found.close()
            raise
        return found

    def _lock_closed_file(self) -> bool:
        """Take a shared lock on a file without a WAL; return whether it was free and has none."""
        self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            lock_bytes(self._file, fcntl.F_RDLCK, _SHARED_FIRST, _SHARED_SIZE)
        except OSError as error:
            if error.errno not in _BUSY:
                raise
            self._problem = "another process is closing it"
            return False
        self._status = self._now()
        if os.path.exists(f"{self._path}-shm"):
            return False
        if os.path.exists(f"{self._path}-wal") and os.path.getsize(f"{self._path}-wal"):
            raise Unavailable(
                f"{self._path}-wal has changes that only a process with write access can read",
                hint="outside of the sandbox, run coord status once",
            )
        return True

    def _now(self) -> tuple[int, int]:
        status = os.fstat(self._file)
        return status.st_mtime_ns, status.st_size
