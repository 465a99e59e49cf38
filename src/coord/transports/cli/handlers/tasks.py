"""Add, claim, submit and inspect tasks."""

import sys
import time
from collections.abc import Sequence
from typing import Any

from coord.core.errors import Invalid, NotFound
from coord.core.ids import part_ids
from coord.core.locks.commands import LockInfo
from coord.core.plans.commands import AddTasksReply, NextTask, Runnable, TaskInfo
from coord.core.tasks.types import ClaimReason, SubmissionReason, TaskClaim, TaskStatus
from coord.sdk.client.client import Client
from coord.transports import arguments, exit_codes
from coord.transports.cli.args import Args, Options
from coord.transports.cli.connect import connected
from coord.transports.cli.output import Answer, fields_of, form, is_terminal, safe_json, timestamp
from coord.transports.cli.waiting.line import showing_wait

COLUMNS = ("task_id", "state", "track", "priority", "agent", "depends_on", "description")
CLAIMS = ("task_id", "generation", "session_id", "expires_at")
WATCH_S = 60.0
"""The longest single wait for new events."""
FINISHED = (TaskStatus.DONE, TaskStatus.SKIPPED, TaskStatus.FAILED, TaskStatus.ERRORED)
ENDINGS = ("task.completed", "task.merged", "task.skipped", "task.failed", "task.errored")
NOTHING = {
    Runnable.DONE: ("All tasks are done", "add more with coord task add or coord plan load"),
    Runnable.BLOCKED: ("No task is ready", "pass --wait to wait for one"),
    Runnable.DEADLOCKED: ("Every remaining task is stuck", "retry or skip the failed tasks"),
    Runnable.DENIED: (
        "The claim was denied",
        "see coord agent list and coord limits show",
    ),
    Runnable.DRAINING: ("Agents get no more tasks", "end your session; coord resume lets all go on"),
}
CLAIM_HINTS = {
    ClaimReason.DENIED_LOCKED: "ask the holder (coord send), or claim it with --no-locks",
    **{reason: "see coord limits show" for reason in ClaimReason if reason.value.startswith("DENIED_LIMIT")},
}


class TaskArgs(Args, frozen=True):
    """A task."""

    task: str


class ClaimedTaskArgs(TaskArgs, frozen=True):
    """A task and the generation of its claim; None stands for the claim of this session."""

    generation: int | None


def generation_of(client: Client, args: ClaimedTaskArgs) -> int:
    """Return the generation that the user states, or that of this session's claim."""
    return client.held_generation(args.task) if args.generation is None else args.generation


class ChooseArgs(Args, frozen=True):
    """Which tasks to take: the flags of `task next` and `work`."""

    types: Sequence[str]
    tracks: Sequence[str]
    roles: Sequence[str] | None
    has: Sequence[str]
    lease_s: float
    no_locks: bool


class AddArgs(TaskArgs, frozen=True):
    """The arguments of `coord task add`."""

    description: str
    type: str
    priority: int
    files: Sequence[str]
    depends_on: Sequence[str]
    requirements: Any
    deadline: str | None
    estimate_s: float
    for_role: str
    track: str | None
    needs: Sequence[str]
    retries: int


def add(client: Client, args: AddArgs) -> Answer:
    """Add a task."""
    reply = client.add_task(
        args.task,
        description=args.description,
        type=args.type,
        priority=args.priority,
        files=[arguments.resource(name) if ":" in name else f"file:{name}" for name in args.files],
        depends_on=args.depends_on,
        requirements=args.requirements,
        deadline=_deadline(client, args.deadline),
        estimate_s=args.estimate_s,
        role=args.for_role,
        track=args.track,
        needs=args.needs,
        retries_max=args.retries,
    )
    word = "added" if reply.added else "changed" if reply.changed else "unchanged"
    task = client.show_task(args.task)
    fields = {"task": fields_of(task), **fields_of(reply)}
    line = f"{args.task} {word}: {task.state}{warning(reply)}"
    return Answer(fields, line, rows_of([task]), COLUMNS)


def warning(reply: AddTasksReply) -> str:
    """Return a warning about similar tasks, or an empty text."""
    return f"; possible duplicates: {'; '.join(map(str, reply.similar))}" if reply.similar else ""


class NextArgs(ChooseArgs, frozen=True):
    """The arguments of `coord task next`."""

    wait_s: float
    no_wait: bool
    most: int
    command_id: str


