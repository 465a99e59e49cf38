"""A migration that dies: before the n-th of its steps the process is killed, or in this process all is over.

As a program: `tests.support.programs.migrate_and_die FOLDER URL STEP` migrates the
repository in FOLDER and kills itself before the step.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from coord.host.store_location import move_pin
from coord.sdk.admin import migrate as module
from coord.stores.open import migrator as real

STEPS = ("set_metadata", "seal", "clear", "add", "begin")
FILE_STEPS = (
    "link",
    "replace",
    "unlink",
    "make_folder",
    "write_file",
    "write_at",
    "sync_file",
    "sync_folder",
)


class Over(BaseException):
    """What a killed process would never see."""


def over() -> None:
    raise Over


class Doom:
    """Counts steps; from one of them on, nothing is done any more."""

    def __init__(self, before: int, die: Callable[[], None]) -> None:
        self.steps = 0
        self._before = before
        self._die = die

    def on(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, counted."""

        def counted(*arguments: Any, **named: Any) -> Any:
            self.steps += 1
            if self.steps >= self._before:
                self._die()
            return function(*arguments, **named)

        return counted


def doomed(doom: Doom, patch: Callable[[Any, str, Any], None]) -> None:
    """Let a migration count its steps: all that a migrator changes, and the pin."""

    def migrator(database: Any) -> Any:
        made = real(database)
        for name in STEPS:
            setattr(made, name, doom.on(getattr(made, name)))
        return made

    patch(module, "migrator", migrator)
    patch(module, "move_pin", doom.on(move_pin))


def main() -> None:
    folder, url, step = sys.argv[1:]
    doomed(Doom(int(step), lambda: os.kill(os.getpid(), signal.SIGKILL)), setattr)
    module.PAGE_RECORDS = 10
    module.migrate(url, cwd=folder)


if __name__ == "__main__":
    main()
