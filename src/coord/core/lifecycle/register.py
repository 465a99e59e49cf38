"""Begin a session, or come back to it."""

import msgspec

from coord.core import keys
from coord.core.errors import Invalid, Refused
from coord.core.lifecycle.commands import Register, RegisterReply
from coord.core.lifecycle.end import end_session, finish_termination
from coord.core.lifecycle.takeover import move_all
from coord.core.limits import count_in
from coord.core.locks.locks import end_lock, locks_of
from coord.core.locks.resources import Resource
from coord.core.locks.schema import EndReason
from coord.core.locks.wait_queue import grant_waiters
from coord.core.messages.inbox import notify
from coord.core.messages.quoting import quote
from coord.core.sessions.agent_limit import count_agent
from coord.core.sessions.identify import described, emit_update, find_session, new_session, put_session
from coord.core.sessions.liveness import thresholds_of
from coord.core.sessions.queries import every_session
from coord.core.sessions.schema import Session
from coord.core.sessions.update import apply_update
from coord.core.tasks.activity import describe
from coord.core.transaction import Transaction

NAMED_FIELDS = (
    *("agent", "role", "user", "project", "parent", "host", "cwd", "repository", "process", "parent_process"),
)
"""The fields of a session that its caller names."""


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
    elif before is not None and before.terminated_by and not before.ended_ms:
        freed += finish_termination(tx, before, now)
        before = tx.get(keys.session(name), Session)
    if before is not None:
        session = _resume(before, session, now)
    if command.runner:
        session = msgspec.structs.replace(session, runner=session.process)
    session = put_session(tx, apply_update(session, command, now))
    if before is not None and not before.ended_ms and described(before) != described(session):
        emit_update(tx, session)
    locks, claims = (0, 0)
    old = tx.get(keys.session(command.replaces), Session) if command.replaces not in ("", name) else None
    if old is not None and not old.ended_ms:
        gone = proof_of_end(tx, old, session, now)
        if not gone and not command.force:
            raise _not_replaceable(old, session, now)
        locks, claims = move_all(tx, old, session, now)
        if gone:
            freed += end_session(tx, old, "replaced", now, evidence=gone, successor=name)
        else:
            freed += _end_by_force(tx, old, session, command.reason, now)
    new = before is None or before.ended_ms > 0
    count_agent(tx, command.caller, name, now, refuse=new)
    grant_waiters(tx, freed, now)
    peers = [each for each in every_session(tx) if not each.ended_ms] if command.peers else [session]
    shown = {info.session_id: info for info in describe(tx, peers, now, blockers=False)}
    return RegisterReply(shown.pop(name), list(shown.values()), new, locks, claims)


def proof_of_end(tx: Transaction, old: Session, session: Session, now: int) -> str:
    """Return what proves that a session does nothing more besides its successor; "" without proof."""
    if old.process is None:
        silent_ms = now - old.beat_ms
        stale = silent_ms >= thresholds_of(tx).stale_ms
        return f"it named no process and was silent for {silent_ms // 1000} s" if stale else ""
    if old.process == session.process:
        return "its successor runs in its process"
    evidence = tx.evidence(old.process)[0]
    return evidence.detail if evidence.refutes else ""


def _not_replaceable(old: Session, session: Session, now: int) -> Refused:
    name, silent_s = old.session_id, (now - old.beat_ms) // 1000
    if old.process is None:
        shown = f"named no process and was active {silent_s} s ago"
    else:
        shown = f"runs in another process than {session.session_id} (pid {old.process.pid})"
    return Refused(
        f"session {name} {shown}, so nothing proves that it is gone",
        hint=f"end it there with coord dereg, or: coord register --replaces {name} --force --reason WHY",
    )


def _end_by_force(tx: Transaction, old: Session, session: Session, reason: str, now: int) -> list[Resource]:
    """End a session that may be alive: its next command is refused, its parent is notified."""
    if not reason:
        raise Invalid("a takeover by force needs a reason", hint="add --reason TEXT")
    name, note = session.session_id, f"{session.session_id} replaced it by force: {quote(reason)}"
    freed = end_session(tx, old, "terminated", now, evidence=note, successor=name, by=name)
    if old.parent and old.parent != name:
        about = {"session_id": old.session_id, "successor": name, "reason": reason}
        notify(tx, old.parent, "warn", f"Your sub-agent {old.session_id} has ended: {note}", now, about)
    return freed


def _resume(before: Session, session: Session, now: int) -> Session:
    """Return a session that came back: the fields its caller names, and the others as they were."""
    named = {name: getattr(session, name) for name in NAMED_FIELDS if getattr(session, name)}
    if before.ended_ms:
        named |= {"started_ms": now, "state": "idle"}
        before = msgspec.structs.replace(before, process=None, parent_process=None, calls={})
    not_ended = {"ended_ms": 0, "end_reason": "", "terminated_by": "", "end_note": ""}
    shown = {"person": session.person, "terminal": session.terminal}
    return msgspec.structs.replace(before, **named, **not_ended, **shown, beat_ms=now)
