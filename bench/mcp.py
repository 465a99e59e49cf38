"""Tool calls over MCP, one after the other, and the start of `coord mcp` beside Python and `coord --version`.

A call checks a lock, or renews one, which is a commit. The store is SQLite in a repository.
"""

import http.client
import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from bench.figures import Figure, latency_ms
from bench.places import Places
from bench.repository import make_repository
from bench.scale import Scale
from tests.support.hub.process import private_home, serving

MOST_MS = 1.0
"""The middle of a call that reads, on a quiet machine; one that writes waits for the disk."""


def call(action: str, session: str) -> bytes:
    """Return a call of the tool `lock`."""
    arguments = {"action": action, "resources": [f"{session}.txt"], "session": session}
    params = {"name": "lock", "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


class OverSocket(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("coord")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self._path)


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield the latency of tool calls, and how long the bridge takes to its first answer."""
    if store != "sqlite":
        return
    repository = make_repository(places.folder)
    with tempfile.TemporaryDirectory() as folder, private_home(Path(folder)) as environ:
        python = [sys.executable, "-m", "coord"]
        token = _run([*python, "token", "create", "--role", "operate"], repository, environ)["token"]
        direct = _best(lambda: _first_answer(repository, environ), scale.commands)
        with serving(repository, environ) as hub:
            bearer = {"Authorization": f"Bearer {token}"}
            ways: dict[str, tuple[http.client.HTTPConnection, dict[str, str]]] = {
                "socket": (OverSocket(hub.socket), {}),
                "http": (http.client.HTTPConnection(hub.url.removeprefix("http://")), bearer),
            }
            for way, (connection, headers) in ways.items():
                for action, most in (("check", MOST_MS), ("renew", None)):
                    took = _latencies(connection, headers, way, action, scale.seconds)
                    value, name = median(took) * 1000, f"lock {action} over {way}"
                    yield Figure("mcp", store, name, value, "ms", most=most, detail=latency_ms(took))
                connection.close()
            through = _best(lambda: _first_answer(repository, environ), scale.commands)
        plain = _best(
            lambda: _end([sys.executable, "-I", "-S", "-c", "pass"], repository, environ), scale.commands
        )
        version = _best(lambda: _end([*python, "--version"], repository, environ), scale.commands)
    detail = {"python_ms": plain * 1000, "version_ms": version * 1000}
    for name, seconds in (("with a hub", through), ("without a hub", direct)):
        yield Figure("mcp", store, f"first answer {name}", seconds * 1000, "ms", detail=detail)


def _latencies(
    connection: http.client.HTTPConnection, headers: dict[str, str], session: str, action: str, seconds: float
) -> list[float]:
    def ask(action: str) -> float:
        start = perf_counter()
        connection.request("POST", "/mcp", call(action, session), given)
        answer = connection.getresponse().read()
        assert b'"ok":true' in answer, answer
        return perf_counter() - start

    given = {"Content-Type": "application/json", **headers}
    ask("acquire")
    ask(action)
    until, took = perf_counter() + seconds, [ask(action)]
    while perf_counter() < until:
        took.append(ask(action))
    return took


def _first_answer(repository: Path, environ: dict[str, str]) -> None:
    """Start the bridge, and read its answer to the first message of a client."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
    with subprocess.Popen(
        [sys.executable, "-m", "coord", "mcp"],
        cwd=repository,
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as bridge:
        assert bridge.stdin is not None
        assert bridge.stdout is not None
        bridge.stdin.write(json.dumps(message).encode() + b"\n")
        bridge.stdin.flush()
        assert b"serverInfo" in bridge.stdout.readline()


def _end(words: list[str], repository: Path, environ: dict[str, str]) -> None:
    subprocess.run(words, cwd=repository, env=environ, check=True, capture_output=True)


def _run(words: list[str], repository: Path, environ: dict[str, str]) -> dict[str, Any]:
    done = subprocess.run(words, cwd=repository, env=environ, check=True, capture_output=True)
    return dict(json.loads(done.stdout))


def _best(work: Callable[[], None], times: int) -> float:
    best = float("inf")
    for _ in range(times + 1):
        start = perf_counter()
        work()
        best = min(best, perf_counter() - start)
    return best
