"""Locks: who holds what, what stands in whose way, and how a hold begins and ends.

A hold is one record per resource and session. Its *fence* is the offset of the commit that granted it: any
later grant of anything that overlaps has a larger one, so a holder that was away proves nothing any more.
A record that was granted and not rewritten since has fence 0, which means "my version".

Two holds exclude each other if their resources meet, unless both only read, or one belongs to an ancestor
of the other's session: a sub-agent works under its parent's lock, with a grant of its own that ends with it.

What ends a hold besides its owner depends on its profile:

    file      300 s   auto         ended when the lease runs out, or the owner is proven dead
    name      1 h     steal_only   stays until the owner gives it back or somebody may steal it
    ticket    300 s   pid_checked  ended when the owner is proven dead or silent for two minutes; past its
                                   lease as soon as nothing says that the owner is alive

Deadlines act when they pass: every rule looks at a hold through `standing`, whether or not a sweep has
written its end down. The guard of a space is put by whatever grants, queues, releases or revokes there, and
expected by every refusal, so that a decision resting on absence is safe (phantoms).
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

import msgspec

from coord.core import keys
from coord.core.commands import LockCommand
from coord.core.events import LockAcquired, LockEnded, LockRenewed
from coord.core.identity import Life
from coord.core.locks.resources import Resource, foreseen, parse_resource
from coord.core.ranges import Range
from coord.core.records import Stored
from coord.core.replies import LockShown
from coord.core.sessions.session import SUSPECT_MS, Session, ancestors, caller_reads, evidence_of
from coord.core.transaction import PAGE, View

GRANT_KEPT_MS = 90 * 24 * 3600 * 1000
LAPSED_KEPT_MS = 24 * 3600 * 1000


class Mode(StrEnum):
    """What a holder does with it; `exclusive` is for moving and renaming."""

    READ = "read"
    WRITE = "write"
    EXCLUSIVE = "exclusive"


class Expiry(StrEnum):
    """What ends a hold besides its owner."""

    AUTO = "auto"
    STEAL_ONLY = "steal_only"
    PID_CHECKED = "pid_checked"


class Profile(NamedTuple):
    """Defaults for a kind of lock."""

    ttl_ms: int
    expiry: Expiry
    mode: Mode


PROFILES = {
    "file": Profile(300_000, Expiry.AUTO, Mode.WRITE),
    "name": Profile(3_600_000, Expiry.STEAL_ONLY, Mode.EXCLUSIVE),
    "project": Profile(3_600_000, Expiry.STEAL_ONLY, Mode.EXCLUSIVE),
    "ticket": Profile(300_000, Expiry.PID_CHECKED, Mode.WRITE),
}


class Ending(StrEnum):
    """How a hold ended."""

    RELEASED = "released"
    EXPIRED = "expired"
    LAPSED = "lapsed"
    STOLEN = "stolen"
    PREEMPTED = "preempted"
    DEADLOCK = "deadlock"
    OWNER_DEAD = "owner_dead"
    OWNER_SILENT = "owner_silent"
    SESSION_ENDED = "session_ended"
    PARENT_ENDED = "parent_ended"
    CLAIM_LOST = "claim_lost"


LOST = frozenset(
    (
        *(Ending.EXPIRED, Ending.STOLEN, Ending.PREEMPTED, Ending.DEADLOCK),
        *(Ending.OWNER_DEAD, Ending.OWNER_SILENT, Ending.PARENT_ENDED, Ending.CLAIM_LOST),
    )
)
"""Endings that its holder did not choose: half-done edits may be left of it."""
LOSS_KEPT_MS = 24 * 3600 * 1000
"""So long whoever gets a lock looks for what is left of those who lost theirs."""


class Hold(Stored, frozen=True, tag=1):
    """One session's hold on one resource; `provisional` until a waiter that was handed it confirms.

    `worktree`: where the file is that a hook locked it for; empty where the session asked for it itself.
    `alone`: on a single file, which globs meet only by matching it.
    """

    resource: str = ""
    repository: str = ""
    owner: str = ""
    agent: str = ""
    mode: Mode = Mode.WRITE
    profile: str = "file"
    acquired_ms: int = 0
    ttl_ms: int = 0
    expires_ms: int = 0
    fence: int = 0
    reason: str = ""
    priority: int = 0
    preemptible: bool = False
    provisional: bool = False
    under: str = ""
    task: str = ""
    preempted_by: str = ""
    preempt_ms: int = 0
    worktree: str = ""
    alone: bool = False


class Held(Stored, frozen=True, tag=1):
    """Index: the key of a hold."""

    key: str = ""


class Grant(Stored, frozen=True, tag=1):
    """A hold that ended, for whoever has to know later who had the file when."""

    hold: Hold = Hold()
    until_ms: int = 0
    ending: Ending = Ending.RELEASED
    by: str = ""
    note: str = ""


class Lapsed(Stored, frozen=True, tag=1):
    """A hook's lock that its session lost: who had the file since is looked for before it is taken again."""

    fence: int = 0


