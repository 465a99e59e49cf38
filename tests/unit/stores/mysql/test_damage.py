"""Rows that another program changed or removed in MariaDB are refused, never skipped."""

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from coord.core.errors import Corrupt
from coord.stores.checksums import REPAIR
from coord.stores.contract import Commit, Put
from coord.stores.full_check import read_everything
from coord.stores.mysql import store as mysql
from coord.stores.open import open_store
from tests.support.servers.mariadb import MariadbServer
from tests.support.stores import damage
from tests.support.stores.mysql_sessions import end_session, rows, session_of
from tests.support.stores.steps import everything, head, value, write

RECORDS = {
    "a value": "UPDATE coord_record SET value = '{\"n\":9}' WHERE `key` = 'key-3'",
    "a version": "UPDATE coord_record SET version = version + 1 WHERE `key` = 'key-3'",
    "an absurd version": "UPDATE coord_record SET version = -9223372036854775807 WHERE `key` = 'key-3'",
    "a checksum": "UPDATE coord_record SET checksum = 0 WHERE `key` = 'key-3'",
    "an index key": "UPDATE coord_record SET index_key = 'due/9' WHERE `key` = 'key-3'",
    "an index key that is no text": "UPDATE coord_record SET index_key = x'ff' WHERE `key` = 'key-3'",
    "no value": "UPDATE coord_record SET value = NULL WHERE `key` = 'plain'",
    "no index key": "UPDATE coord_record SET index_key = NULL WHERE `key` = 'plain'",
    "a key": "UPDATE coord_record SET `key` = 'key-7' WHERE `key` = 'key-3'",
    "a key that is no text": "UPDATE coord_record SET `key` = x'6bff' WHERE `key` = 'key-3'",
    "a live record as a tombstone": (
        "UPDATE coord_record SET value = NULL, index_key = NULL WHERE `key` = 'plain'"
    ),
    "a live tombstone": "UPDATE coord_record SET value = '', index_key = '' WHERE `key` = 'gone'",
    "half a tombstone": "UPDATE coord_record SET index_key = '' WHERE `key` = 'gone'",
}
VANISHED = {
    "a record": "DELETE FROM coord_record WHERE `key` = 'key-3'",
    "a record without an index key": "DELETE FROM coord_record WHERE `key` = 'plain'",
    "a tombstone": "DELETE FROM coord_record WHERE `key` = 'gone'",
    "all records": "DELETE FROM coord_record",
    "a renamed record": RECORDS["a key"],
    "a renamed tombstone": "UPDATE coord_record SET `key` = 'went' WHERE `key` = 'gone'",
    "a record that is hidden from ranges": RECORDS["no index key"],
    "a live record as a tombstone": RECORDS["a live record as a tombstone"],
    "a record too many": "INSERT INTO coord_record VALUES (1, 'new', 1, 1, 'x', '')",
    "the newest entry": "DELETE FROM coord_entry WHERE `offset` = 8",
    "all entries": "DELETE FROM coord_entry",
    "the head": "UPDATE coord_log SET head = 7",
    "the count of records": "UPDATE coord_log SET records = records + 1",
    "an absurd count of records": "UPDATE coord_log SET records = 1000000",
    "the count of the index": "UPDATE coord_log SET indexed = indexed - 1",
    "the digest": "UPDATE coord_log SET digest = digest + 1",
    "the sum of keys": "UPDATE coord_log SET key_sum = key_sum + 1",
}
ENTRIES = {
    "an entry": "DELETE FROM coord_entry WHERE `offset` = 3",
    "the first entry": "DELETE FROM coord_entry WHERE `offset` = 1",
    "the events of an entry": "UPDATE coord_entry SET events = x'90' WHERE `offset` = 3",
    "the time of an entry": "UPDATE coord_entry SET at = at + 1 WHERE `offset` = 3",
    "the id of an entry": "UPDATE coord_entry SET id = 'other' WHERE `offset` = 3",
    "the offset of an entry": "UPDATE coord_entry SET `offset` = 30 WHERE `offset` = 3",
}


