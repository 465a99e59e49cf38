"""Hubs and the server below them are killed again and again; nothing that anybody was told gets lost."""

import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from coord.core.errors import CoordError
from coord.sdk.coordinator import TaskCoordinator
from tests.conftest import SOAK
from tests.support.hub.fleet import KilledHub, hubs_of, new_token, open_coordinator
from tests.support.process_group import PATIENCE_S, ProcessGroup, process_group, release
from tests.support.programs.client import connect_as
from tests.support.servers.kinds import ON_SERVERS, Servers
from tests.support.servers.server import poll_until
from tests.system.processes.test_drain import check_log, plan

TASKS = 4_000 if SOAK else 120
WORKERS = 50 if SOAK else 3
"""Workers for each hub and transport: with two hubs and two transports, 200."""
KILLS = 12 if SOAK else 2
LEASE_S = 2.0
LONG_S = PATIENCE_S * (50 if SOAK else 1.5)
TAIL = 100


class Follower:
    """Reads the log through a hub while hubs and servers come and go; it may miss nothing."""

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
                self._ended.wait(0.05)
                continue
            self.offsets += [entry.offset for entry in entries]
            last = self.offsets[-1] if self.offsets else 0
            if ended and not entries:
                return

    def close(self) -> None:
        self._ended.set()
        self._thread.join(LONG_S)
        assert not self._thread.is_alive()
        self._coordinator.close()


@contextmanager
def following(ways: list[dict[str, Any]]) -> Iterator[list[Follower]]:
    followers = [Follower(way) for way in ways]
    try:
        yield followers
    finally:
        for follower in followers:
            follower.close()


def start_workers(group: ProcessGroup, name: str, way: dict[str, Any]) -> Any:
    more = {
        "processes": WORKERS,
        "kills": 0,
        "far": True,
        "tasks": TASKS,
        "lease_s": LEASE_S,
        "book": str(group.folder / "book"),
        "doom": str(group.folder / "doom"),
        **way,
    }
    (member,) = group.start("drainer", [group.options(f"{name}-", more)])
    return member


def break_everything(
    group: ProcessGroup, hubs: list[KilledHub], restart_server: Callable[[], None] | None
) -> None:
    """Kill a hub, or the server, each time that another share of the work is done."""
    victims = itertools.cycle([*(hub.restart for hub in hubs), *([restart_server] if restart_server else [])])
    rounds = KILLS * (len(hubs) + bool(restart_server))
    for number, kill in zip(range(rounds), victims, strict=False):
        enough = TASKS * (number + 1) // (rounds + 2)

        def done(enough: int = enough) -> bool:
            return len(group.log.events_of("task.completed")) >= enough

        poll_until(done, LONG_S, f"{enough} results did not come")
        kill()


@pytest.mark.timeout(3600 if SOAK else 400)
@pytest.mark.parametrize(("kind", "hubs"), [("sqlite", 1), ("postgres", 2), ("nats", 2)])
def test_a_plan_is_drained_through_hubs_that_die(
    kind: str, hubs: int, make_url: Callable[[str], str], servers: Servers, tmp_path: Path
) -> None:
    """Issue 16, Proof: no task is lost or done twice, whoever was told "accepted" is right, no reader of the
    log misses an entry, whether clients use sockets or HTTP and whatever is killed -9."""
    server = servers.get(ON_SERVERS[kind].server) if kind in ON_SERVERS else None

    def restart_server() -> None:
        assert server is not None
        server.kill()
        server.restart()

    with (
        process_group(make_url(kind), tmp_path) as group,
        hubs_of(group.repository, tmp_path, hubs) as running,
    ):
        token = new_token(group.repository)
        ways = [hub.way(transport, token) for hub in running for transport in ("http", "socket")]
        with connect_as(group.options("planner", own_pid=False)) as client:
            client.add_tasks(plan(TASKS))
        with following(ways) as followers:
            members = [start_workers(group, f"w{number}", way) for number, way in enumerate(ways)]
            began = time.monotonic()
            release(members)
            break_everything(group, running, restart_server if server is not None else None)
            for member in members:
                assert member.receive(LONG_S) == "end"
            seconds = time.monotonic() - began
        check_log(group.log, TASKS)
        answers = Counter((group.folder / "book").read_text().split())
        assert set(answers.values()) == {1}, "a result was accepted twice"
        assert len(answers) <= TASKS
        with closing(TaskCoordinator.open(group.url)) as direct:
            written = [entry.offset for entry in direct.database.log("local").tail(0, 1_000_000)]
    for follower in followers:
        assert follower.offsets == written, "a reader missed an entry, or read one twice"
    recoveries = sorted(each for hub in running for each in hub.recoveries_s)
    print(  # noqa: T201 - shown with -s
        f"{kind}: {TASKS} tasks, {len(ways) * WORKERS} clients, {len(recoveries)} kills of hubs,"
        f" {seconds:.1f} s; a killed hub served again after {recoveries[len(recoveries) // 2]:.2f} s,"
        f" at most {recoveries[-1]:.2f} s"
    )
