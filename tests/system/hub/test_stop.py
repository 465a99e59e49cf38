"""A hub that ends has answered everyone, and leaves no thread, file, socket or process behind."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from coord.core.errors import Unreachable
from coord.core.tasks.commands import ClaimTask
from coord.engine.engine import Engine
from coord.sdk.remote import wire
from coord.sdk.remote.channel import Broken, UnixChannel
from coord.sdk.remote.database import RemoteDatabase, decode_answer, say_hello
from coord.stores.open import open_store
from tests.support.git_folders import made_repository
from tests.support.hub.fleet import new_token
from tests.support.hub.in_process import HubThread
from tests.support.hub.process import PATIENCE_S, RunningHub, private_home, serving
from tests.support.servers.server import poll_until

CLIENTS = 16
CYCLES = 3


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    with private_home(tmp_path / "private") as home:
        yield {**home, "COORD_SESSION_ID": "ada"}


@pytest.fixture
def repository(tmp_path: Path, environ: dict[str, str]) -> Path:
    made_repository(tmp_path / "shop")
    coord(tmp_path / "shop", environ, "init")
    return tmp_path / "shop"


def coord(repository: Path, environ: dict[str, str], *words: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-m", "coord", *words],
        cwd=repository,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    return dict(json.loads(done.stdout or "{}"))


def client_of(hub: RunningHub, repository: Path) -> RemoteDatabase:
    channel = UnixChannel(hub.socket)
    welcome = say_hello(channel, str(repository), "local", PATIENCE_S)
    return RemoteDatabase("x", str(repository), channel, welcome, None)


def claim(number: int) -> ClaimTask:
    return ClaimTask("local", "shop", f"t{number}", "agent", "ada", 60_000)


def wait_until_polled(hub: RunningHub, count: int) -> None:
    """Wait until so many connections are open: all of them have been accepted, and ask for something."""
    poll_until(lambda: len(open_files(hub.process.pid)) >= count, PATIENCE_S, "nobody is there")


def open_files(pid: int) -> list[str]:
    names = []
    for each in os.listdir(f"/proc/{pid}/fd"):
        try:
            names.append(os.readlink(f"/proc/{pid}/fd/{each}"))
        except FileNotFoundError:
            continue
    return names


def counts(pid: int) -> tuple[int, int, int]:
    """Return how many threads, sockets and children a process has."""
    threads = os.listdir(f"/proc/{pid}/task")
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    sockets = [name for name in open_files(pid) if name.startswith("socket:")]
    return len(threads), len(sockets), len(children)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_hub_that_stops_answers_everyone(
    repository: Path, environ: dict[str, str], number: signal.Signals
) -> None:
    """Long polls return at once with the head; each command has its reply, or was never begun."""
    with serving(repository, environ) as hub, closing(client_of(hub, repository)) as database:
        target = database.target("local")
        before = len(open_files(hub.process.pid))

        def poll(_: int) -> wire.LogHead:
            with closing(UnixChannel(hub.socket)) as channel:
                body = wire.encode(wire.Wait(target, 10**15, PATIENCE_S))
                return decode_answer(*channel.post(wire.WAIT, body, PATIENCE_S), wire.LogHead, "hub")

        told: list[int] = []
        refused: list[Exception] = []

        def work(first: int) -> None:
            with closing(client_of(hub, repository)) as mine:
                engine = mine.engine("local")
                for task in range(first, first + 100_000):
                    try:
                        engine.call(claim(task), timeout=0.1)
                    except (Unreachable, Broken) as error:
                        refused.append(error)
                        return
                    told.append(task)

        with ThreadPoolExecutor(2 * CLIENTS) as threads:
            polls = [threads.submit(poll, each) for each in range(CLIENTS)]
            wait_until_polled(hub, before + CLIENTS)
            workers = [threads.submit(work, each * 1_000_000) for each in range(4)]
            poll_until(lambda: len(told) > 50, PATIENCE_S, "nothing was claimed")
            hub.process.send_signal(number)
            assert hub.process.wait(PATIENCE_S) == 0
            assert all(each.result(PATIENCE_S).offset > 0 for each in polls)
            for each in workers:
                each.result(PATIENCE_S)
        assert len(refused) == 4
        assert not any(isinstance(each, Broken) for each in refused), "an answer was lost"
    left = {path.name for path in Path(environ["XDG_RUNTIME_DIR"], "coord").iterdir() if path.is_file()}
    assert left == {"hub.lock"}, "the lock file stays, as others may wait for it"
    location = coord(repository, environ, "status")
    assert location["ok"]


def test_a_second_signal_ends_a_hub_that_waits() -> None:
    """Somebody sends half a request and then nothing; nobody wants to wait for that twice."""
    with tempfile.TemporaryDirectory(prefix="ch-") as folder, socket.socket(socket.AF_UNIX) as stuck:
        hub = HubThread(folder)
        hub.server.config.timeout_graceful_shutdown = 100_000
        stuck.connect(hub.path)
        stuck.sendall(b"POST /v1/call HTTP/1.1\r\nHost: coord\r\nContent-Length: 100\r\n\r\nx")
        poll_until(lambda: hub.server.server_state.connections, PATIENCE_S, "nobody is there")
        hub.loop.call_soon_threadsafe(hub.server.stop)
        hub.stop()
        assert hub.server.force_exit


def test_a_reload_serves_on(repository: Path, environ: dict[str, str]) -> None:
    """SIGHUP: the stores are opened again; clients notice nothing, and nothing piles up."""
    with serving(repository, environ) as hub, closing(client_of(hub, repository)) as database:
        engine = database.engine("local")
        for number in range(10):
            hub.process.send_signal(signal.SIGHUP)
            assert engine.call(claim(number)).success
        path = f"{repository}/.git/coord/store/coord.db"

        def are_closed() -> bool:  # all but the present one, and one that may close just now
            return open_files(hub.process.pid).count(os.path.realpath(path)) <= 2

        poll_until(are_closed, PATIENCE_S, "the stores of before are still open")


def test_a_hub_under_load_returns_to_what_it_was(repository: Path, environ: dict[str, str]) -> None:
    """Connections, long polls and tokens come and go: threads, sockets and children are those of before."""
    with serving(repository, environ) as hub:

        def use(number: int) -> None:
            with closing(client_of(hub, repository)) as database:
                assert database.engine("local").call(claim(number)).success
                assert not database.log("local").wait(10**15, 0.01)

        def use_all() -> None:
            with ThreadPoolExecutor(CLIENTS) as threads:
                list(threads.map(use, numbers))

        numbers = range(1000, 1000 + CLIENTS)
        use_all()
        first: list[tuple[int, int, int]] = [counts(hub.process.pid)]

        def is_quiet() -> bool:
            first[0] = min(first[0], counts(hub.process.pid))
            return first[0][1] <= 12

        poll_until(is_quiet, PATIENCE_S, "connections stay open")
        for cycle in range(2, 2 + CYCLES):
            numbers = range(cycle * 1000, cycle * 1000 + CLIENTS)
            use_all()

        def is_as_before() -> bool:
            threads, sockets, children = counts(hub.process.pid)
            return (threads <= first[0][0] + 8, sockets <= first[0][1] + 2, children) == (True, True, 0)

        poll_until(is_as_before, PATIENCE_S, f"{counts(hub.process.pid)} are left of {first[0]}")
        assert hub.stop() == 0


def threads_and_files() -> tuple[set[str], int]:
    return {each.name for each in threading.enumerate()}, len(open_files(os.getpid()))


def test_a_hub_in_this_process_leaves_nothing(make_url: Callable[[str], str], tmp_path: Path) -> None:
    """Start and stop, with clients of both kinds and polls under way: threads and files are counted."""

    def cycle(url: str) -> None:
        with tempfile.TemporaryDirectory(prefix="ch-") as folder:
            hub = HubThread(folder)
            with closing(open_store(url)) as database:
                for transport in ("socket", "http"):
                    with hub.serving(database, transport, Engine) as clients:
                        assert clients.engine("local").call(claim(1)) is not None
                        assert not clients.log("local").wait(10**15, 0.01)
                hub.stop()

    url = make_url("sqlite")
    cycle(url)
    before = threads_and_files()
    for _ in range(CYCLES):
        cycle(url)

    def is_as_before() -> bool:
        names, files = threads_and_files()
        return names <= before[0] and files <= before[1]

    poll_until(is_as_before, PATIENCE_S, f"{threads_and_files()} are left of {before}")


def test_a_token_works_again_after_a_reload(repository: Path, environ: dict[str, str]) -> None:
    """The store of a token is opened again when it is asked for, also that of another repository."""
    with serving(repository, environ) as hub:
        token = new_token(repository)
        remote = {**environ, "COORD_HUB": "off", "COORD_TOKEN": token}
        for number in range(3):
            hub.process.send_signal(signal.SIGHUP)
            assert coord(repository.parent, remote, "--url", hub.url, "lock", f"name:r{number}", "--no-wait")[
                "ok"
            ]
