"""The output of `coord work`: JSON lines in a pipe; on a terminal sentences and a status line."""

import os
import sys
import threading
import time

from coord.core.messages.quoting import visible
from coord.sdk.worker.work import Work
from coord.sdk.worker.worker import WorkerEvent
from coord.transports import arguments
from coord.transports.cli import output

REDRAW_S = 1.0
ERASE = b"\r\x1b[K"
SENTENCES = {
    "waiting": "Waiting: {note}",
    "claimed": "Claimed {task_id}, generation {generation}: {note}",
    "submitted": "{task_id} is done ✓ {note}",
    "failed": "{task_id} failed: {note}",
    "limited": "{task_id} is released, rate limit: {note}",
    "given_back": "{task_id} is released: {note}",
    "lost": "{task_id} is lost, nothing was submitted: {note}",
}


class Screen:
    """Prints the steps of a worker and the output of its commands; thread-safe."""

    def __init__(self) -> None:
        self._as_json = output.form() == "json"
        self._moves = output.is_terminal(sys.stderr)
        self._lock = threading.Lock()
        self._at_line_start = True
        self._drawn = False
        self._next_draw = 0.0
        self._phase = ""

    def on_event(self, step: WorkerEvent) -> None:
        """Show a step."""
        self._phase = step.note if step.event == "progress" else ""
        with self._lock:
            self._erase()
            if step.event in SENTENCES:
                output.say(SENTENCES[step.event].format(**step._asdict()).rstrip(": "))
            if self._as_json:
                fields = {name: value for name, value in step._asdict().items() if value}
                output.show_line(fields)

    def pass_on(self, data: bytes) -> None:
        """Write the output of a command unchanged."""
        with self._lock:
            self._erase()
            self._write(data)
            self._at_line_start = data.endswith(b"\n")

    def draw(self, work: Work, since: float) -> None:
        """Redraw the status line: the task, its time, its renewals."""
        now = time.monotonic()
        if not self._moves or now < self._next_draw:
            return
        self._next_draw = now + REDRAW_S
        parts = [work.task_id, arguments.span(now - since), f"renewed {work.renewals}×", self._phase]
        with self._lock:
            if self._at_line_start:
                shown = visible(" · ".join(filter(None, parts)))
                self._write(ERASE + shown[: output.width(sys.stderr) - 1].encode())
                self._drawn = True

    def _erase(self) -> None:
        if self._drawn:
            self._write(ERASE)
            self._drawn = False

    def _write(self, data: bytes) -> None:
        if sys.stderr is None:
            return
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(sys.stderr.fileno(), left) :]
        except (OSError, ValueError):
            return  # stderr is closed