def next_(client: Client, args: NextArgs) -> Answer:
    """Claim the next task."""
    with showing_wait(client, "a task", args.wait_s, _describe_wait):
        reply = client.next_task(
            types=args.types,
            tracks=args.tracks,
            roles=args.roles,
            has=args.has,
            lease_s=args.lease_s,
            lock_files=not args.no_locks,
            wait_s=args.wait_s,
            limit=args.most,
            stop_if_deadlocked=True,
            command_id=args.command_id,
        )
    if not reply.ok:
        return _nothing(reply, args.wait_s)
    taken = [(each.task, each.claim, each.locks) for each in (reply, *reply.more) if each.task and each.claim]
    fields, *more = (
        {"task": fields_of(task), "claim": claim_fields(claim), "locks": fields_of(locks)}
        for task, claim, locks in taken
    )
    if args.most > 1:
        fields["more"] = more
    note = _salvaged(client, [lock for _, _, locks in taken for lock in locks], fields)
    lines = [f"Claimed {task.task_id}, generation {claim.generation.generation}" for task, claim, _ in taken]
    return Answer(fields, "; ".join(lines) + note, rows_of([task for task, _, _ in taken]), COLUMNS)


def _describe_wait(reply: NextTask, _age_s: float) -> str:
    return "; ".join(reply.waiting_for)


def _nothing(reply: NextTask, waited_s: float) -> Answer:
    if reply.lost_to:
        return _lost(reply)
    message, hint = NOTHING[reply.outcome]
    exit_code = exit_codes.TIMED_OUT if waited_s and reply.outcome is Runnable.BLOCKED else exit_codes.REFUSED
    line = f"{message}: {'; '.join(reply.waiting_for)}" if reply.waiting_for else message
    fields = {"task": None, "waiting_for": reply.waiting_for}
    return Answer(fields, line, failure=exit_codes.Failure(exit_code, reply.outcome.value, line, hint))


def _lost(reply: NextTask) -> Answer:
    """Return the answer to a wait that a deadlock ended."""
    from coord.core.locks.deadlock import deadlock_text, loss_text, next_command

    message, hint = loss_text(reply.lost, reply.lost_to, task=True), next_command(reply.lost, task=True)
    fields = {"task": None, "waiting_for": reply.waiting_for, "lost": reply.lost, "lost_to": reply.lost_to}
    failure = exit_codes.Failure(exit_codes.REFUSED, "deadlock", message, f"run: {hint}")
    return Answer(fields, deadlock_text(reply.lost, reply.lost_to, reply.lost, task=True), failure=failure)


class ClaimArgs(Args, frozen=True):
    """The arguments of `coord task claim`."""

    tasks: list[str]
    lease_s: float
    no_locks: bool
    force: bool
    reason: str
    command_id: str


def claim(client: Client, args: ClaimArgs) -> Answer:
    """Claim a task, or several."""
    if len(args.tasks) > 1:
        return _claim_several(client, args)
    (task,) = args.tasks
    reply = client.claim_task(
        task,
        lease_s=args.lease_s,
        lock_files=not args.no_locks,
        force=args.force,
        reason=args.reason,
        command_id=args.command_id,
    )
    if reply.claim is not None:
        number = reply.claim.generation.generation
        fields = {"claim": claim_fields(reply.claim), "locks": fields_of(reply.locks)}
        note = _salvaged(client, reply.locks, fields)
        return Answer(fields, f"Claimed {task}, generation {number}{note}")
    note = reply.detail or (f"held by {reply.current_holder}" if reply.current_holder else "")
    hint = CLAIM_HINTS.get(reply.reason, f"see coord task show {task}")
    if reply.reason is ClaimReason.DENIED_ACTIVE_CLAIM and not reply.detail:
        message = f"{task} is taken by {reply.current_holder}{_until(client, task)}"
        failure = exit_codes.Failure(exit_codes.REFUSED, reply.reason.lower(), message, hint)
        fields = {"reason": reply.reason.value, "holder": reply.current_holder}
        return Answer(fields, f"{message}; {hint}", failure=failure)
    return _refused(reply.reason.value, {"holder": reply.current_holder}, note, hint)


def _until(client: Client, task_id: str) -> str:
    """Return until when a task is claimed, in local time: ` until 08:00`."""
    claim = client.task_state(task_id).claim
    return "" if claim is None else time.strftime(" until %H:%M", time.localtime(claim.expires_ms / 1000))


def _salvaged(client: Client, locks: Sequence[LockInfo], fields: dict[str, Any]) -> str:
    """Salvage unfinished changes of an earlier holder in the task's files; return the warnings."""
    if not locks:
        return ""
    from coord.integrations.git.salvage.rollback import salvage_first

    warnings = salvage_first(client, locks)
    if warnings:
        fields["warnings"] = warnings
    return "".join(f"; {warning}" for warning in warnings)


