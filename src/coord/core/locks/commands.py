"""Commands about locks, and their replies: the API.

A lock that the commit being answered has granted shows fence 0 until `with_fence` puts the offset of that
commit there.
"""

from enum import StrEnum
from typing import Self

import msgspec

from coord.core.commands import Command, Reply, SessionCommand
from coord.core.identity import Caller, Process
from coord.core.locks.schema import LockRequest, TaskWait


class LockCommand(SessionCommand, frozen=True):
    """A command about resources; `repository` is where their files are."""

    repository: str
    resources: tuple[str, ...]


class NamedLocksCommand(LockCommand, frozen=True, kw_only=True):
    """A command about locks that the caller has.

    `readings` has the resources of each text that means several, as `LICENSE` means a file and a name. The
    command is about those of them that the caller has.
    """

    readings: tuple[tuple[str, ...], ...] = ()


class ResourceCommand(NamedLocksCommand, frozen=True, kw_only=True):
    """A command that requests resources; `exact` lists those that are single files."""

    exact: tuple[str, ...] = ()


class LockInfo(Reply, frozen=True):
    """A lock as its holder and others see it; a listing names the sessions that wait for it in order."""

    resource: str
    mode: str
    fence: int
    owner: str
    agent: str
    acquired_ms: int
    expires_ms: int
    expires_in_s: float
    profile: str
    reason: str
    priority: int
    scope: str
    refreshed: bool = False
    provisional: bool = False
    preempted_by: str = ""
    worktree: str = ""
    exact: bool = False
    waiters: list[str] = []
    uses: tuple[str, ...] = ("",)

    def with_fence(self, offset: int) -> Self:
        """Return the lock with its fence, if the commit at this offset granted it."""
        return self if self.fence or not offset else msgspec.structs.replace(self, fence=offset)


class WaitInfo(Reply, frozen=True):
    """A request in the wait queue; at `look_ms` a deadline may change its state."""

    wait_id: str
    position: int
    look_ms: int


class Outcome(StrEnum):
    """How a request for locks ended."""

    GRANTED = "granted"
    WAITING = "waiting"
    HELD = "held"
    DEADLOCK = "deadlock"
    WITHDRAWN = "withdrawn"
    CHANGED = "changed"
    STOPPED = "stopped"


class LockReply(Reply, frozen=True):
    """The answer to a request for locks; a denial names the holder that blocks it.

    `after_loss`: a session lost a lock there recently and may have left unfinished edits.
    After a deadlock, `lost` names the locks that went to the session `lost_to`, `claims` the tasks that ended
    with them, and `again` everything to request together.
    `stopped`: the session whose inbox has an emergency, the caller or one of its ancestors. `held_up`: who
    has stopped all agents, and why.
    """

    outcome: Outcome
    locks: list[LockInfo] = []
    holder: LockInfo | None = None
    wait: WaitInfo | None = None
    position: int = 0
    cycle: list[str] = []
    warnings: list[str] = []
    after_loss: bool = False
    lost: list[str] = []
    lost_to: str = ""
    claims: list[str] = []
    again: list[str] = []
    stopped: str = ""
    held_up: str = ""

    @property
    def ok(self) -> bool:
        """Whether the locks are held."""
        return self.outcome is Outcome.GRANTED

    def with_fence(self, offset: int) -> Self:
        """Return the reply with the fences of this commit; the holder, too, may have been granted by it."""
        holder = None if self.holder is None else self.holder.with_fence(offset)
        return msgspec.structs.replace(
            self, locks=[lock.with_fence(offset) for lock in self.locks], holder=holder
        )


class AcquireLocks(ResourceCommand, frozen=True, kw_only=True):
    """Acquire locks, all or none. With `wait_ms`, join the wait queue instead of being refused.

    `use` says what the locks are for (`uses.py`); empty means that somebody takes them by hand.
    """

    rule = "coord.core.locks.acquire:acquire_locks"
    prefetch_keys = "coord.core.locks.locks:lock_reads"
    prefetch_ranges = "coord.core.locks.locks:lock_ranges"
    reply = LockReply
    fenced = True
    mode: str = ""
    profile: str = ""
    ttl_ms: int = 0
    reason: str = ""
    priority: int = 0
    preemptible: bool = False
    wait_ms: int = 0
    wait_id: str = ""
    waiter: Process | None = None
    leased: bool = True
    worktree: str = ""
    use: str = ""
    progress_ms: int = 0

    def content(self) -> Command:
        """Return the command without what differs in another process, and the facts found on disk."""
        plain = msgspec.structs.replace(self, wait_id="", waiter=None, leased=True, exact=(), use="")
        return super(AcquireLocks, plain).content()


