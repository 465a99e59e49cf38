"""Result data from outside: checked and turned into JSON before a command is made of it."""

import math
from typing import Any

import msgspec

from coord.core.errors import Invalid
from coord.core.ids import shown

DEPTH_MAX = 64
VALUES_MAX = 1_000_000
"""Far more than a result may hold; without an end, data that contains itself twice would fill the memory."""
INT_MIN, INT_MAX = -(2**63), 2**64 - 1
"""Beyond these, other readers of JSON round or fail."""
HINT = "use dicts with string keys, lists, strings, numbers, booleans and None"
_PLAIN = (str, bool, type(None))


def to_json(what: str, data: Any) -> bytes:
    """Return the data as JSON; raise `Invalid` where it is not a JSON object or is nested too deep."""
    if not isinstance(data, dict):
        raise Invalid(f"{what} is a {type(data).__name__}, not a dict", hint="wrap it: {'value': …}")
    level: list[Any] = [data]
    values = 1
    for _ in range(DEPTH_MAX):
        values += sum(map(len, level))
        if values > VALUES_MAX:
            raise Invalid(f"{what} holds more than {VALUES_MAX} values, or contains itself", hint=HINT)
        level = [inner for outer in level for inner in _children(what, outer)]
        if not level:
            break
    else:
        raise Invalid(f"{what} is nested deeper than {DEPTH_MAX} levels, or contains itself", hint=HINT)
    try:
        return msgspec.json.encode(data)
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError, UnicodeError) as error:
        raise Invalid(f"{what} cannot be written as JSON: {error}", hint=HINT) from error


def _children(what: str, value: Any) -> list[Any]:
    """Return what is nested directly in a value; refuse what JSON cannot say."""
    if isinstance(value, dict):
        for key in value:
            if type(key) is not str:
                raise Invalid(f"{what} has the key {shown(key)}, which is not a string", hint=HINT)
        inner = list(value.values())
    elif isinstance(value, (list, tuple)):
        inner = list(value)
    else:
        return []
    for each in inner:
        if isinstance(each, float) and not math.isfinite(each):
            raise Invalid(f"{what} holds {each}, which JSON cannot say", hint=HINT)
        if isinstance(each, int) and not INT_MIN <= each <= INT_MAX:
            raise Invalid(f"{what} holds an integer of more than 64 bits", hint="write it as a string")
        if not isinstance(each, (*_PLAIN, int, float, dict, list, tuple)):
            raise Invalid(f"{what} holds a {type(each).__name__}, which JSON cannot say", hint=HINT)
    return [each for each in inner if isinstance(each, (dict, list, tuple))]
