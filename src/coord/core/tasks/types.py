"""What callers get: claims, history, results, and a reason code for each reply.

Times are stored in milliseconds (`…_ms`); properties return them as UTC datetimes. The ids of claims, history
entries and results are derived from their content, so they need no randomness and no storage.
"""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec

from coord.core.ids import TaskIdentifier


class ClaimState(StrEnum):
    """The state of a claim; ARCHIVED is an earlier generation in the history."""

    ACTIVE = "ACTIVE"
    EXPIRED = "EXPIRED"
    RELEASED = "RELEASED"
    SUPERSEDED = "SUPERSEDED"
    ERROR = "ERROR"
    ARCHIVED = "ARCHIVED"


class TaskStatus(StrEnum):
    """The state of a task, apart from the state of its claim."""

    PENDING = "pending"
    READY = "ready"
    IN_PROGRESS = "in_progress"
    BLOCKED = "blocked"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    ERRORED = "errored"


class ReleaseReason(StrEnum):
    """Why a generation ended."""

    COMPLETED = "COMPLETED"
    EXPIRED = "EXPIRED"
    SUPERSEDED = "SUPERSEDED"
    ERROR = "ERROR"
    VOLUNTARY = "VOLUNTARY"
    RESET = "RESET"
    PREEMPTED = "PREEMPTED"


class ClaimReason(StrEnum):
    """Why a claim was granted or denied."""

    GRANTED = "GRANTED"
    DENIED_ACTIVE_CLAIM = "DENIED_ACTIVE_CLAIM"
    DENIED_COMPLETED = "DENIED_COMPLETED"
    DENIED_NOT_READY = "DENIED_NOT_READY"
    DENIED_UNEXPECTED = "DENIED_UNEXPECTED"
    DENIED_LOCKED = "DENIED_LOCKED"
    DENIED_LIMIT_CONCURRENT_CLAIMS = "DENIED_LIMIT_CONCURRENT_CLAIMS"
    DENIED_LIMIT_ACTIVE_SESSIONS = "DENIED_LIMIT_ACTIVE_SESSIONS"
    DENIED_LIMIT_LEASE_DURATION = "DENIED_LIMIT_LEASE_DURATION"
    DENIED_LIMIT_GENERATIONS = "DENIED_LIMIT_GENERATIONS"


class RenewalReason(StrEnum):
    """Why a lease was renewed or not; LOCK_LOST: the claim ended because it lost a lock."""

    RENEWED = "RENEWED"
    LOCK_LOST = "LOCK_LOST"
    GENERATION_MISMATCH = "GENERATION_MISMATCH"
    SESSION_MISMATCH = "SESSION_MISMATCH"
    NO_CLAIM = "NO_CLAIM"
    ALREADY_EXPIRED = "ALREADY_EXPIRED"


class ReleaseOutcome(StrEnum):
    """Why a claim was released or not."""

    RELEASED = "RELEASED"
    LOCK_LOST = "LOCK_LOST"
    GENERATION_MISMATCH = "GENERATION_MISMATCH"
    SESSION_MISMATCH = "SESSION_MISMATCH"
    NO_CLAIM = "NO_CLAIM"
    ALREADY_EXPIRED = "ALREADY_EXPIRED"


class SubmissionReason(StrEnum):
    """Why a result was accepted or rejected."""

    ACCEPTED = "ACCEPTED"
    STALE_GENERATION = "STALE_GENERATION"
    FUTURE_GENERATION = "FUTURE_GENERATION"
    SESSION_MISMATCH = "SESSION_MISMATCH"
    NO_CLAIM = "NO_CLAIM"
    LOCK_LOST = "LOCK_LOST"
    TASK_ALREADY_COMPLETED = "TASK_ALREADY_COMPLETED"
    DENIED_LIMIT_RESULT_SIZE = "DENIED_LIMIT_RESULT_SIZE"
    DATA_MISSING = "DATA_MISSING"


class Operation(StrEnum):
    """What a session asked for, if it was refused."""

    CLAIM = "claim"
    RENEW = "renew"
    RELEASE = "release"
    SUBMIT = "submit"


class ResetReason(StrEnum):
    """Whether a task was reset."""

    RESET = "RESET"
    NOT_FOUND = "NOT_FOUND"


class ClaimKey(NamedTuple):
    """The name of a task."""

    tenant_id: str
    project_id: str
    task_id: str


class ClaimTemplate(NamedTuple):
    """The agent, session and lease of a batch of claims."""

    agent_id: str
    session_id: str
    lease_duration_seconds: float = 300


def utc(ms: int) -> datetime:
    """Return a time in milliseconds as an aware datetime."""
    return datetime.fromtimestamp(ms / 1000, UTC)


def derived_uuid(*parts: object) -> str:
    """Return a UUID (version 8) derived from the parts by a hash."""
    from hashlib import sha256  # slow to import, and few commands need it

    digest = bytearray(sha256("\0".join(map(str, parts)).encode()).digest()[:16])
    digest[6] = (digest[6] & 0x0F) | 0x80
    digest[8] = (digest[8] & 0x3F) | 0x80
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class TaskScoped(msgspec.Struct, frozen=True, gc=False):
    """The base of what belongs to a task; parses the track and sequence in the task id."""

    tenant_id: str
    project_id: str
    task_id: str

    @property
    def track(self) -> str | None:
        """The track letters in the task id."""
        parsed = TaskIdentifier.find(self.task_id)
        return parsed.track if parsed else None

    @property
    def sequence(self) -> int | None:
        """The sequence number within the track."""
        parsed = TaskIdentifier.find(self.task_id)
        return parsed.sequence if parsed else None


