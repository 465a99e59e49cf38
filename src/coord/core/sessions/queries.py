"""Find sessions: the caller's, one by its name, and all of them."""

from collections.abc import Iterator

from coord.core import keys
from coord.core.errors import Invalid, NotFound
from coord.core.sessions.commands import FindSession, SessionIdentity
from coord.core.sessions.identify import find_session
from coord.core.sessions.schema import Session
from coord.core.transaction import Transaction


def identify_session(tx: Transaction, command: FindSession, now: int) -> SessionIdentity:
    """Return the ids of the calling session and of its agent."""
    name = find_session(tx, command.caller, now)
    session = tx.get(keys.session(name), Session)
    if session is None:
        raise NotFound(f"there is no session {name}", hint="coord register makes one; coord peers lists them")
    return SessionIdentity(name, session.agent)


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
