"""What callers get back about sessions, locks and messages.

Moments are milliseconds (`…_ms`), durations seconds (`…_s`). A grant made by the very commit that is being
answered has fence 0 until `settled` puts the offset of that commit there.
"""

from enum import StrEnum
from typing import Any, Self

import msgspec

from coord.core.tasks.types import ClaimResult, TaskClaim


class Reply(msgspec.Struct, frozen=True, gc=False):
    """The base of every reply."""


class Liveness(StrEnum):
    """How alive a session seems: graded by the age of its heartbeat, or dead where that is proven."""

    LIVE = "live"
    SUSPECT = "suspect"
    STALE = "stale"
    HUNG = "hung"
    DEAD = "dead"
    ENDED = "ended"


class SessionInfo(Reply, frozen=True):
    """A session as others see it."""

    session_id: str
    liveness: Liveness
    state: str
    agent: str
    role: str
    project: str
    parent: str
    user: str
    host: str
    pid: int
    cwd: str
    bin: str
    version: str
    started_ms: int
    last_heartbeat_ms: int
    current_task: dict[str, Any]
    owned_resources: dict[str, Any]
    blob: dict[str, Any]
    capabilities: dict[str, float] = {}


class RegisterReply(Reply, frozen=True):
    """A session after it registered, and the peers it has."""

    session: SessionInfo
    peers: list[SessionInfo]
    new: bool = True
    moved_locks: int = 0
    moved_claims: int = 0


class HeartbeatReply(Reply, frozen=True):
    """The answer to a heartbeat."""

    session_id: str
    last_heartbeat_ms: int
    written: bool


class DeregisterReply(Reply, frozen=True):
    """What a session gave back when it ended."""

    session_id: str
    released: list[str]


class LockInfo(Reply, frozen=True):
    """A lock as its holder and others see it."""

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

    def settled(self, offset: int) -> Self:
        """Return the lock with its fence, where the commit at this offset granted it."""
        return self if self.fence or not offset else msgspec.structs.replace(self, fence=offset)


class WaitInfo(Reply, frozen=True):
    """A request that waits in line; `look_ms` is when something may change by itself."""

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


class LockReply(Reply, frozen=True):
    """The answer to a request for locks; denials say who is in the way and what to do.

    `after_loss`: somebody lost a lock there not long ago, and edits may be left of it.
    """

    outcome: Outcome
    locks: list[LockInfo] = []
    holder: LockInfo | None = None
    wait: WaitInfo | None = None
    position: int = 0
    cycle: list[str] = []
    warnings: list[str] = []
    after_loss: bool = False

    @property
    def ok(self) -> bool:
        """Whether the locks are held."""
        return self.outcome is Outcome.GRANTED

    def settled(self, offset: int) -> Self:
        """Return the reply with the fences of this commit; the holder, too, may have been granted by it."""
        holder = None if self.holder is None else self.holder.settled(offset)
        return msgspec.structs.replace(
            self, locks=[lock.settled(offset) for lock in self.locks], holder=holder
        )


class ReleaseReply(Reply, frozen=True):
    """The locks that were given back."""

    released: list[str]


class EndToolCallReply(Reply, frozen=True):
    """What a session holds after a call, how many others are under way, and what it was reminded of."""

    locks: list[LockInfo]
    under_way: int = 0
    reminded: int = 0


class RenewReply(Reply, frozen=True):
    """The locks whose lease begins anew."""

    locks: list[LockInfo]


class CheckReply(Reply, frozen=True):
    """Whether resources are free for a caller, and who holds them if not."""

    free: bool
    holders: list[LockInfo]


class PreemptReply(Reply, frozen=True):
    """Who was asked to give way, and until when."""

    asked: list[str]
    until_ms: int


class MessageInfo(Reply, frozen=True):
    """A message as its recipient sees it."""

    id: str
    from_session_id: str
    to_session_id: str
    sent_ms: int
    kind: str
    subject: str
    body: str
    blob: dict[str, Any]
    priority: int
    hops: int
    reply_to: str
    state: str
    expires_ms: int


class SendReply(Reply, frozen=True):
    """A message on its way; `recipients` says how alive each one seems."""

    id: str
    recipients: dict[str, Liveness]


class ReceiveReply(Reply, frozen=True):
    """Messages for this session, oldest first; `more` says that others wait."""

    messages: list[MessageInfo]
    more: bool = False


class AckReply(Reply, frozen=True):
    """Messages that are delivered for good."""

    acked: list[str]


