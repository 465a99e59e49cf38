"""Sessions that hang: they are silent for too long, but nothing proves that they are dead.

The sweep reports a hang once, to the log and to the parent of the session. A process that `coord work` runs
can be ended as well (`ListHung`); a rule cannot do that, so a client does.
"""

import msgspec

from coord.core.lifecycle.commands import HungSession, ListHung
from coord.core.messages.inbox import notify
from coord.core.sessions.liveness import evidence_of, liveness, thresholds_of
from coord.core.sessions.queries import every_session
from coord.core.sessions.schema import Liveness, Session, SessionHung
from coord.core.transaction import Transaction


def report_hang(tx: Transaction, session: Session, now: int) -> Session:
    """Report that a session hangs, once until it is heard of again; return the session to write."""
    if session.hung_beat_ms == session.beat_ms or session.person:  # a person may be silent
        return session
    silent_s = (now - session.beat_ms) // 1000
    runs = session.runner is not None
    tx.emit(SessionHung(session.session_id, session.agent, silent_s, runs, session.project))
    if session.parent:
        subject = f"{session.agent or session.session_id} seems to hang: no heartbeat for {silent_s} s"
        notify(tx, session.parent, "warn", subject, now, {"session_id": session.session_id})
    return msgspec.structs.replace(session, hung_beat_ms=session.beat_ms)


def list_hung(tx: Transaction, _: ListHung, now: int) -> list[HungSession]:
    """Return the sessions of `coord work` that hang, oldest heartbeat first."""
    thresholds = thresholds_of(tx)
    found = [
        HungSession(session.session_id, session.agent, now - session.beat_ms, session.runner)
        for session in every_session(tx)
        if session.runner is not None
        and liveness(session, now, evidence_of(tx, session), thresholds) is Liveness.HUNG
    ]
    return sorted(found, key=lambda hung: -hung.silent_ms)
