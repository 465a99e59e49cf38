"""Commands about plans and the queue, and their replies: the API."""

from enum import StrEnum
from typing import Any, Self

import msgspec

from coord.core.commands import Command, Reply, SessionCommand
from coord.core.identity import Process
from coord.core.limits import RETRIES_MAX
from coord.core.locks.commands import LockInfo
from coord.core.tasks.commands import TaskCommand
from coord.core.tasks.types import ClaimResult, TaskClaim


class NewTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task to add; its fields become its `Spec`. `exact` lists the paths that are single files."""

    task_id: str
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
    exact: tuple[str, ...] = ()


class SimilarTask(Reply, frozen=True):
    """An unfinished task that resembles a new one: the share of common words, and the words."""

    task_id: str
    to: str
    share: float
    words: list[str]

    def __str__(self) -> str:
        return f"{self.to} is {self.share:.0%} like {self.task_id} ({', '.join(self.words)})"


class AddTasksReply(Reply, frozen=True):
    """The outcome of each added task; `similar` warns of work that may be done twice."""

    added: list[str]
    changed: list[str]
    same: list[str]
    similar: list[SimilarTask] = []


class AddTasks(Command, frozen=True):
    """Add or update tasks; dependencies come before the tasks that depend on them."""

    rule = "coord.core.plans.plan:add_tasks"
    reply = AddTasksReply
    project: str
    tasks: tuple[NewTask, ...]


class FindSimilarTasks(Command, frozen=True):
    """Find unfinished tasks that resemble the given ones, except those in `exclude`."""

    rule = "coord.core.plans.similarity:find_similar_tasks"
    reply = list[SimilarTask]
    reads_only = True
    project: str
    tasks: tuple[str, ...]
    exclude: tuple[str, ...]


class TaskInfo(Reply, frozen=True, kw_only=True):
    """A task with its description and its state."""

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
    assignee: str = ""


class AssignTask(SessionCommand, frozen=True, kw_only=True):
    """Keep a task for an agent for some time, while it is live and free."""

    rule = "coord.core.plans.assignment:assign_task"
    reply = TaskInfo
    tenant: str
    project: str
    task: str
    agent: str
    for_ms: int


class SplitTask(TaskCommand, frozen=True):
    """Split a task into parts, which are claimed and completed separately."""

    rule = "coord.core.plans.subtasks:split_task"
    reply = TaskInfo
    parts: int


class SkipTask(TaskCommand, frozen=True):
    """Skip a task."""

    rule = "coord.core.plans.plan:skip_task"
    reply = TaskInfo
    reason: str = ""


class RetryTask(TaskCommand, frozen=True):
    """Return a failed or skipped task to the queue."""

    rule = "coord.core.plans.plan:retry_task"
    reply = TaskInfo


class SetTrack(Command, frozen=True):
    """Set the number of agents that may work on a track at once."""

    rule = "coord.core.plans.plan:set_track"
    reply = int
    project: str
    track: str
    agents_max: int


class TaskList(Reply, frozen=True):
    """A page of tasks, in the order of their ids; `after` asks for the next page if there is `more`."""

    tasks: list[TaskInfo]
    more: bool = False
    after: str = ""


class GetTasks(Command, frozen=True):
    """Return tasks of a project, by name or page by page."""

    rule = "coord.core.plans.plan:get_tasks"
    prefetch_ranges = "coord.core.plans.plan:page_ranges"
    reply = TaskList
    reads_only = True
    project: str
    tasks: tuple[str, ...] = ()
    after: str = ""
    limit: int = 500


class GetStuck(Command, frozen=True):
    """Return tasks that failed permanently or too often, and need a person."""

    rule = "coord.core.plans.plan:get_stuck"
    reply = TaskList
    reads_only = True
    project: str
    limit: int = 20


class QueueReply(Reply, frozen=True):
    """The first tasks in work, ready in the order of the queue, and waiting for others or for a retry."""

    working: list[TaskInfo]
    ready: list[TaskInfo]
    waiting: list[TaskInfo]


class GetQueue(Command, frozen=True):
    """Return the queue of a project; each list has at most `limit` tasks."""

    rule = "coord.core.plans.queue_list:get_queue"
    reply = QueueReply
    reads_only = True
    project: str
    limit: int = 100


class ListStuck(Command, frozen=True):
    """Ask for the names of stuck tasks in all projects, as `project/task`."""

    rule = "coord.core.plans.plan:list_stuck"
    reply = list[str]
    reads_only = True
    limit: int = 100


class TaskCounts(Reply, frozen=True):
    """Tasks of a project by what became of them; `pending` are those that nobody works on."""

    active: int = 0
    pending: int = 0
    completed: int = 0


class TaskCountPage(Reply, frozen=True):
    """Counts by project for a page of tasks; `after` asks for the next page, and is empty on the last one."""

    counts: dict[str, TaskCounts]
    after: str = ""


class CountTasks(Command, frozen=True):
    """Ask how many tasks of each project are active, pending and completed, page by page."""

    rule = "coord.core.plans.plan:count_tasks"
    reply = TaskCountPage
    reads_only = True
    after: str = ""
    limit: int = 500


class Runnable(StrEnum):
    """The outcome of asking the queue for a task."""

    TASK = "task"
    DONE = "done"
    BLOCKED = "blocked"
    DEADLOCKED = "deadlocked"
    DENIED = "denied"
    DRAINING = "draining"


class NextTask(Reply, frozen=True):
    """The claimed task, or why there is none; `more` lists further tasks claimed in the same step.

    `registered`: the wait is on record. A session that waited and was the victim of a deadlock reads what it
    `lost`, and to whom.
    """

    outcome: Runnable
    task: TaskInfo | None = None
    claim: TaskClaim | None = None
    locks: list[LockInfo] = []
    waiting_for: list[str] = []
    look_ms: int = 0
    more: list["NextTask"] = []
    registered: bool = False
    lost: list[str] = []
    lost_to: str = ""

    @property
    def ok(self) -> bool:
        """Whether a task was claimed."""
        return self.outcome is Runnable.TASK

    def with_fence(self, offset: int) -> Self:
        """Return the reply with the fences of the locks of each claim."""
        if not self.locks and not self.more:
            return self
        more = [each.with_fence(offset) for each in self.more]
        return msgspec.structs.replace(
            self, locks=[lock.with_fence(offset) for lock in self.locks], more=more
        )


class ClaimNext(SessionCommand, frozen=True, kw_only=True):
    """Claim the first tasks in the queue that this agent may take, up to `limit`; empty filters match any.

    `cannot` and `enabled` come from the configuration; the session has what the agent declares itself.
    `mode` says whether routing has a say: `prefer`, `assign`, or `advise` for none. `routing` holds the
    tables `types` and `agents` of the configuration, and `presets`.
    With `wait_ms`, the caller asks again until then: the search for deadlocks knows about it, if the session
    holds something, and the caller repeats `registered` from the reply. `waiter` is the process that waits.
    """

    rule = "coord.core.plans.queue:claim_next"
    prefetch_keys = "coord.core.plans.queue:next_reads"
    prefetch_ranges = "coord.core.plans.queue:next_ranges"
    reply = NextTask
    fenced = True
    tenant: str
    project: str
    lease_ms: int
    repository: str = ""
    types: tuple[str, ...] = ()
    tracks: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    has: tuple[str, ...] = ()
    cannot: tuple[str, ...] = ()
    enabled: bool = True
    lock_files: bool = True
    limit: int = 1
    mode: str = ""
    routing: dict[str, Any] = {}
    wait_ms: int = 0
    waiter: Process | None = None
    leased: bool = True
    registered: bool = False


class EndTaskWait(SessionCommand, frozen=True):
    """Stop waiting for a task; return whether the wait was on record."""

    rule = "coord.core.plans.waits:end_task_wait"
    prefetch_keys = "coord.core.sessions.identify:caller_reads"
    reply = bool


class ClaimReply(ClaimResult, frozen=True, gc=False):
    """The answer to a claim by task id, with the locks of the claim."""

    locks: list[LockInfo] = []

    def with_fence(self, offset: int) -> Self:
        """Return the reply with the fences of the locks of the claim."""
        return msgspec.structs.replace(self, locks=[lock.with_fence(offset) for lock in self.locks])


class ClaimNamed(SessionCommand, frozen=True, kw_only=True):
    """Claim a task by its id with locks on its files; `force` takes it from its holder."""

    rule = "coord.core.plans.queue:claim_named"
    prefetch_keys = "coord.core.plans.queue:claim_named_reads"
    reply = ClaimReply
    fenced = True
    tenant: str
    project: str
    task: str
    lease_ms: int
    repository: str = ""
    lock_files: bool = True
    force: bool = False
    reason: str = ""
