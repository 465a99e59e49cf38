"""How sessions end and what becomes of what they hold: they leave, are replaced, or are proven dead."""

import msgspec

from coord.core import keys
from coord.core.commands import Deregister, Register
from coord.core.errors import NotFound, Refused
from coord.core.events import SessionEnded
from coord.core.identity import Life
from coord.core.lifecycle.takeover import hand_up, move_everything, replaced_session
from coord.core.limits import count_in, count_out
from coord.core.locks.locks import (
    PROFILES,
    Ending,
    Expiry,
    Hold,
    Standing,
    end_hold,
    holds_of,
)
from coord.core.locks.resources import Resource
from coord.core.locks.wait_queue import Request, Waiting, Waits, drop_request, resources_of, serve
from coord.core.messages.message import return_all
from coord.core.replies import Left, Liveness, Registered
from coord.core.sessions.session import (
    ENDED_KEPT_MS,
    STALE_MS,
    SUSPECT_MS,
    Session,
    ancestors,
    apply_update,
    every_session,
    evidence_of,
    find_peer,
    find_session,
    liveness,
    new_session,
    put_session,
    shown_session,
    unlist_process,
)
from coord.core.tasks.orphans import end_claims
from coord.core.tasks.types import ReleaseReason
from coord.core.transaction import View

SILENT_KEPT_MS = 7 * 24 * 3600 * 1000
"""A session of which nothing was heard for so long, and that holds nothing, is forgotten."""


def declare_dead(view: View, name: str, evidence: str, now: int) -> list[Resource]:
    """Write down that a session is dead and end what it holds (what only a theft can end stays)."""
    session = view.get(keys.session(name), Session)
    if session is None or session.ended_ms:
        return []
    freed = end_session(view, session, "dead", now, evidence=evidence)
    end_claims(view, name, ReleaseReason.ERROR, evidence, now)
    for standing in holds_of(view, name):
        if PROFILES[standing.hold.profile].expiry is not Expiry.STEAL_ONLY:
            freed += _end_if_there(view, standing, Ending.OWNER_DEAD, now, note=evidence)
    return freed


def _end_if_there(view: View, standing: Standing, ending: Ending, now: int, note: str = "") -> list[Resource]:
    """End a hold that has not ended together with another one."""
    if view.get(standing.key, Hold) is None:
        return []
    return end_hold(view, standing, ending, now, note=note)


def end_session(
    view: View, session: Session, ending: str, now: int, *, evidence: str = "", successor: str = ""
) -> list[Resource]:
    """Mark a session as ended and take its requests out of the line; return what these asked for."""
    name = session.session_id
    unlist_process(view, session.process, name)
    unlist_process(view, session.beneath, name)
    state = "crashed" if ending == "dead" else "terminated"
    ended = msgspec.structs.replace(session, state=state, ended_ms=now, ending=ending)
    view.put(keys.session(name), ended, keys.due(now + ENDED_KEPT_MS))
    view.emit(SessionEnded(name, session.agent, ending, evidence, successor))
    count_out(view, name)
    freed: list[Resource] = []
    waits = view.get(keys.waits(name), Waits)
    for key in waits.keys if waits is not None else ():
        request = view.get(key, Request)
        if request is not None:
            drop_request(view, Waiting(key, request), f"session {ending}")
            freed += resources_of(request)
    return freed


def deregister(view: View, command: Deregister, now: int) -> Left:
    """End the caller's session, one of its sub-agents, or one that is dead; release all it holds."""
    own = find_session(view, command.caller, now)
    name = find_peer(view, command.session) if command.session else own
    session = view.get(keys.session(name), Session)
    if session is None or session.ended_ms:
        raise NotFound(f"there is no session {name}", hint="coord peers lists who is there")
    evidence = evidence_of(view, session)
    dead = evidence is not None and evidence.life is Life.DEAD
    if name != own and own not in ancestors(view, name) and not dead:
        raise Refused(
            f"session {name} belongs to somebody else and is not proven dead",
            hint="only the session itself, or one above it, may end it",
        )
    held = holds_of(view, name)
    freed = end_session(view, session, "deregistered", now)
    end_claims(view, name, ReleaseReason.VOLUNTARY, "its session has ended", now)
    above = view.get(keys.session(session.parent), Session) if command.to_parent and session.parent else None
    if above is not None and not above.ended_ms:
        held = hand_up(view, held, session, above, now)
    for standing in held:
        freed += _end_if_there(view, standing, Ending.SESSION_ENDED, now)
    return_all(view, name, now)
    serve(view, freed, now)
    return Left(name, [standing.hold.resource for standing in held])


def register(view: View, command: Register, now: int) -> Registered:
    """Begin a session or come back to it; what it does not name stays as it was."""
    name = find_session(view, command.caller, now)
    before = view.get(keys.session(name), Session)
    count_in(view, command.caller.tenant, name, refuse=not command.replaces)
    session = new_session(view, name, command.caller, now)
    freed: list[Resource] = []
    if before is not None and before.ending == "dead":
        for standing in holds_of(view, name):  # one declared dead comes back with empty hands
            freed += _end_if_there(view, standing, Ending.OWNER_DEAD, now)
    if before is not None:
        session = _keep(before, session, now)
    session = put_session(view, apply_update(session, command))
    locks, claims = (0, 0)
    if command.replaces and command.replaces != name:
        old = replaced_session(view, command.replaces, session)
        if old is not None:
            locks, claims = move_everything(view, old, session, now)
            freed += end_session(view, old, "replaced", now, successor=name)
    serve(view, freed, now)
    peers = [
        shown_session(other, now, evidence_of(view, other))
        for other in every_session(view)
        if other.session_id != name and not other.ended_ms
    ]
    new = before is None or before.ended_ms > 0
    return Registered(shown_session(session, now, None), peers, new, locks, claims)


def _keep(before: Session, session: Session, now: int) -> Session:
    """Return a session that came back: new where the caller says something, else as it was."""
    named = {
        name: getattr(session, name)
        for name in ("agent", "role", "user", "project", "parent", "host", "cwd", "process", "beneath")
        if getattr(session, name)
    }
    if before.ended_ms:
        named |= {"started_ms": now, "state": "idle"}
        before = msgspec.structs.replace(before, process=None, beneath=None, calls={})
    return msgspec.structs.replace(before, **named, beat_ms=now, ended_ms=0, ending="")


def pass_session_deadline(view: View, name: str, now: int) -> list[Resource]:
    """Look at a session that was silent for a while; forget one that ended long ago."""
    key = keys.session(name)
    session = view.get(key, Session)
    if session is None:
        return []
    if session.ended_ms:
        if now >= session.ended_ms + ENDED_KEPT_MS:
            view.delete(key)
        return []
    evidence = evidence_of(view, session)
    if liveness(session, now, evidence) is Liveness.DEAD:
        assert evidence is not None, "death is proven by evidence"
        return declare_dead(view, name, evidence.detail, now)
    age_ms = now - session.beat_ms
    if age_ms >= STALE_MS:
        count_out(view, name)
    if age_ms >= SILENT_KEPT_MS and not holds_of(view, name):
        return end_session(view, session, "forgotten", now)
    next_look = next((step for step in (SUSPECT_MS, STALE_MS, 2 * STALE_MS) if step > age_ms), None)
    later = session.beat_ms + next_look if next_look else now + ENDED_KEPT_MS // 24
    view.put(key, session, keys.due(later))
    return []
