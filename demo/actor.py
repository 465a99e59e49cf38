"""A running worker process, as the conductor holds it."""

import contextlib
import os
import signal
import subprocess
import time

import msgspec

from demo.plan import Fate
from demo.stage import Part
from demo.worker import Report


class Actor:
    """A worker process: what it says, and what is done to it."""

    def __init__(self, part: Part, command: list[str], folder: str, errors: int) -> None:
        self.part = part
        self.session = part.session
        self.fate: Fate | None = None
        self.was_frozen = False
        self.finished = False
        self.asks = False
        """Whether it waits for a nod."""
        self.asked_at = 0.0
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            # Ctrl-C must not reach it. A group of its own also means that the kernel ends it, frozen or not,
            # if the conductor itself is killed (a session of its own would leave it stopped for ever).
            process_group=0,
        )
        assert self.process.stdout is not None
        self.output = self.process.stdout
        self._rest = b""

    def reports(self) -> list[Report] | None:
        """Return what the worker has said since the last time, or None when it will say no more."""
        data = os.read(self.output.fileno(), 65_536)
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [msgspec.json.decode(line, type=Report) for line in lines]

    def ask(self) -> None:
        """It is half-way, and waits."""
        self.asks, self.asked_at = True, time.monotonic()

    def nod(self, word: str = "go on") -> None:
        """Let it go on; or, with `renew`, let it renew its lease and ask again."""
        self.asks = False
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{word}\n".encode())
            self.process.stdin.flush()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.asks = False

    def freeze(self) -> None:
        """Stop it where it waits: in no commit, so that it stands in nobody's way."""
        self.process.send_signal(signal.SIGSTOP)
        # Once it stands still, and not before, the kernel ends it should the conductor be killed.
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        self.asks, self.was_frozen = False, True

    def wake(self) -> None:
        self.fate = None
        self.nod()
        self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        """Kill the process if it runs (SIGKILL reaches stopped ones too), and reap it."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.output.close()
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