class ConfirmWait(SessionCommand, frozen=True):
    """Return the state of a waiting request, and confirm a hand-off."""

    rule = "coord.core.locks.acquire:confirm_wait"
    prefetch_keys = "coord.core.locks.acquire:confirm_reads"
    reply = LockReply
    fenced = True
    wait_key: str


class PeekWait(SessionCommand, frozen=True):
    """Return whether a waiting request has been decided; this changes nothing."""

    rule = "coord.core.locks.acquire:peek_wait"
    prefetch_keys = "coord.core.locks.acquire:wait_reads"
    reply = bool
    reads_only = True
    wait_key: str


class WithdrawWait(SessionCommand, frozen=True):
    """Leave the wait queue, and release a lock that was handed off before that.

    A caller that was interrupted before it read the reply passes its `wait_id` instead of the key.
    """

    rule = "coord.core.locks.acquire:withdraw_wait"
    reply = bool
    wait_key: str


class ReleaseReply(Reply, frozen=True):
    """The locks that were released, and those that a claim of the session still needs."""

    released: list[str]
    kept: list[str] = []


class ReleaseLocks(NamedLocksCommand, frozen=True):
    """Release locks, or all if none is named; a fence, if given, must be that of the lock.

    With `use`, only this use of the locks ends. Without it all end, except those of claims.
    """

    rule = "coord.core.locks.release:release_locks"
    prefetch_keys = "coord.core.locks.locks:lock_reads"
    reply = ReleaseReply
    fence: int = 0
    use: str = ""


class RenewReply(Reply, frozen=True):
    """The locks with renewed leases."""

    locks: list[LockInfo]


class RenewLocks(NamedLocksCommand, frozen=True):
    """Renew the leases of locks, or of all if none is named."""

    rule = "coord.core.locks.release:renew_locks"
    prefetch_keys = "coord.core.locks.locks:lock_reads"
    reply = RenewReply
    fence: int = 0
    ttl_ms: int = 0


class CheckReply(Reply, frozen=True):
    """Whether resources are free for a caller, and the locks that block it; `more` if some are left out."""

    free: bool
    holders: list[LockInfo]
    more: bool = False
    warnings: list[str] = []


class CheckLocks(ResourceCommand, frozen=True):
    """Return whether resources are free for the caller; with a fence, whether it holds them under it.

    The reply names at most `limit` blocking locks; 0 means all.
    """

    rule = "coord.core.locks.queries:check_locks"
    prefetch_keys = "coord.core.locks.locks:lock_reads"
    prefetch_ranges = "coord.core.locks.locks:lock_ranges"
    reply = CheckReply
    reads_only = True
    mode: str = ""
    fence: int = 0
    limit: int = 0


class ListLocks(SessionCommand, frozen=True):
    """List the locks of a session, the caller's `own`, or all."""

    rule = "coord.core.locks.queries:list_locks"
    reply = list[LockInfo]
    reads_only = True
    session: str = ""
    own: bool = False


class LockPage(Reply, frozen=True):
    """A page of locks; `after` asks for the next page, and is empty on the last one."""

    locks: list[LockInfo]
    after: str = ""


class GetLocks(SessionCommand, frozen=True):
    """Return a page of the locks of a session or of all, and the sessions that wait for each."""

    rule = "coord.core.locks.queries:get_locks"
    prefetch_ranges = "coord.core.locks.queries:page_ranges"
    reply = LockPage
    reads_only = True
    session: str = ""
    after: str = ""
    limit: int = 500


class EndClaimOfLock(Command, frozen=True):
    """End a claim that has lost one of its locks; only rules send this command."""

    rule = "coord.core.tasks.orphans:end_claim_of_lock"
    reply = None
    project: str
    task: str
    generation: int
    resource: str
    fence: int
    end_reason: str
    by: str


class LockPeriod(Reply, frozen=True):
    """From when to when a session held a lock; `until_ms` is 0 while it still does."""

    resource: str
    owner: str
    agent: str
    mode: str
    fence: int
    from_ms: int
    until_ms: int
    end_reason: str = ""
    by: str = ""
    reason: str = ""


