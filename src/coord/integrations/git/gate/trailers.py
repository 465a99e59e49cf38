"""The trailers of a commit: its session, its tasks and its locks.

    Coord-Session: 7c2b5f84
    Coord-Task: shop/A-001-login generation 3
    Coord-Fence: 4711 file:src/app.py

They prove order, not authorship: anybody who writes a commit message can write these lines.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from coord.core.errors import CoordError
from coord.core.ids import check_id
from coord.core.locks.resources import parse_resource

SESSION, TASK, FENCE = "Coord-Session", "Coord-Task", "Coord-Fence"
_OURS = re.compile(rf"^(?:{SESSION}|{TASK}|{FENCE}):[^\n]*(?:\n|\Z)", re.MULTILINE)
_TASK = re.compile(r"([^/\s]+)/([^/\s]+) generation ([0-9]{1,15})")
_FENCE = re.compile(r"([1-9][0-9]{0,14}) (file:.+)")


class TaskTrailer(NamedTuple):
    """The claim that a commit belongs to."""

    project: str
    task: str
    generation: int


class FenceTrailer(NamedTuple):
    """The lock that a commit was made under."""

    fence: int
    resource: str


class Trailers(NamedTuple):
    """The trailers of one commit; trailers that cannot be parsed are left out."""

    session: str = ""
    tasks: tuple[TaskTrailer, ...] = ()
    fences: tuple[FenceTrailer, ...] = ()

    def lines(self) -> list[str]:
        """Return the lines for a message."""
        return [
            *([f"{SESSION}: {self.session}"] if self.session else []),
            *(f"{TASK}: {task.project}/{task.task} generation {task.generation}" for task in self.tasks),
            *(f"{FENCE}: {fence.fence} {fence.resource}" for fence in self.fences),
        ]

    def replacing(self, former: "Trailers") -> "Trailers":
        """Return these trailers merged into the former ones of an amended or rebased commit.

        Only a current claim or lock replaces a former one, so a superseded one stays visible.
        """
        tasks = {(task.project, task.task): task for task in (*former.tasks, *self.tasks)}
        fences = {fence.resource: fence for fence in (*former.fences, *self.fences)}
        return Trailers(self.session or former.session, tuple(tasks.values()), tuple(fences.values()))


NO_TRAILERS = Trailers()


def read_trailers(lines: Iterable[str]) -> Trailers:
    """Return the trailers among `key: value` lines; the last session counts."""
    session, tasks, fences = "", list[TaskTrailer](), list[FenceTrailer]()
    for line in lines:
        key, _, value = line.partition(": ")
        try:
            if key == SESSION:
                session = check_id("session id", value.strip())
            elif key == TASK and (task := _TASK.fullmatch(value.strip())):
                names = check_id("project id", task[1]), check_id("task id", task[2])
                tasks.append(TaskTrailer(*names, int(task[3])))
            elif key == FENCE and (fence := _FENCE.fullmatch(value.strip())):
                (_,) = parse_resource(fence[2], "any")
                fences.append(FenceTrailer(int(fence[1]), fence[2]))
        except (CoordError, ValueError):
            continue
    return Trailers(session, tuple(tasks), tuple(fences))


def read_message(text: str) -> Trailers:
    """Return the trailers anywhere in a message."""
    return read_trailers(found.group().rstrip("\n") for found in _OURS.finditer(text))


def without_trailers(text: str) -> str:
    """Return a message without our trailers."""
    return _OURS.sub("", text)
