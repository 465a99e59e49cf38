"""The stores that a hub has open: opened on the first use, closed when nobody used them for a while."""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from coord.core.errors import CoordError, NotFound, Unavailable
from coord.engine.engine import Engine
from coord.host.processes import probe
from coord.host.store_location import StoreLocation, find_location, user_location
from coord.sdk.client.open import open_location
from coord.sdk.remote.wire import LogHead
from coord.stores.contract import Store
from coord.stores.database import Database

IDLE_S = 300.0
OPENERS = 8


def new_engine(database: Database[Any], tenant: str) -> Engine:
    """Return an engine that can look at the processes of this machine."""
    return Engine(database, tenant, probe=probe)


class OpenStore:
    """An open store, its engines by tenant, and how many requests use it."""

    def __init__(
        self,
        database: Database[Any],
        location: StoreLocation,
        new_engine: Callable[[Database[Any], str], Engine] = new_engine,
    ) -> None:
        self.database = database
        self._new_engine = new_engine
        self.location = location
        self.users = 0
        self.held = 0
        """How many hooks use it, each in a thread."""
        self.used_s = time.monotonic()
        self._engines: dict[str, Engine] = {}

    def engine(self, tenant: str) -> Engine:
        """Return the engine of a tenant; opening its log may block."""
        engine = self._engines.get(tenant)
        if engine is None:
            engine = self._engines.setdefault(tenant, self._new_engine(self.database, tenant))
        return engine

    def known_engine(self, tenant: str) -> Engine | None:
        """Return the engine of a tenant if it is open."""
        return self._engines.get(tenant)

    def log(self, tenant: str) -> Store:
        """Return the log of a tenant."""
        log: Store = self.database.log(tenant)
        return log

    def head(self, tenant: str) -> LogHead:
        """Return the newest entry that this process has seen."""
        log = self.log(tenant)
        return LogHead(*log.seen, log.now())

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the store open."""
        self.users += 1
        try:
            yield
        finally:
            self.users -= 1
            self.used_s = time.monotonic()

    def close_engines(self) -> None:
        """Answer the commands that wait, and refuse others."""
        for engine in self._engines.values():
            engine.close()

    def close(self) -> None:
        """Answer the commands that wait, and close the store."""
        self.close_engines()
        self.database.close()


class HubStores:
    """Opens the stores of repositories, of the user, and of the url that the hub serves."""

    def __init__(
        self,
        environ: Mapping[str, str],
        default: StoreLocation,
        *,
        on_open: Callable[[OpenStore], None] = lambda _: None,
    ) -> None:
        """`default`: the store of requests that name none."""
        self.environ = {**environ, "COORD_HUB": "off"}
        self.default = default
        self._on_open = on_open
        self._open: dict[str, OpenStore] = {}
        self._opening: dict[str, asyncio.Future[OpenStore]] = {}
        self._users = threading.Lock()
        self._folders: dict[str, StoreLocation] = {}
        self.threads = ThreadPoolExecutor(OPENERS, thread_name_prefix="coord-hub")
        self.closed = False

    def __contains__(self, folder: str) -> bool:
        return folder in self._open

    def __iter__(self) -> Iterator[OpenStore]:
        return iter(list(self._open.values()))

    async def run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Run blocking work in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, work, *arguments)

    async def of_root(self, root: str) -> OpenStore:
        """Return the store of a worktree on this machine; "" is the store of the user."""
        known = self._folders.get(root)
        location = known or await self.run(self._locate, root)
        return await self.at(location)

    async def of_repository(self, repository_id: str) -> OpenStore:
        """Return the open store of a repository by its id; "" is the default."""
        if repository_id in ("", self.default.repository_id):
            return await self.at(self.default)
        for store in self:
            if store.location.repository_id == repository_id:
                return store
        raise NotFound(
            f"this hub does not serve the repository {repository_id[:80]!r}",
            hint="start coord serve in that repository, or name one of coord serve --status",
        )

    def adopt(self, root: str, store: OpenStore) -> None:
        """Serve a store that is open already, as that of a worktree."""
        self._folders[root] = store.location
        self._open[store.location.folder] = store

    def location_of(self, root: str) -> StoreLocation | None:
        """Return the location of a worktree whose store was asked for."""
        return self._folders.get(root)

    def by_store_id(self, store_id: str) -> OpenStore | None:
        """Return the open store that has an id."""
        return next((store for store in self if store.database.store_id.startswith(store_id)), None)

    async def at(self, location: StoreLocation) -> OpenStore:
        """Return the store of a location, opened if it is not."""
        store = self._open.get(location.folder)
        if store is not None:
            return store
        if self.closed:
            raise Unavailable("the hub is stopping", hint="try again")
        opening = self._opening.get(location.folder)
        if opening is None:
            opening = asyncio.ensure_future(self._open_at(location))
            self._opening[location.folder] = opening
            opening.add_done_callback(lambda _: self._opening.pop(location.folder, None))
        return await asyncio.shield(opening)

    async def engine(self, store: OpenStore, tenant: str) -> Engine:
        """Return the engine of a tenant."""
        return store.known_engine(tenant) or await self.run(store.engine, tenant)

    async def _open_at(self, location: StoreLocation) -> OpenStore:
        database, location = await self.run(open_location, location)
        store = OpenStore(database, location)
        if self.closed:
            await self.run(store.close)
            raise Unavailable("the hub is stopping", hint="try again")
        self._open[location.folder] = store
        self._on_open(store)
        return store

    def _locate(self, root: str) -> StoreLocation:
        location = find_location(root, self.environ) if root else user_location(self.environ)
        if root and (location.repository is None or not os.path.isabs(root)):
            raise NotFound(f"{root[:200]} is no repository", hint="the hub sees the folders of its machine")
        if not location.pinned:
            raise NotFound(f"coord is not in use in {root[:200]}", hint="coord init sets it up")
        self._folders[root] = location
        return location

    @contextmanager
    def held(self, folder: str) -> Iterator[OpenStore | None]:
        """Keep the store of a pin open, from any thread; None if it is not open."""
        with self._users:
            store = self._open.get(folder)
            if store is not None:
                store.held += 1
        try:
            yield store
        finally:
            if store is not None:
                with self._users:
                    store.held -= 1
                store.used_s = time.monotonic()

    async def close_idle(self, idle_s: float = IDLE_S) -> None:
        """Close the stores that nobody used for some time; the default stays open."""
        now = time.monotonic()
        for folder, store in list(self._open.items()):
            busy = store.users or store.held
            if not busy and now - store.used_s > idle_s and folder != self.default.folder:
                await self._close(folder)

    async def close(self) -> None:
        """Close everything; requests that come later are refused."""
        self.closed = True
        for folder in list(self._open):
            await self._close(folder)
        self.threads.shutdown(wait=False)

    async def _close(self, folder: str) -> None:
        with self._users:
            if self._open[folder].held and not self.closed:
                return
            store = self._open.pop(folder)
        for root in [root for root, location in self._folders.items() if location.folder == folder]:
            del self._folders[root]
        try:
            await self.run(store.close)
        except CoordError:
            return
