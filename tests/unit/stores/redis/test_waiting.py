"""Waiting on Redis: who is woken, by what, and how long it takes at most; and the server's clock."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis

from coord.stores.contract import Commit, Store
from coord.stores.server import listener
from tests.support.servers.redis import RedisServer
from tests.support.servers.server import running
from tests.support.stores.fixtures import AnyDatabase
from tests.support.stores.redis_lives import PATIENCE_S, clients_of, until
from tests.support.stores.steps import head

Opener = Callable[[str], AnyDatabase]

ONE = Commit(events=[b"e"])


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A server for these tests alone: they look at all its clients, and kill it."""
    with running(RedisServer, tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def admin(own_server: RedisServer) -> Iterator[redis.Redis]:
    with own_server.admin() as client:
        yield client


@pytest.fixture
def url(own_server: RedisServer) -> str:
    return own_server.fresh_store_url()


@pytest.fixture
def store(url: str, open_database: Opener) -> Store:
    store: Store = open_database(url).log("local")
    return store


def listeners(admin: redis.Redis) -> list[str]:
    """Return the ids of the clients that wait for an entry."""
    return [client["id"] for client in clients_of(admin) if "b" in client["flags"]]


def test_a_commit_wakes_all_who_wait_at_once(
    store: Store,
    url: str,
    open_database: Opener,
    admin: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
    thread: ThreadPoolExecutor,
) -> None:
    """The stream wakes whoever reads it, long before they would look for themselves."""
    monkeypatch.setattr(listener, "POLL_S", 5.0)
    waiter = open_database(url).log("local")
    waiting = [thread.submit(waiter.wait, 0, PATIENCE_S) for _ in range(2)]
    until(lambda: listeners(admin))
    store.commit(ONE)
    monkeypatch.undo()
    assert [one.result(4) for one in waiting] == [True, True]


def test_one_listener_hears_for_all_tenants(
    url: str, open_database: Opener, admin: redis.Redis, thread: ThreadPoolExecutor
) -> None:
    """Each is woken by the commits of its own log, over one connection."""
    database, other = open_database(url), open_database(url)
    for tenant in ("one", "two"):
        other.log(tenant).commit(ONE)
    waiting = {name: thread.submit(database.log(name).wait, 1, PATIENCE_S) for name in ("one", "two")}
    until(lambda: listeners(admin))
    assert len(listeners(admin)) == 1
    other.log("two").commit(ONE)
    assert waiting["two"].result(PATIENCE_S)
    assert not waiting["one"].done()
    other.log("one").commit(ONE)
    assert waiting["one"].result(PATIENCE_S)


def test_a_lost_listener_comes_back(
    store: Store, url: str, open_database: Opener, admin: redis.Redis, thread: ThreadPoolExecutor
) -> None:
    """The listener's session is ended: commits do not notice, waiters are woken all the same."""
    answer = thread.submit(open_database(url).log("local").wait, 0, PATIENCE_S)
    until(lambda: listeners(admin))
    admin.client_kill_filter(_id=listeners(admin)[0])
    assert store.commit(ONE) == 1
    assert answer.result(PATIENCE_S)


def test_a_wait_ends_in_time_while_the_server_is_away(own_server: RedisServer, store: Store) -> None:
    """`wait` never sleeps longer than told, and a server that is away is no error: it is a hint."""
    own_server.kill()
    try:
        assert not store.wait(0, 0.05)
    finally:
        own_server.restart()


def test_waiting_threads_are_let_go_by_close(
    url: str, open_database: Opener, admin: redis.Redis, thread: ThreadPoolExecutor
) -> None:
    """Closing the database ends its listener's session and everybody's wait."""
    database = open_database(url)
    answer = thread.submit(database.log("local").wait, 0, 10 * PATIENCE_S)
    until(lambda: listeners(admin))
    database.close()
    assert not answer.result(PATIENCE_S)
    until(lambda: not listeners(admin))
    assert not [one for one in threading.enumerate() if one.name == "coord-listen"]


def test_the_store_has_the_servers_time(store: Store, admin: redis.Redis) -> None:
    """`now` lies between two looks at the server's own clock."""

    def clock() -> int:
        seconds, micros = admin.time()
        return seconds * 1000 + micros // 1000

    before = clock()
    head(store)
    assert before - 1 <= store.now() <= clock() + 1