class LockPeriods(Reply, frozen=True):
    """A page of lock periods; `after`, or `before` of ended ones, asks for the next page if there is one."""

    periods: list[LockPeriod]
    after: str = ""
    before: int = 0


class ListLockPeriods(Command, frozen=True):
    """Ask when locks were held: those on record now, or with `ended` the former ones, newest grant first.

    A lock on record whose deadline has passed is reported as ended. Former ones are those granted `before` a
    fence; a page may be a little longer than `limit`, or shorter and not the last one. Of a `space` or of
    all; with `resources` only locks that overlap them, each in its own repository.
    """

    rule = "coord.core.locks.queries:list_lock_periods"
    reply = LockPeriods
    reads_only = True
    space: str = ""
    ended: bool = False
    after: str = ""
    limit: int = 500
    before: int = 0
    resources: tuple[str, ...] = ()


class LockRequestInfo(Reply, frozen=True):
    """A request that waits for locks; a `denied` one only counts in the search for deadlocks."""

    session: str
    resources: tuple[str, ...]
    since_ms: int
    denied: bool = False


class ListLockRequests(Command, frozen=True):
    """Ask for the requests that are in a wait queue now, and for those that were denied recently."""

    rule = "coord.core.locks.queries:list_lock_requests"
    reply = list[LockRequestInfo]
    reads_only = True


class Blocker(Reply, frozen=True):
    """A session that blocks a wait, by what: `lock`, `queue` (it waits ahead), `claim` or `track`."""

    session: str
    by: str
    what: str


OTHER_TASK = "a task of another project"


class SessionWait(Reply, frozen=True):
    """A session that waits, for locks or for a task, and the sessions that block it.

    A `denied` request does not wait: its session may ask again. `cycle` names the sessions of a deadlock that
    denied requests may resolve by themselves. `parent` is the session that waits as long, too.
    """

    session: str
    agent: str
    kind: str
    wants: list[str]
    since_ms: int
    waited_s: float
    blockers: list[Blocker]
    position: int = 0
    denied: bool = False
    cycle: list[str] = []
    parent: str = ""


class ListWaits(Command, frozen=True):
    """Ask who waits for what, and behind whom: the wait-for graph.

    A session that waits for a task is listed if it or an ancestor has a lock or a claim. If the caller has a
    project, as with a token of one, tasks of other projects are not named.
    """

    rule = "coord.core.locks.cycles:list_waits"
    reply = list[SessionWait]
    reads_only = True
    caller: Caller = Caller("")


class TaskOption(Reply, frozen=True):
    """A task that a session waits for, and what blocks it.

    If `request` is set, the locks on its files do; otherwise the sessions. With `one_is_enough`, one of them
    has to finish something, otherwise all.
    """

    task: str
    sessions: tuple[str, ...] = ()
    one_is_enough: bool = False
    request: LockRequest | None = None


class FindTaskOptions(Command, frozen=True):
    """Ask which tasks a waiting session could get; none if one may become ready by itself.

    Only rules send this command.
    """

    rule = "coord.core.plans.waits:find_task_options"
    reply = list[TaskOption]
    reads_only = True
    wait: TaskWait


class StealLock(ResourceCommand, frozen=True, kw_only=True):
    """Take locks from a holder that is gone; with `force`, from any holder, and record the reason.

    With a `fence`, one of them must have it: otherwise it is no longer the lock that the caller has seen.
    With `release` the caller does not get them: they go to the sessions that wait for them. With both, only
    the locks with this fence end.
    """

    rule = "coord.core.locks.revoke:steal_lock"
    reply = LockReply
    fenced = True
    dead_owner: bool = False
    force: bool = False
    reason: str = ""
    ttl_ms: int = 0
    fence: int = 0
    release: bool = False


class PreemptReply(Reply, frozen=True):
    """The sessions that were asked to release their locks, and the deadline."""

    asked: list[str]
    until_ms: int


class PreemptLock(ResourceCommand, frozen=True, kw_only=True):
    """Ask holders of lower priority to release their locks within a time."""

    rule = "coord.core.locks.revoke:preempt_lock"
    reply = PreemptReply
    priority: int
    grace_ms: int
    reason: str


