"""End a session that deregisters, is replaced, is terminated or is proven dead, with all that it has.

A session that ends takes its sub-agents with it, and theirs. They end in the same commit as far as that has
room. The others are marked, so that no command of theirs is accepted, and the sweep ends them.
"""

import msgspec

from coord.core import keys
from coord.core.errors import Invalid, NotFound, Refused
from coord.core.lifecycle.commands import Deregister, DeregisterReply
from coord.core.lifecycle.hung import report_hang
from coord.core.lifecycle.takeover import pass_to_parent
from coord.core.limits import count_out
from coord.core.locks.locks import LockAt, end_lock, locks_of
from coord.core.locks.resources import Resource
from coord.core.locks.schema import EndReason, Expiry, LockRequest, SessionWaits
from coord.core.locks.table import RequestAt, resources_of
from coord.core.locks.uses import expiry_of
from coord.core.locks.wait_queue import drop_request, forget_task_wait, grant_waiters
from coord.core.messages.delegations import end_delegations_to
from coord.core.messages.groups import leave_groups
from coord.core.messages.undelivered import return_all
from coord.core.sessions.commands import DeclareDead
from coord.core.sessions.identify import (
    ENDED_KEPT_MS,
    ancestors,
    count_crew_change,
    find_session,
    is_person,
    name_of_person,
    unlist_process,
)
from coord.core.sessions.liveness import evidence_of, liveness, thresholds_of
from coord.core.sessions.queries import every_session, find_peer
from coord.core.sessions.schema import Liveness, Session, SessionEnded
from coord.core.sessions.state import end_state
from coord.core.tasks.orphans import end_claims
from coord.core.tasks.types import ReleaseReason
from coord.core.transaction import Transaction

SILENT_KEPT_MS = 7 * 24 * 3600 * 1000
"""A session that was silent for this time and holds nothing is forgotten."""
ENDED_BYTES_MAX = 256 * 1024
"""Sub-agents are ended in one commit up to this size; the sweep ends the others."""


def declare_dead(tx: Transaction, command: DeclareDead, now: int) -> list[Resource]:
    """Record that a session is dead and end its claims and locks, except locks that only a steal can end.

    Its sub-agents are left to the sweep: the command that noticed the death may come from one of them.
    """
    session = tx.get(keys.session(command.session), Session)
    if session is None or session.ended_ms:
        return []
    freed = _end_dead(tx, session, command.evidence, now)
    for child in _children(tx, session).get(session.session_id, ()):
        _leave_to_sweep(tx, child, session.session_id, now)
    return freed


def _end_dead(tx: Transaction, session: Session, evidence: str, now: int) -> list[Resource]:
    freed = end_session(tx, session, "dead", now, evidence=evidence)
    freed += end_claims(tx, session.session_id, ReleaseReason.ERROR, evidence, now)
    for lock_at in locks_of(tx, session.session_id):
        if expiry_of(lock_at.lock) is not Expiry.STEAL_ONLY:
            freed += end_lock(tx, lock_at, EndReason.OWNER_DEAD, now, note=evidence)
    return freed


