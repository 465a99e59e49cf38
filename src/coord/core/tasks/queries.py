"""Questions about tasks: their state, history and lineage, the claims of a session, what has expired."""

from collections.abc import Iterator
from typing import TypeVar

from coord.core import keys
from coord.core.commands import (
    GetClaimHistory,
    GetSessionClaims,
    GetTaskState,
    GetTaskStates,
    ListExpiredClaims,
    TaskCommand,
)
from coord.core.errors import NotFound
from coord.core.events import HistoryForgotten
from coord.core.limits import DAY_MS
from coord.core.records import Marker, Stored
from coord.core.tasks.chunks import let_go
from coord.core.tasks.claims import shown_claim
from coord.core.tasks.result_commands import GetResult
from coord.core.tasks.result_records import Result, shown_result
from coord.core.tasks.results import Rejection
from coord.core.tasks.schema import Task, as_of
from coord.core.tasks.types import (
    ClaimHistory,
    ReleaseReason,
    TaskClaim,
    TaskResult,
    TaskState,
    TaskStatus,
)
from coord.core.transaction import Found, View

PAGE = 500
AnyStored = TypeVar("AnyStored", bound=Stored)


def get_task_state(view: View, command: GetTaskState, now: int) -> TaskState:
    """Return the task as of now; one that was never added or claimed is ready, at generation 0."""
    stored = view.get(keys.task(command.project, command.task), Task)
    if stored is None:
        return TaskState(command.tenant, command.project, command.task, TaskStatus.READY, 0)
    task = as_of(stored, now)
    return TaskState(
        command.tenant,
        command.project,
        command.task,
        task.state,
        task.generation,
        shown_claim(command.tenant, command.project, command.task, task) if task.claim is not None else None,
        shown_result(view, command.tenant, command.project, command.task, task)
        if task.state is TaskStatus.DONE
        else None,
        _rejections(view, command),
    )


def get_task_states(view: View, command: GetTaskStates, now: int) -> list[TaskState]:
    """Return several tasks as of now."""
    view.want(*(keys.task(project, task_id) for project, task_id in command.tasks))
    view.want(prefixes=(keys.rejected_prefix(*names) for names in command.tasks), limit=PAGE)
    tasks = [(names, view.get(keys.task(*names), Task)) for names in command.tasks]
    view.want(*(keys.result(*names, task.generation) for names, task in tasks if task is not None))
    return [
        get_task_state(view, GetTaskState(command.tenant, project, task_id), now)
        for project, task_id in command.tasks
    ]


def get_result(view: View, command: GetResult, _now: int) -> TaskResult:
    """Return the accepted result of a task, or that of an earlier generation."""
    names = command.project, command.task
    task: Task | None = view.get(keys.task(*names), Task)
    if task is not None and command.generation not in (0, task.generation):
        task = view.get(keys.history(*names, command.generation), Task)
    if task is None or task.ending is not ReleaseReason.COMPLETED:
        raise NotFound(f"{command.task} has no result", hint="coord task show tells how it stands")
    return shown_result(view, command.tenant, *names, task)


def get_claim_history(view: View, command: GetClaimHistory, now: int) -> list[ClaimHistory]:
    """Return every ended generation, oldest first, each with the submissions that came in vain under it."""
    stored = view.get(keys.task(command.project, command.task), Task)
    ended = [
        view.get(found.key, Task) for found in _all(view, keys.history_prefix(command.project, command.task))
    ]
    if stored is not None:
        ended.append(as_of(stored, now))
    rejected = _rejections(view, command)
    return [
        _shown_history(command, task, rejected)
        for task in ended
        if task is not None and task.ending is not None
    ]


def _shown_history(command: TaskCommand, task: Task, rejected: tuple[TaskResult, ...]) -> ClaimHistory:
    assert task.ending is not None, "only an ended generation is history"
    return ClaimHistory(
        command.tenant,
        command.project,
        command.task,
        task.generation,
        task.session,
        task.agent,
        task.claimed_ms,
        task.ended_ms,
        task.ending,
        task.ending is ReleaseReason.COMPLETED,
        task.work_product or None,
        task.note,
        tuple(result for result in rejected if result.generation == task.generation),
    )


