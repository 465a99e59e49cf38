"""The scheduler: jobs run at intervals, fail independently and stop cleanly. The tests control the time."""

import queue
import threading
from typing import Any

import pytest

from coord import Scheduler
from coord.core.errors import Invalid

DEADLINE_S = 30


class Turns:
    """Replaces the wait between runs: a job runs next when the test calls `give`."""

    def __init__(self) -> None:
        self.asked: queue.Queue[float] = queue.Queue()
        self._turn = threading.Semaphore(0)

    def wait(self, stopped: threading.Event, seconds: float) -> bool:
        self.asked.put(seconds)
        while not stopped.wait(0.001):
            if self._turn.acquire(blocking=False):
                return False
        return True

    def give(self) -> None:
        """Allow one run, and wait until it has ended."""
        self._turn.release()
        self.asked.get(timeout=DEADLINE_S)


@pytest.fixture
def turns() -> Turns:
    return Turns()


def scheduler(turns: Turns, random: float = 0.0, **options: Any) -> Scheduler:
    return Scheduler(wait=turns.wait, random=lambda: random, **options)


def test_a_job_runs_once_per_interval(turns: Turns) -> None:
    """SCH-15, SCH-16, SCH-19: a registered job runs after each interval, and `registered` lists it."""
    runs: list[int] = []
    with scheduler(turns) as jobs:
        jobs.register("count", 60, lambda: runs.append(1))
        assert turns.asked.get(timeout=DEADLINE_S) == 60
        assert (jobs.registered(), runs) == (["count"], [])
        turns.give()
        turns.give()
        state = jobs.states()["count"]
        assert (len(runs), state.runs, state.failures, state.running) == (2, 2, 0, False)
        assert state.next_in_s is not None


def test_intervals_are_jittered(turns: Turns) -> None:
    """SCH-13: an interval is up to a tenth shorter, so processes that started together spread out."""
    with scheduler(turns, random=0.5) as jobs:
        jobs.register("count", 60, lambda: None)
        assert turns.asked.get(timeout=DEADLINE_S) == 57


def test_the_first_run_may_be_at_once(turns: Turns) -> None:
    """With `at_once` a job has run before its first wait."""
    runs: list[int] = []
    with scheduler(turns) as jobs:
        jobs.register("count", 60, lambda: runs.append(1), at_once=True)
        turns.asked.get(timeout=DEADLINE_S)
        assert runs == [1]


def test_a_failing_job_does_not_affect_others(turns: Turns) -> None:
    """SCH-15: a job that raises runs again, its error is reported, and the other job continues."""
    told: list[tuple[str, str]] = []
    good, bad = Turns(), turns
    fails = True

    def work() -> None:
        if fails:
            raise ValueError("no such file")

    def wait(stopped: threading.Event, seconds: float) -> bool:
        return (bad if seconds == 1 else good).wait(stopped, seconds)

    def tell(name: str, error: Exception) -> None:
        told.append((name, str(error)))

    with Scheduler(wait=wait, random=lambda: 0, on_error=tell) as jobs:
        jobs.register("bad", 1, work)
        jobs.register("good", 2, lambda: None)
        for each in (bad, good):
            each.asked.get(timeout=DEADLINE_S)
        bad.give()
        bad.give()
        good.give()
        states = jobs.states()
        assert (states["bad"].runs, states["bad"].failures) == (2, 2)
        assert states["bad"].last_error == "ValueError: no such file"
        assert (states["good"].runs, states["good"].last_error) == (1, "")
        assert told == [("bad", "no such file")] * 2
        fails = False
        bad.give()
        assert jobs.states()["bad"].last_error == "", "a run that went well clears it"


def test_a_hanging_job_delays_no_other_and_never_runs_twice_at_once(turns: Turns) -> None:
    """SCH-15, SCH-16: a job registered again waits for the current run of the old one; others continue."""
    begun, go_on = threading.Event(), threading.Event()
    order: list[str] = []

    def old() -> None:
        begun.set()
        assert go_on.wait(DEADLINE_S)
        order.append("old")

    with scheduler(turns) as jobs:
        jobs.register("job", 60, old, at_once=True)
        assert begun.wait(DEADLINE_S)
        jobs.register("job", 30, lambda: order.append("new"), at_once=True)
        jobs.register("other", 10, lambda: order.append("other"), at_once=True)
        assert turns.asked.get(timeout=DEADLINE_S) == 10
        assert (order, sorted(jobs.registered())) == (["other"], ["job", "other"])
        go_on.set()
        assert turns.asked.get(timeout=DEADLINE_S) == 30
        assert order == ["other", "old", "new"]


def test_unregister_and_stop(turns: Turns) -> None:
    """SCH-17, SCH-18: one job stops, or all do; then no job runs, and no thread is left."""
    runs: list[str] = []
    before = threading.active_count()
    jobs = scheduler(turns)
    for name in ("a", "b"):
        jobs.register(name, 60, lambda name=name: runs.append(name))
        turns.asked.get(timeout=DEADLINE_S)
    assert jobs.unregister("a")
    assert not jobs.unregister("a")
    assert jobs.registered() == ["b"]
    turns.give()
    assert runs == ["b"]
    assert jobs.stop()
    assert (jobs.registered(), jobs.states(), threading.active_count()) == ([], {}, before)


def test_a_job_may_be_a_coroutine_and_may_stop_itself(turns: Turns) -> None:
    """SCH-15: an async callback is awaited; a job that unregisters itself ends after its run."""
    ran = threading.Event()
    jobs = scheduler(turns)

    async def work() -> None:
        assert jobs.unregister("once")
        ran.set()

    jobs.register("once", 60, work, at_once=True)
    assert ran.wait(DEADLINE_S)
    assert jobs.registered() == []
    assert jobs.stop()


@pytest.mark.parametrize(
    ("name", "every_s", "work"),
    [("a/b", 60, print), ("a", 0, print), ("a", True, print), ("a", float("nan"), print), ("a", 60, None)],
)
def test_invalid_jobs_are_rejected(turns: Turns, name: str, every_s: Any, work: Any) -> None:
    """An invalid name, interval or function registers no job."""
    with scheduler(turns) as jobs:
        with pytest.raises(Invalid):
            jobs.register(name, every_s, work)
        assert jobs.registered() == []
