"""Followers of the log: how fast they read, how late they are, and what they cost the commits beside them.

The followers run as in a hub, in threads of the process that commits, on two cores of this machine.
"""

import asyncio
import itertools
import os
import time
from array import array
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from statistics import median
from time import perf_counter, process_time
from typing import Any, NamedTuple

from bench.figures import Figure
from bench.hub import run
from bench.places import Places
from bench.scale import TINY, Scale
from coord.core.identity import Caller
from coord.core.lifecycle.commands import Register
from coord.core.plans.commands import AddTasks, NewTask
from coord.core.tasks.commands import ClaimTask
from coord.engine.engine import Engine
from coord.followers import registry
from coord.followers.follower import Follower, LogSource
from coord.followers.metrics.follower import MetricsFollower
from coord.followers.runner import Runner
from coord.host.store_location import StoreLocation
from coord.sdk.log_reader import LoggedEvent
from coord.stores.database import Database
from coord.stores.open import open_store
from coord.transports.hub.app import App
from coord.transports.hub.followers.run import HubFollowers
from coord.transports.hub.followers.scrape import PATH
from coord.transports.hub.hub import Hub
from coord.transports.hub.request import Peer, Request
from coord.transports.hub.stores import OpenStore

STORES = ("memory", "sqlite")
ENTRIES_MAX = 20_000
ENTRIES_FLOOR = 20_000
EVENTS_PER_S = 2_000
TICKS_PER_S = 100
LAG_MS_MOST = 250.0
COST_MOST = 10.0
COST_PAIRS, COST_SECONDS, LEAD_SHARE = 16, 0.3, 0.4
SCRAPE_MS_MOST = 50.0
CALLERS = 32
LEASE_MS = 600_000
PATIENCE_S = 60
LAG = "lag"
TICK_S = 0.001

_numbers = itertools.count()


