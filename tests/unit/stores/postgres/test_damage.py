"""Rows that another program changed or removed in Postgres are refused, never skipped."""

from collections.abc import Callable
from contextlib import closing

import psycopg
import pytest

from coord.core.errors import Corrupt
from coord.stores.contract import Put
from coord.stores.open import open_store
from coord.stores.postgres.table_store import PostgresStore
from tests.support.servers.postgres import PostgresServer, for_psycopg, in_log_shape
from tests.support.stores import damage
from tests.support.stores.steps import everything, write

TABLES = {
    "a value": "UPDATE coord.record SET value = '{\"n\":9}' WHERE key = 'key-3'",
    "a version": "UPDATE coord.record SET version = version + 1 WHERE key = 'key-3'",
    "an index key": "UPDATE coord.record SET index_key = 'due/9' WHERE key = 'key-3'",
    "a key": "UPDATE coord.record SET key = 'key-7' WHERE key = 'key-3'",
    "a record": "DELETE FROM coord.record WHERE key = 'key-3'",
    "a tombstone": "DELETE FROM coord.record WHERE key = 'gone'",
    "the key of a tombstone": "UPDATE coord.record SET key = 'went' WHERE key = 'gone'",
    "all records": "DELETE FROM coord.record",
    "an entry": 'DELETE FROM coord.entry WHERE "offset" = 3',
    "the newest entry": 'DELETE FROM coord.entry WHERE "offset" = 7',
    "the events of an entry": "UPDATE coord.entry SET events = '\\x90' WHERE \"offset\" = 3",
    "the totals": "UPDATE coord.log SET digest = digest + 1",
}
LOG = {
    "the body of an entry": 'UPDATE coord.entry SET body = set_byte(body, 9, 33) WHERE "offset" = 3',
    "the events of an entry": TABLES["the events of an entry"],
    "an entry": TABLES["an entry"],
    "the newest entry": TABLES["the newest entry"],
}
CASES = [(str, name) for name in TABLES] + [(in_log_shape, name) for name in LOG]


@pytest.mark.parametrize(("shaped", "what"), CASES)
def test_what_another_program_changed_is_corrupt(
    postgres_server: PostgresServer, shaped: Callable[[str], str], what: str
) -> None:
    """Whatever was changed or deleted by SQL: `Corrupt` for whoever reads everything."""
    url = postgres_server.fresh_url(shaped)
    with closing(open_store(url)) as database:
        store = database.log("local")
        for number in range(5):
            write(store, {f"key-{number}": Put(b'{"n":%d}' % number, f"due/{number}")}, events=[b"event"])
        write(store, {"gone": b"x"})
        write(store, deletes=["gone"])
    with psycopg.connect(for_psycopg(url), autocommit=True) as sql:
        sql.execute((TABLES | LOG)[what].encode())
    with pytest.raises(Corrupt), closing(open_store(url)) as database:
        everything(database.log("local"))


def test_totals_follow_every_kind_of_change(postgres_server: PostgresServer) -> None:
    """New records, other values, index keys that come and go, tombstones, trims; from two processes."""
    url = postgres_server.fresh_store_url()
    with closing(open_store(url)) as first, closing(open_store(url)) as second:
        one, other = first.log("local"), second.log("local")
        assert isinstance(one, PostgresStore)
        steps: list[Callable[[], object]] = [
            lambda: write(one, {"a": b"no index key", "b": Put(b"x", "due/1"), "c": b"x"}),
            lambda: write(other, {"a": Put(b"with one", "due/1")}, deletes=["b", "never was"]),
            lambda: write(one, {"b": b"back", "never was": Put(b"is", "due/2")}, deletes=["c"]),
            lambda: write(other, deletes=["c", "never was"]),
            lambda: one.trim(4),
            lambda: other.trim(5),
            lambda: write(one, {"c": b"once more"}),
        ]
        for step in steps:
            step()
            one.verify()
        assert [record.key for record in other.scan("", by="key", limit=9)] == ["a", "b", "c"]


DAMAGE = {
    "a lock without its value": (
        "UPDATE coord.record SET value = NULL, index_key = NULL WHERE key LIKE 'lock/%' AND index_key = ''"
    ),
    "a lock": "DELETE FROM coord.record WHERE key LIKE 'lock/%=ada'",
    "a finished task": "DELETE FROM coord.record WHERE key LIKE 'task/%task-00%'",
    "a changed owner": (
        "UPDATE coord.record SET value = "
        "convert_to(replace(convert_from(value, 'UTF8'), '\"ada\"', '\"eve\"'), "
        "'UTF8') WHERE key LIKE 'lock/%' AND value IS NOT NULL"
    ),
    "a lock under another key": "UPDATE coord.record SET key = key || '~' WHERE key LIKE 'lock/%=ada'",
    "a lock of a log that seems large": (
        "WITH gone AS (DELETE FROM coord.record WHERE key LIKE 'lock/%=ada') "
        "UPDATE coord.log SET records = 6000"
    ),
    "a task under another key": "UPDATE coord.record SET key = 'x' || key WHERE key LIKE 'task/%task-00%'",
    "any record under another key": (
        "UPDATE coord.record SET key = 'x' || key WHERE key IN "
        "(SELECT key FROM coord.record WHERE value IS NOT NULL ORDER BY md5(key) LIMIT 1)"
    ),
    "everything": "DELETE FROM coord.record",
    "an old version of a claim": "UPDATE coord.record SET version = 1 WHERE key LIKE 'task/%'",
}


def test_no_damage_by_sql_gives_a_wrong_answer(
    postgres_server: PostgresServer, record_property: Callable[[str, object], None]
) -> None:
    """Locks, tasks and claims that vanish or change: refused, or answered as before."""
    url = postgres_server.fresh_url(str)
    damage.fill(url)
    campaign = damage.Campaign(damage.ask_other(lambda: open_store(url)))
    for what, statement in DAMAGE.items():
        url = postgres_server.fresh_url(str)
        damage.fill(url)
        with psycopg.connect(for_psycopg(url), autocommit=True) as sql:
            assert sql.execute(statement.encode()).rowcount > 0
        campaign.add(what, damage.ask_other(lambda url=url: open_store(url)))  # type: ignore[misc]
    record_property("campaign", str(campaign))
    assert campaign.wrong == []
    assert campaign.refused == campaign.rounds
