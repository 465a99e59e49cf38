"""Histories of real processes: what each wrote down while it worked, and the operations in it."""

import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from coord.core.commands import Command
from coord.core.errors import Busy, Unavailable, Unknown
from tests.linearizability.answers import answer, operation
from tests.linearizability.task_model import Op


class Recorder:
    """Writes down each operation before it begins and after it ends; a kill loses nothing of it."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note_time(self, now: int) -> int:
        """Write down what the clock showed; return it."""
        self._write({"now": now})
        return now

    def run(self, call: Callable[[Command], Any], command: Command) -> Any:
        """Carry out a command; None where nothing is known of it or nothing happened."""
        asked = asdict(operation(command))
        self._write({"op": asked, "begin": time.monotonic_ns()})
        try:
            reply = call(command)
        except Unknown:
            return None
        except (Busy, Unavailable):
            self._write({"nothing": True})
            return None
        self._write({"end": time.monotonic_ns(), "answer": answer(reply)})
        return reply

    def _write(self, line: dict[str, Any]) -> None:
        os.write(self._file, json.dumps(line).encode() + b"\n")


def read(paths: Iterable[Path]) -> list[Op]:
    """All operations of all processes; what began and was never answered is unknown."""
    ops: list[Op] = []
    for path in paths:
        mine: list[Op] = []
        for text in path.read_text().splitlines():
            _add(mine, json.loads(text))
        ops += mine
    for op in ops:
        op.nows = list(op.nows) or [None]
    return ops


def _add(ops: list[Op], line: dict[str, Any]) -> None:
    if "op" in line:
        ops.append(Op(**{**line["op"], "begin": line["begin"], "nows": []}))
    elif "now" in line:
        assert isinstance(ops[-1].nows, list)
        ops[-1].nows.append(line["now"])
    elif "nothing" in line:
        ops.pop()
    else:
        ops[-1].end, ops[-1].answer = line["end"], _tuple(line["answer"])


def _tuple(value: Any) -> Any:
    return tuple(_tuple(part) for part in value) if isinstance(value, list) else value
