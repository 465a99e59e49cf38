"""Add, claim, submit and inspect tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from coord.core.errors import ClaimLost, Invalid, NotFound
from coord.core.ids import TaskIdentifier, check_id, short_repr
from coord.core.limits import RETRIES_MAX
from coord.core.sessions.commands import FindSession, Heartbeat
from coord.host.progress import report_progress
from coord.sdk.client.connection import Connection
from coord.sdk.client.waiting import WAIT_S_MAX, wait_for_task, waiting_process
from coord.sdk.validation import arguments

# Each method imports its commands, so that a session that only locks does not pay for them.
if TYPE_CHECKING:
    from coord.core.plans.commands import (
        AddTasksReply,
        ClaimReply,
        NewTask,
        NextTask,
        QueueReply,
        TaskInfo,
        TaskList,
    )
    from coord.core.tasks import types
    from coord.core.tasks.commands import ReleaseClaim, RenewLease
    from coord.core.tasks.types import TaskGeneration

LEASE_S = 300.0
BATCH_TASKS = 250
PAGE = 1000
AGENTS_MAX = 1000
QUEUE_MAX = 100
COMPARED_MAX = 100
"""The number of new tasks that are compared with existing ones."""

ASSIGNED_S = 120.0
"""How long an assigned task is kept for its agent."""
ROUTING_MODES = ("advise", "prefer", "assign")

Progress = Callable[[int, int], None]
"""Called with the number of added tasks and the total."""


class TaskCalls(Connection):
    """The task methods of a client."""

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
        """Add a task, or update an existing one; the tasks it depends on must exist."""
        from coord.sdk.validation.tasks import new_task

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
        """Add tasks in order; with `from_root` their files are relative to the top of the repository.

        The reply names unfinished tasks that resemble one of the first 100 new ones.
        """
        from coord.core.plans.commands import AddTasks, AddTasksReply, FindSimilarTasks

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
            exclude = tuple(task.task_id for task in located)
            outcome.similar.extend(self.call(FindSimilarTasks(self.project, compared, exclude)))
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
        limit: int = 1,
        stop_if_deadlocked: bool = False,
        command_id: str = "",
    ) -> NextTask:
        """Claim the first task this agent may take; wait up to `wait_s` seconds (None: without limit).

        `limit` claims several tasks in one step; the reply lists the further ones in `more`. A step claims
        the first of several tasks whose files overlap, and ends at 64 locked files or a long reply. It does
        not wait if no task can become ready by itself (`done`, `deadlocked`). With `stop_if_deadlocked` the
        wait ends at once if others wait for what this session has claimed, and it for them.
        """
        from coord.core.plans.commands import ClaimNext
        from coord.sdk.validation.tasks import words

        if type(limit) is not int or not 0 < limit <= BATCH_TASKS:
            raise Invalid(f"invalid number of tasks: {short_repr(limit)}", hint=f"use 1 to {BATCH_TASKS}")
        if command_id and wait_s != 0:
            raise Invalid("a command id cannot be combined with waiting", hint="retry instead of waiting")
        configuration, file = self.configuration.tables, self.configuration.file
        own = self._agent_settings(configuration, file)
        mode, routing = _routing(configuration, self.caller.agent)
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
            limit=limit,
            mode=mode,
            routing=routing,
        )
        patience_ms = arguments.milliseconds("wait", WAIT_S_MAX if wait_s is None else wait_s, min_s=0)
        if patience_ms:
            waiter, leased = waiting_process(self)
            command = msgspec.structs.replace(command, wait_ms=patience_ms, waiter=waiter, leased=leased)
        return wait_for_task(self, command, wait_s, command_id, stop_if_deadlocked=stop_if_deadlocked)

    def assign_task(self, task_id: str, agent: str, *, for_s: float = ASSIGNED_S) -> TaskInfo:
        """Keep a task for an agent for some time, while the agent is live and has no other task."""
        from coord.core.plans.commands import AssignTask

        tenant, project, name = self._names(task_id)
        return self.call(
            AssignTask(
                caller=self.caller,
                tenant=tenant,
                project=project,
                task=name,
                agent=check_id("agent", agent),
                for_ms=arguments.milliseconds("time", for_s),
            )
        )

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
        """Claim a task by its id, with locks on its files; `force` takes it from its holder.

        A forced claim requires a reason, which is recorded.
        """
        from coord.core.plans.commands import ClaimNamed

        if force and not arguments.one_line("reason", reason):
            raise Invalid("force requires a reason", hint="say why the holder may lose the task")
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
        """Claim several tasks in one step; each one is granted or denied separately."""
        from coord.core.tasks.commands import ClaimTasks

        names = tuple((self.project, check_id("task id", name)) for name in _list_of_ids(task_ids))
        self.call(Heartbeat(self.caller))
        session, agent = self._session_and_agent()
        command = ClaimTasks(self.tenant, agent, session, _lease_ms(lease_s), names)
        return {name: reply for (_, name), reply in zip(names, self.call(command), strict=True)}

    def split_task(self, task_id: str, parts: int) -> TaskInfo:
        """Split a task into parts `ID::1` … that are claimed separately; it is done when they are."""
        from coord.core.plans.commands import SplitTask

        if type(parts) is not int or not 1 < parts <= BATCH_TASKS:
            raise Invalid(f"invalid number of parts: {short_repr(parts)}", hint=f"use 2 to {BATCH_TASKS}")
        return self.call(SplitTask(*self._names(task_id), parts))

    def renew_task(self, task_id: str, generation: int | TaskGeneration) -> types.RenewalResult:
        """Renew a claim and its locks."""
        from coord.core.tasks.commands import RenewLease

        report_progress(self._environ)
        names, number = self._names(task_id), _generation(generation)
        return self._call_as_session(RenewLease(*names, "", number))

    def held_generation(self, task_id: str) -> int:
        """Return the generation of this session's claim on a task; refuse if it has none."""
        from coord.core.tasks.types import ClaimState

        claim, session = self.task_state(task_id).claim, self._session_and_agent()[0]
        if claim is not None and claim.session_id == session:
            return claim.generation.generation
        if claim is None:
            raise ClaimLost(f"{task_id} is not claimed", hint=f"claim it first: coord task claim {task_id}")
        verb = "is held by" if claim.state is ClaimState.ACTIVE else "was last held by"
        raise ClaimLost(
            f"{task_id} {verb} {claim.agent_id or claim.session_id} ({claim.session_id}), "
            f"not by this session ({session})",
            hint=f"coord task lineage {task_id} shows who had it",
        )

    def submit_task(
        self,
        task_id: str,
        generation: int | TaskGeneration,
        result: Mapping[str, Any] | None = None,
        *,
        command_id: str = "",
    ) -> types.SubmissionResult:
        """Submit the result of a claim; accepted once, and only from the current holder."""
        from coord.sdk.client import results as transfer
        from coord.sdk.validation.results import to_json

        names, number = self._names(task_id), _generation(generation)
        data = to_json("result", {} if result is None else result)
        return transfer.submit(self.engine, names, self.caller, number, data, command_id)

    def submit_tasks(
        self, results: Iterable[tuple[str, int | TaskGeneration, Mapping[str, Any] | None]]
    ) -> list[types.SubmissionResult]:
        """Submit several results (task, generation, result) in few steps; each is accepted separately."""
        from coord.sdk.client import results as transfer
        from coord.sdk.validation.results import to_json

        submissions = [
            (self._names(task_id), _generation(generation), to_json("result", {} if data is None else data))
            for task_id, generation, data in results
        ]
        return transfer.submit_all(self.engine, self.caller, submissions)

    def task_result(self, task_id: str) -> bytes:
        """Return the accepted result of a task as JSON, of any size."""
        from coord.core.tasks.commands import GetResult
        from coord.sdk.client import results as transfer
        from coord.sdk.validation.results import to_json

        result, data = transfer.whole_result(self.engine, GetResult(*self._names(task_id)))
        return to_json("result", result.result_data) if data is None else data

    def fail_task(
        self, task_id: str, generation: int | TaskGeneration, *, note: str = "", final: bool = False
    ) -> types.ReleaseResult:
        """Report a failure; the task is retried after a delay, or never if `final`."""
        from coord.core.tasks.types import ReleaseReason

        return self._release(task_id, generation, ReleaseReason.ERROR, note, final=final)

    def release_task(
        self, task_id: str, generation: int | TaskGeneration, *, note: str = "", limited_s: float = 0.0
    ) -> types.ReleaseResult:
        """Release a claim without a failure; `limited_s` gives this agent no task for that time."""
        from coord.core.tasks.types import ReleaseReason

        limited_ms = arguments.milliseconds("pause", limited_s, min_s=0)
        return self._release(task_id, generation, ReleaseReason.VOLUNTARY, note, limited_ms=limited_ms)

    def reset_task(self, task_id: str, *, reason: str = "") -> types.ResetResult:
        """Reopen a task in any state; tasks that depend on it wait again."""
        from coord.core.tasks.commands import ResetTask

        return self.call(ResetTask(*self._names(task_id), arguments.one_line("reason", reason)))

    def skip_task(self, task_id: str, *, reason: str = "") -> TaskInfo:
        """Skip a task; tasks that depend on it become ready without it."""
        from coord.core.plans.commands import SkipTask

        return self.call(SkipTask(*self._names(task_id), arguments.one_line("reason", reason)))

    def retry_task(self, task_id: str) -> TaskInfo:
        """Make a task ready again that failed, has no retries left, or was skipped."""
        from coord.core.plans.commands import RetryTask

        return self.call(RetryTask(*self._names(task_id)))

    def show_task(self, task_id: str) -> TaskInfo:
        """Return a task with its state."""
        from coord.core.plans.commands import GetTasks

        names = (check_id("task id", task_id),)
        (found,) = self.call(GetTasks(self.project, names)).tasks
        return found

    def task_state(self, task_id: str) -> types.TaskState:
        """Return the claim, the accepted result and the rejected submissions of a task."""
        from coord.core.tasks.commands import GetTaskState

        return self.call(GetTaskState(*self._names(task_id)))

    def task_history(self, task_id: str) -> list[types.ClaimHistory]:
        """Return every ended generation, oldest first, with its rejected submissions."""
        from coord.core.tasks.commands import GetClaimHistory

        return self.call(GetClaimHistory(*self._names(task_id)))

    def task_list(self, *, state: str = "", track: str = "", type: str = "") -> list[TaskInfo]:  # noqa: A002
        """Return the tasks of this project by id; an empty filter matches every task."""
        pages = self.task_pages(state=state, track=track, type=type)
        return [task for page in pages for task in page.tasks]

    def task_pages(
        self,
        *,
        state: str = "",
        track: str = "",
        type: str = "",  # noqa: A002
        after: str = "",
        limit: int | None = None,
    ) -> Iterator[TaskList]:
        """Yield the tasks of this project page by page, up to `limit`, beginning behind the task `after`."""
        from coord.core.plans.commands import GetTasks, TaskList
        from coord.core.tasks.types import TaskStatus
        from coord.sdk.validation.tasks import word

        if state and state not in list(TaskStatus):
            raise Invalid(f"unknown state {short_repr(state)}", hint=f"use one of {', '.join(TaskStatus)}")
        wanted = {"state": state, "track": word("track", track), "type": word("type", type)}
        asked = [(name, value) for name, value in wanted.items() if value]
        left, more = arguments.limit(limit), True
        after = check_id("task id", after) if after else ""
        while more:
            read = PAGE if asked else min(left, PAGE)
            page: TaskList = self.call(GetTasks(self.project, after=after, limit=read))
            tasks = [
                task for task in page.tasks if all(getattr(task, name) == value for name, value in asked)
            ]
            after, more = page.after, page.more
            if len(tasks) > left:
                tasks, after, more = tasks[:left], tasks[left - 1].task_id, True
            yield TaskList(tasks, more, after)
            left -= len(tasks)
            more = more and left > 0

    def queue(self, *, limit: int = QUEUE_MAX) -> QueueReply:
        """Return the first tasks of this project in work, ready in the order of the queue, and waiting."""
        from coord.core.plans.commands import GetQueue

        return self.call(GetQueue(self.project, min(arguments.limit(limit), PAGE)))

    def set_track(self, track: str, agents_max: int) -> int:
        """Set how many agents may work on a track at once (default: 1)."""
        from coord.core.plans.commands import SetTrack
        from coord.sdk.validation.tasks import word

        if type(agents_max) is not int or not 0 < agents_max <= AGENTS_MAX:
            raise Invalid(
                f"invalid number of agents: {short_repr(agents_max)}", hint=f"use 1 to {AGENTS_MAX}"
            )
        if not word("track", track):
            raise Invalid("the track name is empty", hint="for example A")
        return self.call(SetTrack(self.project, track, agents_max))

    @property
    def project(self) -> str:
        """The project of this client's tasks."""
        return check_id("project id", self.caller.project)

    @property
    def remembered_project(self) -> str:
        """The project of this client if a plan named it for the repository; else empty."""
        return self.location.project if self.project == self.location.project else ""

    def use_project(self, project: str, *, remember: bool = False) -> None:
        """Use another project from now on; with `remember`, later clients in this repository do, too."""
        self.caller = msgspec.structs.replace(self.caller, project=check_id("project id", project))
        if remember and self.location.pinned and self.location.repository is not None:
            from coord.host.caller import project_name
            from coord.host.store_location import remember_project

            own = project == project_name(self.location.repository)
            self.location = remember_project(self.location, "" if own else project)

    @property
    def strict_ids(self) -> bool:
        """Whether task ids must follow the track grammar (`task_id_policy = "track"` in coord.toml)."""
        policy = self.configuration.tables.get("task_id_policy", "any")
        if policy not in ("any", "track"):
            raise Invalid(
                f"task_id_policy in coord.toml is {short_repr(policy)}", hint='use "any" or "track"'
            )
        return policy == "track"

    def located(self, task: NewTask, *, from_root: bool = False) -> NewTask:
        """Return a task with its files as the core names them: relative to the repository."""
        if not task.files:
            return task
        root = self.location.repository.root if from_root and self.location.repository is not None else None
        words = [_below(root, text) for text in task.files] if root else task.files
        files = self.read_words(words, names=False).texts
        of_host = [text for text in files if text in self.location.host_locks]
        if of_host:
            raise Invalid(
                f"{of_host[0]} belongs to this machine, tasks to a repository", hint="lock it separately"
            )
        return msgspec.structs.replace(task, files=files, exact=(), repository=self.location.repository_id)

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
        from coord.core.tasks.commands import ReleaseClaim

        names, number = self._names(task_id), _generation(generation)
        note = arguments.one_line("note", note)
        return self._call_as_session(ReleaseClaim(*names, "", number, why, note, final, limited_ms))

    def _agent_settings(self, configuration: Mapping[str, Any], file: str) -> dict[str, Any]:
        """Return the settings of this agent in coord.toml; empty if there are none."""
        if "agents" not in configuration:
            return {}
        from coord.core.routing.router import rules_from
        from coord.core.tasks.agent_record import EFFICIENCY_MIN

        own = rules_from(configuration, file, {}).agents.get(
            self.caller.agent or self._session_and_agent()[1]
        )
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

    def _session_and_agent(self) -> tuple[str, str]:
        """Return the ids of this session and of its agent, as `ClaimNext` determines them."""
        try:
            session_info = self.call(FindSession(self.caller))
        except NotFound:
            if not self.caller.session:
                raise
            return self.caller.session, self.caller.agent or self.caller.session
        return session_info.session_id, session_info.agent or session_info.session_id

    def _call_as_session(self, asked: RenewLease | ReleaseClaim) -> Any:
        """Run a claim command for this session, which the core identifies in the same step."""
        from coord.core.tasks.commands import AsSession

        return self.call(AsSession(self.caller, asked))