def fill(url: str) -> None:
    """Write records with and without an index key, and a tombstone: eight entries."""
    with closing(open_store(url)) as database:
        store = database.log("local")
        for number in range(5):
            write(store, {f"key-{number}": Put(b'{"n":%d}' % number, f"due/{number}")}, events=[b"event"])
        write(store, {"plain": b"x"})
        write(store, {"gone": b"x"})
        write(store, deletes=["gone"])


def execute(server: MariadbServer, url: str, statement: str) -> int:
    """Run a statement behind coord's back; return the number of rows that it changed."""
    with server.admin(url.rpartition("/")[2]) as sql, sql.cursor() as cursor:
        changed = cursor.execute(statement)
        sql.commit()
        return changed


@pytest.fixture
def url(mariadb_server: MariadbServer) -> str:
    """The url of a store with a short history."""
    url = mariadb_server.fresh_url()
    fill(url)
    return url


@pytest.mark.parametrize("what", [*RECORDS, *VANISHED, *ENTRIES])
def test_what_another_program_changed_is_corrupt(mariadb_server: MariadbServer, url: str, what: str) -> None:
    """Whatever was changed or deleted by SQL: `Corrupt` for whoever reads everything."""
    assert execute(mariadb_server, url, (RECORDS | VANISHED | ENTRIES)[what]) > 0
    with pytest.raises(Corrupt) as refused, closing(open_store(url)) as database:
        read_everything(database.log("local"))
    assert "tenant local in mysql://" in str(refused.value)
    assert refused.value.hint == REPAIR


@pytest.mark.parametrize("what", VANISHED)
def test_a_vanished_row_is_noticed_when_the_log_is_opened(
    mariadb_server: MariadbServer, url: str, what: str
) -> None:
    """Nobody has to read the row: what is not there would look like a free lock."""
    execute(mariadb_server, url, VANISHED[what])
    with closing(open_store(url)) as database, pytest.raises(Corrupt):
        database.log("local")


@pytest.mark.parametrize("what", [*RECORDS, *ENTRIES])
def test_a_process_that_stays_refuses_what_it_reads(
    mariadb_server: MariadbServer, url: str, what: str
) -> None:
    """The log was opened before the damage: each load, range and page is checked for itself."""
    with closing(open_store(url)) as database:
        store = database.log("local")
        everything(store)
        execute(mariadb_server, url, (RECORDS | ENTRIES)[what])
        with pytest.raises(Corrupt, match=r"the record|entry"):
            (everything(store), store.load(["key-3", "plain", "gone"]))


def test_an_error_names_the_record(mariadb_server: MariadbServer, url: str) -> None:
    """By key, by range of keys, and by range of index keys."""
    with closing(open_store(url)) as database:
        store = database.log("local")
        execute(mariadb_server, url, RECORDS["a value"])
        calls: list[Callable[[], Any]] = [
            lambda: store.load(["key-3"]),
            lambda: store.scan("key-", by="key", limit=9),
            lambda: store.scan("due/", by="index_key", limit=9),
        ]
        for call in calls:
            with pytest.raises(Corrupt, match="record 'key-3' of tenant local"):
                call()


