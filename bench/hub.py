"""Claims, submissions and locks through a hub, over socket and HTTP, beside others and what is possible.

Beside them: the engine in process, and a server that answers as many bytes and does nothing else. The load
comes from this process, on the same machine: on two cores, half of what the server could do.
"""

import asyncio
import itertools
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import uvloop

from bench import hub_locks, hub_whole
from bench.figures import Figure
from bench.fresh import ROOT as FOLDER
from bench.hub_load import Claims, Client, Stock, Submissions, Way, closed_loop, open_loop, short_latency_ms
from bench.hub_server import RAW, ROOT
from bench.places import Places
from bench.scale import Scale
from coord.core.tasks.commands import ClaimTask
from coord.engine.engine import Engine
from coord.stores.open import open_store

STORES = ("memory", "sqlite", "postgres")
SIZES = ((1, 1), (32, 1), (256, 1), (1, 100), (32, 100), (256, 32))
"""Clients, and commands in each request; more at once than an engine queues would be refused."""
FLOORS = {("memory", 1): 10_000, ("sqlite", 1): 6_000, ("memory", 100): 40_000, ("sqlite", 100): 25_000}
"""Claims a second over HTTP with 32 clients, on a quiet machine."""
FLOOR_CLIENTS = 32
KINDS = {"claims": Claims, "submissions": Submissions}


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield rates for each way, number of clients and size of requests; locks and commands on SQLite."""
    if store not in STORES:
        return
    sizes = _sizes(scale)
    for clients in sorted({clients for clients, _ in sizes}):
        rate = run(_in_process, places.fresh_url(store), clients, scale.seconds)
        yield Figure("hub", store, f"engine in process, {clients} callers", rate, "/s")
    stock = Stock()
    with server(RAW) as raw, server(places.fresh_url(store)) as hub:
        for transport in ("socket", "http"):
            for clients, batch in sizes:
                one = partial(_figure, store, transport, hub[transport], raw[transport], clients, batch)
                claims = one("claims", stock, scale)
                yield claims
                _fill(hub["socket"], stock, claims.high or 0.0, scale)
                yield one("submissions", stock, scale)
        if store != "memory":
            yield from hub_locks.measure(places, scale, store, hub, run)
    if store == "sqlite":
        yield from hub_whole.measure(places, scale, store)


def _sizes(scale: Scale) -> list[tuple[int, int]]:
    match scale.name:
        case "tiny":
            return [each for each in SIZES if each[0] == 1]
        case "quick":  # its requests take longer than a quick repetition
            return [each for each in SIZES if each != (256, 32)]
        case _:
            return list(SIZES)


def _fill(way: Way, stock: Stock, per_s: float, scale: Scale) -> None:
    """Claim as many tasks as submissions may need, which are never faster than claims."""
    wanted = per_s * (scale.seconds * (scale.repetitions + 1.5) + scale.open_seconds / 8)
    while len(stock.claimed) < wanted:
        run(closed_loop, way, 4, Claims(way, 100, stock), 0.05)


def _figure(
    store: str,
    transport: str,
    way: Way,
    raw_way: Way,
    clients: int,
    batch: int,
    kind: str,
    stock: Stock,
    scale: Scale,
) -> Figure:
    work = KINDS[kind](way, batch, stock)
    warm = run(closed_loop, way, clients, work, scale.seconds / 3)
    runs = [run(closed_loop, way, clients, work, scale.seconds) for _ in range(scale.repetitions)]
    plain = _Copies(kind, way, batch, len(warm.answer))
    raw = run(closed_loop, raw_way, clients, plain, scale.seconds).rate
    half = max(each.rate for each in runs) / 2
    took = run(open_loop, way, clients, work, half, scale.open_seconds / 4)
    asked = kind == "claims" and transport == "http" and clients == FLOOR_CLIENTS
    name = f"{kind}, {transport}, {clients} clients" + (f", {batch} a request" if batch > 1 else "")
    return Figure.middle_of(
        [each.rate * batch for each in runs],
        "hub",
        store,
        name,
        "/s",
        floor=FLOORS.get((store, batch)) if asked else None,
        raw=raw * batch,
        detail={
            "cpu_us_per_op": min(each.cpu_us for each in runs) / batch,
            "half_load": half * batch,
            **short_latency_ms(took),
        },
    )


class _Copies:
    """The same requests to the server that does nothing; the query says how much it has to answer."""

    steps = 1

    def __init__(self, kind: str, way: Way, batch: int, answer_bytes: int) -> None:
        self._stock = Stock()
        self._names = [self._stock.new() for _ in range(batch)]
        self._work = KINDS[kind](way, batch, self._stock, f"?{answer_bytes}")

    def request(self, client: Client) -> bytes | None:
        self._stock.claimed.extend(self._names)
        return self._work.request(client)

    def check(self, answer: bytes) -> None:
        """Take any answer."""


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


def run(work: Callable[..., Any], *arguments: Any) -> Any:
    """Run a coroutine in an event loop as the hub has one."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work(*arguments))


@contextmanager
def server(url: str) -> Iterator[dict[str, Way]]:
    """Run a hub on a store, or the server that does nothing; yield the ways to it."""
    with tempfile.TemporaryDirectory(prefix="hub-", dir="/tmp") as folder:
        path = str(Path(folder) / "s")
        words = [sys.executable, "-m", "bench.hub_server", url, path]
        with subprocess.Popen(words, cwd=FOLDER, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            address, token = child.stdout.readline().split()
            over_socket = Way(path=path, root=ROOT, pid=child.pid)
            try:
                yield {"socket": over_socket, "http": Way(address=address, token=token, pid=child.pid)}
            finally:
                child.terminate()
