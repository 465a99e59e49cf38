"""Check result data and encode it as JSON."""

import math
from typing import Any

import msgspec

from coord.core.errors import Invalid
from coord.core.ids import short_repr

DEPTH_MAX = 64
VALUES_MAX = 1_000_000
"""More than a result can hold. Without this limit, data that contains itself twice would fill the memory."""
INT_MIN, INT_MAX = -(2**63), 2**64 - 1
"""Other JSON readers round larger integers, or fail."""
HINT = "use dicts with string keys, lists, strings, numbers, booleans and None"
_PLAIN = frozenset((str, bool, type(None)))
"""Types that JSON can always represent; nearly all values have one of them."""


def to_json(what: str, data: Any) -> bytes:
    """Return the data as JSON; raise `Invalid` if it is not a JSON object or is nested too deep."""
    if not isinstance(data, dict):
        raise Invalid(f"{what} is a {type(data).__name__}, not a dict", hint="wrap it: {'value': …}")
    level: list[Any] = [data]
    values = 1
    for _ in range(DEPTH_MAX):
        deeper: list[Any] = []
        for outer in level:
            values += len(outer)
            if values > VALUES_MAX:
                raise Invalid(f"{what} holds more than {VALUES_MAX} values, or contains itself", hint=HINT)
            deeper += _children(what, outer)
        if not deeper:
            break
        level = deeper
    else:
        raise Invalid(f"{what} is nested deeper than {DEPTH_MAX} levels, or contains itself", hint=HINT)
    try:
        return msgspec.json.encode(data)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, UnicodeError) as error:
        raise Invalid(f"{what} cannot be written as JSON: {error}", hint=HINT) from error


def _children(what: str, value: dict[Any, Any] | list[Any] | tuple[Any, ...]) -> list[Any]:
    """Return the containers directly inside a value; reject values that JSON cannot represent."""
    if isinstance(value, dict):
        for key in value:
            if type(key) is not str:
                raise Invalid(f"{what} has the key {short_repr(key)}, which is not a string", hint=HINT)
    nested: list[Any] = []
    for each in value.values() if isinstance(value, dict) else value:
        if type(each) in _PLAIN:
            continue
        if isinstance(each, (dict, list, tuple)):
            nested.append(each)
        elif isinstance(each, int):
            if not INT_MIN <= each <= INT_MAX:
                raise Invalid(f"{what} holds an integer of more than 64 bits", hint="write it as a string")
        elif isinstance(each, float):
            if not math.isfinite(each):
                raise Invalid(f"{what} holds {each}, which JSON cannot represent", hint=HINT)
        elif not isinstance(each, str):
            raise Invalid(f"{what} holds a {type(each).__name__}, which JSON cannot represent", hint=HINT)
    return nested
