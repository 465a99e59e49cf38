"""Queries about tasks: state, history, results, the claims of a session, expired claims."""

from collections.abc import Iterator
from typing import TypeVar

from coord.core import keys
from coord.core.errors import NotFound
from coord.core.limits import DAY_MS
from coord.core.records import Marker, Stored
from coord.core.tasks.chunks import drop_reference
from coord.core.tasks.claims import claim_info
from coord.core.tasks.commands import (
    GetClaimHistory,
    GetResult,
    GetSessionClaims,
    GetTaskState,
    GetTaskStates,
    ListExpiredClaims,
    TaskCommand,
)
from coord.core.tasks.results import result_info
from coord.core.tasks.schema import HistoryForgotten, Rejection, Result, Task, as_of
from coord.core.tasks.types import (
    ClaimHistory,
    Operation,
    ReleaseReason,
    SubmissionReason,
    TaskClaim,
    TaskRefusal,
    TaskResult,
    TaskState,
    TaskStatus,
)
from coord.core.transaction import Found, Transaction

PAGE = 500
AnyStored = TypeVar("AnyStored", bound=Stored)


def get_task_state(tx: Transaction, command: GetTaskState, now: int) -> TaskState:
    """Return the state of a task now; an unknown task is ready at generation 0."""
    stored = tx.get(keys.task(command.project, command.task), Task)
    if stored is None:
        return TaskState(
            command.tenant,
            command.project,
            command.task,
            TaskStatus.READY,
            0,
            None,
            None,
            *_refusals(tx, command),
        )
    task = as_of(stored, now)
    return TaskState(
        command.tenant,
        command.project,
        command.task,
        task.state,
        task.generation,
        claim_info(command.tenant, command.project, command.task, task) if task.claim is not None else None,
        result_info(tx, command.tenant, command.project, command.task, task)
        if task.state is TaskStatus.DONE
        else None,
        *_refusals(tx, command),
    )


def get_task_states(tx: Transaction, command: GetTaskStates, now: int) -> list[TaskState]:
    """Return the states of several tasks now."""
    tx.prefetch(*(keys.task(project, task_id) for project, task_id in command.tasks))
    tx.prefetch(prefixes=(keys.rejected_prefix(*names) for names in command.tasks), limit=PAGE)
    tasks = [(names, tx.get(keys.task(*names), Task)) for names in command.tasks]
    tx.prefetch(*(keys.result(*names, task.generation) for names, task in tasks if task is not None))
    return [
        get_task_state(tx, GetTaskState(command.tenant, project, task_id), now)
        for project, task_id in command.tasks
    ]


def get_result(tx: Transaction, command: GetResult, _now: int) -> TaskResult:
    """Return the accepted result of a task, or that of an earlier generation."""
    names = command.project, command.task
    task: Task | None = tx.get(keys.task(*names), Task)
    if task is not None and command.generation not in (0, task.generation):
        task = tx.get(keys.history(*names, command.generation), Task)
    if task is None or task.end_reason is not ReleaseReason.COMPLETED:
        raise NotFound(f"{command.task} has no result", hint="coord task show prints its state")
    return result_info(tx, command.tenant, *names, task)


def get_claim_history(tx: Transaction, command: GetClaimHistory, now: int) -> list[ClaimHistory]:
    """Return the ended generations, oldest first, each with its rejected submissions and other refusals."""
    stored = tx.get(keys.task(command.project, command.task), Task)
    ended = [
        tx.get(found.key, Task) for found in _all(tx, keys.history_prefix(command.project, command.task))
    ]
    if stored is not None:
        ended.append(as_of(stored, now))
    rejected, refused = _refusals(tx, command)
    return [
        _history_info(command, task, rejected, refused)
        for task in ended
        if task is not None and task.end_reason is not None
    ]


def _history_info(
    command: TaskCommand,
    task: Task,
    rejected: tuple[TaskResult, ...],
    refused: tuple[TaskRefusal, ...],
) -> ClaimHistory:
    assert task.end_reason is not None, "only an ended generation is in the history"
    return ClaimHistory(
        command.tenant,
        command.project,
        command.task,
        task.generation,
        task.session,
        task.agent,
        task.claimed_ms,
        task.ended_ms,
        task.end_reason,
        task.end_reason is ReleaseReason.COMPLETED,
        task.work_product or None,
        task.note,
        tuple(each for each in rejected if each.generation == task.generation),
        tuple(each for each in refused if each.generation == task.generation),
        task.user,
    )


def _refusals(
    tx: Transaction, command: TaskCommand
) -> tuple[tuple[TaskResult, ...], tuple[TaskRefusal, ...]]:
    """Return the rejected submissions of a task, and its other refusals."""
    submissions, others = [], []
    for found in _all(tx, keys.rejected_prefix(command.project, command.task)):
        record = tx.get(found.key, Rejection)
        if record is None:
            continue
        generation, session = keys.parts(found.key)[3:5]
        if record.operation is Operation.SUBMIT:
            submissions.append(_rejection_info(command, int(generation), session, record))
        else:
            others.append(_refusal_info(command, int(generation), session, record))
    return tuple(submissions), tuple(others)


