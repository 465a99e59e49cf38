"""Waking waiters in other processes: each binds a datagram socket in a private folder; a commit notifies all.

A notification is a hint: waiters also poll, first after 5 ms and then less and less often, up to 250 ms.

The socket module is imported only to wait or to wake: most commands do neither.
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
POLL_S_MAX = 0.25
RUNTIME_CHARS_MAX = 60
"""The path of a socket may have about a hundred bytes."""
NOWHERE = os.devnull
"""In place of a folder: it can contain nothing."""

_numbers = itertools.count(1)
"""Numbers of this process, not of one object: a store that is opened twice uses the same folder twice."""


class Wakeup:
    """The waiters of one store on this machine."""

    def __init__(self, store_path: str | os.PathLike[str]) -> None:
        self._store_path = os.path.realpath(store_path)

    @cached_property
    def _folder(self) -> str:
        """The folder with the sockets of the waiters."""
        # If two stores have the same checksum, some waiters are woken for nothing.
        return f"{_runtime_folder()}/{crc32(os.fsencode(self._store_path)):08x}"

    @cached_property
    def _sender(self) -> "socket.socket":
        return _datagram_socket()

    def notify(self) -> None:
        """Wake all waiters, and remove the sockets of dead processes."""
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
            except OSError:  # its buffer is full, so it is awake already; or it has just ended
                continue

    def wait(self, has_come: Callable[[], bool], seconds: float) -> bool:
        """Wait until `has_come()` is true, for at most `seconds`; return whether it is."""
        deadline = time.monotonic() + seconds
        name = f"{os.getpid()}-{next(_numbers)}"
        with _bound_socket(f"{self._folder}/{name}") as receiver:
            poll = select.poll()  # unlike select, it works in a process with thousands of open files
            poll.register(receiver, select.POLLIN)
            interval = POLL_S_FIRST
            while not has_come():
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                if poll.poll(min(interval, left) * 1000):
                    receiver.recv(16)
                    interval = POLL_S_FIRST
                else:
                    interval = min(interval * 2, POLL_S_MAX)
            return True

    def close(self) -> None:
        """Close the socket that sends notifications."""
        if "_sender" in vars(self):  # a waiter was notified
            self._sender.close()


@contextlib.contextmanager
def _bound_socket(path: str) -> Iterator["socket.socket"]:
    """Yield a socket bound to this path; without a folder for it, it never receives anything."""
    with contextlib.closing(_datagram_socket()) as receiver:
        with contextlib.suppress(OSError):
            with contextlib.suppress(FileExistsError):
                os.mkdir(os.path.dirname(path), mode=0o700)
            receiver.bind(path)
        try:
            yield receiver
        finally:
            with contextlib.suppress(OSError):
                os.unlink(path)


def _datagram_socket() -> "socket.socket":
    import socket

    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.setblocking(False)
    return made


def _runtime_folder() -> str:
    """Return a private folder with a short path; `host/runtime/hub_socket.py` has the same rule."""
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    folder = f"{base}/coord" if base and len(base) < RUNTIME_CHARS_MAX else f"/tmp/coord-{os.getuid()}"  # noqa: S108 - checked below
    with contextlib.suppress(OSError):
        os.mkdir(folder, mode=0o700)
    try:
        status = os.lstat(folder)
    except OSError:
        return NOWHERE
    private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    return folder if private else NOWHERE
