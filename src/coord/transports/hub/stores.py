"""The stores that a hub has open: opened on the first use, closed when nobody used them for a while."""

import asyncio
import math
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeVar

from coord.core.errors import CoordError, NotFound, Unreachable
from coord.engine.engine import Engine
from coord.host.pin import NAME as PIN
from coord.host.processes import probe
from coord.host.store_location import StoreLocation, find_location, local_path, user_location
from coord.sdk.client.open import open_location, open_named
from coord.sdk.remote.wire import LogHead
from coord.stores.contract import Store
from coord.stores.database import Database
from coord.stores.local.folders import file_id
from coord.stores.migration import earlier_ids
from coord.transports.hub.wakeups import LogWatcher

Kept = TypeVar("Kept")
IDLE_S = 300.0
OPENERS = 8
KNOWN_MAX = 10_000
LOOKED_S = 0.002
"""How long a look at the pin of a store counts: nobody can replace a store and start a process within it.

A look lets go of Python's lock twice, which was a quarter of what a busy hub does for a claim.
"""
RETIRED_S = 30.0
"""How long a store that its repository has left stays open for the requests that use it."""


def new_engine(database: Database[Any], tenant: str) -> Engine:
    """Return an engine that can look at the processes of this machine."""
    return Engine(database, tenant, probe=probe)


class Signature(NamedTuple):
    """What shows that a pin, or the file that it names, is another one now."""

    pin: tuple[int, int, int] | None
    file: tuple[int, int] | None


def signature(location: StoreLocation) -> Signature:
    """Return the present signature of a location."""
    pin = None
    with suppress(OSError):
        found = os.stat(f"{location.folder}/{PIN}")
        pin = (found.st_ino, found.st_mtime_ns, found.st_size)
    return Signature(pin, file_id(local_path(location.url)) if location.local else None)


class KnownStore(NamedTuple):
    """A store that the hub has served: where it is, its id, and those from which it was copied."""

    location: StoreLocation
    ids: tuple[str, ...]


