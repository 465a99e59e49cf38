"""Questions about sessions: one by its name, and who else is there."""

from coord.core import keys
from coord.core.errors import NotFound
from coord.core.sessions.commands import GetSession, ListSessions, SessionInfo
from coord.core.sessions.schema import Liveness
from coord.core.sessions.session import (
    Session,
    every_session,
    evidence_of,
    find_peer,
    find_session,
    session_info,
)
from coord.core.transaction import Transaction


def get_session(tx: Transaction, command: GetSession, now: int) -> SessionInfo:
    """Return one session, the caller's own if none is named."""
    name = find_peer(tx, command.session) if command.session else find_session(tx, command.caller, now)
    session = tx.get(keys.session(name), Session)
    if session is None:
        raise NotFound(f"there is no session {name}", hint="coord register makes one; coord peers lists them")
    return session_info(session, now, evidence_of(tx, session))


def list_sessions(tx: Transaction, command: ListSessions, now: int) -> list[SessionInfo]:
    """Return the other sessions that have not ended, oldest first; with `live` only those that seem alive."""
    found = []
    own = find_session(tx, command.caller, now)
    for session in every_session(tx):
        if session.session_id == own:
            continue
        shown = session_info(session, now, evidence_of(tx, session))
        stale = shown.liveness in (Liveness.STALE, Liveness.HUNG, Liveness.DEAD)
        if not session.ended_ms and not (command.live and stale):
            found.append(shown)
    return sorted(found, key=lambda session: (session.started_ms, session.session_id))
