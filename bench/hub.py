"""Claims through a hub, over socket and HTTP, beside the engine in process and a server that does nothing.

The load comes from this process, on the same machine: on two cores, half of what the server could do.
"""

import asyncio
import itertools
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop

from bench.figures import Figure, latency_ms
from bench.fresh import ROOT as FOLDER
from bench.hub_load import Claims, Way, closed_loop, open_loop
from bench.hub_server import RAW, ROOT
from bench.places import Places
from bench.scale import Scale
from coord.core.tasks.commands import ClaimTask
from coord.engine.engine import Engine
from coord.stores.open import open_store

STORES = ("memory", "sqlite", "postgres")
CLIENTS = (1, 32, 256)
BATCH = 100
FLOORS = {("memory", 1): 10_000, ("sqlite", 1): 6_000, ("memory", BATCH): 40_000, ("sqlite", BATCH): 25_000}
"""Claims a second over HTTP with 32 clients, on a quiet machine."""
FLOOR_CLIENTS = 32


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield claims a second for each way, number of clients and size of requests."""
    if store not in STORES:
        return
    clients = [each for each in CLIENTS if scale.name != "tiny" or each == 1]
    numbers = itertools.count(1)
    for each in clients:
        rate = _run(_in_process, places.fresh_url(store), each, scale.seconds)
        yield Figure("hub", store, f"engine in process, {each} callers", rate, "/s")
    with _server(RAW) as raw, _server(places.fresh_url(store)) as hub:
        for transport in ("socket", "http"):
            for each, batch in [*((each, 1) for each in clients), (min(clients[-1], FLOOR_CLIENTS), BATCH)]:
                yield _claims(store, transport, hub[transport], raw[transport], each, batch, numbers, scale)


def _claims(
    store: str,
    transport: str,
    way: Way,
    raw_way: Way,
    clients: int,
    batch: int,
    numbers: "itertools.count[int]",
    scale: Scale,
) -> Figure:
    claims, plain = Claims(way, batch, numbers), Claims(raw_way, batch, numbers)
    _run(closed_loop, way, clients, claims, scale.seconds / 3)
    rates = [_run(closed_loop, way, clients, claims, scale.seconds)[0] for _ in range(scale.repetitions)]
    raw = _run(closed_loop, raw_way, clients, plain, scale.seconds)[0]
    half = max(rates) / 2
    took = _run(open_loop, way, clients, claims, half, scale.open_seconds / 4)
    floor = FLOORS.get((store, batch)) if transport == "http" and clients == FLOOR_CLIENTS else None
    name = f"{transport}, {clients} clients" + (f", {batch} claims a request" if batch > 1 else "")
    return Figure.middle_of(
        [rate * batch for rate in rates],
        "hub",
        store,
        name,
        "/s",
        floor=floor,
        raw=raw * batch,
        detail={"half_load": half * batch, **latency_ms(took)},
    )


async def _in_process(url: str, callers: int, seconds: float) -> float:
    """Return claims a second of coroutines that share an engine, without a socket."""
    database = open_store(url)
    engine, numbers, done = Engine(database, "local"), itertools.count(1), 0
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds

    async def caller() -> None:
        nonlocal done
        while loop.time() < until:
            await engine.ask(ClaimTask("local", "bench", f"e{next(numbers)}", "agent", "session", 60_000))
            done += 1

    await asyncio.gather(*(caller() for _ in range(callers)))
    engine.close()
    database.close()
    return done / seconds


def _run(work: Callable[..., Any], *arguments: Any) -> Any:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work(*arguments))


@contextmanager
def _server(url: str) -> Iterator[dict[str, Way]]:
    """Run a hub on a store, or the server that does nothing; yield the ways to it."""
    with tempfile.TemporaryDirectory(prefix="hub-", dir="/tmp") as folder:
        path = str(Path(folder) / "s")
        words = [sys.executable, "-m", "bench.hub_server", url, path]
        with subprocess.Popen(words, cwd=FOLDER, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            address, token = child.stdout.readline().split()
            try:
                yield {"socket": Way(path=path, root=ROOT), "http": Way(address=address, token=token)}
            finally:
                child.terminate()
