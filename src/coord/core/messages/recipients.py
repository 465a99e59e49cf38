"""The sessions that an address means.

`role:NAME` and `group:NAME` mean several. Any other address is, in this order, the full id of a session,
the name of an agent, or the beginning of one session's id. A role or a name means its sessions that seem
alive, or else all that have not ended, and never the sender.
"""

import msgspec

from coord.core import keys
from coord.core.errors import Gone, Invalid, NotFound
from coord.core.messages.groups import members_of
from coord.core.sessions.liveness import evidence_of, liveness, thresholds_of
from coord.core.sessions.queries import every_session
from coord.core.sessions.schema import Liveness, Session
from coord.core.transaction import Transaction

ROLE, GROUP = "role:", "group:"
SILENT = (Liveness.STALE, Liveness.HUNG, Liveness.DEAD)
NEAREST_MAX = 3
PREFIXES_MAX = 5


class Recipients(msgspec.Struct, frozen=True):
    """The sessions that get a message, and the agent, role or group that the address names."""

    sessions: list[Session]
    agent: str = ""
    role: str = ""
    group: str = ""
    everybody: bool = False


def find_recipients(tx: Transaction, to: str, sender: str, now: int) -> Recipients:
    """Return the sessions that an address means; raise if nobody has it, or if it is ambiguous."""
    if to.startswith(GROUP):
        group = to.removeprefix(GROUP)
        return Recipients(_others(tx, members_of(tx, group), sender, f"group {group}", now), group=group)
    exact = None if to.startswith(ROLE) else tx.get(keys.session(to), Session)
    if exact is not None and not has_left(exact):
        return Recipients([exact])
    sessions = list(every_session(tx))
    if to.startswith(ROLE):
        role = to.removeprefix(ROLE)
        of_role = [session for session in sessions if session.role == role]
        return Recipients(_others(tx, of_role, sender, f"role {role}", now), role=role)
    named = [session for session in sessions if session.agent == to and not has_left(session)]
    if named:
        return Recipients(_others(tx, named, sender, f"agent {to}", now), agent=to)
    if exact is not None:
        raise Gone(f"session {to} has ended", hint="coord peers lists the sessions")
    return Recipients([_by_prefix(sessions, to)])


def alive(tx: Transaction, session: Session, now: int) -> Liveness:
    """Return how alive a session seems, with the evidence about its process."""
    return liveness(session, now, evidence_of(tx, session), thresholds_of(tx))


def prefetch_evidence(tx: Transaction, sessions: list[Session]) -> None:
    """Request the evidence about all these sessions together."""
    tx.evidence(*(session.process for session in sessions if session.process is not None))


def has_left(session: Session) -> bool:
    """Whether a session ended by itself; one that was declared dead may come back and read its messages."""
    return session.ended_ms > 0 and session.end_reason != "dead"


def _others(tx: Transaction, found: list[Session], sender: str, what: str, now: int) -> list[Session]:
    """Return the sessions besides the sender that seem alive, or else those that have not ended."""
    others = [each for each in found if each.session_id != sender and not each.ended_ms]
    if not others:
        raise NotFound(f"no other session belongs to {what}", hint="coord peers lists the sessions")
    prefetch_evidence(tx, others)
    return [each for each in others if alive(tx, each, now) not in SILENT] or others


def _by_prefix(sessions: list[Session], to: str) -> Session:
    fitting = [session for session in sessions if session.session_id.startswith(to)]
    if len(fitting) == 1 and has_left(fitting[0]):
        raise Gone(f"session {fitting[0].session_id} has ended", hint="coord peers lists the sessions")
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        names = ", ".join(session.session_id for session in fitting[:PREFIXES_MAX])
        raise Invalid(f"more than one session begins with {to}", hint=f"for example {names}")
    raise nobody_named(to, [name for each in sessions for name in (each.agent, each.session_id) if name])


def nobody_named(name: str, known: list[str]) -> NotFound:
    """Return the error for an unknown name, with the names that resemble it."""
    from difflib import get_close_matches  # noqa: PLC0415 - only an error needs it

    near = get_close_matches(name, sorted(set(known)), n=NEAREST_MAX)
    hint = f"did you mean {' or '.join(near)}?" if near else "coord peers lists the sessions"
    return NotFound(f"there is no session or agent {name}", hint=hint)