class Guard(Stored, frozen=True, tag=1):
    """What every change of locks in a space puts: how many requests wait there, when a lock was last lost."""

    waiters: int = 0
    lost_ms: int = 0


class Standing(NamedTuple):
    """A hold where it stands."""

    key: str
    hold: Hold
    resource: Resource


def lock_reads(command: LockCommand) -> list[str]:
    """Return what a command about locks is going to read by key."""
    reads, session = caller_reads(command), command.caller.session
    for resource in foreseen(command.resources, command.repository):
        hold_key = resource.hold_key(session)
        reads += resource.guard, hold_key
        if not command.reads_only:  # the index is only written; its name takes a digest
            reads.append(keys.held(session, hold_key))
    return [*reads, keys.waits(session)]


def lock_ranges(command: LockCommand) -> list[Range]:
    """Return where holds stand that may be in the way of a command."""
    resources = foreseen(command.resources, command.repository)
    return [Range(prefix, "key", PAGE) for resource in resources for prefix in resource.ranges]


def resource_of(hold: Hold) -> Resource:
    """Return what a hold is on."""
    return parse_resource(hold.resource, hold.repository, hold.alone)[0]


def read_hold(view: View, key: str) -> Hold | None:
    """Return a hold with its fence."""
    hold = view.get(key, Hold)
    if hold is None or hold.fence:
        return hold
    return msgspec.structs.replace(hold, fence=view.version(key))


def holds_meeting(view: View, resource: Resource) -> Iterator[Standing]:
    """Go through all holds on what meets a resource, ended ones included."""
    view.want(prefixes=resource.ranges)
    for prefix in resource.ranges:
        for page in view.pages(prefix):
            for found in page:
                standing = standing_at(view, found.key)
                if resource.meets(standing.resource):
                    yield standing


def standing_at(view: View, key: str) -> Standing:
    """Return the hold that a scan has just met."""
    hold = view.get(key, Hold)
    assert hold is not None, f"{key} was just scanned"
    return Standing(key, hold, resource_of(hold))


def ended_by_time(hold: Hold, now: int) -> Ending | None:
    """Return how a deadline that passed has ended a hold, or None."""
    if hold.preempted_by and now >= hold.preempt_ms:
        return Ending.PREEMPTED
    if now < hold.expires_ms:
        return None
    if hold.provisional:
        return Ending.LAPSED
    return Ending.EXPIRED if PROFILES[hold.profile].expiry is Expiry.AUTO else None


def end_ms(hold: Hold, ending: Ending, now: int) -> int:
    """Return when a hold ended: a deadline ends it at that moment, not when somebody noticed."""
    if ending is Ending.PREEMPTED:
        return min(now, hold.preempt_ms)
    return min(now, hold.expires_ms) if ending in (Ending.EXPIRED, Ending.LAPSED) else now


def ended_by_death(view: View, hold: Hold, now: int) -> tuple[Ending, str] | None:
    """Return how the owner's death or silence has ended a hold, with the evidence, or None."""
    expiry = PROFILES[hold.profile].expiry
    if expiry is Expiry.STEAL_ONLY:
        return None
    owner = view.get(keys.session(hold.owner), Session)
    if owner is None or owner.ended_ms:
        return Ending.SESSION_ENDED, f"session {hold.owner} has ended"
    evidence = evidence_of(view, owner)
    if evidence is not None and evidence.life is Life.DEAD:
        return Ending.OWNER_DEAD, evidence.detail
    known_alive = evidence is not None and evidence.life is Life.ALIVE
    if expiry is Expiry.PID_CHECKED and now - owner.beat_ms >= SUSPECT_MS:
        ending = Ending.OWNER_SILENT if known_alive else Ending.OWNER_DEAD
        return ending, f"no heartbeat for {(now - owner.beat_ms) // 1000} s"
    if expiry is Expiry.PID_CHECKED and now >= hold.expires_ms and not known_alive:
        return Ending.EXPIRED, "past its lease, and nothing says that the owner is alive"
    return None


def compatible(one: Mode, other: Mode) -> bool:
    """Whether two holds with these modes may meet."""
    return one is Mode.READ and other is Mode.READ


class Asker(NamedTuple):
    """Who wants a lock: its session and those above it."""

    session: str
    above: tuple[str, ...]


def asker_of(view: View, session: str) -> Asker:
    """Return the session with its ancestors."""
    return Asker(session, tuple(ancestors(view, session)))


def in_the_way(view: View, asker: Asker, resource: Resource, mode: Mode, now: int) -> list[Standing]:
    """Return the holds of others that exclude this one now; nothing is ended here."""
    return [
        standing
        for standing in holds_meeting(view, resource)
        if standing.hold.owner != asker.session
        and standing.hold.owner not in asker.above
        and not compatible(mode, standing.hold.mode)
        and ended_by_time(standing.hold, now) is None
    ]


