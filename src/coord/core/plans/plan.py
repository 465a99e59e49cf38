"""Add, change, skip, retry and list the tasks of a plan.

Adding a task that exists updates its description; its claim, its state and its result stay.
"""

from typing import NamedTuple

import msgspec

from coord.core import keys
from coord.core.errors import Invalid, NotFound, Refused
from coord.core.ids import part_ids
from coord.core.plans.commands import (
    AddTasks,
    AddTasksReply,
    CountTasks,
    GetStuck,
    GetTasks,
    ListStuck,
    NewTask,
    RetryTask,
    SetTrack,
    SkipTask,
    TaskCountPage,
    TaskCounts,
    TaskInfo,
    TaskList,
)
from coord.core.ranges import Range
from coord.core.tasks.claims import expire
from coord.core.tasks.dependencies import (
    WAITING,
    add_dependent,
    find_cycle,
    state_by_dependencies,
    update_dependents,
    update_readiness,
)
from coord.core.tasks.planned import finish, move_track, put_unclaimed
from coord.core.tasks.reset import reopen_whole
from coord.core.tasks.schema import (
    ACTIVE,
    FILES_LOGGED,
    STUCK_STATES,
    TITLE_CHARS,
    QueueClass,
    Spec,
    Task,
    TaskAdded,
    TaskRetried,
    TaskSkipped,
    Track,
    as_of,
    queue_class_name,
    ready_index_key,
)
from coord.core.tasks.types import TaskStatus
from coord.core.transaction import Transaction

UNCLAIMED_STATES = (TaskStatus.PENDING, TaskStatus.READY, TaskStatus.BLOCKED)
"""States of a task that nobody works on and that is not finished."""


def add_tasks(tx: Transaction, command: AddTasks, now: int) -> AddTasksReply:
    """Add tasks in the given order; update those that exist."""
    reply = AddTasksReply([], [], [])
    outcomes = {"added": reply.added, "changed": reply.changed, "same": reply.same}
    tx.prefetch(*(key for task in command.tasks for key in _reads(command.project, task)))
    for task in command.tasks:
        _check_dependencies(tx, command.project, task)
        outcomes[add_one(tx, command.project, task, now)].append(task.task_id)
    return reply


def _reads(project: str, task: NewTask) -> list[str]:
    named = (task.task_id, *task.depends_on)
    return [key for name in named for key in (keys.task(project, name), keys.spec(project, name))]


def _check_dependencies(tx: Transaction, project: str, task: NewTask) -> None:
    for name in task.depends_on:
        if tx.get(keys.spec(project, name), Spec) is None and name != task.task_id:
            raise NotFound(
                f"{task.task_id} depends on {name}, which does not exist", hint=f"add {name} first"
            )
    # No task depends on a new one, so only a new dependency of an existing task, or a task that names itself,
    # can close a cycle. A new plan is therefore added without searching all of it for each task.
    before = tx.get(keys.spec(project, task.task_id), Spec)
    known = before.depends_on if before is not None else ()
    fresh = tuple(name for name in task.depends_on if name not in known)
    if before is None and task.task_id not in fresh:
        return
    cycle = find_cycle(tx, project, task.task_id, fresh)
    if cycle:
        raise Invalid(
            f"tasks depend on each other: {' -> '.join(cycle)}", hint="remove one of these dependencies"
        )


