"""How alive a session is.

Liveness is graded by the age of the last heartbeat. Only evidence about the
process proves that a session is dead.
"""

from typing import NamedTuple

from coord.core.identity import Evidence, ProcessState
from coord.core.sessions.schema import Liveness, Session
from coord.core.settings import settings_of
from coord.core.transaction import Transaction

SUSPECT_MS, STALE_MS, HUNG_MS = 120_000, 300_000, 600_000
"""The thresholds of a tenant that has set no others; also when a silent session is looked at first."""


class Thresholds(NamedTuple):
    """How long a session may be silent before it is suspect, stale and hung."""

    suspect_ms: int = SUSPECT_MS
    stale_ms: int = STALE_MS
    hung_ms: int = HUNG_MS


DEFAULT_THRESHOLDS = Thresholds()


def thresholds_of(tx: Transaction) -> Thresholds:
    """Return the thresholds that the tenant has set."""
    settings = settings_of(tx)
    return Thresholds(
        1000 * settings.suspect_seconds, 1000 * settings.stale_seconds, 1000 * settings.hung_seconds
    )


def liveness(
    session: Session, now: int, evidence: Evidence | None = None, thresholds: Thresholds = DEFAULT_THRESHOLDS
) -> Liveness:
    """Grade a session by its last heartbeat, its tool calls under way and the evidence about its process.

    A rule that has to agree with others passes `thresholds_of(tx)`.
    """
    if session.ended_ms:
        return Liveness.DEAD if session.end_reason == "dead" else Liveness.ENDED
    if evidence is not None and evidence.life is ProcessState.DEAD:
        return Liveness.DEAD
    age = now - session.beat_ms
    if age < thresholds.suspect_ms or any(until_ms > now for until_ms in session.calls.values()):
        return Liveness.LIVE
    if age < thresholds.stale_ms:
        return Liveness.SUSPECT
    return Liveness.STALE if age < thresholds.hung_ms else Liveness.HUNG


def evidence_of(tx: Transaction, session: Session) -> Evidence | None:
    """Return the evidence about the session's process; None if it never named one."""
    return None if session.process is None else tx.evidence(session.process)[0]
