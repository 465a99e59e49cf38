"""A program that is killed while it hands in a large result: `sender.py URL CALLS`.

It claims the task, and dies before the CALLS-th time that it asks the store for anything.
"""

import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

from coord import TaskCoordinator
from coord.core.commands import Command

NAMES = ("acme", "shop", "A-001-large")


def large(size: int) -> dict[str, str]:
    """Return a result that takes exactly so many bytes as JSON."""
    unit = "".join(f"{number:05d}" for number in range(10_007))  # no two chunks are alike
    return {"text": (unit * (size // len(unit) + 1))[: size - len('{"text":""}')]}


def main() -> None:
    url, calls = sys.argv[1], int(sys.argv[2])
    tasks = TaskCoordinator.open(url)
    claim = tasks.claim_task(*NAMES, "ann", "ann-1", 30).claim
    assert claim is not None
    engine = tasks.engine(NAMES[0])
    real, made = engine._call_all, 0

    def counted(commands: Sequence[Command], timeout: float, command_id: str, origin: bytes = b"") -> Any:
        nonlocal made
        made += 1
        if made == calls:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(commands, timeout, command_id, origin)

    engine._call_all = counted  # type: ignore[method-assign]
    tasks.submit_result(*NAMES, "ann-1", claim.generation, large(4_000_000), command_id="once")


if __name__ == "__main__":
    main()