def add_one(tx: Transaction, project: str, new: NewTask, now: int) -> str:
    """Add or change a task; return `added`, `changed` or `same`."""
    spec_key, task_key = keys.spec(project, new.task_id), keys.task(project, new.task_id)
    before = tx.get(spec_key, Spec)
    spec = _spec(new, before, now)
    if before is not None and spec == before:
        return "same"
    stored = tx.get(task_key, Task) or Task(state=TaskStatus.PENDING)
    task = msgspec.structs.replace(
        stored,
        planned=True,
        queue=ready_index_key(project, spec),
        track=spec.track,
        begun_ms=stored.begun_ms or now,
    )
    tx.put(spec_key, spec)
    _index(tx, project, new.task_id, before, spec)
    if task.state in WAITING and task.claim is not ACTIVE and not task.retry_ms:
        task = msgspec.structs.replace(task, state=state_by_dependencies(tx, project, new.task_id, spec))
        put_unclaimed(tx, project, new.task_id, task)
    else:
        if task.claim is ACTIVE:
            move_track(tx, project, new.task_id, stored, task)
        index_key = keys.due(task.expires_ms if task.claim is ACTIVE else task.retry_ms)
        tx.put(task_key, task, index_key if task.claim is ACTIVE or task.retry_ms else "")
    if task.state is not TaskStatus.DONE and task.state is not TaskStatus.SKIPPED:
        tx.put_marker(keys.unfinished(project, new.task_id))
    changed = () if before is None else _difference(before, spec)
    tx.emit(
        TaskAdded(
            project,
            new.task_id,
            task.state.value,
            changed,
            title=spec.description[:TITLE_CHARS],
            type=spec.type,
            track=spec.track,
            role=spec.role,
            needs=spec.needs,
            priority=spec.priority,
            files=spec.files[:FILES_LOGGED],
            depends_on=spec.depends_on,
            deadline_ms=spec.deadline_ms,
            estimate_s=spec.estimate_s,
            added_ms=spec.created_ms,
        )
    )
    if before is not None and task.state is not stored.state:
        update_dependents(tx, project, new.task_id, now)
    if before is not None and before.depends_on != spec.depends_on:
        _update_parts(tx, project, new.task_id, spec, now)
    return "added" if before is None else "changed"


def _update_parts(tx: Transaction, project: str, task_id: str, spec: Spec, now: int) -> None:
    """Copy the dependencies of a task to its parts."""
    for name in _parts(tx, project, task_id, spec):
        part = new_task_like(name, planned_task(tx, project, name)[0], depends_on=spec.depends_on)
        _check_dependencies(tx, project, part)
        add_one(tx, project, part, now)


def _parts(tx: Transaction, project: str, task_id: str, spec: Spec) -> tuple[str, ...]:
    """Return the parts of a task, and prefetch them."""
    names = part_ids(task_id, spec.parts)
    tx.prefetch(*(key for name in names for key in (keys.task(project, name), keys.spec(project, name))))
    return names


def new_task_like(task_id: str, spec: Spec, **changed: object) -> NewTask:
    """Return a new task like an existing one, with some fields changed."""
    same = {name: getattr(spec, name) for name in NewTask.__struct_fields__ if name != "task_id"}
    return NewTask(task_id=task_id, **{**same, **changed})


KEPT = (
    *("created_ms", "parts", "has_dependents", "unknown"),
    *("assignee", "assigned_sessions", "assigned_until_ms"),
)
"""What a plan does not state, and a change of it keeps."""


def _spec(new: NewTask, before: Spec | None, now: int) -> Spec:
    fields = msgspec.structs.asdict(new)
    del fields["task_id"]
    if before is None:
        return Spec(**fields, created_ms=now)
    kept = {name: getattr(before, name) for name in KEPT}
    return Spec(**fields, **kept)


def _difference(before: Spec, after: Spec) -> tuple[str, ...]:
    return tuple(name for name in Spec.__struct_fields__ if getattr(before, name) != getattr(after, name))


def _index(tx: Transaction, project: str, task_id: str, before: Spec | None, spec: Spec) -> None:
    class_key = keys.queue_class(project, queue_class_name(spec))
    if tx.get(class_key, QueueClass) is None:
        tx.put(class_key, QueueClass(track=spec.track, type=spec.type, role=spec.role, needs=spec.needs))
    old = before.depends_on if before is not None else ()
    for name in old:
        if name not in spec.depends_on:
            tx.delete(keys.dependent(project, name, task_id))
    for name in spec.depends_on:
        if name not in old:
            add_dependent(tx, project, name, task_id)


