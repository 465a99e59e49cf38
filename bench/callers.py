"""Many callers waiting on one engine: a closed loop for the peak, an open loop for how waiting feels.

Closed: each caller asks again as soon as it is answered, so the engine is never idle. Open: one pacer sends
at moments drawn beforehand (Poisson), whether or not earlier ones were answered, and latency counts from the
moment a command should have been sent; so a stall is paid by everyone who would have come during it.
"""

import asyncio
import functools
import itertools
import random
import statistics
from collections.abc import Callable, Iterator
from time import perf_counter, process_time
from typing import Any

from bench.figures import Figure, latency_ms
from bench.places import Places
from bench.quiet import Rounds, freeze_heap
from bench.scale import Scale
from bench.watched import events_per_commit
from bench.workload import Claimed, Workplace, claim_command, session_name, submission
from coord.core.commands import Command
from coord.core.errors import Busy
from coord.core.tasks.types import ClaimResult
from coord.engine.engine import TIMEOUT_S, Engine

FLOORS = {
    "memory": 40_000,
    "files": 20_000,
    "sqlite": 20_000,
    "postgres": 8_000,
    "postgres-log": 10_000,
    "mariadb": 5_000,
    "redis": 5_000,
    "nats": 15_000,
}
FLOOR_CALLERS = 512
OPEN_P99_MS = 50.0
WARM_UP = 0.2
"""The share of each run, at its beginning, that does not count."""

Next = Callable[[int], Command | None]
"""Gives the next command of a caller; None ends the run."""
Answered = Callable[[Any], None]
"""Looks at a reply."""


class ClosedRun:
    """One run of callers that ask again as soon as they are answered."""

    def __init__(self, engine: Engine, callers: int, seconds: float) -> None:
        self._engine = engine
        self._callers = callers
        self._seconds = seconds
        self._began = self._end = self._finished = 0.0
        self.cpu_us = 0.0
        """Processor time per answer, in all threads, the callers' own work included."""
        self.answers: list[tuple[float, float]] = []
        """When each was asked and answered."""

    async def run(self, following: Next, answered: Answered) -> None:
        self._began, cpu = perf_counter(), process_time()
        self._end = self._began + self._seconds
        await asyncio.gather(*(self._caller(number, following, answered) for number in range(self._callers)))
        self._finished = perf_counter()
        self.cpu_us = (process_time() - cpu) / len(self.answers) * 1e6

    async def _caller(self, number: int, following: Next, answered: Answered) -> None:
        ask, note, asked = self._engine.ask, self.answers.append, perf_counter()
        while (command := following(number)) is not None:
            reply = await ask(command)
            now = perf_counter()
            note((asked, now))
            answered(reply)
            if now >= self._end:
                return
            asked = now
        self._end = min(self._end, perf_counter())  # with fewer callers it would be another measurement

    @property
    def _counted_from(self) -> float:
        return self._began + (self._finished - self._began) * WARM_UP

    @property
    def counted(self) -> list[tuple[float, float]]:
        counted_from = self._counted_from
        return [times for times in self.answers if times[1] >= counted_from]

    @property
    def rate(self) -> float:
        return len(self.counted) / (self._finished - self._counted_from)


