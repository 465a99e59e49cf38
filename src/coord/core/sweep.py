"""Passing deadlines: everything that stands in the due line is dealt with by the kind of its key."""

from coord.core import keys
from coord.core.commands import Sweep, TaskCommand
from coord.core.events import HistoryForgotten
from coord.core.limits import DAY_MS
from coord.core.lock_sweep import LOCK_DEADLINES
from coord.core.task import expire
from coord.core.task_record import Task
from coord.core.types import TaskStatus
from coord.core.view import View

KEPT_FOR_A_TIME = ("done", "rejected", "grant", "deadlock", "mailbox")
"""Kinds of records that are simply not needed any more when their time is up."""


def sweep(view: View, command: Sweep, now: int) -> int | None:
    """Pass up to `most` deadlines; return when the next one is, or None if there is none."""
    passed = 0
    after = ("", "")
    while page := view.scan(keys.DUE_PREFIX, by="line", limit=command.most, after=after):
        for found in page:
            deadline = keys.due_ms(found.line)
            if deadline > now or passed == command.most:
                return deadline
            passed += _pass_deadline(view, command.tenant, found.key, now)
            after = (found.line, found.key)
    return None


def _pass_deadline(view: View, tenant: str, key: str, now: int) -> bool:
    """Do what a deadline means for this kind of record; False for a kind that only a newer version knows."""
    kind, *rest = keys.parts(key)
    if kind == "task":
        expire(view, TaskCommand(tenant, *rest), now)
    elif kind == "history":
        _forget_generation(view, *rest, now=now)
    elif kind in LOCK_DEADLINES:
        LOCK_DEADLINES[kind](view, key, now)
    elif kind in KEPT_FOR_A_TIME:
        view.delete(key)
    else:
        return False
    return True


def _forget_generation(view: View, project: str, task_id: str, generation: str, *, now: int) -> None:
    """Forget an earlier generation past its retention; a task that is not done keeps its lineage."""
    history_key = keys.history(project, task_id, int(generation))
    task = view.get(keys.task(project, task_id), Task)
    earlier = view.get(history_key, Task)
    if earlier is None:
        return
    if task is not None and task.state is not TaskStatus.DONE:
        view.put(history_key, earlier, keys.due(now + DAY_MS))
        return
    view.delete(history_key)
    result_key = keys.result(project, task_id, int(generation))
    if earlier.result_bytes:
        view.delete(result_key)
    view.emit(HistoryForgotten(project, task_id, int(generation)))
