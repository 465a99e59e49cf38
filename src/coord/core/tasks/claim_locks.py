"""The locks of a claim: they live and die with it.

A claim locks the files of its task in the commit that grants it. Each lock names the claim as a use
(`locks/uses.py`). The claim's end releases them. If one of them is lost first, by expiry, preemption,
theft or a deadlock, the commit that ends the lock also ends the claim (`orphans.end_claim_of_lock`): the
session has worked on a file that another one may change now.
"""

import msgspec

from coord.core import keys
from coord.core.locks.commands import LockInfo
from coord.core.locks.locks import (
    LockAt,
    deadline_key,
    end_by_time,
    end_uses,
    ended_by_time,
    granted_since,
    lock_info,
    read_lock,
)
from coord.core.locks.resources import Resource, parse_resource
from coord.core.locks.schema import EndReason, Lock, LockRenewed, LockRequest
from coord.core.locks.table import load_table
from coord.core.locks.uses import task_use
from coord.core.locks.wait_queue import grant_request, grant_waiters
from coord.core.sessions.identify import ancestors
from coord.core.tasks.schema import ACTIVE, PRIORITY_STEP_MS, UNCLAIMED, Spec, Task
from coord.core.transaction import Transaction

AGING_MAX = 10
"""How much waiting raises the priority of a claim's locks: a person can still preempt them."""


def lock_priority(spec: Spec, now: int) -> int:
    """Return the priority of the locks of a task: its own, raised by one for every minute in the queue."""
    waited = max(0, now - spec.created_ms) // PRIORITY_STEP_MS
    return spec.priority + min(AGING_MAX, waited)


def take_claim_locks(
    tx: Transaction, project: str, task_id: str, request: LockRequest, now: int
) -> list[LockInfo]:
    """Acquire the locks of a task that was just claimed; nothing blocks them."""
    task_key = keys.task(project, task_id)
    task = tx.get(task_key, Task)
    assert task is not None, f"{task_key} was just claimed"
    request = msgspec.structs.replace(request, use=task_use(project, task_id, task.generation))
    locks = grant_request(tx, load_table(tx, request, now, waiting=()), now)
    locked = tuple(lock.resource for lock in locks)
    task = msgspec.structs.replace(task, locked=locked, repository=request.repository)
    tx.put(task_key, task, keys.due(task.expires_ms))
    return [lock_info(lock, now) for lock in locks]


def claim_locks(tx: Transaction, project: str, task_id: str, task: Task) -> list[LockAt]:
    """Return the locks of a claim that are on record."""
    resources = _resources(task)
    tx.prefetch(*(resource.lock_key(task.session) for resource in resources))
    use = task_use(project, task_id, task.generation)
    found = []
    for resource in resources:
        key = resource.lock_key(task.session)
        lock = read_lock(tx, key)
        if lock is not None and use in lock.uses:
            found.append(LockAt(key, lock, resource))
    return found


def _resources(task: Task) -> list[Resource]:
    return [parse_resource(text, task.repository)[0] for text in task.locked]


def renew_claim_locks(tx: Transaction, project: str, task_id: str, task: Task) -> None:
    """Extend the locks of a claim to the end of its lease."""
    for key, lock, _ in claim_locks(tx, project, task_id, task):
        expires_ms = task.expires_ms if len(lock.uses) == 1 else max(task.expires_ms, lock.expires_ms)
        if expires_ms != lock.expires_ms:
            renewed = msgspec.structs.replace(lock, expires_ms=expires_ms)
            tx.put(key, renewed, deadline_key(renewed))
            tx.emit(LockRenewed(lock.resource, lock.owner, lock.fence, expires_ms))


def end_claim_locks(
    tx: Transaction, project: str, task_id: str, task: Task, end_reason: EndReason, now: int
) -> list[Resource]:
    """End the locks of a claim that ends; return what was freed."""
    use = task_use(project, task_id, task.generation)
    freed: list[Resource] = []
    for lock_at in claim_locks(tx, project, task_id, task):
        freed += end_uses(tx, lock_at, (use,), end_reason, now)
    return freed


def current_task(tx: Transaction, project: str, task_id: str, now: int) -> Task:
    """Return a task, after a claim was ended whose lock has passed its deadline."""
    task = tx.get(keys.task(project, task_id), Task) or UNCLAIMED
    if task.claim is not ACTIVE or not task.locked or now >= task.expires_ms:
        return task
    freed: list[Resource] = []
    for lock_at in claim_locks(tx, project, task_id, task):
        if ended_by_time(lock_at.lock, now) is not None and tx.get(lock_at.key, Lock) is not None:
            freed += end_by_time(tx, lock_at, now)
    if not freed:
        return task
    grant_waiters(tx, freed, now)
    return tx.get(keys.task(project, task_id), Task) or UNCLAIMED


def newest_fence(tx: Transaction, project: str, task_id: str, task: Task) -> int:
    """Return the newest fence of the locks of a claim; 0 if it has none."""
    return max((lock_at.lock.fence for lock_at in claim_locks(tx, project, task_id, task)), default=0)


def taken_by(tx: Transaction, task: Task) -> str:
    """Return a session that held a file of an expired claim since, or an empty text.

    Its own ancestors and sub-agents do not count. While the locks of the claim are on record, nobody did.
    """
    if task.claim is ACTIVE or not task.locked:
        return ""
    family = {task.session, *ancestors(tx, task.session)}
    for resource in _resources(task):
        for later in granted_since(tx, resource, task.fence):
            if later.owner not in family and task.session not in ancestors(tx, later.owner):
                return later.owner
    return ""
