"""What only the MySQL store can get wrong: lost connections, the order of commits, its guard, damage."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pymysql
import pytest
from msgspec.structs import replace

import coord
from coord.core.errors import Conflict, Corrupt, Invalid, LimitReached, Unavailable, Unknown
from coord.core.ranges import By, Range
from coord.stores.contract import Commit, Put, ReadPoint, Store
from coord.stores.mysql import connection as mysql_connection
from coord.stores.mysql import store as mysql
from tests.support.servers.mariadb import MariadbServer
from tests.support.servers.tcp_relay import TcpRelay, relaying
from tests.support.stores.fixtures import AnyDatabase
from tests.support.stores.mysql_sessions import (
    PATIENCE_S,
    end_session,
    rows,
    session_of,
    until,
    waits_for_lock,
)
from tests.support.stores.steps import (
    PLENTY,
    check_a_moment_within_one_connection,
    check_order_of_bytes,
    head,
    value,
    versions,
    write,
)

Opener = Callable[[str], AnyDatabase]
Sql = pymysql.Connection  # with any cursor

ONE = Commit(expected_versions={"k": 0}, puts={"k": Put(b"1")}, events=[b"e"], id=b"one")
HOLD = "SELECT * FROM coord_log FOR UPDATE"


@pytest.fixture
def url(mariadb_server: MariadbServer) -> str:
    return mariadb_server.fresh_url()


@pytest.fixture
def relay(mariadb_server: MariadbServer) -> Iterator[TcpRelay]:
    """A way to the server that can be cut."""
    with relaying(mariadb_server.port) as relay:
        yield relay


@pytest.fixture
def database(url: str, open_database: Opener) -> AnyDatabase:
    return open_database(url)


@pytest.fixture
def store(database: AnyDatabase) -> Store:
    return database.log("local")


@pytest.fixture
def sql(url: str, mariadb_server: MariadbServer) -> Iterator["Sql[Any]"]:
    """Somebody else's connection to the same database."""
    with mariadb_server.admin(url.rpartition("/")[2]) as connection:
        yield connection


# Losing connections.


def test_what_was_loaded_before_a_crash_is_looked_at_again(
    url: str, store: Store, database: AnyDatabase, sql: "Sql[Any]", open_database: Opener
) -> None:
    """InnoDB shows a commit before it is on disk: nobody builds on one that a crash took back."""
    other = open_database(url).log("local")
    write(other, {"k": b"kept"})
    write(other, {"k": b"lost"})
    assert versions(store, "k") == {"k": 2}
    rows(sql, "UPDATE coord_log SET head = 1")
    assert isinstance(store, mysql.MysqlStore)
    digest = store._checksums.digest("k", b"kept", "")
    rows(sql, "UPDATE coord_record SET version = 1, checksum = %s, value = 'kept'", digest + 1)
    rows(sql, "DELETE FROM coord_entry WHERE `offset` = 2")
    sql.commit()
    end_session(sql, session_of(database))
    with pytest.raises(Conflict):
        store.commit(Commit({"k": 2}, {"k": Put(b"on the lost one")}))
    assert value(store, "k") == b"kept"


def test_a_commit_ended_while_it_waits_is_unknown_and_has_not_happened(
    store: Store, database: AnyDatabase, sql: "Sql[Any]", thread: ThreadPoolExecutor
) -> None:
    """Its session is ended while it waits for the head row: perhaps, says the error; no, says the log."""
    sql.begin()
    rows(sql, HOLD)
    session = session_of(database)
    answer = thread.submit(store.commit, ONE)
    until(lambda: waits_for_lock(sql, session))
    end_session(sql, session)
    with pytest.raises((Unknown, Unavailable)):
        answer.result(PATIENCE_S)
    sql.rollback()
    assert store.tail(0, PLENTY) == []
    assert store.commit(ONE) == 1, "the same commit again is safe"


def test_a_commit_is_one_round_trip(url: str, open_database: Opener, relay: TcpRelay) -> None:
    """What was loaded is committed with one question, also where others commit; `now` asks nobody.

    Who was alone until now learns of the others by a second question, and a third to take the first back.
    """
    store, other = open_database(relay.url(url)).log("local"), open_database(url).log("local")
    asked = []
    for number, others in enumerate((False, True, True, False, False)):
        found = store.load(["k"])
        if others:
            write(other, {"other": b"%d" % number})
        before = relay.questions
        expected_versions = {"k": found["k"].version}
        store.commit(Commit(expected_versions, {"k": Put(b"%d" % number)}, read_point=found.read_point))
        asked.append(relay.questions - before)
    assert asked == [1, 3, 1, 1, 1]
    before = relay.questions
    store.now()
    assert relay.questions == before


