"""Processes of this machine: naming one so that it is never taken for another, and proving it dead.

A process is known by its pid, its start time, and where both mean something: the machine, its boot, and the
pid namespace. What cannot be told is unknown, and unknown never counts as dead. Only Linux can tell.
"""

import os
from functools import cache
from typing import NamedTuple

from coord.core.identity import Evidence, Process, ProcessState

PID_MAX = 2**22
"""The most that Linux can give."""

_ENDED = frozenset((b"Z", b"X", b"x"))


FIRST_NAMESPACE = "4026531836."
"""The inode of the pid namespace that Linux starts with."""


class Machine(NamedTuple):
    """Where pids and start times mean something; an empty part is unknown."""

    machine: str
    boot: str
    namespace: str


class _Stat(NamedTuple):
    state: bytes
    parent: int
    threads: int
    start: int


def this_machine() -> Machine:
    """Return which machine, boot and pid namespace this process lives in."""
    return Machine(_machine_id(), _boot_id(), _namespace())


def describe(pid: int) -> Process | None:
    """Return the process that has this pid now, or None where that cannot be told."""
    here = this_machine()
    stat = _read_stat(pid) if here.namespace else None
    return Process(pid, stat.start, *here) if stat else None


def ancestors(pid: int | None = None, most: int = 32) -> list[Process]:
    """Return the ancestors of a process (of this one), nearest first, as far as they can be told."""
    here = this_machine()
    stat = _read_stat(os.getpid() if pid is None else pid) if here.namespace else None
    found: list[Process] = []
    while stat and stat.parent > 0 and len(found) < most:
        parent = stat.parent
        stat = _read_stat(parent)
        if stat:
            found.append(Process(parent, stat.start, *here))
    return found


def seen_by_all(process: Process) -> bool:
    """Whether every process of this machine can tell if this one lives: it is where the machine began."""
    return process.namespace.startswith(FIRST_NAMESPACE)


def probe(process: Process) -> Evidence:
    """Say whether a process lives. Dead needs proof; being out of sight, or of another user, is none."""
    here = this_machine()
    for what, mine, its in zip(
        here._fields, here, (process.machine, process.boot, process.namespace), strict=True
    ):
        if not mine or mine != its:
            return Evidence(
                ProcessState.UNKNOWN, f"pid {process.pid} is of another {what}, or of an unknown one"
            )
    if not 0 < process.pid <= PID_MAX:
        return Evidence(ProcessState.UNKNOWN, f"{process.pid} is no pid")
    named = f"pid {process.pid} started {process.start}"
    stat = _read_stat(process.pid)
    if stat is None:
        return _probe_unseen(process.pid, named)
    if stat.start != process.start:
        return Evidence(ProcessState.DEAD, f"{named} is gone: the pid now has one started {stat.start}")
    if stat.state in _ENDED and stat.threads <= 1:  # a first thread that ended leaves its process running
        return Evidence(ProcessState.DEAD, f"{named} has ended and waits for its parent")
    return Evidence(ProcessState.ALIVE, f"{named} is running")


def _probe_unseen(pid: int, named: str) -> Evidence:
    """Judge a process that /proc does not show: it may be gone, or hidden (mount option hidepid)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return Evidence(ProcessState.DEAD, f"{named} is gone")
    except PermissionError:
        return Evidence(ProcessState.ALIVE, f"pid {pid} belongs to another user")
    except OSError:
        pass
    return Evidence(ProcessState.UNKNOWN, f"{named} cannot be looked at")


def _read_stat(pid: int) -> _Stat | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
        # The command's name stands in parentheses and may contain any of them.
        fields = text[text.rindex(b")") + 1 :].split()
        return _Stat(fields[0], int(fields[1]), int(fields[17]), int(fields[19]))
    except (OSError, ValueError, IndexError):
        return None


@cache
def _machine_id() -> str:
    return _line_of("/etc/machine-id") or _line_of("/var/lib/dbus/machine-id") or os.uname().nodename


@cache
def _boot_id() -> str:
    return _line_of("/proc/sys/kernel/random/boot_id")


def _namespace() -> str:
    """Return the namespace of pids and, since start times are shown shifted by it, of time."""
    try:
        if os.readlink("/proc/self") != str(os.getpid()):  # /proc of another namespace: its pids are not ours
            return ""
        pids = _inode_in(os.readlink("/proc/self/ns/pid"))
    except OSError:
        return ""
    try:
        return f"{pids}.{_inode_in(os.readlink('/proc/self/ns/time'))}"
    except OSError:  # before Linux 5.6
        return pids


def _inode_in(link: str) -> str:
    return link.partition("[")[2].rstrip("]")


def _line_of(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline(256).strip()
    except OSError:
        return ""
