"""Identify processes of this machine, and prove that one is dead.

A process is identified by its pid and start time, together with the machine, the boot and the pid namespace
in which these numbers have a meaning. Without proof a process counts as unknown, never as dead. Only Linux
gives proof.
"""

import os
from functools import cache
from typing import NamedTuple

from coord.core.identity import Evidence, Process, ProcessState
from coord.host.runtime.seen_files import once_per_hook

INIT = 1
"""The pid of the first process: everybody descends from it, and it never ends, so it is no session's."""
PID_MAX = 2**22
"""The largest pid that Linux gives out."""
STAT_BYTES = 4096
"""More than the kernel writes about a process."""
FIELDS_NEEDED = 20
"""The fields after the name, up to the time at which a process started."""

ADOPTERS = frozenset(
    (
        *(b"systemd", b"(sd-pam)", b"init", b"launchd", b"tini", b"dumb-init", b"docker-init", b"catatonit"),
        *(
            b"s6-svscan",
            b"runsvdir",
            b"supervisord",
            b"containerd-shim",
            b"conmon",
            b"cron",
            b"crond",
            b"atd",
        ),
        *(b"sshd", b"sshd-session", b"login", b"tmux: server", b"screen", b"SCREEN", b"zellij", b"Relay"),
    )
)
"""Programs that start or adopt the processes of a user. Sessions below one have nothing to do with each
other, and it outlives them, so it is never the process of a session."""

_ENDED = frozenset((b"Z", b"X", b"x"))


KILL_S = 5.0
"""How long a killed process may take to end."""

FIRST_NAMESPACE = "4026531836."
"""The inode of the first pid namespace of a Linux machine."""


class Machine(NamedTuple):
    """The scope in which pids and start times are unique; an empty part is unknown."""

    machine: str
    boot: str
    namespace: str


class _Stat(NamedTuple):
    name: bytes
    state: bytes
    parent: int
    group: int
    session: int
    threads: int
    start: int


class Relative(NamedTuple):
    """A process in a line of ancestors: its program, its process session, and its parent's pid."""

    process: Process
    name: bytes
    session: int
    parent: int

    @property
    def manages(self) -> bool:
        """Whether processes that have nothing to do with each other run below it."""
        return self.process.pid == INIT or self.name in ADOPTERS


def this_machine() -> Machine:
    """Return the machine, boot and pid namespace of this process."""
    return Machine(_machine_id(), _boot_id(), _namespace())


def describe(pid: int) -> Process | None:
    """Return the process that has this pid now, or None if it cannot be inspected."""
    here = this_machine()
    stat = _read_stat(pid) if here.namespace else None
    return Process(pid, stat.start, *here) if stat else None


def ancestors(pid: int | None = None, most: int = 32) -> list[Process]:
    """Return the ancestors of a process (default: this one) below its manager, nearest first."""
    return own_ancestors(lineage(pid, most))


def own_ancestors(line: list[Relative]) -> list[Process]:
    """Return the ancestors in a line, up to the first that manages the processes of others."""
    end = next((number for number, each in enumerate(line) if number and each.manages), len(line))
    return [each.process for each in line[1:end]]


def lineage(pid: int | None = None, most: int = 32) -> list[Relative]:
    """Return a process (default: this one) and its ancestors that can be inspected, nearest first."""
    here = this_machine()
    next_pid = os.getpid() if pid is None else pid
    found: list[Relative] = []
    while here.namespace and next_pid > 0 and len(found) <= most:
        stat = _read_stat(next_pid)
        if stat is None:
            break
        process = Process(next_pid, stat.start, *here)
        found.append(Relative(process, stat.name, stat.session, stat.parent))
        next_pid = stat.parent
    return found


def seen_by_all(process: Process) -> bool:
    """Whether every process of this machine can inspect this one: it is in the first pid namespace."""
    return process.namespace.startswith(FIRST_NAMESPACE)


