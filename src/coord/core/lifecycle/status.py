"""Sessions as they are shown: one by its name, a list of the others, and what concerns the caller."""

from collections.abc import Iterable, Sequence

import msgspec

from coord.core import keys
from coord.core.errors import Invalid, NotFound
from coord.core.lifecycle.commands import GetOverview, GetStatus, Overview, QueueCounts, StatusReply
from coord.core.locks.locks import ended_by_time, lock_info, locks_of, require_lock
from coord.core.locks.schema import Lock
from coord.core.messages.commands import FindRecipients
from coord.core.messages.receive import waiting_messages
from coord.core.messages.recipients import find_recipients
from coord.core.sessions.commands import GetSession, ListSessions, SessionInfo
from coord.core.sessions.identify import find_session
from coord.core.sessions.queries import every_session, find_peer
from coord.core.sessions.schema import Liveness, Session
from coord.core.tasks.activity import describe
from coord.core.tasks.commands import GetSessionClaims
from coord.core.tasks.queries import get_session_claims
from coord.core.tasks.schema import ACTIVE, UNCLAIMED, Task, as_of
from coord.core.transaction import Transaction

NOT_LIVE = (Liveness.STALE, Liveness.HUNG, Liveness.DEAD)


def get_session(tx: Transaction, command: GetSession, now: int) -> SessionInfo:
    """Return one session, the caller's own if none is named."""
    name = find_peer(tx, command.session) if command.session else find_session(tx, command.caller, now)
    session = tx.get(keys.session(name), Session)
    if session is None:
        raise NotFound(f"there is no session {name}", hint="coord register makes one; coord peers lists them")
    return describe_one(tx, session, now)


def describe_one(tx: Transaction, session: Session, now: int) -> SessionInfo:
    """Return a session as others see it, with its sub-agents among what it owns."""
    (shown,) = describe(tx, [session], now)
    return _with_agents(shown, _children(tx, session))


def list_sessions(tx: Transaction, command: ListSessions, now: int) -> list[SessionInfo]:
    """Return the other sessions that have not ended, oldest first; with `live` only those that seem alive.

    With `everyone` the caller's session and ended ones are included.
    """
    own = "" if command.everyone else find_session(tx, command.caller, now)
    everyone = list(every_session(tx))
    listed = [
        session
        for session in everyone
        if session.session_id != own and (command.everyone or not session.ended_ms)
    ]
    shown = [
        _with_agents(info, (child for child in everyone if child.parent == info.session_id))
        for info in describe(tx, listed, now)
        if not (command.live and info.liveness in NOT_LIVE)
    ]
    return sorted(shown, key=lambda session: (session.started_ms, session.session_id))


def _children(tx: Transaction, lead: Session) -> list[Session]:
    if not lead.children:
        return []
    return [session for session in every_session(tx) if session.parent == lead.session_id]


def _with_agents(shown: SessionInfo, children: Iterable[Session]) -> SessionInfo:
    """Add the sub-agents that have not ended to the resources that a session owns (SUP-14)."""
    names = [child.session_id for child in children if not child.ended_ms]
    reported = shown.owned_resources.get("agents", [])
    if not names or not isinstance(reported, list):
        return shown
    owned = {**shown.owned_resources, "agents": list(dict.fromkeys([*reported, *names]))}
    return msgspec.structs.replace(shown, owned_resources=owned)


def show_recipients(tx: Transaction, command: FindRecipients, now: int) -> list[SessionInfo]:
    """Return the sessions that the address of a message means, as others see them."""
    sender = find_session(tx, command.caller, now)
    return describe(tx, find_recipients(tx, command.to, sender, now).sessions, now, blockers=False)


def get_status(tx: Transaction, command: GetStatus, now: int) -> StatusReply:
    """Return the caller's session with what it holds, waits for and has to read.

    A caller without a session here gets an empty reply.
    """
    try:
        name = find_session(tx, command.caller, now)
    except Invalid:  # an agent tool that no hook has registered
        return StatusReply(now, None)
    session = tx.get(keys.session(name), Session)
    if session is None or session.ended_ms or (command.stubs and session.repository):
        return StatusReply(now, None)
    waiting = waiting_messages(tx, name, now)
    children = _children(tx, session)
    return StatusReply(
        now,
        describe_one(tx, session, now),
        get_session_claims(tx, GetSessionClaims(command.tenant, name), now),
        [
            lock_info(require_lock(tx, lock_at.key), now)
            for lock_at in locks_of(tx, name)
            if ended_by_time(lock_at.lock, now) is None
        ],
        len(waiting),
        session.emergencies,
        _agents(tx, children, now),
    )


def _agents(tx: Transaction, children: Sequence[Session], now: int) -> list[SessionInfo]:
    return describe(tx, [child for child in children if not child.ended_ms], now)


def get_overview(tx: Transaction, command: GetOverview, now: int) -> Overview:
    """Return all sessions that have not ended, crashed ones included, and the queue of a project."""
    everyone = [
        session
        for session in every_session(tx)
        if (not session.ended_ms or session.end_reason == "dead")
        and not (command.stubs and session.repository)
    ]
    shown = sorted(describe(tx, everyone, now), key=lambda session: (session.started_ms, session.session_id))
    project = command.project
    unfinished, stuck = _count(tx, keys.unfinished_prefix(project)), _count(tx, keys.stuck_prefix(project))
    queue = QueueCounts(unfinished, _count_working(tx, project, now), stuck)
    return Overview(now, shown, _count_locks(tx, now), queue)


def _count(tx: Transaction, prefix: str) -> int:
    return sum(len(page) for page in tx.pages(prefix))


def _count_working(tx: Transaction, project: str, now: int) -> int:
    """Return the number of tasks whose claim counts now."""
    working = 0
    for page in tx.pages(keys.working_prefix(project)):
        tasks = [keys.task(project, keys.parts(entry.key)[-1]) for entry in page]
        tx.prefetch(*tasks)
        working += sum(as_of(tx.get(key, Task) or UNCLAIMED, now).claim is ACTIVE for key in tasks)
    return working


def _count_locks(tx: Transaction, now: int) -> int:
    """Return the number of locks that are held now."""
    found = (tx.get(entry.key, Lock) for page in tx.pages(keys.LOCK_PREFIX) for entry in page)
    return sum(lock is not None and ended_by_time(lock, now) is None for lock in found)
