"""The records and events of locks and lock requests: the format on disk.

What ends a lock besides its owner depends on its profile:

    file      300 s   auto         ends when its lease expires, or when its owner is proven dead
    name      1 h     steal_only   stays until its owner releases it or somebody steals it by the rules
    project   1 h     steal_only   the same
    ticket    300 s   pid_checked  ends when its owner is proven dead or silent for two minutes, or when its
                                   lease has expired and nothing shows that the owner is alive
    file-claim  1 h   sweep        ends when its owner has completed, failed or died; after its time it ends
                                   with the next sweep, or with the next request that it blocks

A lock is `steal_only` only while somebody holds it by hand (`uses.py`): one that only a command, a hook or a
claim needs ends like `auto`. A lock with a *progress timeout* also ends after that time without progress of
its owner.
"""

from enum import StrEnum
from typing import ClassVar, NamedTuple

import msgspec

from coord.core.events import Event
from coord.core.identity import Process
from coord.core.records import Stored


class Mode(StrEnum):
    """The access a lock gives; `exclusive` is for moving and renaming."""

    READ = "read"
    WRITE = "write"
    EXCLUSIVE = "exclusive"


class Expiry(StrEnum):
    """What ends a lock besides its owner."""

    AUTO = "auto"
    STEAL_ONLY = "steal_only"
    PID_CHECKED = "pid_checked"
    SWEEP = "sweep"


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
    "file-claim": Profile(3_600_000, Expiry.SWEEP, Mode.WRITE),
}


class EndReason(StrEnum):
    """Why a lock ended."""

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
        *(EndReason.EXPIRED, EndReason.STOLEN, EndReason.PREEMPTED, EndReason.DEADLOCK),
        *(EndReason.OWNER_DEAD, EndReason.OWNER_SILENT, EndReason.PARENT_ENDED, EndReason.CLAIM_LOST),
    )
)
"""Reasons the holder did not choose: it may have left unfinished edits."""


class Lock(Stored, frozen=True, tag=1):
    """One session's lock on one resource.

    `provisional`: granted to a waiter that has not confirmed it yet.
    `fence`: the offset of the commit that granted it; 0 means "the version of this record".
    `under`: the ancestor session whose lock this one depends on.
    `worktree`: set by hooks, the worktree of the file; empty if the session asked for the lock itself.
    `exact`: the resource is a single file, so a glob overlaps it only by matching it.
    `nested`: the resource is a project that covers its areas, or an area of it.
    `uses`: why the session has it (`uses.py`); the lock ends with the last of them.
    `progress_ms`: the lock ends after this time without progress of its owner; 0 means never.
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
    preempted_by: str = ""
    preempt_ms: int = 0
    worktree: str = ""
    exact: bool = False
    nested: bool = False
    uses: tuple[str, ...] = ("",)
    progress_ms: int = 0


class LockRef(Stored, frozen=True, tag=1):
    """Index entry of a session: the key of one of its locks."""

    key: str = ""


class EndedLock(Stored, frozen=True, tag=1):
    """A lock that ended, kept to answer later who had the file when."""

    lock: Lock = Lock()
    until_ms: int = 0
    end_reason: EndReason = EndReason.RELEASED
    by: str = ""
    note: str = ""


class LostHookLock(Stored, frozen=True, tag=1):
    """A lock taken by a hook and lost: the next tool call checks who had the file since then."""

    fence: int = 0


class Guard(Stored, frozen=True, tag=1):
    """Written by every change to a lock in a space: the number of waiters and the time of the last loss.

    `changes` counts the grants and ends of locks, whose last owner was `by` (`sessions/changes.py`).
    """

    waiters: int = 0
    lost_ms: int = 0
    changes: int = 0
    by: str = ""
    others: int = 0


class WaitState(StrEnum):
    """The state of a request in the wait queue."""

    WAITING = "waiting"
    GRANTED = "granted"
    REFUSED = "refused"


class LockRequest(Stored, frozen=True, tag=1):
    """A request for locks, in the wait queue or denied.

    A waiting request lives as long as `process`, the process that waits. If other hosts cannot see that
    process, the request is `leased` and has to be renewed. `exact` lists those of `resources` that are
    single files; with `nested`, projects cover their areas. A `denied` request is kept for the deadlock
    search and is never granted.

    A request that a deadlock refused says what its session `lost`, to whom, and which `claims` ended with it.
    """

    session: str = ""
    agent: str = ""
    repository: str = ""
    resources: tuple[str, ...] = ()
    mode: Mode | None = None
    profile: str = ""
    ttl_ms: int = 0
    reason: str = ""
    priority: int = 0
    preemptible: bool = False
    since_ms: int = 0
    renewed_ms: int = 0
    until_ms: int = 0
    process: Process | None = None
    leased: bool = True
    denied: bool = False
    worktree: str = ""
    state: WaitState = WaitState.WAITING
    cycle: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    nested: bool = False
    progress_ms: int = 0
    lost: tuple[str, ...] = ()
    lost_to: str = ""
    claims: tuple[str, ...] = ()
    use: str = ""


class TaskWait(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A session that waits for a task while it holds something; the fields say which tasks it could get.

    It lives as long as `process` or its lease, as a request in the wait queue does. A wait that a deadlock
    refused says what its session lost.
    """

    session: str = ""
    agent: str = ""
    project: str = ""
    repository: str = ""
    types: tuple[str, ...] = ()
    tracks: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    has: tuple[str, ...] = ()
    cannot: tuple[str, ...] = ()
    lock_files: bool = True
    since_ms: int = 0
    renewed_ms: int = 0
    until_ms: int = 0
    process: Process | None = None
    leased: bool = True
    state: WaitState = WaitState.WAITING
    cycle: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    lost_to: str = ""
    claims: tuple[str, ...] = ()

    # What it has in common with a lock request.
    denied: ClassVar[bool] = False
    preemptible: ClassVar[bool] = False
    priority: ClassVar[int] = 0
    resources: ClassVar[tuple[str, ...]] = ()


