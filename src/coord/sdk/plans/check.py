"""Check a plan before it is loaded: problems prevent loading, warnings do not."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from coord.core.errors import Invalid
from coord.core.ids import TaskIdentifier
from coord.core.locks.resources import Resource, parse_resource
from coord.core.plans.commands import NewTask, TaskInfo
from coord.sdk.plans.file import Plan

WARNINGS_MAX = 100
_LIKE_A_TRACK_ID = r"[A-Z]+-[0-9]+-.*"
"""An id that was probably meant for the track grammar; a ticket such as TOD-406 has no description."""
_GLOB = frozenset("*?[]{}\\")
COMPARED = (
    *("description", "type", "track", "role", "needs", "priority", "files", "depends_on", "requirements"),
    *("deadline_ms", "estimate_s", "retries_max"),
)
Changes = dict[str, dict[str, tuple[object, object]]]
"""The stored and the planned value of each changed field, by task and field."""


class PlanCheck(NamedTuple):
    """The tasks of a plan in order of their dependencies, with problems and warnings."""

    tasks: list[NewTask]
    problems: list[str]
    warnings: list[str]


def check_plan(plan: Plan, stored: Iterable[TaskInfo] = (), *, strict: bool = False) -> PlanCheck:
    """Return the tasks of a plan in an order that respects dependencies, with problems and warnings.

    `stored` are the tasks of the project. The plan may depend on them, and a cycle may run through them.
    With `strict` every id must follow the track grammar.
    """
    problems = [*plan.problems]
    counts = Counter(task.task_id for task in plan.tasks)
    problems += [f"{name}: the id is used {count} times" for name, count in counts.items() if count > 1]
    by_id = {task.task_id: task for task in plan.tasks}
    problems += [problem for task in by_id.values() for problem in _grammar(task, strict)]
    known = {task.task_id: tuple(task.depends_on) for task in stored}
    there = {*by_id, *known}
    for task in by_id.values():
        missing = [name for name in task.depends_on if name not in there]
        problems += [f"{task.task_id}: depends on {name}, which does not exist" for name in missing]
    order, cycle = topological_order(by_id, known)
    if cycle:
        problems.append(f"dependency cycle: {' -> '.join(cycle)}")
    warnings = [
        f"{task.task_id}: the description in the id is not kebab-case"
        for task in order
        if (parsed := TaskIdentifier.find(task.task_id)) is not None and not parsed.kebab_case
    ]
    if not problems:
        warnings += shared_files(order, plan.agents)
    return PlanCheck(order, problems, warnings)


def _grammar(task: NewTask, strict: bool) -> list[str]:
    name = task.task_id
    parsed = TaskIdentifier.find(name)
    if parsed is None and strict:
        return [f"{name}: not TRACK-SEQUENCE-DESCRIPTION, which coord.toml requires (task_id_policy)"]
    if parsed is None and re.fullmatch(_LIKE_A_TRACK_ID, name):
        return [
            f"{name}: looks like TRACK-SEQUENCE-DESCRIPTION but is not (use A-001-login, sequence 001 to 999)"
        ]
    if parsed is not None and parsed.track != task.track:
        return [f"{name}: is in track {task.track or '-'}, but its id names track {parsed.track}"]
    return []


def topological_order(
    by_id: dict[str, NewTask], known: dict[str, tuple[str, ...]]
) -> tuple[list[NewTask], list[str]]:
    """Return the tasks, each after those it depends on, else in the given order; and the path of a cycle."""
    needs = known | {name: task.depends_on for name, task in by_id.items()}
    order: list[NewTask] = []
    placed: set[str] = set()
    for first in by_id:
        trail = [first] if first not in placed else []
        on_trail = {first: 0}
        while trail:
            name = trail[-1]
            open_one = next((need for need in needs[name] if need in needs and need not in placed), None)
            if open_one is None:
                placed.add(name)
                order += [by_id[name]] if name in by_id else []
                del on_trail[trail.pop()]
            elif open_one in on_trail:
                return order, [*trail[on_trail[open_one] :], open_one]
            else:
                on_trail[open_one] = len(trail)
                trail.append(open_one)
    return order, []


def shared_files(order: Sequence[NewTask], agents: dict[str, int]) -> list[str]:
    """Return a warning for each file of two tasks that may run at once: one will wait for the other."""
    users = _tasks_by_file(order)
    pairs = [pair for pair in _overlapping(users) if len(users[pair[0]]) + len(users[pair[1]]) > 1]
    if not pairs:
        return []
    location = {task.task_id: number for number, task in enumerate(order)}
    before: list[int] = []
    for task in order:
        bits = 0
        for name in task.depends_on:
            if name in location:
                bits |= before[location[name]] | 1 << location[name]
        before.append(bits)
    found: dict[str, None] = {}
    for mine, theirs in pairs:
        for one in users[mine]:
            for other in users[theirs]:
                first, second = sorted((one, other))
                if first == second or before[second] >> first & 1:
                    continue
                if _same_agent(order[first], order[second], agents):
                    continue
                both = f"{order[first].task_id} and {order[second].task_id}"
                found[f"{both} may run at once, and both declare {mine}"] = None
                if len(found) >= WARNINGS_MAX:
                    return list(found)
    return list(found)


def _same_agent(one: NewTask, other: NewTask, agents: dict[str, int]) -> bool:
    """Return whether one agent does both: they share a track that has one agent."""
    return bool(one.track) and one.track == other.track and agents.get(one.track, 1) == 1


def _tasks_by_file(order: Sequence[NewTask]) -> dict[str, list[int]]:
    users: dict[str, list[int]] = {}
    for number, task in enumerate(order):
        for text in dict.fromkeys(task.files):
            users.setdefault(text, []).append(number)
    return users


def _overlapping(users: dict[str, list[int]]) -> list[tuple[str, str]]:
    """Return the pairs of resources that overlap; each resource is also paired with itself."""
    globs = {text: _parsed(text) for text in users if not _GLOB.isdisjoint(text)}
    pairs = [(text, text) for text in users]
    for text in users:
        mine = globs.get(text) or (_parsed(text) if globs else ())
        for other, theirs in globs.items():
            if other != text and any(a.overlaps(b) for a in mine for b in theirs):
                pairs.append((text, other))
    return pairs


def _parsed(text: str) -> tuple[Resource, ...]:
    kind, colon, _ = text.partition(":")
    named = text if colon and kind in ("file", "name", "project") else f"file:{text}"
    try:
        return parse_resource(named, "plan")
    except Invalid:
        return ()


def difference(tasks: Iterable[NewTask], stored: Iterable[TaskInfo]) -> Changes:
    """Return the fields of tasks that differ from the stored ones, with both values."""
    there = {task.task_id: task for task in stored}
    changed: Changes = {}
    for task in tasks:
        old = there.get(task.task_id)
        pairs = (
            {name: (_plain(old, name), _plain(task, name)) for name in COMPARED} if old is not None else {}
        )
        fields = {name: (before, after) for name, (before, after) in pairs.items() if before != after}
        if fields:
            changed[task.task_id] = fields
    return changed


def _plain(task: NewTask | TaskInfo, name: str) -> object:
    value = getattr(task, name)
    return list(value) if isinstance(value, tuple) else value