class OpenStore:
    """An open store, its engines and watchers by tenant, and how many requests use it."""

    def __init__(
        self,
        database: Database[Any],
        location: StoreLocation,
        new_engine: Callable[[Database[Any], str], Engine] = new_engine,
    ) -> None:
        self.database = database
        self._new_engine = new_engine
        self.location = location
        self.ids = (database.store_id, *earlier_ids(database.metadata))
        """Its id, and those of the stores from which it was copied."""
        self.signature = signature(location)
        self._looked_s = -math.inf
        self.users = 0
        self.unused = asyncio.Event()
        self.held = 0
        """How many hooks use it, each in a thread."""
        self.used_s = time.monotonic()
        self.on_engine: Callable[[OpenStore, str], None] = lambda _store, _tenant: None
        """Called when the engine of a tenant was made."""
        self._engines: dict[str, Engine] = {}
        self._watchers: dict[str, LogWatcher] = {}
        self.waits_ended = False

    @property
    def is_current(self) -> bool:
        """Whether the repository still has this store: it may move, be repaired, or start afresh."""
        now = time.monotonic()
        if now - self._looked_s >= LOOKED_S:
            if signature(self.location) != self.signature:
                return False
            self._looked_s = now
        return not self.database.closed

    def engine(self, tenant: str) -> Engine:
        """Return the engine of a tenant; opening its log may block."""
        engine = self._engines.get(tenant)
        if engine is None:
            engine = self._engines.setdefault(tenant, self._new_engine(self.database, tenant))
            self.on_engine(self, tenant)
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

    def watcher(self, tenant: str) -> LogWatcher:
        """Return what waits for the log of a tenant to grow."""
        watcher = self._watchers.get(tenant)
        if watcher is None:
            watcher = self._watchers[tenant] = LogWatcher(self.log(tenant))
            if self.waits_ended:
                watcher.close()
        return watcher

    def end_waits(self) -> None:
        """Let everybody go on who waits for a log to grow, now and later."""
        self.waits_ended = True
        for watcher in self._watchers.values():
            watcher.close()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the store open."""
        self.users += 1
        self.unused.clear()
        try:
            yield
        finally:
            self.users -= 1
            self.used_s = time.monotonic()
            if not self.users:
                self.unused.set()

    def close_engines(self) -> None:
        """Answer the commands that wait, and refuse others."""
        for engine in list(self._engines.values()):
            engine.close()

    def close(self) -> None:
        """Answer the commands that wait, and close the store; its waits have been ended."""
        self.close_engines()
        self.database.close()
        for watcher in self._watchers.values():
            watcher.join()


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
        self.environ = {**environ, "COORD_HUB": "off", "COORD_URL": ""}  # a pin names each store
        self.default = default
        self._on_open = on_open
        self._open: dict[str, OpenStore] = {}
        self._opening: dict[str, asyncio.Future[OpenStore]] = {}
        self._users = threading.Condition()
        self._closing: set[asyncio.Future[None]] = set()
        self._folders: OrderedDict[str, StoreLocation] = OrderedDict()
        """The location of each worktree that clients have named."""
        self._known: OrderedDict[str, KnownStore] = OrderedDict()
        """Each store that was open, by the folder of its pin: a token opens it again."""
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
        location = self._folders.get(root)
        if location is not None and (store := self._current(location.folder)) is not None:
            return store
        location = await self.run(self._locate, root)
        _remember(self._folders, root, location)
        return await self.at(location)

    async def of_repository(self, repository_id: str) -> OpenStore:
        """Return the store of a repository that the hub has served; "" is the default."""
        if repository_id in ("", self.default.repository_id):
            return await self.at(self.default)
        for known in list(self._known.values()):
            if known.location.repository_id == repository_id:
                return await self.at(known.location)
        raise NotFound(
            f"this hub does not serve the repository {repository_id[:80]!r}",
            hint="start coord serve in that repository, or name one of coord serve --status",
        )

    def adopt(self, root: str, store: OpenStore) -> None:
        """Serve a store that is open already, as that of a worktree."""
        self._folders[root] = store.location
        self._add(store)

    def location_of(self, root: str) -> StoreLocation | None:
        """Return the location of a worktree whose store was asked for."""
        return self._folders.get(root)

    async def of_store_id(self, store_id: str) -> OpenStore | None:
        """Return the store whose id begins so, or else the copy that migrations made of it.

        It has to be one that the hub has served. A store that was migrated is sealed, so only its copy can
        revoke a token.
        """
        for earlier in (False, True):
            for store in self:
                if _is_called(store.ids, store_id, earlier=earlier) and store.is_current:
                    return store
            for known in list(self._known.values()):
                if _is_called(known.ids, store_id, earlier=earlier):
                    store = await self.at(known.location)
                    return store if _is_called(store.ids, store_id, earlier=True) else None
        return None

    async def at(self, location: StoreLocation) -> OpenStore:
        """Return the store that a location has now, opened if it is not."""
        store = self._current(location.folder)
        if store is not None:
            return store
        if self.closed:
            raise Unreachable("the hub is stopping", hint="try again")
        opening = self._opening.get(location.folder)
        if opening is None:
            opening = asyncio.ensure_future(self._open_at(location))
            self._opening[location.folder] = opening
            opening.add_done_callback(lambda done: self._opened(location.folder, done))
        return await asyncio.shield(opening)

    async def engine(self, store: OpenStore, tenant: str) -> Engine:
        """Return the engine of a tenant."""
        return store.known_engine(tenant) or await self.run(store.engine, tenant)

    def _current(self, folder: str) -> OpenStore | None:
        """Return the open store of a folder, unless its repository has another one now."""
        store = self._open.get(folder)
        if store is None or store.is_current:
            return store
        self._retire(store)
        return None

    def _opened(self, folder: str, opening: "asyncio.Future[OpenStore]") -> None:
        self._opening.pop(folder, None)
        if not opening.cancelled():
            opening.exception()  # those who wait for it have got it

    async def _open_at(self, location: StoreLocation) -> OpenStore:
        store: OpenStore = await self.run(self._open_now, location)
        if self.closed:
            await self.run(store.close)
            raise Unreachable("the hub is stopping", hint="try again")
        self._add(store)
        self._on_open(store)
        return store

    def _open_now(self, location: StoreLocation) -> OpenStore:
        """Open the store that is pinned now, which may be another one than when the location was found."""
        if not location.folder:
            return OpenStore(*open_named(location))
        if not location.pinned:
            return OpenStore(*open_location(location))
        while True:
            location = self._found_again(location)
            file = signature(location).file
            database, opened = open_location(location)
            store = OpenStore(database, opened)
            store.signature = store.signature._replace(file=file)
            if _pinned(self._found_again(location)) == _pinned(opened):
                return store
            database.close()

    def _found_again(self, location: StoreLocation) -> StoreLocation:
        repository = location.repository
        return self._locate("" if repository is None else repository.root or repository.commondir)

    def _add(self, store: OpenStore) -> None:
        self._open[store.location.folder] = store
        location = store.location._replace(store_id=store.database.store_id)
        _remember(self._known, location.folder, KnownStore(location, store.ids))

    def _locate(self, root: str) -> StoreLocation:
        location = find_location(root, self.environ) if root else user_location(self.environ)
        if root and (location.repository is None or not os.path.isabs(root)):
            raise NotFound(f"{root[:200]} is no repository", hint="the hub sees the folders of its machine")
        if not location.pinned:
            raise NotFound(f"coord is not in use in {root[:200]}", hint="coord init sets it up")
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
                    self._users.notify_all()
                store.used_s = time.monotonic()

    # Closing.

    def reopen(self) -> None:
        """Let every store be opened again by whoever needs it next."""
        for store in self:
            self._retire(store)

    async def close_idle(self, idle_s: float = IDLE_S) -> None:
        """Close the stores that nobody used for some time; the default stays open."""
        now = time.monotonic()
        for folder, store in list(self._open.items()):
            busy = store.users or store.held
            idle = not busy and now - store.used_s > idle_s and folder != self.default.folder
            if idle or not store.is_current:
                self._retire(store)
        await self._until_closed()

    async def close(self) -> None:
        """Close everything; requests that come later are refused."""
        with self._users:
            self.closed = True
            self._users.notify_all()
        await asyncio.gather(*self._opening.values(), return_exceptions=True)
        for store in self:
            self._retire(store)
        await self._until_closed()
        self.threads.shutdown(wait=False)

    def _wait_for_hooks(self, store: OpenStore) -> None:
        with self._users:
            self._users.wait_for(lambda: not store.held or self.closed, RETIRED_S)

    async def _until_closed(self) -> None:
        """Wait until the stores that nobody uses are closed."""
        await asyncio.gather(*self._closing, return_exceptions=True)

    def _retire(self, store: OpenStore) -> None:
        """Give the store to nobody any more, and close it as soon as nobody uses it."""
        with self._users:
            del self._open[store.location.folder]
        store.end_waits()
        closing = asyncio.ensure_future(self._close(store))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def _close(self, store: OpenStore) -> None:
        if store.users and not self.closed:
            with suppress(TimeoutError):
                await asyncio.wait_for(store.unused.wait(), RETIRED_S)
        if store.held and not self.closed:
            await self.run(self._wait_for_hooks, store)
        try:
            await self.run(store.close)
        except CoordError:
            return


def _pinned(location: StoreLocation) -> tuple[str, str, int]:
    return location.url, location.store_id, location.epoch


def _is_called(ids: Sequence[str], store_id: str, *, earlier: bool) -> bool:
    """Whether an id begins so: that of the store, or with `earlier` one from which it was copied."""
    return any(each.startswith(store_id) for each in (ids if earlier else ids[:1]))


def _remember(known: OrderedDict[str, Kept], key: str, value: Kept) -> None:
    known[key] = value
    known.move_to_end(key)
    while len(known) > KNOWN_MAX:
        known.popitem(last=False)
