"""Readers of a log through hubs that come and go; they may miss nothing, and see nothing twice."""

import http.client
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from coord.core.errors import CoordError
from tests.support.hub.fleet import open_coordinator
from tests.support.servers.server import poll_until

TAIL = 100
AGAIN_S = 0.05
BROKEN = (OSError, http.client.HTTPException, urllib.error.URLError)


class LogFollower:
    """Reads the log as clients of coord do, by long polls."""

    def __init__(self, way: dict[str, Any]) -> None:
        self.offsets: list[int] = []
        self._ended = threading.Event()
        self._coordinator = open_coordinator(way)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        log = self._coordinator.database.log("local")
        last = 0
        while True:
            ended = self._ended.is_set()
            try:
                log.wait(last, 0.0 if ended else 0.2)
                entries = log.tail(last, TAIL)
            except CoordError:  # it is away, and tries again
                self._ended.wait(AGAIN_S)
                continue
            self.offsets += [entry.offset for entry in entries]
            last = self.offsets[-1] if self.offsets else 0
            if ended and not entries:
                return

    def close(self, patience_s: float) -> None:
        """Read to the end, and stop."""
        self._ended.set()
        self._thread.join(patience_s)
        assert not self._thread.is_alive()
        self._coordinator.close()


class StreamFollower:
    """Reads `/v1/stream` as a browser does: it repeats the last id, and what came after it counts again."""

    def __init__(self, way: dict[str, Any]) -> None:
        self.events: list[tuple[int, str]] = []
        """The offset of each event and its kind."""
        self.connections = 0
        self._way = way
        self._last = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            with suppress(*BROKEN):
                self._read()
            self._ended.wait(AGAIN_S)

    def _read(self) -> None:
        headers = {"Authorization": f"Bearer {self._way['hub']['token']}", "Last-Event-ID": str(self._last)}
        asked = urllib.request.Request(f"{self._way['url']}/v1/stream", headers=headers)
        part: list[tuple[int, str]] = []
        with urllib.request.urlopen(asked, timeout=20) as stream:
            self.connections += 1
            message: dict[str, str] = {}
            while line := stream.readline().decode():
                name, _, value = line.rstrip("\n").partition(": ")
                message[name] = value
                if line != "\n":
                    continue
                if message.get("event") in ("resync", "end"):
                    return
                if message.get("event") != "begin" and "data" in message:
                    part.append((json.loads(message["data"])["offset"], message["event"]))
                if "id" in message:
                    self.events += part
                    part, self._last = [], int(message["id"])
                message = {}

    def close(self, patience_s: float, last: int) -> None:
        """Read up to an offset, and stop."""
        poll_until(lambda: self._last >= last, patience_s, f"the stream did not come to {last}")
        self._ended.set()


@contextmanager
def log_followers(ways: list[dict[str, Any]], patience_s: float) -> Iterator[list[LogFollower]]:
    """Follow a log on each way until the block ends, and then to its end."""
    followers = [LogFollower(way) for way in ways]
    try:
        yield followers
    finally:
        for follower in followers:
            follower.close(patience_s)
