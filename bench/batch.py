"""Claims and submissions in batches, from one caller, with the raw limit beside each."""

import statistics
from collections.abc import Iterator

from bench.figures import Figure, latency_ms
from bench.places import Places
from bench.raw import RAW, Raw
from bench.scale import Scale
from bench.watched import Watch, events_per_commit
from bench.workload import Run, Workplace

CLAIM_FLOORS = {
    "files": 40_000,
    "sqlite": 40_000,
    "postgres": 15_000,
    "postgres-log": 40_000,
    "mariadb": 12_000,
    "redis": 12_000,
    "nats": 40_000,
}
SUBMISSION_FLOOR = 10_000
BATCHED = 128
"""From this size on a batch is held to its floor; up to it, a table store to its share of raw."""
RAW_SHARES = {"sqlite": 0.5, "postgres": 0.5, "mariadb": 0.5, "redis": 0.5}


class Measured:
    """The repetitions of one figure: ours, and raw right after it, so that both meet the same machine."""

    def __init__(self) -> None:
        self.rates: list[float] = []
        self.raw_rates: list[float] = []
        self.took: list[float] = []
        self.cpu_us: list[float] = []
        self.sizes: list[int] = []

    def add(self, run: Run, watch: Watch, raw: Raw) -> None:
        sizes, commits = watch.take()
        self.rates.append(run.rate)
        self.raw_rates.append(run.operations / raw.play(commits))
        self.took += run.took
        self.cpu_us.append(run.cpu / run.operations * 1e6)
        self.sizes += sizes


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield the figures of every batch size, each in a fresh store."""
    for size in scale.batches:
        claims, submissions = Measured(), Measured()
        raw = RAW[store](places.fresh_url(store))
        with Workplace(places.fresh_url(store), keep_commits=True) as place:
            raw.play(place.watch.take()[1])
            _repeat(place, raw, scale, size, (claims, submissions))
        raw.close()
        floor = CLAIM_FLOORS.get(store) if size >= BATCHED else None
        yield _figure(store, "claims", size, claims, floor)
        yield _figure(store, "submissions", size, submissions, SUBMISSION_FLOOR if size >= BATCHED else None)


def _repeat(place: Workplace, raw: Raw, scale: Scale, size: int, kinds: tuple[Measured, Measured]) -> None:
    """Claim for a while, then submit what was claimed; the first round only warms up."""
    for seconds in [scale.seconds / 3] + [scale.seconds] * scale.repetitions:
        claims, submissions = kinds if seconds == scale.seconds else (Measured(), Measured())
        run = place.claim_for(seconds, size)
        claims.add(run, place.watch, raw)
        submitted = place.submit_all(run.claimed, size)
        submissions.add(submitted, place.watch, raw)


def _figure(store: str, what: str, size: int, measured: Measured, floor: float | None) -> Figure:
    return Figure.middle_of(
        measured.rates,
        "batch",
        store,
        f"{what}, batch {size}",
        "/s",
        floor=floor,
        raw=statistics.median(measured.raw_rates),
        raw_floor=RAW_SHARES.get(store) if size <= BATCHED else None,
        detail={
            "operations_per_call": size,
            "cpu_us_per_op": statistics.median(measured.cpu_us),
            "raw_low": min(measured.raw_rates),
            "raw_high": max(measured.raw_rates),
            **latency_ms(measured.took),
            **events_per_commit(measured.sizes),
        },
    )
