"""Beginning and ending quickly: for programs that live for one question."""

import gc
import os
import sys
from contextlib import suppress
from typing import NoReturn

GARBAGE_THRESHOLD = 50_000
"""New objects after which garbage is looked for: a short command never does, one that waits for hours may."""


def begin() -> None:
    """Look for garbage rarely: modules that are being imported have none, and looking takes time."""
    gc.set_threshold(GARBAGE_THRESHOLD)


def import_msgspec() -> None:
    """Import msgspec without `typing_extensions`, which it takes where it is installed, but does not need.

    It and what it imports in turn cost as much as the start of Python itself.
    """
    if "msgspec" in sys.modules or "typing_extensions" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    try:
        import msgspec  # noqa: F401, PLC0415 - this is the moment
    finally:
        del sys.modules["typing_extensions"]


def end(exit_code: int) -> NoReturn:
    """End this process without taking its modules apart one by one.

    All that has to be closed is closed by then, and every thread that matters has been waited for.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError, ValueError):  # nobody reads it any more
                stream.flush()
    os._exit(exit_code)
