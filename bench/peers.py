"""Claim and complete, beside other queues in the same run: with one worker and with several.

A row is one queue in one shape; `ours/this` compares it with our plain shape, a process for each worker that
asks for one task at a time. The last rows say what our best shape is worth beside the best of each peer.
"""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench import drained
from bench.drainer import QUEUES
from bench.figures import Figure
from bench.places import Places
from bench.queue_ours import OURS, PLAIN
from bench.queue_peers import PEERS
from bench.repository import make_repository
from bench.scale import Scale

PACKAGES = ("huey", "litequeue", "procrastinate", "pgqueuer", "saq")
BESIDE: Mapping[str, tuple[str, ...]] = {
    "sqlite": ("huey", "litequeue"),
    "postgres": ("procrastinate", "pgqueuer"),
    "postgres-log": ("procrastinate", "pgqueuer"),
    "redis": ("SAQ",),
}
"""Which packages stand beside a store: those that keep their tasks in the same place."""
FLOORS = {"procrastinate": 10, "pgqueuer": 3, "huey": 5, "SAQ": 5}
FLOOR_WORKERS = 8
IN_MEMORY_ONLY = "memory"


def missing() -> list[str]:
    """Return the packages that should stand beside ours and are not installed."""
    return [name for name in PACKAGES if find_spec(name) is None]


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield every shape of ours and every peer of a store, then ours at best beside the best of each peer."""
    repository = make_repository(places.folder)
    absent = {name.lower() for name in missing()}
    packages = [name for name in BESIDE.get(store, ()) if name.lower() not in absent]
    rivals = [name for name in PEERS if name.partition(",")[0] in packages]
    ours = [name for name in OURS if store != IN_MEMORY_ONLY or OURS[name].one_process]
    for workers in scale.workers:
        rates: dict[str, float] = {}
        for name in [*ours, *rivals]:
            url = places.queue_url(name, store)
            figure = _figure(store, name, url, repository, workers, scale.drained)
            rates[name] = figure.value
            if name in rivals:
                figure.detail["ours_of_this"] = rates[PLAIN] / figure.value
            yield figure
        for package in packages:
            yield compared(store, package, workers, rates)


def _figure(store: str, name: str, url: str, repository: Path, workers: int, tasks: int) -> Figure:
    kind: Any = QUEUES[name]
    tasks *= kind.rounds
    filler = kind(url, repository, "filler")
    filler.fill(tasks)
    if store == IN_MEMORY_ONLY:
        run = drained.run_here(filler, workers)
    else:
        filler.close()
        run = drained.run(kind, name, url, repository, workers)
    assert sum(map(len, run.moments)) == tasks, "every task was done once"
    return Figure("peers", store, f"{name}, {_workers(workers)}", run.rate, "/s", detail=run.detail())


def compared(store: str, package: str, workers: int, rates: Mapping[str, float]) -> Figure:
    """Return our best as a multiple of the best of a peer; asked for with several workers."""
    best = max(OURS.keys() & rates.keys(), key=rates.__getitem__)
    theirs = max((name for name in rates if name.partition(",")[0] == package), key=rates.__getitem__)
    return Figure(
        "peers",
        store,
        f"{best} ÷ {theirs}, {_workers(workers)}",
        rates[best] / rates[theirs],
        "×",
        floor=FLOORS.get(package) if workers == FLOOR_WORKERS else None,
    )


def _workers(workers: int) -> str:
    return "1 worker" if workers == 1 else f"{workers} workers"
