"""Split a task into parts `ID::1` … `ID::n`, which are claimed and completed separately.

    all parts done or skipped     the task is done, its result is the list of theirs (null: skipped)
    a part failed or errored      the task is blocked until that part is retried or skipped
    a part is reopened            the task is reopened, and completes again with its parts
    the task is reset, skipped    so are its parts
    or retried

Parts copy the description of the task except its track, because several agents should work on them at once. A
part cannot be split further.
"""

import msgspec

from coord.core import keys
from coord.core.errors import Invalid, Refused
from coord.core.ids import check_id, is_part_id, part_ids
from coord.core.limits import limits_of, retention_index_key
from coord.core.plans.commands import SplitTask, TaskInfo
from coord.core.plans.plan import add_one, new_task_like, planned_task, task_info
from coord.core.tasks.claims import remove_claim
from coord.core.tasks.dependencies import WAITING, add_dependent, update_readiness
from coord.core.tasks.schema import ACTIVE, Spec, Task, TaskSplit, as_of
from coord.core.transaction import Transaction


def split_task(tx: Transaction, command: SplitTask, now: int) -> TaskInfo:
    """Split a task that is not in progress; a repetition with the same number changes nothing."""
    project, task_id, parts = command.project, command.task, command.parts
    spec, stored = planned_task(tx, project, task_id)
    if spec.parts == parts:
        return task_info(task_id, spec, stored, now)
    names = part_ids(task_id, parts)
    _check(tx, command, spec, as_of(stored, now), names)
    if stored.claim is not None:
        remove_claim(tx, command, stored, now)
        tx.delete(keys.working(project, task_id))
        index_key = retention_index_key(limits_of(tx, command.tenant), now)
        tx.put(keys.history(project, task_id, stored.generation), as_of(stored, now), index_key)
    for name in names:
        add_one(tx, project, new_task_like(name, spec, track=""), now)
        add_dependent(tx, project, name, task_id)
    whole = msgspec.structs.replace(spec, parts=parts)
    tx.put(keys.spec(project, task_id), whole)
    tx.put(keys.task(project, task_id), _unclaimed(stored))
    tx.emit(TaskSplit(project, task_id, parts))
    update_readiness(tx, project, task_id, now)
    return task_info(task_id, *planned_task(tx, project, task_id), now)


def _check(tx: Transaction, command: SplitTask, spec: Spec, task: Task, names: tuple[str, ...]) -> None:
    task_id = command.task
    if spec.parts:
        raise Refused(f"{task_id} is already split into {spec.parts} parts", hint=f"the first is {names[0]}")
    if is_part_id(task_id):
        raise Invalid(f"{task_id} is a part and cannot be split", hint="split its task into more parts")
    if task.claim is ACTIVE:
        raise Refused(f"{task_id} is in progress ({task.session})", hint="release it first")
    if task.state not in WAITING:
        raise Refused(
            f"{task_id} is {task.state.value}", hint="coord task retry or coord task reset reopens it"
        )
    check_id("task id", names[-1])
    tx.prefetch(
        *(
            key
            for name in names
            for key in (keys.task(command.project, name), keys.spec(command.project, name))
        )
    )
    taken = [name for name in names if tx.get(keys.task(command.project, name), Task) is not None]
    if taken:
        raise Refused(f"a task {taken[0]} exists already", hint="use another id for the task you split")


def _unclaimed(task: Task) -> Task:
    """Return a task without its ended claim and without a backoff."""
    return Task(
        generation=task.generation,
        state=task.state,
        reset_generation=task.reset_generation,
        planned=True,
        queue=task.queue,
        track=task.track,
        begun_ms=task.begun_ms,
        unknown=task.unknown,
    )