def skip_task(tx: Transaction, command: SkipTask, now: int) -> TaskInfo:
    """Skip a task and its parts; tasks that depend on it may start."""
    spec, task = planned_task(tx, command.project, command.task)
    names = _parts(tx, command.project, command.task, spec)
    for name in (command.task, *names):
        expire(tx, msgspec.structs.replace(command, task=name), now)
        claimed = planned_task(tx, command.project, name)[1]
        if claimed.claim is ACTIVE:
            raise Refused(f"{name} is in progress ({claimed.session})", hint="release or reset it first")
    task = planned_task(tx, command.project, command.task)[1]
    if task.state is TaskStatus.DONE:
        raise Refused(f"{command.task} is done", hint="coord task reset reopens it")
    if task.state is not TaskStatus.SKIPPED:
        skipped = msgspec.structs.replace(task, state=TaskStatus.SKIPPED, retry_ms=0, note=command.reason)
        tx.put(keys.task(command.project, command.task), skipped)
        if task.state in STUCK_STATES:
            tx.delete(keys.stuck(command.project, command.task))
        tx.emit(TaskSkipped(command.project, command.task, command.reason))
        finish(tx, command.project, command.task, now)
        task = skipped
        for name in names:
            if planned_task(tx, command.project, name)[1].state is not TaskStatus.DONE:
                skip_task(tx, msgspec.structs.replace(command, task=name), now)
    return task_info(command.task, spec, task, now)


def retry_task(tx: Transaction, command: RetryTask, now: int) -> TaskInfo:
    """Return a failed, errored or skipped task to the queue, with its retries at zero."""
    spec, task = planned_task(tx, command.project, command.task)
    if task.state not in (*STUCK_STATES, TaskStatus.SKIPPED):
        raise Refused(
            f"{command.task} is {task.state.value}", hint="only failed or skipped tasks can be retried"
        )
    for name in _parts(tx, command.project, command.task, spec):
        if planned_task(tx, command.project, name)[1].state in (*STUCK_STATES, TaskStatus.SKIPPED):
            retry_task(tx, msgspec.structs.replace(command, task=name), now)
    state = state_by_dependencies(tx, command.project, command.task, spec)
    again = msgspec.structs.replace(task, state=state, retries=0, retry_ms=0)
    if task.state in STUCK_STATES:
        tx.delete(keys.stuck(command.project, command.task))
    put_unclaimed(tx, command.project, command.task, again)
    tx.put_marker(keys.unfinished(command.project, command.task))
    tx.emit(TaskRetried(command.project, command.task, task.generation, 0))
    update_readiness(tx, command.project, command.task, now)
    update_dependents(tx, command.project, command.task, now)
    reopen_whole(tx, command, now)
    return task_info(command.task, *planned_task(tx, command.project, command.task), now)


def set_track(tx: Transaction, command: SetTrack, _now: int) -> int:
    """Set the number of agents that may work on a track at once."""
    key = keys.track(command.project, command.track)
    track = tx.get(key, Track) or Track()
    if track.agents_max != command.agents_max:
        tx.put(key, msgspec.structs.replace(track, agents_max=command.agents_max))
    return command.agents_max


def planned_task(tx: Transaction, project: str, task_id: str) -> tuple[Spec, Task]:
    """Return the spec and the record of a task that was added."""
    spec, task = tx.get(keys.spec(project, task_id), Spec), tx.get(keys.task(project, task_id), Task)
    if spec is None or task is None:
        raise NotFound(f"project {project} has no task {task_id}", hint="coord task list prints them")
    return spec, task


def page_ranges(command: GetTasks) -> list[Range]:
    """Return the ranges that a page of tasks reads: most tasks that have a spec are in both."""
    if command.tasks:
        return []
    prefixes = keys.spec_prefix(command.project), keys.task_prefix(command.project)
    return [
        Range(prefix, "key", command.limit + 1, ("", prefix + command.after) if command.after else ("", ""))
        for prefix in prefixes
    ]


def get_tasks(tx: Transaction, command: GetTasks, now: int) -> TaskList:
    """Return a page of tasks of a project, or the tasks that are named."""
    prefix = keys.spec_prefix(command.project)
    after = ("", prefix + command.after) if command.after else ("", "")
    if command.tasks:
        names = list(command.tasks)
    else:
        page = tx.scan(prefix, limit=command.limit + 1, after=after)
        names = [found.key[len(prefix) :] for found in page]
    tx.prefetch(
        *(
            key
            for name in names
            for key in (keys.task(command.project, name), keys.spec(command.project, name))
        )
    )
    shown = []
    for name in names[: command.limit]:
        spec, task = planned_task(tx, command.project, name)
        shown.append(task_info(name, spec, task, now))
    more = len(names) > command.limit
    return TaskList(shown, more, names[command.limit - 1] if more else "")


