"""The process of a hub: bind, announce, serve until a signal, answer everyone, and leave nothing behind."""

import asyncio
import gc
import logging
import os
import signal
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple

import uvicorn

from coord.core.errors import Invalid, Unavailable
from coord.host.processes import describe
from coord.host.store_location import StoreLocation
from coord.sdk.remote.address import HubState
from coord.sdk.remote.wire import VERSION
from coord.transports.hub.addresses import (
    BACKLOG,
    DEFAULT_LISTEN,
    HubFiles,
    Listen,
    bind_tcp,
    parse_listen,
)
from coord.transports.hub.app import App
from coord.transports.hub.followers.run import HubFollowers
from coord.transports.hub.hub import Hub
from coord.transports.hub.protocols.http import HubProtocol, raise_file_limit
from coord.transports.hub.protocols.stalled import StalledConnections
from coord.transports.hub.protocols.websocket import MESSAGE_BYTES_MAX, HubWebSocket
from coord.transports.hub.rates import Rates

logger = logging.getLogger("coord.hub")
GRACE_S = 10.0
"""How long a stopping hub waits for answers that are under way."""
TICK_S = 15.0
"""How often stalled connections are dropped, idle stores are closed, and an idle hub ends."""
LAST_WORDS_S = 2.0
"""How long a stopping hub waits until its streams have said that they end."""
KEEP_ALIVE_S = 75
GC_THRESHOLD = (50_000, 20, 100)


class Options(NamedTuple):
    """How to serve."""

    socket: str = ""
    listen: str = ""
    """The TCP address; "-" for none, "" for the default one if it is free."""
    tls_cert: str = ""
    tls_key: str = ""
    behind_proxy: bool = False
    hosts: tuple[str, ...] = ()
    """Further names of this hub that clients may use."""
    rate: float = 0.0
    """How many requests a second one token may send; 0 for the default."""
    idle_s: float | None = None
    """End after this time without a request; None: never."""


class Ready(NamedTuple):
    """What a hub prints when it can be used."""

    pid: int
    socket: str
    listen: str
    version: str
    store: str
    repository: str


class HubServer(uvicorn.Server):
    """uvicorn's server with our signals, and without its timer."""

    def __init__(self, config: uvicorn.Config, hub: Hub, idle_s: float | None) -> None:
        super().__init__(config)
        self._hub = hub
        self._idle_s = idle_s
        self._stalled = StalledConnections()
        self.on_started: Callable[[], None] = lambda: None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.on_started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                loop.remove_signal_handler(number)

    def stop(self) -> None:
        """Begin to stop: new requests are refused, those under way are answered. Again: stop at once."""
        self.force_exit = self.should_exit
        self.should_exit = True
        self._hub.stop()

    def _reload(self) -> None:
        """Let every store be opened again, with the present configuration; requests under way end first."""
        self._hub.stores.reopen()

    async def main_loop(self) -> None:
        while not self.should_exit:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hub.stopping.wait(), TICK_S)
            if not self.should_exit:
                self._stalled.drop(self.server_state.connections)
                await self._hub.stores.close_idle()
                if self._idle_s is not None and self._idle_for() > self._idle_s:
                    self.stop()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._hub.feeds is not None:
            await self._hub.feeds.drain(LAST_WORDS_S)
        await super().shutdown(sockets)

    def _idle_for(self) -> float:
        busy = any(store.users or store.held for store in self._hub.stores)
        return 0.0 if busy else time.monotonic() - self._hub.last_request_s


def serve(
    location: StoreLocation, environ: Mapping[str, str], options: Options, announce: Callable[[Ready], None]
) -> None:
    """Run a hub until a signal ends it."""
    wanted = None if options.listen == "-" else parse_listen(options.listen or DEFAULT_LISTEN)
    context = _tls(options)
    if wanted is not None and not wanted.is_loopback and context is None and not options.behind_proxy:
        raise Invalid(
            f"{wanted.text} can be reached by others, and tokens would be sent in clear text",
            hint="--tls-cert FILE --tls-key FILE, or --behind-proxy if a proxy adds TLS",
        )
    files = HubFiles(options.socket, dict(environ))
    files.lock()
    sockets: list[socket.socket] = []
    try:
        sockets.append(files.bind())
        tcp = _bind(wanted, optional=not options.listen)
        if tcp is not None:
            sockets.append(tcp)
        _run(location, environ, options, files, sockets, context, announce)
    finally:
        for each in sockets:
            each.close()
        files.remove()


