"""The record of a task, and how it looks now that its deadlines have passed."""

from collections.abc import Iterable
from typing import Any

import msgspec

from coord.core import keys
from coord.core.events import Event
from coord.core.records import Stored
from coord.core.tasks.types import ClaimState, ReleaseReason, SubmissionReason, TaskStatus

ACTIVE, EXPIRED, RELEASED = ClaimState.ACTIVE, ClaimState.EXPIRED, ClaimState.RELEASED
READY, IN_PROGRESS, DONE = TaskStatus.READY, TaskStatus.IN_PROGRESS, TaskStatus.DONE
STUCK_STATES = (TaskStatus.FAILED, TaskStatus.ERRORED)
# Bound once, because Python 3.11 takes as long to find a member in its class as to make a small record.
PRIORITY_STEP_MS = 60_000
"""One step of priority is worth so long a wait in the queue: nobody waits for ever."""
RETRIES_MAX = 3
AGENTS_PER_TRACK = 1


class Task(Stored, frozen=True, tag=1):
    """A task with its latest claim; archived as it is when the next generation begins.

    One that was added (`planned`) has a place in the queue for when it is ready, perhaps a track, and while
    it is worked on perhaps the locks on its files; after a failure it is not ready before `retry_ms`. Of one
    that was split, `parts_done` counts the parts that are done or skipped.
    """

    generation: int = 0
    state: TaskStatus = TaskStatus.READY
    claim: ClaimState | None = None
    session: str = ""
    agent: str = ""
    claimed_ms: int = 0
    lease_ms: int = 0
    expires_ms: int = 0
    ended_ms: int = 0
    end_reason: ReleaseReason | None = None
    work_product: str = ""
    result_bytes: int = 0
    note: str = ""
    metadata: dict[str, Any] = {}
    reset_generation: int = 0
    planned: bool = False
    queue: str = ""
    track: str = ""
    lock_keys: tuple[str, ...] = ()
    retries: int = 0
    retry_ms: int = 0
    parts_done: int = 0


UNCLAIMED = Task()


def as_of(task: Task, now: int) -> Task:
    """Return the task with its deadline acted on."""
    if task.claim is not ACTIVE or now < task.expires_ms:
        return task
    return msgspec.structs.replace(
        task,
        claim=EXPIRED,
        state=TaskStatus.READY,
        ended_ms=task.expires_ms,
        end_reason=ReleaseReason.EXPIRED,
    )


class Spec(Stored, frozen=True, tag=1):
    """The description of a task, and who may take it; `has_dependents`: some task depends on it, or did."""

    description: str = ""
    type: str = ""
    track: str = ""
    role: str = ""
    needs: tuple[str, ...] = ()
    priority: int = 0
    files: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    requirements: dict[str, Any] = {}
    deadline_ms: int = 0
    estimate_s: float = 0
    retries_max: int = RETRIES_MAX
    repository: str = ""
    created_ms: int = 0
    parts: int = 0
    exact: tuple[str, ...] = ()
    has_dependents: bool = False


class QueueClass(Stored, frozen=True, tag=1):
    """What all tasks of a class have alike."""

    track: str = ""
    type: str = ""
    role: str = ""
    needs: tuple[str, ...] = ()


def queue_class_name(spec: Spec) -> str:
    """Return the class of a task: all of one class may be taken by the same agents."""
    parts = (spec.track, spec.type, spec.role, "+".join(sorted(spec.needs)))
    return ":".join(part or "-" for part in parts)


def ready_index_key(project: str, spec: Spec) -> str:
    """Return the line of a task while it is ready: by priority that ages, then by age."""
    rank_ms = max(0, spec.created_ms - PRIORITY_STEP_MS * spec.priority)
    return keys.ready(project, queue_class_name(spec), rank_ms)


class Track(Stored, frozen=True, tag=1):
    """Who works on a track now, with how many tasks, and how many may."""

    agents_max: int = AGENTS_PER_TRACK
    agents: dict[str, int] = {}


class PendingUpdate(Stored, frozen=True, tag=1):
    """Tasks that have changed while some of those that depend on them are yet to be computed anew.

    Each with the last of its followers that was.
    """

    tasks: tuple[tuple[str, str], ...] = ()


class ClaimLoss(Stored, frozen=True, tag=1):
    """A claim that a session lost: under which generation, why and when."""

    generation: int = 0
    reason: ReleaseReason = ReleaseReason.EXPIRED
    at_ms: int = 0
    note: str = ""


class Result(Stored, frozen=True, tag=1):
    """An accepted result: its data, or the digest of large data, or of which generation each part's is."""

    data: msgspec.Raw = msgspec.Raw(b"null")
    digest: str = ""
    part_generations: tuple[int, ...] = ()


def combine_results(parts: Iterable[bytes | None]) -> bytes:
    """Return the results of parts as one: a list in their order, null for a part that was skipped."""
    return b'{"parts":[' + b",".join(part or b"null" for part in parts) + b"]}"