def get_stuck(tx: Transaction, command: GetStuck, now: int) -> TaskList:
    """Return the first tasks of a project that failed permanently or too often."""
    prefix = keys.stuck_prefix(command.project)
    page = tx.scan(prefix, limit=command.limit + 1)
    names = tuple(found.key[len(prefix) :] for found in page)
    if not names:
        return TaskList([])
    shown = get_tasks(tx, GetTasks(command.project, names[: command.limit], limit=command.limit), now).tasks
    return TaskList(shown, more=len(names) > command.limit)


def list_stuck(tx: Transaction, command: ListStuck, _now: int) -> list[str]:
    """Return the first stuck tasks of all projects, as `project/task`."""
    found = tx.scan(keys.stuck_prefix(), limit=command.limit)
    return ["/".join(keys.parts(each.key)[1:]) for each in found]


def count_tasks(tx: Transaction, command: CountTasks, now: int) -> TaskCountPage:
    """Return the counts of a page of tasks by project, with the leases that have expired by now."""
    page = tx.scan(keys.TASK_PREFIX, limit=command.limit, after=("", command.after))
    tx.prefetch(*(found.key for found in page))
    counts: dict[str, list[int]] = {}
    for found in page:
        task = tx.get(found.key, Task)
        if task is None:
            continue
        task = as_of(task, now)
        count = counts.setdefault(keys.parts(found.key)[1], [0, 0, 0])
        count[0] += task.claim is ACTIVE
        count[1] += task.state in UNCLAIMED_STATES
        count[2] += task.state is TaskStatus.DONE
    after = page[-1].key if len(page) == command.limit else ""
    return TaskCountPage({project: TaskCounts(*count) for project, count in counts.items()}, after)


def task_info(task_id: str, spec: Spec, task: Task, now: int) -> TaskInfo:
    """Return a task with its description and its state now."""
    seen = as_of(task, now)
    return TaskInfo(
        task_id=task_id,
        state=seen.state.value,
        generation=seen.generation,
        session_id=seen.session if seen.claim is ACTIVE else "",
        agent=seen.agent if seen.claim is ACTIVE else "",
        expires_ms=seen.expires_ms if seen.claim is ACTIVE else 0,
        retries=seen.retries,
        retry_ms=seen.retry_ms,
        note=seen.note,
        description=spec.description,
        type=spec.type,
        track=spec.track,
        role=spec.role,
        needs=list(spec.needs),
        priority=spec.priority,
        files=list(spec.files),
        depends_on=list(spec.depends_on),
        requirements=spec.requirements,
        deadline_ms=spec.deadline_ms,
        estimate_s=spec.estimate_s,
        retries_max=spec.retries_max,
        created_ms=spec.created_ms,
        parts=spec.parts,
        parts_done=seen.parts_done,
        assignee=spec.assignee if now < spec.assigned_until_ms else "",
    )


class TrackPurpose(NamedTuple):
    """The title of a track and the work it usually has."""

    title: str
    work: str


USUAL_TRACKS = {
    "A": TrackPurpose("Core Architecture", "the foundation: framework and core modules"),
    "B": TrackPurpose("Data Layer", "databases, storage, caches"),
    "C": TrackPurpose("API Layer", "endpoints, contracts, validation"),
    "D": TrackPurpose("Frontend", "what users see, and its logic"),
    "E": TrackPurpose("Infrastructure", "deployment, CI/CD, monitoring"),
    "F": TrackPurpose("Testing", "test suites, coverage, quality"),
    "G": TrackPurpose("Documentation", "specifications, guides, API pages"),
    "X": TrackPurpose("Experimental", "spikes and prototypes"),
    "Z": TrackPurpose("Maintenance", "repairs, old debts, refactoring"),
}


def track_title(track: str) -> str:
    """Return the title of a usual track; empty for any other name.

    >>> title_of("B")
    'Data Layer'
    """
    return USUAL_TRACKS[track].title if track in USUAL_TRACKS else ""