class LagFollower(Follower):
    """Notes how long after its commit each event is applied."""

    name = LAG
    about = "how late events come"
    waited_ms = array("d")

    def apply(self, logged: LoggedEvent) -> None:
        self.waited_ms.append(time.time() * 1000 - logged.at_ms)

    def dump(self) -> bytes:
        return b""

    def load(self, data: bytes) -> None:
        del data


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield the figures of one store."""
    if store not in STORES:
        return
    yield _entries(places.fresh_url(store), scale, store)
    yield run(_lag, places.fresh_url(store), scale, store)
    yield run(_cost, places.fresh_url(store), scale, store)
    yield run(_scrape, places.fresh_url(store), scale, store)


def _claim() -> ClaimTask:
    number = next(_numbers)
    return ClaimTask("local", "p", f"t{number}", f"agent-{number % 200}", f"s{number % 200}", LEASE_MS)


def _source(database: Database[Any], engine: Engine) -> LogSource:
    location = StoreLocation(database.url, "", None, database.store_id, 0, "/nowhere")
    return LogSource(engine, database.log("local"), location, {})


def _entries(url: str, scale: Scale, store: str) -> Figure:
    """Read a log with an event in each entry, with all followers at once."""
    wanted = min(scale.past_entries, ENTRIES_MAX)
    with closing(open_store(url)) as database, closing(Engine(database, "local")) as engine:
        for _ in range(wanted):
            engine.call(_claim())
        source = _source(database, engine)
        kinds = [kind for kind in registry.all_followers() if kind.wanted(source)]
        rates = []
        for _ in range(scale.repetitions):
            runner = Runner(source, kinds, "bench")
            for each in runner.runs:
                each.ready = True  # from the first entry, and not from what is saved
            began = perf_counter()
            while page := runner._page(runner.runs):
                runner._feed(page, runner.runs)
            rates.append(wanted / (perf_counter() - began))
            assert all(each.failure is None for each in runner.runs)
            (counted,) = (each.follower for each in runner.runs if isinstance(each.follower, MetricsFollower))
            assert counted.counts.series["coord_events_total"]["task.claimed"] == [wanted]
    name = f"entries, {len(kinds)} followers together"
    return Figure.middle_of(rates, "followers", store, name, "/s", floor=ENTRIES_FLOOR)


async def _in_hub(url: str, work: "Callable[[Hub, OpenStore], Awaitable[Figure]]") -> Figure:
    location = StoreLocation(url, "bench", None, "", 0, "/nowhere/coord")
    hub = Hub({}, location, hosts=frozenset())
    store = OpenStore(open_store(url), location)
    hub.stores.adopt("", store)
    hub.followers = HubFollowers(hub, {})
    try:
        return await work(hub, store)
    finally:
        hub.stop()
        await hub.followers.close()
        await hub.stores.close()


async def _lag(url: str, scale: Scale, store: str) -> Figure:
    """Commit at a fixed rate, and look how late the followers see each event."""

    async def work(hub: Hub, opened: OpenStore) -> Figure:
        assert hub.followers is not None
        engine = opened.engine("local")
        hub.followers.opened(opened)
        began, seconds = perf_counter(), scale.open_seconds
        waiting: set[asyncio.Future[object]] = set()
        for tick in range(max(10, int(seconds * TICKS_PER_S))):
            await asyncio.sleep(max(0.0, began + tick / TICKS_PER_S - perf_counter()))
            waiting |= {
                asyncio.ensure_future(engine.ask(_claim())) for _ in range(EVENTS_PER_S // TICKS_PER_S)
            }
            waiting = {each for each in waiting if not each.done()}
        if waiting:
            await asyncio.wait(waiting)
        expected = max(10, int(seconds * TICKS_PER_S)) * (EVENTS_PER_S // TICKS_PER_S)
        rate = expected / (perf_counter() - began)
        async with asyncio.timeout(PATIENCE_S):
            while len(LagFollower.waited_ms) < expected:  # noqa: ASYNC110 - a thread fills it
                await asyncio.sleep(0.05)
        found = sorted(LagFollower.waited_ms)
        p99 = found[int(len(found) * 0.99)]
        name = f"lag p99 at {EVENTS_PER_S} events/s"
        detail = {"p50_ms": found[len(found) // 2], "max_ms": found[-1], "events_per_s": rate}
        return Figure("followers", store, name, p99, "ms", most=LAG_MS_MOST, detail=detail)

    del LagFollower.waited_ms[:]
    registry.FOLLOWERS[LAG] = f"{__name__}:{LagFollower.__name__}"
    try:
        return await _in_hub(url, work)
    finally:
        del registry.FOLLOWERS[LAG]


async def _cost(url: str, scale: Scale, store: str) -> Figure:
    """Commit as fast as possible, in turns with and without the followers; compare the turns of each pair.

    A store that grows gets slower, so the order changes from pair to pair, and each turn begins with commits
    that do not count: the followers are then as far behind as they will be at its end.
    """
    pairs, seconds = (1, scale.seconds) if scale is TINY else (COST_PAIRS, COST_SECONDS)

    async def work(hub: Hub, opened: OpenStore) -> Figure:
        assert hub.followers is not None
        engine = opened.engine("local")
        hub.followers.opened(opened)
        await _caught_up(hub, opened)
        notify = engine.on_events
        found: dict[bool, list[Turn]] = {False: [], True: []}
        for number in range(pairs):
            for followed in (False, True) if number % 2 else (True, False):
                engine.on_events = notify if followed else _ignore
                await _caught_up(hub, opened)
                await _turn(engine, LEAD_SHARE * seconds)
                found[followed].append(await _turn(engine, seconds))
        engine.on_events = notify
        both = list(zip(found[False], found[True], strict=True))
        shares = [100 * (1 - followed.rate / plain.rate) for plain, followed in both]
        cpu = 100 * (median(followed.cpu_us / plain.cpu_us for plain, followed in both) - 1)
        asked = COST_MOST if store != "memory" else None  # there, commits cost nothing but processor time
        detail = {
            "plain_per_s": median(plain.rate for plain, _ in both),
            "followed_per_s": median(followed.rate for _, followed in both),
            "cpu_percent": cpu,
        }
        name = f"cost for {CALLERS} callers that commit"
        return Figure.middle_of(shares, "followers", store, name, "%", most=asked, detail=detail)

    return await _in_hub(url, work)


def _ignore() -> None:
    """Tell the followers nothing."""


async def _caught_up(hub: Hub, opened: OpenStore) -> None:
    """Wait until the followers have read the log."""
    assert hub.followers is not None
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = hub.followers.of(opened, "local")
            if found is not None and found.running("metrics") is not None:
                found.news.set()
                if found.runner.offset >= opened.log("local").seen.offset:
                    return
            await asyncio.sleep(0.01)


class Turn(NamedTuple):
    """What callers did in one turn: commands a second, and processor time of the process for each."""

    rate: float
    cpu_us: float


async def _turn(engine: Engine, seconds: float) -> Turn:
    until, done = perf_counter() + seconds, 0

    async def caller() -> None:
        nonlocal done
        while perf_counter() < until:
            await engine.ask(_claim())
            done += 1

    began, cpu = perf_counter(), process_time()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return Turn(done / (perf_counter() - began), (process_time() - cpu) * 1e6 / done)


async def _scrape(url: str, scale: Scale, store: str) -> Figure:
    """Ask for the metrics of many tasks and agents, one request after the other."""
    tasks, agents = (30, 10) if scale is TINY else (10_000, 200)

    async def work(hub: Hub, opened: OpenStore) -> Figure:
        assert hub.followers is not None
        engine, app = opened.engine("local"), App(hub)
        for start in range(0, tasks, 100):
            added = tuple(NewTask(task_id=f"n{number}") for number in range(start, min(start + 100, tasks)))
            await engine.ask(AddTasks("p", added))
        for number in range(agents):
            await engine.ask(Register(caller=Caller(f"s{number}", agent=f"agent-{number}")))
            await engine.ask(_claim())
        hub.followers.opened(opened)
        took: list[float] = []
        size = 0
        late = asyncio.ensure_future(_lateness())
        for _ in range(max(20, scale.commands)):
            request = Request("GET", PATH, "", {}, b"", Peer(unix=True, uid=os.getuid()))
            began = perf_counter()
            response = await app.answer(request)
            took.append((perf_counter() - began) * 1000)
            assert response.status == 200, response.body
            size = len(response.body)
        late.cancel()
        ordered = sorted(took[1:])  # the first one waits until everything is counted
        name = f"/metrics, {tasks} tasks, {agents} agents"
        detail = {"best_ms": ordered[0], "bytes": size, "late_ms": max(_late_ms)}
        middle = ordered[len(ordered) // 2]
        return Figure("followers", store, name, middle, "ms", most=SCRAPE_MS_MOST, detail=detail)

    return await _in_hub(url, work)


_late_ms: list[float] = []


async def _lateness() -> None:
    """Note how much later than it wanted a task goes on: what others wait for while the hub is busy."""
    _late_ms.clear()
    while True:
        began = perf_counter()
        await asyncio.sleep(TICK_S)
        _late_ms.append((perf_counter() - began - TICK_S) * 1000)
