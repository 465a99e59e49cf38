"""The queue as people see it: what is in work, what is next, and what waits for other tasks."""

from heapq import merge
from itertools import islice

from coord.core import keys
from coord.core.plans.commands import GetQueue, QueueReply, TaskInfo
from coord.core.plans.plan import task_info
from coord.core.plans.queue import queue_classes
from coord.core.tasks.schema import Spec, Task
from coord.core.tasks.types import TaskStatus
from coord.core.transaction import Transaction

READ_MAX = 4
"""How many unfinished tasks are read for each one that may be shown as waiting."""
WAITING = (TaskStatus.BLOCKED, TaskStatus.PENDING)


def get_queue(tx: Transaction, command: GetQueue, now: int) -> QueueReply:
    """Return the first tasks of each kind; ready ones in the order in which agents get them."""
    project, limit = command.project, command.limit
    claimed = _names(tx, keys.working_prefix(project), limit)
    queued = _ready(tx, project, limit)
    others = _names(tx, keys.unfinished_prefix(project), limit * READ_MAX)
    found = _load(tx, project, list(dict.fromkeys((*claimed, *queued, *others))), now)
    working = [found[name] for name in claimed if name in found and found[name].session_id]
    # A task whose lease has expired is ready again before anything has put it into the queue.
    freed = [name for name in claimed if name in found and found[name].state == TaskStatus.READY]
    ready = [found[name] for name in dict.fromkeys((*freed, *queued)) if name in found]
    shown = {task.task_id for task in (*working, *ready)}
    waiting = [found[name] for name in others if name in found and name not in shown]
    waiting = [task for task in waiting if task.state in WAITING]
    return QueueReply(working, ready[:limit], waiting[:limit])


def _names(tx: Transaction, prefix: str, limit: int) -> list[str]:
    return [found.key[len(prefix) :] for found in tx.scan(prefix, limit=limit)]


def _ready(tx: Transaction, project: str, limit: int) -> list[str]:
    """Return the names of the first ready tasks of all queue classes, by rank."""
    depth = len(keys.task(project, ""))
    streams = []
    for name, _ in queue_classes(tx, project):
        prefix = keys.ready_prefix(project, name)
        page = tx.scan(prefix, by="index_key", limit=limit)
        streams.append([(each.index_key[len(prefix) :], each.key[depth:]) for each in page])
    return [name for _, name in islice(merge(*streams), limit)]


def _load(tx: Transaction, project: str, names: list[str], now: int) -> dict[str, TaskInfo]:
    tx.prefetch(*(key(project, name) for name in names for key in (keys.task, keys.spec)))
    found = {}
    for name in names:
        spec, task = tx.get(keys.spec(project, name), Spec), tx.get(keys.task(project, name), Task)
        if spec is not None and task is not None:
            found[name] = task_info(name, spec, task, now)
    return found
