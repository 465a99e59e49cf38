"""Hubs and the server below them are killed again and again; nothing that anybody was told gets lost."""

import itertools
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from coord.sdk.coordinator import TaskCoordinator
from tests.conftest import SOAK
from tests.support.hub.fleet import KilledHub, hubs_of, new_token
from tests.support.hub.followers import StreamFollower, log_followers
from tests.support.models.lock_log import read_locks
from tests.support.overlap_detector import OverlapDetector, used_grants
from tests.support.process_group import PATIENCE_S, ProcessGroup, process_group, release
from tests.support.programs.client import connect_as
from tests.support.servers.kinds import ON_SERVERS, Servers
from tests.support.servers.server import poll_until
from tests.system.processes.test_drain import check_log, plan
from tests.system.processes.test_exclusion import check_fences_rise

TASKS = 4_000 if SOAK else 120
GRANTS = 1_000 if SOAK else 60
WORKERS = 50 if SOAK else 3
"""Workers for each hub and transport: with two hubs and two transports, 200."""
KILLS = 12 if SOAK else 2
LEASE_S = 2.0
LONG_S = PATIENCE_S * (50 if SOAK else 1.5)
NO_EVENT = (b'{"event": "entry"}',)
"""What a stream shows of an entry that has no event."""
EVERY_KIND = [("sqlite", 1), ("postgres", 2), ("mariadb", 2), ("nats", 2), ("redis", 2)]
A, B, C, LIB = "src/a.py", "src/b.py", "docs/c.md", "lib/a.py"
COVERS = {
    "file:src/a.py": {A},
    "file:src/*": {A, B},
    "file:docs/c.md": {C},
    "file:lib/a.py": {LIB},
    r"file:\{src,lib\}/a.py": {"{src,lib}/a.py"},
}
WANTED = [
    *([A, "write", [A]], [A, "read", [A]], ["src/*", "write", [A, B]], ["src/*", "read", [A, B]]),
    *(["{src,lib}/a.py", "write", [A, LIB]], [C, "write", [C]]),
]


