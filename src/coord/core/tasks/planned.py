"""What happens to a planned task besides its claim: queue, track, retries.

`claims.py` calls these functions for tasks that were added. A task that was only claimed has none of this.
"""

import msgspec

from coord.core import keys
from coord.core.locks.resources import Resource
from coord.core.locks.schema import EndReason
from coord.core.tasks.agent_record import agent_of, count_failure, count_success
from coord.core.tasks.claim_locks import end_claim_locks
from coord.core.tasks.commands import TaskCommand
from coord.core.tasks.dependencies import state_by_dependencies, update_dependents, update_readiness
from coord.core.tasks.schema import (
    READY,
    STUCK_STATES,
    Spec,
    Task,
    TaskErrored,
    TaskFailed,
    TaskRetried,
    Track,
)
from coord.core.tasks.types import ReleaseReason, TaskStatus
from coord.core.transaction import Transaction

RETRY_MS, RETRY_MS_MAX = 5_000, 600_000


def not_ready_reason(tx: Transaction, project: str, task: Task, agent: str, previous_agent: str = "") -> str:
    """Return why a planned task cannot be claimed now; empty if it can.

    `previous_agent` holds the task now, and loses it by the claim.
    """
    if task.state not in (READY, TaskStatus.IN_PROGRESS):
        return f"the task is {task.state.value}"
    return track_full_reason(tx, project, task.track, agent, previous_agent)


def track_full_reason(tx: Transaction, project: str, track: str, agent: str, previous_agent: str = "") -> str:
    """Return why a track has no room for an agent; empty if it has.

    `previous_agent` is about to lose one task on the track.
    """
    record = tx.get(keys.track(project, track), Track) if track else None
    if record is None:
        return ""
    agents = {name for name, tasks in record.agents.items() if name != previous_agent or tasks > 1}
    if agent in agents or len(agents) < record.agents_max:
        return ""
    return f"track {track} is full: {', '.join(sorted(agents))}"


def occupy_track(tx: Transaction, project: str, task_id: str, task: Task) -> None:
    """Add a task to the index of tasks in progress, and count its agent on the track."""
    tx.put_marker(keys.working(project, task_id))
    if task.track:
        _count_agent(tx, project, task, 1)


def move_track(tx: Transaction, project: str, task_id: str, before: Task, after: Task) -> None:
    """Count an agent on another track, after its task changed tracks during the claim."""
    if before.planned and before.track:
        _count_agent(tx, project, before, -1)
    occupy_track(tx, project, task_id, after)


def vacate_track(tx: Transaction, which: TaskCommand, task: Task, now: int) -> list[Resource]:
    """Count an agent off its track, and end the locks of its claim as released or as lost; return these."""
    released = getattr(which, "session", "") == task.session
    end_reason = EndReason.RELEASED if released else EndReason.CLAIM_LOST
    if task.track:
        _count_agent(tx, which.project, task, -1)
    return end_claim_locks(tx, which.project, which.task, task, end_reason, now)


def _count_agent(tx: Transaction, project: str, task: Task, by: int) -> None:
    key = keys.track(project, task.track)
    record = tx.get(key, Track) or Track()
    name = agent_of(task)
    agents = {**record.agents, name: record.agents.get(name, 0) + by}
    tx.put(key, msgspec.structs.replace(record, agents={agent: n for agent, n in agents.items() if n > 0}))


def put_unclaimed(tx: Transaction, project: str, task_id: str, task: Task) -> None:
    """Write a task without a claim; put it in the queue if it is ready."""
    tx.put(keys.task(project, task_id), task, task.queue if task.state is READY else "")


def return_to_queue(tx: Transaction, project: str, task_id: str, task: Task, now: int) -> None:
    """Write a released task with the state that follows from its dependencies."""
    tx.delete(keys.working(project, task_id))
    spec = tx.get(keys.spec(project, task_id), Spec) or Spec()
    state = state_by_dependencies(tx, project, task_id, spec)
    put_unclaimed(tx, project, task_id, msgspec.structs.replace(task, state=state))
    if state is TaskStatus.BLOCKED:  # its dependents did not follow while it was in progress
        update_dependents(tx, project, task_id, now)