def combined_bytes(sizes: Iterable[int | None]) -> int:
    """Return how long `combine_results` is of parts of these sizes."""
    each = [len(b"null") if size is None else size for size in sizes]
    return len(combine_results(())) + sum(each) + max(0, len(each) - 1)


class Rejection(Stored, frozen=True, tag=1):
    """A submission that was turned away; `times` counts repetitions after a quiet minute."""

    reason: SubmissionReason = SubmissionReason.STALE_GENERATION
    agent: str = ""
    submitted_ms: int = 0
    result_bytes: int = 0
    work_lost: bool = False
    times: int = 1


class Blob(Stored, frozen=True, tag=1):
    """Large data: how much of it is there, and who needs it."""

    size: int = 0
    chunks: int = 0
    references: int = 0
    until_ms: int = 0


class Chunk(Stored, frozen=True, tag=1):
    """A piece of large data."""

    data: bytes = b""


class AgentRecord(Stored, frozen=True, tag=1):
    """What stands against giving an agent work in a project."""

    enabled: bool = True
    because: str = ""
    limited_until_ms: int = 0
    failures: int = 0
    failed_ms: int = 0


class TrackRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """How an agent did with tasks of a type: how many, and how long they took against what was expected."""

    done: int = 0
    failed: int = 0
    took_s: float = 0
    expected_s: float = 0


class AgentTrackRecords(Stored, frozen=True, tag=1):
    """How a session of an agent did, by type of task."""

    types: dict[str, TrackRecord] = {}


NO_RESTRICTIONS = AgentRecord()


class TaskEvent(Event, frozen=True):
    """Something happened to a claim."""

    project: str
    task: str
    generation: int
    session: str
    agent: str


class TaskClaimed(TaskEvent, frozen=True, tag="task.claimed"):
    """A claim was granted."""

    lease_ms: int
    previous_generation: int = 0
    previous_state: str = ""
    reason: str = ""


class TaskRenewed(TaskEvent, frozen=True, tag="task.renewed"):
    """A lease was renewed."""

    expires_ms: int


class TaskReleased(TaskEvent, frozen=True, tag="task.released"):
    """A claim ended without a result: given back, failed or reset."""

    reason: str
    note: str = ""


class TaskExpired(TaskEvent, frozen=True, tag="task.expired"):
    """A lease ran out."""

    expired_ms: int


class TaskSuperseded(TaskEvent, frozen=True, tag="task.superseded"):
    """A claim was taken over by force."""

    by_session: str
    reason: str


class TaskCompleted(TaskEvent, frozen=True, tag="task.completed"):
    """A result was accepted."""

    work_product: str
    result_bytes: int


class ResultRejected(TaskEvent, frozen=True, tag="task.result_rejected"):
    """A result was turned away."""

    reason: str
    current_generation: int
    work_lost: bool
    result_bytes: int


class TaskReset(Event, frozen=True, tag="task.reset"):
    """A task was opened again."""

    project: str
    task: str
    generation: int
    reason: str


class TaskAdded(Event, frozen=True, tag="task.added"):
    """A task was added, or what it is was changed."""

    project: str
    task: str
    state: str
    changed: tuple[str, ...] = ()


class TaskSplit(Event, frozen=True, tag="task.split"):
    """A task was split into parts; each is a task of its own."""

    project: str
    task: str
    parts: int


class TaskMerged(Event, frozen=True, tag="task.merged"):
    """All parts of a task are done or skipped, so it is done: its result is made of theirs."""

    project: str
    task: str
    generation: int
    parts: int
    skipped: int
    work_product: str
    result_bytes: int


class TaskSkipped(Event, frozen=True, tag="task.skipped"):
    """A task was passed over; those that depend on it may go on."""

    project: str
    task: str
    reason: str


class TaskFailed(Event, frozen=True, tag="task.failed"):
    """A task failed for good, until somebody retries it."""

    project: str
    task: str
    generation: int
    reason: str


class TaskRetried(Event, frozen=True, tag="task.retried"):
    """A task goes back to the queue, perhaps after a pause."""

    project: str
    task: str
    generation: int
    retries: int
    retry_ms: int = 0


class TaskErrored(Event, frozen=True, tag="task.errored"):
    """A task was tried too often: a person has to look."""

    project: str
    task: str
    generation: int
    retries: int
    reason: str


class HistoryForgotten(Event, frozen=True, tag="task.history_forgotten"):
    """An earlier generation passed its retention."""

    project: str
    task: str
    generation: int


class AgentLimited(Event, frozen=True, tag="agent.limited"):
    """An agent reached a rate limit: until then it is given nothing."""

    project: str
    agent: str
    until_ms: int
    note: str = ""


class AgentEnabled(Event, frozen=True, tag="agent.enabled"):
    """An agent was taken out of a project's pool by hand, or back into it."""

    project: str
    agent: str
    enabled: bool
    reason: str = ""
