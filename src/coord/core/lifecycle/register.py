"""Begin a session, or come back to it."""

import msgspec

from coord.core import keys
from coord.core.lifecycle.commands import Register, RegisterReply
from coord.core.lifecycle.end import end_session
from coord.core.lifecycle.takeover import move_all, replaced_session
from coord.core.limits import count_in
from coord.core.locks.locks import end_lock, locks_of
from coord.core.locks.resources import Resource
from coord.core.locks.schema import EndReason
from coord.core.locks.wait_queue import grant_waiters
from coord.core.sessions.agent_limit import count_agent
from coord.core.sessions.identify import find_session, new_session, put_session
from coord.core.sessions.liveness import evidence_of, thresholds_of
from coord.core.sessions.queries import every_session, session_info
from coord.core.sessions.schema import Session
from coord.core.sessions.update import apply_update
from coord.core.transaction import Transaction


def register(tx: Transaction, command: Register, now: int) -> RegisterReply:
    """Begin a session or come back to it; fields that the command does not name stay."""
    name = find_session(tx, command.caller, now)
    before = tx.get(keys.session(name), Session)
    count_in(tx, command.caller.tenant, name, refuse=not command.replaces)
    session = new_session(tx, name, command.caller, now)
    freed: list[Resource] = []
    if before is not None and before.end_reason == "dead":
        for lock_at in locks_of(tx, name):  # a session that was declared dead comes back without its locks
            freed += end_lock(tx, lock_at, EndReason.OWNER_DEAD, now)
    if before is not None:
        session = _resume(before, session, now)
    if command.runner:
        session = msgspec.structs.replace(session, runner=session.process)
    session = put_session(tx, apply_update(session, command))
    locks, claims = (0, 0)
    if command.replaces and command.replaces != name:
        old = replaced_session(tx, command.replaces, session)
        if old is not None:
            locks, claims = move_all(tx, old, session, now)
            freed += end_session(tx, old, "replaced", now, successor=name)
    new = before is None or before.ended_ms > 0
    count_agent(tx, command.caller, name, now, refuse=new)
    grant_waiters(tx, freed, now)
    thresholds = thresholds_of(tx)
    peers = [
        session_info(other, now, evidence_of(tx, other), thresholds)
        for other in every_session(tx)
        if other.session_id != name and not other.ended_ms
    ]
    return RegisterReply(session_info(session, now, None), peers, new, locks, claims)


def _resume(before: Session, session: Session, now: int) -> Session:
    """Return a session that came back: the fields its caller names, and the others as they were."""
    named = {
        name: getattr(session, name)
        for name in ("agent", "role", "user", "project", "parent", "host", "cwd", "process", "parent_process")
        if getattr(session, name)
    }
    if before.ended_ms:
        named |= {"started_ms": now, "state": "idle"}
        before = msgspec.structs.replace(before, process=None, parent_process=None, calls={})
    return msgspec.structs.replace(
        before, **named, beat_ms=now, ended_ms=0, end_reason="", person=session.person
    )