Counted = tuple[ClosedRun, list[int]]
"""A run, and how much was in each of its commits."""


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield peaks for each number of callers, then the latency at half of the floor."""
    for callers in scale.callers:
        yield from _closed(places, scale, store, callers)
    yield _open(places, scale, store, max(scale.callers))


def _closed(places: Places, scale: Scale, store: str, callers: int) -> Iterator[Figure]:
    rounds = Rounds(scale.repetitions)
    with Workplace(places.fresh_url(store)) as place:
        _, held = _closed_claims(place, callers, scale.seconds)
        _closed_submissions(place, held, scale.seconds)  # warm now
        place.watch.take()
        pairs = [_closed_round(place, callers, scale.seconds * 2) for _ in rounds]
    for what, counted in zip(("claims", "submissions"), zip(*rounds.chosen(pairs), strict=True), strict=True):
        yield Figure.middle_of(
            [run.rate for run, _ in counted],
            "callers",
            store,
            f"{what}, {callers} callers",
            "/s",
            floor=FLOORS[store] if what == "claims" and callers == FLOOR_CALLERS else None,
            detail={
                "callers": callers,
                "undisturbed": rounds.share,
                "cpu_us_per_op": statistics.median(run.cpu_us for run, _ in counted),
                **latency_ms(end - start for run, _ in counted for start, end in run.counted),
                **events_per_commit([size for _, sizes in counted for size in sizes]),
            },
        )


def _closed_round(place: Workplace, callers: int, seconds: float) -> tuple[Counted, Counted]:
    """Claim for a while, then submit what was claimed."""
    claims, held = _closed_claims(place, callers, seconds)
    claimed = claims, place.watch.take_sizes()
    submissions = _closed_submissions(place, held, seconds)
    return claimed, (submissions, place.watch.take_sizes())


def _closed_claims(place: Workplace, callers: int, seconds: float) -> tuple[ClosedRun, list[list[Claimed]]]:
    freeze_heap()
    sessions = [session_name(number) for number in range(callers)]
    held: dict[str, list[Claimed]] = {session: [] for session in sessions}
    granted: list[ClaimResult] = []

    def following(number: int) -> Command:
        return claim_command(next(place.names), sessions[number])

    run = ClosedRun(place.engine, callers, seconds)
    asyncio.run(run.run(following, granted.append))
    for reply in granted:  # only now, since what the bench does beside it takes time from what it measures
        claim = reply.claim
        assert claim is not None, "every fresh task is granted"
        held[claim.session_id].append(Claimed(claim.task_id, claim.session_id, claim.generation.generation))
    return run, list(held.values())


def _closed_submissions(place: Workplace, held: list[list[Claimed]], seconds: float) -> ClosedRun:
    freeze_heap()

    def following(number: int) -> Command | None:
        return submission(held[number].pop()) if held[number] else None

    def accepted(reply: Any) -> None:
        assert reply.accepted, "the result of a current claim is accepted"

    run = ClosedRun(place.engine, len(held), seconds)
    asyncio.run(run.run(following, accepted))
    return run


class OpenRun:
    """One run of commands sent at moments drawn beforehand.

    Nobody has a coroutine of its own here, as a caller would: thousands of them a second are work of the
    bench, in the same thread that the engine's answers have to come through.
    """

    def __init__(self, place: Workplace, rate: float, seconds: float, sessions: int) -> None:
        self._place = place
        self._sessions = itertools.cycle([session_name(number) for number in range(sessions)])
        self._moments = _poisson(rate, seconds)
        self._counted_from = seconds * WARM_UP
        self._answers: list[tuple[float, float]] = []
        """When each should have been sent, and when it was answered: no more, for the collector's sake."""
        self._busy: list[float] = []
        self._wrong: list[BaseException | None] = []
        self.took: list[float] = []
        self.last = 0.0

    async def run(self) -> None:
        self._over = asyncio.Event()
        self._began = perf_counter() + 0.02
        for moment in self._moments:
            early = self._began + moment - perf_counter()
            if early > 0:
                await asyncio.sleep(early)
            try:
                future = self._place.engine.ask(claim_command(next(self._place.names), next(self._sessions)))
            except Busy:
                self._busy.append(moment)
            else:
                future.add_done_callback(functools.partial(self._answered, moment))
        if len(self._answers) + len(self._busy) < len(self._moments):
            await self._over.wait()
        self._count()

    def _answered(self, moment: float, future: asyncio.Future[Any]) -> None:
        self._answers.append((moment, perf_counter() - self._began))
        error = future.exception()
        if isinstance(error, Busy):
            self._answers.pop()
            self._busy.append(moment)
        elif error is not None or not future.result().success:
            self._wrong.append(error)
        if len(self._answers) + len(self._busy) == len(self._moments):
            self._over.set()

    def _count(self) -> None:
        assert not self._wrong, f"every fresh task is granted: {self._wrong[0]}"
        self.last = max(answered for _, answered in self._answers)
        waited = [(moment, answered - moment) for moment, answered in self._answers]
        waited += [(moment, TIMEOUT_S) for moment in self._busy]  # else the others would look good
        self.took = [took for moment, took in waited if moment >= self._counted_from]

    @property
    def refused(self) -> int:
        return len(self._busy)

    @property
    def offered_rate(self) -> float:
        return len(self._moments) / self._moments[-1]

    @property
    def completed_rate(self) -> float:
        return (len(self._moments) - self.refused) / self.last


def _poisson(rate: float, seconds: float) -> list[float]:
    """Moments of arrival: the same each time, since a seed decides them."""
    draw = random.Random(7)
    moments = [draw.expovariate(rate)]
    while moments[-1] < seconds:
        moments.append(moments[-1] + draw.expovariate(rate))
    return moments


def _open(places: Places, scale: Scale, store: str, sessions: int) -> Figure:
    freeze_heap()
    rounds = Rounds(1)
    with Workplace(places.fresh_url(store)) as place:
        _closed_claims(place, sessions, scale.seconds)  # warm now: a cold start would be paid by all who come
        runs = [_open_run(place, FLOORS[store] / 2, scale.open_seconds, sessions) for _ in rounds]
    run, sizes = rounds.chosen(runs)[-1]
    waited = latency_ms(run.took)
    return Figure(
        "callers",
        store,
        f"p99, open loop, {FLOORS[store] // 2:,} claims/s",
        waited["p99_ms"],
        "ms",
        most=OPEN_P99_MS if sessions == FLOOR_CALLERS else None,
        detail={
            "undisturbed": rounds.share,
            "offered_per_s": run.offered_rate,
            "completed_per_s": run.completed_rate,
            "refused": run.refused,
            **waited,
            **events_per_commit(sizes),
        },
    )


def _open_run(place: Workplace, rate: float, seconds: float, sessions: int) -> tuple[OpenRun, list[int]]:
    place.watch.take()
    run = OpenRun(place, rate, seconds, sessions)
    asyncio.run(run.run())
    return run, place.watch.take_sizes()
