"""What only the Postgres store can get wrong: lost connections, its order, its damage, its listeners."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import psycopg
import pytest

import coord
from coord.core.errors import Conflict, Corrupt, Invalid, Unavailable, Unknown
from coord.stores import listener, postgres_sql, server_clock
from coord.stores.open import open_store
from coord.stores.postgres import PostgresDatabase, PostgresStore
from coord.stores.store import Commit, Put
from tests.servers.postgres import PostgresServer, poll_until, running, runs
from tests.servers.tcp_relay import TcpRelay, relaying
from tests.stores.steps import PLENTY, by_key, by_line, everything, head, value, versions, write

PATIENCE_S = 30
ONE = Commit(expects={"k": 0}, puts={"k": Put(b"1")}, events=[b"e"], id=b"one")


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A server for these tests alone, since they kill it and turn its screws."""
    with running(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    return postgres_server.fresh_url()


@pytest.fixture
def opened() -> Iterator[Callable[[str], PostgresDatabase]]:
    """Return a function that opens a url and closes it after the test."""
    with ExitStack() as stack:

        def open_(url: str) -> PostgresDatabase:
            database = open_store(url)
            assert isinstance(database, PostgresDatabase)
            return stack.enter_context(closing(database))

        yield open_


@pytest.fixture
def database(url: str, opened: Callable[[str], PostgresDatabase]) -> PostgresDatabase:
    return opened(url)


@pytest.fixture
def store(database: PostgresDatabase) -> PostgresStore:
    return database.log("local")


@pytest.fixture
def sql(url: str) -> Iterator[psycopg.Connection[Any]]:
    """Somebody else's connection to the same database."""
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def relay(postgres_server: PostgresServer) -> Iterator[TcpRelay]:
    with relaying(postgres_server.port) as relay:
        yield relay


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as threads:
        yield threads


def backend(database: PostgresDatabase) -> int:
    assert database._connection is not None
    return database._connection.info.backend_pid


def rows(sql: psycopg.Connection[Any], query: str, *values: object) -> list[tuple[Any, ...]]:
    return sql.execute(query, values).fetchall()


def until(holds: Callable[[], object], otherwise: str = "what was waited for did not come") -> None:
    poll_until(holds, PATIENCE_S, otherwise)


def terminate(sql: psycopg.Connection[Any], pid: int) -> None:
    """End a session from outside, and wait until its process is gone and its socket closed."""
    assert rows(sql, "SELECT pg_terminate_backend(%s)", pid) == [(True,)]
    until(lambda: not runs(pid))


def waits_for_lock(sql: psycopg.Connection[Any], pid: int) -> bool:
    query = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"
    return bool(rows(sql, query, pid))


def listens(sql: psycopg.Connection[Any]) -> list[int]:
    """Return the processes that hear of commits and have nothing else to do."""
    query = (
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle' "
        "AND starts_with(query, 'SELECT id, head FROM')"
    )
    return [pid for (pid,) in rows(sql, query)]


# Losing connections.


def test_goes_on_after_the_server_was_killed(
    own_server: PostgresServer, opened: Callable[[str], PostgresDatabase]
) -> None:
    """After kill -9 and a restart the same objects work again, and nothing acknowledged is lost."""
    database = opened(own_server.fresh_url())
    store = database.log("local")
    for number in range(1, 21):
        write(store, {f"k{number % 3}": b"%d" % number}, events=[b"%d" % number])
    before = everything(store)
    own_server.kill()
    with pytest.raises(Unavailable):
        store.load(["k0"])
    with pytest.raises(Unavailable):  # never Unknown: the connection was found dead before anything was sent
        store.commit(Commit(events=[b"lost"]))
    own_server.restart()
    assert everything(store) == before
    assert write(store, {"k0": b"21"}, events=[b"21"]) == 21


def test_a_connection_ended_between_calls_is_not_noticed(
    store: PostgresStore, database: PostgresDatabase, sql: psycopg.Connection[Any]
) -> None:
    """A session that an administrator ended is opened anew by the next call, whichever it is."""
    calls: list[Callable[[], object]] = [
        lambda: store.commit(ONE),
        lambda: store.load(["k"]),
        lambda: store.scan("", by="line", limit=1),
        lambda: store.tail(0, 1),
        lambda: store.trim(1),
    ]
    for call in calls:
        terminate(sql, backend(database))
        call()
    assert value(store, "k") == b"1"
    assert head(store) == 1


def test_a_commit_ended_while_it_waits_is_unknown_and_has_not_happened(
    store: PostgresStore,
    database: PostgresDatabase,
    sql: psycopg.Connection[Any],
    url: str,
    thread: ThreadPoolExecutor,
) -> None:
    """Its session is ended while it waits for the head row: perhaps, says the error; no, says the log."""
    with psycopg.connect(url) as holder:
        holder.execute("SELECT * FROM coord.log FOR UPDATE")
        pid = backend(database)
        answer = thread.submit(store.commit, ONE)
        until(lambda: waits_for_lock(sql, pid))
        terminate(sql, pid)
        with pytest.raises(Unknown):
            answer.result(PATIENCE_S)
    assert store.tail(0, PLENTY) == []
    assert store.commit(ONE) == 1, "the same commit again is safe"


def test_a_commit_whose_answer_is_lost_is_unknown_and_has_happened(
    url: str, thread: ThreadPoolExecutor, opened: Callable[[str], PostgresDatabase], relay: TcpRelay
) -> None:
    """The connection breaks after the commit and before its answer: the log shows its id."""
    near, far = opened(url).log("local"), opened(relay.url(url)).log("local")
    write(far, events=[b"prepares the statement"])
    relay.swallow_answers()
    answer = thread.submit(far.commit, ONE)
    until(lambda: head(near) == 2)
    until(relay.swallowed.is_set)
    relay.cut()
    with pytest.raises(Unknown):
        answer.result(PATIENCE_S)
    assert [entry.id for entry in far.tail(1, PLENTY)] == [b"one"]
    with pytest.raises(Conflict):
        far.commit(ONE)


def test_a_lock_held_too_long_is_unavailable(
    url: str, opened: Callable[[str], PostgresDatabase], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody sits on the head row: the commit gives up in time, and nothing has happened."""
    monkeypatch.setitem(postgres_sql.SESSION, "lock_timeout", "50ms")
    store = opened(url).log("local")
    with psycopg.connect(url) as holder:
        holder.execute("SELECT * FROM coord.log FOR UPDATE")
        with pytest.raises(Unavailable, match="lock timeout"):
            store.commit(ONE)
        assert store.load(["k"])["k"].value is None, "readers do not wait for it"
    assert store.commit(ONE) == 1


def test_a_forked_child_uses_a_connection_of_its_own(url: str) -> None:
    """Parent and child go on with the objects they had; the parent's session stays the same one."""
    script = f"""
import os
from coord.stores.open import open_store
from coord.stores.store import Commit
database = open_store({url!r})
store = database.log("local")
assert store.commit(Commit(events=[b"parent"])) == 1
session = database._connection.info.backend_pid
child = os.fork()
if child == 0:
    assert store.commit(Commit(events=[b"child"])) == 2
    assert database._connection.info.backend_pid != session
    database.close()
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert store.commit(Commit(events=[b"parent"])) == 3
assert database._connection.info.backend_pid == session
print([entry.events for entry in store.tail(0, 9)])
database.close()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[[b'parent'], [b'child'], [b'parent']]\n"


def test_a_closed_database_answers_nobody(database: PostgresDatabase, store: PostgresStore) -> None:
    """After close every call is Unavailable, and closing again does no harm."""
    database.close()
    database.close()
    for call in (lambda: store.commit(ONE), lambda: store.load(["k"]), lambda: store.wait(0, 1)):
        with pytest.raises(Unavailable):
            call()


# One order.


def test_two_connections_lose_no_update(
    url: str, opened: Callable[[str], PostgresDatabase], thread: ThreadPoolExecutor
) -> None:
    """Threads on two connections add to one counter: no addition is lost, offsets have no gaps."""
    stores = [opened(url).log("local"), opened(url).log("local")]
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


def test_what_follows_the_lock_sees_what_came_before_it(
    url: str, opened: Callable[[str], PostgresDatabase], thread: ThreadPoolExecutor
) -> None:
    """A commit that waited for another compares with what that one wrote, not with its own beginning."""
    first, second = opened(url), opened(url)
    store = second.log("local")
    with psycopg.connect(url) as rival, psycopg.connect(url, autocommit=True) as sql:
        rival.execute("UPDATE coord.log SET head = head + 1")
        rival.execute("INSERT INTO coord.record VALUES (1, 'k', 1, 'theirs', '')")
        pid = backend(second)
        answer = thread.submit(store.commit, ONE)
        until(lambda: waits_for_lock(sql, pid))
        rival.commit()
        with pytest.raises(Conflict) as conflict:
            answer.result(PATIENCE_S)
    assert conflict.value.keys == {"k"}
    assert value(first.log("local"), "k") == b"theirs"


def test_keys_are_in_the_order_of_their_bytes(
    postgres_server: PostgresServer, opened: Callable[[str], PostgresDatabase]
) -> None:
    """In a database that sorts words as people do, keys and lines still have the order of every store."""
    names = [
        "a",
        "B",
        "Ä",
        "z",
        "Z",
        "ä",
        "_",
        "-",
        "a b",
        "ab",
        "é",
        "e\u0301",
        "ﬀ",
        "\ue000",
        "\U00010000",
        "ß",
    ]
    with postgres_server.admin() as admin:
        people = " LOCALE_PROVIDER icu ICU_LOCALE 'en-US'" if admin.info.server_version >= 150000 else ""
        admin.execute(f"CREATE DATABASE people TEMPLATE template0 ENCODING 'UTF8'{people}")
    url = postgres_server.url("people")
    coord.install(url)
    with psycopg.connect(url) as sql:
        assert not people or rows(sql, "SELECT 'a' < 'B'") == [(True,)]
    store = opened(url).log("local")
    write(store, {name: Put(b"", f"line/{name}") for name in names})
    expected = sorted(names, key=str.encode)
    assert by_key(store) == expected
    assert by_line(store, "line/") == expected
    for place, name in enumerate(expected):
        assert by_key(store, after=store.load([name])[name], limit=2) == expected[place + 1 : place + 3]


def test_plans_made_for_an_empty_store_stay_good(
    url: str, sql: psycopg.Connection[Any], opened: Callable[[str], PostgresDatabase]
) -> None:
    """A connection plans once, and then the tables grow: still each key costs one step through the index."""
    database = opened(url)
    store = database.log("local")
    assert head(store) == 0
    store.load(["k"])
    keys = [f"k/{number:04}" for number in range(4000)]
    for begin in range(0, len(keys), 200):
        write(store, {key: Put(b"x", "line") for key in keys[begin : begin + 200]})
    for begin in range(0, len(keys), 200):
        store.commit(Commit(versions(store, *keys[begin : begin + 200])))
    database.close()  # its counts are published when the session ends

    def index_reads() -> int:
        query = "SELECT idx_tup_read FROM pg_stat_all_indexes WHERE indexrelname = 'record_pkey'"
        return int(rows(sql, query)[0][0])

    until(lambda: index_reads() > len(keys))
    assert index_reads() < 5 * len(keys)
    assert rows(sql, "SELECT seq_tup_read FROM pg_stat_all_tables WHERE relname = 'record'") == [(0,)]


# Damage.


def test_a_store_that_was_replaced_is_corrupt(
    store: PostgresStore, database: PostgresDatabase, sql: psycopg.Connection[Any], url: str
) -> None:
    """Another store under the same url is not mistaken for the one that was opened."""
    store.commit(ONE)
    terminate(sql, backend(database))
    sql.execute("DROP SCHEMA coord CASCADE")
    coord.install(url)
    with pytest.raises(Corrupt, match="another store"):
        store.load(["k"])


def test_a_log_that_went_back_is_corrupt(store: PostgresStore, sql: psycopg.Connection[Any]) -> None:
    """A store restored from an old copy forgot what it had acknowledged: nobody goes on as if not."""
    for number in range(3):
        write(store, {"k": b"%d" % number})
    sql.execute("UPDATE coord.log SET head = 1")
    with pytest.raises(Corrupt, match="from 3 to 1"):
        store.load(["k"])


def test_missing_tables_are_corrupt(store: PostgresStore, sql: psycopg.Connection[Any]) -> None:
    """A table dropped behind an open store is damage, not an empty store."""
    store.commit(ONE)
    sql.execute("DROP TABLE coord.record")
    with pytest.raises(Corrupt):
        store.load(["k"])
    with pytest.raises(Corrupt):
        store.commit(Commit(expects={"k": 1}, puts={"k": Put(b"2")}))


# Waking those who wait.


@pytest.fixture
def no_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the net away, so that only a ring can wake in time."""
    monkeypatch.setattr(listener, "POLL_S", 2 * PATIENCE_S)


@pytest.fixture
def waiting(
    url: str, opened: Callable[[str], PostgresDatabase], sql: psycopg.Connection[Any]
) -> Iterator[list["Future[bool]"]]:
    """Two threads of another process, as it were, that wait for the first commit."""
    waiter = opened(url)
    with ThreadPoolExecutor(2) as threads:
        yield [threads.submit(waiter.log("local").wait, 0, PATIENCE_S) for _ in range(2)]
        waiter.close()


@pytest.mark.usefixtures("no_polling")
def test_a_commit_rings(
    store: PostgresStore,
    waiting: list["Future[bool]"],
    sql: psycopg.Connection[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """NOTIFY reaches all who wait, long before they would look for themselves."""
    until(lambda: listens(sql))
    store.commit(ONE)
    assert [waiter.result(PATIENCE_S) for waiter in waiting] == [True, True]
    monkeypatch.undo()
    store.commit(Commit(events=[b"rings once more, and the listener goes on with its net"]))


def test_a_commit_is_one_round_trip_and_rings_only_for_listeners(
    url: str,
    sql: psycopg.Connection[Any],
    thread: ThreadPoolExecutor,
    opened: Callable[[str], PostgresDatabase],
    relay: TcpRelay,
) -> None:
    """One question to the server per commit; a second one, the NOTIFY, if somebody waits; none for `now`."""
    store = opened(relay.url(url)).log("local")

    def questions(call: Callable[[], object]) -> int:
        before = relay.questions
        call()
        return relay.questions - before

    write(store, {"k": b"0"})  # the first time a statement is also prepared
    assert questions(lambda: store.commit(Commit({"k": 1}, {"k": Put(b"1")}))) == 1
    assert questions(store.now) == 0
    waiter = opened(url)
    answer = thread.submit(waiter.log("local").wait, 3, PATIENCE_S)
    until(lambda: listens(sql))
    store.commit(Commit({"k": 2}, {"k": Put(b"2")}))
    assert questions(lambda: store.commit(Commit({"k": 3}, {"k": Put(b"3")}))) == 2
    assert answer.result(PATIENCE_S)


def test_a_lost_listener_comes_back(
    store: PostgresStore, waiting: list["Future[bool]"], sql: psycopg.Connection[Any]
) -> None:
    """The listener's session is ended: commits do not notice, waiters are woken all the same."""
    until(lambda: listens(sql))
    terminate(sql, listens(sql)[0])
    assert store.commit(ONE) == 1
    assert [waiter.result(PATIENCE_S) for waiter in waiting] == [True, True]


def test_polling_is_the_net(
    url: str,
    opened: Callable[[str], PostgresDatabase],
    sql: psycopg.Connection[Any],
    thread: ThreadPoolExecutor,
) -> None:
    """A commit that rings nobody, as one whose process died before its NOTIFY, is found all the same."""
    waiter = opened(url).log("local")
    answer = thread.submit(waiter.wait, 0, PATIENCE_S)
    until(lambda: listens(sql))
    sql.execute("UPDATE coord.log SET head = 1")
    assert answer.result(PATIENCE_S)


def test_a_wait_ends_in_time_while_the_server_is_away(
    own_server: PostgresServer, opened: Callable[[str], PostgresDatabase]
) -> None:
    """`wait` never sleeps longer than told, and a server that is away is no error: it is a hint."""
    store = opened(own_server.fresh_url()).log("local")
    own_server.kill()
    try:
        assert not store.wait(0, 0.05)
    finally:
        own_server.restart()


def test_a_held_notify_does_not_hold_commits(
    own_server: PostgresServer, opened: Callable[[str], PostgresDatabase], thread: ThreadPoolExecutor
) -> None:
    """Somebody's NOTIFY holds the server's one queue, here for a standby that is not there: commits go on."""
    url = own_server.fresh_url()
    local = opened(f"{url}?options=-csynchronous_commit%3Dlocal").log("local")
    with own_server.admin() as admin, psycopg.connect(url, autocommit=True) as sql:
        answer = thread.submit(opened(url).log("local").wait, 0, PATIENCE_S)
        until(lambda: listens(sql))
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
    clock.told(500_000, asked=990.0)
    assert clock.now() == 500_000
    uptime = 2000.0
    assert clock.now() == 501_000
    clock.told(500_800, asked=1700.0)  # the answer took 300 ms, so this says nothing new
    assert clock.now() == 501_000
    clock.told(700_000, asked=1990.0)  # somebody set the server's clock
    assert clock.now() == 700_000
    clock.told(400_000, asked=1999.0)
    assert clock.now() == 700_000
    uptime = 302_500.0
    assert clock.now() == 700_501, "the clock goes on where the server's has caught up"


def test_the_store_has_the_servers_time(store: PostgresStore, sql: psycopg.Connection[Any]) -> None:
    """`now` lies between two looks at the server's own clock."""
    query = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
    ((before,),) = rows(sql, query)
    head(store)
    now = store.now()
    ((after,),) = rows(sql, query)
    assert before - 1 <= now <= after + 1


def test_errors_are_only_those_of_the_contract(store: PostgresStore) -> None:
    """What Postgres cannot keep is Invalid, and the store goes on."""
    for key in ("nul\0", "\ud800"):
        with pytest.raises(Invalid):
            store.load([key])
        with pytest.raises(Invalid):
            store.commit(Commit(expects={key: 0}))
        with pytest.raises(Invalid):
            store.scan(key, by="key", limit=1)
    assert store.commit(ONE) == 1


def test_waiting_threads_are_let_go_by_close(
    url: str,
    sql: psycopg.Connection[Any],
    opened: Callable[[str], PostgresDatabase],
    thread: ThreadPoolExecutor,
) -> None:
    """Closing the database ends its listener's session and everybody's wait."""
    database = opened(url)
    answer = thread.submit(database.log("local").wait, 0, 10 * PATIENCE_S)
    until(lambda: listens(sql))
    (ear,) = listens(sql)
    database.close()
    assert not answer.result(PATIENCE_S)
    until(lambda: not runs(ear))
    assert not [one for one in threading.enumerate() if one.name == "coord-listen"]
