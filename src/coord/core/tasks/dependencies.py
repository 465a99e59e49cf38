"""Readiness: a task is ready when everything it depends on is done or skipped.

The state of a task that is not in progress follows from its dependencies. It is updated when the task is
added and whenever one of them changes, in any order:

    all done or skipped                      ready      in the queue
    one failed, errored or itself blocked    blocked    until that task is retried, skipped or done
    otherwise                                pending

Dependencies do not change a task that is in progress or finished. A task that was split depends on its parts
only, because they take over its dependencies. When it would become ready, it is done
(`complete_from_subtasks`).
"""

from collections.abc import Iterator

import msgspec

from coord.core import keys
from coord.core.ids import part_ids, work_product_ref
from coord.core.ranges import Range
from coord.core.tasks.schema import (
    DONE,
    RELEASED,
    UNCLAIMED,
    PendingUpdate,
    Result,
    Spec,
    Task,
    TaskMerged,
    combined_bytes,
)
from coord.core.tasks.types import ReleaseReason, TaskStatus, derived_uuid
from coord.core.transaction import Transaction

PAGE = 500
UPDATES_MAX = 1_000
LEVELS_MAX = 16
"""The number of tasks and levels that one command updates; the sweep continues with the rest."""

FINISHED = (TaskStatus.DONE, TaskStatus.SKIPPED)
BLOCKING_STATES = (TaskStatus.FAILED, TaskStatus.ERRORED, TaskStatus.BLOCKED)
WAITING = (TaskStatus.PENDING, TaskStatus.READY, TaskStatus.BLOCKED)
"""The states that follow from dependencies."""


def needs(task_id: str, spec: Spec) -> tuple[str, ...]:
    """Return the tasks that a task depends on."""
    return part_ids(task_id, spec.parts) if spec.parts else spec.depends_on


def state_by_dependencies(tx: Transaction, project: str, task_id: str, spec: Spec) -> TaskStatus:
    """Return the state of a task that is not in progress."""
    states = _states(tx, project, needs(task_id, spec))
    if any(state in BLOCKING_STATES for state in states):
        return TaskStatus.BLOCKED
    return TaskStatus.READY if all(state in FINISHED for state in states) else TaskStatus.PENDING


def _states(tx: Transaction, project: str, names: tuple[str, ...]) -> list[TaskStatus]:
    tx.prefetch(*(keys.task(project, name) for name in names))
    tasks = [tx.get(keys.task(project, name), Task) for name in names]
    return [TaskStatus.PENDING if task is None else task.state for task in tasks]


def add_dependent(tx: Transaction, project: str, task_id: str, dependent: str) -> None:
    """Record that `dependent` depends on a task, and mark the task as having dependents.

    The mark is written for each dependent, so that a concurrent command that finishes or reopens the task
    without seeing this dependent conflicts and runs again.
    """
    tx.put_marker(keys.dependent(project, task_id, dependent))
    spec_key = keys.spec(project, task_id)
    spec = tx.get(spec_key, Spec)
    assert spec is not None, f"{dependent} depends on {task_id}, which was added"
    if not spec.has_dependents or spec_key not in tx.writes:
        tx.put(spec_key, msgspec.structs.replace(spec, has_dependents=True))


def has_dependents(tx: Transaction, project: str, task_id: str) -> bool:
    """Whether other tasks may depend on a task; most have no dependents and skip the scan."""
    spec = tx.get(keys.spec(project, task_id), Spec)
    return spec is not None and spec.has_dependents


def update_dependents(tx: Transaction, project: str, task_id: str, now: int) -> None:
    """Update the state of all direct and indirect dependents of a task.

    Dependents that must not be claimed any more leave the queue at once, whatever their number. The others,
    which become ready or blocked, are updated in steps, so that a task with ten thousand dependents fits too.
    """
    if not has_dependents(tx, project, task_id):
        return
    if _states(tx, project, (task_id,))[0] not in (*FINISHED, *BLOCKING_STATES):
        names = _load(tx, project, list(dependents(tx, project, task_id)))
        for name, state in zip(names, _states(tx, project, tuple(names)), strict=True):
            if state is TaskStatus.READY:
                update_readiness(tx, project, name, now)
    _update_levels(tx, project, task_id, [(task_id, "")], now)


def update_remaining(tx: Transaction, key: str, now: int) -> None:
    """Continue an update that had reached its limit."""
    _, project, task_id = keys.parts(key)
    rest = tx.get(key, PendingUpdate)
    if rest is not None:
        tx.delete(key)
        _update_levels(tx, project, task_id, list(rest.tasks), now)


def _update_levels(tx: Transaction, project: str, cause: str, todo: list[tuple[str, str]], now: int) -> None:
    left = UPDATES_MAX
    for _ in range(LEVELS_MAX):
        if not todo or left <= 0:
            break
        names, rest = _direct_dependents(tx, project, todo, left)
        left -= len(names)
        changed = [name for name in names if update_readiness(tx, project, name, now)]
        todo = rest + [(name, "") for name in changed if has_dependents(tx, project, name)]
    if todo:
        key = keys.pending_update(project, cause)
        before = tx.get(key, PendingUpdate) or PendingUpdate()
        tasks = tuple(dict.fromkeys((*before.tasks, *todo)))
        tx.put(key, msgspec.structs.replace(before, tasks=tasks), keys.due(0))


