"""Clients of a hub in one event loop: closed loop (as fast as it answers) and open loop (at a given rate)."""

import asyncio
import itertools
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import msgspec

from bench.figures import latency_ms
from bench.workload import RESULT
from coord.core.commands import Command
from coord.core.ids import work_product_ref
from coord.core.tasks.commands import ClaimTask, SubmitResult
from coord.sdk.remote import wire
from coord.sdk.validation.results import to_json

TENANT, PROJECT, SESSION = "local", "bench", "session"
LEASE_MS = 3_600_000
JSON_RESULT = to_json("result", RESULT)


class Way(NamedTuple):
    """How to reach a server: its socket, or its address and a token; and its process."""

    path: str = ""
    address: str = ""
    token: str = ""
    root: str = ""
    pid: int = 0

    def cpu_s(self) -> float:
        """Return the processor time that the threads of the server have used; 0 if it is not ours."""
        return process_cpu_s(self.pid) if self.pid else 0.0


def process_cpu_s(pid: int) -> float:
    """Return the processor time of all threads of a process, in nanoseconds of the scheduler."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


class Client(asyncio.Protocol):
    """One connection: `on_answer` is called after each answer, and `answer` has its body."""

    def __init__(self, number: int, on_answer: "Callable[[Client], None]") -> None:
        self.number = number
        self.asked = 0
        self.answer = b""
        self.began = 0.0
        self._on_answer = on_answer
        self._data = b""

    def connection_made(self, transport):
        self.transport = transport

    def send(self, request: bytes, began: float | None = None) -> None:
        self.asked += 1
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
        assert self._data.startswith(b"HTTP/1.1 20"), self._data[:500]
        self.answered(self._data[end + 4 : end + 4 + length], self._data[end + 4 + length :])

    def answered(self, answer: bytes, rest: bytes) -> None:
        """Take an answer; `rest` came after it."""
        self.answer, self._data = answer, rest
        self._on_answer(self)


class Work(Protocol):
    """What clients ask for; a client ends after a multiple of `steps`, so that no lock stays."""

    steps: int

    def request(self, client: Client) -> bytes | None:
        """Return the next request of a client; None if there is nothing left to ask for."""

    def check(self, answer: bytes) -> None:
        """Fail if an answer is not what was asked for."""


class Calls(ABC):
    """Requests of the inner protocol; an own class says which commands they have."""

    steps = 1

    def __init__(self, way: Way, batch: int = 1, query: str = "") -> None:
        self._target = wire.Target(way.root, TENANT)
        self.batch = batch
        auth = f"Authorization: Bearer {way.token}\r\n" if way.token else ""
        self._head = (
            f"POST {wire.CALL}{query} HTTP/1.1\r\nHost: {way.address or 'coord'}\r\n"
            f"Content-Type: {wire.CONTENT_TYPE}\r\n{auth}Content-Length: "
        ).encode()

    @abstractmethod
    def commands(self, client: Client) -> list[Command]:
        """Return the commands of the next request."""

    def request(self, client: Client) -> bytes | None:
        commands = self.commands(client)
        if not commands:
            return None
        body = wire.encode(wire.Call(self._target, [wire.raw(each) for each in commands]))
        return b"%s%d\r\n\r\n%s" % (self._head, len(body), body)

    def check(self, answer: bytes) -> None:
        for each in msgspec.msgpack.decode(answer, type=wire.Answers).answers:
            assert each.error is None, each.error
            reply: dict[str, Any] = msgspec.msgpack.decode(each.reply)
            good = (reply.get("success"), reply.get("accepted"), reply.get("outcome") == "granted")
            assert any(good) or "released" in reply, reply


class Stock:
    """Names of tasks that are used once each, and those that are claimed and not yet submitted."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self.claimed: deque[str] = deque()

    def new(self) -> str:
        return f"t{next(self._numbers)}"


