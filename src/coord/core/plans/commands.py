"""What can be asked about plans and the queue; the rest stands in `commands.py`."""

from typing import Any

import msgspec

from coord.core import replies
from coord.core.commands import (
    Command,
    ReleaseClaim,
    RenewLease,
    SessionCommand,
    SubmitResult,
    TaskCommand,
)
from coord.core.tasks import types
from coord.core.tasks.spec import RETRIES_MAX


class NewTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task to add; its fields become its `Spec`. `exact` are those of its files that are single files."""

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


class AddTasks(Command, frozen=True):
    """Add tasks, or bring those that are there up to date; what one depends on comes first."""

    reply = replies.AddTasksReply
    project: str
    tasks: tuple[NewTask, ...]


class SplitTask(TaskCommand, frozen=True):
    """Split a task into parts, which are claimed and done by themselves."""

    reply = replies.TaskInfo
    parts: int


class SkipTask(TaskCommand, frozen=True):
    """Pass a task over."""

    reply = replies.TaskInfo
    reason: str = ""


class RetryTask(TaskCommand, frozen=True):
    """Bring back a task that failed or was skipped."""

    reply = replies.TaskInfo


class SetTrack(Command, frozen=True):
    """Say how many agents may work on a track at once."""

    reply = int
    project: str
    track: str
    agents_max: int


class EnableAgent(Command, frozen=True):
    """Take an agent out of a project's pool, or back into it."""

    reply = replies.AgentInfo
    project: str
    agent: str
    enabled: bool
    reason: str = ""


class GetAgents(Command, frozen=True):
    """Ask for the agents of a project; for one where it is named."""

    reply = list[replies.AgentInfo]
    reads_only = True
    project: str
    agent: str = ""


class FindSimilarTasks(Command, frozen=True):
    """Ask for unfinished tasks that are much like those that are named; `besides` are left out."""

    reply = list[replies.SimilarTask]
    reads_only = True
    project: str
    tasks: tuple[str, ...]
    besides: tuple[str, ...]


class GetTasks(Command, frozen=True):
    """Ask for tasks of a project, by name or page by page."""

    reply = replies.TaskList
    reads_only = True
    project: str
    tasks: tuple[str, ...] = ()
    after: str = ""
    most: int = 500


class ClaimNext(SessionCommand, frozen=True, kw_only=True):
    """Claim the first tasks in the queue that this agent may take, `most` at once; empty choices mean any.

    `cannot` and `enabled` are what configuration says of the agent; what it declares is in its session.
    """

    reply = replies.NextTask
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
    most: int = 1


class GetStuck(Command, frozen=True):
    """Ask for tasks that failed or were tried too often: a person has to look at them."""

    reply = replies.TaskList
    reads_only = True
    project: str
    most: int = 20


class GetSessionMemory(SessionCommand, frozen=True, kw_only=True):
    """Ask what stands of a session: claims, those it lost, locks, messages; the caller's if none is named."""

    reply = replies.SessionMemoryReply
    reads_only = True
    tenant: str
    session: str = ""


class ClaimNamed(SessionCommand, frozen=True, kw_only=True):
    """Claim a task by its id, with the locks on its files; `force` takes it from its holder."""

    reply = replies.ClaimReply
    fenced = True
    tenant: str
    project: str
    task: str
    lease_ms: int
    repository: str = ""
    lock_files: bool = True
    force: bool = False
    reason: str = ""


class SubmitResults(SessionCommand, frozen=True):
    """Hand in the results of several claims of whoever calls; each is accepted or rejected by itself."""

    reply = list[types.SubmissionResult]
    results: tuple[SubmitResult, ...]


class AsSession(SessionCommand, frozen=True):
    """Something asked about a claim by its holder, whose session is found on the way."""

    asked: RenewLease | ReleaseClaim | SubmitResult

    @property
    def reply(self) -> object:  # type: ignore[override]
        """The type of the answer is that of what is asked."""
        return self.asked.reply
