"""What was made for one reader and serves the next, within a limit."""

from collections.abc import Callable
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

TENANTS_MAX = 32
"""For how many tenants of a store such things are remembered."""


def recently_used(known: dict[Key, Value], key: Key, make: Callable[[], Value], most: int) -> Value:
    """Return a value, made if it is not known; of more than `most` the one that was not used longest goes."""
    found = known.pop(key) if key in known else make()
    known[key] = found  # the newest last
    while len(known) > most:
        del known[next(iter(known))]
    return found
