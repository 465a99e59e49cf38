"""Run the followers of each log that the hub has open.

One task for each log lets the followers read in a thread, `PAUSE_S` after the hub has committed events.
Whoever waits for that commit is answered first, and one read takes in all commits of that time. What other
processes commit is found every `LOOK_S`: waiting for that in the store would wake an idle hub four times a
second.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from coord.core.commands import Command
from coord.core.errors import CoordError, Unavailable
from coord.core.followers import FollowerInfo, ListFollowers
from coord.followers.direct import runner_name
from coord.followers.follower import Follower, LogSource
from coord.followers.registry import all_followers
from coord.followers.runner import STEP_PAGES, FollowerRun, Runner
from coord.host.caller import find_tenant
from coord.transports.hub.stores import OpenStore

if TYPE_CHECKING:
    from coord.transports.hub.hub import Hub

logger = logging.getLogger("coord.hub")
THREADS = 2
PAUSE_S = 0.05
LOOK_S = 15.0
"""How often the hub looks for entries of other processes, and whether other followers are wanted."""
RETRY_S = 5.0


class LogFollowers:
    """The followers of one log; their number changes with the configuration."""

    def __init__(self, source: LogSource, news: asyncio.Event) -> None:
        self._source = source
        self.news = news
        """Set: they read the log. Entries without events do not set it."""
        self._kinds: list[type[Follower]] = []
        self.runner = Runner(source, (), runner_name())

    def running(self, name: str) -> FollowerRun | None:
        """Return a follower that has its state and has not failed."""
        return next((run for run in self.runner.runs if run.name == name and run.ready), None)

    def positions(self, saved: list[FollowerInfo]) -> list[FollowerInfo]:
        """Return followers as they are saved, but with what the running ones have read by now."""
        found = {each.name: each for each in saved}
        for run in self.runner.runs:
            if run.ready or run.rests_at:
                before = found.get(run.name) or FollowerInfo(run.name, 0, 0, 0, 0, 0, "", "", 0)
                offset = max(run.offset, run.rests_at)
                found[run.name] = replace(before, offset=offset, missed=run.missed, live=True)
        return [found[name] for name in sorted(found)]

    def step(self) -> float:
        """Let the followers read and act; return after how many seconds something is due."""
        wanted = [kind for kind in all_followers() if kind.wanted(self._source)]
        if wanted != self._kinds:
            self.runner.close()
            self._kinds, self.runner = wanted, Runner(self._source, wanted, runner_name())
        due_ms = self.runner.step(pages_max=STEP_PAGES)
        if self.runner.behind:
            return 0.0
        return max(0.0, (due_ms - self._source.now()) / 1000) if due_ms else LOOK_S


class HubFollowers:
    """The followers of all logs of a hub."""

    def __init__(self, hub: "Hub", environ: Mapping[str, str]) -> None:
        self._hub = hub
        self._environ = environ
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[tuple[OpenStore, str], asyncio.Task[None]] = {}
        self._logs: dict[tuple[OpenStore, str], LogFollowers] = {}
        self._waiting: set[asyncio.Event] = set()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="coord-follow")

    def opened(self, store: OpenStore) -> None:
        """Follow a store that was opened: a tenant's log from its first use on, the hub's own at once."""
        store.on_engine = self.follow
        if store.location.folder == self._hub.stores.default.folder:
            self.follow(store, find_tenant(self._environ))

    def follow(self, store: OpenStore, tenant: str) -> None:
        """Follow the log of a tenant, from any thread, as long as its store is open."""
        self._loop.call_soon_threadsafe(self._follow, store, tenant)

    def of(self, store: OpenStore, tenant: str) -> "LogFollowers | None":
        """Return the followers of a log that the hub follows."""
        return self._logs.get((store, tenant))

    def completed(self, store: OpenStore, tenant: str, command: Command, reply: Any) -> Any:
        """Return the reply to a command with what only the hub knows: how far its followers have read."""
        followers = self.of(store, tenant) if isinstance(command, ListFollowers) else None
        return reply if followers is None or not isinstance(reply, list) else followers.positions(reply)

    def _follow(self, store: OpenStore, tenant: str) -> None:
        key = (store, tenant)
        if key not in self._tasks and not self._hub.stopping.is_set():
            self._tasks[key] = asyncio.ensure_future(self._run(store, tenant))
            self._tasks[key].add_done_callback(lambda _: self._tasks.pop(key, None))

    async def _run(self, store: OpenStore, tenant: str) -> None:
        key, news = (store, tenant), asyncio.Event()
        try:
            engine = await self._hub.stores.engine(store, tenant)
            source = LogSource(engine, store.log(tenant), store.location, self._environ)
            followers = LogFollowers(source, news)
            self._logs[key] = followers
            engine.on_events = lambda: self._notify(news)
            self._waiting.add(news)
            while not (self._hub.stopping.is_set() or store.database.closed or store.waits_ended):
                news.clear()
                wait_s = await self._step(followers)
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(wait_s, LOOK_S)):
                        await news.wait()
                with suppress(TimeoutError):
                    async with asyncio.timeout(PAUSE_S):
                        await self._hub.stopping.wait()
            await self._in_thread(followers.runner.close)
        except Unavailable:
            return  # the store was closed
        except Exception:  # without this the hub would go on, and nobody would know
            logger.exception("the followers of a log have ended")
        finally:
            self._logs.pop(key, None)
            self._waiting.discard(news)

    async def _step(self, followers: LogFollowers) -> float:
        try:
            wait_s: float = await self._in_thread(followers.step)
        except CoordError as error:
            logger.warning("followers: %s", error)
            return RETRY_S
        return wait_s

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        return await self._loop.run_in_executor(self._threads, work)

    def _notify(self, news: asyncio.Event) -> None:
        """Let the followers of a log go on, from any thread; once is enough until they have read."""
        if not news.is_set():
            with suppress(RuntimeError):  # the hub has ended
                self._loop.call_soon_threadsafe(news.set)

    async def close(self) -> None:
        """Wait until all have saved what they have."""
        for news in self._waiting:
            news.set()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._threads.shutdown(wait=False)
