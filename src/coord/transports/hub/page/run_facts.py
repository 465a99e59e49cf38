"""What a report has beside the log: the records of that run, as the hub would answer for them.

Everything is bounded, and a report is sent to people: texts of messages and diffs are not in it.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from coord.core.alerts.commands import AlertList, ListAlerts
from coord.core.commands import Command
from coord.core.identity import Caller
from coord.core.locks.commands import ListLockPeriods, LockPeriod
from coord.core.page.layout import PlanLayout, plan_layout
from coord.core.page.state import PageState
from coord.core.plans.commands import GetTasks, TaskInfo
from coord.core.tasks.commands import GetClaimHistory, GetTaskState
from coord.core.tasks.types import ClaimHistory, TaskResult
from coord.core.usage.commands import GetUsage, UsageBy, UsageTotal

SPECS_MAX = 10_000
CLAIMED_MAX = 5_000
"""Of how many tasks, those that the run touched, there are claims and a result."""
PERIODS_MAX = 5_000
RESULT_BYTES_MAX = 16 * 1024
"""A larger result is named by its size only."""
PAGE = 500
Ask = Callable[[Command], Any]


class TaskFacts(msgspec.Struct, frozen=True):
    """What is known of a task: its specification, its claims that have ended, and its result."""

    spec: TaskInfo
    history: list[ClaimHistory] = []
    result: TaskResult | None = None


class RunFacts(msgspec.Struct, frozen=True):
    """What the hub would answer for the views of a report."""

    plans: dict[str, PlanLayout] = {}
    tasks: dict[str, TaskFacts] = {}
    usage: dict[str, list[UsageTotal]] = {}
    alerts: AlertList = AlertList(0, [])
    periods: list[LockPeriod] = []
    left_out: int = 0
    """Of how many tasks something is left out."""


def read_facts(
    ask: Ask, caller: Caller, tenant: str, state: PageState, entries: Iterable[dict[str, Any]]
) -> RunFacts:
    """Return what is known of a run; `state` is that after its entries, `ask` runs a command."""
    tasks = state.tables["tasks"]
    known = {key: task for key, task in tasks.items() if _is_named(task)}
    projects = sorted({task["project"] for task in known.values()})
    specs = _specs(ask, projects)
    found = {key: TaskFacts(spec) for key, spec in specs.items()}
    claimed = [
        key
        for key in dict.fromkeys(_tasks_of(entries))
        if key in specs and known.get(key, {}).get("generation")
    ]
    for key in claimed[:CLAIMED_MAX]:
        address = (tenant, known[key]["project"], known[key]["task"])
        history, last = ask(GetClaimHistory(*address)), ask(GetTaskState(*address))
        found[key] = TaskFacts(specs[key], history, _shortened(last.result))
    rows = {each: {row["task"]: row for row in known.values() if row["project"] == each} for each in projects}
    return RunFacts(
        plans={project: plan_layout(found_there) for project, found_there in rows.items()},
        tasks=found,
        usage={each: ask(GetUsage(per=UsageBy.TASK, project=each)).totals for each in projects},
        alerts=ask(ListAlerts(caller=caller, closed=True)),
        periods=_periods(ask),
        left_out=max(0, len(known) - len(specs)) + max(0, len(claimed) - CLAIMED_MAX),
    )


def _is_named(task: dict[str, Any]) -> bool:
    """Whether a task has names; an event of another program may have anything in their place."""
    return all(isinstance(task.get(name), str) and task[name] for name in ("project", "task"))


def _tasks_of(entries: Iterable[dict[str, Any]]) -> Iterator[str]:
    for entry in entries:
        for event in entry["events"]:
            yield f"{event.get('project')}/{event.get('task')}"


def _specs(ask: Ask, projects: Iterable[str]) -> dict[str, TaskInfo]:
    found: dict[str, TaskInfo] = {}
    for project in projects:
        after, more = "", True
        while more and len(found) < SPECS_MAX:
            page = ask(GetTasks(project, after=after, limit=PAGE))
            found |= {f"{project}/{each.task_id}": each for each in page.tasks}
            after, more = page.after, page.more
    return found


def _periods(ask: Ask) -> list[LockPeriod]:
    """Return the newest periods that have ended."""
    found: list[LockPeriod] = []
    before, more = 0, True
    while more and len(found) < PERIODS_MAX:
        page = ask(ListLockPeriods(ended=True, before=before, limit=PAGE))
        found += page.periods
        before, more = page.before, bool(page.before)
    return found


def _shortened(result: TaskResult | None) -> TaskResult | None:
    if result is None or len(msgspec.json.encode(result.result_data)) <= RESULT_BYTES_MAX:
        return result
    return msgspec.structs.replace(result, result_data=None, digest=result.digest or "left out")