def probe(process: Process) -> Evidence:
    """Return whether a process is alive, with evidence; a hidden or foreign one is not proven dead."""
    here = this_machine()
    for what, mine, its in zip(
        here._fields, here, (process.machine, process.boot, process.namespace), strict=True
    ):
        if not mine or mine != its:
            return Evidence(ProcessState.UNKNOWN, f"pid {process.pid} belongs to another or unknown {what}")
    if not 0 < process.pid <= PID_MAX:
        return Evidence(ProcessState.UNKNOWN, f"{process.pid} is not a pid")
    named = f"pid {process.pid} started {process.start}"
    stat = _read_stat(process.pid)
    if stat is None:
        return _probe_unseen(process.pid, named)
    if stat.start != process.start:
        return Evidence(
            ProcessState.DEAD, f"{named} is gone: its pid now belongs to one started {stat.start}"
        )
    if _has_ended(stat):
        return Evidence(ProcessState.DEAD, f"{named} has ended and is a zombie")
    if process.pid == INIT or stat.name in ADOPTERS:
        name = stat.name.decode("utf-8", "replace")
        return Evidence(ProcessState.FOREIGN, f"pid {process.pid} ({name}) runs no agent")
    return Evidence(ProcessState.ALIVE, f"{named} is running")


def group_runs(group: int) -> bool:
    """Return whether a process group has a process that still runs; the dead may stay in it for a while."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        stats = [_read_stat(int(name)) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return True
    if not any(stats):  # /proc shows nothing: only the signal counts
        return True
    return any(stat is not None and stat.group == group and not _has_ended(stat) for stat in stats)


def _has_ended(stat: _Stat) -> bool:
    # The first thread may end while its process keeps running.
    return stat.state in _ENDED and stat.threads <= 1


def end_process(process: Process, grace_s: float) -> bool:
    """End a process that is proven to be this one: SIGTERM, then SIGKILL; return whether it is gone.

    A file descriptor of the process keeps its pid from meaning another one between the proof and a signal.
    """
    import select  # noqa: PLC0415 - most programs end no process
    import signal  # noqa: PLC0415

    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        if probe(process).life is not ProcessState.ALIVE:
            return False
        ended = select.poll()
        ended.register(descriptor, select.POLLIN)
        for signum, patience_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, KILL_S)):
            signal.pidfd_send_signal(descriptor, signum)
            signal.pidfd_send_signal(descriptor, signal.SIGCONT)  # a stopped process gets no signal
            if ended.poll(patience_s * 1000):
                return True
    except OSError:  # it has ended, or belongs to somebody else
        return probe(process).life is ProcessState.DEAD
    finally:
        os.close(descriptor)
    return False


def _probe_unseen(pid: int, named: str) -> Evidence:
    """Return the evidence for a process that /proc does not show: gone, or hidden (mount option hidepid)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return Evidence(ProcessState.DEAD, f"{named} is gone")
    except PermissionError:
        return Evidence(ProcessState.ALIVE, f"pid {pid} belongs to another user")
    except OSError:
        pass
    return Evidence(ProcessState.UNKNOWN, f"{named} cannot be inspected")


def _read_stat(pid: int) -> _Stat | None:
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            text = os.read(file, STAT_BYTES)  # the kernel gives all of it at once
        finally:
            os.close(file)
        # The command name is in parentheses and may itself contain parentheses.
        end = text.rindex(b")")
        fields = text[end + 1 :].split(None, FIELDS_NEEDED)
        parent, group, session = (int(field) for field in fields[1:4])
        name = text[text.index(b"(") + 1 : end]
        return _Stat(name, fields[0], parent, group, session, int(fields[17]), int(fields[19]))
    except (OSError, ValueError, IndexError):
        return None


@cache
def _machine_id() -> str:
    return _line_of("/etc/machine-id") or _line_of("/var/lib/dbus/machine-id") or os.uname().nodename


@cache
def _boot_id() -> str:
    return _line_of("/proc/sys/kernel/random/boot_id")


@once_per_hook
def _namespace() -> str:
    """Return the pid namespace and the time namespace, which shifts the start times that we read."""
    try:
        if os.readlink("/proc/self") != str(os.getpid()):  # /proc belongs to another pid namespace
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
