"""Records and events of tasks, claims, results and agents: the format on disk."""

from collections.abc import Iterable
from typing import Any

import msgspec

from coord.core import keys
from coord.core.events import Event
from coord.core.limits import RETRIES_MAX
from coord.core.records import Stored
from coord.core.tasks.types import ClaimState, Operation, ReleaseReason, SubmissionReason, TaskStatus

ACTIVE, EXPIRED, RELEASED = ClaimState.ACTIVE, ClaimState.EXPIRED, ClaimState.RELEASED
READY, IN_PROGRESS, DONE = TaskStatus.READY, TaskStatus.IN_PROGRESS, TaskStatus.DONE
STUCK_STATES = (TaskStatus.FAILED, TaskStatus.ERRORED)
# Bound once: Python 3.11 takes as long to look up an enum member as to create a small record.
PRIORITY_STEP_MS = 60_000
"""One step of priority equals this time in the queue, so that every task gets its turn in the end."""
AGENTS_PER_TRACK = 1


class Task(Stored, frozen=True, tag=1):
    """A task with its latest claim; the next claim archives this record.

    A `planned` task was added: `queue` is its index key while it is ready, `track` its track. `locked` are
    the files that its claim locked, in `repository`; `fence` is the newest fence of these locks once the
    claim has expired. It was added, or first claimed, at `begun_ms`. After a failure it is not ready before
    `retry_ms`. If the task was split, `parts_done` counts the parts that are done or skipped.
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
    locked: tuple[str, ...] = ()
    repository: str = ""
    fence: int = 0
    retries: int = 0
    retry_ms: int = 0
    parts_done: int = 0
    user: str = ""
    begun_ms: int = 0


UNCLAIMED = Task()


def as_of(task: Task, now: int) -> Task:
    """Return the task as it is now: a claim past its deadline is EXPIRED."""
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
    """What a task is and who may take it; `has_dependents` is set once another task depends on it.

    It is kept for the agent `assignee` until `assigned_until_ms`, while one of these sessions is free.
    """

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
    assignee: str = ""
    assigned_sessions: tuple[str, ...] = ()
    assigned_until_ms: int = 0


TITLE_CHARS, FILES_LOGGED = 200, 20


class QueueClass(Stored, frozen=True, tag=1):
    """What all tasks of a queue class have in common."""

    track: str = ""
    type: str = ""
    role: str = ""
    needs: tuple[str, ...] = ()


def queue_class_name(spec: Spec) -> str:
    """Return the queue class of a task: the same agents may take all tasks of a class."""
    parts = (spec.track, spec.type, spec.role, "+".join(sorted(spec.needs)))
    return ":".join(part or "-" for part in parts)


def ready_index_key(project: str, spec: Spec) -> str:
    """Return the index key of a task while it is ready: ordered by priority and age."""
    rank_ms = max(0, spec.created_ms - PRIORITY_STEP_MS * spec.priority)
    return keys.ready(project, queue_class_name(spec), rank_ms)


class Track(Stored, frozen=True, tag=1):
    """The agents on a track with their number of tasks, and how many agents are allowed."""

    agents_max: int = AGENTS_PER_TRACK
    agents: dict[str, int] = {}


class PendingUpdate(Stored, frozen=True, tag=1):
    """Tasks that changed, and whose dependents are not all updated yet.

    Each task is paired with the last dependent that was updated.
    """

    tasks: tuple[tuple[str, str], ...] = ()


class ClaimLoss(Stored, frozen=True, tag=1):
    """How a session lost a claim: its generation, the reason and the time."""

    generation: int = 0
    reason: ReleaseReason = ReleaseReason.EXPIRED
    at_ms: int = 0
    note: str = ""


class Result(Stored, frozen=True, tag=1):
    """An accepted result: its data, the digest of large data, or the generation of each part's result."""

    data: msgspec.Raw = msgspec.Raw(b"null")
    digest: str = ""
    part_generations: tuple[int, ...] = ()


def combine_results(parts: Iterable[bytes | None]) -> bytes:
    """Return the results of parts as one JSON list in their order, with null for a skipped part."""
    return b'{"parts":[' + b",".join(part or b"null" for part in parts) + b"]}"


def combined_bytes(sizes: Iterable[int | None]) -> int:
    """Return the size of `combine_results` for parts of these sizes; None is a skipped part."""
    each = [len(b"null") if size is None else size for size in sizes]
    return len(combine_results(())) + sum(each) + max(0, len(each) - 1)


class Rejection(Stored, frozen=True, tag=1):
    """A refused operation; `times` counts repetitions that are at least a minute apart."""

    reason: str = SubmissionReason.STALE_GENERATION.value
    agent: str = ""
    submitted_ms: int = 0
    result_bytes: int = 0
    work_lost: bool = False
    times: int = 1
    operation: Operation = Operation.SUBMIT
    user: str = ""


class Blob(Stored, frozen=True, tag=1):
    """Large data: its size, the number of chunks stored, and the number of results that refer to it."""

    size: int = 0
    chunks: int = 0
    references: int = 0
    until_ms: int = 0


