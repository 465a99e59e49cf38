"""`coord.Worker`: claims task after task, keeps each claim while a function works on it, and submits.

    next → renew in the background, run the function → submit, fail or release → next

The worker submits nothing under a claim that is lost or that the local clock no longer trusts; the generation
would reject it anyway. While the store cannot be reached, the worker waits.
"""

import os
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from coord.core.errors import CoordError, Invalid, LimitReached
from coord.core.plans.commands import NextTask, Runnable
from coord.core.tasks.types import SubmissionReason
from coord.sdk.client.client import Client
from coord.sdk.client.lease import RETRY_S, TRANSIENT, clock
from coord.sdk.client.tasks import LEASE_S
from coord.sdk.client.waiting import POLL_S
from coord.sdk.validation import arguments
from coord.sdk.worker.work import (
    LOOK_S,
    CannotBeDone,
    GiveBack,
    RateLimited,
    Work,
    WorkFailed,
    fit_one_line,
)

GRACE_S = 10.0
RELEASE_RETRY_S = 5.0
"""How long a release is retried; after that the lease expires."""
RETRY_S_MAX = 5.0

Result = Mapping[str, Any] | None
Handle = Callable[[Work], Result]
AsyncHandle = Callable[[Work], Awaitable[Result]]


class WorkOutcome(StrEnum):
    """How a task ended that a worker claimed."""

    SUBMITTED = "submitted"
    FAILED = "failed"
    LIMITED = "limited"
    GIVEN_BACK = "given_back"
    LOST = "lost"


class WorkerEvent(NamedTuple):
    """A report of a worker: `waiting`, `claimed`, `progress`, or the outcome of a task."""

    event: str
    task_id: str = ""
    generation: int = 0
    note: str = ""


class WorkerReport(NamedTuple):
    """How a run ended: `done`, `blocked`, `deadlocked` or `denied` as the queue says, `once` or `stopped`."""

    ended_by: str
    endings: Mapping[str, int]
    waiting_for: list[str]


