"""A real hub is killed while clients work: its followers count each entry once, and lose no effect.

And one that has a long log to read answers, follows and lets agents commit at the same time.
"""

import random
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack, closing
from http import HTTPStatus
from pathlib import Path

import pytest

from coord.stores.contract import Commit
from coord.stores.open import open_store
from tests.conftest import SOAK
from tests.support.followed import EAGER, Followed
from tests.support.hub.fleet import new_token
from tests.support.hub.process import RunningHub, private_home, serving
from tests.support.models.naive_metrics import read_samples
from tests.support.process_group import PATIENCE_S, process_group, release
from tests.support.programs.client import connect_as
from tests.support.servers.server import LOOPBACK, free_port, poll_until
from tests.system.processes.test_drain import LEASE_S, plan

TASKS = 1_500 if SOAK else 60
WORKERS = 8 if SOAK else 2
KILLS = 40 if SOAK else 3
SEEDS = range(1, 4) if SOAK else range(1, 2)
BEHIND = 200_000 if SOAK else 3_000
COMMITS = 50 if SOAK else 5
GROWN_KIB_MAX = 60_000
"""The cache of SQLite (32 MiB), and a page of 500 entries; the log of the soak has 90 MiB."""
GRANTED = 'coord_events_total{event="task.claimed"}'


def scraped(hub: RunningHub, token: str) -> dict[str, float]:
    """Return what `/metrics` shows; nothing while it is not counted yet."""
    asked = urllib.request.Request(f"{hub.url}/metrics", headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
            return read_samples(answer.read().decode())
    except urllib.error.HTTPError as error:
        if error.code != HTTPStatus.SERVICE_UNAVAILABLE:
            raise
        return {}


@pytest.mark.timeout(3600 if SOAK else 300)
@pytest.mark.parametrize("kind", ["sqlite", "postgres", "redis"] if SOAK else ["sqlite"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_killed_hub_counts_once_and_loses_no_effect(
    kind: str, seed: int, make_url: Callable[[str], str], tmp_path: Path
) -> None:
    """Issue 17, Proof: kill -9 of the hub at random points, while real processes work through it."""
    chance = random.Random(f"hub followers {seed}")
    with ExitStack() as stack:
        group = stack.enter_context(process_group(make_url(kind), tmp_path))
        home = stack.enter_context(private_home(tmp_path / "private"))
        place = Followed(group.repository, group.url, tmp_path, home)
        place.coord("follow", "reactions", "--once")  # reactions begin at the present
        token, listen = new_token(group.repository), f"{LOOPBACK}:{free_port(LOOPBACK)}"

        def start() -> RunningHub:
            return stack.enter_context(serving(group.repository, place.environ, listen=listen, program=EAGER))

        hub = start()
        with connect_as(group.options("planner", own_pid=False)) as client:
            client.add_tasks(plan(TASKS))
        way = {"url": hub.url, "hub": {"token": token}, "far": True}
        more = {"processes": WORKERS, "kills": 0, "tasks": TASKS, "lease_s": LEASE_S, "doom": "/nowhere"}
        options = group.options("", {**more, **way, "book": str(tmp_path / "book")})
        (member,) = group.start("drainer", [options])
        release([member])
        shown = 0.0
        for number in range(KILLS):
            done = TASKS * number // KILLS + chance.randint(1, TASKS // KILLS)
            poll_until(
                lambda: len(group.log.events_of("task.completed")) >= done,  # noqa: B023 - asked at once
                PATIENCE_S * (10 if SOAK else 1),
                "nobody works",
            )
            granted = scraped(hub, token).get(GRANTED, shown)
            assert granted >= shown, "a counter has fallen"
            shown = granted
            hub.kill()
            hub = start()
        assert member.receive(PATIENCE_S * (50 if SOAK else 1)) == "end"
        assert scraped(hub, token).get(GRANTED, shown) >= shown
        assert hub.stop() == 0
        assert shown > 0
        repeated = place.check()
    print(f"{kind}, seed {seed}: {KILLS} kills, {repeated} effects twice")  # noqa: T201 - shown with -s


@pytest.mark.timeout(1800 if SOAK else 300)
def test_a_hub_far_behind_catches_up_while_agents_work(
    make_url: Callable[[str], str], tmp_path: Path
) -> None:
    """Issue 17, Proof: it reads a long log, agents commit through it, no count is shown that could fall, and
    what it needs does not grow with what it has to read."""
    with ExitStack() as stack:
        group = stack.enter_context(process_group(make_url("sqlite"), tmp_path))
        home = stack.enter_context(private_home(tmp_path / "private"))
        token = new_token(group.repository)
        write_past(group.url, BEHIND)
        hub = stack.enter_context(serving(group.repository, home))
        first_kib = used_kib(hub)
        ada = stack.enter_context(
            connect_as(group.options("ada", {"url": hub.url, "hub": {"token": token}}, own_pid=False))
        )
        committed, slowest_s, most_kib, samples = 0, 0.0, 0, dict[str, float]()
        while samples.get("coord_metrics_lag_entries") != 0 or committed < COMMITS:
            began = time.monotonic()
            assert ada.acquire("name:a").ok
            ada.unlock("name:a")
            slowest_s = max(slowest_s, time.monotonic() - began)
            committed += 1
            most_kib = max(most_kib, used_kib(hub))
            samples = scraped(hub, token)
            assert samples.get("coord_messages_sent_total", BEHIND) == BEHIND, "a part of the log is shown"
        assert samples["coord_locks_acquired_total"] <= committed
        grown_kib = most_kib - first_kib
        assert grown_kib < GROWN_KIB_MAX
        assert hub.stop() == 0
        place = Followed(group.repository, group.url, tmp_path, home)
        shown = read_samples(place.coord("metrics"))
        assert shown["coord_locks_acquired_total"] == committed
        assert shown["coord_messages_sent_total"] == BEHIND
    print(  # noqa: T201 - shown with -s
        f"{BEHIND} entries behind: {committed} commits, the slowest took {slowest_s:.3f} s, +{grown_kib} KiB"
    )


def write_past(url: str, entries: int) -> None:
    """Write a long log without running rules."""
    with closing(open_store(url)) as database:
        log = database.log("local")
        for number in range(entries):
            event = b'{"event":"message.sent","id":"%d","subject":"%s"}' % (number, b"x" * 400)
            log.commit(Commit(events=[event], at=log.now(), id=b"%d" % number))


def used_kib(hub: RunningHub) -> int:
    """Return the memory of a hub, without files that it has mapped."""
    status = Path(f"/proc/{hub.process.pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("RssAnon:")))
