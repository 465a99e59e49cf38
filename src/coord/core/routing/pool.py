"""The agents of a project: their state, their claims and their track records.

An agent is listed if it has a session in the project, or a record.
"""

from collections.abc import Iterable, Mapping

import msgspec

from coord.core import keys
from coord.core.errors import NotFound
from coord.core.routing.commands import AgentInfo, EnableAgent, GetAgents
from coord.core.sessions.liveness import evidence_of, liveness, thresholds_of
from coord.core.sessions.queries import every_session
from coord.core.sessions.schema import Liveness, Session
from coord.core.tasks.activity import Activity, activities, state_of
from coord.core.tasks.agent_record import add_records, blocked_reason, put_agent, recent_failures
from coord.core.tasks.schema import NO_RESTRICTIONS, AgentEnabled, AgentRecord, AgentTrackRecords, TrackRecord
from coord.core.transaction import Transaction

AGENTS_MAX = 1000
CLAIMS_MAX = 500
"""The largest number of claims that is counted per session."""


def enable_agent(tx: Transaction, command: EnableAgent, now: int) -> AgentInfo:
    """Enable or disable an agent; enabling it clears its failures and rate limit."""
    key = keys.agent(command.project, command.agent)
    record = tx.get(key, AgentRecord) or NO_RESTRICTIONS
    if command.enabled:
        changed = AgentRecord(unknown=record.unknown)
    else:
        changed = msgspec.structs.replace(record, enabled=False, because=command.reason)
    if changed != record:
        put_agent(tx, command.project, command.agent, changed, now)
        tx.emit(AgentEnabled(command.project, command.agent, command.enabled, command.reason))
    return _agent_info(command.agent, changed, [], {}, 0, now, {})


def get_agents(tx: Transaction, command: GetAgents, now: int) -> list[AgentInfo]:
    """Return the agents of a project by name, with their claims and why they are blocked."""
    sessions = _sessions(tx, command.project, command.agent)
    records = _records(tx, command.project, command.agent)
    track_records = _track_records(tx, command.project, command.agent)
    names = sorted({*sessions, *records, *track_records})[:AGENTS_MAX]
    if command.agent and not names:
        raise NotFound(
            f"there is no agent {command.agent} in this project", hint="coord agent list shows them"
        )
    found = []
    doing = activities(tx, [session for name in names for session in sessions.get(name, ())], now)
    for name in names:
        own = sessions.get(name, [])
        claims = sum(_claims(tx, session) for session in own)
        found.append(
            _agent_info(
                name,
                records.get(name, NO_RESTRICTIONS),
                _by_liveness(tx, own, now),
                track_records.get(name, {}),
                claims,
                now,
                doing,
            )
        )
    return found


def _sessions(tx: Transaction, project: str, agent: str) -> dict[str, list[Session]]:
    found: dict[str, list[Session]] = {}
    for session in every_session(tx):
        name = session.agent or session.session_id
        named = session.agent or session.capabilities  # a person at a terminal is no agent
        if named and not session.ended_ms and session.project == project and agent in ("", name):
            found.setdefault(name, []).append(session)
    return found


def _records(tx: Transaction, project: str, agent: str) -> dict[str, AgentRecord]:
    prefix = keys.agent_prefix(project)
    found = {}
    for page in tx.pages(prefix):
        for entry in page:
            record, name = tx.get(entry.key, AgentRecord), entry.key[len(prefix) :]
            if record is not None and agent in ("", name):
                found[name] = record
    return found


def _track_records(tx: Transaction, project: str, agent: str) -> dict[str, dict[str, TrackRecord]]:
    """Return the track records by agent and type, over all sessions."""
    prefix = keys.track_record_prefix(project)
    found: dict[str, dict[str, TrackRecord]] = {}
    for page in tx.pages(f"{prefix}{agent}/" if agent else prefix):
        for entry in page:
            name = keys.parts(entry.key)[2]
            track_record = tx.get(entry.key, AgentTrackRecords) or AgentTrackRecords()
            sums = found.setdefault(name, {})
            for type_, more in track_record.types.items():
                sums[type_] = add_records(sums.get(type_, TrackRecord()), more)
    return found


def _claims(tx: Transaction, session: Session) -> int:
    prefix = keys.by_session_prefix(session.session_id)
    return len(tx.scan(prefix, limit=CLAIMS_MAX))


def _by_liveness(tx: Transaction, sessions: Iterable[Session], now: int) -> list[tuple[Liveness, Session]]:
    """Return sessions with their liveness, the liveliest first."""
    grades = list(Liveness)
    thresholds = thresholds_of(tx)
    graded = [(liveness(each, now, evidence_of(tx, each), thresholds), each) for each in sessions]
    return sorted(graded, key=lambda entry: (grades.index(entry[0]), -entry[1].beat_ms))


def _agent_info(
    name: str,
    record: AgentRecord,
    sessions: list[tuple[Liveness, Session]],
    track_record: dict[str, TrackRecord],
    claims: int,
    now: int,
    doing: Mapping[str, Activity],
) -> AgentInfo:
    life, best = sessions[0] if sessions else (Liveness.ENDED, Session(state=""))
    state = state_of(best, life, doing[best.session_id], now) if sessions else ""
    why, until_ms = blocked_reason(record, now)
    capabilities: dict[str, float] = {}
    for _, session in reversed(sessions):
        capabilities |= session.capabilities
    return AgentInfo(
        name=name,
        role=best.role,
        state=state,
        liveness=life,
        sessions=len(sessions),
        claims=claims,
        enabled=record.enabled,
        blocked_reason=why,
        until_ms=until_ms,
        limited_until_ms=record.limited_until_ms if record.limited_until_ms > now else 0,
        recent_failures=recent_failures(record, now),
        capabilities=capabilities,
        track_record=track_record,
    )
