"""What a session has to remember: its claims, the claims it lost, its locks and its unread messages.

Everything but lost claims stands in other records. A claim is lost when its lease expires, when it is taken
over or reset, or when its session is declared dead. As that is rare, a record (`lost/…`) keeps it a month.
A lost claim that the session got back, or whose late result was accepted, is left out.
"""

from coord.core import keys
from coord.core.errors import NotFound
from coord.core.lifecycle.commands import GetSessionMemory, LostClaim, SessionMemoryReply
from coord.core.lifecycle.status import describe_one
from coord.core.locks.locks import ended_by_time, lock_info, locks_of
from coord.core.locks.schema import LockRequest, SessionWaits
from coord.core.messages.receive import waiting_messages
from coord.core.sessions.identify import find_session
from coord.core.sessions.queries import find_peer
from coord.core.sessions.schema import Session
from coord.core.tasks.commands import GetSessionClaims, TaskCommand
from coord.core.tasks.queries import get_session_claims
from coord.core.tasks.schema import ACTIVE, EXPIRED, ClaimLoss, Task, as_of
from coord.core.tasks.types import ReleaseReason
from coord.core.transaction import Transaction

LOST_READ, LOST_SHOWN = 500, 50
LOCK_REQUESTS = (keys.WAIT_PREFIX, keys.DENIED_PREFIX)


def get_session_memory(tx: Transaction, command: GetSessionMemory, now: int) -> SessionMemoryReply:
    """Return what a session holds, lost and waits for."""
    name = _name(tx, command, now)
    session = tx.get(keys.session(name), Session)
    claims = get_session_claims(tx, GetSessionClaims(command.tenant, name), now)
    tasks = [tx.get(keys.task(claim.project_id, claim.task_id), Task) for claim in claims]
    return SessionMemoryReply(
        name,
        now,
        None if session is None else describe_one(tx, session, now),
        claims,
        [task.track for task in tasks if task is not None],
        _lost_claims(tx, name, now),
        [
            lock_info(lock_at.lock, now)
            for lock_at in locks_of(tx, name)
            if ended_by_time(lock_at.lock, now) is None
        ],
        len(waiting_messages(tx, name, now)),
        _waits(tx, name),
    )


def _name(tx: Transaction, command: GetSessionMemory, now: int) -> str:
    """Return the id of the session; a deleted session may have lost claims under its full id."""
    if not command.session:
        return find_session(tx, command.caller, now)
    try:
        return find_peer(tx, command.session)
    except NotFound:
        return command.session


def _lost_claims(tx: Transaction, name: str, now: int) -> list[LostClaim]:
    """Return the claims that a session lost and did not get back, newest first."""
    prefix = keys.lost_prefix(name)
    found = tx.scan(prefix, limit=LOST_READ)
    unwritten = tx.scan(keys.by_session_prefix(name), limit=LOST_READ)
    candidates = [TaskCommand("", *keys.parts(entry.key)[-2:]) for entry in (*found, *unwritten)]
    tx.prefetch(
        *(keys.task(which.project, which.task) for which in candidates), *(entry.key for entry in found)
    )
    lost = {}
    for which in candidates:
        task = tx.get(keys.task(which.project, which.task), Task)
        if task is None:
            continue
        seen, record = as_of(task, now), tx.get(keys.lost(name, which.project, which.task), ClaimLoss)
        if seen is not task and task.session == name:  # expired, but not swept yet
            record = ClaimLoss(generation=task.generation, at_ms=task.expires_ms)
        if record is not None and not _is_back(seen, name, record):
            lost[which.project, which.task] = _lost_claim(which, seen, name, record)
    return sorted(lost.values(), key=lambda each: (-each.lost_ms, each.task_id))[:LOST_SHOWN]


def _is_back(task: Task, name: str, lost: ClaimLoss) -> bool:
    """Whether the session holds the task again, or its late result was accepted."""
    if task.session != name:
        return False
    return task.claim is ACTIVE or (
        task.generation >= lost.generation and task.end_reason is ReleaseReason.COMPLETED
    )


def _lost_claim(which: TaskCommand, task: Task, name: str, lost: ClaimLoss) -> LostClaim:
    still_open = task.claim is EXPIRED and task.session == name and task.generation == lost.generation
    taken = task.generation > lost.generation and task.session != name
    return LostClaim(
        which.project,
        which.task,
        lost.generation,
        lost.reason.value,
        lost.at_ms,
        lost.note,
        task.state.value,
        task.session if taken else "",
        task.generation,
        still_open,
    )


def _waits(tx: Transaction, name: str) -> list[str]:
    waits = tx.get(keys.waits(name), SessionWaits)
    found = [key for key in waits.keys if key.startswith(LOCK_REQUESTS)] if waits is not None else []
    requests = [tx.get(key, LockRequest) for key in found]
    return [resource for request in requests if request is not None for resource in request.resources]