def _routing(configuration: Mapping[str, Any], agent: str) -> tuple[str, dict[str, Any]]:
    """Return the routing mode of coord.toml, and the tables that a claim of this agent needs for it."""
    table = configuration.get("routing", {})
    mode = table.get("mode", ROUTING_MODES[1]) if isinstance(table, dict) else ""
    if mode not in ROUTING_MODES:
        raise Invalid(
            f"routing.mode in coord.toml is {short_repr(mode)}", hint=f"use {', '.join(ROUTING_MODES)}"
        )
    if mode == ROUTING_MODES[0]:
        return mode, {}
    from coord.host.presets import agents_by_type

    presets = agents_by_type(configuration)
    tables = {"types": table.get("types", {}), "agents": configuration.get("agents", {})}
    routing: dict[str, Any] = {name: rows for name, rows in tables.items() if rows}
    if routing or mode == ROUTING_MODES[2] or any(agent in row["agents"] for row in presets.values()):
        routing["presets"] = {name: dict(row) for name, row in presets.items()}
    return mode, routing


def _list_of_ids(task_ids: Iterable[str]) -> list[str]:
    """Return distinct task ids, at most as many as one step takes."""
    names = list(dict.fromkeys([task_ids] if isinstance(task_ids, str) else task_ids))
    if not 0 < len(names) <= BATCH_TASKS:
        raise Invalid(f"{len(names)} tasks given", hint=f"pass 1 to {BATCH_TASKS}")
    return names


def _below(root: str, text: str) -> str:
    """Return a path relative to the repository as an absolute one."""
    kind, colon, rest = text.partition(":")
    if colon and kind in ("name", "project"):
        return text
    path = rest if colon and kind == "file" else text
    return f"file:{path}" if path.startswith("/") else f"file:{root}/{path}"


def _lease_ms(seconds: object) -> int:
    return arguments.milliseconds("lease", seconds, min_s=0.001)


def _generation(value: object) -> int:
    from coord.core.tasks.types import TaskGeneration

    number = value.generation if isinstance(value, TaskGeneration) else value
    if type(number) is int and 0 <= number < 2**53:
        return number
    raise Invalid(
        f"{short_repr(value)} is not a generation", hint="use the one in the claim you were granted"
    )