def _rejection_info(command: TaskCommand, generation: int, session: str, record: Rejection) -> TaskResult:
    return TaskResult(
        command.tenant,
        command.project,
        command.task,
        generation,
        session,
        record.agent,
        record.submitted_ms,
        accepted=False,
        rejection_reason=SubmissionReason(record.reason),
        size_bytes=record.result_bytes,
        times=record.times,
        user_id=record.user,
    )


def _refusal_info(command: TaskCommand, generation: int, session: str, record: Rejection) -> TaskRefusal:
    return TaskRefusal(
        command.tenant,
        command.project,
        command.task,
        generation,
        session,
        record.agent,
        record.user,
        record.operation,
        record.reason,
        record.submitted_ms,
        record.times,
    )


def get_session_claims(tx: Transaction, command: GetSessionClaims, now: int) -> list[TaskClaim]:
    """Return the active claims of a session."""
    claims = []
    found = list(_all(tx, keys.by_session_prefix(command.session)))
    if command.project:
        found = [index for index in found if keys.parts(index.key)[-2] == command.project]
    tx.prefetch(*(keys.task(*keys.parts(index.key)[-2:]) for index in found))
    for index in found:
        tx.get(index.key, Marker)  # reading it makes a claim that ends after the scan a conflict
        which = TaskCommand(command.tenant, *keys.parts(index.key)[-2:])
        task = tx.get(keys.task(which.project, which.task), Task)
        if task is not None and task.session == command.session and as_of(task, now) is task:
            claims.append(claim_info(which.tenant, which.project, which.task, task))
    return claims


def list_expired_claims(tx: Transaction, command: ListExpiredClaims, now: int) -> list[TaskClaim]:
    """Return claims whose lease has expired and whose task nobody claimed since, oldest first."""
    before = now if command.before_ms is None else min(command.before_ms, now)
    # Deadlines first: a sweep between the scans moves a claim to the index of expired ones, read next.
    by_deadline = [
        (keys.due_ms(found.index_key), project, task_id)
        for found in _due(tx, before)
        if found.key.startswith("task/")
        for _, project, task_id in [keys.parts(found.key)]
    ]
    by_index = [
        (int(millis), project, task_id)
        for found in _all(tx, keys.EXPIRED_PREFIX)
        if tx.get(found.key, Marker)
        for _, millis, project, task_id in [keys.parts(found.key)]
    ]
    due = [
        (expires_ms, TaskCommand(command.tenant, project, task_id))
        for expires_ms, project, task_id in sorted({*by_deadline, *by_index})
        if expires_ms <= before
    ]
    tx.prefetch(*(keys.task(which.project, which.task) for _, which in due))
    claims = []
    for expires_ms, which in due:
        task = tx.get(keys.task(which.project, which.task), Task)
        if (
            task is not None
            and task.expires_ms == expires_ms
            and as_of(task, now).end_reason is ReleaseReason.EXPIRED
        ):
            claims.append(claim_info(which.tenant, which.project, which.task, as_of(task, now)))
    return claims


def _due(tx: Transaction, before: int) -> Iterator[Found]:
    """Yield the records whose deadline is not after `before`, in order."""
    for found in _all(tx, keys.DUE_PREFIX, by_index_key=True):
        if keys.due_ms(found.index_key) > before:
            return
        yield found


def _all(tx: Transaction, prefix: str, *, by_index_key: bool = False) -> Iterator[Found]:
    """Yield a whole range, page by page."""
    after = ("", "")
    while True:
        page = tx.scan(prefix, by="index_key" if by_index_key else "key", limit=PAGE, after=after)
        yield from page
        if len(page) < PAGE:
            return
        after = (page[-1].index_key, page[-1].key)


def forget_generation(tx: Transaction, key: str, now: int) -> None:
    """Delete an earlier generation after its retention; an unfinished task keeps all of them."""
    project, task_id, number = keys.parts(key)[1:]
    task = tx.get(keys.task(project, task_id), Task)
    earlier = tx.get(key, Task)
    if earlier is None:
        return
    if task is not None and task.state is not TaskStatus.DONE:
        tx.put(key, earlier, keys.due(now + DAY_MS))
        return
    tx.delete(key)
    if earlier.result_bytes:
        result_key = keys.result(project, task_id, int(number))
        result = tx.get(result_key, Result)
        if result is not None and result.digest:
            drop_reference(tx, result.digest, now)
        tx.delete(result_key)
    tx.emit(HistoryForgotten(project, task_id, int(number)))