def _rejections(view: View, command: TaskCommand) -> tuple[TaskResult, ...]:
    return tuple(
        _shown_rejection(command, found.key, rejection)
        for found in _all(view, keys.rejected_prefix(command.project, command.task))
        if (rejection := view.get(found.key, Rejection)) is not None
    )


def _shown_rejection(command: TaskCommand, key: str, rejection: Rejection) -> TaskResult:
    generation, session = keys.parts(key)[-2:]
    return TaskResult(
        command.tenant,
        command.project,
        command.task,
        int(generation),
        session,
        rejection.agent,
        rejection.submitted_ms,
        accepted=False,
        rejection_reason=rejection.reason,
        size_bytes=rejection.result_bytes,
        times=rejection.times,
    )


def get_session_claims(view: View, command: GetSessionClaims, now: int) -> list[TaskClaim]:
    """Return the claims of a session that are active as of now."""
    claims = []
    found = list(_all(view, keys.by_session_prefix(command.session)))
    view.want(*(keys.task(*keys.parts(index.key)[-2:]) for index in found))
    for index in found:
        view.get(index.key, Marker)  # an expectation: a claim that ends after the scan is noticed
        which = TaskCommand(command.tenant, *keys.parts(index.key)[-2:])
        task = view.get(keys.task(which.project, which.task), Task)
        if task is not None and task.session == command.session and as_of(task, now) is task:
            claims.append(shown_claim(which.tenant, which.project, which.task, task))
    return claims


def list_expired_claims(view: View, command: ListExpiredClaims, now: int) -> list[TaskClaim]:
    """Return claims whose lease ran out and that nobody took since, swept or not, oldest first."""
    before = now if command.before_ms is None else min(command.before_ms, now)
    # The line first: a sweep in between moves a claim to the index, where it is met again, never missed.
    unswept = [
        (keys.due_ms(found.index_key), project, task_id)
        for found in _due(view, before)
        if found.key.startswith("task/")
        for _, project, task_id in [keys.parts(found.key)]
    ]
    swept = [
        (int(millis), project, task_id)
        for found in _all(view, keys.EXPIRED_PREFIX)
        if view.get(found.key, Marker)
        for _, millis, project, task_id in [keys.parts(found.key)]
    ]
    due = [
        (expires_ms, TaskCommand(command.tenant, project, task_id))
        for expires_ms, project, task_id in sorted({*unswept, *swept})
        if expires_ms <= before
    ]
    view.want(*(keys.task(which.project, which.task) for _, which in due))
    claims = []
    for expires_ms, which in due:
        task = view.get(keys.task(which.project, which.task), Task)
        if (
            task is not None
            and task.expires_ms == expires_ms
            and as_of(task, now).ending is ReleaseReason.EXPIRED
        ):
            claims.append(shown_claim(which.tenant, which.project, which.task, as_of(task, now)))
    return claims


def _due(view: View, before: int) -> Iterator[Found]:
    """Yield what is due up to a moment; the line is in order, so the first later one ends it."""
    for found in _all(view, keys.DUE_PREFIX, by_index_key=True):
        if keys.due_ms(found.index_key) > before:
            return
        yield found


def _all(view: View, prefix: str, *, by_index_key: bool = False) -> Iterator[Found]:
    """Yield a whole range, page by page."""
    after = ("", "")
    while True:
        page = view.scan(prefix, by="index_key" if by_index_key else "key", limit=PAGE, after=after)
        yield from page
        if len(page) < PAGE:
            return
        after = (page[-1].index_key, page[-1].key)


def forget_generation(view: View, key: str, now: int) -> None:
    """Forget an earlier generation past its retention; a task that is not done keeps its lineage."""
    project, task_id, number = keys.parts(key)[1:]
    task = view.get(keys.task(project, task_id), Task)
    earlier = view.get(key, Task)
    if earlier is None:
        return
    if task is not None and task.state is not TaskStatus.DONE:
        view.put(key, earlier, keys.due(now + DAY_MS))
        return
    view.delete(key)
    if earlier.result_bytes:
        result_key = keys.result(project, task_id, int(number))
        result = view.get(result_key, Result)
        if result is not None and result.digest:
            let_go(view, result.digest, now)
        view.delete(result_key)
    view.emit(HistoryForgotten(project, task_id, int(number)))
