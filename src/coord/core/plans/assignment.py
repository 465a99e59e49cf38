"""Tasks that are kept for one agent.

A person or a lead assigns a task (`coord task assign`), or the routing mode `assign` does: then the first
agent that asks routes the tasks it finds, and keeps those for others that somebody else does better. An
assignment is a head start and no right. It ends when its time is over, and has no effect while every session
of its agent is gone or has a claim.
"""

from collections.abc import Callable, Sequence

import msgspec

from coord.core import keys
from coord.core.errors import NotFound, Refused
from coord.core.messages.inbox import notify
from coord.core.plans.commands import AssignTask, ClaimNext, TaskInfo
from coord.core.plans.plan import planned_task, task_info
from coord.core.sessions.identify import ensure_session
from coord.core.sessions.liveness import evidence_of, liveness, thresholds_of
from coord.core.sessions.queries import every_session
from coord.core.sessions.schema import Liveness, Session
from coord.core.tasks.dependencies import FINISHED
from coord.core.tasks.schema import ACTIVE, Spec, TaskAssigned, as_of
from coord.core.transaction import Transaction

ASSIGNED_MS = 120_000
"""How long routing keeps a task for an agent."""
SESSIONS_MAX = 16
"""How many sessions of an agent an assignment remembers."""
ASSIGN = "assign"


def assign_task(tx: Transaction, command: AssignTask, now: int) -> TaskInfo:
    """Keep a task for an agent, and notify the agent."""
    by = ensure_session(tx, command.caller, now).session_id
    spec, task = planned_task(tx, command.project, command.task)
    seen = as_of(task, now)
    if seen.claim is ACTIVE:
        raise Refused(f"{command.task} is in progress ({seen.session})", hint="release or reset it first")
    if seen.state in FINISHED:
        raise Refused(f"{command.task} is {seen.state.value}", hint="coord task reset reopens it")
    sessions = _live_sessions(tx, command.project, command.agent, now)
    if not sessions:
        raise NotFound(
            f"agent {command.agent} has no live session in project {command.project}",
            hint="coord agent list shows the agents",
        )
    assigned = _assign(
        tx, command.project, command.task, spec, command.agent, sessions, by, now + command.for_ms, now
    )
    return task_info(command.task, assigned, task, now)


def _assign(
    tx: Transaction,
    project: str,
    task_id: str,
    spec: Spec,
    agent: str,
    sessions: Sequence[str],
    by: str,
    until_ms: int,
    now: int,
) -> Spec:
    assigned = msgspec.structs.replace(
        spec, assignee=agent, assigned_sessions=tuple(sessions[:SESSIONS_MAX]), assigned_until_ms=until_ms
    )
    tx.put(keys.spec(project, task_id), assigned)
    tx.emit(TaskAssigned(project, task_id, agent, by, until_ms))
    for session in sessions:
        if session != by:
            subject = f"{task_id} is assigned to you: coord task next"
            notify(tx, session, "request", subject, now, {"task_id": task_id, "until_ms": until_ms})
    return assigned


def _live_sessions(tx: Transaction, project: str, agent: str, now: int) -> list[str]:
    return [
        session.session_id
        for session in every_session(tx)
        if agent in (session.agent or session.session_id, session.session_id)
        and session.project == project
        and _live(tx, session, now)
    ]


def _live(tx: Transaction, session: Session | None, now: int) -> bool:
    if session is None or session.ended_ms:
        return False
    return liveness(session, now, evidence_of(tx, session), thresholds_of(tx)) in (
        Liveness.LIVE,
        Liveness.SUSPECT,
    )


def kept_for_another(tx: Transaction, spec: Spec, session: Session, now: int) -> str:
    """Return why a task is kept for another agent; empty if this session may have it."""
    own = (session.agent or session.session_id, session.session_id)
    if not spec.assignee or spec.assignee in own or now >= spec.assigned_until_ms:
        return ""
    names = spec.assigned_sessions
    tx.prefetch(*map(keys.session, names), prefixes=map(keys.by_session_prefix, names), limit=1)
    free = [
        name
        for name in names
        if _live(tx, tx.get(keys.session(name), Session), now)
        and not tx.scan(keys.by_session_prefix(name), limit=1)
    ]
    left_s = -(-(spec.assigned_until_ms - now) // 1000)
    return f"it is assigned to {spec.assignee} for {left_s} s more" if free else ""


def router_for(
    tx: Transaction, command: ClaimNext, session: Session, now: int
) -> Callable[[str, Spec], str] | None:
    """Return a function that assigns a task to a better agent that is free, once; None in other modes.

    The function returns why this session does not get the task, or an empty text.
    """
    if command.mode != ASSIGN:
        return None
    from coord.core.routing.commands import AgentInfo, GetAgents  # noqa: PLC0415 - only this mode needs them
    from coord.core.routing.pool import get_agents  # noqa: PLC0415
    from coord.core.routing.router import best_free_agent  # noqa: PLC0415

    own = session.agent or session.session_id
    agents: list[AgentInfo] = []
    given: set[str] = set()

    def assign(task_id: str, spec: Spec) -> str:
        if spec.assigned_until_ms:
            return ""  # it was assigned before: now it is for everybody
        if not agents:
            agents.extend(get_agents(tx, GetAgents(command.project), now))
        best = best_free_agent(spec, agents, now, command.routing, own, given)
        if best == own or not best:
            return ""
        sessions = _live_sessions(tx, command.project, best, now)
        if not sessions:
            return ""
        given.add(best)
        until_ms = now + ASSIGNED_MS
        spec = _assign(tx, command.project, task_id, spec, best, sessions, session.session_id, until_ms, now)
        return kept_for_another(tx, spec, session, now)

    return assign
