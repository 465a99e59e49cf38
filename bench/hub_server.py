"""`python -m bench.hub_server URL SOCKET`: a hub on any store, or `raw`: the same bytes without coord.

Prints its TCP address and a token, and serves until it is ended.
"""

import asyncio
import gc
import os
import socket
import sys
import time
from functools import cache
from pathlib import Path

import httptools

from coord.core.tokens.commands import TokenInfo
from coord.core.tokens.schema import Role
from coord.core.tokens.text import parse_token
from coord.host.store_location import StoreLocation
from coord.sdk.client.tokens import make_token
from coord.stores.open import open_store
from coord.transports.hub.addresses import BACKLOG, Listen, bind_tcp
from coord.transports.hub.app import App
from coord.transports.hub.hub import Hub
from coord.transports.hub.server import GC_THRESHOLD, HubServer, _loop_factory, uvicorn_config
from coord.transports.hub.stores import OpenStore
from coord.transports.hub.tokens import KnownToken

ROOT = "/bench"
RAW = "raw"


class RawProtocol(asyncio.Protocol):
    """Reads a request and answers as many bytes as its query says: the limit of this machine and language."""

    def connection_made(self, transport):
        self.transport = transport
        self.parser = httptools.HttpRequestParser(self)

    def data_received(self, data):
        self.parser.feed_data(data)

    def on_url(self, url):
        self.answer = raw_answer(int(url.partition(b"?")[2] or 0))

    def on_message_complete(self):
        self.transport.write(self.answer)


@cache
def raw_answer(size: int) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size + b"x" * size


async def serve_raw(sockets, announce):
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(RawProtocol, sock=each, backlog=BACKLOG) for each in sockets]
    announce("-")
    await asyncio.gather(*(server.serve_forever() for server in servers))


async def serve_hub(url, address, sockets, announce):
    location = StoreLocation(url, "bench", None, "bench", 0, ROOT)
    hub = Hub(os.environ, location, hosts=frozenset((address,)))
    database = open_store(url)
    store = OpenStore(database, location)
    hub.stores.adopt(ROOT, store)
    token = make_token(database.store_id, "local")
    parsed = parse_token(token)
    info = TokenInfo("t-bench", role=Role.ADMIN)
    hub.tokens._known[parsed.hash] = KnownToken(info, store, parsed, time.monotonic() + 1e9)
    server = HubServer(uvicorn_config(App(hub)), hub, None)
    server.on_started = lambda: announce(token)
    await server.serve(sockets)


def main(url: str, path: str) -> None:
    unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    Path(path).unlink(missing_ok=True)
    unix.bind(path)
    unix.listen(BACKLOG)
    tcp = bind_tcp(Listen("127.0.0.1", 0))
    address = f"127.0.0.1:{tcp.getsockname()[1]}"

    def announce(token):
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLD)
        print(address, token, flush=True)

    sockets = [unix, tcp]
    serving = serve_raw(sockets, announce) if url == RAW else serve_hub(url, address, sockets, announce)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(serving)


if __name__ == "__main__":
    main(*sys.argv[1:])
