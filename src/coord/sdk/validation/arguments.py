"""Check single arguments: texts, numbers, durations, capabilities."""

import re
from collections.abc import Mapping
from typing import Any

from coord.core.errors import Invalid
from coord.core.ids import short_repr
from coord.sdk.validation.results import to_json

LINE_CHARS_MAX = 500
SUBJECT_CHARS_MAX = 200
BODY_BYTES_MAX, BROADCAST_BYTES_MAX = 64 * 1024, 8 * 1024
BLOB_BYTES_MAX = 32 * 1024
PRIORITY_MAX = 100
HOPS_MAX = 2**16
LIMIT_MAX = 2**31
DURATION_S_MAX = 30 * 24 * 3600.0
CAPABILITIES_MAX = 50
EFFICIENCY_MAX = 10
_CAPABILITY = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}"
_KIND = r"[a-z][a-z0-9_.-]{0,31}"


def one_line(what: str, text: object, limit: int = LINE_CHARS_MAX) -> str:
    """Return a text that is one line of printable characters."""
    if not isinstance(text, str) or len(text) > limit or not text.isprintable():
        raise Invalid(
            f"the {what} is not one line of printable characters", hint=f"use at most {limit} characters"
        )
    return text


def body(text: object, *, broadcast: bool) -> str:
    """Return the body of a message: any text within the size limit."""
    limit = BROADCAST_BYTES_MAX if broadcast else BODY_BYTES_MAX
    try:
        size = len(text.encode()) if isinstance(text, str) else -1
    except UnicodeEncodeError:
        size = -1
    if not isinstance(text, str) or size < 0 or "\0" in text:
        raise Invalid("the body is not text", hint="use UTF-8 without NUL, or put the data into a file")
    if size > limit:
        raise Invalid(
            f"the body has {size} bytes; the limit is {limit}", hint="put it into a file and send the path"
        )
    return text


def kind(text: object) -> str:
    """Return the kind of a message; any word of this form is one."""
    if isinstance(text, str) and re.fullmatch(_KIND, text):
        return text
    raise Invalid(
        f"{short_repr(text)} is not a message kind",
        hint="use a word such as handoff, warn, status or reply: at most 32 of a-z, 0-9, _ . -",
    )


def blob(data: object) -> dict[str, Any]:
    """Return free data: a JSON object within the size limit."""
    size = len(to_json("blob", data))
    if size > BLOB_BYTES_MAX:
        raise Invalid(
            f"the blob has {size} bytes; the limit is {BLOB_BYTES_MAX}",
            hint="put it into a file and send the path",
        )
    assert isinstance(data, dict), "to_json accepts only a dict"
    return data


def capabilities(table: object) -> dict[str, float] | None:
    """Return task types with an agent's efficiency at each; 0 means that it cannot do the type."""
    if table is None:
        return None
    if not isinstance(table, Mapping) or len(table) > CAPABILITIES_MAX:
        raise Invalid(
            f"{short_repr(table)} is not a table of capabilities",
            hint=f"pass at most {CAPABILITIES_MAX}, for example {{'testing': 1.2}}",
        )
    for name, value in table.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not isinstance(name, str) or not re.fullmatch(_CAPABILITY, name):
            raise Invalid(f"{short_repr(name)} is not a capability", hint="use a word such as testing")
        if not number or not 0 <= value <= EFFICIENCY_MAX:
            raise Invalid(
                f"{short_repr(value)} is not an efficiency for {name}",
                hint=f"use 0 (cannot do it) to {EFFICIENCY_MAX}; 1 is usual",
            )
    return {name: float(value) for name, value in table.items()}


def priority(value: object) -> int:
    """Return a priority; higher ones come first."""
    if type(value) is int and -PRIORITY_MAX <= value <= PRIORITY_MAX:
        return value
    raise Invalid(
        f"{short_repr(value)} is not a priority",
        hint=f"use a whole number from -{PRIORITY_MAX} to {PRIORITY_MAX}",
    )


def hops(value: object) -> int:
    """Return how many times a message was forwarded."""
    if type(value) is int and 0 <= value < HOPS_MAX:
        return value
    raise Invalid(f"{short_repr(value)} is not a number of hops", hint=f"use 0 to {HOPS_MAX - 1}")


def milliseconds(what: str, seconds: object, *, min_s: float = 1.0) -> int:
    """Return a duration in milliseconds."""
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, (int, float))
        or not min_s <= seconds <= DURATION_S_MAX
    ):
        raise Invalid(
            f"{short_repr(seconds)} is not a {what} in seconds",
            hint=f"use {min_s:g} to {DURATION_S_MAX:.0f} (30 days)",
        )
    return round(seconds * 1000)


def fence(value: object) -> int:
    """Return a fence: the number that a granted lock carries."""
    if type(value) is int and 0 < value < 2**53:
        return value
    raise Invalid(
        f"{short_repr(value)} is not a fence", hint="use the fence from the reply that granted the lock"
    )


def limit(value: object) -> int:
    """Return how many items a listing shows at most; None means all."""
    if value is None:
        return LIMIT_MAX
    if type(value) is int and 0 < value <= LIMIT_MAX:
        return value
    raise Invalid(f"{short_repr(value)} is not a limit", hint="use a whole number above 0")
