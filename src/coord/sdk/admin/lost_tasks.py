"""The newest generation of a task whose record is lost, from what else names it.

Records of tasks are never deleted, so a task that other records or events name has one. If a repair did not
find it, the task begins again, free, above every generation that is named: a generation never falls.
"""

from collections.abc import Iterable

import msgspec

from coord.core import keys
from coord.core.tasks.schema import Task

_NAMING = ("history/", "result/", "rejected/")
"""Beginnings of keys that go on with project, task and generation."""


class _Named(msgspec.Struct):
    """The fields of an event that names a generation."""

    project: str
    task: str
    generation: int


_decode = msgspec.json.Decoder(_Named).decode


def lost_tasks(found: Iterable[str], events: Iterable[bytes]) -> dict[str, Task]:
    """Return the task records that are missing among the keys which were found, by key."""
    newest: dict[str, int] = {}
    present = set(found)
    for key in present:
        if key.startswith(_NAMING):
            kind, project, task, generation, *_ = key.split("/")
            later = kind == "history"  # the next claim wrote it
            name = keys.task(project, task)
            newest[name] = max(newest.get(name, 0), int(generation) + later)
    for event in events:
        try:
            named = _decode(event)
        except msgspec.MsgspecError:  # an event of something else
            continue
        name = keys.task(named.project, named.task)
        newest[name] = max(newest.get(name, 0), named.generation)
    return {
        key: Task(generation=generation, reset_generation=generation)
        for key, generation in sorted(newest.items())
        if generation and key not in present
    }
