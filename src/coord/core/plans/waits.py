"""Sessions that wait for a task, as the search for deadlocks sees them.

A session that holds nothing blocks nobody, so its wait is not recorded. If a session or one of its
ancestors has a lock or a claim, `waits/<session>` says which tasks it could get. The search asks
`find_task_options` what blocks them at that time, because files, claims and tracks change.
"""

import msgspec

from coord.core import keys
from coord.core.identity import Caller
from coord.core.locks.commands import FindTaskOptions, TaskOption
from coord.core.locks.cycles import TaskWaitAt
from coord.core.locks.deadlock import break_deadlocks
from coord.core.locks.schema import SessionWaits, TaskWait, WaitState
from coord.core.locks.wait_queue import LEASE_MS, forget_task_wait, put_waits
from coord.core.plans.commands import ClaimNext, EndTaskWait, NextTask, Runnable
from coord.core.plans.queue import classes_for, lock_request, queue_classes
from coord.core.sessions.identify import ancestors, find_session
from coord.core.sessions.schema import Session
from coord.core.tasks.planned import track_full_reason
from coord.core.tasks.schema import ACTIVE, UNCLAIMED, Spec, Task, as_of
from coord.core.transaction import Transaction

OPTIONS_MAX = 64
"""How many tasks are looked at; if there are more, one of them may come, and nobody is stuck."""


def begin_task_wait(
    tx: Transaction, command: ClaimNext, session: Session, reply: NextTask, now: int
) -> NextTask:
    """Record that a session waits for a task, and break the cycles that this closes."""
    name = session.session_id
    waits = tx.get(keys.waits(name), SessionWaits) or SessionWaits()
    before = waits.task if waits.task is not None and waits.task.state is WaitState.WAITING else None
    if before is None and not _has_locks_or_claims(tx, name):
        return reply
    wait = _task_wait(command, session, before, now)
    if before is None or (wait.leased and now - before.renewed_ms >= LEASE_MS // 3):
        put_waits(tx, name, msgspec.structs.replace(waits, task=wait))
    break_deadlocks(tx, TaskWaitAt(keys.waits(name), wait), {}, now)
    return read_loss(tx, name) or msgspec.structs.replace(reply, registered=True)


def _task_wait(command: ClaimNext, session: Session, before: TaskWait | None, now: int) -> TaskWait:
    shared = ("project", "repository", "types", "tracks", "roles", "has", "cannot", "lock_files", "leased")
    return TaskWait(
        session=session.session_id,
        agent=session.agent,
        since_ms=now if before is None else before.since_ms,
        renewed_ms=now,
        until_ms=now + command.wait_ms if before is None else before.until_ms,
        process=command.waiter,
        **{name: getattr(command, name) for name in shared},
    )


def _has_locks_or_claims(tx: Transaction, name: str) -> bool:
    """Whether a session or one of its ancestors has a lock or a claim."""
    family = (name, *ancestors(tx, name))
    prefixes = [
        prefix(each) for each in family for prefix in (keys.session_lock_prefix, keys.by_session_prefix)
    ]
    tx.prefetch(prefixes=prefixes, limit=1)
    return any(tx.scan(prefix, limit=1) for prefix in prefixes)


def read_loss(tx: Transaction, session: str) -> NextTask | None:
    """Return what a deadlock cost a session that waited for a task, and forget its wait."""
    waits = tx.get(keys.waits(session), SessionWaits)
    task = waits.task if waits is not None else None
    if task is None or task.state is not WaitState.REFUSED:
        return None
    forget_task_wait(tx, session)
    return NextTask(
        Runnable.BLOCKED,
        waiting_for=[f"deadlock: {' -> '.join(task.cycle)}"],
        lost=list(task.lost),
        lost_to=task.lost_to,
    )


def end_task_wait(tx: Transaction, command: EndTaskWait, now: int) -> bool:
    """Forget the wait of a session that gave up; return whether it had one."""
    return forget_task_wait(tx, find_session(tx, command.caller, now))


def find_task_options(tx: Transaction, command: FindTaskOptions, now: int) -> list[TaskOption]:
    """Return the tasks that a session waits for and what blocks each; none if one may come by itself."""
    wait = command.wait
    session = tx.get(keys.session(wait.session), Session)
    if session is None or tx.scan(keys.pending_update_prefix(wait.project), limit=1):
        return []
    working = _tasks_in_progress(tx, wait, now)
    ready = None if working is None else _ready_options(tx, wait, session, working, now)
    if working is None or ready is None:
        return []
    claimed = [
        TaskOption(name, sessions=(task.session,))
        for name, task in working.items()
        if task.session != wait.session and _has_dependents(tx, wait.project, name)
    ]
    return [*ready, *claimed]


def _tasks_in_progress(tx: Transaction, wait: TaskWait, now: int) -> dict[str, Task] | None:
    """Return the claimed tasks of the project; None if one of them comes back by itself."""
    prefix = keys.working_prefix(wait.project)
    names = [found.key[len(prefix) :] for found in tx.scan(prefix, limit=OPTIONS_MAX + 1)]
    tx.prefetch(*(key(wait.project, name) for name in names for key in (keys.task, keys.spec)))
    tasks = {name: as_of(tx.get(keys.task(wait.project, name), Task) or UNCLAIMED, now) for name in names}
    if len(names) > OPTIONS_MAX or any(task.claim is not ACTIVE for task in tasks.values()):
        return None
    return tasks


def _ready_options(
    tx: Transaction, wait: TaskWait, session: Session, working: dict[str, Task], now: int
) -> list[TaskOption] | None:
    """Return the ready tasks that locks or full tracks block; None if one can be taken, by whomever."""
    query = _query(wait)
    may_take = {name for name, _ in classes_for(tx, query, session)}
    options: list[TaskOption] = []
    for name, kind in queue_classes(tx, wait.project):
        found = tx.scan(keys.ready_prefix(wait.project, name), by="index_key", limit=OPTIONS_MAX + 1)
        tasks = [keys.parts(entry.key)[-1] for entry in found]
        tx.prefetch(*(keys.spec(wait.project, task) for task in tasks))
        if len(options) + len(tasks) > OPTIONS_MAX:
            return None
        if name not in may_take:
            if any(_has_dependents(tx, wait.project, task) for task in tasks):
                return None  # another agent may take it
            continue
        on_track = tuple(task.session for task in working.values() if task.track == kind.track)
        if track_full_reason(tx, wait.project, kind.track, wait.agent or wait.session):
            options += [TaskOption(task, on_track, one_is_enough=True) for task in tasks]
            continue
        for task in tasks:
            request = lock_request(tx, query, session, task, now)
            if request is None:
                return None
            options.append(TaskOption(task, request=request))
    return options


def _query(wait: TaskWait) -> ClaimNext:
    names = ("project", "repository", "types", "tracks", "roles", "has", "cannot", "lock_files")
    caller = Caller(wait.session, agent=wait.agent)
    return ClaimNext(caller=caller, tenant="", lease_ms=0, **{name: getattr(wait, name) for name in names})


def _has_dependents(tx: Transaction, project: str, task: str) -> bool:
    spec = tx.get(keys.spec(project, task), Spec)
    return spec is not None and spec.has_dependents
