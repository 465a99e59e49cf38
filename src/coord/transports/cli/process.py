"""Run a command in a separate process group, with the terminal if there is one."""

import errno
import os
import signal
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from coord.transports import exit_codes

GRACE_S = 10.0
STANDARD_INPUT, STANDARD_OUTPUT, STANDARD_ERROR = 0, 1, 2
NOT_EXECUTABLE, NO_COMMAND = 126, 127
"""The exit codes of shells for a command that cannot be started."""
# Signals that Python or coord ignores; the command gets the default.
_RESET = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTTOU)


class NotStarted(Exception):
    """The command does not exist or is not executable."""

    def __init__(self, command: str, reason: OSError) -> None:
        missing = reason.errno == errno.ENOENT
        self.exit_code = NO_COMMAND if missing else NOT_EXECUTABLE
        super().__init__(f"{command}: {os.strerror(reason.errno or 0)}")

    def failure(self, hint: str) -> exit_codes.Failure:
        """Return the failure to print."""
        return exit_codes.Failure(self.exit_code, "not_started", str(self), hint)


class Child:
    """A running command; when it ends, `ended` is set and `exit_code` is that of a shell.

    With `outputs`, its standard output and error go to these files, and it gets neither input nor terminal.
    `group` is the process group to join; by default it gets a new one. `on_end` is called when it has ended.
    """

    def __init__(
        self,
        command: list[str],
        environ: Mapping[str, str] | None = None,
        outputs: tuple[int, int] | None = None,
        group: int = 0,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        self.exit_code = 0
        self._on_end = on_end
        self.ended = threading.Event()
        self._has_terminal = outputs is None and _in_foreground()
        if self._has_terminal:
            # A background process that sets the foreground group gets SIGTTOU.
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            self.pid = os.posix_spawnp(
                command[0],
                command,
                os.environ if environ is None else environ,
                file_actions=() if outputs is None else _redirected(*outputs),
                setsigdef=_RESET,
                setpgroup=group,
            )
        except OSError as error:
            raise NotStarted(command[0], error) from error
        self._group = group or self.pid
        self._hand_over()
        threading.Thread(target=self._watch, daemon=True).start()

    def send(self, signum: int) -> None:
        """Send a signal to the command and its descendants."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._group, signum)

    def stop(self, grace_s: float | None = None) -> None:
        """Stop the command: SIGTERM, then SIGKILL after the grace period."""
        self.send(signal.SIGTERM)
        self.send(signal.SIGCONT)
        self.ended.wait(GRACE_S if grace_s is None else grace_s)
        self.send(signal.SIGKILL)
        self.ended.wait()

    def _watch(self) -> None:
        status = os.waitpid(self.pid, os.WUNTRACED)[1]
        while os.WIFSTOPPED(status):
            self._stop_too()
            status = os.waitpid(self.pid, os.WUNTRACED)[1]
        code = os.waitstatus_to_exitcode(status)
        self.exit_code = code if code >= 0 else 128 - code
        self._take_back()
        self.ended.set()
        self._on_end()

    def _stop_too(self) -> None:
        """Stop together with the command (Ctrl-Z), so that the shell shows its prompt."""
        if not self._has_terminal:
            return
        self._take_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._hand_over()

    def _hand_over(self) -> None:
        if self._has_terminal and _in_foreground():
            os.tcsetpgrp(STANDARD_INPUT, self._group)
            # It may have read the terminal too early and been stopped.
            self.send(signal.SIGCONT)

    def _take_back(self) -> None:
        if self._has_terminal and _foreground() == self._group:
            os.tcsetpgrp(STANDARD_INPUT, os.getpgrp())


def _redirected(out: int, error: int) -> list[Any]:
    return [
        (os.POSIX_SPAWN_OPEN, STANDARD_INPUT, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, out, STANDARD_OUTPUT),
        (os.POSIX_SPAWN_DUP2, error, STANDARD_ERROR),
    ]


def _in_foreground() -> bool:
    return _foreground() == os.getpgrp()


def _foreground() -> int | None:
    """Return the foreground process group of the terminal; None without a terminal."""
    try:
        return os.tcgetpgrp(STANDARD_INPUT)
    except OSError:
        return None
