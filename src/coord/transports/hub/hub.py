"""The state of a running hub: its stores, its watchers, and what stops it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from coord.host.store_location import StoreLocation
from coord.transports.hub.browser.links import LoginLinks
from coord.transports.hub.followers.run import HubFollowers
from coord.transports.hub.rates import Rates
from coord.transports.hub.stores import HubStores, OpenStore
from coord.transports.hub.tokens import Tokens
from coord.transports.hub.wakeups import LogWatcher


class Hub:
    """What the handlers of requests share."""

    def __init__(self, environ: Mapping[str, str], default: StoreLocation, *, hosts: frozenset[str]) -> None:
        """`hosts`: the values of the header `Host` that TCP clients may send."""
        self.environ = environ
        self.hosts = hosts
        self.stores = HubStores(environ, default, on_open=self._opened)
        self.tokens = Tokens()
        self.rates = Rates()
        self.links = LoginLinks()
        self.is_secure = False
        """Whether clients come over TLS, also if a proxy adds it."""
        self.behind_proxy = False
        self.started_s = time.time()
        self.last_request_s = time.monotonic()
        self.requests = 0
        self.stopping = asyncio.Event()
        """Set when the hub stops: streams and long polls end."""
        self.readiness: asyncio.Future[str] | None = None
        """The newest look at the store, for `/readyz`."""
        self.feeds: Any = None
        """The streams of logs: `Feeds` of `streams/feed.py`, once somebody subscribes."""
        self.on_stop: list[Callable[[], None]] = []
        self.followers: HubFollowers | None = None
        """What runs the followers of logs; None if this hub runs none."""
        self.hook_answers: Any = None
        """What answers hooks, made for the first one."""
        self.usage: Any = None
        """What gathers the usage that tools report, made for the first report."""
        self.on_close: list[Callable[[], Awaitable[None]]] = []
        """What still has to be written before the stores are closed."""

    def _opened(self, store: OpenStore) -> None:
        if self.followers is not None:
            self.followers.opened(store)

    def watcher(self, store: OpenStore, tenant: str) -> LogWatcher:
        """Return what waits for a tenant's log to grow."""
        return store.watcher(tenant)

    def stop(self) -> None:
        """End everything that waits, so that its clients get an answer."""
        self.stopping.set()
        for store in self.stores:
            store.end_waits()
        for each in self.on_stop:
            each()
