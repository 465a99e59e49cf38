"""How many agents a project may have at once.

The record `count/agents/<project>` lists the sessions that count. Every session of an agent that begins
reads it, and under a limit writes it, so two that begin at once cannot both get the last place. A session
that ended, fell silent or died stays in the list until the next one begins: the rule looks at each.
"""

from collections.abc import Iterable

import msgspec

from coord.core import keys
from coord.core.errors import LimitReached
from coord.core.identity import Caller
from coord.core.sessions.liveness import liveness, thresholds_of
from coord.core.sessions.schema import Liveness, Session
from coord.core.settings import AGENTS_MAX, ProjectAgents
from coord.core.transaction import Transaction

COUNTED = (Liveness.LIVE, Liveness.SUSPECT)
SHOWN_MAX = 8


def count_agent(tx: Transaction, caller: Caller, name: str, now: int, *, refuse: bool) -> None:
    """Count the session of an agent in its project; with `refuse`, refuse one above the limit."""
    if caller.person or not caller.project:
        return
    key = keys.count_agents(caller.project)
    record = tx.get(key, ProjectAgents)
    if record is None and not caller.max_agents:
        return  # nobody limits the project; the commit still verifies that
    record = record or ProjectAgents()
    listed = _every_session(tx) if record.sessions is None else record.sessions
    others = _live_agents(tx, (each for each in listed if each != name), caller.project, now)
    limit = record.max_agents or caller.max_agents
    if refuse and limit and len(others) >= limit:
        raise _limit_reached(caller.project, limit, others, by_environment=not record.max_agents)
    counted = tuple(sorted([*(session.session_id for session in others), name]))
    if counted != record.sessions:
        tx.put(key, msgspec.structs.replace(record, sessions=counted))


def _every_session(tx: Transaction) -> list[str]:
    prefix = keys.SESSION_PREFIX
    return [found.key[len(prefix) :] for page in tx.pages(prefix) for found in page]


def _live_agents(tx: Transaction, names: Iterable[str], project: str, now: int) -> list[Session]:
    """Return those of the sessions that are agents of the project and neither ended nor silent."""
    names = list(names)
    tx.prefetch(*map(keys.session, names))
    found = [tx.get(keys.session(name), Session) for name in names]
    agents = [
        session
        for session in found
        if session is not None and not session.ended_ms and not session.person and session.project == project
    ]
    processes = {session.process for session in agents if session.process is not None}
    evidence = dict(zip(processes, tx.evidence(*processes), strict=True)) if processes else {}
    thresholds = thresholds_of(tx)
    return [
        session
        for session in agents
        if liveness(session, now, evidence.get(session.process) if session.process else None, thresholds)
        in COUNTED
    ]


def _limit_reached(project: str, limit: int, others: list[Session], *, by_environment: bool) -> LimitReached:
    names = [f"{each.agent} ({each.session_id})" if each.agent else each.session_id for each in others]
    more = f" and {len(names) - SHOWN_MAX} more" if len(names) > SHOWN_MAX else ""
    raise_it = "MAX_AGENTS" if by_environment else f"coord limits set max_agents={len(others) + 1}"
    higher = f", or raise the limit: {raise_it}" if len(others) < AGENTS_MAX else ""
    number = f"{len(others)} agent{'s' * (len(others) != 1)}"
    return LimitReached(
        f"project {project} has {number} and may have {limit}: {', '.join(sorted(names)[:SHOWN_MAX])}{more}",
        hint=f"end one of them (coord dereg in its terminal){higher}",
    )
