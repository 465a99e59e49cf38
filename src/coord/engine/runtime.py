"""What the engine takes from outside: time that passes, chance, and ids. Tests pass another."""

import os
import time
from typing import Protocol


class Runtime(Protocol):
    """The surroundings of an engine."""

    def monotonic(self) -> float: ...
    def sleep(self, seconds: float) -> None: ...
    def jitter(self, most: float) -> float: ...
    def commit_id(self) -> bytes: ...


class SystemRuntime:
    """The surroundings of a running process."""

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: TID251 - the one place where the engine lets time pass

    def jitter(self, most: float) -> float:
        from random import uniform  # slow to import, and most commands never have to give way

        return uniform(0, most)

    def commit_id(self) -> bytes:
        return os.urandom(12)
