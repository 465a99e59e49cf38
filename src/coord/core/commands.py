"""What can be asked for: one frozen struct per command. Ids and texts are already checked by the caller.

`reply` is the type of the answer; `reads_only` marks questions, which never write and never sweep; `fenced`
marks those whose answer states the offset of their own commit, which is known only after it (`settled`).
"""

from typing import Any, ClassVar

import msgspec

from coord.core import replies
from coord.core.identity import Caller, Process
from coord.core.tasks import types


class Command(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The base of every command."""

    reply: ClassVar[object] = None
    reads_only: ClassVar[bool] = False
    fenced: ClassVar[bool] = False

    def content(self) -> "Command":
        """Return what makes two commands the same question, whoever carries it."""
        return self


class TaskCommand(Command, frozen=True):
    """A command about one task."""

    tenant: str
    project: str
    task: str


class ClaimTask(TaskCommand, frozen=True):
    """Claim a task; `force` takes it from its holder, with a reason that is recorded.

    `expects` names how the task has to stand for it: NO_CLAIM, EXPIRED, or a generation as a number.
    """

    reply = types.ClaimResult
    agent: str
    session: str
    lease_ms: int
    metadata: dict[str, object] = {}
    force: bool = False
    reason: str = ""
    expects: str = ""


class ClaimTasks(Command, frozen=True):
    """Claim several tasks for one session; each is granted or denied by itself."""

    reply = list[types.ClaimResult]
    tenant: str
    agent: str
    session: str
    lease_ms: int
    tasks: tuple[tuple[str, str], ...]
    metadata: ClassVar[dict[str, object]] = {}
    force: ClassVar[bool] = False
    reason: ClassVar[str] = ""
    expects: ClassVar[str] = ""


class RenewLease(TaskCommand, frozen=True):
    """Begin the lease of a claim anew."""

    reply = types.RenewalResult
    session: str
    generation: int


class ReleaseClaim(TaskCommand, frozen=True):
    """Give a claim back without a result; `limited_ms`: its agent gets nothing for so long."""

    reply = types.ReleaseResult
    session: str
    generation: int
    reason: types.ReleaseReason = types.ReleaseReason.VOLUNTARY
    note: str = ""
    final: bool = False
    limited_ms: int = 0


class SubmitResult(TaskCommand, frozen=True):
    """Hand in the result of a claim: JSON, or for a large one the digest and size of it."""

    reply = types.SubmissionResult
    session: str
    generation: int
    result: bytes
    work_product: str
    digest: str = ""
    size: int = 0

    @property
    def result_bytes(self) -> int:
        """How large the result is."""
        return self.size if self.digest else len(self.result)


class ResetTask(TaskCommand, frozen=True):
    """Open a task again, ending what claim it has."""

    reply = types.ResetResult
    reason: str = ""


class SetLimits(Command, frozen=True):
    """Change a tenant's limits; what is not named stays."""

    reply = dict[str, int]
    profile: str = ""
    limits: dict[str, int] = {}
    by: str = ""


class GetLimits(Command, frozen=True):
    """Ask for a tenant's limits, and what is used of them."""

    reply = replies.LimitsInfo
    reads_only = True
    tenant: str


class GetTaskState(TaskCommand, frozen=True):
    """Ask for the state of a task."""

    reply = types.TaskState
    reads_only = True


class GetTaskStates(Command, frozen=True):
    """Ask for the states of several tasks."""

    reply = list[types.TaskState]
    reads_only = True
    tenant: str
    tasks: tuple[tuple[str, str], ...]


class GetClaimHistory(TaskCommand, frozen=True):
    """Ask for the ended generations of a task."""

    reply = list[types.ClaimHistory]
    reads_only = True


class GetSessionClaims(Command, frozen=True):
    """Ask for the active claims of a session."""

    reply = list[types.TaskClaim]
    reads_only = True
    tenant: str
    session: str


class ListExpiredClaims(Command, frozen=True):
    """Ask for claims whose lease ran out before a moment and that nobody took since."""

    reply = list[types.TaskClaim]
    reads_only = True
    tenant: str
    before_ms: int | None = None


SWEEP_MOST = 32
"""How many due records one command passes."""


class Sweep(Command, frozen=True):
    """Pass deadlines: the engine adds one to a batch when something may be due."""

    reply = replies.SweepReply
    tenant: str
    most: int


class SessionCommand(Command, frozen=True):
    """A command in the name of a session."""

    caller: Caller

    def content(self) -> Command:
        """Return the command without what differs when it is sent again from another process."""
        return msgspec.structs.replace(self, caller=Caller(self.caller.session))


class UpdateSession(SessionCommand, frozen=True, kw_only=True):
    """Change what a session says of itself; what is None stays."""

    reply = replies.SessionInfo
    task: str | None = None
    phase: str | None = None
    status: str | None = None
    role: str | None = None
    bin: str | None = None
    version: str | None = None
    blob: dict[str, Any] | None = None
    merge_blob: dict[str, Any] | None = None
    owned: dict[str, Any] | None = None
    capabilities: dict[str, float] | None = None


class Register(UpdateSession, frozen=True, kw_only=True):
    """Begin a session, or come back to it; `replaces` names the one whose place it takes."""

    reply = replies.RegisterReply  # type: ignore[assignment]
    replaces: str = ""


class Heartbeat(SessionCommand, frozen=True):
    """Say that a session is alive."""

    reply = replies.HeartbeatReply


class Deregister(SessionCommand, frozen=True):
    """End a session and give back what it holds; `session` may name a sub-agent or a dead one.

    With `to_parent` what hooks locked for it goes to the session above: its edits are there still.
    """

    reply = replies.DeregisterReply
    session: str = ""
    to_parent: bool = False


class GetSession(SessionCommand, frozen=True):
    """Ask for a session, the caller's own if none is named."""

    reply = replies.SessionInfo
    reads_only = True
    session: str = ""


class ListSessions(SessionCommand, frozen=True):
    """Ask who is there."""

    reply = list[replies.SessionInfo]
    reads_only = True
    live: bool = False


class LockCommand(SessionCommand, frozen=True):
    """A command about resources; `repository` is where their files are."""

    repository: str
    resources: tuple[str, ...]


class ResourceCommand(LockCommand, frozen=True, kw_only=True):
    """A command about what a caller would have; `exact` are the resources that are single files."""

    exact: tuple[str, ...] = ()


class AcquireLocks(ResourceCommand, frozen=True, kw_only=True):
    """Take locks, all or none. With `wait_ms` the request gets in line under `wait_id`."""

    reply = replies.LockReply
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

    def content(self) -> Command:
        """Return the command without who waits, under which name, and what it found where the files are."""
        plain = msgspec.structs.replace(self, wait_id="", waiter=None, leased=True, exact=())
        return super(AcquireLocks, plain).content()


class ConfirmWait(SessionCommand, frozen=True):
    """Ask what became of a request in line; a hand-off is taken over."""

    reply = replies.LockReply
    fenced = True
    wait_key: str


class PeekWait(SessionCommand, frozen=True):
    """Ask whether a request in line has changed, changing nothing."""

    reply = bool
    reads_only = True
    wait_key: str


class WithdrawWait(SessionCommand, frozen=True):
    """Leave the line; what was handed over meanwhile is given back.

    Who does not know its place, being interrupted before the answer, names its `wait_id` instead.
    """

    reply = bool
    wait_key: str


class ReleaseLocks(LockCommand, frozen=True):
    """Give locks back; a fence, where given, must be that of the hold. No resource names all."""

    reply = replies.ReleaseReply
    fence: int = 0


class RenewLocks(LockCommand, frozen=True):
    """Begin leases anew; no resource names all."""

    reply = replies.RenewReply
    fence: int = 0
    ttl_ms: int = 0


class CheckLocks(ResourceCommand, frozen=True):
    """Ask whether a caller could have resources now; with a fence, whether it still holds them under it."""

    reply = replies.CheckReply
    reads_only = True
    mode: str = ""
    fence: int = 0


class ListLocks(SessionCommand, frozen=True):
    """Ask for the locks of a session, of the caller's `own`, or for all."""

    reply = list[replies.LockInfo]
    reads_only = True
    session: str = ""
    own: bool = False


class StealLock(ResourceCommand, frozen=True, kw_only=True):
    """Take locks from a holder that is gone; with `force` from any, for a reason that is recorded."""

    reply = replies.LockReply
    fenced = True
    dead_owner: bool = False
    force: bool = False
    reason: str = ""
    ttl_ms: int = 0


class PreemptLock(ResourceCommand, frozen=True, kw_only=True):
    """Ask holders of lower priority to give way within a time."""

    reply = replies.PreemptReply
    priority: int
    grace_ms: int
    reason: str


class SendMessage(SessionCommand, frozen=True, kw_only=True):
    """Send a message to a session, or without one to all that are there."""

    reply = replies.SendReply
    to: str = ""
    kind: str
    subject: str
    body: str = ""
    blob: dict[str, Any] = {}
    priority: int = 0
    ttl_ms: int = 0
    hops: int = 0
    reply_to: str = ""
    live_only: bool = False


class ReceiveMessages(SessionCommand, frozen=True):
    """Be offered what waits; with `drain` it is delivered for good."""

    reply = replies.ReceiveReply
    drain: bool = False


class PeekMessages(SessionCommand, frozen=True):
    """Look at what waits."""

    reply = replies.ReceiveReply
    reads_only = True


class AckMessages(SessionCommand, frozen=True):
    """Say that messages were delivered."""

    reply = replies.AckReply
    ids: tuple[str, ...]