def end_session(
    tx: Transaction,
    session: Session,
    end_reason: str,
    now: int,
    *,
    evidence: str = "",
    successor: str = "",
    by: str = "",
) -> list[Resource]:
    """Mark a session as ended and drop its lock requests; return the resources that these asked for."""
    name = session.session_id
    unlist_process(tx, session.process, name)
    unlist_process(tx, session.parent_process, name)
    ended = msgspec.structs.replace(
        session,
        state=end_state(session, end_reason),
        ended_ms=now,
        end_reason=end_reason,
        terminated_by=by,
        end_note=evidence,
        emergencies=session.emergencies if end_reason == "dead" else 0,  # the dead may come back
        questions=0,
    )
    tx.put(keys.session(name), ended, keys.due(now + ENDED_KEPT_MS))
    what = (end_reason, evidence, successor, by, session.role, session.project)
    tx.emit(SessionEnded(name, session.agent, *what))
    count_out(tx, name)
    count_crew_change(tx, session)
    tx.prefetch(prefixes=(keys.delegation_prefix(name), keys.GROUP_PREFIX))
    end_delegations_to(tx, name, successor, now)
    leave_groups(tx, name)
    if session.questions:
        from coord.core.questions.questions import end_questions  # noqa: PLC0415 - few sessions have any

        end_questions(tx, session, successor, now)
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
    """End the caller's session, one of its sub-agents or a dead session, with the sub-agents below it.

    A session that names a process in which no agent runs is ended like a dead one. A person may end any one,
    by force.
    """
    own = find_session(tx, command.caller, now)
    if command.force:
        _check_force(command, own)
    name = find_peer(tx, command.session) if command.session else own
    session = tx.get(keys.session(name), Session)
    if session is None or session.ended_ms:
        raise NotFound(f"there is no session {name}", hint="coord peers lists the sessions")
    evidence = evidence_of(tx, session)
    dead = evidence is not None and evidence.refutes
    if name != own and own not in ancestors(tx, name) and not dead and not command.force:
        raise Refused(
            f"session {name} is not yours and is not proven dead",
            hint=f"end it in its own terminal; a person may: coord dereg {name} --force --reason WHY",
        )
    held = locks_of(tx, name)
    if name == own:
        if command.read:
            from coord.core.activity.files import log_reads  # noqa: PLC0415 - most sessions have no rest

            log_reads(tx, session, command.read, now)
        freed = end_session(tx, session, "deregistered", now)
    else:
        proof = command.reason or (evidence.detail if dead and evidence is not None else "")
        ended_by = name_of_person(command.caller) if command.force else own
        note = f"{ended_by} ended it{f' ({proof})' if proof else ''}"
        freed = end_session(tx, session, "terminated", now, evidence=note, by=own)
    freed += end_claims(tx, name, ReleaseReason.VOLUNTARY, "its session has ended", now)
    above = tx.get(keys.session(session.parent), Session) if command.to_parent and session.parent else None
    heir = above if above is not None and not above.ended_ms else None
    freed += _end_locks(tx, session, EndReason.SESSION_ENDED, now, heir)
    released = [lock_at.lock.resource for lock_at in held if not _passed_on(tx, lock_at, heir)]
    return_all(tx, name, now)
    below = end_children(tx, session, now, heir)
    grant_waiters(tx, freed + below.freed, now)
    return DeregisterReply(name, released, below.sessions)


def _check_force(command: Deregister, own: str) -> None:
    """Refuse to end a session by force without a person or a reason."""
    if not command.reason:
        raise Invalid("--force requires --reason", hint="--force --reason 'why'")
    if not is_person(command.caller, own):
        raise Refused(f"{own} is an agent; only people end other sessions", hint="ask a person to do it")


def _end_locks(
    tx: Transaction, session: Session, end_reason: EndReason, now: int, heir: Session | None, note: str = ""
) -> list[Resource]:
    """End the locks of a session, except those of hooks, which its heir gets with the edits under them."""
    held = locks_of(tx, session.session_id)
    if heir is not None:
        held = pass_to_parent(tx, held, session, heir, now)
    return [resource for lock_at in held for resource in end_lock(tx, lock_at, end_reason, now, note=note)]


def _passed_on(tx: Transaction, lock_at: LockAt, heir: Session | None) -> bool:
    """Whether a lock that a session had belongs to its heir now."""
    if heir is None or not lock_at.lock.worktree:
        return False
    return lock_at.resource.lock_key(heir.session_id) in tx.writes


class EndedChildren(msgspec.Struct, frozen=True):
    """The sub-agents that ended with their lead, and the resources that they freed."""

    sessions: list[str]
    freed: list[Resource]


