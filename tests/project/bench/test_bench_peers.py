"""The bench of queues compares what it says: every peer is there, durable, and finishes each task once."""

from pathlib import Path

import psycopg
import pytest
import redis

from bench import drained
from bench.__main__ import main
from bench.drained import Run
from bench.drainer import QUEUES
from bench.peers import BESIDE, PACKAGES, compared, missing
from bench.places import temporary
from bench.queue_ours import OURS, PLAIN
from bench.queue_peers import PEERS, HueyQueue, LiteQueueQueue, SaqQueue
from bench.queues import _fairness
from tests.support.servers.kinds import lacks
from tests.support.servers.redis import RedisServer
from tests.support.servers.server import lacking

PERSISTENCE = """
SELECT relpersistence FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""
needs_postgres = pytest.mark.skipif(bool(lacks("postgres")), reason=lacks("postgres"))
needs_redis = pytest.mark.skipif(bool(lacking(RedisServer)), reason=lacking(RedisServer))


def test_every_peer_is_installed_and_stands_beside_a_store() -> None:
    """Issue 6, speed: a queue that is not there is no comparison; each of them is compared somewhere."""
    assert missing() == []
    compared = {name for names in BESIDE.values() for name in names}
    assert {name.lower() for name in compared} == set(PACKAGES)
    assert compared == {name.partition(",")[0] for name in PEERS}


def test_a_missing_peer_is_told_in_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was not measured is said where the figures are read."""
    monkeypatch.setattr("bench.peers.find_spec", lambda name: None if name == "huey" else name)
    words = ["--scale", "tiny", "--store", "memory", "--only", "peers", "--json", str(tmp_path / "f.json")]
    assert main(words) == 0
    assert "NOT MEASURED, since not installed: huey" in capsys.readouterr().out


def test_our_best_is_compared_with_the_best_of_a_peer() -> None:
    """Issue 6, speed: pgqueuer at its best batch size, ours in its best shape; the floor is for 8 workers."""
    rates = {PLAIN: 100.0, "coord, one engine": 900.0, "pgqueuer, 1 at a time": 50.0, "huey": 1.0}
    rates["pgqueuer, 100 at a time"] = 450.0
    figure = compared("postgres", "pgqueuer", 8, rates)
    assert (figure.value, figure.floor, figure.met) == (2.0, 3, False)
    assert figure.name == "coord, one engine ÷ pgqueuer, 100 at a time, 8 workers"
    assert compared("postgres", "pgqueuer", 1, rates).met is None


@needs_redis
def test_saq_finishes_every_job_once_and_synced(tmp_path: Path) -> None:
    """SAQ drains what it was given; its end is its last job, not the end of its worker's patience."""
    with temporary(None) as places:
        url = places.queue_url("SAQ", "redis")
        queue = SaqQueue(url, tmp_path, "filler")
        queue.fill(5)
        queue.close()
        run = drained.run(SaqQueue, "SAQ", url, tmp_path, 2)
        with redis.from_url(url) as client:
            assert client.config_get("appendfsync") == {"appendfsync": "always"}
    moments = sorted(moment for own in run.moments for moment in own)
    assert (len(run.moments), len(moments)) == (2, 5)
    assert run.began == moments[0]
    assert moments[-1] < run.ended


@needs_postgres
def test_queues_on_postgres_are_logged(tmp_path: Path) -> None:
    """No table of a peer is one that Postgres empties after a crash."""
    with temporary(None) as places:
        for name in ("procrastinate", "pgqueuer, 1 at a time"):
            url = places.queue_url(name, "postgres")
            queue = QUEUES[name](url, tmp_path, "filler")
            queue.fill(1)
            queue.close()
            with psycopg.connect(url) as connection:
                kinds = [row[0] for row in connection.execute(PERSISTENCE)]
            assert kinds
            assert set(kinds) == {"p"}


def test_queues_on_sqlite_sync_every_commit(tmp_path: Path) -> None:
    """A peer on easier terms would be no comparison: FULL, as a store of coord has it."""
    lite = LiteQueueQueue(str(tmp_path / "lite.db"), tmp_path, "filler")
    assert lite._queue.conn.execute("PRAGMA synchronous").fetchone()[0] == 2
    lite.close()
    huey = HueyQueue(str(tmp_path / "huey.db"), tmp_path, "filler")
    assert huey._huey.storage.conn.execute("PRAGMA synchronous").fetchone()[0] == 2
    huey.close()


def test_waits_and_shares_are_those_of_the_workers() -> None:
    """A wait is from one task to the next of the same worker; a share is a multiple of the fair part."""
    run = Run(began=0.0, ended=4.0, moments=[[1.0, 1.5, 3.5], [1.0]])
    detail = run.detail()
    assert run.rate == 1.0
    assert (detail["p50_ms"], detail["max_ms"]) == (2000.0, 2000.0)
    assert (detail["least_share"], detail["most_share"]) == (0.5, 1.5)


@pytest.mark.parametrize("name", OURS)
def test_our_own_shapes_leave_no_task_undone(name: str, tmp_path: Path) -> None:
    """Every shape of ours takes each task once, and a second drain finds nothing."""
    with temporary(None) as places:
        (places.folder / ".git").mkdir()
        queue = QUEUES[name]("memory:", places.folder, "filler")
        queue.fill(9)
        assert sum(map(len, queue.drain(2).moments)) == 9
        assert sum(map(len, queue.drain(2).moments)) == 0
        queue.close()


def test_a_low_task_waits_as_long_as_its_priority_says() -> None:
    """DLK-17, SCN-22: a step of priority is a minute's head start, so the tenth turn is the low one's."""
    figure = _fairness()
    assert (figure.value, figure.met) == (9, True)