def _claim_several(client: Client, args: ClaimArgs) -> Answer:
    if args.force:
        raise Invalid("--force takes one task", hint="claim them one after the other")
    if args.command_id:
        raise Invalid("--command-id takes one task", hint="claim them one after the other")
    replies = client.claim_tasks(args.tasks, lease_s=args.lease_s)
    claims = [claim_fields(reply.claim) for reply in replies.values() if reply.claim is not None]
    denied: list[dict[str, Any]] = [
        {
            "task_id": name,
            "reason": reply.reason.value,
            "holder": reply.current_holder,
            "detail": reply.detail,
        }
        for name, reply in replies.items()
        if reply.claim is None
    ]
    if not claims:
        return _refused(denied[0]["reason"], {"denied": denied}, "no task was granted", "see coord task list")
    note = [f"Claimed {claim['task_id']}, generation {claim['generation']}" for claim in claims]
    note += [f"{each['task_id']}: {each['reason'].lower().replace('_', ' ')}" for each in denied]
    return Answer({"claims": claims, "denied": denied}, "; ".join(note), claims, CLAIMS)


class AssignArgs(TaskArgs, frozen=True):
    """The arguments of `coord task assign`."""

    agent: str
    for_s: float


def assign(client: Client, args: AssignArgs) -> Answer:
    """Keep a task for an agent."""
    task = client.assign_task(args.task, args.agent, for_s=args.for_s)
    line = f"{args.task} is kept for {args.agent} for {arguments.span(args.for_s)}"
    return Answer({"task": fields_of(task)}, line, rows_of([task]), COLUMNS)


class SplitArgs(TaskArgs, frozen=True):
    """The arguments of `coord task split`."""

    parts: int


def split(client: Client, args: SplitArgs) -> Answer:
    """Split a task into subtasks."""
    task = client.split_task(args.task, args.parts)
    parts = list(part_ids(args.task, task.parts))
    line = f"Split {args.task} into {parts[0]} … {parts[-1]}"
    return Answer({"task": fields_of(task), "parts": parts}, line, rows_of([task]), COLUMNS)


def renew(client: Client, args: ClaimedTaskArgs) -> Answer:
    """Renew a claim."""
    reply = client.renew_task(args.task, generation_of(client, args))
    if not reply.success:
        return _refused(
            reply.reason.value, {}, reply.detail, "the claim is lost; stop, and run coord task next"
        )

    from coord.transports.cli.table import ago

    expires_at = timestamp(reply.new_expiry_ms)
    return Answer({"expires_at": expires_at}, f"Renewed {args.task}, expires {ago(expires_at or '')}")


class SubmitArgs(ClaimedTaskArgs, frozen=True):
    """The arguments of `coord task submit`."""

    result: Any
    command_id: str


_NEXT_OF_REJECTED = {
    SubmissionReason.NO_CLAIM: "claim it first: coord task claim {task}",
    SubmissionReason.LOCK_LOST: "start again from the present files: coord task claim {task}",
    SubmissionReason.FUTURE_GENERATION: "coord task show {task} prints its generation",
}


def submit(client: Client, args: SubmitArgs) -> Answer:
    """Submit a result."""
    number = generation_of(client, args)
    reply = client.submit_task(args.task, number, args.result, command_id=args.command_id)
    fields = {
        "accepted": reply.accepted,
        "work_product_ref": reply.work_product_ref,
        "current_generation": reply.current_generation,
        "work_lost": reply.work_lost,
    }
    if not reply.accepted:
        hint = _NEXT_OF_REJECTED.get(reply.reason, "coord task lineage shows whose result was accepted")
        return _refused(reply.reason.value, fields, reply.detail, hint.format(task=args.task))
    return Answer(fields, f"{args.task} is done ✓ {reply.work_product_ref}")


class DoneArgs(TaskArgs, frozen=True):
    """The arguments of `coord task done`."""

    result: Any


def done(client: Client, args: DoneArgs) -> Answer:
    """Finish the task that this session holds."""
    return submit(client, SubmitArgs(task=args.task, generation=None, result=args.result, command_id=""))


class FailArgs(ClaimedTaskArgs, frozen=True):
    """The arguments of `coord task fail`."""

    note: str
    final: bool


def fail(client: Client, args: FailArgs) -> Answer:
    """Report a failure."""
    number = generation_of(client, args)
    reply = client.fail_task(args.task, number, note=args.note, final=args.final)
    return _released(client, args.task, reply)


class ReleaseArgs(ClaimedTaskArgs, frozen=True):
    """The arguments of `coord task release`."""

    note: str
    limited_s: float


def release(client: Client, args: ReleaseArgs) -> Answer:
    """Release a claim."""
    number = generation_of(client, args)
    reply = client.release_task(args.task, number, note=args.note, limited_s=args.limited_s)
    return _released(client, args.task, reply)


def _released(client: Client, task_id: str, reply: Any) -> Answer:
    if not reply.success:
        hint = "this session has no claim on it with that generation"
        return _refused(reply.reason.value, {}, reply.detail, hint)
    state = client.task_state(task_id).state.value
    return Answer({"task_id": task_id, "state": state}, f"{task_id} is now {state}")


