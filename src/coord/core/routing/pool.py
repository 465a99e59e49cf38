"""The pool of a project: which agents there are, how they are, how much they have in hand, how they did.

An agent is known by its living sessions in the project, or because something is on record about it.
"""

from collections.abc import Iterable

import msgspec

from coord.core import keys
from coord.core.errors import NotFound
from coord.core.events import AgentEnabled
from coord.core.plans.commands import EnableAgent, GetAgents
from coord.core.replies import AgentShown, Liveness, Past
from coord.core.sessions.session import Session, every_session, evidence_of, liveness
from coord.core.tasks.agent_record import (
    FREE,
    AgentPast,
    AgentRecord,
    added,
    failures_now,
    held_back,
    put_agent,
)
from coord.core.transaction import View

AGENTS_MOST = 1000
CLAIMS_MOST = 500
"""How many claims of a session are counted."""


def enable_agent(view: View, command: EnableAgent, now: int) -> AgentShown:
    """Take an agent out of the pool by hand, or back in; back in, its failures and limits are forgotten."""
    key = keys.agent(command.project, command.agent)
    record = view.get(key, AgentRecord) or FREE
    if command.enabled:
        changed = AgentRecord(unknown=record.unknown)
    else:
        changed = msgspec.structs.replace(record, enabled=False, because=command.reason)
    if changed != record:
        put_agent(view, command.project, command.agent, changed, now)
        view.emit(AgentEnabled(command.project, command.agent, command.enabled, command.reason))
    return _shown(command.agent, changed, [], {}, 0, now)


def get_agents(view: View, command: GetAgents, now: int) -> list[AgentShown]:
    """Return the agents of a project by name, with what they have in hand and what stands against them."""
    sessions = _sessions(view, command.project, command.agent)
    records = _records(view, command.project, command.agent)
    pasts = _pasts(view, command.project, command.agent)
    names = sorted({*sessions, *records, *pasts})[:AGENTS_MOST]
    if command.agent and not names:
        raise NotFound(f"nothing is known of an agent {command.agent}", hint="coord agents lists them")
    found = []
    for name in names:
        own = sessions.get(name, [])
        claims = sum(_claims(view, session) for session in own)
        found.append(
            _shown(name, records.get(name, FREE), _by_life(view, own, now), pasts.get(name, {}), claims, now)
        )
    return found


def _sessions(view: View, project: str, agent: str) -> dict[str, list[Session]]:
    found: dict[str, list[Session]] = {}
    for session in every_session(view):
        name = session.agent or session.session_id
        named = session.agent or session.capabilities  # people at a terminal are nobody's agents
        if named and not session.ended_ms and session.project == project and agent in ("", name):
            found.setdefault(name, []).append(session)
    return found


def _records(view: View, project: str, agent: str) -> dict[str, AgentRecord]:
    prefix = keys.agent_prefix(project)
    found = {}
    for page in view.pages(prefix):
        for entry in page:
            record, name = view.get(entry.key, AgentRecord), entry.key[len(prefix) :]
            if record is not None and agent in ("", name):
                found[name] = record
    return found


def _pasts(view: View, project: str, agent: str) -> dict[str, dict[str, Past]]:
    """Return how agents did in all their sessions, by agent and type."""
    prefix = keys.past_prefix(project)
    found: dict[str, dict[str, Past]] = {}
    for page in view.pages(f"{prefix}{agent}/" if agent else prefix):
        for entry in page:
            name = keys.parts(entry.key)[2]
            past = view.get(entry.key, AgentPast) or AgentPast()
            sums = found.setdefault(name, {})
            for type_, more in past.types.items():
                sums[type_] = added(sums.get(type_, Past()), more)
    return found


def _claims(view: View, session: Session) -> int:
    prefix = keys.by_session_prefix(session.session_id)
    return len(view.scan(prefix, limit=CLAIMS_MOST))


def _by_life(view: View, sessions: Iterable[Session], now: int) -> list[tuple[Liveness, Session]]:
    """Return sessions with how alive they seem, the best first."""
    grades = list(Liveness)
    graded = [(liveness(session, now, evidence_of(view, session)), session) for session in sessions]
    return sorted(graded, key=lambda entry: (grades.index(entry[0]), -entry[1].beat_ms))


def _shown(
    name: str,
    record: AgentRecord,
    sessions: list[tuple[Liveness, Session]],
    past: dict[str, Past],
    claims: int,
    now: int,
) -> AgentShown:
    life, best = sessions[0] if sessions else (Liveness.ENDED, Session(state=""))
    why, until_ms = held_back(record, now)
    capabilities: dict[str, float] = {}
    for _, session in reversed(sessions):
        capabilities |= session.capabilities
    return AgentShown(
        name=name,
        role=best.role,
        state=best.state,
        liveness=life,
        sessions=len(sessions),
        claims=claims,
        enabled=record.enabled,
        held_back=why,
        until_ms=until_ms,
        limited_until_ms=record.limited_until_ms if record.limited_until_ms > now else 0,
        recent_failures=failures_now(record, now),
        capabilities=capabilities,
        past=past,
    )
