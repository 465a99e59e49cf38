"""A lock and its release through a hub, beside etcd's gateway and Redis, each client with its own resource.

coord is asked in its inner protocol over the socket and in JSON over HTTP, etcd in JSON over HTTP, Redis in
its own protocol over TCP, as redis-py's `Lock` does. All of them sync every write. The same load generator
asks all of them, so its own work counts everywhere alike.
"""

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import redis
from redis.lock import Lock

from bench.figures import Figure
from bench.hub_load import Calls, Client, NewClient, Way, Work, closed_loop, short_latency_ms
from bench.lock_peers import REDIS_TTL_S, EtcdPeer
from bench.places import Places
from bench.scale import Scale
from coord.core.commands import Command
from coord.core.identity import Caller
from coord.core.locks.commands import AcquireLocks, ReleaseLocks
from tests.support.servers.server import PASSWORD

CLIENTS = (1, 32)
RIVALS = ("etcd", "redis-py Lock")
Run = Callable[..., Any]


def measure(places: Places, scale: Scale, store: str, hub: dict[str, Way], run: Run) -> Iterator[Figure]:
    """Yield pairs a second of coord over both ways, and on SQLite of the others."""
    clients = CLIENTS[:1] if scale.name == "tiny" else CLIENTS
    ours: dict[int, float] = {}
    for each in clients:
        works: dict[str, Work] = {"socket": Locks(hub["socket"]), "http": JsonLocks(hub["http"])}
        for transport, work in works.items():
            figure = _pairs(store, f"lock + unlock, {transport}", hub[transport], each, work, scale, run)
            ours[each] = max(figure.value, ours.get(each, 0.0))
            yield figure
    for rival in places.rivals(RIVALS) if store == "sqlite" else ():
        for each in clients:
            is_etcd = rival.name == "etcd"
            way = Way(address=rival.url.rpartition("@")[2].removeprefix("http://").removesuffix("/0"))
            theirs: Work = EtcdLocks(rival.url, each) if is_etcd else RedisLocks(rival.url)
            kind: NewClient = Client if is_etcd else RedisClient
            name = "lock + unlock, etcd's gateway" if is_etcd else "lock + unlock, Redis"
            figure = _pairs(store, name, way, each, theirs, scale, run, kind)
            figure.detail["ours_of_this"] = ours[each] / figure.value
            yield figure


def _pairs(
    store: str,
    name: str,
    way: Way,
    clients: int,
    work: Work,
    scale: Scale,
    run: Run,
    kind: NewClient = Client,
) -> Figure:
    run(closed_loop, way, clients, work, scale.seconds / 3, kind)
    runs = [run(closed_loop, way, clients, work, scale.seconds, kind) for _ in range(scale.repetitions)]
    took = (each for one in runs for each in one.took)
    detail = short_latency_ms(took)
    if way.pid:
        detail["cpu_us_per_op"] = 2 * min(each.cpu_us for each in runs)
    rates = [each.rate / 2 for each in runs]
    return Figure.middle_of(rates, "hub", store, f"{name}, {clients} clients", "/s", detail=detail)


class Locks(Calls):
    """Locks in the inner protocol."""

    steps = 2

    def commands(self, client: Client) -> list[Command]:
        caller = Caller(f"s{client.number}")
        resources = (f"name:r{client.number}",)
        if client.asked % 2:
            return [ReleaseLocks(caller, "bench", resources)]
        return [AcquireLocks(caller, "bench", resources)]


class JsonLocks:
    """Locks in JSON."""

    steps = 2

    def __init__(self, way: Way) -> None:
        auth = f"Authorization: Bearer {way.token}\r\n" if way.token else ""
        self._head = f"Host: {way.address}\r\nContent-Type: application/json\r\n{auth}Content-Length: "

    def request(self, client: Client) -> bytes:
        path = "/v1/locks/release" if client.asked % 2 else "/v1/locks"
        body = json.dumps({"session": f"h{client.number}", "resources": [f"name:h{client.number}"]})
        return f"POST {path} HTTP/1.1\r\n{self._head}{len(body)}\r\n\r\n{body}".encode()

    def check(self, answer: bytes) -> None:
        found = json.loads(answer)
        assert found.get("outcome") == "granted" or found["released"], found


class EtcdLocks(JsonLocks):
    """Locks of etcd: a lease for each client, a key below the name of its lock."""

    def __init__(self, url: str, clients: int) -> None:
        self._head = "Host: etcd\r\nContent-Type: application/json\r\nContent-Length: "
        with closing(EtcdPeer(url, Path(), "")) as peer:
            self._leases = [peer.grant() for _ in range(clients)]

    def request(self, client: Client) -> bytes:
        lease = self._leases[client.number]
        name = f"r{client.number}"
        if client.asked % 2:
            path, fields = "unlock", {"key": _base64(f"{name}/{int(lease):x}")}
        else:
            path, fields = "lock", {"name": _base64(name), "lease": lease}
        body = json.dumps(fields)
        return f"POST /v3/lock/{path} HTTP/1.1\r\n{self._head}{len(body)}\r\n\r\n{body}".encode()

    def check(self, answer: bytes) -> None:
        assert "header" in json.loads(answer), answer


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


class RedisClient(Client):
    """A connection in the protocol of Redis; every answer has one line."""

    _greeted = False

    def connection_made(self, transport):
        super().connection_made(transport)
        transport.write(_resp("AUTH", PASSWORD))

    def data_received(self, data: bytes) -> None:
        self._data += data
        while b"\r\n" in self._data:
            line, _, self._data = self._data.partition(b"\r\n")
            assert line[:1] in b"+:", line
            if self._greeted:
                self.answered(line, self._data)
            self._greeted = True


class RedisLocks:
    """Locks of redis-py: SET NX with a lifetime, and a script to release."""

    steps = 2

    def __init__(self, url: str) -> None:
        with redis.from_url(url) as client:
            self._script = str(client.script_load(Lock.LUA_RELEASE_SCRIPT))

    def request(self, client: Client) -> bytes:
        name, holder = f"lock-{client.number}", f"holder-{client.number}"
        if client.asked % 2:
            return _resp("EVALSHA", self._script, "1", name, holder)
        return _resp("SET", name, holder, "NX", "PX", str(round(REDIS_TTL_S * 1000)))

    def check(self, answer: bytes) -> None:
        assert answer in (b"+OK", b":1"), answer


def _resp(*words: str) -> bytes:
    parts = "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
    return f"*{len(words)}\r\n{parts}".encode()
