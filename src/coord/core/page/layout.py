"""Where the tasks of a plan are drawn: a lane per track, a column per layer, a row each.

A task is in the column after its last dependency, so every dependency points to the right. A chain stays in
one row as far as the row is free. Tasks without any dependency fill the lane below, row by row. The work is
linear in tasks and dependencies, but for sorting the tasks of a column.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

LOOSE_COLUMNS = 6
"""How many columns tasks without dependencies fill at least."""
Row = Mapping[str, Any]


class Lane(msgspec.Struct, frozen=True):
    """A track, with its first row and its number of rows; an empty track has the tasks without one."""

    track: str
    top: int
    rows: int
    tasks: int


class PlanLayout(msgspec.Struct, frozen=True):
    """The place of each task, as lists of equal length in topological order.

    `row` counts from the top of the whole plan. An edge names the positions of two tasks, the dependency
    first. Dependencies on a cycle, and on tasks that do not exist, are left out.
    """

    columns: int
    lanes: list[Lane]
    task: list[str]
    lane: list[int]
    column: list[int]
    row: list[int]
    edges: list[tuple[int, int]]


def plan_layout(tasks: Mapping[str, Row]) -> PlanLayout:
    """Return the places of tasks by id; `depends_on` and `track` of each count."""
    depends = {name: _dependencies(name, task, tasks) for name, task in tasks.items()}
    order, column, edges = _layers(tasks, depends)
    tracks = sorted({_track(task) for task in tasks.values()}, key=lambda track: (not track, track))
    numbers = {track: number for number, track in enumerate(tracks)}
    lane_of = {name: numbers[_track(task)] for name, task in tasks.items()}
    columns = max((column[name] + 1 for name in order), default=0)
    linked = {name for edge in edges for name in edge}
    row: dict[str, int] = {}
    lanes: list[Lane] = []
    top = 0
    members: list[list[str]] = [[] for _ in tracks]
    for name in order:
        members[lane_of[name]].append(name)
    for track, names in zip(tracks, members, strict=True):
        rows = _put_into_rows([name for name in names if name in linked], depends, column, row, lane_of, top)
        loose = [name for name in names if name not in linked]
        width = max(columns, LOOSE_COLUMNS)
        for number, name in enumerate(loose):
            column[name], row[name] = number % width, top + rows + number // width
        rows += -(-len(loose) // width)
        lanes.append(Lane(track, top, rows, len(names)))
        top += rows
    at = {name: number for number, name in enumerate(order)}
    return PlanLayout(
        columns=max((each + 1 for each in column.values()), default=0),
        lanes=lanes,
        task=order,
        lane=[lane_of[name] for name in order],
        column=[column[name] for name in order],
        row=[row[name] for name in order],
        edges=[(at[one], at[other]) for one, other in edges],
    )


def _track(task: Row) -> str:
    return str(task.get("track") or "")


def _dependencies(name: str, task: Row, tasks: Mapping[str, Row]) -> list[str]:
    """Return the other tasks that a task depends on, each once."""
    found = task.get("depends_on")
    names = [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
    return [each for each in dict.fromkeys(names) if each in tasks and each != name]


def _added_ms(task: Row) -> float:
    """Return when a task was added; 0 if its event does not say it as a number."""
    found = task.get("added_ms")
    return found if isinstance(found, int | float) else 0


def _layers(
    tasks: Mapping[str, Row], depends: Mapping[str, list[str]]
) -> tuple[list[str], dict[str, int], list[tuple[str, str]]]:
    """Return the tasks in topological order, the column of each, and the dependencies that point forwards.

    Of a cycle, the first task that was added begins, and what would lead back to it is left out.
    """
    dependents: dict[str, list[str]] = {name: [] for name in tasks}
    missing = {}
    for name, found in depends.items():
        missing[name] = len(found)
        for each in found:
            dependents[each].append(name)
    names = sorted(tasks, key=lambda name: (_added_ms(tasks[name]), name))
    ready = [name for name in names if not missing[name]]
    order: list[str] = []
    column: dict[str, int] = {}
    edges: list[tuple[str, str]] = []
    candidates = iter(names)
    while len(order) < len(names):
        for name in ready:
            if name in column:
                continue
            before = [each for each in depends[name] if each in column]
            edges += ((each, name) for each in before)
            column[name] = max((column[each] + 1 for each in before), default=0)
            order.append(name)
            for other in dependents[name]:
                missing[other] -= 1
                if not missing[other]:
                    ready.append(other)
        ready = [next(name for name in candidates if name not in column)] if len(order) < len(names) else []
    return order, column, edges


def _put_into_rows(
    names: list[str],
    depends: Mapping[str, list[str]],
    column: Mapping[str, int],
    row: dict[str, int],
    lane_of: Mapping[str, int],
    top: int,
) -> int:
    """Give each task of a lane another row within its column; return the number of rows of the lane."""
    by_column: dict[int, list[str]] = {}
    for name in names:
        by_column.setdefault(column[name], []).append(name)
    rows = 0
    for _, found in sorted(by_column.items()):
        wanted = {name: _wanted_row(name, depends[name], row, lane_of, top) for name in found}
        free = -1
        for name in sorted(found, key=lambda each: wanted[each]):
            free = max(free + 1, wanted[name])
            row[name] = top + free
        rows = max(rows, free + 1)
    return rows


def _wanted_row(
    name: str, before: list[str], row: Mapping[str, int], lane_of: Mapping[str, int], top: int
) -> int:
    """Return the row of the first dependency in the same lane, or the first row."""
    same = [row[each] - top for each in before if lane_of[each] == lane_of[name] and each in row]
    return min(same, default=0)
