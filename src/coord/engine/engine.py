"""The engine: gather commands, run their rules over one batch, commit once, reply to each.

The thread that has the batch lock runs a batch: all commands that wait at that time. Commands that arrive
during its commit form the next batch; there is no timer. A plain `call` runs the batch in its own thread, so
a lone caller needs no other thread, and callers in several threads commit in groups. `submit` and `ask` leave
the batch to one of the database's committer threads and return a future.

    gather ─▶ prefetch ─▶ run each rule ─▶ ONE commit ─▶ reply to each
       ▲                     │    ▲             │
       │        ReadNeeded ──┘    └─ Conflict ──┘  only the commands it affects, with jitter

What must stay true:
- Nobody gets a reply before the commit, and everybody gets one, even at shutdown and when a batch fails.
- A command that fails, fails alone: its writes are dropped, the others go on.
- A refusal is as linearizable as a grant: the same commit verifies what it read.
- An unknown outcome is looked up, never guessed: the log entry of a commit has its id (see `commit.py`).
"""

import contextlib
import gc
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from coord.core.commands import Command
from coord.core.dispatch import keys_to_prefetch, ranges_to_prefetch
from coord.core.errors import Busy, Conflict, CoordError, LimitReached, Unavailable, Unknown
from coord.core.events import ClockAccepted
from coord.core.identity import NO_EVIDENCE, Evidence, Process
from coord.core.ranges import Range
from coord.core.sweep import SWEEP_MAX, Sweep
from coord.core.transaction import NextBatch, ReadNeeded, Transaction, encode_event
from coord.engine.batch import Batch, LoadFailed
from coord.engine.clock import Clock
from coord.engine.commit import commit_and_confirm
from coord.engine.idempotency import run_once
from coord.engine.pending import PendingCommand, deliver, loop_futures
from coord.engine.runtime import Runtime, SystemRuntime
from coord.stores.contract import Commit, Limits
from coord.stores.database import Database

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import Future

QUEUE_MAX = 10_000
BATCH_MAX = 2_000
AHEAD_KEYS, AHEAD_RANGES = 8_000, 500
TIMEOUT_S = 10.0
SWEEP_EVERY_MS = 250
TRIM_EVERY = 1024
"""The commit whose offset this divides trims the log (`trim.py`)."""
LOOKAHEAD_MISSES_MAX = 4
"""Stop looking ahead after this number of commands that needed nothing new."""
CONFLICT_BACKOFF_S = 0.002
UNAVAILABLE_TRIES = 3
UNAVAILABLE_BACKOFF_S = 0.1