def test_a_lock_held_too_long_is_unavailable(
    url: str, sql: "Sql[Any]", open_database: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody sits on the head row: the commit tries again, gives up in time, and nothing has happened."""
    monkeypatch.setitem(mysql_connection.SETTINGS, "innodb_lock_wait_timeout", "1")
    monkeypatch.setattr(mysql, "TRIES", 2)
    store = open_database(url).log("local")
    sql.begin()
    rows(sql, HOLD)
    with pytest.raises(Unavailable, match="Lock wait timeout"):
        store.commit(ONE)
    assert store.load(["k"])["k"].value is None, "readers do not wait for it"
    sql.rollback()
    assert store.commit(ONE) == 1


def test_who_is_cut_off_after_its_guard_stopped_it_keeps_nobody_waiting(
    url: str, open_database: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stopped packet has the head row until it is rolled back; the server does not wait long."""
    monkeypatch.setattr(mysql_connection, "IDLE_IN_TRANSACTION_S", 1)
    database = open_database(url)
    store = database.log("local")
    write(store, {"other": b"1"})
    assert isinstance(database, mysql.MysqlDatabase)
    cut_off = database.address.connect()
    assert isinstance(store, mysql.MysqlStore)
    store.load(["k"])
    changes = store._checksums.changes(ONE)
    assert changes is not None
    packet, _ = database.address.sql.commit(
        1, ReadPoint(0, 0, 0), ONE, changes, store._checksums, unopposed=True
    )  # of a moment that has passed
    cut_off._connection.query(packet)  # the rest of its answer is never heard
    assert store.commit(ONE) == 2
    cut_off.close()


def test_a_deadlock_is_tried_again(
    store: Store, database: AnyDatabase, sql: "Sql[Any]", thread: ThreadPoolExecutor
) -> None:
    """The server undoes one of two who wait for each other; a commit that was undone is made anew."""
    write(store, {"k": b"0"})
    sql.begin()
    for number in range(50):  # the one with less to undo is undone
        rows(sql, "INSERT INTO coord_entry VALUES (99, %s, 0, 0, '', '')", number)
    rows(sql, "UPDATE coord_record SET version = 1 WHERE `key` = 'k'")
    rows(sql, "SELECT * FROM coord_record WHERE `key` = 'k' FOR UPDATE")
    session = session_of(database)
    answer = thread.submit(store.commit, Commit({"k": 1}, {"k": Put(b"1")}))
    until(lambda: waits_for_lock(sql, session))
    rows(sql, HOLD)
    sql.commit()
    assert answer.result(PATIENCE_S) == 2
    assert value(store, "k") == b"1"


# The order of commits.


def test_what_follows_the_lock_sees_what_came_before_it(
    url: str, sql: "Sql[Any]", open_database: Opener, thread: ThreadPoolExecutor
) -> None:
    """A commit that waited for another compares with what that one wrote, not with its own beginning."""
    first, second = open_database(url), open_database(url)
    store = second.log("local")
    assert versions(store, "k") == {"k": 0}
    session = session_of(second)
    sql.begin()
    digest = store._checksums.digest("k", b"theirs", "")
    entry = store._checksums.entry_digest(0, b"", b"\x90")
    rows(
        sql,
        "UPDATE coord_log SET head = head + 1, records = 1, digest = %s, key_sum = CRC32('k')",
        digest,
    )
    rows(sql, "INSERT INTO coord_record VALUES (1, 'k', 1, %s, 'theirs', '')", digest + 1)
    rows(sql, "INSERT INTO coord_entry VALUES (1, 1, %s, 0, '', x'90')", entry + 1)
    answer = thread.submit(store.commit, ONE)
    until(lambda: waits_for_lock(sql, session))
    sql.commit()
    with pytest.raises(Conflict) as conflict:
        answer.result(PATIENCE_S)
    assert conflict.value.keys == {"k"}
    assert value(first.log("local"), "k") == b"theirs"


def test_what_was_loaded_holds_only_while_the_floor_stands(url: str, open_database: Opener) -> None:
    """A key made and deleted by others, whose tombstone was trimmed too, is not what was loaded."""
    mine, other = open_database(url).log("local"), open_database(url).log("local")
    moment = mine.load(["k", "never seen"]).read_point
    write(other, {"k": b"theirs"})
    with pytest.raises(Conflict) as conflict:
        mine.commit(replace(ONE, read_point=moment))
    assert conflict.value.keys == {"k"}
    moment = mine.load(["k", "never seen"]).read_point
    other.commit(Commit({"k": 1}, deletes=["k"]))
    write(other, {"other": b"1"})
    other.trim(3)
    with pytest.raises(Conflict) as conflict:
        mine.commit(Commit({"k": 1, "never seen": 0}, {"k": Put(b"mine")}, read_point=moment))
    assert conflict.value.keys == {"k", "never seen"}
    assert mine.commit(Commit({}, events=[b"expects nothing"])) == 4, "a floor alone refuses nobody"


def test_what_is_answered_is_on_disk_though_another_wrote_it(
    url: str, sql: "Sql[Any]", open_database: Opener
) -> None:
    """InnoDB shows commits before they are synced: whoever verifies or follows syncs what it has not yet."""
    mine, other = open_database(url).log("local"), open_database(url).log("local")

    def syncs() -> int:
        return int(rows(sql, "SELECT syncs FROM coord_log")[0][0])

    write(other, {"k": b"1"})
    other.commit(Commit({"k": 1}))
    assert syncs() == 0, "own commits were synced when they were answered"
    mine.commit(Commit({"k": 1}))
    assert syncs() == 1
    mine.commit(Commit({"k": 1}))
    mine.tail(0, 1)
    assert syncs() == 1, "once is enough"
    write(other, {"k": b"2"})
    mine.tail(0, 1)
    assert syncs() == 2


def test_a_commit_is_one_sync_and_a_read_none(store: Store, sql: "Sql[Any]") -> None:
    """The server also syncs for itself, and never less for it: the least of several runs counts."""

    def syncs_of(act: Callable[[], object]) -> int:
        query = "SHOW GLOBAL STATUS LIKE 'Innodb_data_fsyncs'"
        before = int(rows(sql, query)[0][1])
        for _ in range(8):
            act()
        return int(rows(sql, query)[0][1]) - before

    def read() -> None:
        store.tail(0, 1)
        store.commit(Commit(versions(store, "k")))

    assert min(syncs_of(lambda: write(store, {"k": b"1"}, events=[b"e"])) for _ in range(3)) == 8
    assert min(syncs_of(read) for _ in range(3)) == 0


def test_keys_are_in_the_order_of_their_bytes(mariadb_server: MariadbServer, open_database: Opener) -> None:
    """In a database that sorts words as people do, keys and lines still have the order of every store."""
    url = mariadb_server.blank_url()
    name = url.rpartition("/")[2]
    with mariadb_server.admin() as admin:
        rows(admin, f"ALTER DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_german2_ci")
    coord.install(url)
    check_order_of_bytes(open_database(url).log("local"))


def test_every_read_goes_through_an_index(url: str, open_database: Opener) -> None:
    """However large the table, a load, a scan and a look for tombstones read what they want and no more."""
    store = open_database(url).log("local")
    keys = [f"k/{number:04}" for number in range(2000)]
    for begin in range(0, len(keys), 500):
        write(store, {key: Put(b"x", f"line/{key}") for key in keys[begin : begin + 500]})
    database: Any = open_database(url)
    session, statements, log = database._connected(), database.address.sql, store._log
    middle = store.load([keys[1000]])[keys[1000]]

    def rows_read(packet: bytes) -> int:
        names = "'Handler_read_key', 'Handler_read_next', 'Handler_read_rnd_next'"
        query = f"SHOW SESSION STATUS WHERE Variable_name IN ({names})".encode()
        before = sum(int(count) for _, count in session.ask(query)[0])
        session.ask(packet)
        return sum(int(count) for _, count in session.ask(query)[0]) - before

    idle = rows_read(b"DO 0")
    assert rows_read(statements.load(log, keys[::2])) - idle < 3 * len(keys)
    assert rows_read(statements.load(log, keys[:3])) - idle < 40
    for prefix, by in list[tuple[str, By]]([("k/", "key"), ("line/", "index_key")]):
        for after in (("", ""), (middle.index_key, middle.key)):
            assert rows_read(statements.load(log, [], [Range(prefix, by, 5, after)])) - idle < 40
    assert rows_read(statements.trim(log, 2, b"seed")) - idle < 40


# Limits and damage.


def test_a_commit_fits_into_a_packet(mariadb_server: MariadbServer, open_database: Opener) -> None:
    """`limits.commit_bytes` follows the server's packet; what is longer still is refused, not sent."""
    with mariadb_server.admin() as admin:
        rows(admin, "SET GLOBAL max_allowed_packet = 4194304")
        try:
            store = open_database(mariadb_server.fresh_url()).log("local")
        finally:
            rows(admin, "SET GLOBAL max_allowed_packet = 67108864")
    assert store.limits.commit_bytes == 1048576
    quotes = {f"k{number}": Put(b"'" * 250_000) for number in range(4)}
    write(store, quotes)
    assert store.load(["k3"])["k3"] == store.scan("k3", by="key", limit=1)[0]
    with pytest.raises(LimitReached, match="packet"):
        store.load([f"{number:0>700}" for number in range(6000)])
    assert head(store) == 1


def test_a_store_that_was_replaced_is_corrupt(
    store: Store, database: AnyDatabase, sql: "Sql[Any]", url: str
) -> None:
    """Another store under the same url is not mistaken for the one that was opened."""
    store.commit(ONE)
    end_session(sql, session_of(database))
    rows(sql, "DROP TABLE coord_meta, coord_log, coord_record, coord_entry")
    coord.install(url)
    with pytest.raises(Corrupt, match="another store"):
        store.load(["k"])


def test_a_moment_counts_within_one_connection(store: Store, database: AnyDatabase, sql: "Sql[Any]") -> None:
    """A server may have lost what was seen over the last connection, and given its offset to another."""
    check_a_moment_within_one_connection(
        store,
        lose=lambda: rows(
            sql, "UPDATE coord_record SET version = 1, checksum = checksum - 1 WHERE `key` = 'k'"
        ),
        hang_up=lambda: end_session(sql, session_of(database)),
    )


def test_a_commit_over_a_new_connection_looks_again(
    store: Store, database: AnyDatabase, sql: "Sql[Any]"
) -> None:
    """The commit itself is the first to notice that the connection has ended."""
    write(store, {"k": b"0"})
    write(store, {"k": b"1"})
    found = store.load(["k", "new"])
    rows(sql, "UPDATE coord_record SET version = 1, checksum = checksum - 1 WHERE `key` = 'k'")
    end_session(sql, session_of(database))
    expected = {key: record.version for key, record in found.items()}
    with pytest.raises(Conflict):
        store.commit(Commit(expected, {"new": Put(b"rests on it")}, read_point=found.read_point))


def test_a_log_that_went_back_or_is_gone_is_corrupt(store: Store, sql: "Sql[Any]") -> None:
    """A store restored from an old copy forgot what it had acknowledged: nobody goes on as if not."""
    for number in range(3):
        write(store, {"k": b"%d" % number})
    rows(sql, "UPDATE coord_log SET head = 1")
    with pytest.raises(Corrupt, match="from 3 to 1"):
        store.load(["k"])
    rows(sql, "DELETE FROM coord_log")
    for call in (lambda: store.load(["k"]), lambda: store.commit(Commit(events=[b"lost"]))):
        with pytest.raises(Corrupt, match="missing"):
            call()
    assert rows(sql, "SELECT MAX(`offset`) FROM coord_entry") == [(3,)]


def test_missing_tables_are_corrupt(store: Store, sql: "Sql[Any]") -> None:
    """A table dropped behind an open store is damage, not an empty store."""
    store.commit(ONE)
    rows(sql, "DROP TABLE coord_record")
    with pytest.raises(Corrupt):
        store.load(["k"])
    with pytest.raises(Corrupt):
        store.commit(Commit(expected_versions={"k": 1}, puts={"k": Put(b"2")}))


def test_errors_are_only_those_of_the_contract(store: Store) -> None:
    """What is not Unicode is Invalid, and the store goes on."""
    with pytest.raises(Invalid):
        store.load(["\ud800"])
    with pytest.raises(Invalid):
        store.commit(Commit(expected_versions={"\ud800": 0}))
    with pytest.raises(Invalid):
        store.scan("\ud800", by="key", limit=1)
    assert store.commit(ONE) == 1
