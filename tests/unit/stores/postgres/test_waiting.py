"""Waiting on Postgres: who is woken, by what, and what a commit pays for it; and the server's clock."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import psycopg
import pytest

from coord.stores.contract import Commit, Put, Store
from coord.stores.server import clock as server_clock
from coord.stores.server import listener
from tests.support.servers.postgres import PostgresServer
from tests.support.servers.server import running, runs
from tests.support.servers.tcp_relay import TcpRelay
from tests.support.stores.fixtures import AnyDatabase
from tests.support.stores.postgres_sessions import PATIENCE_S, Sql, listeners, rows, terminate, until
from tests.support.stores.steps import head, write

ONE = Commit(expected_versions={"k": 0}, puts={"k": Put(b"1")}, events=[b"e"], id=b"one")

Opener = Callable[[str], AnyDatabase]


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A server for these tests alone, since they kill it and turn its screws."""
    with running(PostgresServer, tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    return postgres_server.fresh_url()


@pytest.fixture
def store(url: str, open_database: Opener) -> Store:
    store: Store = open_database(url).log("local")
    return store


@pytest.fixture
def sql(url: str) -> Iterator[Sql]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def no_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the net away, so that only a ring can wake in time."""
    monkeypatch.setattr(listener, "POLL_S", 2 * PATIENCE_S)


@pytest.fixture
def waiting(url: str, open_database: Opener, sql: Sql) -> Iterator[list["Future[bool]"]]:
    """Two threads of another process, as it were, that wait for the first commit."""
    waiter = open_database(url)
    with ThreadPoolExecutor(2) as threads:
        yield [threads.submit(waiter.log("local").wait, 0, PATIENCE_S) for _ in range(2)]
        waiter.close()


@pytest.mark.usefixtures("no_polling")
def test_a_commit_rings(
    store: Store,
    waiting: list["Future[bool]"],
    sql: Sql,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """STO-26, EVT-11: NOTIFY reaches all who wait, long before they would look for themselves."""
    until(lambda: listeners(sql))
    store.commit(ONE)
    assert [waiter.result(PATIENCE_S) for waiter in waiting] == [True, True]
    monkeypatch.undo()
    store.commit(Commit(events=[b"rings once more, and the listener goes on with its net"]))


def test_a_commit_is_one_round_trip_and_rings_only_for_listeners(
    url: str,
    sql: Sql,
    thread: ThreadPoolExecutor,
    open_database: Opener,
    relay: TcpRelay,
) -> None:
    """One question to the server per commit; a second one, the NOTIFY, if somebody waits; none for `now`."""
    store = open_database(relay.url(url)).log("local")

    def questions(call: Callable[[], object]) -> int:
        before = relay.questions
        call()
        return relay.questions - before

    write(store, {"k": b"0"})  # the first time a statement is also prepared
    assert questions(lambda: store.commit(Commit({"k": 1}, {"k": Put(b"1")}))) == 1
    assert questions(store.now) == 0
    waiter = open_database(url)
    answer = thread.submit(waiter.log("local").wait, 3, PATIENCE_S)
    until(lambda: listeners(sql))
    store.commit(Commit({"k": 2}, {"k": Put(b"2")}))
    assert questions(lambda: store.commit(Commit({"k": 3}, {"k": Put(b"3")}))) == 2
    assert answer.result(PATIENCE_S)


def test_a_lost_listener_comes_back(store: Store, waiting: list["Future[bool]"], sql: Sql) -> None:
    """The listener's session is ended: commits do not notice, waiters are woken all the same."""
    until(lambda: listeners(sql))
    terminate(sql, listeners(sql)[0])
    assert store.commit(ONE) == 1
    assert [waiter.result(PATIENCE_S) for waiter in waiting] == [True, True]


def test_polling_is_the_net(
    url: str,
    open_database: Opener,
    sql: Sql,
    thread: ThreadPoolExecutor,
) -> None:
    """A commit that rings nobody, as one whose process died before its NOTIFY, is found all the same."""
    waiter = open_database(url).log("local")
    answer = thread.submit(waiter.wait, 0, PATIENCE_S)
    until(lambda: listeners(sql))
    sql.execute("UPDATE coord.log SET head = 1")
    assert answer.result(PATIENCE_S)


def test_a_wait_ends_in_time_while_the_server_is_away(
    own_server: PostgresServer, open_database: Opener
) -> None:
    """`wait` never sleeps longer than told, and a server that is away is no error: it is a hint."""
    store = open_database(own_server.fresh_url()).log("local")
    own_server.kill()
    try:
        assert not store.wait(0, 0.05)
    finally:
        own_server.restart()


def test_a_held_notify_does_not_hold_commits(
    own_server: PostgresServer, open_database: Opener, thread: ThreadPoolExecutor
) -> None:
    """Somebody's NOTIFY holds the server's one queue, here for a standby that is not there: commits go on."""
    url = own_server.fresh_url()
    local = open_database(f"{url}?options=-csynchronous_commit%3Dlocal").log("local")
    with own_server.admin() as admin, psycopg.connect(url, autocommit=True) as sql:
        answer = thread.submit(open_database(url).log("local").wait, 0, PATIENCE_S)
        until(lambda: listeners(sql))
        admin.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        admin.execute("SELECT pg_reload_conf()")
        try:
            until(lambda: rows(admin, "SHOW synchronous_standby_names") == [("nobody",)])
            holder = psycopg.connect(url)
            holder.execute("CREATE TABLE something ()")
            holder.execute("NOTIFY something")
            stuck = thread.submit(holder.commit)
            queue = "SELECT 1 FROM pg_locks WHERE classid = 'pg_database'::regclass AND objid = 0 AND granted"
            until(lambda: rows(sql, queue))
            assert local.commit(ONE) == 1
            assert rows(sql, queue), "the queue was held all the time"
            assert answer.result(PATIENCE_S), "the net caught it"
        finally:
            admin.execute("ALTER SYSTEM RESET synchronous_standby_names")
            admin.execute("SELECT pg_reload_conf()")
        stuck.result(PATIENCE_S)
        holder.close()


def test_the_servers_clock_is_followed_and_never_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer corrects the clock only as far as it proves it wrong, and `now` never falls."""
    uptime = 1000.0
    monkeypatch.setattr(server_clock, "uptime_ms", lambda: uptime)
    clock = server_clock.ServerClock()
    clock.observe(500_000, asked=990.0)
    assert clock.now() == 500_000
    uptime = 2000.0
    assert clock.now() == 501_000
    clock.observe(500_800, asked=1700.0)  # the answer took 300 ms, so this says nothing new
    assert clock.now() == 501_000
    clock.observe(700_000, asked=1990.0)  # somebody set the server's clock
    assert clock.now() == 700_000
    clock.observe(400_000, asked=1999.0)
    assert clock.now() == 700_000
    uptime = 302_500.0
    assert clock.now() == 700_501, "the clock goes on where the server's has caught up"


def test_the_store_has_the_servers_time(store: Store, sql: Sql) -> None:
    """`now` lies between two looks at the server's own clock."""
    query = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    ((before,),) = rows(sql, query)
    head(store)
    now = store.now()
    ((after,),) = rows(sql, query)
    assert before - 1 <= now <= after + 1


def test_waiting_threads_are_let_go_by_close(
    url: str,
    sql: Sql,
    open_database: Opener,
    thread: ThreadPoolExecutor,
) -> None:
    """Closing the database ends its listener's session and everybody's wait."""
    database = open_database(url)
    answer = thread.submit(database.log("local").wait, 0, 10 * PATIENCE_S)
    until(lambda: listeners(sql))
    (ear,) = listeners(sql)
    database.close()
    assert not answer.result(PATIENCE_S)
    until(lambda: not runs(ear))
    assert not [one for one in threading.enumerate() if one.name == "coord-listen"]


def test_the_listener_leaves_when_nobody_waits(
    url: str, sql: Sql, open_database: Opener, thread: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A while after the last wait its session ends, and commits ring no more; the next wait begins anew."""
    monkeypatch.setattr(listener, "IDLE_S", 0.0)
    store = open_database(url).log("local")

    def wait_once(offset: int) -> int:
        answer = thread.submit(store.wait, offset, PATIENCE_S)
        until(lambda: listeners(sql))
        (ear,) = listeners(sql)
        sql.execute("UPDATE coord.log SET head = head + 1")
        assert answer.result(PATIENCE_S)
        until(lambda: not runs(ear))
        return ear

    assert wait_once(0) != wait_once(1)