class Worker:
    """Works on the tasks of a client's project, one at a time, in the name of its session.

    To work on several tasks at once, run several workers with a client each: locks of one session do not
    exclude each other.
    """

    def __init__(
        self,
        client: Client,
        *,
        types: Iterable[str] = (),
        tracks: Iterable[str] = (),
        roles: Iterable[str] | None = None,
        has: Iterable[str] = (),
        lease_s: float = LEASE_S,
        lock_files: bool = True,
        grace_s: float = GRACE_S,
        time_limit_s: float | None = None,
        on_event: Callable[[WorkerEvent], None] | None = None,
    ) -> None:
        """`time_limit_s`: a task fails if its function reports no progress for this time."""
        arguments.milliseconds("grace", grace_s, min_s=0)
        if time_limit_s is not None:
            arguments.milliseconds("time limit", time_limit_s, min_s=0.1)
        self._time_limit_s = time_limit_s
        self._client = client
        self._choice = {
            "types": tuple(types),
            "tracks": tuple(tracks),
            "roles": None if roles is None else tuple(roles),
            "has": tuple(has),
            "lease_s": lease_s,
            "lock_files": lock_files,
        }
        self._grace_s = grace_s
        self._on_event = on_event or (lambda _step: None)
        self._stopping = threading.Event()
        self._connected = False
        self._last_reasons: list[str] = []
        self._endings: Counter[str] = Counter()

    def stop(self) -> None:
        """Claim no more tasks; a running function sees it in `work.over`. Safe to call from any thread."""
        self._stopping.set()

    def run(
        self, handle: Handle, *, once: bool = False, keep: bool = False, wait_s: float | None = None
    ) -> WorkerReport:
        """Work until no task can become ready by itself, `wait_s` pass without a task, or `stop` is called.

        `once` ends after one task; `keep` stays when all is done, for tasks that may be added.
        """
        if wait_s is not None:
            arguments.milliseconds("wait", wait_s, min_s=0)
        while True:
            work = self._next(wait_s, keep=keep)
            if not isinstance(work, Work):
                return work
            self._carry_out(work, handle)
            if once:
                return self._report_run("once")

    async def run_async(
        self, handle: AsyncHandle, *, once: bool = False, keep: bool = False, wait_s: float | None = None
    ) -> WorkerReport:
        """Run a coroutine function like `run`; it is cancelled when its claim is lost."""
        from coord.sdk.worker.async_worker import run_on_loop

        return await run_on_loop(self, handle, once=once, keep=keep, wait_s=wait_s)

    def _next(self, wait_s: float | None, *, keep: bool) -> "Work | WorkerReport":
        """Claim the next task and wait for one; or return why there is none."""
        deadline = None if wait_s is None else clock() + wait_s
        store = self._client.log
        command_id, asked, backoff_s = os.urandom(16).hex(), clock(), RETRY_S
        while not self._stopping.is_set():
            seen = store.seen.offset  # read before the call: a later change ends the wait at once
            late = deadline is not None and clock() >= deadline
            try:
                reply = self._client.next_task(**self._choice, command_id=command_id)  # type: ignore[arg-type]
            except TRANSIENT as error:
                if late or not self._connected:
                    raise
                self._wait_for([error.message])
                self._stopping.wait(backoff_s)
                backoff_s = min(2 * backoff_s, RETRY_S_MAX)
                continue
            self._connected = True
            if reply.ok:
                return self._begin(reply, asked)
            stays = reply.outcome in (Runnable.BLOCKED, Runnable.DENIED) or (
                keep and reply.outcome is not Runnable.DRAINING
            )
            if late or not stays:
                return self._report_run(reply.outcome.value, reply.waiting_for)
            self._wait_for(reply.waiting_for or [reply.outcome.value])
            self._nap(store, seen, deadline)
            command_id, asked, backoff_s = os.urandom(16).hex(), clock(), RETRY_S
        return self._report_run("stopped")

    def _nap(self, store: Any, seen: int, deadline: float | None) -> None:
        """Wait until the store changes, at most `POLL_S`."""
        until = clock() + POLL_S if deadline is None else min(deadline, clock() + POLL_S)
        try:
            while not self._stopping.is_set() and (left := until - clock()) > 0:
                if store.wait(seen, min(left, LOOK_S)):
                    return
        except TRANSIENT:
            self._stopping.wait(RETRY_S)

    def _wait_for(self, reasons: list[str]) -> None:
        if reasons != self._last_reasons:
            self._last_reasons = reasons
            self._on_event(WorkerEvent("waiting", note="; ".join(reasons)))

    def _begin(self, reply: NextTask, asked: float) -> Work:
        assert reply.task is not None, "a task was granted"
        assert reply.claim is not None, "it comes with its claim"
        names = reply.task.task_id, reply.claim.generation.generation
        self._last_reasons = []
        work = Work(
            self._client,
            reply,
            asked=asked,
            grace_s=self._grace_s,
            stopping=self._stopping,
            time_limit_s=self._time_limit_s,
            on_progress=lambda phase: self._on_event(WorkerEvent("progress", *names, phase)),
        )
        self._on_event(WorkerEvent("claimed", *names, reply.task.description))
        return work

    def _carry_out(self, work: Work, handle: Handle) -> None:
        """Run the function and report its outcome to the store."""
        try:
            outcome = self._result_of(work, handle)
        except CoordError:
            raise
        except BaseException:  # the process is ending: release the claim at once
            self._end(work, self._release(work, GiveBack("the worker was interrupted")))
            raise
        self._end(work, outcome)

    def _end(self, work: Work, outcome: tuple[WorkOutcome, str]) -> None:
        end_reason, note = outcome
        self._endings[end_reason.value] += 1
        self._on_event(WorkerEvent(end_reason.value, work.task_id, work.generation, note))

    def _result_of(self, work: Work, handle: Handle) -> tuple[WorkOutcome, str]:
        try:
            try:
                result = handle(work)
            finally:
                work.end()
        except GiveBack as error:
            return self._release(work, error)
        except WorkFailed as error:
            return self._fail(work, str(error), final=isinstance(error, CannotBeDone))
        except Exception as error:  # noqa: BLE001 - any exception is a failure of the task
            return self._fail(work, f"{type(error).__name__}: {error}")
        return self._submit(work, {} if result is None else result)

    def _submit(self, work: Work, result: Mapping[str, Any]) -> tuple[WorkOutcome, str]:
        """Submit the result, with retries for one lease; the generation decides if it still counts."""
        if work.lost:
            return WorkOutcome.LOST, work.why_lost
        command_id = os.urandom(16).hex()
        names = work.task_id, work.generation
        try:
            reply = self._call_with_retries(
                lambda: self._client.submit_task(*names, result, command_id=command_id), work.lease_s
            )
        except (Invalid, LimitReached) as error:
            return self._fail(work, f"the result cannot be submitted: {error.message}")
        except TRANSIENT as error:
            return WorkOutcome.LOST, f"the result could not be submitted: {error.message}"
        if reply.reason is SubmissionReason.DENIED_LIMIT_RESULT_SIZE:
            return self._fail(work, f"the result cannot be submitted: {reply.detail}")
        if not reply.accepted:
            return WorkOutcome.LOST, f"the result was refused: {reply.reason.value}"
        return WorkOutcome.SUBMITTED, reply.work_product_ref or ""

    def _fail(self, work: Work, note: str, *, final: bool = False) -> tuple[WorkOutcome, str]:
        note = fit_one_line(note)
        names = work.task_id, work.generation
        return self._report(
            work, WorkOutcome.FAILED, note, lambda: self._client.fail_task(*names, note=note, final=final)
        )

    def _release(self, work: Work, why: GiveBack) -> tuple[WorkOutcome, str]:
        note = fit_one_line(str(why))
        names = work.task_id, work.generation
        limited_s = why.seconds if isinstance(why, RateLimited) else 0.0
        end_reason = WorkOutcome.LIMITED if isinstance(why, RateLimited) else WorkOutcome.GIVEN_BACK
        return self._report(
            work, end_reason, note, lambda: self._client.release_task(*names, note=note, limited_s=limited_s)
        )

    def _report(
        self, work: Work, end_reason: WorkOutcome, note: str, call: Callable[[], Any]
    ) -> tuple[WorkOutcome, str]:
        if work.lost:
            return WorkOutcome.LOST, work.why_lost
        try:
            reply = self._call_with_retries(call, RELEASE_RETRY_S)
        except TRANSIENT as error:
            return WorkOutcome.LOST, f"{note} (the store did not learn of it: {error.message})"
        return (end_reason, note) if reply.success else (WorkOutcome.LOST, f"refused: {reply.reason.value}")

    def _call_with_retries(self, call: Callable[[], Any], timeout_s: float) -> Any:
        """Call until there is a reply, at most `timeout_s`."""
        until, backoff_s = clock() + timeout_s, RETRY_S
        while True:
            try:
                return call()
            except TRANSIENT:
                if self._stopping.is_set():
                    until = min(until, clock() + RELEASE_RETRY_S)
                if clock() >= until:
                    raise
            threading.Event().wait(backoff_s)
            backoff_s = min(2 * backoff_s, RETRY_S_MAX)

    def _report_run(self, ended_by: str, waiting_for: Iterable[str] = ()) -> WorkerReport:
        return WorkerReport(ended_by, dict(self._endings), list(waiting_for))
