"""REC-20 at the command line: a server that is away for a moment is waited for, then 69 with a next step."""

import json
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coord.core.errors import Unreachable
from coord.stores import open as opening
from tests.support.cli import Coord, started
from tests.support.servers.kinds import ON_SERVERS
from tests.support.servers.server import PASSWORD, Server, running

PATIENCE_S = 60
TIMEOUT = "COORD_CONNECT_TIMEOUT"


@pytest.fixture(params=["postgres", "redis"])
def server(request: pytest.FixtureRequest, coord: Coord) -> Iterator[Server]:
    """A server for this test alone; the repository is pinned to a store on it."""
    kind = ON_SERVERS[request.param]
    with running(kind.server) as server:
        assert coord("ann init --yes --url", kind.fresh_url(server)).code == 0
        assert coord("ann lock a.py").code == 0
        yield server


@pytest.fixture
def after_first_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[Callable[[], None]], None]]:
    """Return a function that has something done, beside the test, once an attempt to open has failed."""
    failed, over = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []
    attempt = opening._open

    def noted(url: str) -> Any:
        try:
            return attempt(url)
        except Unreachable:
            failed.set()
            raise

    def do_after(do: Callable[[], None]) -> None:
        def wait() -> None:
            assert failed.wait(PATIENCE_S)
            do()
            over.wait(PATIENCE_S)  # a server ends with the thread that has started it

        threads.append(threading.Thread(target=wait, daemon=True))
        threads[-1].start()

    monkeypatch.setattr(opening, "_open", noted)
    yield do_after
    over.set()
    for thread in threads:
        thread.join(PATIENCE_S)


def test_a_command_waits_for_a_server_that_comes_back(
    coord: Coord,
    server: Server,
    after_first_failure: Callable[[Callable[[], None]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`coord locks` while the server restarts: it answers as if nothing had been."""
    monkeypatch.setenv(TIMEOUT, str(PATIENCE_S))
    server.stop()
    after_first_failure(server.restart)
    said = coord("ann locks")
    assert said.code == 0
    assert [lock["resource"] for lock in said.answer["locks"]] == ["file:a.py"]


@pytest.mark.parametrize("seconds", ["0", "0.3"])
def test_a_server_that_stays_away_is_69(
    coord: Coord, server: Server, monkeypatch: pytest.MonkeyPatch, seconds: str
) -> None:
    """Nothing was done; the error names the server, the next step, and the time that was tried."""
    monkeypatch.setenv(TIMEOUT, seconds)
    server.stop()
    said = coord("ann locks")
    assert (said.code, said.answer["error"]["code"]) == (69, "unavailable")
    assert server.name in said.answer["error"]["message"]
    assert "is the server running" in said.answer["error"]["hint"]
    assert (TIMEOUT in said.answer["error"]["hint"]) == (seconds != "0")
    assert PASSWORD not in json.dumps(said.answer) + said.line


def test_the_doctor_says_how_it_is_now(coord: Coord, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for nobody: a server that restarts is what it was asked about."""
    monkeypatch.setenv(TIMEOUT, "3600")
    server.stop()
    said = coord("ann doctor")
    assert said.code == 69
    assert {each["check"]: each["state"] for each in said.answer["checks"]}["store"] == "bad"


def test_a_time_that_is_none_is_refused(coord: Coord, monkeypatch: pytest.MonkeyPatch) -> None:
    """A typing error is told before anything is opened."""
    monkeypatch.setenv(TIMEOUT, "soon")
    said = coord("ann locks")
    assert said.code == 2
    assert TIMEOUT in said.answer["error"]["message"]
    assert said.answer["error"]["hint"]


def test_a_worker_waits_for_its_store_until_it_comes(coord: Coord, server: Server, repository: Path) -> None:
    """`coord work` on a server that is down says so, and begins once it is up."""
    assert coord("ann task add A-001-x").code == 0
    server.stop()
    process = started("ann", "work", "--", "true")
    assert process.stdout is not None
    told = json.loads(process.stdout.readline())
    assert told["event"] == "waiting"
    assert server.name in told["note"]
    server.restart()
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert json.loads(out.splitlines()[-1])["tasks"] == {"submitted": 1}
    assert process.returncode == 0


def test_a_worker_that_waits_for_its_store_can_be_stopped(coord: Coord, server: Server) -> None:
    """SIGTERM ends the wait."""
    server.stop()
    process = started("ann", "work", "--", "true")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["event"] == "waiting"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + signal.SIGTERM


def test_a_worker_for_one_task_gives_up(
    coord: Coord, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --once it is a command as any other."""
    monkeypatch.setenv(TIMEOUT, "0")
    server.stop()
    process = started("ann", "work", "--once", "--", "true")
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 69
