"""What the engine takes from its surroundings: sleep, jitter and ids. Tests pass their own."""

import os
import time
from typing import Protocol


class Runtime(Protocol):
    """Time that passes, randomness and ids for an engine."""

    def monotonic(self) -> float: ...
    def sleep(self, seconds: float) -> None: ...
    def jitter(self, limit: float) -> float: ...
    def commit_id(self) -> bytes: ...


class SystemRuntime:
    """The runtime of a real process."""

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: TID251 - the one place where the engine lets time pass

    def jitter(self, limit: float) -> float:
        from random import uniform  # slow to import, and most commands never wait

        return uniform(0, limit)

    def commit_id(self) -> bytes:
        return os.urandom(12)
