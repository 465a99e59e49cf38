"""Questions about sessions: one by its name, and who else is there."""

from collections.abc import Iterator

from coord.core import keys
from coord.core.errors import Invalid, NotFound
from coord.core.identity import Evidence
from coord.core.sessions.commands import GetSession, ListSessions, SessionInfo
from coord.core.sessions.identify import find_session
from coord.core.sessions.liveness import (
    DEFAULT_THRESHOLDS,
    Thresholds,
    evidence_of,
    liveness,
    thresholds_of,
)
from coord.core.sessions.schema import Liveness, Session
from coord.core.transaction import Transaction


def get_session(tx: Transaction, command: GetSession, now: int) -> SessionInfo:
    """Return one session, the caller's own if none is named."""
    name = find_peer(tx, command.session) if command.session else find_session(tx, command.caller, now)
    session = tx.get(keys.session(name), Session)
    if session is None:
        raise NotFound(f"there is no session {name}", hint="coord register makes one; coord peers lists them")
    return session_info(session, now, evidence_of(tx, session), thresholds_of(tx))


def list_sessions(tx: Transaction, command: ListSessions, now: int) -> list[SessionInfo]:
    """Return the other sessions that have not ended, oldest first; with `live` only those that seem alive.

    With `everyone` the caller's session and ended ones are included.
    """
    found = []
    thresholds = thresholds_of(tx)
    own = "" if command.everyone else find_session(tx, command.caller, now)
    for session in every_session(tx):
        if session.session_id == own:
            continue
        shown = session_info(session, now, evidence_of(tx, session), thresholds)
        stale = shown.liveness in (Liveness.STALE, Liveness.HUNG, Liveness.DEAD)
        if (command.everyone or not session.ended_ms) and not (command.live and stale):
            found.append(shown)
    return sorted(found, key=lambda session: (session.started_ms, session.session_id))


def every_session(tx: Transaction) -> Iterator[Session]:
    """Yield all sessions, including ended ones."""
    for page in tx.pages(keys.SESSION_PREFIX):
        for found in page:
            session = tx.get(found.key, Session)
            if session is not None:
                yield session


def find_peer(tx: Transaction, name: str) -> str:
    """Return the id of a session, given in full or as a prefix that matches only one (AMB-26)."""
    if tx.get(keys.session(name), Session) is not None:
        return name
    fitting = [found.key.partition("/")[2] for found in tx.scan(keys.session(name), limit=2)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise Invalid(f"more than one session begins with {name}", hint=f"for example {', '.join(fitting)}")
    raise NotFound(f"there is no session {name}", hint="coord peers lists them")


def session_info(
    session: Session, now: int, evidence: Evidence | None, thresholds: Thresholds = DEFAULT_THRESHOLDS
) -> SessionInfo:
    """Return a session as others see it."""
    return SessionInfo(
        session.session_id,
        liveness(session, now, evidence, thresholds),
        session.state,
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
        session.current_task,
        session.owned_resources,
        session.blob,
        session.capabilities,
    )
