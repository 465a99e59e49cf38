"""REC-20 on real servers: one that is away for a moment is waited for, one that refuses is not."""

import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

import coord
from coord.core.errors import CoordError, NotFound, Unavailable, Unreachable
from coord.stores import open as opening
from tests.support.servers.kinds import ON_SERVERS, OnServer, Servers
from tests.support.servers.postgres import PostgresServer
from tests.support.servers.server import PASSWORD, Server, poll_until, running

PATIENCE_S = 60
KINDS = tuple(ON_SERVERS)


class Attempts:
    """Counts the attempts to open a store, and says when the first one has failed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.failed = threading.Event()
        self._open = opening._open
        monkeypatch.setattr(opening, "_open", self._attempt)

    def _attempt(self, url: str) -> Any:
        self.count += 1
        try:
            return self._open(url)
        except Unreachable:
            self.failed.set()
            raise


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> Attempts:
    return Attempts(monkeypatch)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> OnServer:
    """Each kind of store on a server."""
    return ON_SERVERS[request.param]


@pytest.fixture
def server(kind: OnServer, servers: Servers) -> Server:
    return servers.get(kind.server)


@pytest.mark.parametrize("end", [Server.stop, Server.kill])
def test_a_server_that_comes_back_is_found(
    kind: OnServer, end: Callable[[Server], None], attempts: Attempts, thread: ThreadPoolExecutor
) -> None:
    """A command that begins while the server is down succeeds once it is up again."""
    with running(kind.server) as server:
        url = kind.fresh_url(server)
        end(server)
        with pytest.raises(Unreachable):
            coord.open_store(url, timeout=0)
        attempts.failed.clear()
        opened = thread.submit(coord.open_store, url, timeout=PATIENCE_S)
        assert attempts.failed.wait(PATIENCE_S)
        server.restart()
        with closing(opened.result(PATIENCE_S)) as database:
            assert database.log("local").tail(0, 1) == []


def test_a_client_connects_to_a_server_that_comes_back(
    kind: OnServer, attempts: Attempts, thread: ThreadPoolExecutor, tmp_path: Any
) -> None:
    """`coord.connect` takes the same time, and the session is as good as any."""
    with running(kind.server) as server:
        url = kind.fresh_url(server)
        server.stop()
        options: dict[str, Any] = {"session": "s", "cwd": str(tmp_path), "environ": {"HOME": str(tmp_path)}}
        connected = thread.submit(coord.connect, url, timeout=PATIENCE_S, **options)
        assert attempts.failed.wait(PATIENCE_S)
        server.restart()
        with connected.result(PATIENCE_S) as client:
            assert client.locks() == []


def test_installing_waits_for_the_server_too(
    kind: OnServer, monkeypatch: pytest.MonkeyPatch, thread: ThreadPoolExecutor
) -> None:
    """`install` right after the start of a server: it is tried again until the server takes it."""
    failed = threading.Event()
    with running(kind.server) as server:
        url = kind.blank_url(server)
        server.stop()
        install = opening._install

        def attempt(url: str) -> None:
            try:
                install(url)
            except Unreachable:
                failed.set()
                raise

        monkeypatch.setattr(opening, "_install", attempt)
        installed = thread.submit(coord.install, url, timeout=PATIENCE_S)
        assert failed.wait(PATIENCE_S)
        server.restart()
        installed.result(PATIENCE_S)
        coord.open_store(url, timeout=0).close()


def test_a_wrong_password_fails_at_once(kind: OnServer, server: Server, attempts: Attempts) -> None:
    """The server is there and says no: nobody waits for it to change its mind."""
    url = kind.fresh_url(server).replace(PASSWORD, "another")
    with pytest.raises(Unavailable) as raised:
        coord.open_store(url, timeout=PATIENCE_S)
    assert type(raised.value) is Unavailable
    assert attempts.count == 1


def test_a_store_that_is_not_installed_fails_at_once(
    kind: OnServer, server: Server, attempts: Attempts
) -> None:
    """`NotFound`, with the command that prepares it."""
    with pytest.raises(NotFound, match="coord install"):
        coord.open_store(kind.blank_url(server), timeout=PATIENCE_S)
    assert attempts.count == 1


@pytest.mark.parametrize("name", ["postgres", "postgres-log", "mariadb"])
def test_a_database_that_is_not_there_fails_at_once(name: str, servers: Servers, attempts: Attempts) -> None:
    """The server is right and the url is wrong."""
    kind = ON_SERVERS[name]
    server = servers.get(kind.server)
    url = kind.blank_url(server).partition("?")[0] + "_of_nobody"
    with pytest.raises(CoordError) as raised:
        coord.open_store(url, timeout=PATIENCE_S)
    assert not isinstance(raised.value, Unreachable)
    assert attempts.count == 1


@pytest.mark.parametrize("parameters", ["?sslmode=require", "?sslmode=verify-full&sslrootcert=/dev/null"])
def test_encryption_that_cannot_succeed_fails_at_once(
    postgres_server: PostgresServer, attempts: Attempts, parameters: str
) -> None:
    """A server without TLS does not get it by waiting, nor does a client its certificate."""
    with pytest.raises(Unavailable) as raised:
        coord.open_store(postgres_server.fresh_url() + parameters, timeout=PATIENCE_S)
    assert type(raised.value) is Unavailable
    assert attempts.count == 1


@contextlib.contextmanager
def hanging_up() -> Iterator[int]:
    """A port where each connection is taken and closed again, as by a server that dies in the handshake."""
    door = socket.create_server(("127.0.0.1", 0))

    def run() -> None:
        with contextlib.suppress(OSError):
            while True:
                door.accept()[0].close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield door.getsockname()[1]
    finally:
        door.shutdown(socket.SHUT_RDWR)
        door.close()
        thread.join(PATIENCE_S)


def test_a_connection_lost_in_the_handshake_is_unreachable(kind: OnServer, server: Server) -> None:
    """It may have been a server that was just killed: the next attempt may succeed."""
    url = kind.fresh_url(server)
    with hanging_up() as port, pytest.raises(Unreachable):
        coord.open_store(url.replace(f":{server.port}/", f":{port}/"), timeout=0)


def test_postgres_that_shuts_down_is_unreachable() -> None:
    """It answers, but only that it takes nobody: libpq tells that apart from a refusal."""
    with running(PostgresServer) as server:
        url = server.fresh_url()
        told: list[CoordError] = []

        def refuses() -> bool:
            try:
                coord.open_store(url, timeout=0).close()
            except CoordError as error:
                told.append(error)
            return bool(told)

        with server.admin():  # an orderly end waits for those who are connected
            server.send(signal.SIGTERM)
            poll_until(refuses, PATIENCE_S, "new connections are still taken")
    assert "shutting down" in told[0].message
    assert isinstance(told[0], Unreachable)
