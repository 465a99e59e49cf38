"""Nothing that a command started outlives its task, nor us: orphans come to us, a watchdog looks on."""

import math
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Self

from coord.transports.cli.child import STANDARD_ERROR, STANDARD_INPUT, STANDARD_OUTPUT

_SET_CHILD_SUBREAPER = 36
"""Linux: whoever loses its parent below us becomes our child, so that it can be found."""
KILL_S = 5.0
_WATCH = """
read -r group || exit 0
read -r end && exit 0
kill -s TERM -- "-$group"
left=$1
while [ "$left" -gt 0 ] && kill -s 0 -- "-$group"; do sleep 1; left=$((left - 1)); done
kill -s KILL -- "-$group"
"""
"""Told the process group, and later that all is well; hearing nothing more without that, we were killed."""


class Watchdog:
    """A process that ends a process group if we are killed outright; a block around its time."""

    def __init__(self, grace_s: float) -> None:
        read, self._write = os.pipe()
        nothing = (os.POSIX_SPAWN_OPEN, STANDARD_OUTPUT, os.devnull, os.O_WRONLY, 0)
        self.pid = os.posix_spawn(
            "/bin/sh",
            ["sh", "-c", _WATCH, "sh", str(math.ceil(grace_s))],
            {"PATH": os.defpath},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, read, STANDARD_INPUT),
                nothing,
                (os.POSIX_SPAWN_DUP2, STANDARD_OUTPUT, STANDARD_ERROR),
            ],
            setpgroup=0,
        )
        os.close(read)
        self._watches = False

    def watch(self, group: int) -> None:
        """End this process group when we are gone."""
        self._watches = True
        self._tell(f"{group}\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: object, _trace: TracebackType | None
    ) -> None:
        if self._watches:
            self._tell("end\n")
        os.close(self._write)
        os.waitpid(self.pid, 0)

    def _tell(self, line: str) -> None:
        with suppress(OSError):  # somebody killed it; then there is nobody to tell
            os.write(self._write, line.encode())


@contextmanager
def adopting_orphans() -> Iterator[None]:
    """Be the parent of all that is left behind below us for a while, where the system offers that."""
    _be_subreaper(1)
    try:
        yield
    finally:
        _be_subreaper(0)


def _be_subreaper(whether: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, whether, 0, 0, 0)


def end_orphans(spared: set[int]) -> None:
    """Kill whatever is our child, except some, until there is none: each may leave others behind."""
    until = time.monotonic() + KILL_S
    while (found := children() - spared) and time.monotonic() < until:
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def children() -> set[int]:
    """Return our children, those of every thread; none where the kernel does not tell."""
    found: set[int] = set()
    with suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            with suppress(OSError), open(f"/proc/self/task/{thread}/children", encoding="ascii") as file:
                found.update(map(int, file.read().split()))
    return found
