"""A running worker process, as the conductor controls it."""

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
    """A worker process: reads its reports, and kills, freezes or wakes it."""

    def __init__(self, part: Part, command: list[str], folder: str, errors: int) -> None:
        self.part = part
        self.session = part.session
        self.fate: Fate | None = None
        self.was_frozen = False
        self.finished = False
        self.asks = False
        """Whether the worker waits for a nod of the conductor."""
        self.asked_at = 0.0
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            # Ctrl-C must not reach the worker. With a separate process group the kernel also ends it, frozen
            # or not, if the conductor is killed; a worker in a separate session would stay stopped for ever.
            process_group=0,
        )
        assert self.process.stdout is not None
        self.output = self.process.stdout
        self._rest = b""

    def reports(self) -> list[Report] | None:
        """Return the reports since the last call, or None if the worker has closed its output."""
        data = os.read(self.output.fileno(), 65_536)
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [msgspec.json.decode(line, type=Report) for line in lines]

    def ask(self) -> None:
        """Note that the worker is half-way through a task and waits for a nod."""
        self.asks, self.asked_at = True, time.monotonic()

    def nod(self, word: str = "go on") -> None:
        """Let the worker continue; with `renew`, let it renew its lease and ask again."""
        self.asks = False
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(f"{word}\n".encode())
            self.process.stdin.flush()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.asks = False

    def freeze(self) -> None:
        """Stop the worker while it waits for a nod: it is in no commit, so it blocks nobody."""
        self.process.send_signal(signal.SIGSTOP)
        # The kernel ends it with the conductor only if it has really stopped, so wait for that.
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        self.asks, self.was_frozen = False, True

    def wake(self) -> None:
        self.fate = None
        self.nod()
        self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        """Kill the process if it still runs (SIGKILL also reaches a stopped one), and reap it."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.output.close()
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
