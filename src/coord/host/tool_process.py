"""Find the process of the tool that runs a hook, and notice a hook whose tool is gone.

A hook that outlives its tool gets another parent: the first process of the machine, a service manager, or
any process that adopts orphans. That parent is an ancestor like any other, and nothing in /proc says that it
adopted the hook. So a process counts as the tool only with a proof that it started this hook: it says so,
it made the socket from which the hook reads, it reads what the hook writes, or it bears the tool's name.
Without a proof the session has no process: its locks expire by time, and nobody is mistaken for it.

The death of a wrong process would free the locks of a tool that is alive. So a program that only passes its
standard input on to the hook (a shell, `env`, `timeout`, `uv run`) is never the tool.
"""

import os
import stat
from select import POLLERR, POLLHUP, poll
from typing import NamedTuple

from coord.core.identity import Process
from coord.host.processes import INIT, Relative, lineage, own_ancestors
from coord.host.runtime.hub_socket import maker_of

SHELLS = frozenset(
    (
        *(b"sh", b"bash", b"dash", b"zsh", b"ksh", b"mksh", b"ash", b"fish", b"busybox", b"env", b"timeout"),
        *(b"nice", b"nohup", b"setsid", b"stdbuf", b"time", b"xargs", b"sudo", b"su", b"doas", b"script"),
        *(b"uv", b"uvx", b"pipx", b"direnv", b"mise", b"asdf"),
    )
)
"""Programs that may run between a tool and its hook."""


class ToolProcess(NamedTuple):
    """The tool above a hook: its process if that is proven, and the ancestors of the hook."""

    process: Process | None = None
    ancestors: tuple[Process, ...] = ()
    gone: bool = False
    """Whether the tool has ended: nobody waits for the answer, and nothing may happen in its name."""


class OtherHook(NamedTuple):
    """The hook of another process, for which a hub looks for the tool."""

    pid: int
    makers: frozenset[int] = frozenset()
    """The processes that made the sockets which are its standard streams; only the hook can ask."""


def find_tool(tool: str, named_pid: str = "", parent: int = 0, hook: OtherHook | None = None) -> ToolProcess:
    """Return the process of the tool that runs this hook, or the hook of another process.

    `named_pid` is the pid that the tool gives its hooks, `parent` the hook's parent when it started.
    """
    line = lineage(None if hook is None else hook.pid)
    above = tuple(own_ancestors(line))
    if not line and hook is not None:
        return ToolProcess(gone=True)
    if (parent and (os.getppid() if hook is None else line[0].parent) != parent) or (
        hook is None and _nobody_reads()
    ):
        return ToolProcess(None, above, gone=True)
    for child, each in zip(line, line[1:], strict=False):  # noqa: RUF007 - itertools costs an import
        if child.session not in (each.session, child.process.pid):
            return ToolProcess(None, above, gone=True)  # it did not begin a session, so it was adopted
        if each.process.pid == INIT:  # a tool may be the first process of a container
            return ToolProcess(None, above, gone=not _is_tool(each, tool, named_pid, hook))
        if each.manages:
            return ToolProcess(None, above, gone=True)
        if str(each.process.pid) != named_pid and _passes_on(each, hook):
            continue
        return ToolProcess(each.process if _is_tool(each, tool, named_pid, hook) else None, above)
    return ToolProcess(None, above)


def _nobody_reads() -> bool:
    """Whether whoever was to read the answer of this hook is gone."""
    try:
        if not stat.S_ISFIFO(os.fstat(1).st_mode) and not stat.S_ISSOCK(os.fstat(1).st_mode):
            return False
        reader = poll()
        reader.register(1, 0)
        return any(event & (POLLERR | POLLHUP) for _, event in reader.poll(0))
    except OSError:
        return False


def _passes_on(each: Relative, hook: OtherHook | None) -> bool:
    """Whether a process runs between the tool and its hook: a shell, or one with the same input."""
    if each.name in SHELLS:
        return True
    try:
        own = _stream(0, hook)
        return (stat.S_ISFIFO(own.st_mode) or stat.S_ISSOCK(own.st_mode)) and os.path.samestat(
            own, os.stat(f"/proc/{each.process.pid}/fd/0")
        )
    except OSError:
        return False


def _is_tool(each: Relative, tool: str, named_pid: str, hook: OtherHook | None) -> bool:
    """Whether a process is proven to be the tool that started this hook."""
    pid = each.process.pid
    if str(pid) == named_pid or tool.encode() in each.name:
        return True
    ends = _ends(hook)
    return pid in ends.makers or (bool(ends.pipes) and _has_other_end(pid, ends.pipes))


class _Ends(NamedTuple):
    """The standard streams of a hook: who made its sockets, and its pipes with the other end's mode."""

    makers: set[int]
    pipes: dict[tuple[int, int], int]


def _stream(fd: int, hook: OtherHook | None) -> os.stat_result:
    return os.fstat(fd) if hook is None else os.stat(f"/proc/{hook.pid}/fd/{fd}")


def _ends(hook: OtherHook | None) -> _Ends:
    makers, pipes = set[int](() if hook is None else hook.makers), dict[tuple[int, int], int]()
    for fd, other in ((0, stat.S_IWUSR), (1, stat.S_IRUSR), (2, stat.S_IRUSR)):
        try:
            found = _stream(fd, hook)
            if stat.S_ISFIFO(found.st_mode):
                pipes[found.st_dev, found.st_ino] = other
            elif hook is None and stat.S_ISSOCK(found.st_mode):
                makers.add(maker_of(fd))
        except OSError:
            continue
    return _Ends(makers, pipes)


def _has_other_end(pid: int, pipes: dict[tuple[int, int], int]) -> bool:
    """Whether a process has the other end of one of these pipes; links in /proc show the mode of an end."""
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    for name in names:
        try:
            found = os.stat(f"{folder}/{name}")
            mode = pipes.get((found.st_dev, found.st_ino))
            if mode is not None and os.lstat(f"{folder}/{name}").st_mode & mode:
                return True
        except OSError:
            continue
    return False