class TaskGeneration(msgspec.Struct, frozen=True, gc=False):
    """One generation of a task; it compares as its number (`claim.generation == 2`)."""

    task_id: str
    generation: int
    session_id: str
    claimed_ms: int
    lease_ms: int

    @property
    def claimed_at(self) -> datetime:
        """When the claim was granted."""
        return utc(self.claimed_ms)

    @property
    def lease_duration(self) -> float:
        """Seconds until expiry, from the claim or its last renewal."""
        return self.lease_ms / 1000

    def __int__(self) -> int:
        return self.generation

    __index__ = __int__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TaskGeneration):
            return msgspec.structs.astuple(self) == msgspec.structs.astuple(other)
        return self.generation == other

    def __hash__(self) -> int:
        return hash(self.generation)


class TaskClaim(TaskScoped, frozen=True, gc=False):
    """A claim: the session that works on a task, its generation and its expiry."""

    agent_id: str
    generation: TaskGeneration
    state: ClaimState
    expires_ms: int
    work_product_ref: str | None = None
    metadata: dict[str, Any] = {}

    @property
    def id(self) -> str:
        """A UUID of this claim."""
        return derived_uuid(
            "claim", self.tenant_id, self.project_id, self.task_id, self.generation.generation
        )

    @property
    def session_id(self) -> str:
        """The session that holds the claim."""
        return self.generation.session_id

    @property
    def expires_at(self) -> datetime:
        """When the lease expires."""
        return utc(self.expires_ms)


class TaskResult(TaskScoped, frozen=True, gc=False):
    """An accepted or rejected submission.

    Large data is not included: `digest` names it, or `part_generations` names the results it combines.
    """

    generation: int
    session_id: str
    agent_id: str
    submitted_ms: int
    accepted: bool
    result_data: dict[str, Any] | None = None
    work_product_ref: str | None = None
    rejection_reason: SubmissionReason | None = None
    size_bytes: int = 0
    times: int = 1
    digest: str = ""
    part_generations: tuple[int, ...] = ()
    user_id: str = ""

    @property
    def id(self) -> str:
        """A UUID of this submission."""
        return derived_uuid("result", *self.key, self.generation, self.session_id, self.submitted_ms)

    @property
    def key(self) -> ClaimKey:
        """The task it was submitted for."""
        return ClaimKey(self.tenant_id, self.project_id, self.task_id)

    @property
    def submitted_at(self) -> datetime:
        """When it was submitted; for a repeated rejection, the last time."""
        return utc(self.submitted_ms)


class TaskRefusal(TaskScoped, frozen=True, gc=False):
    """A refused claim, renewal or release; repetitions within a minute are not counted in `times`."""

    generation: int
    session_id: str
    agent_id: str
    user_id: str
    operation: Operation
    reason: str
    refused_ms: int
    times: int = 1

    @property
    def refused_at(self) -> datetime:
        """When it was refused; for a repeated refusal, the last time."""
        return utc(self.refused_ms)


class ClaimHistory(TaskScoped, frozen=True, gc=False):
    """One ended generation of a task, with its rejected submissions and other refusals."""

    generation: int
    session_id: str
    agent_id: str
    acquired_ms: int
    released_ms: int
    release_reason: ReleaseReason
    result_accepted: bool
    work_product_ref: str | None = None
    note: str = ""
    rejected: tuple[TaskResult, ...] = ()
    refused: tuple[TaskRefusal, ...] = ()
    user_id: str = ""

    @property
    def state(self) -> ClaimState:
        """ARCHIVED: the claim is part of the history."""
        return ClaimState.ARCHIVED

    @property
    def id(self) -> str:
        """A UUID of this entry."""
        return derived_uuid("history", self.tenant_id, self.project_id, self.task_id, self.generation)

    @property
    def acquired_at(self) -> datetime:
        """When the generation began."""
        return utc(self.acquired_ms)

    @property
    def released_at(self) -> datetime:
        """When it ended; for an expired one, its deadline."""
        return utc(self.released_ms)


class TaskState(TaskScoped, frozen=True, gc=False):
    """A task now: its state, latest claim, accepted result, rejected submissions and other refusals."""

    state: TaskStatus
    generation: int
    claim: TaskClaim | None = None
    result: TaskResult | None = None
    rejected: tuple[TaskResult, ...] = ()
    refused: tuple[TaskRefusal, ...] = ()

    @property
    def completed(self) -> bool:
        """Whether a result was accepted."""
        return self.state is TaskStatus.DONE


class ClaimResult(msgspec.Struct, frozen=True, gc=False):
    """The answer to a claim."""

    success: bool
    reason: ClaimReason
    claim: TaskClaim | None = None
    current_holder: str | None = None
    detail: str = ""


class RenewalResult(msgspec.Struct, frozen=True, gc=False):
    """The answer to a renewal."""

    success: bool
    reason: RenewalReason
    new_expiry_ms: int | None = None
    detail: str = ""

    @property
    def new_expiry(self) -> datetime | None:
        """When the renewed lease expires."""
        return None if self.new_expiry_ms is None else utc(self.new_expiry_ms)


class ReleaseResult(msgspec.Struct, frozen=True, gc=False):
    """The answer to a release."""

    success: bool
    reason: ReleaseOutcome
    detail: str = ""


class SubmissionResult(msgspec.Struct, frozen=True, gc=False):
    """The answer to a submission; `work_lost`: the session held that generation but lost it."""

    accepted: bool
    reason: SubmissionReason
    current_generation: int
    work_lost: bool = False
    work_product_ref: str | None = None
    detail: str = ""


class ResetResult(msgspec.Struct, frozen=True, gc=False):
    """The answer to a reset."""

    success: bool
    reason: ResetReason
    generation: int = 0
