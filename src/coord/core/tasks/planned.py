"""What a plan adds to the life of a task: its turn, its track, the locks on its files, another try.

`task.py` calls these for tasks that were added; one that was only claimed knows nothing of them.
"""

import msgspec

from coord.core import keys
from coord.core.commands import TaskCommand
from coord.core.events import TaskErrored, TaskFailed, TaskRetried
from coord.core.locks.locks import Ending, Hold, Standing, end_hold, line_of, resource_of
from coord.core.locks.resources import Resource
from coord.core.locks.wait_queue import serve
from coord.core.records import Stored
from coord.core.tasks.agent_record import agent_of, count_done, count_failed
from coord.core.tasks.dependencies import settle, settle_followers, state_by_dependencies
from coord.core.tasks.schema import READY, STUCK, Task
from coord.core.tasks.spec import Spec
from coord.core.tasks.types import ReleaseReason, TaskStatus
from coord.core.transaction import View

RETRY_MS, RETRY_MS_MAX = 5_000, 600_000
AGENTS_PER_TRACK = 1


class Track(Stored, frozen=True, tag=1):
    """Who works on a track now, with how many tasks, and how many may."""

    agents_max: int = AGENTS_PER_TRACK
    agents: dict[str, int] = {}


def not_ready(view: View, project: str, task: Task, agent: str, goes: str = "") -> str:
    """Return why a task that was added may not be claimed now; empty if it may. `goes` loses it thereby."""
    if task.state not in (READY, TaskStatus.IN_PROGRESS):
        return f"the task is {task.state.value}"
    return track_is_full(view, project, task.track, agent, goes)


def track_is_full(view: View, project: str, track: str, agent: str, goes: str = "") -> str:
    """Return who stands against another agent on a track; empty if nobody does. `goes` leaves one task."""
    record = view.get(keys.track(project, track), Track) if track else None
    if record is None:
        return ""
    agents = {name for name, tasks in record.agents.items() if name != goes or tasks > 1}
    if agent in agents or len(agents) < record.agents_max:
        return ""
    return f"{', '.join(sorted(agents))} works on track {track}"


def begin_work(view: View, project: str, task_id: str, task: Task) -> None:
    """Put a task on the list of those worked on, and count its agent on its track."""
    view.put_marker(keys.working(project, task_id))
    if task.track:
        _count_agent(view, project, task, 1)


def move_work(view: View, project: str, task_id: str, before: Task, after: Task) -> None:
    """Count an agent on another track, where its task was added or moved while it works on it."""
    if before.planned and before.track:
        _count_agent(view, project, before, -1)
    begin_work(view, project, task_id, after)


def end_work(view: View, which: TaskCommand, task: Task, now: int) -> None:
    """Count an agent off its track, and end the locks that came with the claim: given back, or lost."""
    given_back = getattr(which, "session", "") == task.session
    ending = Ending.RELEASED if given_back else Ending.CLAIM_LOST
    if task.track:
        _count_agent(view, which.project, task, -1)
    freed: list[Resource] = []
    for key, hold in holds_of_task(view, which.project, which.task, task):
        freed += end_hold(view, Standing(key, hold, resource_of(hold)), ending, now)
    if freed:
        serve(view, freed, now)


def holds_of_task(view: View, project: str, task_id: str, task: Task) -> list[tuple[str, Hold]]:
    """Return the locks that a claim has, where they stand."""
    found = []
    for key in task.locked:
        hold = view.get(key, Hold)
        if hold is not None and hold.task == f"{project}/{task_id}/{task.generation}":
            found.append((key, hold))
    return found


def renew_work(view: View, project: str, task_id: str, task: Task) -> None:
    """Let the locks of a claim last as long as its lease."""
    for key, hold in holds_of_task(view, project, task_id, task):
        fence = hold.fence or view.version(key)
        renewed = msgspec.structs.replace(hold, fence=fence, expires_ms=task.expires_ms)
        view.put(key, renewed, line_of(renewed))


def _count_agent(view: View, project: str, task: Task, by: int) -> None:
    key = keys.track(project, task.track)
    record = view.get(key, Track) or Track()
    name = agent_of(task)
    agents = {**record.agents, name: record.agents.get(name, 0) + by}
    view.put(key, msgspec.structs.replace(record, agents={agent: n for agent, n in agents.items() if n > 0}))


def put_free(view: View, project: str, task_id: str, task: Task) -> None:
    """Write a task that nobody works on any more, in the queue if it is ready."""
    view.put(keys.task(project, task_id), task, task.queue if task.state is READY else "")