class SimilarTask(Reply, frozen=True):
    """An unfinished task that is much like one that was added: the share of words, and the words."""

    task_id: str
    to: str
    share: float
    words: list[str]

    def __str__(self) -> str:
        return f"{self.to} is {self.share:.0%} like {self.task_id} ({', '.join(self.words)})"


class AddTasksReply(Reply, frozen=True):
    """What became of each task that was to be added; `alike` warns of work that may be done twice."""

    added: list[str]
    changed: list[str]
    same: list[str]
    alike: list[SimilarTask] = []


class TrackRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """How an agent did with tasks of a type: how many, and how long they took against what was expected."""

    done: int = 0
    failed: int = 0
    took_s: float = 0
    expected_s: float = 0


class AgentInfo(Reply, frozen=True, kw_only=True):
    """An agent as lists show it; `blocked_reason` says why it gets no task (`until_ms` 0: for good)."""

    name: str
    role: str = ""
    state: str = ""
    liveness: Liveness = Liveness.ENDED
    sessions: int = 0
    claims: int = 0
    enabled: bool = True
    blocked_reason: str = ""
    until_ms: int = 0
    limited_until_ms: int = 0
    recent_failures: int = 0
    capabilities: dict[str, float] = {}
    past: dict[str, TrackRecord] = {}


class TaskInfo(Reply, frozen=True, kw_only=True):
    """A task as lists show it: what it is, and how it stands."""

    task_id: str
    state: str
    generation: int
    session_id: str
    agent: str
    expires_ms: int
    retries: int
    retry_ms: int
    note: str
    description: str
    type: str
    track: str
    role: str
    needs: list[str]
    priority: int
    files: list[str]
    depends_on: list[str]
    requirements: dict[str, Any]
    deadline_ms: int
    estimate_s: float
    retries_max: int
    created_ms: int
    parts: int = 0
    parts_done: int = 0


class TaskList(Reply, frozen=True):
    """A page of tasks, in the order of their ids."""

    tasks: list[TaskInfo]
    more: bool = False


class Runnable(StrEnum):
    """What the queue has for an agent."""

    TASK = "task"
    DONE = "done"
    BLOCKED = "blocked"
    DEADLOCKED = "deadlocked"
    DENIED = "denied"


class NextTask(Reply, frozen=True):
    """The task that was claimed, or why there was none; `more` were claimed in the same step after it."""

    outcome: Runnable
    task: TaskInfo | None = None
    claim: TaskClaim | None = None
    locks: list[LockInfo] = []
    waiting_for: list[str] = []
    look_ms: int = 0
    more: list["NextTask"] = []

    @property
    def ok(self) -> bool:
        """Whether a task was claimed."""
        return self.outcome is Runnable.TASK

    def settled(self, offset: int) -> Self:
        """Return the reply with the fence of the locks that came with each claim."""
        if not self.locks and not self.more:
            return self
        more = [each.settled(offset) for each in self.more]
        return msgspec.structs.replace(self, locks=[lock.settled(offset) for lock in self.locks], more=more)


class ClaimReply(ClaimResult, frozen=True, gc=False):
    """The answer to a claim by its id, with the locks that came with it."""

    locks: list[LockInfo] = []

    def settled(self, offset: int) -> Self:
        """Return the reply with the fence of the locks that came with the claim."""
        return msgspec.structs.replace(self, locks=[lock.settled(offset) for lock in self.locks])


class LimitsInfo(Reply, frozen=True):
    """The limits of a tenant and what is used of them; `profile` is empty where some were set singly."""

    tenant: str
    limited: bool = True
    profile: str = ""
    limits: dict[str, int] = {}
    used: dict[str, int] = {}


class SweepReply(Reply, frozen=True):
    """How many deadlines were passed, and when the next one is (None: there is none)."""

    passed: int
    next_ms: int | None = None


class LostClaim(Reply, frozen=True):
    """A claim that a session lost: why, and how the task stands.

    `holder` is who had or has it since. `still_open`: nobody took it, and a late submission would count.
    """

    project: str
    task_id: str
    generation: int
    reason: str
    lost_ms: int
    note: str
    state: str
    holder: str
    current_generation: int
    still_open: bool


class SessionMemoryReply(Reply, frozen=True):
    """What stands of a session at a moment; `session` is None where its record is forgotten."""

    session_id: str
    now_ms: int
    session: SessionInfo | None
    claims: list[TaskClaim]
    tracks: list[str]
    lost: list[LostClaim]
    locks: list[LockInfo]
    unread: int
    waiting_for: list[str]