def _bind(wanted: Listen | None, *, optional: bool) -> socket.socket | None:
    try:
        return None if wanted is None else bind_tcp(wanted)
    except Unavailable as error:
        if not optional:
            raise
        logger.warning("%s; the hub serves its socket only", error.message)
        return None


def _run(
    location: StoreLocation,
    environ: Mapping[str, str],
    options: Options,
    files: HubFiles,
    sockets: list[socket.socket],
    context: ssl.SSLContext | None,
    announce: Callable[[Ready], None],
) -> None:
    listen = _address(sockets[1:])
    scheme = "https" if context is not None else "http"

    async def main() -> None:
        HubProtocol.tcp_max = raise_file_limit()
        hub = Hub(environ, location, hosts=_hosts(listen, options.hosts))
        hub.behind_proxy = options.behind_proxy
        hub.is_secure = context is not None or options.behind_proxy
        if options.rate:
            hub.rates = Rates(options.rate)
        config = uvicorn_config(App(hub))
        config.load()
        config.ssl = context
        server = HubServer(config, hub, options.idle_s)
        hub.followers = HubFollowers(hub, environ)
        store = await hub.stores.at(location)
        url = f"{scheme}://{listen.text}" if listen is not None else ""
        repository = store.location.repository_id
        ready = Ready(os.getpid(), files.socket, url, VERSION, store.database.store_id, repository)

        def begin() -> None:
            files.write_state(_state(ready))
            gc.collect()
            gc.freeze()
            gc.set_threshold(*GC_THRESHOLD)
            announce(ready)

        server.on_started = begin
        try:
            await server.serve(sockets)
        finally:
            hub.stop()
            for each in hub.on_close:
                await each()
            await hub.followers.close()
            await hub.stores.close()

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(main())


def uvicorn_config(app: App) -> uvicorn.Config:
    """Return how uvicorn serves the application: with our protocols and our limits."""
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # strangers must not fill the log
    return uvicorn.Config(
        app,
        http=HubProtocol,
        backlog=BACKLOG,
        ws=HubWebSocket,
        ws_max_size=MESSAGE_BYTES_MAX,
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=int(GRACE_S),
    )


def _state(ready: Ready) -> HubState:
    process = describe(os.getpid())
    start = process.start if process is not None else 0
    return HubState(ready.pid, start, ready.version, ready.socket, ready.listen, round(time.time() * 1000))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def _address(sockets: list[socket.socket]) -> Listen | None:
    if not sockets:
        return None
    name = sockets[0].getsockname()
    return Listen(name[0], name[1])


def _hosts(listen: Listen | None, more: tuple[str, ...]) -> frozenset[str]:
    """Return the values of `Host` that mean this hub."""
    if listen is None:
        return frozenset()
    names = (
        [f"{name}:{listen.port}" for name in ("127.0.0.1", "localhost", "[::1]")]
        if listen.is_loopback
        else []
    )
    return frozenset(each.lower() for each in (*names, listen.text, *more))


def _no_password() -> str:
    raise Invalid(
        "the key of the certificate is encrypted", hint="openssl pkey -in KEY -out PLAIN decrypts it"
    )


def _tls(options: Options) -> ssl.SSLContext | None:
    if bool(options.tls_cert) != bool(options.tls_key):
        raise Invalid("TLS needs a certificate and its key", hint="--tls-cert FILE --tls-key FILE")
    if not options.tls_cert:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(options.tls_cert, options.tls_key, password=_no_password)
    except OSError as error:
        raise Invalid(f"the certificate cannot be used: {error}", hint="check both files") from error
    return context
