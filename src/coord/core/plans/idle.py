"""Which nothing there is, where an agent asks for work and gets none.

All is *done*; something will come (*blocked*, by what); or all that is left waits for what has failed, and
nothing will ever come by itself (*deadlocked*).
"""

from collections.abc import Sequence

from coord.core import keys
from coord.core.identity import ProcessState
from coord.core.locks.expiry import declare_dead
from coord.core.locks.wait_queue import grant_waiters
from coord.core.plans.commands import NextTask, Runnable
from coord.core.ranges import Range
from coord.core.sessions.schema import Session
from coord.core.tasks.dependencies import FINISHED
from coord.core.tasks.schema import ACTIVE, UNCLAIMED, Task, as_of
from coord.core.tasks.types import TaskStatus
from coord.core.transaction import Transaction

HOLDERS_MAX = 16
"""How many of those who hold tasks are looked at, whether they are alive, where there is nothing to take."""
NAMED_MAX = 20
UNFINISHED_MAX = 1_000_000
LOOK_MS = 5_000


def explain_blocked_agent(tx: Transaction, project: str, why: str, until_ms: int) -> NextTask:
    """Give an agent nothing, unless there is nothing: it may be back, or somebody has to bring it back."""
    if not tx.scan(keys.unfinished_prefix(project), limit=1):
        return NextTask(Runnable.DONE)
    outcome = Runnable.BLOCKED if until_ms else Runnable.DENIED
    return NextTask(outcome, waiting_for=[why], look_ms=until_ms)


def tasks_in_progress(tx: Transaction, project: str) -> dict[str, Task]:
    """Return the first of those tasks that somebody works on, or that are tried again after a pause."""
    return _tasks_at(tx, project, Range(keys.working_prefix(project), "key", NAMED_MAX))


def explain_empty_queue(
    tx: Transaction, project: str, working: dict[str, Task], busy: list[str], heads: Sequence[Range], now: int
) -> NextTask:
    """Say which nothing it is; `busy` is what this agent cannot have now, `heads` where ready tasks stand.

    That something moves is seen at a few places, however much waits. Only where nothing seems to, everything
    that is not finished is looked at: that nothing will ever come must be true of one moment, and a task may
    have gone from one of those places to another meanwhile.
    """
    moving, look_ms = _moving(tx, project, working, heads, now)
    if reasons := [*busy, *moving]:
        return NextTask(Runnable.BLOCKED, waiting_for=reasons[:NAMED_MAX], look_ms=look_ms)
    prefix = keys.unfinished_prefix(project)
    names = [found.key[len(prefix) :] for found in tx.scan(prefix, limit=UNFINISHED_MAX)]
    if not names:
        return NextTask(Runnable.DONE)
    tx.prefetch(*(keys.task(project, name) for name in names))
    tasks = [tx.get(keys.task(project, name), Task) or UNCLAIMED for name in names]
    told = [_waiting_reason(name, as_of(task, now)) for name, task in zip(names, tasks, strict=True)]
    reasons = [reason for reason, _ in told if reason]
    # Where nothing has failed, what they wait for is on its way from one place to another.
    stuck = bool(reasons) and not any(moves for _, moves in told)
    outcome = Runnable.DEADLOCKED if stuck else Runnable.BLOCKED
    look_ms = now if any(task.state in FINISHED for task in tasks) else now + LOOK_MS
    return NextTask(outcome, waiting_for=reasons[:NAMED_MAX], look_ms=look_ms)


def _tasks_at(tx: Transaction, project: str, *places: Range) -> dict[str, Task]:
    """Return the tasks that stand in some ranges, by name."""
    tx.prefetch_scans(places)
    keys_found = [
        found.key
        for place in places
        for found in tx.scan(place.prefix, by=place.by, limit=place.limit, after=place.after)
    ]
    names = [keys.parts(key)[-1] for key in keys_found]
    tx.prefetch(*(keys.task(project, name) for name in names))
    return {name: tx.get(keys.task(project, name), Task) or UNCLAIMED for name in names}


def _moving(
    tx: Transaction, project: str, working: dict[str, Task], heads: Sequence[Range], now: int
) -> tuple[list[str], int]:
    """Return what is worked on, tried again soon, ready for others or about to be, and when to look again."""
    told, look_ms = [], now + LOOK_MS
    for name, task in {**working, **_tasks_at(tx, project, *heads)}.items():
        reason, moves = _waiting_reason(name, as_of(task, now))
        told += [reason] if moves else []
        due_ms = task.retry_ms or (task.expires_ms if task.claim is ACTIVE else 0)
        look_ms = max(now, min(look_ms, due_ms or look_ms))
    pending_update = keys.pending_update_prefix(project)
    for found in tx.scan(pending_update, limit=NAMED_MAX):
        told.append(f"what depends on {found.key[len(pending_update) :]} is looked at now")
        look_ms = now
    return told, look_ms


def reap_dead_holders(tx: Transaction, working: dict[str, Task], own: str, now: int) -> bool:
    """Declare holders dead that are proven to be; return whether there was one: its tasks are free."""
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
    """Return why a task that is not finished is not for this agent, and whether something moves there."""
    if task.claim is ACTIVE:
        return f"{task_id} is worked on by {task.agent or task.session}", True
    if task.retry_ms:
        return f"{task_id} is tried again soon", True
    if task.state is TaskStatus.READY:
        return f"{task_id} waits for another agent", True
    if task.state in (TaskStatus.FAILED, TaskStatus.ERRORED):
        return f"{task_id} {task.state.value}", False
    if task.state in FINISHED:  # since it was looked for; what else has changed is not known
        return f"{task_id} was finished just now", True
    return "", False