class SessionWaits(Stored, frozen=True, tag=1):
    """What a session waits for; a deadlock search relies on this record.

    `keys` are its waiting and denied requests, `below` its sub-agents that wait, `task` its wait for a task.
    """

    keys: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    task: TaskWait | None = None


class DeadlockWarning(Stored, frozen=True, tag=1):
    """A cycle that contains denied requests, and the time its victim was notified.

    If the requests were renewed for long enough, the `locks` of the victim were asked back at `asked_ms` for
    the session `by`, and end at `until_ms` unless a request is given up before.
    """

    since_ms: int = 0
    victim: str = ""
    denied: tuple[str, ...] = ()
    asked_ms: int = 0
    until_ms: int = 0
    by: str = ""
    locks: tuple[str, ...] = ()


class LockAcquired(Event, frozen=True, tag="lock.acquired"):
    """A lock was granted; the offset of this entry is its fence."""

    resource: str
    session: str
    agent: str
    mode: str
    expires_ms: int
    reason: str = ""
    waited_ms: int = 0


class LockRenewed(Event, frozen=True, tag="lock.renewed"):
    """The lease of a lock was renewed."""

    resource: str
    session: str
    fence: int
    expires_ms: int


class LockEnded(Event, frozen=True, tag="lock.released"):
    """A lock ended: it was released, expired, stolen or preempted, or its owner is gone."""

    resource: str
    session: str
    agent: str
    fence: int
    end_reason: str
    until_ms: int
    held_s: float
    by: str = ""
    note: str = ""


class LockMoved(Event, frozen=True, tag="lock.moved"):
    """A lock went to the session that replaced its owner."""

    resource: str
    session: str
    successor: str
    agent: str = ""


class LockDenied(Event, frozen=True, tag="lock.denied"):
    """A request was denied; logged once a minute per session and resources. `use`: what it was for."""

    resources: tuple[str, ...]
    session: str
    agent: str
    holder: str
    use: str = ""


class LockWaiting(Event, frozen=True, tag="lock.waiting"):
    """A request joined the wait queue."""

    resources: tuple[str, ...]
    session: str
    agent: str
    holder: str
    priority: int
    since_ms: int = 0
    id: str = ""


class LockWithdrawn(Event, frozen=True, tag="lock.withdrawn"):
    """A request left the wait queue without a lock."""

    resources: tuple[str, ...]
    session: str
    reason: str
    id: str = ""


class WaitEnded(Event, frozen=True, tag="lock.wait_ended"):
    """A request left the wait queue: its locks were granted, or a deadlock refused them (`state`)."""

    resources: tuple[str, ...]
    session: str
    state: WaitState
    id: str = ""


class PreemptionAsked(Event, frozen=True, tag="lock.preemption_asked"):
    """A holder was asked to release its lock."""

    resource: str
    session: str
    by: str
    reason: str
    until_ms: int


class PreemptionWithdrawn(Event, frozen=True, tag="lock.preemption_withdrawn"):
    """A holder may keep a lock that was asked back: nobody asks for it any more."""

    resource: str
    session: str
    by: str


class DeadlockFound(Event, frozen=True, tag="lock.deadlock"):
    """Sessions waited for each other in a cycle.

    `resolved`: the victim's locks were revoked. `until_ms`: they were asked back, and end at that time.
    """

    cycle: tuple[str, ...]
    victim: str
    resolved: bool
    since_ms: int
    until_ms: int = 0
