"""Taking a lock from its holder: by the rules for one that is gone, by asking, or by force with a reason."""

import msgspec

from coord.core import keys
from coord.core.commands import PreemptLock, StealLock
from coord.core.errors import Invalid, NotFound, NotStealable, Refused
from coord.core.events import PreemptionAsked
from coord.core.identity import Life
from coord.core.lifecycle.end import declare_dead
from coord.core.locks.expiry import end_expired
from coord.core.locks.locks import (
    PROFILES,
    Ending,
    Guard,
    Hold,
    Standing,
    asker_of,
    end_hold,
    ended_by_time,
    in_the_way,
    line_of,
    read_hold,
    shown_lock,
)
from coord.core.locks.resources import Resource, parse_resources
from coord.core.locks.wait_queue import Request, blockers, grant_request, serve, would_hold
from coord.core.messages.message import tell
from coord.core.replies import LockReply, Outcome, Preempted
from coord.core.sessions.session import STALE_MS, Session, enlist, evidence_of
from coord.core.transaction import View

STEAL_AGE_MS = 600_000
"""A lock younger than this is never stolen under the strict rule (LCK-50)."""
RESOURCES_MAX = 64


def steal_lock(view: View, command: StealLock, now: int) -> LockReply:
    """End the holds in the way, if each may be stolen, and grant the locks to the thief."""
    if command.force and not command.reason:
        raise Invalid("a theft by force needs a reason", hint="--force --reason 'why'")
    thief = enlist(view, command.caller, now)
    asker = asker_of(view, thief.session_id)
    resources = parse_resources(command.resources, command.repository, RESOURCES_MAX, command.alone)
    request = Request(
        session=thief.session_id,
        agent=thief.agent,
        repository=command.repository,
        resources=tuple(resource.text for resource in resources),
        ttl_ms=command.ttl_ms,
        reason=command.reason,
        since_ms=now,
        alone=tuple(resource.text for resource in resources if resource.alone),
    )
    for resource in resources:
        view.get(resource.guard, Guard)
    in_way = {standing.key: standing for standing in blockers(view, asker, request, now)}
    if not in_way:
        raise NotFound("nobody else holds that", hint="coord lock takes it")
    notes = {key: _may_steal(view, standing, command, now) for key, standing in in_way.items()}
    freed: list[Resource] = []
    for key, standing in in_way.items():
        if view.get(key, Hold) is None:
            continue
        owner = standing.hold.owner
        freed += end_hold(view, standing, Ending.STOLEN, now, by=thief.session_id, note=notes[key])
        subject = f"{thief.session_id} took your lock on {standing.hold.resource}: {notes[key]}"
        tell(view, owner, "preempt", subject, now, {"resource": standing.hold.resource})
        if command.dead_owner:
            freed += declare_dead(view, owner, notes[key], now)
    freed += end_expired(view, (resource for resource, _ in would_hold(view, request, now)), now)
    holds = grant_request(view, request, now)
    serve(view, freed, now)  # what came free besides
    return LockReply(Outcome.GRANTED, [shown_lock(hold, now) for hold in holds], after_loss=True)


def _may_steal(view: View, standing: Standing, command: StealLock, now: int) -> str:
    """Return on what ground a hold may be stolen, or refuse saying what is missing."""
    hold = standing.hold
    if command.force:
        return f"by force: {command.reason}"
    owner = view.get(keys.session(hold.owner), Session)
    gone = owner is None or owner.ended_ms > 0
    evidence = None if owner is None or gone else evidence_of(view, owner)
    dead = evidence is not None and evidence.life is Life.DEAD
    if command.dead_owner:
        if gone or dead:
            return evidence.detail if evidence is not None else f"session {hold.owner} has ended"
        known = evidence.detail if evidence is not None else "no process known"
        raise NotStealable(
            f"the death of {hold.owner} is not proven ({known})",
            hint="wait until the strict rule allows it, or --force --reason 'why'",
        )
    silent_ms = 0 if owner is None else now - owner.beat_ms
    missing = []
    if not (gone or dead or silent_ms >= STALE_MS):
        missing.append(f"its owner was heard of {silent_ms // 1000} s ago (needs {STALE_MS // 1000})")
    if now < hold.expires_ms:
        missing.append(f"its lease lasts {(hold.expires_ms - now) // 1000} s more")
    if now < hold.acquired_ms + STEAL_AGE_MS:
        missing.append(f"it is {(now - hold.acquired_ms) // 1000} s old (needs {STEAL_AGE_MS // 1000})")
    if missing:
        raise NotStealable(
            f"{hold.resource} of {hold.owner} may not be stolen: {'; '.join(missing)}",
            hint="--dead-owner if its process has died; --force --reason 'why' otherwise",
        )
    return "its owner is stale, its lease ran out, and it is old enough"


def preempt_lock(view: View, command: PreemptLock, now: int) -> Preempted:
    """Ask holders of strictly lower priority to give way; after the time given the lock is revoked."""
    asking = enlist(view, command.caller, now)
    if not command.reason:
        raise Invalid("preemption needs a reason", hint="--reason 'why'")
    asker = asker_of(view, asking.session_id)
    asked: list[str] = []
    deadlines: list[int] = []
    for resource in parse_resources(command.resources, command.repository, RESOURCES_MAX, command.alone):
        view.get(resource.guard, Guard)
        for standing in in_the_way(view, asker, resource, PROFILES[resource.kind].mode, now):
            hold = read_hold(view, standing.key)
            assert hold is not None, f"{standing.key} was just read"
            if hold.priority >= command.priority:
                raise Refused(
                    f"{hold.resource} is held by {hold.owner} with priority {hold.priority}",
                    hint=f"only a priority above {hold.priority} may ask it to give way",
                )
            if not hold.preempted_by:
                _ask(view, standing, hold, asking, command.reason, now + command.grace_ms, now)
                asked.append(hold.owner)
            deadlines.append(hold.preempt_ms if hold.preempted_by else now + command.grace_ms)
    if not deadlines:
        raise NotFound("nobody else holds that", hint="coord lock takes it")
    return Preempted(sorted(set(asked)), max(deadlines))


def _ask(
    view: View, standing: Standing, hold: Hold, asking: Session, reason: str, until_ms: int, now: int
) -> None:
    marked = msgspec.structs.replace(hold, preempted_by=asking.session_id, preempt_ms=until_ms)
    assert ended_by_time(marked, now) is None or until_ms <= now, "it ends at the end of its grace"
    view.put(standing.key, marked, line_of(marked))
    view.emit(PreemptionAsked(hold.resource, hold.owner, asking.session_id, reason, until_ms))
    within_s = (until_ms - now) // 1000
    subject = f"{asking.session_id} needs {hold.resource} ({reason}): give it back within {within_s} s"
    tell(view, hold.owner, "preempt", subject, now, {"resource": hold.resource, "until_ms": until_ms})
