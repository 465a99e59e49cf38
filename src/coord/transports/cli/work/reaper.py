"""Ends every process that a command started, when its task ends."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_SET_CHILD_SUBREAPER = 36
"""Linux: orphaned descendants become our children, so that we can find them."""
KILL_S = 5.0


@contextmanager
def adopting_orphans() -> Iterator[None]:
    """Adopt orphaned descendants during a block, where the system supports it."""
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
    """Kill all children except `spared` until none is left; each may leave others behind."""
    until = time.monotonic() + KILL_S
    while (found := children() - spared) and time.monotonic() < until:
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def children() -> set[int]:
    """Return the children of all threads; none where the kernel does not list them."""
    found: set[int] = set()
    with suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            with suppress(OSError), open(f"/proc/self/task/{thread}/children", encoding="ascii") as file:
                found.update(map(int, file.read().split()))
    return found
