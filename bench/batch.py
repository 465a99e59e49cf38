"""Claims and submissions in batches, from one caller, with the raw limit beside each."""

import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bench.figures import Figure, latency_ms
from bench.places import Places
from bench.quiet import Rounds
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


class Round(NamedTuple):
    """One repetition of one figure: ours, and raw right after it, so that both meet the same machine."""

    rate: float
    raw_rate: float
    took: list[float]
    cpu_us: float
    sizes: list[int]


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield the figures of every batch size, each in a fresh store."""
    for size in scale.batches:
        rounds = Rounds(scale.repetitions)
        raw = RAW[store](places.fresh_url(store))
        with Workplace(places.fresh_url(store), keep_commits=True) as place:
            raw.play(place.watch.take()[1])
            _claim_and_submit(place, raw, scale.seconds / 3, size)  # warm now
            pairs = [_claim_and_submit(place, raw, scale.seconds, size) for _ in rounds]
        raw.close()
        claims, submissions = zip(*rounds.chosen(pairs), strict=True)
        floor = CLAIM_FLOORS.get(store) if size >= BATCHED else None
        yield _figure(store, "claims", size, claims, floor, rounds.share)
        floor = SUBMISSION_FLOOR if size >= BATCHED else None
        yield _figure(store, "submissions", size, submissions, floor, rounds.share)


def _claim_and_submit(place: Workplace, raw: Raw, seconds: float, size: int) -> tuple[Round, Round]:
    """Claim for a while, then submit what was claimed."""
    run = place.claim_for(seconds, size)
    claims = _round(run, place.watch, raw)
    return claims, _round(place.submit_all(run.claimed, size), place.watch, raw)


def _round(run: Run, watch: Watch, raw: Raw) -> Round:
    sizes, commits = watch.take()
    raw_rate = run.operations / raw.play(commits)
    return Round(run.rate, raw_rate, run.took, run.cpu / run.operations * 1e6, sizes)


def _figure(
    store: str, what: str, size: int, rounds: Sequence[Round], floor: float | None, undisturbed: float
) -> Figure:
    raw_rates = [each.raw_rate for each in rounds]
    return Figure.middle_of(
        [each.rate for each in rounds],
        "batch",
        store,
        f"{what}, batch {size}",
        "/s",
        floor=floor,
        raw=statistics.median(raw_rates),
        raw_floor=RAW_SHARES.get(store) if size <= BATCHED else None,
        detail={
            "operations_per_call": size,
            "undisturbed": undisturbed,
            "cpu_us_per_op": statistics.median(each.cpu_us for each in rounds),
            "raw_low": min(raw_rates),
            "raw_high": max(raw_rates),
            **latency_ms(took for each in rounds for took in each.took),
            **events_per_commit([size for each in rounds for size in each.sizes]),
        },
    )
