"""Readiness: a task can be taken when all it depends on is done or skipped.

The state of a task that nobody works on follows from its dependencies, and is computed anew whenever one of
them changes and when the task is added, in whatever order that happens:

    all done or skipped                      ready      in the queue
    one failed, errored or itself blocked    blocked    until that one is retried, skipped or done
    otherwise                                pending

A task that is being worked on, or is finished, is not pushed back by what happens to its dependencies.
One that was split depends on its parts and on nothing else, since they depend on what it did; where it would
be ready, it is done (`merge.py`).
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
"""How many tasks one command computes anew, and how far down; the sweep goes on with the rest."""

FINISHED = (TaskStatus.DONE, TaskStatus.SKIPPED)
BLOCKING_STATES = (TaskStatus.FAILED, TaskStatus.ERRORED, TaskStatus.BLOCKED)
WAITING = (TaskStatus.PENDING, TaskStatus.READY, TaskStatus.BLOCKED)
"""States that follow from the dependencies."""


def needs(task_id: str, spec: Spec) -> tuple[str, ...]:
    """Return what has to be finished before a task can be."""
    return part_ids(task_id, spec.parts) if spec.parts else spec.depends_on


def state_by_dependencies(tx: Transaction, project: str, task_id: str, spec: Spec) -> TaskStatus:
    """Return the state of a task nobody works on."""
    states = _states(tx, project, needs(task_id, spec))
    if any(state in BLOCKING_STATES for state in states):
        return TaskStatus.BLOCKED
    return TaskStatus.READY if all(state in FINISHED for state in states) else TaskStatus.PENDING


def _states(tx: Transaction, project: str, names: tuple[str, ...]) -> list[TaskStatus]:
    tx.prefetch(*(keys.task(project, name) for name in names))
    tasks = [tx.get(keys.task(project, name), Task) for name in names]
    return [TaskStatus.PENDING if task is None else task.state for task in tasks]


def add_dependent(tx: Transaction, project: str, task_id: str, follower: str) -> None:
    """Write down that one task depends on another; that one's own record tells that it has to be told.

    It is written for each follower: who finishes or opens that task meanwhile has looked for followers in
    vain, and is to meet a conflict.
    """
    tx.put_marker(keys.dependent(project, task_id, follower))
    spec_key = keys.spec(project, task_id)
    spec = tx.get(spec_key, Spec)
    assert spec is not None, f"{follower} depends on {task_id}, which was added"
    if not spec.has_dependents or spec_key not in tx.writes:
        tx.put(spec_key, msgspec.structs.replace(spec, has_dependents=True))


def has_dependents(tx: Transaction, project: str, task_id: str) -> bool:
    """Whether something may depend on a task: most have no followers, and need not look for them."""
    spec = tx.get(keys.spec(project, task_id), Spec)
    return spec is not None and spec.has_dependents


def update_dependents(tx: Transaction, project: str, task_id: str, now: int) -> None:
    """Compute anew the state of all that depends on a task, and of what depends on these in turn.

    What must not be taken any more is withdrawn at once, however much it is. The rest, what becomes ready or
    blocked, is done in steps of a measure: a task that ten thousand depend on can be finished, too.
    """
    if not has_dependents(tx, project, task_id):
        return
    if _states(tx, project, (task_id,))[0] not in (*FINISHED, *BLOCKING_STATES):
        followers = _load(tx, project, list(dependents(tx, project, task_id)))
        for follower, state in zip(followers, _states(tx, project, tuple(followers)), strict=True):
            if state is TaskStatus.READY:
                update_readiness(tx, project, follower, now)
    _settle(tx, project, task_id, [(task_id, "")], now)


def update_remaining(tx: Transaction, key: str, now: int) -> None:
    """Go on where a change was left when it had reached its measure."""
    _, project, task_id = keys.parts(key)
    rest = tx.get(key, PendingUpdate)
    if rest is not None:
        tx.delete(key)
        _settle(tx, project, task_id, list(rest.tasks), now)


def _settle(tx: Transaction, project: str, cause: str, todo: list[tuple[str, str]], now: int) -> None:
    left = UPDATES_MAX
    for _ in range(LEVELS_MAX):
        if not todo or left <= 0:
            break
        followers, rest = _followers(tx, project, todo, left)
        left -= len(followers)
        changed = [name for name in followers if update_readiness(tx, project, name, now)]
        todo = rest + [(name, "") for name in changed if has_dependents(tx, project, name)]
    if todo:
        key = keys.pending_update(project, cause)
        before = tx.get(key, PendingUpdate) or PendingUpdate()
        tasks = tuple(dict.fromkeys((*before.tasks, *todo)))
        tx.put(key, msgspec.structs.replace(before, tasks=tasks), keys.due(0))


def _followers(
    tx: Transaction, project: str, todo: list[tuple[str, str]], limit: int
) -> tuple[list[str], list[tuple[str, str]]]:
    """Return what depends directly on some tasks, in few steps however many they are, and what is left."""
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
    """Load what it takes to compute tasks anew."""
    tx.prefetch(*(key for name in names for key in (keys.task(project, name), keys.spec(project, name))))
    specs = {name: tx.get(keys.spec(project, name), Spec) or Spec() for name in names}
    tx.prefetch(*{keys.task(project, each) for name, spec in specs.items() for each in needs(name, spec)})
    return names


def update_readiness(tx: Transaction, project: str, task_id: str, now: int) -> bool:
    """Compute the state of one task anew; return whether it changed."""
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
    """Write down that all parts are finished, as a generation of its own, with the generations they had."""
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
    """Go through the tasks that depend on one directly."""
    prefix = keys.dependent_prefix(project, task_id)
    for page in tx.pages(prefix):
        for found in page:
            yield found.key[len(prefix) :]


def find_cycle(tx: Transaction, project: str, task_id: str, depends_on: tuple[str, ...]) -> list[str]:
    """Return the path by which a task would come to depend on itself; empty if it would not."""
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
