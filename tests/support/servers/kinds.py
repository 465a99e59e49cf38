"""Every kind of store, and new ones of it: in a folder, or on private servers that start when first asked."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.servers.mariadb import MariadbServer
from tests.support.servers.nats import NatsServer
from tests.support.servers.postgres import PostgresServer, in_log_shape
from tests.support.servers.redis import RedisServer
from tests.support.servers.server import LOOPBACK, AnyServer, Server, lacking, running


class OnServer(NamedTuple):
    """A kind of store that lives on a server: which one, and how to get a new store there."""

    server: type[Server]
    fresh_url: Callable[[Any], str]
    blank_url: Callable[[Any], str]
    """Where no store is installed yet."""


ON_SERVERS = {
    "postgres": OnServer(PostgresServer, PostgresServer.fresh_store_url, PostgresServer.blank_url),
    "postgres-log": OnServer(
        PostgresServer, PostgresServer.fresh_log_url, lambda server: in_log_shape(server.blank_url())
    ),
    "mariadb": OnServer(MariadbServer, MariadbServer.fresh_store_url, MariadbServer.blank_url),
    "redis": OnServer(RedisServer, RedisServer.fresh_store_url, RedisServer.blank_store_url),
    "nats": OnServer(NatsServer, NatsServer.fresh_store_url, NatsServer.blank_url),
}

SHARED_STORES = ("files", "sqlite", *ON_SERVERS)
"""Those that several processes can open."""

STORES = ("memory", *SHARED_STORES)

NEIGHBOURS = tuple(zip(SHARED_STORES, SHARED_STORES[1:] + SHARED_STORES[:1], strict=True))
"""Each shared kind with another one, so that each is once the first and once the second."""


class Servers:
    """The servers of a session, each started when it is first asked for; `stack` stops them."""

    def __init__(
        self, stack: contextlib.ExitStack, log_folder: Path | None = None, host: str = LOOPBACK
    ) -> None:
        self._stack = stack
        self._log_folder = log_folder
        self._host = host
        self._started: dict[type[Server], Any] = {}

    def get(self, kind: type[AnyServer]) -> AnyServer:
        """Return the one server of a kind; skip where it is not installed."""
        if kind not in self._started:
            self._started[kind] = self._stack.enter_context(running(kind, self._log_folder, self._host))
        server: AnyServer = self._started[kind]
        return server


class FreshStores:
    """Gives urls of new, empty stores of every kind."""

    def __init__(self, folder: Path, servers: Servers) -> None:
        self._folder = folder
        self._servers = servers
        self._made = 0

    def url(self, name: str) -> str:
        """Return the url of a new store of a kind, which is installed where that is needed."""
        self._made += 1
        if name == "memory":
            return "memory:"
        if name == "files":
            return f"file://{self._folder}/files-{self._made}"
        if name == "sqlite":
            return f"sqlite://{self._folder}/store-{self._made}.db"
        kind = ON_SERVERS[name]
        return kind.fresh_url(self._servers.get(kind.server))


def lacks(name: str) -> str:
    """Return why a kind of store cannot be had here ("" if it can)."""
    return lacking(ON_SERVERS[name].server) if name in ON_SERVERS else ""
