"""What only a Postgres store can get wrong, whatever its shape: lost connections, the order, damage."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any
from zlib import crc32

import psycopg
import pytest
from psycopg.types.numeric import Int4

import coord
from coord.core.errors import Conflict, Corrupt, Invalid, Unavailable, Unknown
from coord.core.ranges import Range
from coord.stores.contract import Commit, Put, Store
from coord.stores.postgres import table_statements as postgres_sql
from coord.stores.postgres.arrays import Texts
from tests.support.servers.postgres import SHAPES, PostgresServer, for_psycopg
from tests.support.stores.fixtures import AnyDatabase
from tests.support.stores.postgres_sessions import (
    PATIENCE_S,
    Sql,
    backend,
    rows,
    terminate,
    until,
    waits_for_lock,
)
from tests.support.stores.steps import (
    PLENTY,
    check_a_moment_within_one_connection,
    check_order_of_bytes,
    value,
    versions,
    write,
)

Opener = Callable[[str], AnyDatabase]

ONE = Commit(expected_versions={"k": 0}, puts={"k": Put(b"1")}, events=[b"e"], id=b"one")


@pytest.fixture(params=SHAPES)
def url(request: pytest.FixtureRequest, postgres_server: PostgresServer) -> str:
    return postgres_server.fresh_url(SHAPES[request.param])


only_tables = pytest.mark.parametrize("url", ["tables"], indirect=True)


@pytest.fixture
def database(url: str, open_database: Opener) -> AnyDatabase:
    return open_database(url)


@pytest.fixture
def store(database: AnyDatabase) -> Store:
    return database.log("local")


@pytest.fixture
def sql(url: str) -> Iterator[Sql]:
    """Somebody else's connection to the same database."""
    with psycopg.connect(for_psycopg(url), autocommit=True) as connection:
        yield connection


# Losing connections.


def test_a_commit_ended_while_it_waits_is_unknown_and_has_not_happened(
    store: Store,
    database: AnyDatabase,
    sql: Sql,
    url: str,
    thread: ThreadPoolExecutor,
) -> None:
    """Its session is ended while it waits for the head row: perhaps, says the error; no, says the log."""
    with psycopg.connect(for_psycopg(url)) as holder:
        holder.execute("SELECT * FROM coord.log FOR UPDATE")
        pid = backend(database)
        answer = thread.submit(store.commit, ONE)
        until(lambda: waits_for_lock(sql, pid))
        terminate(sql, pid)
        with pytest.raises(Unknown):
            answer.result(PATIENCE_S)
    assert store.tail(0, PLENTY) == []
    assert store.commit(ONE) == 1, "the same commit again is safe"


