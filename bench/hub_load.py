"""Clients of a hub in one event loop: closed loop (as fast as it answers) and open loop (at a given rate)."""

import asyncio
import itertools
from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

from coord.core.tasks.commands import ClaimTask
from coord.sdk.remote import wire

LEASE_MS = 60_000


class Way(NamedTuple):
    """How to reach a hub: its socket, or its address and a token."""

    path: str = ""
    address: str = ""
    token: str = ""
    root: str = ""


class Claims:
    """Makes requests that claim new tasks, `batch` in each."""

    def __init__(self, way: Way, batch: int, numbers: "itertools.count[int]") -> None:
        self._target = wire.Target(way.root, "local")
        self._batch = batch
        self._numbers = numbers
        auth = f"Authorization: Bearer {way.token}\r\n" if way.token else ""
        self._head = (
            f"POST {wire.CALL} HTTP/1.1\r\nHost: {way.address or 'coord'}\r\n"
            f"Content-Type: {wire.CONTENT_TYPE}\r\n{auth}Content-Length: "
        ).encode()

    def request(self) -> bytes:
        commands = [
            wire.raw(ClaimTask("local", "bench", f"t{next(self._numbers)}", "agent", "session", LEASE_MS))
            for _ in range(self._batch)
        ]
        body = wire.encode(wire.Call(self._target, commands))
        return b"%s%d\r\n\r\n%s" % (self._head, len(body), body)


class Client(asyncio.Protocol):
    """One connection: `on_answer` is called with each answer."""

    def __init__(self, on_answer: "Callable[[Client], None]") -> None:
        self._on_answer = on_answer
        self._data = b""
        self.began = 0.0

    def connection_made(self, transport):
        self.transport = transport

    def send(self, request: bytes, began: float | None = None) -> None:
        self.began = perf_counter() if began is None else began
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._data += data
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._data[:end].lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        if len(self._data) < end + 4 + length:
            return
        assert self._data.startswith(b"HTTP/1.1 200"), self._data[:500]
        self._data = self._data[end + 4 + length :]
        self._on_answer(self)


async def connect(way: Way, on_answer: Callable[[Client], None]) -> Client:
    loop = asyncio.get_running_loop()
    if way.path:
        return (await loop.create_unix_connection(lambda: Client(on_answer), way.path))[1]
    host, _, port = way.address.partition(":")
    return (await loop.create_connection(lambda: Client(on_answer), host, int(port)))[1]


async def closed_loop(way: Way, clients: int, claims: Claims, seconds: float) -> tuple[float, list[float]]:
    """Return answers per second and how long each took."""
    took: list[float] = []
    ended = asyncio.Semaphore(0)
    until = perf_counter() + seconds

    def answered(client: Client) -> None:
        now = perf_counter()
        took.append(now - client.began)
        if now < until:
            client.send(claims.request())
        else:
            ended.release()

    connected = [await connect(way, answered) for _ in range(clients)]
    began = perf_counter()
    until = began + seconds
    for client in connected:
        client.send(claims.request())
    for _ in connected:
        await ended.acquire()
    rate = len(took) / (perf_counter() - began)
    for client in connected:
        client.transport.close()
    return rate, took


async def open_loop(way: Way, clients: int, claims: Claims, rate: float, seconds: float) -> list[float]:
    """Send at a rate, whether or not answers come; return how long each took since it was due."""
    took: list[float] = []
    free: asyncio.Queue[Client] = asyncio.Queue()

    def answered(client: Client) -> None:
        took.append(perf_counter() - client.began)
        free.put_nowait(client)

    connected = [await connect(way, answered) for _ in range(clients)]
    for client in connected:
        free.put_nowait(client)
    began = perf_counter()
    for number in range(max(1, round(rate * seconds))):
        due = began + number / rate
        if (left := due - perf_counter()) > 0:
            await asyncio.sleep(left)
        client = await free.get()
        client.send(claims.request(), due)
    for _ in connected:
        await free.get()
    for client in connected:
        client.transport.close()
    return took