class Engine:
    """Runs the commands of one tenant in this process."""

    def __init__(
        self,
        database: Database[Any],
        tenant: str,
        *,
        clock: Callable[[], int] | None = None,
        queue_max: int = QUEUE_MAX,
        runtime: Runtime | None = None,
        probe: Callable[[Process], Evidence] | None = None,
        origin: bytes = b"",
    ) -> None:
        """`origin`: what the events of commands say that come with no origin."""
        self.tenant = tenant
        self._origin = origin
        self._probe = probe or (lambda _process: NO_EVIDENCE)
        self._database = database
        self._store = database.log(tenant)
        self._limits: Limits = self._store.limits
        self._clock = Clock(self._store, clock)
        self._runtime = runtime or SystemRuntime()
        self._queue: deque[PendingCommand] = deque()
        self._queue_max = queue_max
        self._queue_lock = threading.Lock()
        self._batch_lock = threading.Lock()
        self._draining = False
        self._closed = False
        self._sweep_at = 0
        self._trim_due = False
        self.on_events: Callable[[], None] = lambda: None
        """Called after each commit with events, by the thread that committed: it has to be quick."""

    # Entry points.

    def call(
        self, command: Command, *, timeout: float = TIMEOUT_S, command_id: str = "", origin: bytes = b""
    ) -> Any:
        """Run a command in this thread, with all others that wait; return its reply."""
        (job,) = self._call_all([command], timeout, command_id, origin)
        return job.result()

    def call_many(
        self, commands: Sequence[Command], *, timeout: float = TIMEOUT_S, origin: bytes = b""
    ) -> list[Any]:
        """Run several commands together; return their replies, or raise the first error after all ran."""
        return [job.result() for job in self._call_all(commands, timeout, "", origin)]

    def _call_all(
        self, commands: Sequence[Command], timeout: float, command_id: str, origin: bytes = b""
    ) -> list[PendingCommand]:
        deadline = self._runtime.monotonic() + timeout
        origin = origin or self._origin
        jobs = [PendingCommand(command, deadline, command_id, origin=origin) for command in commands]
        self._enqueue(jobs)
        try:
            with self._batch_lock:
                while not all(job.answered for job in jobs):
                    self._run_batch()
        except BaseException:
            self._withdraw(jobs)
            raise
        return jobs

    def submit(self, command: Command, *, timeout: float = TIMEOUT_S, command_id: str = "") -> "Future[Any]":
        """Queue a command from any thread; return a future of its reply."""
        from concurrent.futures import Future

        future: Future[Any] = Future()
        deadline = self._runtime.monotonic() + timeout
        job = PendingCommand(command, deadline, command_id, future=future, origin=self._origin)
        self._enqueue([job], drain=True)
        return future

    def ask(
        self, command: Command, *, timeout: float = TIMEOUT_S, command_id: str = "", origin: bytes = b""
    ) -> "asyncio.Future[Any]":
        """Queue a command from a coroutine; await what this returns for its reply."""
        (future,) = self.ask_many([command], [command_id], timeout=timeout, origin=origin)
        return future

    def ask_many(
        self,
        commands: Sequence[Command],
        ids: Sequence[str] = (),
        *,
        timeout: float = TIMEOUT_S,
        origin: bytes = b"",
    ) -> "list[asyncio.Future[Any]]":
        """Queue several commands from a coroutine, all or none; return a future for each.

        `origin` says where they came from, as a field for their events (`Origin.as_field`).
        """
        deadline = self._runtime.monotonic() + timeout
        new_future = loop_futures()
        jobs = [
            PendingCommand(
                command, deadline, ids[number] if ids else "", loop_future=new_future(), origin=origin
            )
            for number, command in enumerate(commands)
        ]
        if jobs:
            self._enqueue(jobs, drain=True)
        return [job.loop_future for job in jobs if job.loop_future is not None]

    def close(self) -> None:
        """Refuse new commands and run those that wait; safe to call twice."""
        with self._queue_lock:
            self._closed = True
        with self._batch_lock:
            while self._queue:
                self._run_batch()

    # The queue.

    def _enqueue(self, jobs: list[PendingCommand], *, drain: bool = False) -> None:
        """Queue commands; with `drain`, a committer thread runs them."""
        with self._queue_lock:
            if self._closed:
                raise Unavailable("the engine is closed", hint="open it again")
            if self._queue and len(self._queue) + len(jobs) > self._queue_max:
                raise Busy(f"{len(self._queue)} commands are waiting", hint="try again in a moment")
            if drain and not self._draining:
                self._database.committers.submit(self._drain)
                self._draining = True
            self._queue.extend(jobs)

    def _drain(self) -> None:
        """Run batches in a committer thread until nothing waits; yield to other tenants in between."""
        while True:
            with self._batch_lock:
                with self._queue_lock:
                    if not self._queue:
                        self._draining = False
                        return
                self._run_batch()
            with contextlib.suppress(Unavailable):  # the database is closing: finish here
                committers = self._database.committers
                if committers.waiting:
                    committers.submit(self._drain)
                    return

    def _gather(self) -> list[PendingCommand]:
        with self._queue_lock:
            if len(self._queue) > BATCH_MAX:
                return [self._queue.popleft() for _ in range(BATCH_MAX)]
            jobs = list(self._queue)
            self._queue.clear()
            return jobs

    def _put_back(self, jobs: Sequence[PendingCommand]) -> None:
        with self._queue_lock:
            self._queue.extendleft(reversed(jobs))

    def _withdraw(self, jobs: Sequence[PendingCommand]) -> None:
        """Remove commands whose caller was interrupted before they began."""
        with self._queue_lock:
            self._queue = deque(job for job in self._queue if job not in jobs)

    # One batch.

    def _run_batch(self) -> None:
        jobs = [job for job in self._gather() if not job.is_cancelled()]
        deferred: list[PendingCommand] = []
        try:
            with NoGarbageCollection():
                deferred = self._attempt(jobs)
        except CoordError as error:
            _fail(jobs, error)
        except Exception as error:  # noqa: BLE001 - every caller gets a reply, even if a store is defective
            lost = Unknown(f"the batch failed: {error!r}", hint="a defect of coord; please report it")
            lost.__cause__ = error
            _fail(jobs, lost)
        except BaseException:
            _fail(jobs, Unknown("the process was interrupted in the middle of a commit"))
            raise
        finally:
            if deferred:
                self._put_back(deferred)
            deliver(jobs)
        if self._trim_due:
            self._trim_due = False
            with contextlib.suppress(CoordError):  # the commands are done; the next one tries again
                self.trim(whole=False)

    def _attempt(self, jobs: list[PendingCommand]) -> list[PendingCommand]:
        """Run the commands; retry while the store is unavailable: nothing has happened then."""
        for tries in range(1, UNAVAILABLE_TRIES + 1):
            try:
                with self._fair_lock(jobs):
                    return self._run_and_commit([job for job in jobs if not job.answered])
            except Unavailable:
                delay = UNAVAILABLE_BACKOFF_S * tries
                late = all(job.deadline < self._runtime.monotonic() + delay for job in jobs)
                if late or tries == UNAVAILABLE_TRIES or self._database.closed:
                    raise
                self._runtime.sleep(self._runtime.jitter(delay))
        raise AssertionError("the last try returns or raises")

    def _fair_lock(self, jobs: list[PendingCommand]) -> contextlib.AbstractContextManager[None]:
        """Return the fair lock between processes that write; questions need none."""
        if all(job.command.reads_only for job in jobs):
            return contextlib.nullcontext()
        return self._database.fair_lock()

    def _run_and_commit(self, jobs: list[PendingCommand]) -> list[PendingCommand]:
        """Run and commit until nothing conflicts; return the commands that did not fit into this commit."""
        jobs = self._refuse_writes_ahead_of_clock(jobs)
        now = self._clock.now()
        pending = self._with_sweep(jobs, now)
        batch = Batch(self._store, self._probe, len(jobs))
        deferred: list[PendingCommand] = []
        while True:
            deferred += self._run_all(batch, self._drop_late(pending), now)
            batch.load_unread()
            if self._clock.behind(now):  # somebody committed at a later time, so this batch happens after it
                if any(not job.command.reads_only for job in jobs) and (refusal := self._clock.refusal()):
                    raise refusal  # the retry separates questions from writes
                now = self._clock.now()
                pending = batch.start_over()
                continue
            try:
                self._commit(batch, now)
            except Conflict as conflict:
                pending = batch.forget(conflict.keys)
                self._runtime.sleep(self._runtime.jitter(CONFLICT_BACKOFF_S * min(batch.conflicts, 16)))
                continue
            return deferred

    def _refuse_writes_ahead_of_clock(self, jobs: list[PendingCommand]) -> list[PendingCommand]:
        """Refuse writes while the log is far ahead of the clock; return the commands that may run."""
        if all(job.command.reads_only for job in jobs):
            return jobs
        refusal = self._clock.refusal()
        if refusal is None:
            return jobs
        _fail([job for job in jobs if not job.command.reads_only], refusal)
        return [job for job in jobs if job.command.reads_only]

    def _drop_late(self, jobs: Sequence[PendingCommand]) -> list[PendingCommand]:
        now = self._runtime.monotonic()
        return [job for job in jobs if job.deadline >= now or not job.fail_if_late(now)]

    def _with_sweep(self, jobs: list[PendingCommand], now: int) -> list[PendingCommand]:
        """Add a sweep if something may be due; deadlines take effect without it, it only tidies."""
        if now < self._sweep_at or all(job.command.reads_only or type(job.command) is Sweep for job in jobs):
            return jobs
        self._sweep_at = now + SWEEP_EVERY_MS
        patience = max(job.deadline for job in jobs)
        return [PendingCommand(Sweep(self.tenant, SWEEP_MAX), patience), *jobs]

    def _run_all(self, batch: Batch, jobs: list[PendingCommand], now: int) -> list[PendingCommand]:
        """Run commands in order, loading what they need; return those that wait for the next commit."""
        deferred: list[PendingCommand] = []
        room = self._limits.commit_bytes // 2
        at = loaded = 0
        while at < len(jobs):
            if batch.size > room:
                return deferred + [job for job in jobs[at:] if not isinstance(job.command, Sweep)]
            if at == loaded:
                loaded = self._prefetch(batch, jobs, at)
            batch.loads_at_once = at + 2 >= len(jobs) and not _likely_to_need_the_same(jobs, at)
            try:
                fits = self._run_one(batch, jobs[at], now)
            except ReadNeeded as needed:
                self._load(batch, needed, _likely_to_need_the_same(jobs, at), now)
                continue
            except NextBatch:
                deferred.append(jobs[at])
                fits = True
            if not fits:
                return deferred + jobs[at:]
            at += 1
        return deferred

    def _prefetch(self, batch: Batch, jobs: list[PendingCommand], at: int) -> int:
        """Load what the next commands declare to read; return the index of the first one left out."""
        keys: set[str] = set()
        ranges: list[Range] = []
        while at < len(jobs) and len(keys) < AHEAD_KEYS and len(ranges) < AHEAD_RANGES:
            command = jobs[at].command
            keys.update(keys_to_prefetch(command))
            ranges += ranges_to_prefetch(command)
            at += 1
        batch.load(keys, ranges)
        return at

    def _load(self, batch: Batch, needed: ReadNeeded, others: Iterable[PendingCommand], now: int) -> None:
        """Load what one command needs, together with what the commands after it will need."""
        keys, misses = set(needed.keys), 0
        ranges, processes = (
            dict.fromkeys(needed.ranges),
            dict.fromkeys(needed.processes),
        )  # in order, not by hash
        for job in others:
            tx, known = Transaction(batch, batch.conflicts), len(keys) + len(ranges) + len(processes)
            try:
                run_once(tx, job, now)
                keys.update(tx.writes)  # the commit expects versions of unread writes, too
            except ReadNeeded as more:
                keys.update(more.keys)
                ranges.update(dict.fromkeys(more.ranges))
                processes.update(dict.fromkeys(more.processes))
            except Exception:  # noqa: BLE001, S112 - it is raised again when the command runs
                continue
            misses = misses + 1 if known == len(keys) + len(ranges) + len(processes) else 0
            if misses == LOOKAHEAD_MISSES_MAX:
                break
        batch.load(keys, ranges, processes)

    def _run_one(self, batch: Batch, job: PendingCommand, now: int) -> bool:
        """Run a command and add it to the batch; return False if it has to wait for the next commit."""
        tx, limits = Transaction(batch, batch.conflicts), self._limits
        try:
            job.reply, job.error = run_once(tx, job, now), None
            if job.origin:
                tx.add_origin(job.origin)
            if tx.size > limits.record_bytes:
                _check_size(tx, limits)
            if batch.size + tx.size > limits.commit_bytes:
                return False
            batch.accept(job, tx)
        except (ReadNeeded, NextBatch):
            raise
        except LoadFailed as failed:
            raise failed.error from None
        except CoordError as error:
            job.error = error
            batch.accept_failure(job, tx)
        except Exception as error:  # noqa: BLE001 - a defect in one rule must not harm other commands
            defect = CoordError(f"the command failed: {error!r}", hint="a defect of coord; please report it")
            job.error = defect
            batch.accept_failure(job, tx)
        return True

    def _commit(self, batch: Batch, now: int) -> None:
        commit = batch.commit(now, self._runtime.commit_id())
        one_snapshot = not commit.writes and batch.one_read_point and not batch.maybe_stale
        offset = 0
        if not one_snapshot:
            offset = commit_and_confirm(self._store, commit, batch.deadline, self._runtime)
            self._trim_due = self._trim_due or (commit.writes and offset % TRIM_EVERY == 0)
            if commit.events:
                self.on_events()
        for job, _ in batch.completed:
            job.answered = True
            command = job.command
            if command.fenced and job.error is None:
                job.reply = job.reply.with_fence(offset)
            elif type(command) is Sweep and job.error is None and job.reply.next_ms is not None:
                self._sweep_at = min(self._sweep_at, max(job.reply.next_ms, now + 1))
        batch.completed.clear()  # its transactions refer to it: a cycle, left for the collector

    def trim(self, *, whole: bool = True) -> int:
        """Trim the log as the settings say; return how many entries went."""
        from coord.engine.trim import trim_log

        return trim_log(self._store, self._clock.now(), whole=whole)

    def accept_clock(self) -> None:
        """Continue from the store's clock although the log is ahead of it: a person has checked it."""
        event = encode_event(ClockAccepted(self._store.seen.at))
        self._store.commit(Commit(events=[event], at=self._store.now(), id=self._runtime.commit_id()))


class NoGarbageCollection:
    """Disables the cyclic garbage collector during a batch.

    A batch makes thousands of objects without cycles. The collector took a quarter of the time of a batch of
    512 commands.
    """

    def __enter__(self) -> None:
        self._was_on = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was_on:
            gc.enable()


def _likely_to_need_the_same(jobs: list[PendingCommand], at: int) -> list[PendingCommand]:
    """Return later commands that may need reads, too: the same kind, and those without a prefetch."""
    kind = type(jobs[at].command)
    return [job for job in jobs[at + 1 :] if type(job.command) is kind or not job.command.prefetch_keys]


def _check_size(tx: Transaction, limits: Limits) -> None:
    """Refuse a command that the store would refuse together with its whole batch."""
    if tx.size > limits.commit_bytes:
        raise LimitReached("the command changes more than one commit can hold")
    if any(len(item.data) > limits.record_bytes for item in tx.writes.values()):
        raise LimitReached("the command writes more than one record can hold")


def _fail(jobs: Iterable[PendingCommand], error: CoordError) -> None:
    for job in jobs:
        if not job.answered:
            job.fail(error)