class Broken(NamedTuple):
    """A store behind hubs, all of which are killed in turn while clients work."""

    group: ProcessGroup
    hubs: list[KilledHub]
    ways: list[dict[str, Any]]
    restart_server: Callable[[], None] | None

    def start(self, program: str, more: dict[str, Any]) -> list[Any]:
        """Start the clients of every way."""
        options = [
            self.group.options(f"w{number}-", {"processes": WORKERS, "far": True, **more, **way})
            for number, way in enumerate(self.ways)
        ]
        return self.group.start(program, options)

    def kill_in_turn(self, done: Callable[[], int], total: int) -> list[float]:
        """Kill a hub, or the server, each time that another share of the work is done.

        Return how long each time nothing more was done.
        """
        kills = [hub.restart for hub in self.hubs]
        kills += [self.restart_server] if self.restart_server else []
        rounds, seconds = KILLS * len(kills), []
        for number, kill in zip(range(rounds), itertools.cycle(kills), strict=False):
            _until(done, total * (number + 1) // (rounds + 2))
            began, before = time.monotonic(), min(done(), total - 1)
            kill()
            _until(done, before + 1)
            seconds.append(time.monotonic() - began)
        return sorted(seconds)


def _until(done: Callable[[], int], enough: int) -> None:
    poll_until(lambda: done() >= enough, LONG_S, f"{enough} were not done")


@contextmanager
def broken(kind: str, hubs: int, url: str, servers: Servers, folder: Path) -> Iterator[Broken]:
    """Yield a store with some hubs, and the ways into them; afterwards each reader must have read all."""
    server = servers.get(ON_SERVERS[kind].server) if kind in ON_SERVERS else None

    def restart_server() -> None:
        assert server is not None
        server.kill()
        server.restart()

    with process_group(url, folder) as group, hubs_of(group.repository, folder, hubs) as running:
        token = new_token(group.repository)
        ways = [hub.way(transport, token) for hub in running for transport in ("http", "socket")]
        streams = [StreamFollower(way) for way in ways if way["url"]]
        with log_followers(ways, LONG_S) as followers:
            yield Broken(group, running, ways, restart_server if server is not None else None)
        with closing(TaskCoordinator.open(url)) as direct:
            written = direct.database.log("local").tail(0, 1_000_000)
        events = [
            (entry.offset, json.loads(event)["event"])
            for entry in written
            for event in entry.events or NO_EVENT
        ]
        for stream in streams:
            stream.close(LONG_S, events[-1][0])
    for follower in followers:
        assert follower.offsets == [entry.offset for entry in written], "a reader missed an entry"
    for stream in streams:
        assert stream.events == events, "a stream has a gap, or an event twice"
        assert stream.connections > 1, "it had to connect again"


def report(kind: str, what: str, seconds: list[float], hubs: list[KilledHub]) -> None:
    starts = sorted(each for hub in hubs for each in hub.recoveries_s)
    print(  # noqa: T201 - shown with -s
        f"{kind}: {what}, {len(seconds)} kills; clients went on after {seconds[len(seconds) // 2]:.2f} s,"
        f" at most {seconds[-1]:.2f} s; a killed hub was ready after {starts[len(starts) // 2]:.2f} s,"
        f" at most {starts[-1]:.2f} s"
    )


@pytest.mark.timeout(3600 if SOAK else 400)
@pytest.mark.parametrize(
    ("kind", "hubs"), EVERY_KIND if SOAK else [("sqlite", 1), ("postgres", 2), ("nats", 2)]
)
def test_a_plan_is_drained_through_hubs_that_die(
    kind: str, hubs: int, make_url: Callable[[str], str], servers: Servers, tmp_path: Path
) -> None:
    """Issue 16, Proof: no task is lost or done twice, whoever was told "accepted" is right, no reader of the
    log misses an entry, whether clients use sockets or HTTP and whatever is killed -9."""
    with broken(kind, hubs, make_url(kind), servers, tmp_path) as place:
        group = place.group
        with connect_as(group.options("planner", own_pid=False)) as client:
            client.add_tasks(plan(TASKS))
        book = group.folder / "book"
        more = {"kills": 0, "tasks": TASKS, "lease_s": LEASE_S, "book": str(book), "doom": "/nowhere"}
        members = place.start("drainer", more)
        release(members)
        seconds = place.kill_in_turn(lambda: len(group.log.events_of("task.completed")), TASKS)
        for member in members:
            assert member.receive(LONG_S) == "end"
        check_log(group.log, TASKS)
        answers = Counter(book.read_text().split())
        assert set(answers.values()) == {1}, "a result was accepted twice"
        assert len(answers) <= TASKS
    report(kind, f"{TASKS} tasks, {len(members) * WORKERS} clients", seconds, place.hubs)


@pytest.mark.timeout(3600 if SOAK else 400)
@pytest.mark.parametrize(("kind", "hubs"), EVERY_KIND if SOAK else [("sqlite", 1), ("postgres", 2)])
def test_no_lock_is_granted_twice_by_hubs_that_die(
    kind: str, hubs: int, make_url: Callable[[str], str], servers: Servers, tmp_path: Path
) -> None:
    """Issue 16, Proof: clients queue for overlapping files and give them back; whoever was told "granted" is
    alone with what it got, whoever was told "released" holds nothing, and fences only rise."""
    witness = tmp_path / "witness"
    witness.mkdir()
    with broken(kind, hubs, make_url(kind), servers, tmp_path) as place:
        members = place.start("contender", {"wanted": WANTED, "enough": GRANTS, "witness": str(witness)})
        release(members)
        seconds = place.kill_in_turn(OverlapDetector(witness, "").grants, GRANTS)
        for member in members:
            assert member.receive(LONG_S) == "end", "two clients used a file at once"
        log = read_locks(place.group.log.read(), COVERS)
    used = {path: grants for path, grants in used_grants(witness).items() if grants}
    for grants in used.values():
        check_fences_rise(grants)
    told = {(grant.fence, grant.session) for grants in used.values() for grant in grants}
    lines = [line.split() for line in (witness / "unlocked").read_text().splitlines()]
    assert told <= log.granted, "a grant that somebody was told of is not in the log"
    assert {(int(fence), session) for fence, session in lines} <= log.ended, "a release was lost"
    assert log.held == [], "each client gave back what it got"
    assert log.waits > 0
    report(
        kind, f"{len(told)} grants, {log.waits} waits, {len(members) * WORKERS} clients", seconds, place.hubs
    )


def test_the_model_knows_a_double_grant() -> None:
    """The check itself: two who conflict, a lock that ends twice, and one that nobody gave back."""

    def event(kind: str, offset: int, session: str, resource: str = "file:src/a.py", **more: Any) -> Any:
        return {"event": kind, "offset": offset, "session": session, "resource": resource, **more}

    first = event("lock.acquired", 1, "ada", mode="write")
    ended = event("lock.released", 2, "ada", fence=1)
    other = event("lock.acquired", 3, "bob", "file:src/*", mode="read")
    assert read_locks([first, ended, other], COVERS).held == [("file:src/*", "bob", "read", 3)]
    for impossible in ([first, other], [first, ended, ended], [first, {**ended, "fence": 9}], [first, first]):
        with pytest.raises((AssertionError, ValueError)):
            read_locks(impossible, COVERS)