def _direct_dependents(
    tx: Transaction, project: str, todo: list[tuple[str, str]], limit: int
) -> tuple[list[str], list[tuple[str, str]]]:
    """Return up to `limit` direct dependents of some tasks, and the tasks that are left over."""
    tx.prefetch_scans([_range(project, name, after) for name, after in todo])
    found: dict[str, None] = {}
    rest = []
    for name, after in todo:
        if len(found) >= limit:
            rest.append((name, after))
            continue
        range_ = _range(project, name, after)
        page = tx.scan(range_.prefix, limit=PAGE, after=range_.after)
        found |= dict.fromkeys(each.key[len(range_.prefix) :] for each in page)
        if len(page) == PAGE:
            rest.append((name, page[-1].key[len(range_.prefix) :]))
    return _load(tx, project, list(found)), rest


def _range(project: str, task_id: str, after: str) -> Range:
    prefix = keys.dependent_prefix(project, task_id)
    return Range(prefix, "key", PAGE, ("", prefix + after) if after else ("", ""))


def _load(tx: Transaction, project: str, names: list[str]) -> list[str]:
    """Load the records that updating these tasks reads."""
    tx.prefetch(*(key for name in names for key in (keys.task(project, name), keys.spec(project, name))))
    specs = {name: tx.get(keys.spec(project, name), Spec) or Spec() for name in names}
    tx.prefetch(*{keys.task(project, each) for name, spec in specs.items() for each in needs(name, spec)})
    return names


def update_readiness(tx: Transaction, project: str, task_id: str, now: int) -> bool:
    """Update the state of one task; return whether it changed."""
    task_key = keys.task(project, task_id)
    task = tx.get(task_key, Task)
    spec = tx.get(keys.spec(project, task_id), Spec)
    if task is None or spec is None or task.state not in WAITING or task.retry_ms:
        return False
    state = state_by_dependencies(tx, project, task_id, spec)
    if spec.parts and state is TaskStatus.READY:
        complete_from_subtasks(tx, project, task_id, spec.parts, task, now)
        return True
    parts = _states(tx, project, part_ids(task_id, spec.parts))
    parts_done = sum(each in FINISHED for each in parts)
    if state is task.state and parts_done == task.parts_done:
        return False
    index_key = task.queue if state is TaskStatus.READY else ""
    tx.put(task_key, msgspec.structs.replace(task, state=state, parts_done=parts_done), index_key)
    return state is not task.state


def complete_from_subtasks(
    tx: Transaction, project: str, task_id: str, parts: int, task: Task, now: int
) -> None:
    """Complete a task whose parts are finished, under a new generation.

    Its result names the generations of the parts' results and copies no data.
    """
    finished = [tx.get(keys.task(project, name), Task) or UNCLAIMED for name in part_ids(task_id, parts)]
    generations = tuple(part.generation if part.state is DONE else 0 for part in finished)
    generation = task.generation + 1
    size = combined_bytes(part.result_bytes if part.state is DONE else None for part in finished)
    product = work_product_ref(task_id, generation, derived_uuid("merge", project, task_id, generation))
    whole = msgspec.structs.replace(
        task,
        generation=generation,
        state=DONE,
        claim=RELEASED,
        claimed_ms=now,
        ended_ms=now,
        end_reason=ReleaseReason.COMPLETED,
        work_product=product,
        result_bytes=size,
        parts_done=parts,
    )
    tx.put(keys.task(project, task_id), whole)
    tx.put(keys.result(project, task_id, generation), Result(part_generations=generations))
    tx.delete(keys.unfinished(project, task_id))
    skipped = generations.count(0)
    tx.emit(TaskMerged(project, task_id, generation, parts, skipped, product, size))


def dependents(tx: Transaction, project: str, task_id: str) -> Iterator[str]:
    """Yield the direct dependents of a task."""
    prefix = keys.dependent_prefix(project, task_id)
    for page in tx.pages(prefix):
        for found in page:
            yield found.key[len(prefix) :]


def find_cycle(tx: Transaction, project: str, task_id: str, depends_on: tuple[str, ...]) -> list[str]:
    """Return the path by which a task would depend on itself; empty if there is none."""
    came_from = dict.fromkeys(depends_on, task_id)
    level = list(came_from)
    while level and task_id not in came_from:
        tx.prefetch(*(keys.spec(project, name) for name in level))
        beyond: list[str] = []
        for name in level:
            spec = tx.get(keys.spec(project, name), Spec)
            for other in needs(name, spec) if spec is not None else ():
                if other not in came_from:
                    came_from[other] = name
                    beyond.append(other)
        level = beyond
    if task_id not in came_from:
        return []
    path = [task_id, came_from[task_id]]
    while path[-1] != task_id:
        path.append(came_from[path[-1]])
    return path[::-1]
