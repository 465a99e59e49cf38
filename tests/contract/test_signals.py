"""What a signal leaves behind when it ends a call of a store in the middle: nothing."""

import sys
from pathlib import Path
from types import FrameType
from typing import Any

from coord.stores import contract
from coord.stores.contract import Store
from tests.support.stores.steps import head, write

STORES = str(Path(contract.__file__).parent)


class Signal(BaseException):
    """What the handler of a signal raises."""


def interrupted(store: Store, at: int) -> bool:
    """Write, but for a signal when the store's functions have returned so often; False if they never do."""
    left = at

    def trace(frame: FrameType, event: str, _arg: object) -> Any:
        nonlocal left
        if event == "return" and frame.f_code.co_filename.startswith(STORES):
            left -= 1
            if left == 0:
                sys.settrace(None)
                raise Signal
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        write(store, {"key": b"interrupted"})
    except Signal:
        return True
    finally:
        sys.settrace(before)
    return False


def test_after_a_signal_the_store_goes_on(store: Store) -> None:
    """DESIGN §6: who is told to end withdraws first, so the store must still take a commit, at any moment."""
    at = 1
    while interrupted(store, at):
        offset = head(store)
        write(store, {"key": b"next"})
        assert head(store) == offset + 1
        at += 1
    assert at > 3
