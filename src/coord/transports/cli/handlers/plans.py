"""Load, check and show plans."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from coord.core.errors import Invalid, Refused
from coord.core.plans.commands import AddTasksReply, NewTask, TaskInfo
from coord.core.plans.plan import track_title
from coord.core.tasks.types import TaskStatus
from coord.sdk.client.client import Client
from coord.sdk.plans.check import Changes, PlanCheck, check_plan, difference
from coord.sdk.plans.file import Plan, read_plan
from coord.transports import exit_codes
from coord.transports.cli.args import Args, Options
from coord.transports.cli.handlers.tasks import in_project, warning
from coord.transports.cli.output import Answer, count, fields_of, has_colours, is_terminal, width
from coord.transports.cli.plan_view import drawing as plan_drawing
from coord.transports.cli.plan_view import text as plan_text

COLUMNS = ("track", "task_id", "state", "agent", "depends_on", "description")
NAMED_MAX = 5
PLAN_FILE = "plan.yaml"
EXAMPLE_PROJECT = "shop"
DIFFERENCE = ("change", "task_id", "field", "before", "after")


class LoadArgs(Args, frozen=True):
    """The arguments of `coord plan load`."""

    file: str
    dry_run: bool


def load(client: Client, args: LoadArgs) -> Answer:
    """Add the tasks of a plan, or show the changes (`--dry-run`)."""
    plan, checked, stored = _read(client, args.file)
    if checked.problems:
        return _problems(checked)
    located = [client.located(task, from_root=True) for task in checked.tasks]
    changes = difference(located, stored)
    reply = _compared(located, stored, changes) if args.dry_run else _loaded(client, plan, checked)
    if plan.project and not client.project_given and not args.dry_run:
        client.use_project(plan.project, remember=True)
    in_plan = {task.task_id for task in located}
    others = [task.task_id for task in stored if task.task_id not in in_plan]
    changed = {name: list(changes.get(name, {})) for name in reply.changed}
    fields = {
        "project": client.project,
        "added": reply.added,
        "changed": changed,
        "changes": [each for each in _rows(reply, changes, []) if each["change"] == "changed"],
        "unchanged": len(reply.same),
        "not_in_plan": others,
        "warnings": [*checked.warnings, *map(str, reply.similar)],
        "dry_run": args.dry_run,
    }
    listed = "; ".join(f"{name}: {', '.join(names)}" for name, names in list(changed.items())[:NAMED_MAX])
    added = f"Dry run: {len(reply.added)} would be added" if args.dry_run else f"{len(reply.added)} added"
    line = f"{added}, {len(changed)} changed{f' ({listed})' if listed else ''}"
    line += f", {len(reply.same)} unchanged{warning(reply)}"
    line += f"; kept although not in the plan: {_few(others)}" if others else ""
    line += in_project(client)
    return Answer(fields, line, _rows(reply, changes, others), DIFFERENCE)


def _loaded(client: Client, plan: Plan, checked: PlanCheck) -> AddTasksReply:
    for track, agents in plan.agents.items():
        client.set_track(track, agents)
    person = is_terminal(sys.stderr)
    return client.add_tasks(checked.tasks, from_root=True, progress=_progress if person else None)


def _compared(tasks: Sequence[NewTask], stored: Sequence[TaskInfo], changes: Changes) -> AddTasksReply:
    """Return the reply that loading would give."""
    there = {task.task_id for task in stored}
    added = [task.task_id for task in tasks if task.task_id not in there]
    same = [task.task_id for task in tasks if task.task_id in there and task.task_id not in changes]
    return AddTasksReply(added, list(changes), same, [])


def _rows(reply: AddTasksReply, changes: Changes, others: Sequence[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = [{"change": "added", "task_id": name} for name in reply.added]
    for name in reply.changed:
        rows += [
            {"change": "changed", "task_id": name, "field": field, "before": before, "after": after}
            for field, (before, after) in changes.get(name, {}).items()
        ]
    return rows + [{"change": "not in plan", "task_id": name} for name in others]


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return ", ".join(names[:NAMED_MAX]) + more


class InitArgs(Args, frozen=True):
    """The arguments of `coord plan init`."""

    file: str


def init(_options: Options, args: InitArgs) -> Answer:
    """Write a commented example plan for this repository; never overwrite a file."""
    from importlib.resources import files

    from coord.host.caller import project_name
    from coord.host.repository import find_repository

    path = args.file or PLAN_FILE
    if path.endswith(".json"):
        raise Invalid(
            "the example is YAML, which has comments", hint=f"for example coord plan init {PLAN_FILE}"
        )
    text = files("coord").joinpath("examples", PLAN_FILE).read_text(encoding="utf-8")
    project = project_name(find_repository(os.getcwd()))
    text = text.replace(f"\nproject: {EXAMPLE_PROJECT}\n", f"\nproject: {project}\n")
    text = text.replace(f" {PLAN_FILE}`", f" {path}`")
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise Refused(f"{path} exists", hint="name another file: coord plan init FILE") from error
    except OSError as error:
        raise Invalid(f"{path} cannot be written: {error.strerror}", hint="name another file") from error
    line = f"Wrote {path}; edit it, then run coord plan check {path} and coord plan load {path}"
    return Answer({"file": path}, line)


class CheckArgs(Args, frozen=True):
    """The arguments of `coord plan check`."""

    file: str


def check(client: Client, args: CheckArgs) -> Answer:
    """Check a plan without loading it."""
    plan, checked, _ = _read(client, args.file)
    if checked.problems:
        return _problems(checked)
    tracks = len({task.track for task in checked.tasks if task.track})
    line = (
        f"{count(len(plan.tasks), 'task')} on {count(tracks, 'track')}, "
        f"{count(len(checked.warnings), 'warning')}"
    )
    fields = {"tasks": len(plan.tasks), "tracks": tracks, "problems": [], "warnings": checked.warnings}
    return Answer(fields, line, [{"warning": each} for each in checked.warnings], ("warning",))


class ShowArgs(Args, frozen=True):
    """The arguments of `coord plan show`."""

    table: bool
    picture: bool
    mermaid: bool
    svg: bool


def show(client: Client, args: ShowArgs) -> Answer | str:
    """Show the tracks, their tasks and their progress."""
    found = client.task_list()
    if args.mermaid:
        return plan_drawing.mermaid(found)
    if args.svg:
        return plan_drawing.svg(found)
    if args.picture:
        return plan_text.picture(found, width(sys.stdout), colours=has_colours())
    tracks = progress(found)
    done = sum(task.state in ("done", "skipped") for task in found)
    line = f"{done} of {count(len(found), 'task')} done" if found else "No tasks"
    line += in_project(client)
    fields = {"tracks": tracks, "tasks": fields_of(found)}
    if args.table:
        return Answer(fields, line, _table(tracks, found), COLUMNS)
    return Answer(fields, line, drawn=lambda room: plan_text.picture(found, room, colours=has_colours()))


def _table(tracks: Sequence[Mapping[str, Any]], found: Sequence[TaskInfo]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for track in tracks:
        rows.append({"track": track["track"], "task_id": f"{track['percent']} % of {track['total']}"})
        rows += [{**fields_of(task), "track": ""} for task in found if task.track == track["track"]]
    return rows


def progress(tasks: Sequence[TaskInfo]) -> list[dict[str, Any]]:
    """Return the progress of each track; tasks without a track have the empty name."""
    found = []
    for track in sorted({task.track for task in tasks}):
        own = [task for task in tasks if task.track == track]
        states = [task.state for task in own]
        counts = {state.value: states.count(state.value) for state in TaskStatus}
        completed = counts["done"] + counts["skipped"]
        found.append(
            {
                "track": track,
                "title": track_title(track),
                "agents": sorted({task.agent for task in own if task.agent}),
                "completed": completed,
                "in_progress": counts["in_progress"],
                "pending": len(states) - completed - counts["in_progress"],
                "total": len(states),
                "percent": 100 * completed // len(states),
                "states": {state: count for state, count in counts.items() if count},
            }
        )
    return found


def _read(client: Client, path: str) -> tuple[Plan, PlanCheck, list[TaskInfo]]:
    plan = read_plan(path)
    if plan.project and not client.project_given:
        client.use_project(plan.project)
    stored = client.task_list()
    return plan, check_plan(plan, stored, strict=client.strict_ids), stored


def _problems(checked: PlanCheck) -> Answer:
    more = f" (and {len(checked.problems) - 1} more)" if len(checked.problems) > 1 else ""
    message = f"The plan cannot be loaded: {checked.problems[0]}{more}"
    failure = exit_codes.Failure(
        exit_codes.INVALID, "invalid", message, "fix the file; coord plan check lists all problems"
    )
    fields = {"problems": checked.problems, "warnings": checked.warnings}
    rows = [{"problem": each} for each in checked.problems]
    return Answer(fields, message, rows, ("problem",), failure)


def _progress(done: int, total: int) -> None:
    """Show the progress of loading on one line, which is overwritten."""
    if sys.stderr is not None:
        sys.stderr.write(f"\r{done} of {count(total, 'task')}{chr(10) if done == total else ''}")
        sys.stderr.flush()
