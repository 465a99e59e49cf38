"""`coord work`: run a command for each task, one after the other, in a separate session."""

import os
import signal
from contextlib import ExitStack

import msgspec

from coord.core.errors import CoordError, Unreachable
from coord.host.caller import made_id
from coord.host.processes import describe
from coord.integrations.telemetry.setup import RESOURCE, with_session
from coord.integrations.telemetry.switch import variables_of_worker
from coord.sdk.brief.subagent import subagent_context
from coord.sdk.client.client import Client
from coord.sdk.client.open import CONNECT_TIMEOUT_S
from coord.sdk.scheduler import Scheduler
from coord.sdk.worker.work import GiveBack, Work
from coord.sdk.worker.worker import Worker, WorkerEvent, WorkerReport, WorkOutcome
from coord.transports import exit_codes
from coord.transports.cli import signals
from coord.transports.cli.args import Options
from coord.transports.cli.connect import connected
from coord.transports.cli.handlers.tasks import NOTHING, ChooseArgs
from coord.transports.cli.output import Answer, failed
from coord.transports.cli.process import NotStarted
from coord.transports.cli.work.budget import budget_check
from coord.transports.cli.work.progress import Screen
from coord.transports.cli.work.reaper import adopting_orphans
from coord.transports.cli.work.task import LIMITED, TaskCommand

HUNG_LOOK_S = 60.0
"""How often a worker looks for other workers that hang."""
STOPPING = (*signals.ENDING, signal.SIGINT)


class WorkArgs(ChooseArgs, frozen=True):
    """The arguments of `coord work`."""

    once: bool
    keep: bool
    wait_s: float | None
    no_wait: bool
    grace_s: float
    limited_s: float
    timeout_s: float | None
    time_limit_s: float
    silence_limit_s: float | None
    need_result: bool
    command: list[str]


def work(options: Options, args: WorkArgs) -> Answer:
    """Work on tasks until none is left."""
    screen = Screen()
    with ExitStack() as opened:
        client = _connect(opened, options, args, screen)
        _become_worker(client, options)
        with client.session(bin=args.command[0][:100], runner=True):
            return _work(client, options, args, screen)


def _connect(opened: ExitStack, options: Options, args: WorkArgs, screen: Screen) -> Client:
    """Connect; a worker without a time limit waits for its store until it is stopped."""
    if args.once or args.no_wait or args.wait_s is not None:
        return opened.enter_context(connected(options, timeout=args.wait_s))
    said = ""
    while True:
        try:
            return opened.enter_context(connected(options, timeout=CONNECT_TIMEOUT_S))
        except Unreachable as error:
            if error.message != said:
                said = error.message
                screen.on_event(WorkerEvent("waiting", note=said))


def _work(client: Client, options: Options, args: WorkArgs, screen: Screen) -> Answer:
    worker = Worker(
        client,
        types=args.types,
        tracks=args.tracks,
        roles=args.roles,
        has=args.has,
        lease_s=args.lease_s,
        lock_files=not args.no_locks,
        grace_s=args.grace_s,
        time_limit_s=args.time_limit_s or None,
        on_event=screen.on_event,
    )
    command = TaskCommand(
        args.command,
        screen,
        environ := _environment(client, options),
        grace_s=args.grace_s,
        limited_s=args.limited_s,
        timeout_s=args.timeout_s,
        silence_limit_s=args.silence_limit_s,
        needs_result=args.need_result,
        context_of=lambda task: subagent_context(client, task.task, environ["COORD_SESSION_ID"]),
        over_budget=budget_check(client),
    )
    received: list[int] = []
    broken: list[NotStarted] = []

    def stop(signum: int) -> None:
        received.append(signum)
        worker.stop()
        if len(received) > 1 and command.child is not None:  # a second signal means now
            command.child.send(signal.SIGKILL)

    def run(task: Work) -> dict[str, object]:
        try:
            return command(task)
        except NotStarted as error:  # it would fail for every task
            broken.append(error)
            worker.stop()
            raise GiveBack(str(error)) from error

    with (
        adopting_orphans(),
        signals.asking_nobody(),
        signals.handling(STOPPING, stop),
        Scheduler() as scheduler,
    ):
        scheduler.register("hung", HUNG_LOOK_S, client.end_hung)
        worked = worker.run(run, once=args.once, keep=args.keep, wait_s=0.0 if args.no_wait else args.wait_s)
    if broken:
        return failed(broken[0].failure("the task is released; check the spelling of the command"))
    return _answer(worked, received)


def _become_worker(client: Client, options: Options) -> None:
    """Give the client a separate session, which lives in this process as a child of the caller's session.

    A session is one owner: locks would not keep two workers of the same session apart.
    """
    caller = client.caller
    process = describe(os.getpid())
    host = made_id(os.uname().nodename, "host")[:60]
    made = f"work-{host}-{os.getpid()}-{process.start if process else 0}"
    parent = options.parent
    if not parent and not options.session:
        try:
            parent = client.show().session_id
        except CoordError:
            parent = caller.session  # not registered yet
    client.caller = msgspec.structs.replace(
        caller, session=options.session or made, parent=parent, process=process
    )


def _environment(client: Client, options: Options) -> dict[str, str]:
    """Return the environment of commands, in which `coord` acts as this session."""
    names = {
        "COORD_SESSION_ID": client.show().session_id,
        "COORD_AGENT": client.caller.agent,
        "COORD_ROLE": client.caller.role,
        "COORD_PROJECT": client.project,
        "COORD_TENANT": client.tenant,
        "COORD_URL": options.url,
    }
    names[RESOURCE] = with_session(os.environ, names["COORD_SESSION_ID"])
    names |= variables_of_worker(client, os.environ)
    return {**os.environ, **{name: value for name, value in names.items() if value}}


def _answer(worked: WorkerReport, received: list[int]) -> Answer:
    fields = {"ended_by": worked.ended_by, "tasks": worked.endings, "waiting_for": worked.waiting_for}
    counts = ", ".join(f"{count} {word.replace('_', ' ')}" for word, count in worked.endings.items())
    failure = _failure(worked, received)
    line = f"{failure.message if failure else 'Finished'}: {counts or 'no task was claimed'}"
    return Answer(fields, line, failure=failure)


def _failure(worked: WorkerReport, received: list[int]) -> exit_codes.Failure | None:
    """Return why the run failed; None if it did not."""
    if received:
        name = signal.Signals(received[0]).name
        return exit_codes.Failure(128 + received[0], "interrupted", f"stopped by {name}")
    if worked.ended_by == "once":
        return _failure_of(next(iter(worked.endings)))
    if worked.ended_by == "done":
        return None
    message, hint = NOTHING[next(each for each in NOTHING if each.value == worked.ended_by)]
    exit_code = exit_codes.TIMED_OUT if worked.ended_by == "blocked" else exit_codes.REFUSED
    detail = f"{message}: {'; '.join(worked.waiting_for)}" if worked.waiting_for else message
    return exit_codes.Failure(exit_code, worked.ended_by, detail, hint)


def _failure_of(ending: str) -> exit_codes.Failure | None:
    """Return why the single task failed; None if its result was submitted."""
    if ending == WorkOutcome.SUBMITTED:
        return None
    exit_code = LIMITED if ending == WorkOutcome.LIMITED else exit_codes.REFUSED
    words = ending.replace("_", " ")
    return exit_codes.Failure(exit_code, ending, f"the task was {words}", "see coord task lineage")
