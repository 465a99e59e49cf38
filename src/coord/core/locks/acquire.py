"""Taking locks: at once, or in line, or not; and what a request in line can still do.

A request first clears its way: holds whose deadline passed are ended, and those of owners proven dead; what
came free goes to those in line. Then it is granted, or gets in line, or leaves a bid and is refused.
"""

import msgspec

from coord.core import keys
from coord.core.commands import AcquireLocks, ConfirmWait, PeekWait, WithdrawWait
from coord.core.errors import Invalid, LimitReached
from coord.core.events import LockDenied, LockWaiting
from coord.core.locks.expiry import end_by_time
from coord.core.locks.locks import (
    PROFILES,
    Asker,
    Ending,
    Hold,
    Mode,
    Standing,
    after_loss,
    asker_of,
    compatible,
    end_hold,
    ended_by_death,
    ended_by_time,
    holds_meeting,
    line_of,
    read_hold,
    shown_lock,
)
from coord.core.locks.resources import Resource, parse_resources
from coord.core.locks.wait_queue import (
    GONE,
    Request,
    Waiting,
    Waits,
    WaitState,
    alive,
    blockers,
    competes,
    drop_request,
    foresee_alive,
    grant_request,
    in_line,
    put_request,
    rank_of,
    resources_of,
    serve,
    widens,
    would_hold,
)
from coord.core.messages.message import tell
from coord.core.replies import LockReply, LockShown, Outcome, WaitShown
from coord.core.sessions.session import caller_reads, enlist, find_session
from coord.core.transaction import View

RESOURCES_MAX = 64
WAITS_MAX = 64
"""What a session may wait and bid for at once: each of these is looked at by every deadlock search."""
BID_QUIET_MS = 5_000
RENEW_QUIET_MS = 4_000
LOOK_MS = 2_000
"""How often a request in line looks whether a holder has died, if nothing else happens."""


def acquire_locks(view: View, command: AcquireLocks, now: int) -> LockReply:
    """Grant all that is asked for, or none of it."""
    session = enlist(view, command.caller, now)
    if command.profile and command.profile not in PROFILES:
        raise Invalid(f"there is no profile {command.profile!r}", hint=f"use one of {', '.join(PROFILES)}")
    resources = parse_resources(command.resources, command.repository, RESOURCES_MAX, command.alone)
    request = Request(
        session=session.session_id,
        agent=session.agent,
        repository=command.repository,
        resources=tuple(resource.text for resource in resources),
        mode=_mode(command.mode),
        profile=command.profile,
        ttl_ms=command.ttl_ms,
        reason=command.reason,
        priority=command.priority,
        preemptible=command.preemptible,
        since_ms=now,
        renewed_ms=now,
        until_ms=now + command.wait_ms,
        process=command.waiter,
        leased=command.leased,
        bid=not command.wait_ms,
        worktree=command.worktree,
        alone=tuple(resource.text for resource in resources if resource.alone),
    )
    return _attempt(view, request, command.wait_id, now)


def _mode(text: str) -> Mode | None:
    if text and text not in list(Mode):
        raise Invalid(f"{text!r} is not a mode", hint="use read, write or exclusive")
    return Mode(text) if text else None


def _attempt(view: View, request: Request, wait_id: str, now: int) -> LockReply:
    foresee_locks(view, [request], keys.waits(request.session))
    asker = asker_of(view, request.session)
    clear_way(view, asker, request, now)
    in_way = blockers(view, asker, request, now)
    # Where it would stand in line; who does not wait would be the last of its rank.
    key = keys.wait(rank_of(request) + 1, "") if request.bid else keys.wait(rank_of(request), wait_id)
    ahead = [] if _extends(view, request, now) else _ahead(view, key, request)
    if not in_way and not ahead:
        return _granted(view, request, now)
    if request.bid:
        return _refuse(view, request, in_way, len(ahead) + 1, now)
    return _wait(view, key, request, now)


def foresee_locks(view: View, requests: list[Request], *others: str) -> None:
    """Ask at once for what requests look at: resource by resource, a rule would begin anew for each."""
    wanted = [(request.session, resource) for request in requests for resource in resources_of(request)]
    view.want(
        *sorted({resource.guard for _, resource in wanted}),
        *(resource.hold_key(session) for session, resource in wanted),
        *others,
    )
    view.want(prefixes=dict.fromkeys(prefix for _, resource in wanted for prefix in resource.ranges))


def clear_way(view: View, asker: Asker, request: Request, now: int) -> None:
    """End the holds in the way that time or death has ended, pass over who is gone, serve those in line."""
    freed: list[Resource] = []
    for resource, mode in would_hold(view, request, now):
        for standing in list(holds_meeting(view, resource)):
            if view.get(standing.key, Hold) is None:
                continue  # ended together with another one
            if ended_by_time(standing.hold, now) is not None:
                freed += end_by_time(view, standing, now)
            elif standing.hold.owner != asker.session and not compatible(mode, standing.hold.mode):
                freed += end_if_owner_gone(view, standing, now)
    rivals = [each for each in in_line(view, resources_of(request)) if competes(request, each.request)]
    foresee_alive(view, [waiting.request for waiting in rivals])
    for waiting in rivals:
        if not alive(view, waiting.request, now):
            drop_request(view, waiting, GONE)
            freed += resources_of(waiting.request)
    if freed:
        serve(view, freed, now)


