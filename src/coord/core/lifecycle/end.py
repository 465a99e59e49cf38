"""How sessions end and what becomes of what they hold: they leave, are replaced, or are proven dead."""

import msgspec

from coord.core import keys
from coord.core.errors import NotFound, Refused
from coord.core.identity import ProcessState
from coord.core.lifecycle.commands import Deregister, DeregisterReply, Register, RegisterReply
from coord.core.lifecycle.takeover import hand_up, move_all, replaced_session
from coord.core.limits import count_in, count_out
from coord.core.locks.locks import LockAt, end_lock, locks_of
from coord.core.locks.resources import Resource
from coord.core.locks.schema import PROFILES, EndReason, Expiry, Lock, LockRequest, SessionWaits
from coord.core.locks.wait_queue import RequestAt, drop_request, grant_waiters, resources_of
from coord.core.messages.message import return_all
from coord.core.sessions.identify import (
    ENDED_KEPT_MS,
    ancestors,
    find_session,
    new_session,
    put_session,
    unlist_process,
)
from coord.core.sessions.liveness import STALE_MS, SUSPECT_MS, evidence_of, liveness
from coord.core.sessions.queries import every_session, find_peer, session_info
from coord.core.sessions.schema import Liveness, Session, SessionEnded
from coord.core.sessions.update import apply_update
from coord.core.tasks.orphans import end_claims
from coord.core.tasks.types import ReleaseReason
from coord.core.transaction import Transaction

SILENT_KEPT_MS = 7 * 24 * 3600 * 1000
"""A session of which nothing was heard for so long, and that holds nothing, is forgotten."""


def declare_dead(tx: Transaction, name: str, evidence: str, now: int) -> list[Resource]:
    """Write down that a session is dead and end what it holds (what only a theft can end stays)."""
    session = tx.get(keys.session(name), Session)
    if session is None or session.ended_ms:
        return []
    freed = end_session(tx, session, "dead", now, evidence=evidence)
    end_claims(tx, name, ReleaseReason.ERROR, evidence, now)
    for lock_at in locks_of(tx, name):
        if PROFILES[lock_at.lock.profile].expiry is not Expiry.STEAL_ONLY:
            freed += _end_if_there(tx, lock_at, EndReason.OWNER_DEAD, now, note=evidence)
    return freed


def _end_if_there(
    tx: Transaction, lock_at: LockAt, end_reason: EndReason, now: int, note: str = ""
) -> list[Resource]:
    """End a hold that has not ended together with another one."""
    if tx.get(lock_at.key, Lock) is None:
        return []
    return end_lock(tx, lock_at, end_reason, now, note=note)


def end_session(
    tx: Transaction, session: Session, end_reason: str, now: int, *, evidence: str = "", successor: str = ""
) -> list[Resource]:
    """Mark a session as ended and take its requests out of the line; return what these asked for."""
    name = session.session_id
    unlist_process(tx, session.process, name)
    unlist_process(tx, session.parent_process, name)
    state = "crashed" if end_reason == "dead" else "terminated"
    ended = msgspec.structs.replace(session, state=state, ended_ms=now, end_reason=end_reason)
    tx.put(keys.session(name), ended, keys.due(now + ENDED_KEPT_MS))
    tx.emit(SessionEnded(name, session.agent, end_reason, evidence, successor))
    count_out(tx, name)
    freed: list[Resource] = []
    waits = tx.get(keys.waits(name), SessionWaits)
    for key in waits.keys if waits is not None else ():
        request = tx.get(key, LockRequest)
        if request is not None:
            drop_request(tx, RequestAt(key, request), f"session {end_reason}")
            freed += resources_of(request)
    return freed