def test_a_lock_held_too_long_is_unavailable(
    url: str, open_database: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody sits on the head row: the commit gives up in time, and nothing has happened."""
    monkeypatch.setitem(postgres_sql.SESSION, "lock_timeout", "50ms")
    store = open_database(url).log("local")
    with psycopg.connect(for_psycopg(url)) as holder:
        holder.execute("SELECT * FROM coord.log FOR UPDATE")
        with pytest.raises(Unavailable, match="lock timeout"):
            store.commit(ONE)
        assert store.load(["k"])["k"].value is None, "readers do not wait for it"
    assert store.commit(ONE) == 1


# One order.


def test_two_connections_lose_no_update(url: str, open_database: Opener, thread: ThreadPoolExecutor) -> None:
    """Threads on two connections add to one counter: no addition is lost, offsets have no gaps."""
    stores = [open_database(url).log("local"), open_database(url).log("local")]
    rounds = 40

    def add(worker: int) -> int:
        store, conflicts = stores[worker % 2], 0
        for number in range(rounds):
            while True:
                found = store.load(["count"])["count"]
                more = Put(b"%d" % (int(found.value or b"0") + 1))
                own = f"own/{worker}/{number}"
                try:
                    store.commit(
                        Commit(
                            {"count": found.version, own: 0}, {"count": more, own: Put(b"")}, events=[b"+"]
                        )
                    )
                    break
                except Conflict as conflict:
                    conflicts += conflict.keys == {"count"}
        return conflicts

    conflicts = sum(thread.map(add, range(4)))
    assert conflicts > 0, "they did meet"
    assert value(stores[0], "count") == b"%d" % (4 * rounds)
    assert [entry.offset for entry in stores[1].tail(0, PLENTY)] == list(range(1, 4 * rounds + 1))


@only_tables
def test_what_follows_the_lock_sees_what_came_before_it(
    url: str, open_database: Opener, thread: ThreadPoolExecutor
) -> None:
    """A commit that waited for another compares with what that one wrote, not with its own beginning."""
    first, second = open_database(url), open_database(url)
    store = second.log("local")
    with psycopg.connect(url) as rival, psycopg.connect(url, autocommit=True) as sql:
        digest = store._checksums.digest("k", b"theirs", "")
        rival.execute(
            "UPDATE coord.log SET head = head + 1, records = 1, digest = %s", (digest + crc32(b"k"),)
        )
        rival.execute("INSERT INTO coord.record VALUES (1, 'k', 1, %s, 'theirs', '')", (digest + 1,))
        pid = backend(second)
        answer = thread.submit(store.commit, ONE)
        until(lambda: waits_for_lock(sql, pid))
        rival.commit()
        with pytest.raises(Conflict) as conflict:
            answer.result(PATIENCE_S)
    assert conflict.value.keys == {"k"}
    assert value(first.log("local"), "k") == b"theirs"


def test_keys_are_in_the_order_of_their_bytes(postgres_server: PostgresServer, open_database: Opener) -> None:
    """In a database that sorts words as people do, keys and lines still have the order of every store."""
    with postgres_server.admin() as admin:
        people = " LOCALE_PROVIDER icu ICU_LOCALE 'en-US'" if admin.info.server_version >= 150000 else ""
        admin.execute(f"CREATE DATABASE people TEMPLATE template0 ENCODING 'UTF8'{people}")
    url = postgres_server.url("people")
    coord.install(url)
    with psycopg.connect(for_psycopg(url)) as sql:
        assert not people or rows(sql, "SELECT 'a' < 'B'") == [(True,)]
    check_order_of_bytes(open_database(url).log("local"))


def test_what_was_loaded_holds_only_while_head_and_floor_stand(url: str, open_database: Opener) -> None:
    """A store need not look twice at what it loaded; but it does when another has committed or trimmed."""
    mine, other = open_database(url).log("local"), open_database(url).log("local")
    moment = mine.load(["k", "never seen"]).read_point
    write(other, {"k": b"theirs"})
    with pytest.raises(Conflict) as conflict:
        mine.commit(Commit({"k": 0, "never seen": 0}, {"k": Put(b"mine")}, read_point=moment))
    assert conflict.value.keys == {"k"}
    moment = mine.load(["k", "never seen"]).read_point
    other.trim(1)
    with pytest.raises(Conflict) as conflict:
        mine.commit(Commit({"k": 1, "never seen": 0}, {"k": Put(b"mine")}, read_point=moment))
    assert conflict.value.keys == {"never seen"}


@only_tables
def test_plans_made_for_an_empty_store_stay_good(url: str, sql: Sql, open_database: Opener) -> None:
    """A connection plans once, and then the tables grow: still each key costs one step through the index."""
    database = open_database(url)
    store = database.log("local")
    store.load(["k"])
    store.load(["k"], [Range("a/", "key", 1)])
    keys = [f"k/{number:04}" for number in range(4000)]
    for begin in range(0, len(keys), 200):
        write(store, {key: Put(b"x", "line") for key in keys[begin : begin + 200]})
    for begin in range(0, len(keys), 200):
        store.commit(Commit(versions(store, *keys[begin : begin + 200])))
        found = store.load(keys[begin : begin + 100], [Range(keys[begin][:4], "key", 100)])
        assert len(found.ranges[0]) == 100
    database.close()  # its counts are published when the session ends

    def index_reads() -> int:
        query = "SELECT idx_tup_read FROM pg_stat_all_indexes WHERE indexrelname = 'record_pkey'"
        return int(rows(sql, query)[0][0])

    until(lambda: index_reads() > len(keys))
    assert index_reads() < 6 * len(keys)
    assert rows(sql, "SELECT seq_tup_read FROM pg_stat_all_tables WHERE relname = 'record'") == [(0,)]


@only_tables
def test_plans_made_for_a_small_store_stay_good(url: str, open_database: Opener) -> None:
    """Whatever is there when a connection plans, it looks keys up, and never reads all to find them."""
    sizes = (0, 10, 100, 400)
    for before, size in pairwise((0, *sizes)):
        database = open_database(url)
        store = database.log("local")
        for number in range(before, size, 50):
            new = {f"held/{at}": Put(b"x" * 50) for at in range(number, min(size, number + 50))}
            write(store, {**new, **{f"lock/{key}": Put(b"x" * 400, "due/1") for key in new}})
        planner: Any = open_database(url)
        plans = "SELECT name FROM pg_prepared_statements WHERE statement LIKE '%coalesce(index_key%'"
        with planner.connect() as connection:
            connection.execute(planner.log("local")._sql.load, (Texts(["k"]), Int4(1)), binary=True)
            ((name,),) = connection.execute(plans, prepare=False).fetchall()
            plan = connection.execute(f"EXPLAIN EXECUTE {name}('{{a}}', 1)", prepare=False).fetchall()
        steps = [line for (line,) in plan if "Cond" in line and "log" in line]
        assert any("(key = k.key)" in step for step in steps), (size, plan)


# Damage.


def test_a_store_that_was_replaced_is_corrupt(
    store: Store, database: AnyDatabase, sql: Sql, url: str
) -> None:
    """Another store under the same url is not mistaken for the one that was opened."""
    store.commit(ONE)
    terminate(sql, backend(database))
    sql.execute("DROP SCHEMA coord CASCADE")
    coord.install(url)
    with pytest.raises(Corrupt, match="another store"):
        store.load(["k"])


@only_tables
def test_a_moment_counts_within_one_connection(store: Store, database: AnyDatabase, sql: Sql) -> None:
    """A server may have lost what was seen over the last connection, and given its offset to another."""
    check_a_moment_within_one_connection(
        store,
        lose=lambda: sql.execute(
            "UPDATE coord.record SET version = 1, checksum = checksum - 1 WHERE key = 'k'"
        ),
        hang_up=lambda: terminate(sql, backend(database)),
    )


def test_a_log_that_went_back_is_corrupt(store: Store, sql: Sql) -> None:
    """A store restored from an old copy forgot what it had acknowledged: nobody goes on as if not."""
    for number in range(3):
        write(store, {"k": b"%d" % number})
    sql.execute("UPDATE coord.log SET head = 1")
    with pytest.raises(Corrupt, match="from 3 to 1"):
        store.load(["k"])


def test_missing_tables_are_corrupt(store: Store, sql: Sql) -> None:
    """A table dropped behind an open store is damage, not an empty store."""
    store.commit(ONE)
    sql.execute("DROP TABLE coord.entry CASCADE")
    with pytest.raises(Corrupt):
        store.tail(0, 1)
    with pytest.raises(Corrupt):
        store.commit(Commit(expected_versions={"k": 1}, puts={"k": Put(b"2")}))


@only_tables
def test_errors_are_only_those_of_the_contract(store: Store) -> None:
    """What Postgres cannot keep is Invalid, and the store goes on."""
    for key in ("nul\0", "\ud800"):
        with pytest.raises(Invalid):
            store.load([key])
        with pytest.raises(Invalid):
            store.commit(Commit(expected_versions={key: 0}))
        with pytest.raises(Invalid):
            store.scan(key, by="key", limit=1)
    assert store.commit(ONE) == 1
