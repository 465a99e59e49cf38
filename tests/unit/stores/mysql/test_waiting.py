"""Waiting on MySQL: who is woken, by what, and for how long a session is kept for it; the server's clock."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pymysql
import pytest

from coord.stores.contract import Commit, Store
from coord.stores.mysql import store as mysql
from coord.stores.server import listener
from tests.support.servers.mariadb import MariadbServer
from tests.support.stores.fixtures import AnyDatabase
from tests.support.stores.mysql_sessions import PATIENCE_S, end_session, rows, session_of, sessions, until
from tests.support.stores.steps import head

ONE = Commit(events=[b"e"])

Opener = Callable[[str], AnyDatabase]
Sql = pymysql.Connection  # with any cursor


@pytest.fixture
def url(mariadb_server: MariadbServer) -> str:
    return mariadb_server.fresh_url()


@pytest.fixture
def database(url: str, open_database: Opener) -> AnyDatabase:
    return open_database(url)


@pytest.fixture
def store(database: AnyDatabase) -> Store:
    store: Store = database.log("local")
    return store


@pytest.fixture
def sql(url: str, mariadb_server: MariadbServer) -> Iterator["Sql[Any]"]:
    with mariadb_server.admin(url.rpartition("/")[2]) as connection:
        yield connection


def ear_of(sql: "Sql[Any]", database: AnyDatabase) -> int:
    """Return the session that looks for whoever waits, as soon as there is one."""
    until(lambda: sessions(sql) - {session_of(database)})
    (ear,) = sessions(sql) - {session_of(database)}
    return ear


def test_a_commit_of_this_process_wakes_at_once(
    database: AnyDatabase, sql: "Sql[Any]", thread: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has to look at the server for what this process did itself."""
    monkeypatch.setattr(mysql, "POLL_S_MIN", 2 * PATIENCE_S)
    monkeypatch.setattr(listener, "POLL_S", 2 * PATIENCE_S)
    store = database.log("local")
    answer = thread.submit(store.wait, 0, PATIENCE_S)
    ear_of(sql, database)
    store.commit(ONE)
    assert answer.result(PATIENCE_S)


def test_a_commit_of_another_process_is_found(
    store: Store, database: AnyDatabase, url: str, open_database: Opener, thread: ThreadPoolExecutor
) -> None:
    """One session looks for all who wait, in every log they wait for."""
    other = open_database(url)
    answers = [
        thread.submit(database.log(tenant).wait, 0, PATIENCE_S) for tenant in ("local", "local", "acme")
    ]
    other.log("local").commit(ONE)
    other.log("acme").commit(ONE)
    assert [answer.result(PATIENCE_S) for answer in answers] == [True, True, True]


def test_a_lost_ear_comes_back(
    store: Store,
    database: AnyDatabase,
    url: str,
    sql: "Sql[Any]",
    open_database: Opener,
    thread: ThreadPoolExecutor,
) -> None:
    """The session that looks is ended: waiters are woken all the same."""
    answer = thread.submit(store.wait, 0, PATIENCE_S)
    end_session(sql, ear_of(sql, database))
    open_database(url).log("local").commit(ONE)
    assert answer.result(PATIENCE_S)


def test_the_pauses_between_looks_grow_and_shrink(
    database: AnyDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """5 ms after news, then twice as long each time, up to a quarter of a second."""
    store: Any = database.log("local")
    looker: Any = database
    pauses: list[float] = []
    monkeypatch.setattr(looker._listener, "rest", pauses.append)
    with looker._subscribe() as hear:
        for _ in range(9):
            assert hear(frozenset({store._log}), listener.POLL_S) == {store._log: 0}
        store.commit(ONE)
        for _ in range(2):
            assert hear(frozenset({store._log}), listener.POLL_S) == {store._log: 1}
    assert pauses == [0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.25, 0.25, 0.25, 0.005]


def test_the_ear_leaves_when_nobody_waits_and_when_all_is_closed(
    database: AnyDatabase, sql: "Sql[Any]", thread: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A while after the last wait its session ends; the next wait begins anew, and close lets it go."""
    monkeypatch.setattr(listener, "IDLE_S", 0.0)
    store = database.log("local")
    answer = thread.submit(store.wait, 0, PATIENCE_S)
    ear = ear_of(sql, database)
    store.commit(ONE)
    assert answer.result(PATIENCE_S)
    until(lambda: sessions(sql) == {session_of(database)})
    answer = thread.submit(store.wait, 1, 10 * PATIENCE_S)
    assert ear_of(sql, database) != ear
    database.close()
    assert not answer.result(PATIENCE_S)
    until(lambda: not sessions(sql))
    assert not [one for one in threading.enumerate() if one.name == "coord-listen"]


def test_the_store_has_the_servers_time(store: Store, sql: "Sql[Any]") -> None:
    """`now` lies between two looks at the server's own clock, whatever its time zone."""
    query = "SELECT CAST(FLOOR(UNIX_TIMESTAMP(NOW(3)) * 1000) AS SIGNED)"
    ((before,),) = rows(sql, query)
    head(store)
    now = store.now()
    ((after,),) = rows(sql, query)
    assert before - 1 <= now <= after + 1