def end_children(tx: Transaction, lead: Session, now: int, heir: Session | None = None) -> EndedChildren:
    """Terminate the sub-agents of a session that ends, and theirs; `heir` gets the locks that hooks took."""
    ended, freed = [], []
    children = _children(tx, lead)
    seen = {lead.session_id}  # parents form no cycle, but damaged ones must not loop
    waiting = list(children.get(lead.session_id, ()))
    _prefetch_ends(tx, [child for found in children.values() for child in found])
    room = tx.size + ENDED_BYTES_MAX
    while waiting:
        child = waiting.pop(0)
        if child.session_id in seen:
            continue
        seen.add(child.session_id)
        ended.append(child.session_id)
        if tx.size > room:
            _leave_to_sweep(tx, child, lead.session_id, now)
            continue
        freed += _terminate(tx, child, lead.session_id, now, heir)
        waiting += children.get(child.session_id, ())
    return EndedChildren(ended, freed)


def _children(tx: Transaction, lead: Session) -> dict[str, list[Session]]:
    """Return the sessions that have not ended, by their parent; nothing if the lead has no sub-agents."""
    found: dict[str, list[Session]] = {}
    for session in every_session(tx) if lead.children else ():
        if session.parent and not session.ended_ms:
            found.setdefault(session.parent, []).append(session)
    return found


def _prefetch_ends(tx: Transaction, sessions: list[Session]) -> None:
    """Prefetch what the end of each session reads, so that the rule is not restarted once per session."""
    names = [session.session_id for session in sessions]
    tx.prefetch(
        *(key for name in names for key in (keys.waits(name), keys.mailbox(name), keys.count_session(name))),
        prefixes=[
            prefix
            for name in names
            for prefix in (
                keys.session_lock_prefix(name),
                keys.by_session_prefix(name),
            )
        ],
    )


def _leave_to_sweep(tx: Transaction, child: Session, lead: str, now: int) -> None:
    """Mark a sub-agent as terminated: no command of its is accepted, and the sweep ends it."""
    marked = msgspec.structs.replace(child, terminated_by=lead, end_note=_with_lead(lead))
    tx.put(keys.session(child.session_id), marked, keys.due(now))


def _with_lead(lead: str) -> str:
    return f"its lead {lead} has ended"


def _terminate(
    tx: Transaction, session: Session, by: str, now: int, heir: Session | None = None
) -> list[Resource]:
    """End a sub-agent whose lead has ended; its locks count as lost, because its work is unfinished."""
    name, note = session.session_id, _with_lead(by)
    freed = end_session(tx, session, "terminated", now, evidence=note, by=by)
    freed += end_claims(tx, name, ReleaseReason.PREEMPTED, note, now)
    freed += _end_locks(tx, session, EndReason.PARENT_ENDED, now, heir, note)
    return_all(tx, name, now)
    return freed


def finish_termination(tx: Transaction, session: Session, now: int) -> list[Resource]:
    """End a session that was marked when its lead ended, and the sub-agents below it."""
    freed = _terminate(tx, session, session.terminated_by, now)
    return freed + end_children(tx, session, now).freed


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
    if session.terminated_by:
        return finish_termination(tx, session, now)
    evidence, thresholds = evidence_of(tx, session), thresholds_of(tx)
    grade = liveness(session, now, evidence, thresholds)
    if grade is Liveness.DEAD:
        assert evidence is not None, "death is proven by evidence"
        return _end_dead(tx, session, evidence.detail, now) + end_children(tx, session, now).freed
    age_ms = now - session.beat_ms
    if age_ms >= thresholds.stale_ms:
        count_out(tx, name)
    if grade is Liveness.HUNG:
        session = report_hang(tx, session, now)
    if age_ms >= SILENT_KEPT_MS and not locks_of(tx, name):
        return end_session(tx, session, "forgotten", now) + end_children(tx, session, now).freed
    next_look = next((step for step in thresholds if step > age_ms), None)
    later = session.beat_ms + next_look if next_look else now + ENDED_KEPT_MS // 24
    tx.put(key, session, keys.due(later))
    return []


def session_deadline(tx: Transaction, key: str, now: int) -> None:
    """Act on the deadline of a session."""
    freed = _look_at_silent_session(tx, key.partition("/")[2], now)
    if freed:
        grant_waiters(tx, freed, now)