def test_more_records_are_counted_by_doctor_only(
    mariadb_server: MariadbServer, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Above a limit an opening would take too long."""
    execute(mariadb_server, url, VANISHED["a record"])
    monkeypatch.setattr(mysql, "VERIFY_ROWS", 5)
    with closing(open_store(url)) as database:
        log = database.log("local")
        with pytest.raises(Corrupt, match="has 6 records; its log counted 7"):
            read_everything(log)


def test_totals_follow_every_kind_of_change(mariadb_server: MariadbServer, url: str) -> None:
    """New records, other values, index keys that come and go, tombstones, trims; from two processes."""
    with closing(open_store(url)) as first, closing(open_store(url)) as second:
        one, other = first.log("local"), second.log("local")
        assert isinstance(one, mysql.MysqlStore)
        steps: list[Callable[[], object]] = [
            lambda: write(one, {"key-1": b"no index key", "it's": Put(b"o'clock", "due'1")}),
            lambda: write(other, {"key-1": Put(b"with one", "due/1")}, deletes=["key-2", "never was"]),
            lambda: write(one, {"gone": b"back", "key-2": b"back"}, deletes=["plain"]),
            lambda: write(other, deletes=["plain", "it's"]),
            lambda: one.trim(10),
            lambda: other.trim(12),
            lambda: write(one, {"plain": b"once more"}),
        ]
        for step in steps:
            step()
            one.verify()
        assert read_everything(other).records == 7
    with mariadb_server.admin(url.rpartition("/")[2]) as sql:
        assert rows(sql, "SELECT records, indexed FROM coord_log") == [(8, 4)]


def test_a_trim_removes_no_record_that_lost_its_value(mariadb_server: MariadbServer, url: str) -> None:
    """It looks like a tombstone, but its checksum is that of a record; the real tombstone goes."""
    with closing(open_store(url)) as database:
        store = database.log("local")
        write(store, {"later": b"x"})
        execute(mariadb_server, url, RECORDS["a live record as a tombstone"])
        store.trim(9)
        with pytest.raises(Corrupt, match="'plain'"):
            store.load(["plain"])
        assert store.load(["gone"])["gone"].version == 9


@pytest.mark.parametrize("noticed", [False, True])
def test_what_a_lost_connection_knew_is_read_again(
    mariadb_server: MariadbServer, url: str, *, noticed: bool
) -> None:
    """A crash may have given a version to another value: the totals follow what is there now."""
    with closing(open_store(url)) as database:
        store = database.log("local")
        assert isinstance(store, mysql.MysqlStore)
        version = store.load(["plain"])["plain"].version
        old, new = [store._checksums.digest("plain", each, "") for each in (b"x", b"other")]
        changed = f"value = 'other', checksum = {new + version} WHERE `key` = 'plain'"
        execute(mariadb_server, url, f"UPDATE coord_record SET {changed}")
        execute(mariadb_server, url, f"UPDATE coord_log SET digest = digest + {new - old}")
        with mariadb_server.admin(url.rpartition("/")[2]) as sql:
            end_session(sql, session_of(database))
        assert not noticed or head(store) == 8
        store.commit(Commit({"plain": version}, {"plain": Put(b"new")}))
        store.verify()
        assert value(store, "plain") == b"new"


DAMAGE = {
    "a lock without its value": (
        "UPDATE coord_record SET value = NULL, index_key = NULL WHERE `key` LIKE 'lock/%' AND index_key = ''"
    ),
    "a lock": "DELETE FROM coord_record WHERE `key` LIKE 'lock/%=ada'",
    "a renamed lock": "UPDATE coord_record SET `key` = CONCAT(`key`, 'x') WHERE `key` LIKE 'lock/%'",
    "a finished task": "DELETE FROM coord_record WHERE `key` LIKE 'task/%task-00%'",
    "a changed owner": (
        "UPDATE coord_record SET value = REPLACE(value, '\"ada\"', '\"eve\"') WHERE `key` LIKE 'lock/%'"
    ),
    "everything": "DELETE FROM coord_record",
    "an old version of a claim": "UPDATE coord_record SET version = 1 WHERE `key` LIKE 'task/%'",
}


def test_no_damage_by_sql_gives_a_wrong_answer(
    mariadb_server: MariadbServer, record_property: Callable[[str, object], None]
) -> None:
    """Locks, tasks and claims that vanish or change: refused, or answered as before."""
    url = mariadb_server.fresh_url()
    damage.fill(url)
    campaign = damage.Campaign(damage.ask_other(lambda: open_store(url)))
    for what, statement in DAMAGE.items():
        url = mariadb_server.fresh_url()
        damage.fill(url)
        assert execute(mariadb_server, url, statement) > 0
        campaign.add(what, damage.ask_other(lambda url=url: open_store(url)))  # type: ignore[misc]
    record_property("campaign", str(campaign))
    assert campaign.wrong == []
    assert campaign.refused == campaign.rounds
