"""Waking waiters of other processes: each binds a datagram socket in a private folder; a commit rings all.

A ring is a hint; polling, from 5 ms and slowing to 250 ms, is the net beneath it.

Sockets are imported by who waits or has somebody to wake: most commands do neither.
"""

import contextlib
import itertools
import os
import select
import stat
import time
from binascii import crc32
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

POLL_S_FIRST = 0.005
POLL_S_MOST = 0.25
NOWHERE = os.devnull
"""In place of a folder: there can be nothing in it."""

_numbers = itertools.count(1)
"""Of this process, not of one doorbell: a store that is opened twice has two, in the same folder."""


class Doorbell:
    """The waiters of one store on this machine."""

    def __init__(self, store_path: str | os.PathLike[str]) -> None:
        self._store_path = os.path.realpath(store_path)

    @cached_property
    def _folder(self) -> str:
        """Where the waiters' sockets are."""
        # If two stores should ever share one, somebody is woken for nothing.
        return f"{_runtime_folder()}/{crc32(os.fsencode(self._store_path)):08x}"

    @cached_property
    def _sender(self) -> "socket.socket":
        return _datagram_socket()

    def ring(self) -> None:
        """Wake everybody who waits; remove what dead processes left behind."""
        try:
            names = os.listdir(self._folder)
        except OSError:
            return
        for name in names:
            path = f"{self._folder}/{name}"
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
        with _bell(f"{self._folder}/{name}") as bell:
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
        if "_sender" in vars(self):  # somebody was rung
            self._sender.close()


@contextlib.contextmanager
def _bell(path: str) -> Iterator["socket.socket"]:
    """Give a socket that can be rung by this name; without a folder for it, it never rings."""
    with contextlib.closing(_datagram_socket()) as bell:
        with contextlib.suppress(OSError):
            with contextlib.suppress(FileExistsError):
                os.mkdir(os.path.dirname(path), mode=0o700)
            bell.bind(path)
        try:
            yield bell
        finally:
            with contextlib.suppress(OSError):
                os.unlink(path)


def _datagram_socket() -> "socket.socket":
    import socket

    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.setblocking(False)
    return made


def _runtime_folder() -> str:
    """Return a private folder with a short name (socket paths hold about 100 bytes)."""
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    folder = f"{base}/coord" if base and len(base) < 40 else f"/tmp/coord-{os.getuid()}"  # noqa: S108 - checked below
    with contextlib.suppress(OSError):
        os.mkdir(folder, mode=0o700)
    try:
        status = os.lstat(folder)
    except OSError:
        return NOWHERE
    private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    return folder if private else NOWHERE
