"""What can be asked for: one frozen struct per command. Ids and texts are already checked by the caller.

`reply` is the type of the answer; `reads_only` marks questions, which never write and never sweep; `fenced`
marks those whose answer states the offset of their own commit, which is known only after it (`settled`).
"""

from typing import ClassVar

import msgspec

from coord.core import types


class Command(msgspec.Struct, frozen=True, gc=False, tag=True):
    """The base of every command."""

    reply: ClassVar[object] = None
    reads_only: ClassVar[bool] = False
    fenced: ClassVar[bool] = False


class TaskCommand(Command, frozen=True):
    """A command about one task."""

    tenant: str
    project: str
    task: str


class ClaimTask(TaskCommand, frozen=True):
    """Claim a task; `force` takes it from its holder, with a reason that is recorded."""

    reply = types.ClaimResult
    agent: str
    session: str
    lease_ms: int
    metadata: dict[str, object] = {}
    force: bool = False
    reason: str = ""


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


class RenewLease(TaskCommand, frozen=True):
    """Begin the lease of a claim anew."""

    reply = types.RenewalResult
    session: str
    generation: int


class ReleaseClaim(TaskCommand, frozen=True):
    """Give a claim back without a result."""

    reply = types.ReleaseResult
    session: str
    generation: int
    reason: types.ReleaseReason = types.ReleaseReason.VOLUNTARY
    note: str = ""


class SubmitResult(TaskCommand, frozen=True):
    """Hand in the result of a claim (`result` is JSON)."""

    reply = types.SubmissionResult
    session: str
    generation: int
    result: bytes
    work_product: str


class ResetTask(TaskCommand, frozen=True):
    """Open a task again, ending what claim it has."""

    reply = types.ResetResult
    reason: str = ""


class SetLimits(Command, frozen=True):
    """Change a tenant's limits; what is not named stays."""

    reply = dict[str, int]
    profile: str = ""
    limits: dict[str, int] = {}


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


class Sweep(Command, frozen=True):
    """Pass deadlines: the engine adds one to a batch when something may be due."""

    reply = int | None
    tenant: str
    most: int
