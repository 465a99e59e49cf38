"""What a session has to remember: the claims it holds, those it lost, its locks and what waits for it.

All but the lost claims stands in records that are there anyway. A claim is lost when its lease ran out, when
it was taken over or reset, or when its session was declared dead: rare, so this may cost a record (`lost/…`)
of its own, kept for a month. Whether it still matters is asked when somebody looks: one that came back, or
whose late submission was accepted, is lost no more.
"""

from coord.core import keys
from coord.core.errors import NotFound
from coord.core.lifecycle.commands import GetSessionMemory, LostClaim, SessionMemoryReply
from coord.core.locks.locks import ended_by_time, lock_info, locks_of
from coord.core.locks.schema import LockRequest, SessionWaits
from coord.core.messages.message import waiting_messages
from coord.core.sessions.identify import find_session
from coord.core.sessions.liveness import evidence_of
from coord.core.sessions.queries import find_peer, session_info
from coord.core.sessions.schema import Session
from coord.core.tasks.commands import GetSessionClaims, TaskCommand
from coord.core.tasks.queries import get_session_claims
from coord.core.tasks.schema import ACTIVE, EXPIRED, Lost, Task, as_of
from coord.core.tasks.types import ReleaseReason
from coord.core.transaction import Transaction

LOST_READ, LOST_SHOWN = 500, 50


def get_session_memory(tx: Transaction, command: GetSessionMemory, now: int) -> SessionMemoryReply:
    """Return what stands of a session as of now."""
    name = _name(tx, command, now)
    session = tx.get(keys.session(name), Session)
    claims = get_session_claims(tx, GetSessionClaims(command.tenant, name), now)
    tasks = [tx.get(keys.task(claim.project_id, claim.task_id), Task) for claim in claims]
    return SessionMemoryReply(
        name,
        now,
        None if session is None else session_info(session, now, evidence_of(tx, session)),
        claims,
        [task.track for task in tasks if task is not None],
        _lost(tx, name, now),
        [
            lock_info(lock_at.lock, now)
            for lock_at in locks_of(tx, name)
            if ended_by_time(lock_at.lock, now) is None
        ],
        len(waiting_messages(tx, name, now)),
        _waits(tx, name),
    )


def _name(tx: Transaction, command: GetSessionMemory, now: int) -> str:
    """Return the session that is meant; one that was forgotten may have left traces under its full name."""
    if not command.session:
        return find_session(tx, command.caller, now)
    try:
        return find_peer(tx, command.session)
    except NotFound:
        return command.session


def _lost(tx: Transaction, name: str, now: int) -> list[LostClaim]:
    """Return the claims a session lost and did not get back, newest first."""
    prefix = keys.lost_prefix(name)
    found = tx.scan(prefix, limit=LOST_READ)
    unwritten = tx.scan(keys.by_session_prefix(name), limit=LOST_READ)
    places = [TaskCommand("", *keys.parts(entry.key)[-2:]) for entry in (*found, *unwritten)]
    tx.prefetch(*(keys.task(which.project, which.task) for which in places), *(entry.key for entry in found))
    lost = {}
    for which in places:
        task = tx.get(keys.task(which.project, which.task), Task)
        if task is None:
            continue
        seen, record = as_of(task, now), tx.get(keys.lost(name, which.project, which.task), Lost)
        if seen is not task and task.session == name:  # its deadline has passed, and no sweep has come by yet
            record = Lost(generation=task.generation, at_ms=task.expires_ms)
        if record is not None and not _is_back(seen, name, record):
            lost[which.project, which.task] = _shown(which, seen, name, record)
    return sorted(lost.values(), key=lambda each: (-each.lost_ms, each.task_id))[:LOST_SHOWN]


def _is_back(task: Task, name: str, lost: Lost) -> bool:
    """Whether the session holds the task again, or its result was accepted after all."""
    if task.session != name:
        return False
    return task.claim is ACTIVE or (
        task.generation >= lost.generation and task.end_reason is ReleaseReason.COMPLETED
    )


def _shown(which: TaskCommand, task: Task, name: str, lost: Lost) -> LostClaim:
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
    requests = [tx.get(key, LockRequest) for key in waits.keys] if waits is not None else []
    return [resource for request in requests if request is not None for resource in request.resources]
