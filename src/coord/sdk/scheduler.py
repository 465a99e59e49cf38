"""`Scheduler`: run jobs at intervals in a long-lived process.

Each job has a separate thread, so a job that fails or hangs does not delay the others. A job never runs twice
at the same time, even if it is registered again while it runs. Intervals are jittered, so that processes that
started together do not run their jobs together.
"""

import inspect
import threading
import time
from collections.abc import Awaitable, Callable
from random import random
from typing import Self

import msgspec

from coord.core.errors import Invalid
from coord.core.ids import check_id, short_repr

JITTER = 0.1
"""The fraction of the interval by which a run may come earlier."""
STOP_S = 10.0

Work = Callable[[], object] | Callable[[], Awaitable[object]]
Wait = Callable[[threading.Event, float], bool]
"""Waits for an event, at most a number of seconds; returns whether it was set."""


class JobState(msgspec.Struct, frozen=True):
    """The state of a job; `last_error` is empty if the last run succeeded."""

    name: str
    every_s: float
    runs: int
    failures: int
    running: bool
    last_error: str
    next_in_s: float | None


class Scheduler:
    """Runs registered jobs until it is stopped; use it in a `with` block.

    >>> with Scheduler() as scheduler:
    ...     scheduler.register("tidy", 60, lambda: None)
    ...     scheduler.registered()
    ['tidy']
    """

    def __init__(
        self,
        *,
        on_error: Callable[[str, Exception], object] | None = None,
        wait: Wait = threading.Event.wait,
        random: Callable[[], float] = random,
    ) -> None:
        self._on_error = on_error
        self._wait = wait
        self._random = random
        self._jobs: dict[str, _Job] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def register(self, name: str, every_s: float, work: Work, *, at_once: bool = False) -> None:
        """Run a job (a function or a coroutine function) at an interval; replace a job of the same name.

        With `at_once` the first run is now, else after one interval.
        """
        check_id("job name", name)
        if isinstance(every_s, bool) or not isinstance(every_s, (int, float)) or not 0 < every_s < 1e9:
            raise Invalid(f"{short_repr(every_s)} is not an interval", hint="pass seconds above 0")
        if not callable(work):
            raise Invalid(f"{short_repr(work)} cannot be called", hint="pass a function without arguments")
        with self._lock:
            before = self._jobs.get(name)
            if before is not None:
                before.stopped.set()
            job = _Job(name, float(every_s), work, before, at_once=at_once)
            self._jobs[name] = job
            job.start(self._wait, self._random, self._on_error)

    def unregister(self, name: str) -> bool:
        """Stop and remove a job after its current run; return whether there was one."""
        with self._lock:
            job = self._jobs.pop(name, None)
        if job is None:
            return False
        job.stopped.set()
        job.join(STOP_S)
        return True

    def stop(self, timeout_s: float = STOP_S) -> bool:
        """Stop and remove all jobs; return whether every current run ended in time."""
        with self._lock:
            jobs, self._jobs = list(self._jobs.values()), {}
        for job in jobs:
            job.stopped.set()
        deadline = time.monotonic() + timeout_s
        ended = [job.join(max(deadline - time.monotonic(), 0)) for job in jobs]
        return all(ended)

    def registered(self) -> list[str]:
        """Return the names of all jobs."""
        with self._lock:
            return list(self._jobs)

    def states(self) -> dict[str, JobState]:
        """Return the state of each job."""
        with self._lock:
            return {name: job.state() for name, job in self._jobs.items()}


class _Job:
    """One job and its thread."""

    def __init__(
        self, name: str, every_s: float, work: Work, before: "_Job | None", *, at_once: bool
    ) -> None:
        self.name = name
        self.stopped = threading.Event()
        self._every_s = every_s
        self._work = work
        self._before = before
        self._at_once = at_once
        self._runs = self._failures = 0
        self._running = False
        self._error = ""
        self._next_at: float | None = None
        self._thread: threading.Thread | None = None

    def start(
        self,
        wait: Wait,
        random: Callable[[], float],
        on_error: Callable[[str, Exception], object] | None,
    ) -> None:
        name = f"coord-job-{self.name}"
        self._thread = threading.Thread(
            target=self._loop, args=(wait, random, on_error), name=name, daemon=True
        )
        self._thread.start()

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread to end, unless it is the current one."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)
            return not self._thread.is_alive()
        return True

    def state(self) -> JobState:
        left_s = None if self._next_at is None else round(max(self._next_at - time.monotonic(), 0), 3)
        return JobState(
            self.name, self._every_s, self._runs, self._failures, self._running, self._error, left_s
        )

    def _loop(
        self,
        wait: Wait,
        random: Callable[[], float],
        on_error: Callable[[str, Exception], object] | None,
    ) -> None:
        if self._before is not None and self._before._thread is not None:  # noqa: SLF001 - its own kind
            self._before._thread.join()  # noqa: SLF001
            self._before = None
        if self._at_once and not self.stopped.is_set():
            self._run(on_error)
        while not self.stopped.is_set():
            wait_s = self._every_s * (1 - JITTER * random())
            self._next_at = time.monotonic() + wait_s
            if wait(self.stopped, wait_s):
                return
            self._next_at = None
            self._run(on_error)

    def _run(self, on_error: Callable[[str, Exception], object] | None) -> None:
        self._running = True
        try:
            outcome = self._work()
            if inspect.iscoroutine(outcome):
                import asyncio

                asyncio.run(outcome)
            self._error = ""
        except Exception as error:  # noqa: BLE001 - a failed job runs again
            self._failures += 1
            self._error = f"{type(error).__name__}: {error}"
            if on_error is not None:
                on_error(self.name, error)
        finally:
            self._runs += 1
            self._running = False
