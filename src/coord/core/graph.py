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
from coord.core.errors import Invalid
from coord.core.ids import part_ids
from coord.core.merge import merge
from coord.core.spec import Spec
from coord.core.task_record import Task
from coord.core.types import TaskStatus
from coord.core.view import View

FOLLOWERS_MAX = 20_000
"""How many tasks one change may set in motion."""

FINISHED = (TaskStatus.DONE, TaskStatus.SKIPPED)
STUCK = (TaskStatus.FAILED, TaskStatus.ERRORED, TaskStatus.BLOCKED)
WAITING = (TaskStatus.PENDING, TaskStatus.READY, TaskStatus.BLOCKED)
"""States that follow from the dependencies."""


def needs(task_id: str, spec: Spec) -> tuple[str, ...]:
    """Return what has to be finished before a task can be."""
    return part_ids(task_id, spec.parts) if spec.parts else spec.depends_on


def state_by_dependencies(view: View, project: str, task_id: str, spec: Spec) -> TaskStatus:
    """Return the state of a task nobody works on."""
    states = _states(view, project, needs(task_id, spec))
    if any(state in STUCK for state in states):
        return TaskStatus.BLOCKED
    return TaskStatus.READY if all(state in FINISHED for state in states) else TaskStatus.PENDING


def _states(view: View, project: str, names: tuple[str, ...]) -> list[TaskStatus]:
    view.want(*(keys.task(project, name) for name in names))
    tasks = [view.get(keys.task(project, name), Task) for name in names]
    return [TaskStatus.PENDING if task is None else task.state for task in tasks]


def settle_followers(view: View, project: str, task_id: str, now: int) -> None:
    """Compute anew the state of all that depends on a task, and of what depends on these in turn."""
    changed, seen = [task_id], 0
    while changed:
        followers = _followers(view, project, changed)
        seen += len(followers)
        if seen > FOLLOWERS_MAX:
            raise Invalid(f"more than {FOLLOWERS_MAX} tasks depend on {task_id}", hint="cut the plan")
        changed = [follower for follower in followers if settle(view, project, follower, now)]


def _followers(view: View, project: str, changed: list[str]) -> list[str]:
    """Return what depends directly on any of several tasks, loaded in few steps however many they are."""
    view.want(prefixes=[keys.dependent_prefix(project, name) for name in changed])
    found = list(dict.fromkeys(each for name in changed for each in dependents(view, project, name)))
    view.want(*(key for name in found for key in (keys.task(project, name), keys.spec(project, name))))
    specs = {name: view.get(keys.spec(project, name), Spec) or Spec() for name in found}
    view.want(*{keys.task(project, each) for name, spec in specs.items() for each in needs(name, spec)})
    return found


def settle(view: View, project: str, task_id: str, now: int) -> bool:
    """Compute the state of one task anew; return whether it changed."""
    task_key = keys.task(project, task_id)
    task = view.get(task_key, Task)
    spec = view.get(keys.spec(project, task_id), Spec)
    if task is None or spec is None or task.state not in WAITING or task.retry_ms:
        return False
    state = state_by_dependencies(view, project, task_id, spec)
    if spec.parts and state is TaskStatus.READY:
        merge(view, project, task_id, spec.parts, task, now)
        return True
    parts = _states(view, project, part_ids(task_id, spec.parts))
    parts_done = sum(each in FINISHED for each in parts)
    if state is task.state and parts_done == task.parts_done:
        return False
    line = task.queue if state is TaskStatus.READY else ""
    view.put(task_key, msgspec.structs.replace(task, state=state, parts_done=parts_done), line)
    return state is not task.state


def dependents(view: View, project: str, task_id: str) -> Iterator[str]:
    """Go through the tasks that depend on one directly."""
    prefix = keys.dependent_prefix(project, task_id)
    for page in view.pages(prefix):
        for found in page:
            yield found.key[len(prefix) :]


def find_cycle(view: View, project: str, task_id: str, depends_on: tuple[str, ...]) -> list[str]:
    """Return the path by which a task would come to depend on itself; empty if it would not."""
    trails = [[task_id, name] for name in depends_on]
    seen: set[str] = set()
    while trails:
        trail = trails.pop()
        if trail[-1] == task_id:
            return trail
        if trail[-1] in seen:
            continue
        seen.add(trail[-1])
        spec = view.get(keys.spec(project, trail[-1]), Spec)
        trails += [[*trail, name] for name in (needs(trail[-1], spec) if spec is not None else ())]
    return []
