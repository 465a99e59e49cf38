"""What a holder does with its locks, and what others may ask about them."""

import msgspec

from coord.core import keys
from coord.core.commands import CheckLocks, ListLocks, ReleaseLocks, RenewLocks
from coord.core.errors import Invalid, LockLost, NotFound, NotOwner
from coord.core.events import LockRenewed
from coord.core.locks.locks import (
    PROFILES,
    Ending,
    Guard,
    Hold,
    Mode,
    Standing,
    asker_of,
    end_hold,
    ended_by_death,
    ended_by_time,
    holds_meeting,
    holds_of,
    in_the_way,
    line_of,
    read_hold,
    resource_of,
    shown_lock,
    standing_at,
)
from coord.core.locks.resources import Resource, parse_resources
from coord.core.locks.wait_queue import serve
from coord.core.replies import Checked, LockShown, Released, Renewed
from coord.core.sessions.session import enlist, find_peer, find_session
from coord.core.transaction import View

RESOURCES_MAX = 256


def release_locks(view: View, command: ReleaseLocks, now: int) -> Released:
    """Give locks back, all that are named or none; those in line are served in the same commit."""
    session = enlist(view, command.caller, now)
    standings = _own(view, command, session.session_id, now)
    freed: list[Resource] = []
    for standing in standings:
        if view.get(standing.key, Hold) is not None:
            freed += end_hold(view, standing, Ending.RELEASED, now)
    serve(view, freed, now)
    return Released([standing.hold.resource for standing in standings])


def renew_locks(view: View, command: RenewLocks, now: int) -> Renewed:
    """Begin the leases anew; refused as soon as one of them is lost, or its holder was asked to give way."""
    session = enlist(view, command.caller, now)
    shown = []
    for standing in _own(view, command, session.session_id, now):
        hold = standing.hold
        if hold.preempted_by:
            raise LockLost(
                f"{hold.preempted_by} was promised {hold.resource}",
                hint="finish, give it back (coord unlock), and ask for it again",
            )
        ttl_ms = command.ttl_ms or hold.ttl_ms
        renewed = msgspec.structs.replace(hold, ttl_ms=ttl_ms, expires_ms=now + ttl_ms)
        view.put(standing.key, renewed, line_of(renewed))
        view.emit(LockRenewed(hold.resource, hold.owner, hold.fence, renewed.expires_ms))
        shown.append(shown_lock(renewed, now))
    return Renewed(shown)


def _own(view: View, command: ReleaseLocks | RenewLocks, session: str, now: int) -> list[Standing]:
    """Return the holds that are named, or all; refuse unless the session holds every one of them."""
    if not command.resources:
        return [
            Standing(standing.key, _read(view, standing.key), standing.resource)
            for standing in holds_of(view, session)
            if ended_by_time(standing.hold, now) is None
        ]
    resources = parse_resources(command.resources, command.repository, RESOURCES_MAX)
    view.want(*(resource.hold_key(session) for resource in resources))
    return [_own_one(view, resource, session, command.fence, now) for resource in resources]


def _own_one(view: View, resource: Resource, session: str, fence: int, now: int) -> Standing:
    key = resource.hold_key(session)
    hold = read_hold(view, key)
    if hold is None:
        view.get(resource.guard, Guard)  # the refusal rests on absence
        others = [
            standing.hold
            for standing in holds_meeting(view, resource)
            if standing.resource.place == resource.place and ended_by_time(standing.hold, now) is None
        ]
        if others:
            raise NotOwner(
                f"{resource.text} is held by {others[0].owner}, not by {session}",
                hint="only its owner gives it back; coord steal takes over from one that is gone",
            )
        raise NotFound(f"nobody holds {resource.text}", hint="coord locks lists what is held")
    if fence and fence != hold.fence:
        raise LockLost(
            f"{resource.text} is held under fence {hold.fence}, not {fence}", hint="it was granted anew since"
        )
    if ended_by_time(hold, now) is not None:
        raise LockLost(f"the lock on {resource.text} ran out", hint="ask for it again (coord lock)")
    return Standing(key, hold, resource)


def _read(view: View, key: str) -> Hold:
    hold = read_hold(view, key)
    assert hold is not None, f"{key} was just listed"
    return hold


def check_locks(view: View, command: CheckLocks, now: int) -> Checked:
    """Say whether the caller could have resources now, or with a fence whether it has them under it."""
    session = find_session(view, command.caller, now)
    resources = parse_resources(command.resources, command.repository, RESOURCES_MAX, command.alone)
    if command.mode and command.mode not in list(Mode):
        raise Invalid(f"{command.mode!r} is not a mode", hint="use read, write or exclusive")
    asker = asker_of(view, session)
    holders: dict[str, LockShown] = {}
    free = True
    for asked in resources:
        view.get(asked.guard, Guard)  # a free way rests on absence
        own = read_hold(view, asked.hold_key(session)) if command.fence else None
        resource = asked if own is None else resource_of(own)  # a fence is about what is held
        mode = Mode(command.mode) if command.mode else PROFILES[resource.kind].mode
        for standing in in_the_way(view, asker, resource, mode, now):
            if ended_by_death(view, standing.hold, now) is None:
                holders[standing.key] = shown_lock(_read(view, standing.key), now)
                free = False
        if command.fence:
            free = free and own is not None and own.fence == command.fence and ended_by_time(own, now) is None
    return Checked(free, list(holders.values()))


def list_locks(view: View, command: ListLocks, now: int) -> list[LockShown]:
    """Return the locks that stand now, of one session or of all."""
    if command.session or command.own:
        name = find_session(view, command.caller, now) if command.own else find_peer(view, command.session)
        standings = holds_of(view, name)
    else:
        standings = [standing_at(view, found.key) for page in view.pages(keys.LOCK_PREFIX) for found in page]
    return [
        shown_lock(_read(view, standing.key), now)
        for standing in standings
        if ended_by_time(standing.hold, now) is None
    ]
