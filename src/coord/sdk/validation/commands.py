"""Check a command that a stranger made: commands trust their callers, and names become parts of keys."""

from functools import cache
from typing import Any

import msgspec

from coord.core.errors import Invalid
from coord.core.identity import Caller
from coord.core.ids import check_id, short_repr
from coord.core.limits import LEASE_MS_MAX
from coord.core.tasks.commands import TaskCommand
from coord.core.tokens.scope import nested_fields

IDS = {
    "tenant": "tenant id",
    "project": "project id",
    "session": "session id",
    "repository": "repository id",
    "parent": "session id",
}
"""Fields that are ids wherever they occur, and may be empty."""
TASKS = frozenset(("ClaimNamed", "AssignTask"))
"""Commands about one task, beside those of `TaskCommand`; elsewhere `task` may be any text."""


@cache
def _checked_fields(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the fields of a struct that `check_names` looks at."""
    nested = nested_fields(kind)
    return tuple(
        name for name in kind.__struct_fields__ if name in IDS or name == "lease_ms" or name in nested
    )


def check_names(value: msgspec.Struct) -> None:
    """Refuse a command in which a name could not be an id, or a lease is no duration."""
    for name in _checked_fields(type(value)):
        found = getattr(value, name)
        if isinstance(found, str):
            if found and name in IDS and not (name == "repository" and isinstance(value, Caller)):
                check_id(IDS[name], found)
        elif name == "lease_ms" and not 0 < found <= LEASE_MS_MAX:
            raise Invalid(f"{short_repr(found)} is not a lease in milliseconds", hint="use 1 to a year")
        elif isinstance(found, msgspec.Struct):
            check_names(found)
        elif isinstance(found, tuple) and found:
            _check_all(name, found)
    if isinstance(value, TaskCommand) or type(value).__name__ in TASKS:
        check_id("task id", value.task)  # type: ignore[attr-defined]


def _check_all(name: str, values: tuple[Any, ...]) -> None:
    for each in values:
        if isinstance(each, msgspec.Struct):
            check_names(each)
        elif name == "tasks":
            for part in each if isinstance(each, tuple) else (each,):
                check_id("task id", part)
