"""A terminal for a program under test: what is typed, what is shown, whether it stopped or ended."""

import os
import pty
import select
import sys
import termios
import time
from collections.abc import Callable

DEADLINE_S = 60.0
LINES = 24


class Terminal:
    """A Python program on a terminal of its own, as if a person had started it in a new window."""

    def __init__(
        self,
        *argv: str,
        env: dict[str, str] | None = None,
        cwd: str | None = None,
        columns: int = 0,
        lines: int = LINES,
        show_stderr: bool = True,
    ) -> None:
        """`columns`, `lines`: the size; `show_stderr=False` drops what the program writes to stderr."""
        self.shown = ""
        self.pid, self._screen = pty.fork()
        if self.pid == 0:
            if columns:
                termios.tcsetwinsize(0, (lines, columns))
            if not show_stderr:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            if cwd:
                os.chdir(cwd)
            os.execve(sys.executable, [sys.executable, *argv], env or dict(os.environ))

    def type(self, text: str) -> None:
        os.write(self._screen, text.encode())

    def resize(self, columns: int, lines: int = LINES) -> None:
        """Change the size, as a person does who drags the window."""
        termios.tcsetwinsize(self._screen, (lines, columns))

    def forget(self) -> None:
        """Let the next `wait_for` see only what comes from now on."""
        self.shown = ""

    def wait_for(self, text: str) -> None:
        """Read on until a text has been shown."""
        self.wait_until(lambda shown: text in shown, repr(text))

    def wait_until(self, seen: Callable[[str], object], what: str = "it") -> None:
        """Read on until what has been shown fulfils a condition."""
        until = time.monotonic() + DEADLINE_S
        while not seen(self.shown):
            ready, _, _ = select.select([self._screen], [], [], until - time.monotonic())
            assert ready, f"{what} was not shown, but {self.shown!r}"
            try:
                self.shown += os.read(self._screen, 4096).decode(errors="replace")
            except OSError:  # the other end is closed: Linux answers EIO
                assert seen(self.shown), f"{what} was not shown, but {self.shown!r}"
                return

    def wait_for_stop(self) -> None:
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    def close(self) -> int:
        """Close the window; return what the program ended with."""
        os.close(self._screen)
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)

    def exit_code(self) -> int:
        """Read what is left, and return what the program ended with."""
        try:
            while piece := os.read(self._screen, 4096):
                self.shown += piece.decode(errors="replace")
        except OSError:
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self._screen)
        return os.waitstatus_to_exitcode(status)
