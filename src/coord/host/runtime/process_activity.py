"""How much the processes of a session have done: what the kernel counts for a process and those below it.

Only processes of this machine that are proven to be the ones meant are counted. Linux counts; elsewhere
nothing is known. What another user's process reads and writes is not visible and counts as 0.
"""

import os
from collections.abc import Iterable

from coord.core.alerts.commands import SessionSample, WatchedProcess
from coord.core.alerts.schema import Sample
from coord.core.identity import ProcessState
from coord.host.processes import STAT_BYTES, probe

TICK_MS = 1000 // os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 10
TREE_MAX = 4096
"""How many processes below one are counted."""


class _Counted:
    """One line of /proc/PID/stat: the parent, the ticks with those of ended children, and the start."""

    __slots__ = ("parent", "start", "ticks")

    def __init__(self, text: bytes) -> None:
        fields = text[text.rindex(b")") + 2 :].split()
        self.parent = int(fields[1])
        self.ticks = sum(int(each) for each in fields[11:15])
        self.start = int(fields[19])


def take_samples(watched: Iterable[WatchedProcess]) -> tuple[SessionSample, ...]:
    """Return a sample for each process that runs here."""
    here = [each for each in watched if probe(each.process).life is ProcessState.ALIVE]
    if not here:
        return ()
    counted = _all_processes()
    below: dict[int, list[int]] = {}
    for pid, each in counted.items():
        below.setdefault(each.parent, []).append(pid)
    return tuple(
        SessionSample(each.session_id, each.process, _sample(_tree(each.process.pid, below), counted))
        for each in here
        if each.process.pid in counted
    )


def _all_processes() -> dict[int, _Counted]:
    found = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                found[int(name)] = _Counted(_read(f"/proc/{name}/stat"))
            except (OSError, ValueError, IndexError):
                continue
    return found


def _tree(root: int, below: dict[int, list[int]]) -> list[int]:
    """Return a process and all below it."""
    found = [root]
    for pid in found:
        if len(found) > TREE_MAX:
            break
        found += below.get(pid, ())
    return found


def _sample(pids: list[int], counted: dict[int, _Counted]) -> Sample:
    numbers = [_transfers(pid) for pid in pids]
    return Sample(
        TICK_MS * sum(counted[pid].ticks for pid in pids),
        sum(read for read, _ in numbers),
        sum(written for _, written in numbers),
        len(pids),
        max(counted[pid].start for pid in pids),
    )


def _transfers(pid: int) -> tuple[int, int]:
    """Return the bytes that a process has read, from anything, and has written to files."""
    try:
        lines = _read(f"/proc/{pid}/io").splitlines()
        values = {name: int(value) for name, _, value in (line.partition(b": ") for line in lines)}
    except (OSError, ValueError):
        return 0, 0
    return values.get(b"rchar", 0), values.get(b"write_bytes", 0)


def _read(path: str) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(file, STAT_BYTES)
    finally:
        os.close(file)
