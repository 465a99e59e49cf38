"""Beginning and ending quickly: for programs that live for one question."""

import gc
import os
import sys
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

GARBAGE_THRESHOLD = 50_000
"""New objects after which garbage is looked for: a short command never does, one that waits for hours may."""


def begin() -> None:
    """Look for garbage rarely: modules that are being imported have none, and looking takes time."""
    gc.set_threshold(GARBAGE_THRESHOLD)


def import_msgspec() -> None:
    """Import msgspec without what it takes along, but does not need to read and write.

    `typing_extensions` alone costs as much as the start of Python itself; the others a fifth of msgspec.
    """
    if "msgspec" in sys.modules:
        return
    absent = [] if "typing_extensions" in sys.modules else ["typing_extensions"]
    later = [_Later(name) for name in _LATER if name not in sys.modules]
    sys.modules.update({module.__name__: module for module in later})
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]
    try:
        import msgspec  # noqa: F401, PLC0415 - this is the moment
    finally:
        for name in (*absent, *(module.__name__ for module in later)):
            sys.modules.pop(name, None)


_LATER = ("platform", "textwrap", "msgspec.inspect", "msgspec.toml", "msgspec.yaml")


class _Later(ModuleType):
    """Stands for a module until something of it is asked for."""

    def __getattr__(self, name: str) -> Any:
        if self.__name__ == "platform" and name == "system":  # all that `uuid` asks, and it asks at once
            return lambda: os.uname().sysname
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


def end(exit_code: int) -> NoReturn:
    """End this process without taking its modules apart one by one.

    All that has to be closed is closed by then, and every thread that matters has been waited for.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError, ValueError):  # nobody reads it any more
                stream.flush()
    os._exit(exit_code)
