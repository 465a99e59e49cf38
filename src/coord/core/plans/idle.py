"""Why the queue has no task for an agent.

Four outcomes: `done` (no task is left), `blocked` (a task will become ready; the reply says what it waits
for), `deadlocked` (every task that is left depends on a failed one, so a person has to act) and `draining`
(a person lets the agents finish what they have).
"""

from collections.abc import Sequence

from coord.core import keys
from coord.core.identity import ProcessState
from coord.core.locks.expiry import declare_dead
from coord.core.locks.wait_queue import grant_waiters
from coord.core.plans.commands import NextTask, Runnable
from coord.core.ranges import Range
from coord.core.sessions.schema import Session
from coord.core.settings import HeldWork
from coord.core.tasks.dependencies import FINISHED
from coord.core.tasks.schema import ACTIVE, UNCLAIMED, Task, as_of
from coord.core.tasks.types import TaskStatus
from coord.core.transaction import Transaction

HOLDERS_MAX = 16
"""The number of holders that are checked for a dead process when the queue has no task."""
REASONS_MAX = 20
UNFINISHED_MAX = 1_000_000
LOOK_MS = 5_000


def explain_blocked_agent(tx: Transaction, project: str, why: str, until_ms: int) -> NextTask:
    """Explain why an agent gets no task; `done` if no task is left.

    The agent is `blocked` until `until_ms`, or `denied` until somebody enables it.
    """
    if not tx.scan(keys.unfinished_prefix(project), limit=1):
        return NextTask(Runnable.DONE)
    outcome = Runnable.BLOCKED if until_ms else Runnable.DENIED
    return NextTask(outcome, waiting_for=[why], look_ms=until_ms)


def explain_held_work(tx: Transaction, project: str, found: HeldWork, now: int) -> NextTask:
    """Explain why no agent gets a task; `draining` if those that ask shall end, `done` if no task is left."""
    if not tx.scan(keys.unfinished_prefix(project), limit=1):
        return NextTask(Runnable.DONE)
    from coord.core.messages.work_mode import Mode, words_of  # noqa: PLC0415 - hardly ever

    outcome = Runnable.DRAINING if found.mode == Mode.DRAINING else Runnable.BLOCKED
    return NextTask(outcome, waiting_for=[words_of(found)], look_ms=now + LOOK_MS)


def tasks_in_progress(tx: Transaction, project: str) -> dict[str, Task]:
    """Return the first tasks that are in progress or wait for their backoff."""
    return _tasks_at(tx, project, Range(keys.working_prefix(project), "key", REASONS_MAX))


def explain_empty_queue(
    tx: Transaction, project: str, working: dict[str, Task], busy: list[str], heads: Sequence[Range], now: int
) -> NextTask:
    """Explain why there is no task; `busy` names tasks this agent cannot take, `heads` are the ready queues.

    A few ranges show progress, whatever the number of waiting tasks. Only if they show none, all unfinished
    tasks are read: a deadlock must hold at one read point, and a task may move between the ranges.
    """
    progress, look_ms = _progress(tx, project, working, heads, now)
    if reasons := [*busy, *progress]:
        return NextTask(Runnable.BLOCKED, waiting_for=reasons[:REASONS_MAX], look_ms=look_ms)
    prefix = keys.unfinished_prefix(project)
    names = [found.key[len(prefix) :] for found in tx.scan(prefix, limit=UNFINISHED_MAX)]
    if not names:
        return NextTask(Runnable.DONE)
    tx.prefetch(*(keys.task(project, name) for name in names))
    tasks = [tx.get(keys.task(project, name), Task) or UNCLAIMED for name in names]
    waiting = [_waiting_reason(name, as_of(task, now)) for name, task in zip(names, tasks, strict=True)]
    reasons = [reason for reason, _ in waiting if reason]
    # Without a failure, the task they wait for is moving between the ranges.
    stuck = bool(reasons) and not any(moves for _, moves in waiting)
    outcome = Runnable.DEADLOCKED if stuck else Runnable.BLOCKED
    look_ms = now if any(task.state in FINISHED for task in tasks) else now + LOOK_MS
    return NextTask(outcome, waiting_for=reasons[:REASONS_MAX], look_ms=look_ms)


def _tasks_at(tx: Transaction, project: str, *ranges: Range) -> dict[str, Task]:
    """Return the tasks found in some ranges, by name."""
    tx.prefetch_scans(ranges)
    keys_found = [
        found.key
        for each in ranges
        for found in tx.scan(each.prefix, by=each.by, limit=each.limit, after=each.after)
    ]
    names = [keys.parts(key)[-1] for key in keys_found]
    tx.prefetch(*(keys.task(project, name) for name in names))
    return {name: tx.get(keys.task(project, name), Task) or UNCLAIMED for name in names}


def _progress(
    tx: Transaction, project: str, working: dict[str, Task], heads: Sequence[Range], now: int
) -> tuple[list[str], int]:
    """Return which tasks make progress, and when to ask again."""
    reasons, look_ms = [], now + LOOK_MS
    for name, task in {**working, **_tasks_at(tx, project, *heads)}.items():
        reason, moves = _waiting_reason(name, as_of(task, now))
        reasons += [reason] if moves else []
        due_ms = task.retry_ms or (task.expires_ms if task.claim is ACTIVE else 0)
        look_ms = max(now, min(look_ms, due_ms or look_ms))
    pending_update = keys.pending_update_prefix(project)
    for found in tx.scan(pending_update, limit=REASONS_MAX):
        reasons.append(f"tasks that depend on {found.key[len(pending_update) :]} are being updated")
        look_ms = now
    return reasons, look_ms


def reap_dead_holders(tx: Transaction, working: dict[str, Task], own: str, now: int) -> bool:
    """Declare holders with a dead process dead; return whether there was one, which freed its tasks."""
    holders = [task.session for task in working.values() if task.claim is ACTIVE and task.session != own]
    names = list(dict.fromkeys(holders))[:HOLDERS_MAX]
    tx.prefetch(*map(keys.session, names))
    sessions = [tx.get(keys.session(name), Session) for name in names]
    living = [
        each for each in sessions if each is not None and each.process is not None and not each.ended_ms
    ]
    found = tx.evidence(*(each.process for each in living if each.process is not None))
    dead = [
        (each, proof) for each, proof in zip(living, found, strict=True) if proof.life is ProcessState.DEAD
    ]
    freed = [
        resource for each, proof in dead for resource in declare_dead(tx, each.session_id, proof.detail, now)
    ]
    grant_waiters(tx, freed, now)
    return bool(dead)


def _waiting_reason(task_id: str, task: Task) -> tuple[str, bool]:
    """Return why an unfinished task is not available, and whether that will change by itself."""
    if task.claim is ACTIVE:
        return f"{task_id} is in progress ({task.agent or task.session})", True
    if task.retry_ms:
        return f"{task_id} is retried soon", True
    if task.state is TaskStatus.READY:
        return f"{task_id} waits for another agent", True
    if task.state in (TaskStatus.FAILED, TaskStatus.ERRORED):
        return f"{task_id} {task.state.value}", False
    if task.state in FINISHED:  # it finished after the scan, so other tasks may have changed too
        return f"{task_id} has just finished", True
    return "", False
