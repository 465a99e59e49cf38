"""Waking waiters of other processes: each binds a datagram socket in a private folder; a commit rings all.

A ring is a hint; polling, from 5 ms and slowing to 250 ms, is the net beneath it.
"""

import contextlib
import hashlib
import itertools
import os
import select
import socket
import stat
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

POLL_S_FIRST = 0.005
POLL_S_MOST = 0.25

_numbers = itertools.count(1)
"""Of this process, not of one doorbell: a store that is opened twice has two, in the same folder."""


class Doorbell:
    """The waiters of one store on this machine."""

    def __init__(self, store_path: Path) -> None:
        name = hashlib.sha256(os.fsencode(os.path.realpath(store_path))).hexdigest()[:16]
        self._folder = _runtime_folder() / name
        self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sender.setblocking(False)

    def ring(self) -> None:
        """Wake everybody who waits; remove what dead processes left behind."""
        try:
            names = os.listdir(self._folder)
        except OSError:
            return
        for name in names:
            path = str(self._folder / name)
            try:
                self._sender.sendto(b"!", path)
            except ConnectionRefusedError:
                with contextlib.suppress(OSError):
                    os.unlink(path)
            except OSError:  # its buffer is full, so it is awake already; or it has just gone
                continue

    def wait(self, come: Callable[[], bool], seconds: float) -> bool:
        """Wait until `come` holds, at most so long; return whether it does."""
        deadline = time.monotonic() + seconds
        name = f"{os.getpid()}-{next(_numbers)}"
        with contextlib.closing(_Bell(self._folder / name)) as bell:
            poll = select.poll()  # unlike select, it takes a process with thousands of open files
            poll.register(bell, select.POLLIN)
            pause = POLL_S_FIRST
            while not come():
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                if poll.poll(min(pause, left) * 1000):
                    bell.recv(16)
                    pause = POLL_S_FIRST
                else:
                    pause = min(pause * 2, POLL_S_MOST)
            return True

    def close(self) -> None:
        """Ring no more."""
        self._sender.close()


class _Bell(socket.socket):
    """A socket that takes its name away when it is closed; without a folder it never rings."""

    def __init__(self, path: Path) -> None:
        super().__init__(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.setblocking(False)
        self._path = path
        with contextlib.suppress(OSError):
            path.parent.mkdir(mode=0o700, exist_ok=True)
            self.bind(str(path))

    def close(self) -> None:
        super().close()
        with contextlib.suppress(OSError):
            os.unlink(self._path)


def _runtime_folder() -> Path:
    """Return a private folder with a short name (socket paths hold about 100 bytes)."""
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    folder = Path(base) / "coord" if base and len(base) < 40 else Path("/tmp") / f"coord-{os.getuid()}"  # noqa: S108 - checked below
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
    try:
        status = os.lstat(folder)
    except OSError:
        return Path(tempfile.gettempdir()) / "coord-nowhere"
    private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    return folder if private else Path(tempfile.gettempdir()) / "coord-nowhere"
