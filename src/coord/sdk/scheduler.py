"""A scheduler for processes that live long: jobs that run again and again, each by itself.

Each job has a thread of its own: one that fails or hangs is in no other's way. A job never runs twice at the
same moment, also where it is registered anew while it runs. Its turns are spread a little, so that many
processes that began together do not come back together.
"""

import inspect
import threading
import time
from collections.abc import Awaitable, Callable
from random import random
from typing import Self

import msgspec

from coord.core.errors import Invalid
from coord.core.ids import check_id, shown

JITTER = 0.1
"""The part of the interval by which a turn may come earlier."""
STOP_S = 10.0

Work = Callable[[], object] | Callable[[], Awaitable[object]]
Pause = Callable[[threading.Event, float], bool]
"""Waits for an event, a time at most; says whether it came."""


class JobState(msgspec.Struct, frozen=True):
    """How a job fares; `last_error` is that of the last run, empty if it went well."""

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
        pause: Pause = threading.Event.wait,
        chance: Callable[[], float] = random,
    ) -> None:
        self._on_error = on_error
        self._pause = pause
        self._chance = chance
        self._jobs: dict[str, _Job] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def register(self, name: str, every_s: float, work: Work, *, at_once: bool = False) -> None:
        """Run a job (a function or a coroutine function) once in a time; one of the same name is replaced.

        With `at_once` its first turn is now, else after the time.
        """
        check_id("job name", name)
        if isinstance(every_s, bool) or not isinstance(every_s, (int, float)) or not 0 < every_s < 1e9:
            raise Invalid(f"{shown(every_s)} is no interval", hint="give seconds, more than 0")
        if not callable(work):
            raise Invalid(f"{shown(work)} cannot be called", hint="give a function without arguments")
        with self._lock:
            before = self._jobs.get(name)
            if before is not None:
                before.stopped.set()
            job = _Job(name, float(every_s), work, before, at_once=at_once)
            self._jobs[name] = job
            job.start(self._pause, self._chance, self._on_error)

    def unregister(self, name: str) -> bool:
        """Stop a job and forget it, once a run that is under way has ended; return whether there was one."""
        with self._lock:
            job = self._jobs.pop(name, None)
        if job is None:
            return False
        job.stopped.set()
        job.join(STOP_S)
        return True

    def stop(self, timeout_s: float = STOP_S) -> bool:
        """Stop and forget all jobs; return whether every run that was under way ended in time."""
        with self._lock:
            jobs, self._jobs = list(self._jobs.values()), {}
        for job in jobs:
            job.stopped.set()
        deadline = time.monotonic() + timeout_s
        ended = [job.join(max(deadline - time.monotonic(), 0)) for job in jobs]
        return all(ended)

    def registered(self) -> list[str]:
        """Return the names of the jobs there are."""
        with self._lock:
            return list(self._jobs)

    def states(self) -> dict[str, JobState]:
        """Return how each job fares."""
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
        pause: Pause,
        chance: Callable[[], float],
        on_error: Callable[[str, Exception], object] | None,
    ) -> None:
        name = f"coord-job-{self.name}"
        self._thread = threading.Thread(
            target=self._loop, args=(pause, chance, on_error), name=name, daemon=True
        )
        self._thread.start()

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread to end; who asks from within the job is not waited for."""
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
        pause: Pause,
        chance: Callable[[], float],
        on_error: Callable[[str, Exception], object] | None,
    ) -> None:
        if self._before is not None and self._before._thread is not None:  # noqa: SLF001 - its own kind
            self._before._thread.join()  # noqa: SLF001
            self._before = None
        if self._at_once and not self.stopped.is_set():
            self._run(on_error)
        while not self.stopped.is_set():
            wait_s = self._every_s * (1 - JITTER * chance())
            self._next_at = time.monotonic() + wait_s
            if pause(self.stopped, wait_s):
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
        except Exception as error:  # noqa: BLE001 - whatever a job does, the next turn comes
            self._failures += 1
            self._error = f"{type(error).__name__}: {error}"
            if on_error is not None:
                on_error(self.name, error)
        finally:
            self._runs += 1
            self._running = False
