"""Read values that people type: durations, resources, numbers, JSON."""

import re
from typing import Any

from coord.core.errors import Invalid
from coord.core.ids import short_repr

YEAR_S = 366 * 24 * 3600
UNITS = {"d": 24 * 3600, "h": 3600, "m": 60, "s": 1}
SCHEMES = ("file:", "name:", "project:")
_NUMBER = r"[0-9]{1,9}(?:\.[0-9]{1,3})?"
_DURATION = "".join(f"(?:({_NUMBER}){unit})?" for unit in UNITS)
_INTEGER = r"-?[0-9]{1,18}"
_SPECIAL = re.compile(r"[\\*?\[{}]")


def duration(text: str, *, zero: bool = False) -> float:
    """Return the seconds of a duration: `90`, `90s`, `5m`, `1.5h`, `7d`, `4m30s`.

    >>> duration("1h30m")
    5400.0
    """
    hint = "use seconds, or 30s, 5m, 1h, 7d, 1h30m; a year at most"
    if re.fullmatch(_NUMBER, text):
        seconds = float(text)
    elif text and (parts := re.fullmatch(_DURATION, text)):
        given = zip(parts.groups(), UNITS.values(), strict=True)
        seconds = sum(float(number) * unit for number, unit in given if number is not None)
    else:
        raise Invalid(f"{short_repr(text)} is not a duration", hint=hint)
    if seconds > YEAR_S:
        raise Invalid(f"{short_repr(text)} is longer than a year", hint=hint)
    if seconds == 0 and not zero:
        raise Invalid("the duration must be longer than zero", hint=hint)
    return seconds


def is_duration(text: str) -> bool:
    """Return whether a word has the form of a duration."""
    return bool(text) and re.fullmatch(rf"{_NUMBER}|{_DURATION}", text) is not None


def span(seconds: float) -> str:
    """Return a duration as people write it, in whole seconds, so that `duration` reads it.

    >>> span(270)
    '4m30s'
    """
    left, parts = max(0, round(seconds)), []
    for unit, size in UNITS.items():
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts[:2]) or "0s"


def resource(word: str, *, literal: bool = False) -> str:
    r"""Return a word that names a resource; a `literal` one is a path without wildcards.

    >>> resource("main-push"), resource("app/[id]", literal=True)
    ('main-push', 'file:app/\\[id]')
    """
    if not word or word in SCHEMES:
        raise Invalid(f"{short_repr(word)} is not a resource", hint="for example src/app.py or main-push")
    if not literal or word.startswith(SCHEMES[1:]):
        return word
    return "file:" + _SPECIAL.sub(r"\\\g<0>", word.removeprefix("file:"))


def project_resource(project: str, area: str) -> str:
    """Return the resource of a whole project, or of an area of it."""
    for what, word in (("project", project), ("area", area)):
        if ":" in word or "/" in word:
            raise Invalid(f"{short_repr(word)} is not a {what}", hint="a plain word without : and /")
    return f"project:{project}:{area}" if area else f"project:{project}"


def number(text: str) -> int:
    """Return a whole number."""
    if not re.fullmatch(_INTEGER, text):
        raise Invalid(f"{short_repr(text)} is not a whole number", hint="for example 5")
    return int(text)


def decimal(text: str) -> float:
    """Return a number with or without decimals."""
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text):
        raise Invalid(f"{short_repr(text)} is not a number", hint="for example 1.2")
    return float(text)


def document(text: str) -> Any:
    """Return the value of a JSON text."""
    # Most commands have no JSON value, and msgspec is the most expensive import.
    import msgspec

    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise Invalid(f"invalid JSON: {error}", hint='for example \'{"notes": "half done"}\'') from error