def grant(view: View, resource: Resource, hold: Hold, *, refreshed: bool = False, waited_ms: int = 0) -> Hold:
    """Write a hold and tell of it; one that is only refreshed stays where it stands."""
    key = resource.hold_key(hold.owner)
    view.put(key, hold, line_of(hold))
    if refreshed:
        view.emit(LockRenewed(hold.resource, hold.owner, hold.fence, hold.expires_ms))
        return hold
    view.put(keys.held(hold.owner, key), Held(key=key))
    touch_guard(view, resource)
    names = (hold.resource, hold.owner, hold.agent, hold.mode.value)
    view.emit(LockAcquired(*names, hold.expires_ms, hold.reason, waited_ms))
    return hold


def line_of(hold: Hold) -> str:
    """Return the line of a hold: the next moment at which its end has to be looked at."""
    deadlines = [hold.preempt_ms] if hold.preempted_by else []
    if hold.provisional or PROFILES[hold.profile].expiry is not Expiry.STEAL_ONLY:
        deadlines.append(hold.expires_ms)
    return keys.due(min(deadlines)) if deadlines else ""


def end_hold(
    view: View, standing: Standing, ending: Ending, now: int, *, by: str = "", note: str = ""
) -> list[Resource]:
    """End a hold, and those that its owner's sub-agents had under it; return what came free."""
    hold = read_hold(view, standing.key)
    assert hold is not None, f"{standing.key} ends twice"
    ending = ended_by_time(hold, now) or ending  # a deadline that passed has ended it before
    until_ms = end_ms(hold, ending, now)
    view.delete(standing.key)
    view.delete(keys.held(hold.owner, standing.key))
    touch_guard(view, standing.resource, lost_ms=until_ms if ending in LOST else 0)
    tell_end(view, standing.key, Grant(hold=hold, until_ms=until_ms, ending=ending, by=by, note=note), now)
    if hold.worktree and ending in LOST:
        view.put(
            keys.lapsed(hold.owner, standing.key), Lapsed(fence=hold.fence), keys.due(now + LAPSED_KEPT_MS)
        )
    freed = [standing.resource]
    owner = view.get(keys.session(hold.owner), Session)
    if owner is None or owner.children:
        for child in list(holds_meeting(view, standing.resource)):
            if child.hold.under == hold.owner and not _lent_on(view, child, now):
                freed += end_hold(view, child, Ending.PARENT_ENDED, until_ms, by=by)
    return freed


def tell_end(view: View, key: str, ended: Grant, now: int) -> None:
    """Write down and tell that a fence proves nothing new from now on."""
    hold = ended.hold
    view.put(keys.grant(resource_of(hold).space, hold.fence, key), ended, keys.due(now + GRANT_KEPT_MS))
    held_s = (ended.until_ms - hold.acquired_ms) / 1000
    names = (hold.resource, hold.owner, hold.agent, hold.fence, ended.ending.value)
    view.emit(LockEnded(*names, ended.until_ms, held_s, ended.by, ended.note))


def _lent_on(view: View, child: Standing, now: int) -> bool:
    """Whether a sub-agent's hold stands under another lock of the same ancestor."""
    return any(
        standing.hold.owner == child.hold.under and ended_by_time(standing.hold, now) is None
        for standing in holds_meeting(view, child.resource)
    )


def touch_guard(view: View, resource: Resource, waiters: int = 0, lost_ms: int = 0) -> None:
    """Put the guard of a space, counting requests that come to wait there or leave."""
    guard = view.get(resource.guard, Guard) or Guard()
    lost_ms = max(guard.lost_ms, lost_ms)
    changed = msgspec.structs.replace(guard, waiters=guard.waiters + waiters, lost_ms=lost_ms)
    view.put_late(resource.guard, changed)


def after_loss(view: View, resources: Iterable[Resource], now: int) -> bool:
    """Whether a lock where these are was lost not long ago, so that edits may be left."""
    guards = [view.get(key, Guard) for key in sorted({resource.guard for resource in resources})]
    return any(guard is not None and now - guard.lost_ms < LOSS_KEPT_MS for guard in guards)


def holds_of(view: View, session: str) -> list[Standing]:
    """Return all holds of a session."""
    found = []
    for page in view.pages(keys.held_prefix(session)):
        indexes = [index for entry in page if (index := view.get(entry.key, Held)) is not None]
        view.want(*(index.key for index in indexes))  # together: one by one, each would begin this anew
        for index in indexes:
            hold = view.get(index.key, Hold)
            if hold is not None:
                found.append(Standing(index.key, hold, resource_of(hold)))
    return found


def shown_lock(hold: Hold, now: int, *, refreshed: bool = False) -> LockShown:
    """Return a hold as its owner and others see it."""
    ends = min(hold.expires_ms, hold.preempt_ms) if hold.preempted_by else hold.expires_ms
    return LockShown(
        hold.resource,
        hold.mode.value,
        hold.fence,
        hold.owner,
        hold.agent,
        hold.acquired_ms,
        hold.expires_ms,
        max(0, ends - now) / 1000,
        hold.profile,
        hold.reason,
        hold.priority,
        hold.resource.partition(":")[0],
        refreshed,
        hold.provisional,
        hold.preempted_by,
        hold.worktree,
        hold.alone,
    )