class FenceInfo(Reply, frozen=True):
    """The state of the lock of a fence: `held`, `unknown` or why it ended; and what superseded it."""

    resource: str
    fence: int
    owner: str
    end_reason: str
    superseded: bool = False
    by: str = ""
    by_fence: int = 0


class CheckFences(Command, frozen=True):
    """Return whether fences are still valid, each with its resource and the file in question."""

    rule = "coord.core.locks.queries:check_fences"
    reply = list[FenceInfo]
    reads_only = True
    repository: str
    fences: tuple[tuple[int, str, str], ...]


class LockWatch(Reply, frozen=True):
    """The state of a lock that a running command needs.

    If another session has asked for it (`asked_by`), the lock ends in `ends_in_ms`. A lock that is not `held`
    any more ended for `end_reason`; `by` names the session that has it now, if there is one.
    """

    resource: str
    fence: int
    held: bool
    asked_by: str = ""
    ends_in_ms: int = 0
    end_reason: str = ""
    by: str = ""
    note: str = ""
    waiters: tuple[str, ...] = ()


class WatchLocks(LockCommand, frozen=True):
    """Return whether locks still have this use, and why not; with `waiters`, also who waits for them.

    `fences` are the last known fences of the locks: they name the record of a lock that has ended.
    """

    rule = "coord.core.locks.queries:watch_locks"
    prefetch_keys = "coord.core.locks.queries:watch_reads"
    reply = list[LockWatch]
    reads_only = True
    fences: tuple[int, ...] = ()
    use: str = ""
    waiters: bool = False


class BeginToolCall(ResourceCommand, frozen=True, kw_only=True):
    """Lock the files that a tool call writes, or refuse; the locks of its session are extended.

    `lease_ms` is the longest time the call may take; `worktree` is the worktree of its files. An emergency
    in the inbox of the session stops the call, and so does a person who stops all agents, unless it is
    `despite_emergency`.
    """

    rule = "coord.core.locks.tool_calls:begin_tool_call"
    prefetch_keys = "coord.core.locks.tool_calls:begin_reads"
    prefetch_ranges = "coord.core.locks.tool_calls:begin_ranges"
    reply = LockReply
    fenced = True
    call: str
    lease_ms: int
    worktree: str = ""
    reason: str = ""
    despite_emergency: bool = False


class EndToolCallReply(Reply, frozen=True):
    """The locks of a session after a call, its running calls, and the last lock it was reminded of.

    `emergencies` counts those in its inbox, `questions` those that it asked and nobody has answered. `news`:
    others have changed something, and this call has to brief its session (`tool_calls.py`), which got
    `briefed` before. `reads_logged`: the files that the command reported as read need no further report.
    """

    locks: list[LockInfo]
    under_way: int = 0
    reminded: int = 0
    emergencies: int = 0
    news: bool = False
    briefed: str = ""
    briefed_offset: int = 0
    epoch: int = 0
    questions: int = 0
    reads_logged: bool = False


class EndToolCall(SessionCommand, frozen=True):
    """Record the end of a tool call, or of all calls; the locks of the session are extended.

    With `news_every_ms` the reply says whether there is news for the session, at most once in that time;
    `repository` is the id of the repository whose locks count.
    `at_prompt`: the user is at the prompt of the tool, so no dialog of a call is open.
    `edited`: the files that the call changed, for the ledger. `read`: those that the session read. They are
    logged only if the command writes anything else, or ends all calls: see `reads_logged` in the reply.
    """

    rule = "coord.core.locks.tool_calls:end_tool_call"
    prefetch_keys = "coord.core.locks.tool_calls:end_reads"
    prefetch_ranges = "coord.core.locks.tool_calls:held_ranges"
    reply = EndToolCallReply
    call: str = ""
    repository: str = ""
    news_every_ms: int = 0
    at_prompt: bool = False
    edited: tuple[str, ...] = ()
    read: tuple[str, ...] = ()


class ReleaseHookLocks(LockCommand, frozen=True):
    """Release locks that hooks took for calls; none while a call of the session is running.

    `reminded` is the fence of the newest lock that the session was reminded of.
    """

    rule = "coord.core.locks.tool_calls:release_hook_locks"
    prefetch_keys = "coord.core.locks.locks:lock_reads"
    reply = ReleaseReply
    reminded: int = 0
