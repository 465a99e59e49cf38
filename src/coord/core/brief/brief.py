"""The brief of one session: its crew, the health of its project, its messages, and what blocks it."""

import msgspec

from coord.core import keys
from coord.core.brief.commands import Brief, GetBrief, Health
from coord.core.brief.crew import Crew, Member, crew_ranges, read_crew, role_name
from coord.core.brief.health import health_ranges, read_health
from coord.core.errors import Invalid
from coord.core.locks.locks import ended_by_time, locks_of
from coord.core.messages.commands import DelegationInfo, ListDelegations
from coord.core.messages.delegations import list_delegations
from coord.core.messages.receive import waiting_messages
from coord.core.ranges import Range
from coord.core.sessions.identify import caller_reads, find_session
from coord.core.sessions.schema import Session
from coord.core.sessions.state import is_terminal
from coord.core.tasks.activity import CLAIMS_READ, describe
from coord.core.transaction import PAGE, Transaction

LEAD = "lead"
"""The word in the role of a session that leads others."""
DIGEST_CHARS = 16


def brief_keys(command: GetBrief) -> list[str]:
    """Return the records that a brief is read from, besides its ranges."""
    session = command.caller.session
    mine = (keys.waits(session), keys.mailbox(session)) if session else ()
    return [*caller_reads(command), keys.SETTINGS, keys.BROADCAST_HEAD, *mine]


def brief_ranges(command: GetBrief) -> list[Range]:
    """Return the ranges that a brief is read from, so that one question to the store has nearly all of it."""
    caller = command.caller
    ranges = [*crew_ranges(), Range(keys.DELEGATION_PREFIX, "key", PAGE)]
    if caller.session:
        mine = (keys.session_lock_prefix(caller.session), keys.inbox_prefix(caller.session))
        ranges += [Range(prefix, "key", PAGE) for prefix in mine]
        ranges.append(Range(keys.by_session_prefix(caller.session), "key", CLAIMS_READ))
    return [*ranges, *(health_ranges(caller.project) if command.health and caller.project else ())]


def get_brief(tx: Transaction, command: GetBrief, now: int) -> Brief:
    """Return what the calling session has to know; a caller without a session sees the project as a lead."""
    name, session = _own_session(tx, command, now)
    caller = command.caller
    project = caller.project or (session.project if session is not None else "")
    repository = session.repository if session is not None else caller.repository
    crew = read_crew(tx, project, repository, name, now)
    own = _below(crew, name)
    lead = command.lead if command.lead is not None else _leads(session, has_agents=bool(own))
    members = sorted(crew.members, key=lambda member: member.session.session_id not in own)
    (shown,) = describe(tx, [session], now) if session is not None else (None,)
    states = [member.state for member in members if not member.session.person]
    health = None
    if command.health or lead:
        health = read_health(tx, project, states, crew.done, now)
    brief = Brief(
        now_ms=now,
        session=name,
        project=project,
        lead=lead,
        crew=[member.info for member in members],
        own=len(own),
        ended=[member.info for member in crew.ended],
        health=health,
        descriptions=crew.descriptions,
        digest=_digest(members, health if lead else None),
    )
    if session is None or shown is None:
        return brief
    return msgspec.structs.replace(
        brief,
        messages=len(waiting_messages(tx, name, now)),
        emergencies=session.emergencies,
        epoch=session.epoch,
        company=sum(not _is_inside(member.session, session) for member in members),
        waits=shown.waits,
        delegations=_delegations(tx, command, name, now),
        locks=sorted(_locked(tx, name, now)),
    )


def _own_session(tx: Transaction, command: GetBrief, now: int) -> tuple[str, Session | None]:
    """Return the id of the calling session, and the session if it has not ended."""
    try:
        name = find_session(tx, command.caller, now)
    except Invalid:  # an agent tool that no hook has registered
        return "", None
    session = tx.get(keys.session(name), Session)
    return name, None if session is None or session.ended_ms else session


def _leads(session: Session | None, *, has_agents: bool) -> bool:
    if session is None or session.person:
        return True
    return has_agents or LEAD in session.role.lower().replace("-", " ").replace("_", " ").split()


def _below(crew: Crew, name: str) -> set[str]:
    """Return the agents below a session: those that it started, those that they started, and so on."""
    parents = {member.session.session_id: member.session.parent for member in crew.members}
    found: set[str] = set()
    for session_id, parent in parents.items():
        above, seen = parent, {session_id}
        while above and above != name and above not in seen:
            seen.add(above)
            above = parents.get(above, "")
        if above and above == name:
            found.add(session_id)
    return found


def _is_inside(other: Session, session: Session) -> bool:
    """Whether two sessions live in one process: an agent and its sub-agents, which know each other."""
    return session.process is not None and other.process == session.process


def _delegations(tx: Transaction, command: GetBrief, name: str, now: int) -> list[DelegationInfo]:
    """Return the active delegations to a session and by it."""
    active = list_delegations(tx, ListDelegations(command.caller), now)
    return [each for each in active if name in (each.from_session_id, each.to_session_id)]


def _locked(tx: Transaction, name: str, now: int) -> list[str]:
    """Return what a session has locked, files without the word `file:`."""
    locks = [lock_at.lock for lock_at in locks_of(tx, name)]
    return [lock.resource.removeprefix("file:") for lock in locks if ended_by_time(lock, now) is None]


def _digest(members: list[Member], health: Health | None) -> str:
    """Return a digest of the facts that are worth another message (CTX-17).

    Running and idle alternate with every tool call, so they count as the same. Counts of agents follow from
    the agents, and the age of a decision from the time.
    """
    crew = [
        (
            *(session.session_id, role_name(session), session.parent, session.model),
            *(member.state if member.state == "blocked" or is_terminal(member.state) else "", member.task),
            *member.locked,
        )
        for member in members
        for session in (member.session,)
    ]
    plan = (
        ()
        if health is None
        else (health.completion, health.decisions, health.blocked_tasks, health.failed_tasks)
    )
    return keys.sha256(repr((sorted(crew), plan)))[:DIGEST_CHARS]
