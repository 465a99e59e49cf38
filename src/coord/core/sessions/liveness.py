"""How alive a session is.

Liveness is graded by the age of the last heartbeat. Only evidence about the
process proves that a session is dead.
"""

from coord.core.identity import Evidence, ProcessState
from coord.core.sessions.schema import Liveness, Session
from coord.core.transaction import Transaction

SUSPECT_MS, STALE_MS, HUNG_MS = 120_000, 300_000, 600_000


def liveness(session: Session, now: int, evidence: Evidence | None = None) -> Liveness:
    """Grade a session by its last heartbeat, its tool calls under way and the evidence about its process."""
    if session.ended_ms:
        return Liveness.DEAD if session.end_reason == "dead" else Liveness.ENDED
    if evidence is not None and evidence.life is ProcessState.DEAD:
        return Liveness.DEAD
    age = now - session.beat_ms
    if age < SUSPECT_MS or any(until_ms > now for until_ms in session.calls.values()):
        return Liveness.LIVE
    if age < STALE_MS:
        return Liveness.SUSPECT
    return Liveness.STALE if age < HUNG_MS else Liveness.HUNG


def evidence_of(tx: Transaction, session: Session) -> Evidence | None:
    """Return the evidence about the session's process; None if it never named one."""
    return None if session.process is None else tx.evidence(session.process)[0]
