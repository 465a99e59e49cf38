"""End a session that deregisters, is replaced or is proven dead, with its locks, claims and messages."""

import msgspec

from coord.core import keys
from coord.core.errors import NotFound, Refused
from coord.core.identity import ProcessState
from coord.core.lifecycle.commands import Deregister, DeregisterReply
from coord.core.lifecycle.hung import report_hang
from coord.core.lifecycle.takeover import pass_to_parent
from coord.core.limits import count_out
from coord.core.locks.locks import end_lock, locks_of
from coord.core.locks.resources import Resource
from coord.core.locks.schema import EndReason, Expiry, LockRequest, SessionWaits
from coord.core.locks.table import RequestAt, resources_of
from coord.core.locks.uses import expiry_of
from coord.core.locks.wait_queue import drop_request, forget_task_wait, grant_waiters
from coord.core.messages.delegations import end_delegations_to
from coord.core.messages.groups import leave_groups
from coord.core.messages.undelivered import return_all
from coord.core.sessions.commands import DeclareDead
from coord.core.sessions.identify import ENDED_KEPT_MS, ancestors, find_session, unlist_process
from coord.core.sessions.liveness import evidence_of, liveness, thresholds_of
from coord.core.sessions.queries import find_peer
from coord.core.sessions.schema import Liveness, Session, SessionEnded
from coord.core.tasks.orphans import end_claims
from coord.core.tasks.types import ReleaseReason
from coord.core.transaction import Transaction

SILENT_KEPT_MS = 7 * 24 * 3600 * 1000
"""A session that was silent for this time and holds nothing is forgotten."""


def declare_dead(tx: Transaction, command: DeclareDead, now: int) -> list[Resource]:
    """Record that a session is dead and end its claims and locks, except locks that only a steal can end."""
    name, evidence = command.session, command.evidence
    session = tx.get(keys.session(name), Session)
    if session is None or session.ended_ms:
        return []
    freed = end_session(tx, session, "dead", now, evidence=evidence)
    freed += end_claims(tx, name, ReleaseReason.ERROR, evidence, now)
    for lock_at in locks_of(tx, name):
        if expiry_of(lock_at.lock) is not Expiry.STEAL_ONLY:
            freed += end_lock(tx, lock_at, EndReason.OWNER_DEAD, now, note=evidence)
    return freed


def end_session(
    tx: Transaction, session: Session, end_reason: str, now: int, *, evidence: str = "", successor: str = ""
) -> list[Resource]:
    """Mark a session as ended and drop its lock requests; return the resources that these asked for."""
    name = session.session_id
    unlist_process(tx, session.process, name)
    unlist_process(tx, session.parent_process, name)
    state = "crashed" if end_reason == "dead" else "terminated"
    emergencies = session.emergencies if end_reason == "dead" else 0  # the dead may come back to their inbox
    ended = msgspec.structs.replace(
        session, state=state, ended_ms=now, end_reason=end_reason, emergencies=emergencies
    )
    tx.put(keys.session(name), ended, keys.due(now + ENDED_KEPT_MS))
    tx.emit(SessionEnded(name, session.agent, end_reason, evidence, successor))
    count_out(tx, name)
    tx.prefetch(prefixes=(keys.delegation_prefix(name), keys.GROUP_PREFIX))
    end_delegations_to(tx, name, successor, now)
    leave_groups(tx, name)
    freed: list[Resource] = []
    waits = tx.get(keys.waits(name), SessionWaits)
    for key in waits.keys if waits is not None else ():
        request = tx.get(key, LockRequest)
        if request is not None:
            drop_request(tx, RequestAt(key, request), f"session {end_reason}")
            freed += resources_of(request)
    forget_task_wait(tx, name)
    return freed


def deregister(tx: Transaction, command: Deregister, now: int) -> DeregisterReply:
    """End the caller's session, one of its sub-agents or a dead session, and release its locks."""
    own = find_session(tx, command.caller, now)
    name = find_peer(tx, command.session) if command.session else own
    session = tx.get(keys.session(name), Session)
    if session is None or session.ended_ms:
        raise NotFound(f"there is no session {name}", hint="coord peers lists the sessions")
    evidence = evidence_of(tx, session)
    dead = evidence is not None and evidence.life is ProcessState.DEAD
    if name != own and own not in ancestors(tx, name) and not dead:
        raise Refused(
            f"session {name} is not yours and is not proven dead",
            hint="only the session itself or its parent can end it",
        )
    held = locks_of(tx, name)
    freed = end_session(tx, session, "deregistered", now)
    freed += end_claims(tx, name, ReleaseReason.VOLUNTARY, "its session has ended", now)
    above = tx.get(keys.session(session.parent), Session) if command.to_parent and session.parent else None
    if above is not None and not above.ended_ms:
        held = pass_to_parent(tx, held, session, above, now)
    for lock_at in held:
        freed += end_lock(tx, lock_at, EndReason.SESSION_ENDED, now)
    return_all(tx, name, now)
    grant_waiters(tx, freed, now)
    return DeregisterReply(name, [lock_at.lock.resource for lock_at in held])


def _look_at_silent_session(tx: Transaction, name: str, now: int) -> list[Resource]:
    """Declare a silent session dead if that is proven; delete one that ended long ago."""
    key = keys.session(name)
    session = tx.get(key, Session)
    if session is None:
        return []
    if session.ended_ms:
        if now >= session.ended_ms + ENDED_KEPT_MS:
            tx.delete(key)
        return []
    evidence, thresholds = evidence_of(tx, session), thresholds_of(tx)
    grade = liveness(session, now, evidence, thresholds)
    if grade is Liveness.DEAD:
        assert evidence is not None, "death is proven by evidence"
        return declare_dead(tx, DeclareDead(name, evidence.detail), now)
    age_ms = now - session.beat_ms
    if age_ms >= thresholds.stale_ms:
        count_out(tx, name)
    if grade is Liveness.HUNG:
        session = report_hang(tx, session, now)
    if age_ms >= SILENT_KEPT_MS and not locks_of(tx, name):
        return end_session(tx, session, "forgotten", now)
    next_look = next((step for step in thresholds if step > age_ms), None)
    later = session.beat_ms + next_look if next_look else now + ENDED_KEPT_MS // 24
    tx.put(key, session, keys.due(later))
    return []


def session_deadline(tx: Transaction, key: str, now: int) -> None:
    """Act on the deadline of a session."""
    freed = _look_at_silent_session(tx, key.partition("/")[2], now)
    if freed:
        grant_waiters(tx, freed, now)