def end_if_owner_gone(view: View, standing: Standing, now: int) -> list[Resource]:
    """End a hold whose owner is dead or silent, where its profile says so; return what came free."""
    gone = ended_by_death(view, standing.hold, now)
    if gone is None:
        return []
    ending, evidence = gone
    if ending is Ending.OWNER_DEAD:
        from coord.core.lifecycle.end import declare_dead  # it brings the rules of tasks along

        return declare_dead(view, standing.hold.owner, evidence, now)
    return end_hold(view, standing, ending, now, note=evidence)


def _extends(view: View, request: Request, now: int) -> bool:
    """Whether all that is asked for is held already: a holder goes ahead of those in line."""
    for resource in resources_of(request):
        hold = view.get(resource.hold_key(request.session), Hold)
        if hold is None or ended_by_time(hold, now) is not None or widens(hold, resource):
            return False
    return True


def _ahead(view: View, key: str, request: Request) -> list[Request]:
    """Return those in line whose turn is before this one's and who stand in its way."""
    return [
        other
        for other_key, other in in_line(view, resources_of(request))
        if other_key < key and competes(request, other)
    ]


def _granted(view: View, request: Request, now: int) -> LockReply:
    waits = view.get(keys.waits(request.session), Waits)
    for key in waits.keys if waits is not None else ():
        bid = view.get(key, Request)
        if bid is not None and bid.bid and set(bid.resources) <= set(request.resources):
            drop_request(view, Waiting(key, bid), "granted")
    before = {
        resource.text: view.get(resource.hold_key(request.session), Hold)
        for resource in resources_of(request)
    }
    holds = grant_request(view, request, now)
    locks = [shown_lock(hold, now, refreshed=bool(before[hold.resource] and hold.fence)) for hold in holds]
    return LockReply(Outcome.GRANTED, locks, after_loss=after_loss(view, resources_of(request), now))


def _refuse(view: View, request: Request, in_way: list[Standing], place: int, now: int) -> LockReply:
    """Refuse a request that does not wait; its bid stays for a while, unless there are many already."""
    key = keys.bid(request.session, "\n".join(request.resources))
    before = view.get(key, Request)
    if before is not None:
        request = msgspec.structs.replace(request, since_ms=before.since_ms)
    holder = _first_shown(view, in_way, now)
    waits = view.get(keys.waits(request.session), Waits)
    if before is None and waits is not None and len(waits.keys) >= WAITS_MAX:
        return LockReply(Outcome.HELD, holder=holder, place=place)
    if before is None or now - before.renewed_ms >= BID_QUIET_MS or before.alone != request.alone:
        put_request(view, key, request)
    if before is None:
        for owner in sorted({standing.hold.owner for standing in in_way}):
            subject = f"{request.agent or request.session} wants {', '.join(request.resources)}"
            blob = {
                "session_id": request.session,
                "resources": list(request.resources),
                "reason": request.reason,
            }
            tell(view, owner, "request", subject, now, blob)
        view.emit(
            LockDenied(request.resources, request.session, request.agent, holder.owner if holder else "")
        )
    cycle = _break_deadlocks(view, Waiting(key, request), now)
    if cycle:  # broken in favour of this very request, perhaps: nobody may slip in
        in_way = blockers(view, asker_of(view, request.session), request, now)
        if not in_way and not _ahead(view, keys.wait(rank_of(request) + 1, ""), request):
            return _granted(view, request, now)
        holder = _first_shown(view, in_way, now)
    return LockReply(Outcome.HELD, holder=holder, place=place, cycle=list(cycle))


def _first_shown(view: View, standings: list[Standing], now: int) -> LockShown | None:
    """Return the hold that stays longest in the way, as a denial names it."""
    if not standings:
        return None
    longest = max(standings, key=lambda standing: (standing.hold.expires_ms, standing.key))
    hold = read_hold(view, longest.key)
    return shown_lock(longest.hold if hold is None else hold, now)


def _wait(view: View, key: str, request: Request, now: int) -> LockReply:
    """Get in line, unless that closes a circle whose victim is this very request."""
    waits = view.get(keys.waits(request.session), Waits)
    if waits is not None and len(waits.keys) >= WAITS_MAX:
        raise LimitReached(
            f"{request.session} waits for {len(waits.keys)} things already",
            hint="ask for them in one request",
        )
    put_request(view, key, request)
    asker = asker_of(view, request.session)
    in_way = blockers(view, asker, request, now)
    holder = in_way[0].hold.owner if in_way else ""
    view.emit(LockWaiting(request.resources, request.session, request.agent, holder, request.priority))
    _break_deadlocks(view, Waiting(key, request), now)
    return _state(view, key, now)


