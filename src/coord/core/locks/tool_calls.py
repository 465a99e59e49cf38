"""Calls of an agent's tools, as hooks tell of them: what is written is locked for as long as it takes.

A lock that a hook took names the worktree it was taken for. It is given back by a hook when nothing needs it
any more, but never while a call of its session is under way: that call may be about to write. Where such a
lock was lost and somebody else had the file since, the next call is refused once: what the session knows of
the file is out of date.
"""

import msgspec

from coord.core import keys
from coord.core.commands import AcquireLocks
from coord.core.events import LockRenewed
from coord.core.locks.acquire import acquire_locks
from coord.core.locks.locks import (
    Ending,
    Grant,
    Hold,
    Lapsed,
    Mode,
    end_hold,
    ended_by_time,
    holds_of,
    line_of,
    read_hold,
    resource_of,
    shown_lock,
)
from coord.core.locks.resources import Resource, parse_resources
from coord.core.locks.tool_call_commands import BeginCall, EndCall, LetGo
from coord.core.locks.wait_queue import serve, widens
from coord.core.replies import CallEnded, LockReply, Outcome, Released
from coord.core.sessions.session import BEAT_QUIET_MS, Session, ancestors, enlist, put_session
from coord.core.transaction import View

RESOURCES_MAX = 64
CALLS_MAX = 64
"""Calls under way that are remembered of a session; the one that may take longest is forgotten last."""
CALL_MS = 660_000
"""How long a lease may be without a call that needs it."""
GRANTS_MAX = 1000
"""How many later grants are looked through; among more of them the file is taken for changed."""


def begin_call(view: View, command: BeginCall, now: int) -> LockReply:
    """Lock what a call writes, all or nothing, and keep what its session holds until it may be over."""
    session = enlist(view, command.caller, now)
    reply = LockReply(Outcome.GRANTED)
    if command.resources:
        reply = _lock(view, command, session, now)
        if not reply.ok:
            return reply
    session = view.get(keys.session(session.session_id), Session) or session
    calls = _under_way(session, now) | {command.call: now + command.lease_ms}
    latest = dict(sorted(calls.items(), key=lambda call: call[1])[-CALLS_MAX:])
    session = put_session(view, msgspec.structs.replace(session, calls=latest))
    _keep(view, session, now)
    return reply


def _lock(view: View, command: BeginCall, session: Session, now: int) -> LockReply:
    """Take what the session does not hold yet; what it asked for by name keeps its own terms."""
    name = session.session_id
    resources = parse_resources(command.resources, command.repository, RESOURCES_MAX, command.alone)
    view.want(
        *(key for each in resources for key in (each.hold_key(name), keys.lapsed(name, each.hold_key(name))))
    )
    needed = [resource for resource in resources if not _holds(view, resource, name, now)]
    for resource in needed:
        taken = _taken_since(view, resource, session)
        if taken is not None:
            view.delete(keys.lapsed(name, resource.hold_key(name)))
            return LockReply(Outcome.CHANGED, holder=shown_lock(taken, now))
    if not needed:
        return LockReply(Outcome.GRANTED)
    ask = AcquireLocks(
        command.caller,
        command.repository,
        tuple(resource.text for resource in needed),
        profile="file",
        reason=command.reason,
        worktree=command.worktree,
        alone=tuple(resource.text for resource in needed if resource.alone),
    )
    reply = acquire_locks(view, ask, now)
    for resource in needed if reply.ok else ():
        key = keys.lapsed(name, resource.hold_key(name))
        if view.get(key, Lapsed) is not None:
            view.delete(key)
    return reply


def _holds(view: View, resource: Resource, session: str, now: int) -> bool:
    hold = view.get(resource.hold_key(session), Hold)
    if hold is None or hold.mode is Mode.READ or widens(hold, resource):
        return False
    return ended_by_time(hold, now) is None


def _taken_since(view: View, resource: Resource, session: Session) -> Hold | None:
    """Return the hold of a stranger on this after the session's own was lost, or None."""
    name = session.session_id
    lost = view.get(keys.lapsed(name, resource.hold_key(name)), Lapsed)
    if lost is None:
        return None
    kin = {name, *ancestors(view, name)}
    looked = 0
    later = ("", keys.grant_prefix(f"{resource.space}/{lost.fence + 1:016d}"))
    for page in view.pages(keys.grant_prefix(resource.space), limit=GRANTS_MAX // 2, after=later):
        view.want(*(found.key for found in page))
        for found in page:
            grant = view.get(found.key, Grant)
            if grant is None or grant.hold.owner in kin or grant.hold.mode is Mode.READ:
                continue
            if looked >= GRANTS_MAX or resource_of(grant.hold).meets(resource):
                return grant.hold
        looked += len(page)
    return None


def end_call(view: View, command: EndCall, now: int) -> CallEnded:
    """Take note that a call is over; keep the locks of its session."""
    session = enlist(view, command.caller, now)
    left = _under_way(session, now) if command.call else {}
    left.pop(command.call, None)
    if left != session.calls:
        session = put_session(view, msgspec.structs.replace(session, calls=left))
    _keep(view, session, now)
    held = [
        shown_lock(hold, now)
        for standing in holds_of(view, session.session_id)
        if (hold := read_hold(view, standing.key)) is not None and ended_by_time(hold, now) is None
    ]
    return CallEnded(held, len(left), session.reminded)


def _under_way(session: Session, now: int) -> dict[str, int]:
    return {call: until_ms for call, until_ms in session.calls.items() if until_ms > now}


def _keep(view: View, session: Session, now: int) -> None:
    """Begin leases anew that are older than a while, for the session and for those it works for."""
    _keep_locks(view, session, now)
    for name in ancestors(view, session.session_id):
        above = view.get(keys.session(name), Session)
        if above is None or above.ended_ms:
            continue
        if now - above.beat_ms >= BEAT_QUIET_MS:
            above = put_session(view, msgspec.structs.replace(above, beat_ms=now))
        _keep_locks(view, above, now)


def _keep_locks(view: View, session: Session, now: int) -> None:
    until_ms = max((0, *_under_way(session, now).values()))
    for standing in holds_of(view, session.session_id):
        hold = read_hold(view, standing.key)
        if hold is None or hold.preempted_by or hold.provisional or ended_by_time(hold, now) is not None:
            continue
        wanted = max(now + hold.ttl_ms, until_ms)
        too_long = hold.expires_ms > max(wanted, now + CALL_MS)
        if too_long or hold.expires_ms < wanted - BEAT_QUIET_MS:
            kept = msgspec.structs.replace(hold, expires_ms=wanted)
            view.put(standing.key, kept, line_of(kept))
            view.emit(LockRenewed(hold.resource, hold.owner, hold.fence, wanted))


def let_go(view: View, command: LetGo, now: int) -> Released:
    """Give back locks that hooks took, unless the session is about to use them."""
    session = enlist(view, command.caller, now)
    if command.reminded > session.reminded:
        session = put_session(view, msgspec.structs.replace(session, reminded=command.reminded))
    if _under_way(session, now) or not command.resources:
        return Released([])
    resources = parse_resources(command.resources, command.repository, len(command.resources))
    freed: list[Resource] = []
    released: list[str] = []
    places = {resource.place for resource in resources}
    for standing in holds_of(view, session.session_id):
        named = standing.resource.place in places
        if named and standing.hold.worktree and view.get(standing.key, Hold) is not None:
            freed += end_hold(view, standing, Ending.RELEASED, now)
            released.append(standing.hold.resource)
    serve(view, freed, now)
    return Released(released)