def reopen(tx: Transaction, project: str, task_id: str, before: Task, opened: Task, now: int) -> None:
    """Write a task that was reset, and update the tasks that depend on it."""
    spec = tx.get(keys.spec(project, task_id), Spec) or Spec()
    state = state_by_dependencies(tx, project, task_id, spec)
    task = msgspec.structs.replace(opened, planned=True, queue=before.queue, track=before.track, state=state)
    put_unclaimed(tx, project, task_id, task)
    tx.delete(keys.working(project, task_id))
    if before.state in STUCK_STATES:
        tx.delete(keys.stuck(project, task_id))
    tx.put_marker(keys.unfinished(project, task_id))
    update_readiness(tx, project, task_id, now)
    update_dependents(tx, project, task_id, now)


def done_reads(project: str, task_id: str, agent: str, session: str) -> list[str]:
    """Return the keys that the end of a planned task reads and writes, except its track."""
    return [
        keys.spec(project, task_id),
        keys.agent(project, agent),
        keys.track_record(project, agent, session),
        keys.unfinished(project, task_id),
        keys.working(project, task_id),
    ]


def prefetch_done(tx: Transaction, project: str, task_id: str, task: Task) -> None:
    """Prefetch everything that the end of a task reads."""
    wanted = done_reads(project, task_id, agent_of(task), task.session)
    if task.track:
        wanted.append(keys.track(project, task.track))
    tx.prefetch(*wanted)


def finish_done(tx: Transaction, project: str, task_id: str, task: Task, now: int) -> None:
    """Finish a task whose result was accepted, and count it for its agent."""
    count_success(tx, project, task_id, task, now)
    finish(tx, project, task_id, now)


def finish(tx: Transaction, project: str, task_id: str, now: int) -> None:
    """Remove a done or skipped task from the indexes, and update its dependents."""
    tx.delete(keys.unfinished(project, task_id))
    tx.delete(keys.working(project, task_id))
    update_dependents(tx, project, task_id, now)


def schedule_retry(
    tx: Transaction, project: str, task_id: str, task: Task, now: int, *, backoff: bool
) -> None:
    """Return a task to the queue after a failure or a lost lease; mark it errored after too many."""
    spec = tx.get(keys.spec(project, task_id), Spec) or Spec()
    if task.end_reason is not ReleaseReason.VOLUNTARY:
        count_failure(tx, project, task, spec.type, now)
    retries = task.retries + 1
    if retries > spec.retries_max:
        errored = msgspec.structs.replace(task, state=TaskStatus.ERRORED, retries=retries)
        tx.put(keys.task(project, task_id), errored)
        tx.put_marker(keys.stuck(project, task_id))
        tx.delete(keys.working(project, task_id))
        tx.emit(TaskErrored(project, task_id, task.generation, retries, task.note))
        update_dependents(tx, project, task_id, now)
        return
    retry_ms = now + min(RETRY_MS * 4 ** (retries - 1), RETRY_MS_MAX) if backoff else 0
    again = msgspec.structs.replace(task, state=TaskStatus.PENDING, retries=retries, retry_ms=retry_ms)
    if backoff:
        tx.put(keys.task(project, task_id), again, keys.due(retry_ms))
    else:
        return_to_queue(tx, project, task_id, again, now)
    tx.emit(TaskRetried(project, task_id, task.generation, retries, retry_ms))


def fail_for_good(tx: Transaction, project: str, task_id: str, task: Task, now: int) -> None:
    """Record a permanent failure: dependents are blocked until somebody retries the task."""
    spec = tx.get(keys.spec(project, task_id), Spec) or Spec()
    count_failure(tx, project, task, spec.type, now)
    tx.put(keys.task(project, task_id), msgspec.structs.replace(task, state=TaskStatus.FAILED))
    tx.delete(keys.working(project, task_id))
    tx.put_marker(keys.stuck(project, task_id))
    tx.emit(TaskFailed(project, task_id, task.generation, task.note))
    update_dependents(tx, project, task_id, now)


def end_backoff(tx: Transaction, project: str, task_id: str, task: Task, now: int) -> None:
    """Return a task to the queue after its backoff."""
    return_to_queue(tx, project, task_id, msgspec.structs.replace(task, retry_ms=0), now)
