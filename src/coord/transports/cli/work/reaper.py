"""Nothing that a command started outlives its task, nor us: orphans come to us, a watchdog looks on."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Self

from coord.transports.cli.process import STANDARD_ERROR, STANDARD_INPUT, STANDARD_OUTPUT

_SET_CHILD_SUBREAPER = 36
"""Linux: whoever loses its parent below us becomes our child, so that it can be found."""
KILL_S = 5.0
_WATCH = "trap '' TERM INT HUP QUIT; read -r end; kill -s KILL 0"
"""Nobody writes to it: it comes to the end of its input when we are gone, however we ended.

No grace: whoever sees that we are dead may have the task the next moment.
"""


class Watchdog:
    """A process whose group a command joins, and which ends that group when we are gone; a block."""

    def __init__(self) -> None:
        read, self._write = os.pipe()
        self.group = os.posix_spawn(
            "/bin/sh",
            ["sh", "-c", _WATCH],
            {"PATH": os.defpath},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, read, STANDARD_INPUT),
                (os.POSIX_SPAWN_OPEN, STANDARD_OUTPUT, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_DUP2, STANDARD_OUTPUT, STANDARD_ERROR),
            ],
            setpgroup=0,
        )
        os.close(read)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.group, signal.SIGKILL)
        os.close(self._write)
        os.waitpid(self.group, 0)


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