class Chunk(Stored, frozen=True, tag=1):
    """One chunk of large data."""

    data: bytes = b""


class AgentRecord(Stored, frozen=True, tag=1):
    """Reasons to give an agent no task in a project."""

    enabled: bool = True
    because: str = ""
    limited_until_ms: int = 0
    failures: int = 0
    failed_ms: int = 0


class TrackRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent's results with one type of task: counts, time taken and time expected."""

    done: int = 0
    failed: int = 0
    took_s: float = 0
    expected_s: float = 0


class AgentTrackRecords(Stored, frozen=True, tag=1):
    """The track records of one session, by type of task."""

    types: dict[str, TrackRecord] = {}


NO_RESTRICTIONS = AgentRecord()


class TaskEvent(Event, frozen=True):
    """The base of events about a claim."""

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
    user: str = ""


class TaskRenewed(TaskEvent, frozen=True, tag="task.renewed"):
    """A lease was renewed."""

    expires_ms: int


class TaskMoved(Event, frozen=True, tag="task.moved"):
    """A claim went to the session that replaced its owner."""

    project: str
    task: str
    generation: int
    session: str
    agent: str
    successor: str


class TaskReleased(TaskEvent, frozen=True, tag="task.released"):
    """A claim ended without a result: released, failed or reset."""

    reason: str
    note: str = ""
    worked_ms: int = 0


class TaskExpired(TaskEvent, frozen=True, tag="task.expired"):
    """A lease expired."""

    expired_ms: int
    worked_ms: int = 0


class TaskSuperseded(TaskEvent, frozen=True, tag="task.superseded"):
    """Another session took a claim over by force."""

    by_session: str
    reason: str
    worked_ms: int = 0


class TaskCompleted(TaskEvent, frozen=True, tag="task.completed"):
    """A result was accepted, after `worked_ms` of this claim, `age_ms` after the task was added."""

    work_product: str
    result_bytes: int
    worked_ms: int = 0
    age_ms: int = 0


class ResultRejected(TaskEvent, frozen=True, tag="task.result_rejected"):
    """A result was rejected; repeated within a minute, that leaves no event."""

    reason: str
    current_generation: int
    work_lost: bool
    result_bytes: int
    times: int = 1
    user: str = ""
    worked_ms: int = 0


class TaskRefused(TaskEvent, frozen=True, tag="task.refused"):
    """A claim, renewal or release was refused; repeated within a minute, that leaves no event."""

    operation: str
    reason: str
    current_generation: int
    times: int = 1
    user: str = ""


class TaskReset(Event, frozen=True, tag="task.reset"):
    """A task was reopened."""

    project: str
    task: str
    generation: int
    reason: str


class TaskAdded(Event, frozen=True, tag="task.added"):
    """A task was added, or its description changed; this is how it is now, with the first of its files."""

    project: str
    task: str
    state: str
    changed: tuple[str, ...] = ()
    title: str = ""
    type: str = ""
    track: str = ""
    role: str = ""
    needs: tuple[str, ...] = ()
    priority: int = 0
    files: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    deadline_ms: int = 0
    estimate_s: float = 0
    added_ms: int = 0


class TaskSplit(Event, frozen=True, tag="task.split"):
    """A task was split into parts, which are tasks themselves."""

    project: str
    task: str
    parts: int


class TaskMerged(Event, frozen=True, tag="task.merged"):
    """All parts of a task are done or skipped, so the task is done; its result combines theirs."""

    project: str
    task: str
    generation: int
    parts: int
    skipped: int
    work_product: str
    result_bytes: int


class TaskAssigned(Event, frozen=True, tag="task.assigned"):
    """A task is kept for an agent until a time; `by` is the session that assigned it."""

    project: str
    task: str
    agent: str
    by: str
    until_ms: int


class TaskSkipped(Event, frozen=True, tag="task.skipped"):
    """A task was skipped; tasks that depend on it may start."""

    project: str
    task: str
    reason: str


class TaskFailed(Event, frozen=True, tag="task.failed"):
    """A task failed permanently, until somebody retries it."""

    project: str
    task: str
    generation: int
    reason: str


class TaskRetried(Event, frozen=True, tag="task.retried"):
    """A task returns to the queue, at `retry_ms` if there is a backoff."""

    project: str
    task: str
    generation: int
    retries: int
    retry_ms: int = 0


class TaskErrored(Event, frozen=True, tag="task.errored"):
    """A task failed more often than allowed: a person has to act."""

    project: str
    task: str
    generation: int
    retries: int
    reason: str


class HistoryForgotten(Event, frozen=True, tag="task.history_forgotten"):
    """The record of an earlier generation was deleted after its retention."""

    project: str
    task: str
    generation: int


class AgentLimited(Event, frozen=True, tag="agent.limited"):
    """An agent reached a rate limit and gets no task before `until_ms`."""

    project: str
    agent: str
    until_ms: int
    note: str = ""


class AgentEnabled(Event, frozen=True, tag="agent.enabled"):
    """Somebody disabled or enabled an agent in a project."""

    project: str
    agent: str
    enabled: bool
    reason: str = ""
