"""Check ids before they become keys; parse task ids of the track grammar."""

import re
from typing import NamedTuple

from coord.core.errors import Invalid

ID_CHARS_MAX = 128
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@+=,~#-]{0,127}")
_TASK = r"(?P<track>[A-Z]+)-(?P<sequence>[0-9]{3})-(?P<description>[a-zA-Z0-9_-]{1,50})"
_SUBTASK = r"[1-9][0-9]{0,8}"


def check_id(what: str, value: object) -> str:
    """Return the value if it can be an id of this kind (`what` names it in the error)."""
    if isinstance(value, str) and is_id(value):
        return value
    raise Invalid(
        f"{short_repr(value)} is not a {what}",
        hint=f"1 to {ID_CHARS_MAX} letters, digits and _ . : @ + = , ~ # - and a letter, digit or _ first",
    )


def is_id(value: str) -> bool:
    """Whether a text can be an id."""
    return _ID.fullmatch(value) is not None


def short_repr(value: object) -> str:
    """Return a value as short text for an error message."""
    try:
        text = repr(value)
    except ValueError:  # an int of thousands of digits
        return f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:60] + "…"


class TaskIdentifier(NamedTuple):
    """A task id of the track grammar, `B-003-dashboard`, or a subtask of it, `B-003-dashboard::2`."""

    track: str
    sequence: int
    description: str
    subtask_index: int | None = None

    @property
    def task_id(self) -> str:
        """The id without the subtask."""
        return f"{self.track}-{self.sequence:03d}-{self.description}"

    @property
    def compound_id(self) -> str:
        """The id with the subtask, if there is one."""
        return self.task_id if self.subtask_index is None else f"{self.task_id}::{self.subtask_index}"

    @property
    def kebab_case(self) -> bool:
        """Whether the description follows the style that the grammar only recommends."""
        return re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.description) is not None

    @classmethod
    def parse(cls, task_id: str) -> "TaskIdentifier":
        """Return the parts of a task id, or raise `Invalid` that says what is wrong.

        >>> TaskIdentifier.parse("A-001-setup-auth::2").subtask_index
        2
        """
        found = cls.find(task_id)
        if found is None:
            raise Invalid(
                f"{short_repr(task_id)} is not a task id of the form TRACK-SEQUENCE-DESCRIPTION",
                hint="for example A-001-setup-auth, or A-001-setup-auth::1 for a subtask",
            )
        return found

    @classmethod
    def find(cls, task_id: str) -> "TaskIdentifier | None":
        """Return the parts of a task id, or None if the id does not follow the grammar."""
        whole, colons, index = task_id.partition("::")
        match = re.fullmatch(_TASK, whole)
        if match is None or match["sequence"] == "000" or (colons and not re.fullmatch(_SUBTASK, index)):
            return None
        return cls(
            match["track"], int(match["sequence"]), match["description"], int(index) if colons else None
        )


PART = "::"
"""Stands between a task and the number of its part."""


def part_id(task_id: str, number: int) -> str:
    """Return the id of a part of a task, counted from 1."""
    return f"{task_id}{PART}{number}"


def part_ids(task_id: str, parts: int) -> tuple[str, ...]:
    """Return the ids of all parts of a task."""
    return tuple(part_id(task_id, number) for number in range(1, parts + 1))


def whole_id(task_id: str) -> str:
    """Return the id of the task that a part belongs to."""
    return task_id.rpartition(PART)[0]


def is_part_id(task_id: str) -> bool:
    """Return whether an id has the form of a part: such a task is not split further."""
    return re.fullmatch(_SUBTASK, task_id.rpartition(PART)[2]) is not None and PART in task_id


def work_product_ref(task_id: str, generation: int, unique: str) -> str:
    """Return the reference of a result; `unique` is a UUID of which the first six characters are used."""
    return f"wp-{task_id}-gen{generation}-{unique[:6]}"
