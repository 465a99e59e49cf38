"""Child processes of the tests: a program beside this file, heard line by line, killed at will."""

import select
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.fork_server import end, start

PATIENCE_S = 100
"""How long a child may be silent before the test fails."""


class Child:
    """One running program and what it has said so far."""

    def __init__(self, program: str, *arguments: str, under: tuple[str, ...] = ()) -> None:
        self.lines: list[str] = []
        self.process = start(f"tests.support.stores.{program}", *arguments, under=under, text=True)

    def hear(self) -> str:
        """Return the next line, or "" when it has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        if line:
            self.lines.append(line)
        return line

    def hear_until(self, word: str) -> None:
        """Listen until a line that begins with a word."""
        deadline = time.monotonic() + PATIENCE_S
        while line := self.hear():
            if line.split()[0] == word:
                return
            assert time.monotonic() < deadline, f"it never says {word!r}"
        raise AssertionError(f"it ended without saying {word!r}: {self.lines[-3:]}")

    def say(self, line: str) -> None:
        """Tell it something."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """SIGKILL, at this moment; then hear what it had said before."""
        self.process.kill()
        self.finish()

    def finish(self) -> int:
        """Hear it out and return its exit code."""
        while self.hear():
            pass
        return self.process.wait(PATIENCE_S)

    def silent(self, seconds: float) -> bool:
        """Whether it has nothing to say for so long."""
        assert self.process.stdout is not None
        return not select.select([self.process.stdout], [], [], seconds)[0]

    def close(self) -> None:
        """Leave nothing behind."""
        end(self.process, PATIENCE_S)


@contextmanager
def children(program: str, *arguments: tuple[str, ...], under: tuple[str, ...] = ()) -> Iterator[list[Child]]:
    """Run one child for each list of arguments; none outlives the block."""
    started: list[Child] = []
    try:
        started.extend(Child(program, *each, under=under) for each in arguments)
        yield started
    finally:
        for child in started:
            child.close()
