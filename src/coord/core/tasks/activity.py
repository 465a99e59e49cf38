"""What sessions do now: their claims, their waits, and the state that follows from them.

Everything that shows a session calls `describe`, so that all say the same. What several sessions need is
loaded together: the number of questions to the store does not grow with the number of sessions.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from coord.core import keys
from coord.core.locks.schema import LockRequest, SessionWaits, TaskWait, WaitState
from coord.core.locks.table import (
    RequestAt,
    blocking_locks,
    load_table,
    prefetch_locks,
    requests_ahead,
    resources_of,
    waiters,
)
from coord.core.locks.wait_queue import alive, prefetch_liveness
from coord.core.sessions.commands import SessionInfo, SessionWait
from coord.core.sessions.liveness import evidence_of, liveness, thresholds_of
from coord.core.sessions.schema import Liveness, Session
from coord.core.sessions.state import session_state
from coord.core.tasks.schema import ACTIVE, Spec, Task, as_of
from coord.core.transaction import Transaction

CLAIMS_READ = 16
"""How many claims of a session are looked at for the newest one."""
BLOCKERS_READ = 100
"""For how many waiting requests the holders are looked up; those behind them are shown without."""


class Claim(NamedTuple):
    """An active claim of a session."""

    project: str
    task_id: str
    task: Task


class Activity(NamedTuple):
    """What a session does: its newest claim, its requests that wait, its claims, and its wait for a task."""

    claim: Claim | None = None
    waits: Sequence[RequestAt] = ()
    claims: int = 0
    task_wait: TaskWait | None = None


def describe(
    tx: Transaction, sessions: Sequence[Session], now: int, *, blockers: bool = True
) -> list[SessionInfo]:
    """Return sessions as others see them; without `blockers` nothing says behind whom they wait."""
    found = activities(tx, sessions, now)
    waits = _waits(tx, found, now, blockers=blockers)
    tx.prefetch(*(keys.spec(each.claim.project, each.claim.task_id) for each in found.values() if each.claim))
    return [
        _session_info(tx, session, found.get(session.session_id, Activity()), waits, now)
        for session in sessions
    ]


def activities(tx: Transaction, sessions: Sequence[Session], now: int) -> dict[str, Activity]:
    """Return what each of these sessions does that has not ended."""
    living = [session for session in sessions if not session.ended_ms]
    names = [session.session_id for session in living]
    tx.evidence(*(session.process for session in living if session.process is not None))
    tx.prefetch(
        keys.SETTINGS,
        *(keys.waits(name) for name in names),
        prefixes=[keys.by_session_prefix(name) for name in names],
        limit=CLAIMS_READ,
    )
    claims, requests = _claims(tx, names, now), _open_requests(tx, names, now)
    return {
        name: Activity(
            next(iter(claims[name]), None),
            requests.get(name, ()),
            len(claims[name]),
            _task_wait(tx, name, now),
        )
        for name in names
    }


def _task_wait(tx: Transaction, name: str, now: int) -> TaskWait | None:
    """Return the wait of a session for a task; only one that holds something has such a wait."""
    waits = tx.get(keys.waits(name), SessionWaits)
    wait = waits.task if waits is not None else None
    if wait is None or wait.state is not WaitState.WAITING:
        return None
    return wait if alive(tx, wait, now) else None


def _claims(tx: Transaction, names: Iterable[str], now: int) -> dict[str, list[Claim]]:
    """Return the active claims of sessions, the newest first."""
    indexed = {
        name: [
            keys.parts(found.key)[-2:] for found in tx.scan(keys.by_session_prefix(name), limit=CLAIMS_READ)
        ]
        for name in names
    }
    tx.prefetch(*(keys.task(*task) for tasks in indexed.values() for task in tasks))
    active = {}
    for name, tasks in indexed.items():
        claims = [
            Claim(project, task_id, task)
            for project, task_id in tasks
            if (task := tx.get(keys.task(project, task_id), Task)) is not None
            and task.session == name
            and as_of(task, now).claim is ACTIVE
        ]
        active[name] = sorted(claims, key=lambda claim: (-claim.task.claimed_ms, claim.task_id))
    return active


def _open_requests(tx: Transaction, names: Iterable[str], now: int) -> dict[str, list[RequestAt]]:
    """Return the requests that wait in the queue, by session; a denied request waits for nothing."""
    indexed = {name: tx.get(keys.waits(name), SessionWaits) or SessionWaits() for name in names}
    request_keys = {
        name: [key for key in waits.keys if key.startswith(keys.WAIT_PREFIX)]
        for name, waits in indexed.items()
    }
    tx.prefetch(*(key for found in request_keys.values() for key in found))
    waiting = {
        name: [
            RequestAt(key, request)
            for key in found
            if (request := tx.get(key, LockRequest)) is not None and request.state is WaitState.WAITING
        ]
        for name, found in request_keys.items()
        if found
    }
    prefetch_liveness(tx, [each.request for found in waiting.values() for each in found])
    return {name: [each for each in found if alive(tx, each.request, now)] for name, found in waiting.items()}


def _waits(
    tx: Transaction, found: dict[str, Activity], now: int, *, blockers: bool
) -> dict[str, list[SessionWait]]:
    """Return the waits of each session, the oldest first, with holders as far as that stays cheap."""
    requests = [each for activity in found.values() for each in activity.waits]
    looked_up = sorted(requests)[:BLOCKERS_READ] if blockers else []
    queue = waiters(tx, [resource for each in looked_up for resource in resources_of(each.request)])
    prefetch_locks(tx, [each.request for each in looked_up], guards=False)
    known = {each.key for each in looked_up}
    shown: dict[str, list[SessionWait]] = {}
    for each in sorted(requests, key=lambda one: (one.request.since_ms, one.key)):
        wait = _wait(tx, each, queue, now) if each.key in known else _wait_without_blockers(each.request)
        shown.setdefault(each.request.session, []).append(wait)
    for name, activity in found.items():
        if activity.task_wait is not None:
            wait = SessionWait((), activity.task_wait.since_ms, project=activity.task_wait.project)
            shown.setdefault(name, []).append(wait)
    return shown


def _wait_without_blockers(request: LockRequest) -> SessionWait:
    return SessionWait(request.resources, request.since_ms)


def _wait(tx: Transaction, waiting: RequestAt, queue: Sequence[RequestAt], now: int) -> SessionWait:
    request = waiting.request
    table = load_table(tx, request, now, waiting=queue)
    ahead = requests_ahead(table, waiting.key)
    holders = [lock_at.lock.owner for lock_at in blocking_locks(table, now)]
    behind = list(dict.fromkeys([*holders, *(other.session for other in ahead)]))
    return SessionWait(request.resources, request.since_ms, behind, len(ahead) + 1)


def state_of(session: Session, life: Liveness, activity: Activity, now: int) -> str:
    """Return the state of a session that does this."""
    claimed_ms = activity.claim.task.claimed_ms if activity.claim else 0
    waits = bool(activity.waits) or activity.task_wait is not None
    return session_state(session, life, now, waits=waits, claimed_ms=claimed_ms)


def _session_info(
    tx: Transaction, session: Session, activity: Activity, waits: dict[str, list[SessionWait]], now: int
) -> SessionInfo:
    evidence = None if session.ended_ms else evidence_of(tx, session)
    life = liveness(session, now, evidence, thresholds_of(tx))
    return SessionInfo(
        session.session_id,
        life,
        state_of(session, life, activity, now),
        session.agent,
        session.role,
        session.project,
        session.parent,
        session.user,
        session.host,
        session.process.pid if session.process else 0,
        session.cwd,
        session.bin,
        session.version,
        session.started_ms,
        session.beat_ms,
        session.current_task or _task_of_claim(tx, activity.claim),
        session.owned_resources,
        session.blob,
        session.capabilities,
        session.model,
        session.current_file,
        activity.claims,
        waits.get(session.session_id, []),
        session.repository,
        session.end_note,
        session.current_command,
    )


def _task_of_claim(tx: Transaction, claim: Claim | None) -> dict[str, Any]:
    """Return a claim as the current task of its session, with the estimated end if the task has one."""
    if claim is None:
        return {}
    task = claim.task
    found = {
        "ticket": claim.task_id,
        "project": claim.project,
        "generation": task.generation,
        "started_ms": task.claimed_ms,
    }
    spec = tx.get(keys.spec(claim.project, claim.task_id), Spec)
    if spec is not None and spec.estimate_s:
        found["estimated_completion_ms"] = task.claimed_ms + int(spec.estimate_s * 1000)
    return found