class Claims(Calls):
    """Claims of new tasks."""

    def __init__(self, way: Way, batch: int, stock: Stock, query: str = "") -> None:
        super().__init__(way, batch, query)
        self._stock = stock

    def commands(self, client: Client) -> list[Command]:
        names = [self._stock.new() for _ in range(self.batch)]
        self._stock.claimed.extend(names)
        return [ClaimTask(TENANT, PROJECT, name, "agent", SESSION, LEASE_MS) for name in names]


class Submissions(Calls):
    """Results of claimed tasks."""

    def __init__(self, way: Way, batch: int, stock: Stock, query: str = "") -> None:
        super().__init__(way, batch, query)
        self._stock = stock

    def commands(self, client: Client) -> list[Command]:
        some = min(self.batch, len(self._stock.claimed))
        names = [self._stock.claimed.popleft() for _ in range(some)]
        return [
            SubmitResult(TENANT, PROJECT, name, SESSION, 1, JSON_RESULT, work_product_ref(name, 1, "123456"))
            for name in names
        ]


NewClient = Callable[[int, Callable[[Client], None]], Client]


async def connect(
    way: Way, clients: int, on_answer: Callable[[Client], None], kind: NewClient = Client
) -> list[Client]:
    """Open connections, one after the other."""
    loop = asyncio.get_running_loop()
    host, _, port = way.address.partition(":")
    found = []
    for number in range(clients):
        new = lambda number=number: kind(number, on_answer)  # noqa: E731
        if way.path:
            found.append((await loop.create_unix_connection(new, way.path))[1])
        else:
            found.append((await loop.create_connection(new, host, int(port)))[1])
    return found


def short_latency_ms(took: Iterable[float]) -> dict[str, float]:
    """Return the middle and the hundredth slowest."""
    found = latency_ms(took)
    return {name: found[name] for name in ("p50_ms", "p99_ms") if name in found}


class Closed(NamedTuple):
    """What a closed loop gave: answers a second, how long each took, and an answer."""

    rate: float
    took: list[float]
    answer: bytes
    cpu_us: float
    """Processor time of the server for one answer."""


async def closed_loop(way: Way, clients: int, work: Work, seconds: float, kind: NewClient = Client) -> Closed:
    """Ask again as soon as there is an answer."""
    took: list[float] = []
    ended = asyncio.Semaphore(0)
    until = perf_counter() + seconds

    def ask(client: Client) -> None:
        request = work.request(client)
        if request is None:
            ended.release()
        else:
            client.send(request)

    def answered(client: Client) -> None:
        now = perf_counter()
        took.append(now - client.began)
        if now < until or client.asked % work.steps:
            ask(client)
        else:
            ended.release()

    connected = await connect(way, clients, answered, kind)
    began, cpu = perf_counter(), way.cpu_s()
    until = began + seconds
    for client in connected:
        ask(client)
    for _ in connected:
        await ended.acquire()
    spent, used = perf_counter() - began, way.cpu_s() - cpu
    for client in connected:
        client.transport.close()
    answer = next((client.answer for client in connected if client.answer), b"")
    if answer:  # on a slow machine there may have been nothing to ask for
        work.check(answer)
    return Closed(len(took) / spent, took, answer, used / max(1, len(took)) * 1e6)


async def open_loop(way: Way, clients: int, work: Work, rate: float, seconds: float) -> list[float]:
    """Send at a rate, whether or not answers come; return how long each took since it was due."""
    took: list[float] = []
    free: asyncio.Queue[Client] = asyncio.Queue()

    def answered(client: Client) -> None:
        took.append(perf_counter() - client.began)
        free.put_nowait(client)

    connected = await connect(way, clients, answered)
    for client in connected:
        free.put_nowait(client)
    began = perf_counter()
    for number in range(max(1, round(rate * seconds))):
        due = began + number / rate
        if (left := due - perf_counter()) > 0:
            await asyncio.sleep(left)
        client = await free.get()
        request = work.request(client)
        if request is None:
            free.put_nowait(client)
            break
        client.send(request, due)
    for _ in connected:
        await free.get()
    for client in connected:
        client.transport.close()
    return took
