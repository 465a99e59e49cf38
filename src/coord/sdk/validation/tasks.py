"""Check the fields of a task before it is added."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

from coord.core.errors import Invalid
from coord.core.ids import TaskIdentifier, check_id, short_repr
from coord.core.limits import RETRIES_MAX
from coord.core.plans.commands import NewTask
from coord.sdk.validation import arguments

DESCRIPTION_CHARS_MAX = 2000
RETRIES_LIMIT_MAX = 100
NEEDS_MAX = 8
TIMESTAMP_MS_MAX = 10**13 - 1
EPOCH = datetime.fromtimestamp(0, UTC)
_WORD = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}"


def new_task(
    task_id: object,
    *,
    description: object = "",
    type: object = "",  # noqa: A002 - the name of the field
    priority: object = 0,
    files: Iterable[str] = (),
    depends_on: object = (),
    requirements: Mapping[str, Any] | None = None,
    deadline: object = None,
    estimate_s: object = 0,
    role: object = "",
    track: object = None,
    needs: object = (),
    retries_max: object = RETRIES_MAX,
) -> NewTask:
    """Return a task to add; without `track` its id gives the track, if it has one."""
    name = check_id("task id", task_id)
    return NewTask(
        task_id=name,
        description=arguments.one_line("description", description, DESCRIPTION_CHARS_MAX),
        type=word("type", type),
        track=track_of(name) if track is None else word("track", track),
        role=word("role", role),
        needs=_needs(needs),
        priority=arguments.priority(priority),
        files=tuple(files),
        depends_on=tuple(
            dict.fromkeys(check_id("task id", each) for each in _list("depends_on", depends_on))
        ),
        requirements={} if requirements is None else arguments.blob(requirements),
        deadline_ms=0 if deadline is None else timestamp_ms("deadline", deadline),
        estimate_s=_estimate(estimate_s),
        retries_max=_retries(retries_max),
    )


def track_of(task_id: str) -> str:
    """Return the track in a task id; empty if the id does not follow the track grammar."""
    parsed = TaskIdentifier.find(task_id)
    return parsed.track if parsed is not None else ""


def word(what: str, text: object) -> str:
    """Return a type, track, role or need; it may be empty."""
    if text == "" or (isinstance(text, str) and re.fullmatch(_WORD, text)):
        return str(text)
    raise Invalid(
        f"{short_repr(text)} is not a {what}",
        hint="use at most 32 letters, digits, _ . - and begin with a letter, digit or _",
    )


def words(what: str, texts: object) -> tuple[str, ...]:
    """Return types, tracks, roles or needs without empty and repeated ones."""
    return tuple(dict.fromkeys(word(what, each) for each in _list(what, texts) if each != ""))


def timestamp_ms(what: str, value: object) -> int:
    """Return a time in epoch milliseconds; it may be given as such, as a datetime, or as RFC 3339."""
    hint = "use RFC 3339, for example 2026-03-01T12:00:00Z"
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError as error:
            raise Invalid(f"{short_repr(value)} is not a {what}", hint=hint) from error
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        value = (aware - EPOCH) // timedelta(milliseconds=1)
    if type(value) is int and 0 < value <= TIMESTAMP_MS_MAX:
        return value
    raise Invalid(f"{short_repr(value)} is not a {what}", hint=hint)


def _needs(texts: object) -> tuple[str, ...]:
    needs = tuple(sorted(words("need", texts)))
    if len(needs) > NEEDS_MAX:
        raise Invalid(
            f"a task has {len(needs)} needs; the limit is {NEEDS_MAX}", hint="put the rest into requirements"
        )
    return needs


def _list(what: str, texts: object) -> Iterable[object]:
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise Invalid(
            f"{what} is {short_repr(texts)}, not a list", hint="pass a list, for example ['A-001-login']"
        )
    return texts


def _estimate(seconds: object) -> float:
    if seconds == 0 and not isinstance(seconds, bool):
        return 0.0
    return arguments.milliseconds("time estimate", seconds, min_s=0.001) / 1000


def _retries(value: object) -> int:
    if type(value) is int and 0 <= value <= RETRIES_LIMIT_MAX:
        return value
    raise Invalid(f"{short_repr(value)} is not a number of retries", hint=f"use 0 to {RETRIES_LIMIT_MAX}")