class ResetArgs(TaskArgs, frozen=True):
    """The arguments of `coord task reset`."""

    reason: str


def reset(client: Client, args: ResetArgs) -> Answer:
    """Reopen a task."""
    reply = client.reset_task(args.task, reason=args.reason)
    if not reply.success:
        raise NotFound(f"task {args.task} does not exist", hint="see coord task list")
    state = client.task_state(args.task).state.value
    fields = {"task_id": args.task, "state": state, "generation": reply.generation}
    return Answer(fields, f"Reopened {args.task}: {state}")


class SkipArgs(TaskArgs, frozen=True):
    """The arguments of `coord task skip`."""

    reason: str


def skip(client: Client, args: SkipArgs) -> Answer:
    """Skip a task."""
    return _shown(client.skip_task(args.task, reason=args.reason))


def retry(client: Client, args: TaskArgs) -> Answer:
    """Retry a task."""
    return _shown(client.retry_task(args.task))


class ListArgs(Args, frozen=True):
    """The arguments of `coord task list`."""

    state: str
    track: str
    type: str
    limit: int | None
    after: str


def list_(client: Client, args: ListArgs) -> Answer | int:
    """List the tasks of this project."""
    from coord.transports.cli.listing import Listing, Page, show_pages  # other commands do not need it

    pages = client.task_pages(
        state=args.state, track=args.track, type=args.type, after=args.after, limit=args.limit
    )
    listing = Listing("tasks", "task", COLUMNS, rows_of, in_project(client))
    return show_pages(listing, (Page(page.tasks, page.after) for page in pages))


def in_project(client: Client) -> str:
    """Return the project as a remark, if a plan named it and it is not the repository's name."""
    return f" in project {client.remembered_project}" if client.remembered_project else ""


def watch(options: Options, args: TaskArgs) -> Answer | int:
    """Print task events until interrupted or until the named task is finished."""
    from coord.sdk.reports.activity import event_filter, follow
    from coord.transports.cli.handlers.records import print_happenings

    with connected(options, create=False) as client:
        as_json = form() == "json"
        log = client.log
        log.load(())
        after = log.seen.offset  # read before the task, so that no event is missed
        if args.task and client.task_state(args.task).state in FINISHED:
            from coord.transports.cli.handlers.task_history import show

            return show(client, args)
        for logged_events in follow(client, event_filter(client, op="task"), after, WATCH_S):
            news = [each for each in logged_events if _concerns(each.details, client.project, args.task)]
            if not print_happenings(news, as_json=as_json):
                return exit_codes.OK
            if args.task and any(each.event in ENDINGS for each in news):
                return exit_codes.OK
        raise AssertionError("it ends by a signal")


def _concerns(details: dict[str, Any], project: str, task_id: str) -> bool:
    return details.get("project") == project and task_id in ("", details.get("task"))


def claim_fields(claim: TaskClaim) -> dict[str, Any]:
    """Return a claim as plain data; its generation is a number."""
    return {
        "task_id": claim.task_id,
        "generation": claim.generation.generation,
        "session_id": claim.session_id,
        "agent_id": claim.agent_id,
        "state": claim.state.value,
        "claimed_at": timestamp(claim.generation.claimed_ms),
        "lease_s": claim.generation.lease_duration,
        "expires_at": timestamp(claim.expires_ms),
    }


def rows_of(tasks: Sequence[TaskInfo]) -> list[dict[str, Any]]:
    """Return tasks as table rows; the state of a split task counts its subtasks."""
    return [{**fields_of(task), "state": state_of(task)} for task in tasks]


def state_of(task: TaskInfo) -> str:
    """Return the state of a task, with the count of its subtasks."""
    return f"{task.state} {task.parts_done}/{task.parts}" if task.parts else task.state


def _shown(task: TaskInfo) -> Answer:
    return Answer({"task": fields_of(task)}, f"{task.task_id} is {task.state}", rows_of([task]), COLUMNS)


def _refused(reason: str, fields: dict[str, Any], note: str, hint: str) -> Answer:
    message = f"Refused: {reason.lower().replace('_', ' ')}{f' — {note}' if note else ''}"
    failure = exit_codes.Failure(exit_codes.REFUSED, reason.lower(), message, hint)
    return Answer({"reason": reason, **fields}, f"{message}; {hint}", failure=failure)


def _deadline(client: Client, text: str | None) -> object:
    """Return a deadline that was typed as a duration from now or as a time."""
    if text is None:
        return None
    try:
        seconds = arguments.duration(text)
    except Invalid:
        return text
    return client.database.log(client.tenant).now() + round(seconds * 1000)


def result(client: Client, args: TaskArgs) -> str:
    """Print a result as it was submitted."""
    text = client.task_result(args.task).decode()
    return (safe_json(text) if is_terminal(sys.stdout) else text) + "\n"