def _break_deadlocks(view: View, waiting: Waiting, now: int) -> tuple[str, ...]:
    from coord.core.locks.deadlock import break_deadlocks  # most requests are granted, and need none of it

    return break_deadlocks(view, waiting, now)


def _state(view: View, key: str, now: int) -> LockReply:
    """Return what became of a request in line; a hand-off is taken over."""
    request = view.get(key, Request)
    if request is None:
        return LockReply(Outcome.WITHDRAWN)
    if request.state is WaitState.REFUSED:
        view.delete(key)
        return LockReply(Outcome.DEADLOCK, cycle=list(request.cycle))
    if request.state is WaitState.GRANTED:
        return _take_over(view, key, request, now)
    asker = asker_of(view, request.session)
    in_way = blockers(view, asker, request, now)
    place = len(_ahead(view, key, request)) + 1
    deadlines = [_deadline(standing.hold) for standing in in_way]
    look_ms = min([*(at for at in deadlines if at > now), now + LOOK_MS])
    holder = _first_shown(view, in_way, now)
    return LockReply(Outcome.WAITING, holder=holder, wait=WaitShown(key, place, look_ms), place=place)


def _deadline(hold: Hold) -> int:
    """Return when a hold may end by itself."""
    return min(hold.expires_ms, hold.preempt_ms) if hold.preempted_by else hold.expires_ms


def _take_over(view: View, key: str, request: Request, now: int) -> LockReply:
    """Confirm a hand-off, unless it has lapsed: then it is back where it was, if it has time left."""
    holds: list[tuple[Resource, Hold]] = []
    for resource in resources_of(request):
        hold = read_hold(view, resource.hold_key(request.session))
        if hold is None or ended_by_time(hold, now) is not None:
            view.delete(key)
            if now >= request.until_ms:
                return LockReply(Outcome.WITHDRAWN)
            again = msgspec.structs.replace(request, state=WaitState.WAITING, renewed_ms=now)
            return _attempt(view, again, key.rpartition("/")[2], now)
        holds.append((resource, hold))
    view.delete(key)
    locks = []
    for resource, hold in holds:
        confirmed = msgspec.structs.replace(hold, provisional=False, expires_ms=now + hold.ttl_ms)
        view.put(resource.hold_key(confirmed.owner), confirmed, line_of(confirmed))
        locks.append(shown_lock(confirmed, now))
    return LockReply(Outcome.GRANTED, locks, after_loss=after_loss(view, resources_of(request), now))


def wait_reads(command: ConfirmWait | PeekWait) -> list[str]:
    """Return what a look at a request in line reads, so that a look is one read of the store."""
    return [*caller_reads(command), command.wait_key]


def confirm_wait(view: View, command: ConfirmWait, now: int) -> LockReply:
    """Look after a request in line: keep it alive, see whether holders are gone, take over a hand-off."""
    session = enlist(view, command.caller, now)
    request = _own_request(view, command.wait_key, session.session_id)
    if request is None:
        return LockReply(Outcome.WITHDRAWN)
    if request.state is WaitState.WAITING:
        if request.leased and now - request.renewed_ms >= RENEW_QUIET_MS:
            request = msgspec.structs.replace(request, renewed_ms=now)
            put_request(view, command.wait_key, request)
        asker = asker_of(view, request.session)
        clear_way(view, asker, request, now)
        if not blockers(view, asker, request, now) and not _ahead(view, command.wait_key, request):
            serve(view, resources_of(request), now)  # it was passed over: too many came free at once
    return _state(view, command.wait_key, now)


def peek_wait(view: View, command: PeekWait, now: int) -> bool:
    """Whether a request in line has been decided."""
    request = _own_request(view, command.wait_key, find_session(view, command.caller, now))
    return request is None or request.state is not WaitState.WAITING


def withdraw_wait(view: View, command: WithdrawWait, now: int) -> bool:
    """Leave the line; those behind may go on."""
    session = find_session(view, command.caller, now)
    key = command.wait_key
    if not key.startswith(keys.WAIT_PREFIX):  # its answer was never read, so only the id is known
        waits = view.get(keys.waits(session), Waits)
        key = next((each for each in waits.keys if each.endswith(f"/{key}")), "") if waits is not None else ""
    request = _own_request(view, key, session) if key else None
    if request is None:
        return False
    freed = resources_of(request)
    drop_request(view, Waiting(key, request), "withdrawn")
    if request.state is WaitState.GRANTED:
        for resource in resources_of(request):
            hold_key = resource.hold_key(request.session)
            hold = view.get(hold_key, Hold)
            if hold is not None and hold.provisional:
                freed += end_hold(view, Standing(hold_key, hold, resource), Ending.LAPSED, now)
    serve(view, freed, now)
    return True


def _own_request(view: View, key: str, session: str) -> Request | None:
    if not key.startswith(keys.WAIT_PREFIX):
        raise Invalid(f"{key!r} is not a place in line", hint="use the one that the request was given")
    request = view.get(key, Request)
    return request if request is not None and request.session == session else None
