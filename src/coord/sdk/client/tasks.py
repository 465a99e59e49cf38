"""What a program does about tasks: add them, take the next one, hand in what came of it, look at them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from coord.core.errors import Invalid, NotFound
from coord.core.ids import TaskIdentifier, check_id, shown
from coord.core.plans.commands import (
    AddTasks,
    AddTasksReply,
    ClaimNamed,
    ClaimNext,
    ClaimReply,
    FindSimilarTasks,
    GetTasks,
    NewTask,
    NextTask,
    RetryTask,
    SetTrack,
    SkipTask,
    SplitTask,
    TaskInfo,
)
from coord.core.sessions.commands import GetSession, Heartbeat
from coord.core.tasks import types
from coord.core.tasks.commands import (
    AsSession,
    ClaimTasks,
    GetClaimHistory,
    GetTaskState,
    ReleaseClaim,
    RenewLease,
    ResetTask,
)
from coord.core.tasks.spec import RETRIES_MAX
from coord.core.tasks.types import TaskGeneration
from coord.host.config import configuration_file, read_configuration
from coord.sdk.client.connection import Connection
from coord.sdk.client.waiting import wait_for_task
from coord.sdk.validation import arguments as given
from coord.sdk.validation.results import to_json
from coord.sdk.validation.tasks import new_task, word, words

LEASE_S = 300.0
BATCH_TASKS = 250
PAGE = 500
AGENTS_MAX = 1000
COMPARED_MAX = 100
"""How many new tasks are compared with the others."""

Progress = Callable[[int, int], None]
"""Told how many of how many are added."""


class TaskCalls(Connection):
    """Add, split, next, claim, renew, submit, fail, release, reset, skip, retry, show, history, list."""

    def add_task(
        self,
        task_id: str,
        *,
        description: str = "",
        type: str = "",  # noqa: A002 - the name of the field
        priority: int = 0,
        files: str | Iterable[str] = (),
        depends_on: Iterable[str] = (),
        requirements: Mapping[str, Any] | None = None,
        deadline: object = None,
        estimate_s: float = 0,
        role: str = "",
        track: str | None = None,
        needs: Iterable[str] = (),
        retries_max: int = RETRIES_MAX,
    ) -> AddTasksReply:
        """Add a task, or bring what is known of it up to date; what it depends on must be there."""
        task = new_task(
            task_id,
            description=description,
            type=type,
            priority=priority,
            files=[files] if isinstance(files, str) else files,
            depends_on=depends_on,
            requirements=requirements,
            deadline=deadline,
            estimate_s=estimate_s,
            role=role,
            track=track,
            needs=needs,
            retries_max=retries_max,
        )
        return self.add_tasks([task])

    def add_tasks(
        self, tasks: Iterable[NewTask], *, from_root: bool = False, progress: Progress | None = None
    ) -> AddTasksReply:
        """Add tasks in order; `from_root`: their files are named from the top of the repository.

        The answer warns of other unfinished tasks that are much like the first hundred that are new.
        """
        located = [self.located(task, from_root=from_root) for task in tasks]
        if self.strict_ids:
            for task in located:
                TaskIdentifier.parse(task.task_id)
        outcome = AddTasksReply([], [], [], [])
        for at in range(0, len(located), BATCH_TASKS):
            batch = tuple(located[at : at + BATCH_TASKS])
            reply: AddTasksReply = self.call(AddTasks(self.project, batch))
            outcome.added.extend(reply.added)
            outcome.changed.extend(reply.changed)
            outcome.same.extend(reply.same)
            if progress is not None:
                progress(at + len(batch), len(located))
        described = {task.task_id for task in located if task.description}
        compared = tuple(name for name in outcome.added if name in described)[:COMPARED_MAX]
        if compared:
            besides = tuple(task.task_id for task in located)
            outcome.alike.extend(self.call(FindSimilarTasks(self.project, compared, besides)))
        return outcome

    def next_task(
        self,
        *,
        types: Iterable[str] = (),
        tracks: Iterable[str] = (),
        roles: Iterable[str] | None = None,
        has: Iterable[str] = (),
        lease_s: float = LEASE_S,
        lock_files: bool = True,
        wait_s: float | None = 0,
        most: int = 1,
        command_id: str = "",
    ) -> NextTask:
        """Claim the first task this agent may take; wait for one up to `wait_s` (None: as long as it takes).

        With `most`, up to so many in one step: those after the first are `more` in the answer. Of tasks whose
        files meet, a step gives the first; it ends where 64 files are locked, or the answer is long. Nobody
        waits where nothing can come by itself: done, or stuck.
        """
        if type(most) is not int or not 0 < most <= BATCH_TASKS:
            raise Invalid(f"{shown(most)} is no number of tasks", hint=f"1 to {BATCH_TASKS}")
        if command_id and wait_s != 0:
            raise Invalid("a command id does not go with waiting", hint="ask again instead of waiting")
        own = self._configured()
        if roles is None:
            roles = [role for role in (self.caller.role or own.get("role", ""),) if role]
        command = ClaimNext(
            caller=self.caller,
            tenant=self.tenant,
            project=self.project,
            lease_ms=_lease_ms(lease_s),
            repository=self.location.repository_id,
            types=words("type", types),
            tracks=words("track", tracks),
            roles=words("role", roles),
            has=words("need", [*has, *own.get("has", ())]),
            cannot=own.get("cannot", ()),
            enabled=own.get("enabled", True),
            lock_files=lock_files,
            most=most,
        )
        if wait_s is not None:
            given.milliseconds("wait", wait_s, least_s=0)
        return wait_for_task(self, command, wait_s, command_id)

    def claim_task(
        self,
        task_id: str,
        *,
        lease_s: float = LEASE_S,
        lock_files: bool = True,
        force: bool = False,
        reason: str = "",
        command_id: str = "",
    ) -> ClaimReply:
        """Claim one task by its id, with the locks on its files; `force` takes it from its holder.

        A forced claim needs a reason, which is recorded.
        """
        if force and not given.line("reason", reason):
            raise Invalid("a forced claim needs a reason", hint="say why its holder may lose it")
        tenant, project, name = self._names(task_id)
        command = ClaimNamed(
            caller=self.caller,
            tenant=tenant,
            project=project,
            task=name,
            lease_ms=_lease_ms(lease_s),
            repository=self.location.repository_id,
            lock_files=lock_files,
            force=force,
            reason=reason if force else "",
        )
        return self.call(command, command_id)

    def claim_tasks(
        self, task_ids: Iterable[str], *, lease_s: float = LEASE_S
    ) -> dict[str, types.ClaimResult]:
        """Claim several tasks in one step; each is granted or denied by itself."""
        names = tuple((self.project, check_id("task id", name)) for name in _list_of_ids(task_ids))
        self.call(Heartbeat(self.caller))
        session, agent = self._me()
        command = ClaimTasks(self.tenant, agent, session, _lease_ms(lease_s), names)
        return {name: reply for (_, name), reply in zip(names, self.call(command), strict=True)}

    def split_task(self, task_id: str, parts: int) -> TaskInfo:
        """Split a task into parts `ID::1` … that are done by themselves; it is done when they are."""
        if type(parts) is not int or not 1 < parts <= BATCH_TASKS:
            raise Invalid(f"{shown(parts)} is no number of parts", hint=f"2 to {BATCH_TASKS}")
        return self.call(SplitTask(*self._names(task_id), parts))

    def renew_task(self, task_id: str, generation: int | TaskGeneration) -> types.RenewalResult:
        """Begin the lease of a claim anew, and those of the locks that came with it."""
        names, number = self._names(task_id), _generation(generation)
        return self._mine(RenewLease(*names, "", number))

    def submit_task(
        self,
        task_id: str,
        generation: int | TaskGeneration,
        result: Mapping[str, Any] | None = None,
        *,
        command_id: str = "",
    ) -> types.SubmissionResult:
        """Hand in the result of a claim; accepted only under the current generation, once."""
        names, number = self._names(task_id), _generation(generation)
        data = to_json("result", {} if result is None else result)
        from coord.sdk.client import results as large  # most commands have nothing to do with results

        return large.submit(self.engine, names, self.caller, number, data, command_id)

    def submit_tasks(
        self, results: Iterable[tuple[str, int | TaskGeneration, Mapping[str, Any] | None]]
    ) -> list[types.SubmissionResult]:
        """Hand in several results (task, generation, result) in few steps, each accepted or not by itself."""
        from coord.sdk.client import results as large

        handed_in = [
            (self._names(task_id), _generation(generation), to_json("result", {} if data is None else data))
            for task_id, generation, data in results
        ]
        return large.submit_all(self.engine, self.caller, handed_in)

    def task_result(self, task_id: str) -> bytes:
        """Return the accepted result of a task as JSON, however large: whole, or not at all."""
        from coord.core.tasks.commands import GetResult
        from coord.sdk.client import results as large

        result, data = large.whole_result(self.engine, GetResult(*self._names(task_id)))
        return to_json("result", result.result_data) if data is None else data

    def fail_task(
        self, task_id: str, generation: int | TaskGeneration, *, note: str = "", final: bool = False
    ) -> types.ReleaseResult:
        """Say that it did not work: it is tried again after a pause, or never (`final`)."""
        return self._release(task_id, generation, types.ReleaseReason.ERROR, note, final=final)

    def release_task(
        self, task_id: str, generation: int | TaskGeneration, *, note: str = "", limited_s: float = 0.0
    ) -> types.ReleaseResult:
        """Give a claim back undone, no failure counted; rate limited, this agent gets nothing for a while."""
        limited_ms = given.milliseconds("pause", limited_s, least_s=0)
        return self._release(task_id, generation, types.ReleaseReason.VOLUNTARY, note, limited_ms=limited_ms)

    def reset_task(self, task_id: str, *, reason: str = "") -> types.ResetResult:
        """Open a task again, whatever became of it; what depends on it waits again."""
        return self.call(ResetTask(*self._names(task_id), given.line("reason", reason)))

    def skip_task(self, task_id: str, *, reason: str = "") -> TaskInfo:
        """Pass a task over: what depends on it goes on without it."""
        return self.call(SkipTask(*self._names(task_id), given.line("reason", reason)))

    def retry_task(self, task_id: str) -> TaskInfo:
        """Bring back a task that failed, was tried too often, or was skipped."""
        return self.call(RetryTask(*self._names(task_id)))

    def show_task(self, task_id: str) -> TaskInfo:
        """Return what a task is and how it stands."""
        names = (check_id("task id", task_id),)
        (found,) = self.call(GetTasks(self.project, names)).tasks
        return found

    def task_state(self, task_id: str) -> types.TaskState:
        """Return a task's claim, accepted result and rejected submissions, also of one never added."""
        return self.call(GetTaskState(*self._names(task_id)))

    def task_history(self, task_id: str) -> list[types.ClaimHistory]:
        """Return every ended generation, oldest first, with the submissions that came in vain."""
        return self.call(GetClaimHistory(*self._names(task_id)))

    def task_list(self, *, state: str = "", track: str = "", type: str = "") -> list[TaskInfo]:  # noqa: A002
        """Return the tasks of this project in the order of their ids; empty choices mean any."""
        if state and state not in list(types.TaskStatus):
            raise Invalid(f"{shown(state)} is no state", hint=f"one of {', '.join(types.TaskStatus)}")
        wanted = {"state": state, "track": word("track", track), "type": word("type", type)}
        asked = [(name, value) for name, value in wanted.items() if value]
        return [task for task in self._tasks() if all(getattr(task, name) == value for name, value in asked)]

    def set_track(self, track: str, agents_max: int) -> int:
        """Say how many agents may work on a track at once (one, unless said)."""
        if type(agents_max) is not int or not 0 < agents_max <= AGENTS_MAX:
            raise Invalid(f"{shown(agents_max)} is no number of agents", hint=f"1 to {AGENTS_MAX}")
        if not word("track", track):
            raise Invalid("the track has no name", hint="for example A")
        return self.call(SetTrack(self.project, track, agents_max))

    @property
    def project(self) -> str:
        """The project whose tasks these are."""
        return check_id("project id", self.caller.project)

    @property
    def strict_ids(self) -> bool:
        """Whether tasks must have ids of the track grammar: `task_id_policy = "track"` in coord.toml."""
        settings = read_configuration(configuration_file(self.location.repository))
        policy = settings.get("task_id_policy", "any")
        if policy not in ("any", "track"):
            raise Invalid(f"task_id_policy is {shown(policy)} in coord.toml", hint='"any" or "track"')
        return policy == "track"

    def located(self, task: NewTask, *, from_root: bool = False) -> NewTask:
        """Return a task with its files as the core knows them: relative to the repository."""
        if not task.files:
            return task
        root = self.location.repository.root if from_root and self.location.repository is not None else None
        words = [_below(root, text) for text in task.files] if root else task.files
        files, exact = self.resolve_with_files(words)
        of_host = [text for text in files if text in self.location.host_locks]
        if of_host:
            raise Invalid(
                f"{of_host[0]} belongs to the host, tasks to a repository", hint="lock it by itself"
            )
        return msgspec.structs.replace(task, files=files, exact=exact, repository=self.location.repository_id)

    def _tasks(self) -> Iterator[TaskInfo]:
        after, more = "", True
        while more:
            page = self.call(GetTasks(self.project, after=after, most=PAGE))
            yield from page.tasks
            more = page.more
            after = page.tasks[-1].task_id if page.tasks else ""

    def _release(
        self,
        task_id: str,
        generation: int | TaskGeneration,
        why: types.ReleaseReason,
        note: str,
        *,
        final: bool = False,
        limited_ms: int = 0,
    ) -> types.ReleaseResult:
        names, number = self._names(task_id), _generation(generation)
        note = given.line("note", note)
        return self._mine(ReleaseClaim(*names, "", number, why, note, final, limited_ms))

    def _configured(self) -> dict[str, Any]:
        """Return what the repository's configuration says of this agent, as far as it says something."""
        file = configuration_file(self.location.repository)
        configuration = read_configuration(file)
        if "agents" not in configuration:
            return {}
        from coord.core.routing.router import rules_from
        from coord.core.tasks.agent_record import EFFICIENCY_MIN

        own = rules_from(configuration, file, {}).agents.get(self.caller.agent or self._me()[1])
        if own is None:
            return {}
        able = [name for name, value in own.capabilities.items() if value >= EFFICIENCY_MIN]
        return {
            "role": own.role,
            "has": able,
            "cannot": tuple(name for name in own.capabilities if name not in able),
            "enabled": own.enabled and own.capacity > 0,
        }

    def _names(self, task_id: str) -> tuple[str, str, str]:
        return self.tenant, self.project, check_id("task id", task_id)

    def _me(self) -> tuple[str, str]:
        """Return this session and the agent that counts on a track, as `ClaimNext` finds them."""
        try:
            session_info = self.call(GetSession(self.caller))
        except NotFound:
            if not self.caller.session:
                raise
            return self.caller.session, self.caller.agent or self.caller.session
        return session_info.session_id, session_info.agent or session_info.session_id

    def _mine(self, asked: RenewLease | ReleaseClaim) -> Any:
        """Ask about a claim of this session; which one that is, is found out in the same step."""
        return self.call(AsSession(self.caller, asked))


def _list_of_ids(task_ids: Iterable[str]) -> list[str]:
    """Return task ids, each once; no more than one step may hold."""
    names = list(dict.fromkeys([task_ids] if isinstance(task_ids, str) else task_ids))
    if not 0 < len(names) <= BATCH_TASKS:
        raise Invalid(f"{len(names)} tasks are named", hint=f"name 1 to {BATCH_TASKS}")
    return names


def _below(root: str, text: str) -> str:
    """Return a file named from the top of the repository as one named from anywhere."""
    kind, colon, rest = text.partition(":")
    if colon and kind in ("name", "project"):
        return text
    path = rest if colon and kind == "file" else text
    return f"file:{path}" if path.startswith("/") else f"file:{root}/{path}"


def _lease_ms(seconds: object) -> int:
    return given.milliseconds("lease", seconds, least_s=0.001)


def _generation(value: object) -> int:
    number = value.generation if isinstance(value, TaskGeneration) else value
    if type(number) is int and 0 <= number < 2**53:
        return number
    raise Invalid(f"{shown(value)} is not a generation", hint="use the one in the claim you were granted")
