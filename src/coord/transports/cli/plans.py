"""Commands about plans."""

import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from coord.core.errors import Invalid
from coord.core.replies import TaskListed
from coord.core.types import TaskStatus
from coord.sdk.client import Client
from coord.sdk.plan_check import Checked, check_plan, difference
from coord.sdk.plan_file import Plan, read_plan
from coord.transports import render
from coord.transports.cli.output import Answer, fields_of, is_terminal

COLUMNS = ("track", "task_id", "state", "agent", "depends_on", "description")
NAMED_MOST = 5
OTHER_FIELDS = ["retries_max"]
"""What a task has that lists do not show."""
COLOURS = {
    TaskStatus.DONE: "#b7e4c7",
    TaskStatus.SKIPPED: "#e9ecef",
    TaskStatus.IN_PROGRESS: "#ffe8a1",
    TaskStatus.READY: "#cfe2ff",
    TaskStatus.BLOCKED: "#f8d7da",
    TaskStatus.FAILED: "#f1aeb5",
    TaskStatus.ERRORED: "#f1aeb5",
}


def load(client: Client, given: SimpleNamespace) -> Answer:
    """Add the tasks of a plan."""
    plan, checked, stored = _read(client, given.file)
    if checked.problems:
        return _problems(checked)
    located = [client.located(task, from_root=True) for task in checked.tasks]
    before = difference(located, stored)
    for track, agents in plan.agents.items():
        client.set_track(track, agents)
    person = is_terminal(sys.stderr)
    reply = client.add_tasks(checked.tasks, from_root=True, progress=_progress if person else None)
    changed = {name: before.get(name, OTHER_FIELDS) for name in reply.changed}
    in_plan = {task.task_id for task in checked.tasks}
    fields = {
        "added": reply.added,
        "changed": changed,
        "same": len(reply.same),
        "not_in_plan": [task.task_id for task in stored if task.task_id not in in_plan],
        "warnings": checked.warnings,
    }
    told = "; ".join(f"{name}: {', '.join(names)}" for name, names in list(changed.items())[:NAMED_MOST])
    line = f"{len(reply.added)} added, {len(changed)} changed{f' ({told})' if told else ''}"
    rows = [{"task_id": name, "changed": names} for name, names in changed.items()]
    return Answer(fields, f"{line}, {len(reply.same)} as before", rows, ("task_id", "changed"))


def check(client: Client, given: SimpleNamespace) -> Answer:
    """Look a plan over."""
    plan, checked, _ = _read(client, given.file)
    if checked.problems:
        return _problems(checked)
    tracks = len({task.track for task in checked.tasks if task.track})
    line = f"{len(plan.tasks)} tasks on {tracks} tracks, {len(checked.warnings)} warnings"
    fields = {"tasks": len(plan.tasks), "tracks": tracks, "problems": [], "warnings": checked.warnings}
    return Answer(fields, line, [{"warning": each} for each in checked.warnings], ("warning",))


def show(client: Client, given: SimpleNamespace) -> Answer | str:
    """Show the tasks of each track and how far they are."""
    found = client.task_list()
    if given.mermaid:
        return mermaid(found)
    tracks = progress(found)
    rows: list[dict[str, Any]] = []
    for track in tracks:
        rows.append({"track": track["track"], "task_id": f"{track['percent']} % of {track['total']}"})
        rows += [{**fields_of(task), "track": ""} for task in found if task.track == track["track"]]
    done = sum(task.state in ("done", "skipped") for task in found)
    line = f"{done} of {len(found)} tasks are done" if found else "there are no tasks"
    return Answer({"tracks": tracks, "tasks": fields_of(found)}, line, rows, COLUMNS)


def progress(tasks: Sequence[TaskListed]) -> list[dict[str, Any]]:
    """Return how far each track is; what stands in none comes under the empty name."""
    found = []
    for track in sorted({task.track for task in tasks}):
        states = [task.state for task in tasks if task.track == track]
        counts = {state.value: states.count(state.value) for state in TaskStatus}
        completed = counts["done"] + counts["skipped"]
        found.append(
            {
                "track": track,
                "completed": completed,
                "in_progress": counts["in_progress"],
                "pending": len(states) - completed - counts["in_progress"],
                "total": len(states),
                "percent": 100 * completed // len(states),
                "states": {state: count for state, count in counts.items() if count},
            }
        )
    return found


def mermaid(tasks: Sequence[TaskListed]) -> str:
    """Return the tasks as a Mermaid flowchart: one box per track, arrows from what comes first."""
    numbers = {task.task_id: f"t{number}" for number, task in enumerate(tasks)}
    lines = ["flowchart LR"]
    for place, track in enumerate(sorted({task.track for task in tasks})):
        own = [
            f'{numbers[task.task_id]}["{task.task_id.replace("#", "#35;")}"]'
            for task in tasks
            if task.track == track
        ]
        if track:
            lines += [f'  subgraph track{place}["{track}"]', *(f"    {box}" for box in own), "  end"]
        else:
            lines += [f"  {box}" for box in own]
    for task in tasks:
        after = [numbers[name] for name in task.depends_on if name in numbers]
        lines += [f"  {number} --> {numbers[task.task_id]}" for number in after]
    for state, colour in COLOURS.items():
        shown = [numbers[task.task_id] for task in tasks if task.state == state]
        if shown:
            lines += [f"  classDef {state.value} fill:{colour}", f"  class {','.join(shown)} {state.value}"]
    return "\n".join(lines) + "\n"


def _read(client: Client, path: str) -> tuple[Plan, Checked, list[TaskListed]]:
    plan = read_plan(path)
    if plan.project and plan.project != client.project:
        raise Invalid(
            f"the plan is of project {plan.project}, not of {client.project}",
            hint=f"add --project {plan.project}",
        )
    stored = client.task_list()
    return plan, check_plan(plan, [task.task_id for task in stored]), stored


def _problems(checked: Checked) -> Answer:
    more = f" (and {len(checked.problems) - 1} more)" if len(checked.problems) > 1 else ""
    message = f"The plan cannot be loaded: {checked.problems[0]}{more}"
    failure = render.Failure(
        render.INVALID, "invalid", message, "correct the file; coord plan check lists all"
    )
    fields = {"problems": checked.problems, "warnings": checked.warnings}
    rows = [{"problem": each} for each in checked.problems]
    return Answer(fields, message, rows, ("problem",), failure)


def _progress(done: int, total: int) -> None:
    """Tell a person how far loading is, on one line that is written over."""
    if sys.stderr is not None:
        sys.stderr.write(f"\r{done} of {total} tasks{chr(10) if done == total else ''}")
        sys.stderr.flush()
