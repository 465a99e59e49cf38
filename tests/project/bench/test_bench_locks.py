"""The bench of locks measures what it says: the rivals really lock, and its figures mean what they say."""

import json
import subprocess
from pathlib import Path

import pytest
import redis

from bench.__main__ import main
from bench.commands import clean_python
from bench.contended import Turn, in_order, run, shares
from bench.lock_peers import Rival
from bench.places import Places, temporary
from bench.repository import make_repository
from tests.support.servers.etcd import EtcdServer
from tests.support.servers.kinds import lacks
from tests.support.servers.redis import RedisServer
from tests.support.servers.server import lacking

RIVALS = ("filelock", "redis-py Lock", "Postgres advisory", "etcd", "etcd, lease each")
missing = lacks("postgres") or lacking(RedisServer) or lacking(EtcdServer)
needs_servers = pytest.mark.skipif(bool(missing), reason=missing)


def figures_of(tmp_path: Path, section: str, store: str = "sqlite") -> dict[str, dict]:
    """Run one section at a tiny size; return its figures by name."""
    path = tmp_path / "figures.json"
    words = ["--scale", "tiny", "--store", store, "--only", section]
    assert main([*words, "--json", str(path)]) == 0
    return {figure["name"]: figure for figure in json.loads(path.read_bytes())["figures"]}


@needs_servers
def test_our_lock_stands_beside_others_and_raw(tmp_path: Path) -> None:
    """Issue 3, speed: a pair is two commits; raw plays the same ones, and each rival has its ratio."""
    figures = figures_of(tmp_path, "locks")
    ours = figures.pop("coord, acquire + release")
    assert ours["detail"]["commits_per_op"] == 2
    assert ours["of_raw"] == pytest.approx(ours["value"] / ours["raw"])
    assert {name.removesuffix(", acquire + release") for name in figures} == set(RIVALS)
    for figure in figures.values():
        assert figure["detail"]["ours_of_this"] == pytest.approx(ours["value"] / figure["value"])
        assert figure["detail"]["max_ms"] >= figure["detail"]["p50_ms"] > 0


@needs_servers
@pytest.mark.parametrize("name", ["coord", *RIVALS])
def test_every_contender_gets_all_of_its_turns(name: str) -> None:
    """Real processes get the lock as often as they want it, one turn after the other."""
    with temporary(None) as places:
        turns = run(_rival(places, name), make_repository(places.folder), contenders=2, rounds=3)
    assert sorted(turn.process for turn in turns) == sorted([0, 1] * 3)
    for process in range(2):
        own = [turn for turn in turns if turn.process == process]
        moments = [moment for turn in own for moment in turn[:3]]
        assert moments == sorted(moments)


def _rival(places: Places, name: str) -> Rival:
    if name == "coord":
        return Rival(name, places.fresh_url("sqlite"))
    (rival,) = places.rivals([name])
    return rival


def test_order_is_judged_by_who_asked_first() -> None:
    """A grant is in order if nobody who still waits had asked before; who is alone counts for nothing."""
    queue = [Turn(0, 1, 2, 0), Turn(0.1, 2, 3, 1), Turn(0.2, 3, 4, 2), Turn(9, 9.1, 9.2, 0)]
    assert in_order(queue) == 1
    greedy = [Turn(0, 1, 2, 0), Turn(2.1, 2.2, 3, 0), Turn(0.1, 4, 5, 1)]
    assert in_order(greedy) == 0.5


def test_shares_are_compared_while_all_still_contend() -> None:
    """A process that gets all of its turns before the others begin had everything, and they nothing."""
    fair = [Turn(0, number, number, number % 2) for number in range(8)]
    assert shares(fair) == pytest.approx((6 / 7, 8 / 7))
    greedy = [Turn(0, number, number, number // 4) for number in range(8)]
    assert shares(greedy) == (0, 2)


def test_a_check_is_compared_with_the_one_among_the_fewest(tmp_path: Path) -> None:
    """Issue 3, speed: checks of a free and of a held path among each number of held locks."""
    figures = figures_of(tmp_path, "check", "memory")
    assert set(figures) == {
        f"check of a {what} path among {held} held" for what in ("free", "held") for held in (10, 50)
    }
    assert figures["check of a free path among 10 held"]["detail"]["of_fewest"] == 1
    assert figures["check of a free path among 50 held"]["detail"]["of_fewest"] > 0


def test_commands_are_multiples_of_python_alone(tmp_path: Path) -> None:
    """Issue 3, speed: whole commands beside `python -c pass`, installed and with the dev tools."""
    figures = figures_of(tmp_path, "commands")
    assert set(figures) == {
        f"{command}, {where}"
        for command in ("coord lock --no-wait x", "coord check x")
        for where in ("installed", "with dev tools")
    }
    for figure in figures.values():
        assert figure["most"] == 6
        assert figure["value"] > 0
        assert figure["value"] == pytest.approx(
            figure["detail"]["command_ms"] / figure["detail"]["python_ms"]
        )


def test_the_clean_environment_has_nothing_but_what_coord_needs(tmp_path: Path) -> None:
    """What msgspec would import if it found it (typing_extensions) is not there."""
    python = clean_python(tmp_path / "clean")
    find = "import importlib.util as u; print(*[u.find_spec(n) is not None for n in {!r}])"
    words = [str(python), "-I", "-c", find.format(["coord", "msgspec", "typing_extensions", "pytest"])]
    found = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
    assert found == ["True", "True", "False", "False"]


@needs_servers
def test_redis_syncs_every_write() -> None:
    """A rival on easier terms would be no comparison: its answers, too, mean that it is on disk."""
    with temporary(None) as places:
        (rival,) = places.rivals(["redis-py Lock"])
        with redis.from_url(rival.url) as client:
            settings = client.config_get("append*")
    assert (settings["appendonly"], settings["appendfsync"]) == ("yes", "always")


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_broad_requests_are_measured_among_each_number_of_locks(tmp_path: Path, store: str) -> None:
    """Locks of a glob, checks and listings in this process; on SQLite whole commands and their memory."""
    figures = figures_of(tmp_path, "broad", store)
    for held in (20, 40):
        for name in ("lock of a glob, denied", "check of a glob", "first page", "list of all"):
            assert figures.pop(f"{name} among {held} locks")["value"] > 0
    assert figures.pop("list 30 tasks")["value"] > 0
    assert len(figures) == (8 if store == "sqlite" else 0)
    assert all(
        figure["most"] == (100 if name.endswith("memory") else 1000) for name, figure in figures.items()
    )
