"""Lay out a plan: steps from left to right, tracks below each other."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from coord.core.plans.commands import TaskInfo
from coord.core.tasks.types import TaskStatus

Cells = dict[int, list[TaskInfo]]
"""The tasks of a track by their step."""

FINISHED = (TaskStatus.DONE, TaskStatus.SKIPPED)


class Lane(NamedTuple):
    """A track and its tasks; tasks without a track have the empty name."""

    track: str
    cells: Cells

    @property
    def tasks(self) -> list[TaskInfo]:
        """All tasks of the track."""
        return [task for cell in self.cells.values() for task in cell]

    @property
    def finished(self) -> int:
        """The number of tasks that are done or skipped."""
        return sum(task.state in FINISHED for task in self.tasks)


def lanes(tasks: Sequence[TaskInfo]) -> list[Lane]:
    """Return the tracks by name; within each its tasks by step, in the order given."""
    step = steps(tasks)
    found: dict[str, Cells] = {}
    for task in tasks:
        found.setdefault(task.track, {}).setdefault(step[task.task_id], []).append(task)
    return [Lane(track, dict(sorted(found[track].items()))) for track in sorted(found)]


def steps(tasks: Iterable[TaskInfo]) -> dict[str, int]:
    """Return the step of each task: one after the last of those it depends on, from 0."""
    needs = {task.task_id: task.depends_on for task in tasks}
    found = dict.fromkeys(needs, 0)
    open_needs = {name: [need for need in given if need in needs] for name, given in needs.items()}
    followers: dict[str, list[str]] = {name: [] for name in needs}
    for name, given in open_needs.items():
        for need in given:
            followers[need].append(name)
    waiting = {name: len(given) for name, given in open_needs.items()}
    ready = [name for name, count in waiting.items() if not count]
    for name in ready:  # the list grows during the loop
        for follower in followers[name]:
            found[follower] = max(found[follower], found[name] + 1)
            waiting[follower] -= 1
            if not waiting[follower]:
                ready.append(follower)
    return found