def put_back(view: View, project: str, task_id: str, task: Task, now: int) -> None:
    """Put a task that was given back where it belongs: its dependencies may have changed meanwhile."""
    view.delete(keys.working(project, task_id))
    spec = view.get(keys.spec(project, task_id), Spec) or Spec()
    state = state_by_dependencies(view, project, task_id, spec)
    put_free(view, project, task_id, msgspec.structs.replace(task, state=state))
    if state is TaskStatus.BLOCKED:  # while it was worked on, those behind it were not
        settle_followers(view, project, task_id, now)


def open_again(view: View, project: str, task_id: str, before: Task, opened: Task, now: int) -> None:
    """Put a task that was reset back where it belongs, and those that waited for it behind it."""
    spec = view.get(keys.spec(project, task_id), Spec) or Spec()
    state = state_by_dependencies(view, project, task_id, spec)
    task = msgspec.structs.replace(opened, planned=True, queue=before.queue, track=before.track, state=state)
    put_free(view, project, task_id, task)
    view.delete(keys.working(project, task_id))
    if before.state in STUCK:
        view.delete(keys.stuck(project, task_id))
    view.put_marker(keys.unfinished(project, task_id))
    settle(view, project, task_id, now)
    settle_followers(view, project, task_id, now)


def done_reads(project: str, task_id: str, agent: str, session: str) -> list[str]:
    """Return what the end of a task that was added looks at and writes, but for its track."""
    return [
        keys.spec(project, task_id),
        keys.agent(project, agent),
        keys.past(project, agent, session),
        keys.unfinished(project, task_id),
        keys.working(project, task_id),
    ]


def foresee_done(view: View, project: str, task_id: str, task: Task) -> None:
    """Ask at once for all that the end of a task looks at."""
    wanted = done_reads(project, task_id, agent_of(task), task.session)
    if task.track:
        wanted.append(keys.track(project, task.track))
    view.want(*wanted)


def finish_done(view: View, project: str, task_id: str, task: Task, now: int) -> None:
    """Finish a task whose result was accepted; its agent did well."""
    count_done(view, project, task_id, task, now)
    finish(view, project, task_id, now)


def finish(view: View, project: str, task_id: str, now: int) -> None:
    """Take a task that is done or skipped off the list, and let those go on that waited for it."""
    view.delete(keys.unfinished(project, task_id))
    view.delete(keys.working(project, task_id))
    settle_followers(view, project, task_id, now)


def try_again(view: View, project: str, task_id: str, task: Task, now: int, *, pause: bool) -> None:
    """Put a task back after a failure or a lost worker, until it has been tried too often."""
    spec = view.get(keys.spec(project, task_id), Spec) or Spec()
    if task.ending is not ReleaseReason.VOLUNTARY:
        count_failed(view, project, task, spec.type, now)
    retries = task.retries + 1
    if retries > spec.retries_max:
        errored = msgspec.structs.replace(task, state=TaskStatus.ERRORED, retries=retries)
        view.put(keys.task(project, task_id), errored)
        view.put_marker(keys.stuck(project, task_id))
        view.delete(keys.working(project, task_id))
        view.emit(TaskErrored(project, task_id, task.generation, retries, task.note))
        settle_followers(view, project, task_id, now)
        return
    retry_ms = now + min(RETRY_MS * 4 ** (retries - 1), RETRY_MS_MAX) if pause else 0
    again = msgspec.structs.replace(task, state=TaskStatus.PENDING, retries=retries, retry_ms=retry_ms)
    if pause:
        view.put(keys.task(project, task_id), again, keys.due(retry_ms))
    else:
        put_back(view, project, task_id, again, now)
    view.emit(TaskRetried(project, task_id, task.generation, retries, retry_ms))


def fail_for_good(view: View, project: str, task_id: str, task: Task, now: int) -> None:
    """Write down that a task cannot be done: what depends on it is blocked until somebody retries it."""
    spec = view.get(keys.spec(project, task_id), Spec) or Spec()
    count_failed(view, project, task, spec.type, now)
    view.put(keys.task(project, task_id), msgspec.structs.replace(task, state=TaskStatus.FAILED))
    view.delete(keys.working(project, task_id))
    view.put_marker(keys.stuck(project, task_id))
    view.emit(TaskFailed(project, task_id, task.generation, task.note))
    settle_followers(view, project, task_id, now)


def end_pause(view: View, project: str, task_id: str, task: Task, now: int) -> None:
    """Let a task be taken again after the pause that follows a failure."""
    put_back(view, project, task_id, msgspec.structs.replace(task, retry_ms=0), now)