def deregister(tx: Transaction, command: Deregister, now: int) -> DeregisterReply:
    """End the caller's session, one of its sub-agents, or one that is dead; release all it holds."""
    own = find_session(tx, command.caller, now)
    name = find_peer(tx, command.session) if command.session else own
    session = tx.get(keys.session(name), Session)
    if session is None or session.ended_ms:
        raise NotFound(f"there is no session {name}", hint="coord peers lists who is there")
    evidence = evidence_of(tx, session)
    dead = evidence is not None and evidence.life is ProcessState.DEAD
    if name != own and own not in ancestors(tx, name) and not dead:
        raise Refused(
            f"session {name} belongs to somebody else and is not proven dead",
            hint="only the session itself, or one above it, may end it",
        )
    held = locks_of(tx, name)
    freed = end_session(tx, session, "deregistered", now)
    end_claims(tx, name, ReleaseReason.VOLUNTARY, "its session has ended", now)
    above = tx.get(keys.session(session.parent), Session) if command.to_parent and session.parent else None
    if above is not None and not above.ended_ms:
        held = hand_up(tx, held, session, above, now)
    for lock_at in held:
        freed += _end_if_there(tx, lock_at, EndReason.SESSION_ENDED, now)
    return_all(tx, name, now)
    grant_waiters(tx, freed, now)
    return DeregisterReply(name, [lock_at.lock.resource for lock_at in held])


def register(tx: Transaction, command: Register, now: int) -> RegisterReply:
    """Begin a session or come back to it; what it does not name stays as it was."""
    name = find_session(tx, command.caller, now)
    before = tx.get(keys.session(name), Session)
    count_in(tx, command.caller.tenant, name, refuse=not command.replaces)
    session = new_session(tx, name, command.caller, now)
    freed: list[Resource] = []
    if before is not None and before.end_reason == "dead":
        for lock_at in locks_of(tx, name):  # one declared dead comes back with empty hands
            freed += _end_if_there(tx, lock_at, EndReason.OWNER_DEAD, now)
    if before is not None:
        session = _keep(before, session, now)
    session = put_session(tx, apply_update(session, command))
    locks, claims = (0, 0)
    if command.replaces and command.replaces != name:
        old = replaced_session(tx, command.replaces, session)
        if old is not None:
            locks, claims = move_all(tx, old, session, now)
            freed += end_session(tx, old, "replaced", now, successor=name)
    grant_waiters(tx, freed, now)
    peers = [
        session_info(other, now, evidence_of(tx, other))
        for other in every_session(tx)
        if other.session_id != name and not other.ended_ms
    ]
    new = before is None or before.ended_ms > 0
    return RegisterReply(session_info(session, now, None), peers, new, locks, claims)


def _keep(before: Session, session: Session, now: int) -> Session:
    """Return a session that came back: new where the caller says something, else as it was."""
    named = {
        name: getattr(session, name)
        for name in ("agent", "role", "user", "project", "parent", "host", "cwd", "process", "parent_process")
        if getattr(session, name)
    }
    if before.ended_ms:
        named |= {"started_ms": now, "state": "idle"}
        before = msgspec.structs.replace(before, process=None, parent_process=None, calls={})
    return msgspec.structs.replace(before, **named, beat_ms=now, ended_ms=0, end_reason="")


def pass_session_deadline(tx: Transaction, name: str, now: int) -> list[Resource]:
    """Look at a session that was silent for a while; forget one that ended long ago."""
    key = keys.session(name)
    session = tx.get(key, Session)
    if session is None:
        return []
    if session.ended_ms:
        if now >= session.ended_ms + ENDED_KEPT_MS:
            tx.delete(key)
        return []
    evidence = evidence_of(tx, session)
    if liveness(session, now, evidence) is Liveness.DEAD:
        assert evidence is not None, "death is proven by evidence"
        return declare_dead(tx, name, evidence.detail, now)
    age_ms = now - session.beat_ms
    if age_ms >= STALE_MS:
        count_out(tx, name)
    if age_ms >= SILENT_KEPT_MS and not locks_of(tx, name):
        return end_session(tx, session, "forgotten", now)
    next_look = next((step for step in (SUSPECT_MS, STALE_MS, 2 * STALE_MS) if step > age_ms), None)
    later = session.beat_ms + next_look if next_look else now + ENDED_KEPT_MS // 24
    tx.put(key, session, keys.due(later))
    return []
