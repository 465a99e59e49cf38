"""Real `coord follow` processes are killed while others commit: each entry counts once, no effect is lost."""

import random
from pathlib import Path

import pytest

from tests.conftest import SOAK
from tests.support.followed import Followed
from tests.support.fork_server import Forked, end
from tests.support.hub.process import private_home
from tests.support.process_group import PATIENCE_S, ProcessGroup, release
from tests.support.programs.client import connect_as
from tests.support.servers.server import poll_until
from tests.system.processes.test_drain import LEASE_S, plan

TASKS = 3_000 if SOAK else 60
WORKERS = 8 if SOAK else 2
KILLS = 150 if SOAK else 8
SEEDS = range(1, 6) if SOAK else range(1, 2)
FOLLOWED = ("metrics", "metrics", "reactions")
"""Two processes count the same log at once; the second one is told what the first has saved."""


@pytest.mark.timeout(3600 if SOAK else 300)
@pytest.mark.parametrize("seed", SEEDS)
def test_killed_followers_count_once_and_lose_nothing(group: ProcessGroup, tmp_path: Path, seed: int) -> None:
    """Issue 17, Proof: kill -9 at any point of `coord follow`, while real processes work."""
    chance = random.Random(f"followers {seed}")
    with private_home(tmp_path / "private") as home:
        place = Followed(group.repository, group.url, tmp_path, home)
        place.coord("follow", "reactions", "--once")  # reactions begin at the present
        with connect_as(group.options("planner", own_pid=False)) as client:
            client.add_tasks(plan(TASKS))
        more = {"processes": WORKERS, "kills": 0, "tasks": TASKS, "lease_s": LEASE_S, "doom": "/nowhere"}
        (member,) = group.start("drainer", [group.options("", {**more, "book": str(tmp_path / "book")})])
        release([member])
        running = [(name, place.follow(name)) for name in FOLLOWED]
        saved = kill_in_turn(place, group, running, chance)
        assert member.receive(PATIENCE_S * (50 if SOAK else 1)) == "end"
        for _, process in running:
            end(process, PATIENCE_S)
        assert any(saved), "some kills hit a follower that goes on from a saved state"
        assert place.saved() >= max(saved)
        repeated = place.check()
    print(f"seed {seed}: {KILLS} kills, {repeated} effects twice")  # noqa: T201 - shown with -s


def kill_in_turn(
    place: Followed, group: ProcessGroup, running: list[tuple[str, Forked]], chance: random.Random
) -> list[int]:
    """Kill any follower each time that the log has grown by some entries; return what was saved by then."""
    saved, enough = [], len(group.log.read())
    for number in range(KILLS):
        enough += chance.randint(1, TASKS * 4 // KILLS)
        done = TASKS * (number + 1) // KILLS
        poll_until(
            lambda: (
                len(group.log.read()) >= enough  # noqa: B023 - asked at once
                or len(group.log.events_of("task.completed")) >= done  # noqa: B023
            ),
            PATIENCE_S * (10 if SOAK else 1),
            "nobody works",
        )
        at = chance.randrange(len(running))
        name, process = running[at]
        end(process, PATIENCE_S)
        saved.append(place.saved())
        running[at] = (name, place.follow(name))
    return saved
