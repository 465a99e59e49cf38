"""Ends a command when this process dies, however it dies, and releases the locks that it ran under.

Two shells read a pipe to which nobody writes, so they reach its end when this process is gone. The first is
the leader of the process group that the command joins, and kills that group. It does so at once, because
another worker may get the task right after. The second one runs the program that waits until the group is
gone, and only then releases the locks (`release.py`).
"""

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Self

from coord.transports.cli.process import STANDARD_ERROR, STANDARD_INPUT, STANDARD_OUTPUT

_UNTIL_END = "trap '' TERM INT HUP QUIT USR1 USR2 TSTP TTIN TTOU; read -r end; "
_KILL = _UNTIL_END + "kill -s KILL 0"
_RELEASE = _UNTIL_END + 'exec "$@"'


class Watchdog:
    """Kills the process group that commands join when this process is gone; then runs `release` with its id.

    When the block ends, the group is killed as well, unless there is a `release`: a command that ran under
    locks may leave processes behind.
    """

    def __init__(self, release: Sequence[str] = (), environ: Mapping[str, str] | None = None) -> None:
        read, self._write = os.pipe()
        try:
            self.group = _spawn(read, _KILL)
            self._releaser = _spawn(read, _RELEASE, [*release, str(self.group)], environ) if release else 0
        finally:
            os.close(read)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._releaser:
            _end(self._releaser)
            os.kill(self.group, signal.SIGKILL)
        else:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.group, signal.SIGKILL)
        os.close(self._write)
        os.waitpid(self.group, 0)


def _spawn(
    read: int, script: str, arguments: Sequence[str] = (), environ: Mapping[str, str] | None = None
) -> int:
    return os.posix_spawn(
        "/bin/sh",
        ["sh", "-c", script, "sh", *arguments],
        {"PATH": os.defpath} if environ is None else environ,
        file_actions=[
            (os.POSIX_SPAWN_DUP2, read, STANDARD_INPUT),
            (os.POSIX_SPAWN_OPEN, STANDARD_OUTPUT, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, STANDARD_OUTPUT, STANDARD_ERROR),
        ],
        setpgroup=0,
    )


def _end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
