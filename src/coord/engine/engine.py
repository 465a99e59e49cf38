"""The engine: gathers commands, decides them in order over one draft, commits once, answers each.

Whoever has the *turn* runs a batch: all that waits at that moment. What gathers while its commit is under
way is the next batch; there is no timer. A plain `call` takes the turn in its own thread, so a lone caller
needs no other thread, and callers in several threads commit in groups. `submit` and `ask` hand the turn to
one of the database's committer threads and give a future.

    gather → load what they read → decide each → ONE commit → answer each
       ▲                              │   ▲            │
       │                    Missing ──┘   └─ Conflict ─┘  only those it concerns, with jitter

What must stay true:
- Nobody is answered before the commit, and everybody is answered: at shutdown too, and when a batch fails.
- A command that fails, fails alone: its writes are dropped, the others go on.
- A refusal is as linearizable as a grant: what it read is verified by the same commit.
- An unknown outcome is settled, never guessed: the entry of a commit has its id (see `settle.py`).
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
from coord.engine.batch import Batch
from coord.engine.clock import Clock
from coord.engine.commit import commit_and_confirm
from coord.engine.idempotency import run_once
from coord.engine.pending import PendingCommand, deliver, new_loop_future
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
IN_VAIN_MOST = 4  # commands run dry in a row for nothing: those that take from one queue lack the same
CONFLICT_PAUSE_S = 0.002
UNAVAILABLE_TRIES = 3
UNAVAILABLE_PAUSE_S = 0.1


class Engine:
    """The one way to change a tenant's state from this process."""

    def __init__(
        self,
        database: Database[Any],
        tenant: str,
        *,
        clock: Callable[[], int] | None = None,
        queue_max: int = QUEUE_MAX,
        runtime: Runtime | None = None,
        probe: Callable[[Process], Evidence] | None = None,
    ) -> None:
        self.tenant = tenant
        self._probe = probe or (lambda _process: NO_EVIDENCE)
        self._database = database
        self._store = database.log(tenant)
        self._limits: Limits = self._store.limits
        self._clock = Clock(self._store, clock)
        self._ambient = runtime or SystemRuntime()
        self._queue: deque[PendingCommand] = deque()
        self._queue_max = queue_max
        self._queue_lock = threading.Lock()
        self._turn = threading.Lock()
        self._draining = False
        self._closed = False
        self._sweep_at = 0

    # Asking.

    def call(self, command: Command, *, timeout: float = TIMEOUT_S, command_id: str = "") -> Any:
        """Run a command in this thread, together with whatever else waits; return its reply."""
        (job,) = self._call_all([command], timeout, command_id)
        return job.result()

    def call_many(self, commands: Sequence[Command], *, timeout: float = TIMEOUT_S) -> list[Any]:
        """Run several commands together; return their replies, or raise the first error after all ran."""
        return [job.result() for job in self._call_all(commands, timeout, "")]

    def _call_all(self, commands: Sequence[Command], timeout: float, command_id: str) -> list[PendingCommand]:
        deadline = self._ambient.monotonic() + timeout
        jobs = [PendingCommand(command, deadline, command_id) for command in commands]
        self._enqueue(jobs)
        try:
            with self._turn:
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
        job = PendingCommand(command, self._ambient.monotonic() + timeout, command_id, future=future)
        self._enqueue([job], drain=True)
        return future

    def ask(
        self, command: Command, *, timeout: float = TIMEOUT_S, command_id: str = ""
    ) -> "asyncio.Future[Any]":
        """Queue a command from a coroutine; await what this returns for its reply."""
        future = new_loop_future()
        job = PendingCommand(command, self._ambient.monotonic() + timeout, command_id, loop_future=future)
        self._enqueue([job], drain=True)
        return future

    def close(self) -> None:
        """Refuse new commands, run those that wait, answer everyone; safe to call twice."""
        with self._queue_lock:
            self._closed = True
        with self._turn:
            while self._queue:
                self._run_batch()

    # The queue.

    def _enqueue(self, jobs: list[PendingCommand], *, drain: bool = False) -> None:
        """Queue jobs; with `drain`, see to it that a committer thread runs them."""
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
        """Run batches in a committer thread until nothing waits; let other tenants have it in between."""
        while True:
            with self._turn:
                with self._queue_lock:
                    if not self._queue:
                        self._draining = False
                        return
                self._run_batch()
            with contextlib.suppress(Unavailable):  # the database is being closed: finish here
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
        """Take back commands that were not begun: their caller was interrupted."""
        with self._queue_lock:
            self._queue = deque(job for job in self._queue if job not in jobs)

    # One batch.

    def _run_batch(self) -> None:
        jobs = [job for job in self._gather() if not job.withdrawn()]
        later: list[PendingCommand] = []
        try:
            with NoCollection():
                later = self._attempt(jobs)
        except CoordError as error:
            _fail(jobs, error)
        except Exception as error:  # noqa: BLE001 - whoever waits is answered, also when a store is defective
            lost = Unknown(f"the batch failed: {error!r}", hint="a defect of coord; please report it")
            lost.__cause__ = error
            _fail(jobs, lost)
        except BaseException:
            _fail(jobs, Unknown("the process was interrupted in the middle of a commit"))
            raise
        finally:
            if later:
                self._put_back(later)
            deliver(jobs)

    def _attempt(self, jobs: list[PendingCommand]) -> list[PendingCommand]:
        """Carry the jobs out; while the store is away nothing has happened, so begin again a few times."""
        for tries in range(1, UNAVAILABLE_TRIES + 1):
            try:
                with self._turn_between_processes(jobs):
                    return self._decide_and_commit([job for job in jobs if not job.answered])
            except Unavailable:
                pause = UNAVAILABLE_PAUSE_S * tries
                late = all(job.deadline < self._ambient.monotonic() + pause for job in jobs)
                if late or tries == UNAVAILABLE_TRIES or self._database.closed:
                    raise
                self._ambient.sleep(self._ambient.jitter(pause))
        raise AssertionError("the last try returns or raises")

    def _turn_between_processes(self, jobs: list[PendingCommand]) -> contextlib.AbstractContextManager[None]:
        """Let processes that write go one after the other; who only asks is in nobody's way."""
        if all(job.command.reads_only for job in jobs):
            return contextlib.nullcontext()
        return self._database.fair_lock()

    def _decide_and_commit(self, jobs: list[PendingCommand]) -> list[PendingCommand]:
        """Decide and commit until nothing conflicts; return the jobs for which this commit had no room."""
        jobs = self._allowed(jobs)
        now = self._clock.now()
        pending = self._with_sweep(jobs, now)
        draft = Batch(self._store, self._probe, len(jobs))
        later: list[PendingCommand] = []
        while True:
            later += self._decide_all(draft, self._in_time(pending), now)
            draft.load_unread()
            if self._clock.behind(now):  # others wrote what was read at a later time: this takes place after
                if any(not job.command.reads_only for job in jobs) and (refusal := self._clock.refusal()):
                    raise refusal  # begun again, where those who only ask are told apart
                now = self._clock.now()
                pending = draft.start_over()
                continue
            try:
                self._commit(draft, now)
            except Conflict as conflict:
                pending = draft.forget(conflict.keys)
                self._ambient.sleep(self._ambient.jitter(CONFLICT_PAUSE_S * min(draft.conflicts, 16)))
                continue
            return later

    def _allowed(self, jobs: list[PendingCommand]) -> list[PendingCommand]:
        """Refuse those who write while the log is far ahead of the clock; return the jobs that may go on."""
        if all(job.command.reads_only for job in jobs):
            return jobs
        refusal = self._clock.refusal()
        if refusal is None:
            return jobs
        _fail([job for job in jobs if not job.command.reads_only], refusal)
        return [job for job in jobs if job.command.reads_only]

    def _in_time(self, jobs: Sequence[PendingCommand]) -> list[PendingCommand]:
        now = self._ambient.monotonic()
        return [job for job in jobs if job.deadline >= now or not job.fail_if_late(now)]

    def _with_sweep(self, jobs: list[PendingCommand], now: int) -> list[PendingCommand]:
        """Add a sweep when something may be due; deadlines act without it, it only keeps the books."""
        if now < self._sweep_at or all(job.command.reads_only or type(job.command) is Sweep for job in jobs):
            return jobs
        self._sweep_at = now + SWEEP_EVERY_MS
        patience = max(job.deadline for job in jobs)
        return [PendingCommand(Sweep(self.tenant, SWEEP_MAX), patience), *jobs]

    def _decide_all(self, draft: Batch, jobs: list[PendingCommand], now: int) -> list[PendingCommand]:
        """Decide in order, loading what is missing; return the jobs that have to wait for the next commit."""
        later: list[PendingCommand] = []
        room = self._limits.commit_bytes // 2
        place = loaded = 0
        while place < len(jobs):
            if draft.size > room:
                return later + [job for job in jobs[place:] if not isinstance(job.command, Sweep)]
            if place == loaded:
                loaded = self._load_ahead(draft, jobs, place)
            try:
                fits = self._decide_one(draft, jobs[place], now)
            except ReadNeeded as lack:
                self._load(draft, lack, _alike(jobs, place), now)
                continue
            except NextBatch:
                later.append(jobs[place])
                fits = True
            if not fits:
                return later + jobs[place:]
            place += 1
        return later

    def _load_ahead(self, draft: Batch, jobs: list[PendingCommand], place: int) -> int:
        """Load what the next commands say they read, up to a measure; return the first not looked at."""
        keys: set[str] = set()
        ranges: list[Range] = []
        while place < len(jobs) and len(keys) < AHEAD_KEYS and len(ranges) < AHEAD_RANGES:
            command = jobs[place].command
            keys.update(keys_to_prefetch(command))
            ranges += ranges_to_prefetch(command)
            place += 1
        draft.load(keys, ranges)
        return place

    def _load(self, draft: Batch, lack: ReadNeeded, others: Iterable[PendingCommand], now: int) -> None:
        """Load what one command lacks, together with what the commands after it are going to lack."""
        keys, in_vain = set(lack.keys), 0
        ranges, processes = dict.fromkeys(lack.ranges), dict.fromkeys(lack.processes)  # in order, not by hash
        for job in others:
            tx, known = Transaction(draft, draft.conflicts), len(keys) + len(ranges) + len(processes)
            try:
                run_once(tx, job, now)
                keys.update(tx.writes)  # what is written unread is expected too, so it has to be loaded
            except ReadNeeded as more:
                keys.update(more.keys)
                ranges.update(dict.fromkeys(more.ranges))
                processes.update(dict.fromkeys(more.processes))
            except Exception:  # noqa: BLE001, S112 - it is raised again, and answered, when its turn comes
                continue
            in_vain = in_vain + 1 if known == len(keys) + len(ranges) + len(processes) else 0
            if in_vain == IN_VAIN_MOST:
                break
        draft.load(keys, ranges, processes)

    def _decide_one(self, draft: Batch, job: PendingCommand, now: int) -> bool:
        """Decide a command and take it into the draft; False if it has to wait for the next commit."""
        tx, limits = Transaction(draft, draft.conflicts), self._limits
        try:
            job.reply, job.error = run_once(tx, job, now), None
            if tx.size > limits.record_bytes:
                _check_size(tx, limits)
            if draft.size + tx.size > limits.commit_bytes:
                return False
            draft.accept(job, tx)
        except (ReadNeeded, NextBatch):
            raise
        except CoordError as error:
            job.error = error
            draft.accept_failure(job, tx)
        except Exception as error:  # noqa: BLE001 - a defect in one rule must not harm other commands
            defect = CoordError(f"the command failed: {error!r}", hint="a defect of coord; please report it")
            job.error = defect
            draft.accept_failure(job, tx)
        return True

    def _commit(self, draft: Batch, now: int) -> None:
        commit = draft.commit(now, self._ambient.commit_id())
        one_snapshot = not commit.writes and draft.reads_of_store <= 1 and not draft.maybe_stale
        offset = 0
        if not one_snapshot:
            offset = commit_and_confirm(self._store, commit, draft.deadline, self._ambient)
        for job, _ in draft.decided:
            job.answered = True
            command = job.command
            if command.fenced and job.error is None:
                job.reply = job.reply.with_fence(offset)
            elif type(command) is Sweep and job.error is None and job.reply.next_ms is not None:
                self._sweep_at = min(self._sweep_at, max(job.reply.next_ms, now + 1))
        draft.decided.clear()  # its views know the draft: a cycle that would wait for the collector

    def accept_clock(self) -> None:
        """Go on from the store's clock although the log is ahead of it; a person has looked."""
        event = encode_event(ClockAccepted(self._store.seen.at))
        self._store.commit(Commit(events=[event], at=self._store.now(), id=self._ambient.commit_id()))


class NoCollection:
    """Keep the cyclic collector out of a batch: it would walk thousands of objects that end with the batch.

    They hold no cycles; measured, it takes a quarter of the time of a batch of 512.
    """

    def __enter__(self) -> None:
        self._was_on = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was_on:
            gc.enable()


def _alike(jobs: list[PendingCommand], place: int) -> list[PendingCommand]:
    """Return the later jobs that may lack reads, too: those that foresee theirs, only if one alike does."""
    kind = type(jobs[place].command)
    return [job for job in jobs[place + 1 :] if type(job.command) is kind or not job.command.prefetch_keys]


def _check_size(tx: Transaction, limits: Limits) -> None:
    """Refuse a command that the store would refuse, before it takes others along."""
    if tx.size > limits.commit_bytes:
        raise LimitReached("the command changes more than one commit can hold")
    if any(len(item.data) > limits.record_bytes for item in tx.writes.values()):
        raise LimitReached("the command writes more than one record can hold")


def _fail(jobs: Iterable[PendingCommand], error: CoordError) -> None:
    for job in jobs:
        if not job.answered:
            job.fail(error)
