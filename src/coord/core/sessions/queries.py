"""Questions about sessions: one by its name, and who else is there."""

from coord.core import keys
from coord.core.commands import GetSession, ListSessions
from coord.core.errors import NotFound
from coord.core.replies import Liveness, SessionShown
from coord.core.sessions.session import (
    Session,
    every_session,
    evidence_of,
    find_peer,
    find_session,
    shown_session,
)
from coord.core.transaction import View


def get_session(view: View, command: GetSession, now: int) -> SessionShown:
    """Return one session, the caller's own if none is named."""
    name = find_peer(view, command.session) if command.session else find_session(view, command.caller, now)
    session = view.get(keys.session(name), Session)
    if session is None:
        raise NotFound(f"there is no session {name}", hint="coord register makes one; coord peers lists them")
    return shown_session(session, now, evidence_of(view, session))


def list_sessions(view: View, command: ListSessions, now: int) -> list[SessionShown]:
    """Return the other sessions that have not ended, oldest first; with `live` only those that seem alive."""
    found = []
    own = find_session(view, command.caller, now)
    for session in every_session(view):
        if session.session_id == own:
            continue
        shown = shown_session(session, now, evidence_of(view, session))
        stale = shown.liveness in (Liveness.STALE, Liveness.HUNG, Liveness.DEAD)
        if not session.ended_ms and not (command.live and stale):
            found.append(shown)
    return sorted(found, key=lambda session: (session.started_ms, session.session_id))
