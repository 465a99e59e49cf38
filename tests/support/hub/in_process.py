"""A hub in a thread of this process, with real sockets: it serves stores that a test has opened."""

import asyncio
import itertools
import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from typing import Any

from coord.core.errors import Unavailable
from coord.core.tokens.commands import TokenInfo
from coord.core.tokens.schema import Role
from coord.core.tokens.text import parse_token
from coord.engine.engine import Engine
from coord.host.store_location import StoreLocation
from coord.sdk.client.tokens import make_token
from coord.sdk.remote.channel import Channel, UnixChannel
from coord.sdk.remote.database import RemoteDatabase, say_hello
from coord.sdk.remote.engine import RemoteEngine
from coord.sdk.remote.http_channel import HttpChannel
from coord.stores.database import Database
from coord.transports.hub.addresses import BACKLOG, Listen, bind_tcp
from coord.transports.hub.app import App
from coord.transports.hub.hub import Hub
from coord.transports.hub.server import HubServer, uvicorn_config
from coord.transports.hub.stores import OpenStore
from coord.transports.hub.tokens import KnownToken

TRANSPORTS = ("socket", "http")
PATIENCE_S = 60.0
NOWHERE = StoreLocation("memory:", "", None, "", 0, "/nowhere")


class HubThread:
    """A running hub; threads of the test talk to it over its sockets."""

    def __init__(self, folder: str) -> None:
        self.path = f"{folder}/s"
        self._numbers = itertools.count(1)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="test-hub", daemon=True)
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)

    def _run(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        unix.bind(self.path)
        unix.listen(BACKLOG)
        tcp = bind_tcp(Listen("127.0.0.1", 0))
        self.address = f"127.0.0.1:{tcp.getsockname()[1]}"
        self.hub = Hub(os.environ, NOWHERE, hosts=frozenset((self.address,)))
        self.loop = asyncio.get_running_loop()
        self.server = HubServer(uvicorn_config(App(self.hub)), self.hub, None)
        self.server.capture_signals = _no_signals  # type: ignore[method-assign]
        self.server.on_started = self._ready.set
        await self.server.serve([unix, tcp])
        await self.hub.stores.close()

    def stop(self) -> None:
        """End the hub and its thread."""
        if not self._thread.is_alive():
            return
        self.loop.call_soon_threadsafe(self.server.stop)
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    @contextmanager
    def serving(
        self, database: Database[Any], transport: str, new_engine: Callable[[Database[Any], str], Engine]
    ) -> Iterator["Clients"]:
        """Yield an open store as its clients see it."""
        root = f"/test/{next(self._numbers)}"
        location = NOWHERE._replace(folder=root, store_id=database.store_id, repository_id=root)
        store = OpenStore(database, location, new_engine)
        self._in_loop(lambda: self.hub.stores.adopt(root, store))

        def connect(tenant: str) -> RemoteDatabase:
            over_http = transport == "http"
            channel = self.http_channel(store, tenant) if over_http else UnixChannel(self.path)
            path = "" if over_http else root
            welcome = say_hello(channel, path, tenant, PATIENCE_S)
            return RemoteDatabase(database.url, path, channel, welcome, None)

        with closing(Clients(database, connect)) as clients:
            yield clients
        self._in_loop(lambda: self.hub.stores._open.pop(location.folder))
        store.close_engines()

    def http_channel(self, store: OpenStore, tenant: str, **scope: Any) -> Channel:
        """Return a way to the hub by HTTP, with a token that no log needs to know; `scope` limits it."""
        token = make_token(store.database.store_id, tenant)
        info = TokenInfo(f"t-{next(self._numbers)}", **{"role": Role.ADMIN, **scope})
        known = KnownToken(info, store, parse_token(token), time.monotonic() + 1e9)
        self._in_loop(lambda: self.hub.tokens._known.__setitem__(known.parsed.hash, known))
        return HttpChannel(f"http://{self.address}", token, {})

    def _in_loop(self, work: Callable[[], object]) -> None:
        done = threading.Event()

        def both() -> None:
            work()
            done.set()

        self.loop.call_soon_threadsafe(both)
        assert done.wait(PATIENCE_S)


class Clients(Database[Any]):
    """A store behind a hub, with a connection for each tenant, as a token is for one."""

    is_remote = True

    def __init__(self, behind: Database[Any], connect: Callable[[str], RemoteDatabase]) -> None:
        super().__init__(behind.url, behind.store_id, behind.epoch)
        self.new_engine: Any = None
        self._connect = connect
        self._by_tenant: dict[str, RemoteDatabase] = {}

    def _of(self, tenant: str) -> RemoteDatabase:
        if self.closed:
            raise Unavailable("the database is closed")
        if tenant not in self._by_tenant:
            self._by_tenant[tenant] = self._connect(tenant)
        return self._by_tenant[tenant]

    def engine(self, tenant: str, hops: int = 0) -> RemoteEngine:
        return self._of(tenant).engine(tenant, hops)

    def log(self, tenant: str) -> Any:
        return self._of(tenant).log(tenant)

    def _open_log(self, tenant: str) -> Any:
        raise AssertionError("the log is that of a connection")

    def close(self) -> None:
        for each in self._by_tenant.values():
            each.close()
        super().close()


@contextmanager
def _no_signals() -> Iterator[None]:
    yield


@cache
def shared_hub() -> HubThread:
    """Return the one hub of this test process; its thread ends with the tests."""
    return HubThread(tempfile.mkdtemp(prefix="ch-", dir="/tmp"))


def end_shared_hub() -> None:
    """End the shared hub, if there is one: an event loop that is never closed is a warning at the end."""
    if shared_hub.cache_info().currsize:
        shared_hub().stop()
        shared_hub.cache_clear()
