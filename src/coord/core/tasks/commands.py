"""Commands about single tasks and claims: the API."""

from typing import ClassVar

from coord.core.commands import Command, SessionCommand
from coord.core.tasks.types import (
    ClaimHistory,
    ClaimResult,
    ReleaseReason,
    ReleaseResult,
    RenewalResult,
    ResetResult,
    SubmissionResult,
    TaskClaim,
    TaskResult,
    TaskState,
)


class TaskCommand(Command, frozen=True):
    """A command about one task."""

    tenant: str
    project: str
    task: str


class ClaimTask(TaskCommand, frozen=True):
    """Claim a task; `force` takes it from its holder and records the reason.

    `expects` is the claim that the task must have: NO_CLAIM, EXPIRED, or a generation as a number.
    """

    rule = "coord.core.tasks.claims:claim_task"
    prefetch_keys = "coord.core.tasks.claims:claim_reads"
    reply = ClaimResult
    agent: str
    session: str
    lease_ms: int
    metadata: dict[str, object] = {}
    force: bool = False
    reason: str = ""
    expects: str = ""
    user: str = ""


class ClaimTasks(Command, frozen=True):
    """Claim several tasks for one session; each is granted or denied separately."""

    rule = "coord.core.tasks.claims:claim_tasks"
    prefetch_keys = "coord.core.tasks.claims:claims_reads"
    reply = list[ClaimResult]
    tenant: str
    agent: str
    session: str
    lease_ms: int
    tasks: tuple[tuple[str, str], ...]
    user: str = ""
    metadata: ClassVar[dict[str, object]] = {}
    force: ClassVar[bool] = False
    reason: ClassVar[str] = ""
    expects: ClassVar[str] = ""


class RenewLease(TaskCommand, frozen=True):
    """Renew the lease of a claim; agent and user are those of the caller, for the record of a refusal."""

    rule = "coord.core.tasks.claims:renew_lease"
    reply = RenewalResult
    session: str
    generation: int
    agent: str = ""
    user: str = ""


class ReleaseClaim(TaskCommand, frozen=True):
    """Release a claim without a result; for `limited_ms` its agent gets no task."""

    rule = "coord.core.tasks.claims:release_claim"
    prefetch_keys = "coord.core.tasks.claims:claim_reads"
    reply = ReleaseResult
    session: str
    generation: int
    reason: ReleaseReason = ReleaseReason.VOLUNTARY
    note: str = ""
    final: bool = False
    limited_ms: int = 0
    agent: str = ""
    user: str = ""


class SubmitResult(TaskCommand, frozen=True):
    """Submit the result of a claim: JSON, or the digest and size of a large one."""

    rule = "coord.core.tasks.results:submit_result"
    prefetch_keys = "coord.core.tasks.results:submit_reads"
    reply = SubmissionResult
    session: str
    generation: int
    result: bytes
    work_product: str
    digest: str = ""
    size: int = 0
    agent: str = ""
    user: str = ""

    @property
    def result_bytes(self) -> int:
        """The size of the result."""
        return self.size if self.digest else len(self.result)


class SubmitResults(SessionCommand, frozen=True):
    """Submit several results of the caller; each is accepted or rejected separately."""

    rule = "coord.core.tasks.as_session:submit_results"
    prefetch_keys = "coord.core.tasks.as_session:submit_results_reads"
    reply = list[SubmissionResult]
    results: tuple[SubmitResult, ...]


class AsSession(SessionCommand, frozen=True):
    """Run a command about a claim for the session of the caller; one that claims registers the session."""

    rule = "coord.core.tasks.as_session:as_session"
    prefetch_keys = "coord.core.tasks.as_session:as_session_reads"
    command: ClaimTask | ClaimTasks | RenewLease | ReleaseClaim | SubmitResult

    @property
    def reply(self) -> object:  # type: ignore[override]
        """The reply type of the inner command."""
        return self.command.reply


class ResetTask(TaskCommand, frozen=True):
    """Reopen a task; its claim ends."""

    rule = "coord.core.tasks.reset:reset_task"
    reply = ResetResult
    reason: str = ""


class GetTaskState(TaskCommand, frozen=True):
    """Return the state of a task."""

    rule = "coord.core.tasks.queries:get_task_state"
    reply = TaskState
    reads_only = True


class GetTaskStates(Command, frozen=True):
    """Return the states of several tasks."""

    rule = "coord.core.tasks.queries:get_task_states"
    reply = list[TaskState]
    reads_only = True
    tenant: str
    tasks: tuple[tuple[str, str], ...]


class GetClaimHistory(TaskCommand, frozen=True):
    """Return the ended generations of a task."""

    rule = "coord.core.tasks.queries:get_claim_history"
    reply = list[ClaimHistory]
    reads_only = True


class GetSessionClaims(Command, frozen=True):
    """Return the active claims of a session."""

    rule = "coord.core.tasks.queries:get_session_claims"
    reply = list[TaskClaim]
    reads_only = True
    tenant: str
    session: str
    project: str = ""
    """Only the claims of this project."""


class ListExpiredClaims(Command, frozen=True):
    """List claims whose lease expired before a time and whose task nobody claimed since."""

    rule = "coord.core.tasks.queries:list_expired_claims"
    reply = list[TaskClaim]
    reads_only = True
    tenant: str
    before_ms: int | None = None


class PutChunk(Command, frozen=True):
    """Store one chunk of large data, which is named by its SHA-256."""

    rule = "coord.core.tasks.chunks:put_chunk"
    prefetch_keys = "coord.core.tasks.chunks:chunk_reads"
    reply = int
    tenant: str
    digest: str
    size: int
    number: int
    data: bytes


class GetChunks(Command, frozen=True):
    """Return consecutive chunks of large data."""

    rule = "coord.core.tasks.chunks:get_chunks"
    reply = list[bytes]
    reads_only = True
    tenant: str
    digest: str
    first: int
    limit: int


class GetResult(TaskCommand, frozen=True):
    """Return the accepted result of a task, or that of an earlier generation."""

    rule = "coord.core.tasks.queries:get_result"
    reply = TaskResult
    reads_only = True
    generation: int = 0
