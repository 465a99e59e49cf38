"""Opening a task again: its claim ends, its history stays, its generation goes on rising."""

import msgspec

from coord.core import keys
from coord.core.commands import ResetTask, TaskCommand
from coord.core.events import TaskReleased, TaskReset
from coord.core.ids import is_part_id, part_ids, whole_id
from coord.core.limits import limits_of, retention_index_key
from coord.core.tasks import planned as work
from coord.core.tasks.claims import clear_books, remember_taken
from coord.core.tasks.schema import ACTIVE, DONE, RELEASED, Task, as_of
from coord.core.tasks.spec import Spec
from coord.core.tasks.types import ReleaseReason, ResetReason, ResetResult
from coord.core.transaction import View


def reset_task(view: View, command: ResetTask, now: int) -> ResetResult:
    """Open a task again, and its parts, if it has any; what depends on it waits again."""
    stored = view.get(keys.task(command.project, command.task), Task)
    if stored is None:
        return ResetResult(False, ResetReason.NOT_FOUND)
    spec = view.get(keys.spec(command.project, command.task), Spec) if stored.planned else None
    names = part_ids(command.task, spec.parts if spec is not None else 0)
    view.want(*(keys.task(command.project, name) for name in names))
    for name in names:
        _reset(view, msgspec.structs.replace(command, task=name), now)
    generation = _reset(view, command, now)
    open_whole(view, command, now)
    return ResetResult(True, ResetReason.RESET, generation)


def open_whole(view: View, which: TaskCommand, now: int) -> None:
    """Open a task that was done by its parts, now that this part of it is open."""
    if not is_part_id(which.task):
        return
    whole = whole_id(which.task)
    spec = view.get(keys.spec(which.project, whole), Spec)
    if spec is None or which.task not in part_ids(whole, spec.parts):
        return
    task = view.get(keys.task(which.project, whole), Task)
    if task is not None and task.state is DONE:
        reason = f"{which.task} was opened again"
        _reset(view, ResetTask(which.tenant, which.project, whole, reason), now)


def _reset(view: View, command: ResetTask, now: int) -> int:
    task_key = keys.task(command.project, command.task)
    stored = view.get(task_key, Task) or Task()
    task = as_of(stored, now)
    if task.claim is not None:
        clear_books(view, command, stored, now)
        if task.claim is ACTIVE:
            task = _end_by_reset(view, command, task, now)
        index_key = retention_index_key(limits_of(view, command.tenant), now)
        view.put(keys.history(command.project, command.task, task.generation), task, index_key)
    opened = Task(generation=task.generation, reset_generation=task.generation, unknown=stored.unknown)
    if stored.planned:
        work.open_again(view, command.project, command.task, stored, opened, now)
    else:
        view.put(task_key, opened)
    view.emit(TaskReset(command.project, command.task, task.generation, command.reason))
    return task.generation


def _end_by_reset(view: View, command: ResetTask, task: Task, now: int) -> Task:
    ending, note = ReleaseReason.RESET, command.reason
    names = (command.project, command.task, task.generation, task.session, task.agent)
    view.emit(TaskReleased(*names, ending.value, note))
    ended = msgspec.structs.replace(task, claim=RELEASED, ended_ms=now, ending=ending, note=note)
    remember_taken(view, command, ended)
    return ended
