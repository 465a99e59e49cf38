"""Reopen a task: its claim ends, its history stays, its generation keeps rising."""

import msgspec

from coord.core import keys
from coord.core.ids import is_part_id, part_ids, whole_id
from coord.core.limits import limits_of, retention_index_key
from coord.core.tasks import planned
from coord.core.tasks.claims import record_taken_claim, remove_claim
from coord.core.tasks.commands import ResetTask, TaskCommand
from coord.core.tasks.schema import ACTIVE, DONE, RELEASED, Spec, Task, TaskReleased, TaskReset, as_of
from coord.core.tasks.types import ReleaseReason, ResetReason, ResetResult
from coord.core.transaction import Transaction


def reset_task(tx: Transaction, command: ResetTask, now: int) -> ResetResult:
    """Reopen a task and its parts; tasks that depend on it wait again."""
    stored = tx.get(keys.task(command.project, command.task), Task)
    if stored is None:
        return ResetResult(False, ResetReason.NOT_FOUND)
    spec = tx.get(keys.spec(command.project, command.task), Spec) if stored.planned else None
    names = part_ids(command.task, spec.parts if spec is not None else 0)
    tx.prefetch(*(keys.task(command.project, name) for name in names))
    for name in names:
        _reset(tx, msgspec.structs.replace(command, task=name), now)
    generation = _reset(tx, command, now)
    reopen_whole(tx, command, now)
    return ResetResult(True, ResetReason.RESET, generation)


def reopen_whole(tx: Transaction, which: TaskCommand, now: int) -> None:
    """Reopen the task that a reopened part belongs to, if it was done."""
    if not is_part_id(which.task):
        return
    whole = whole_id(which.task)
    spec = tx.get(keys.spec(which.project, whole), Spec)
    if spec is None or which.task not in part_ids(whole, spec.parts):
        return
    task = tx.get(keys.task(which.project, whole), Task)
    if task is not None and task.state is DONE:
        reason = f"{which.task} was reopened"
        _reset(tx, ResetTask(which.tenant, which.project, whole, reason), now)


def _reset(tx: Transaction, command: ResetTask, now: int) -> int:
    task_key = keys.task(command.project, command.task)
    stored = tx.get(task_key, Task) or Task()
    task = as_of(stored, now)
    if task.claim is not None:
        remove_claim(tx, command, stored, now)
        if task.claim is ACTIVE:
            task = _end_by_reset(tx, command, task, now)
        index_key = retention_index_key(limits_of(tx, command.tenant), now)
        tx.put(keys.history(command.project, command.task, task.generation), task, index_key)
    opened = Task(
        generation=task.generation,
        reset_generation=task.generation,
        begun_ms=now,
        unknown=stored.unknown,
    )
    if stored.planned:
        planned.reopen(tx, command.project, command.task, stored, opened, now)
    else:
        tx.put(task_key, opened)
    tx.emit(TaskReset(command.project, command.task, task.generation, command.reason))
    return task.generation


def _end_by_reset(tx: Transaction, command: ResetTask, task: Task, now: int) -> Task:
    end_reason, note = ReleaseReason.RESET, command.reason
    names = (command.project, command.task, task.generation, task.session, task.agent)
    tx.emit(TaskReleased(*names, end_reason.value, note, now - task.claimed_ms))
    ended = msgspec.structs.replace(task, claim=RELEASED, ended_ms=now, end_reason=end_reason, note=note)
    record_taken_claim(tx, command, ended)
    return ended
