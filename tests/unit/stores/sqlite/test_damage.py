"""Damage in a SQLite file is refused, never skipped: by row, by vanished row, by page."""

import os
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from coord.core.errors import Corrupt
from coord.core.ranges import Range
from coord.stores.contract import Commit, Put
from coord.stores.full_check import read_everything
from coord.stores.open import open_store
from coord.stores.sqlite import store as sqlite
from tests.support.stores import damage
from tests.support.stores.steps import everything, value, write

WHOLE = [Range("", "key", 1000), Range("", "index_key", 1000)]
ROUNDS = 20_000 if os.environ.get("COORD_SOAK") else 160

PARTIAL = (
    "CREATE INDEX record_index_key ON record (log, index_key, key) WHERE index_key > '' AND key <> 'key-3'"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with records, some of them in the index, a tombstone, and entries."""
    path = tmp_path / "store.db"
    with closing(open_store(f"sqlite://{path}")) as database:
        store = database.log("local")
        for number in range(5):
            write(store, {f"key-{number}": Put(b'{"n":%d}' % number, f"due/{number}")}, events=[b"event"])
        write(store, {"plain": b"value", "gone": b"x"})
        write(store, deletes=["gone"])
    return path


def sql(path: Path, *statements: str) -> None:
    """Change the file as another program could."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def read_all(path: Path) -> None:
    with closing(open_store(f"sqlite://{path}")) as database:
        everything(database.log("local"))


CHANGES = {
    "a value": "UPDATE record SET value = x'7b7d' WHERE key = 'key-3'",
    "a value of another type": "UPDATE record SET value = 5 WHERE key = 'key-3'",
    "a version": "UPDATE record SET version = version + 1 WHERE key = 'key-3'",
    "a checksum": "UPDATE record SET checksum = checksum + 1 WHERE key = 'key-3'",
    "a key": "UPDATE record SET key = 'key-7' WHERE key = 'key-3'",
    "an index key": "UPDATE record SET index_key = 'due/9' WHERE key = 'key-3'",
    "a record": "DELETE FROM record WHERE key = 'key-3'",
    "a lost value": "UPDATE record SET value = NULL WHERE key = 'plain'",
    "a tombstone": "DELETE FROM record WHERE key = 'gone'",
    "all records": "DELETE FROM record",
    "one record more": "INSERT INTO record SELECT log, 'x', version, checksum, '', value FROM record LIMIT 1",
    "an entry": 'DELETE FROM entry WHERE "offset" = 3',
    "the newest entry": 'DELETE FROM entry WHERE "offset" = 7',
    "the events of an entry": "UPDATE entry SET events = x'90' WHERE \"offset\" = 3",
    "the time of an entry": 'UPDATE entry SET at = at + 1 WHERE "offset" = 3',
    "the head": "UPDATE log SET head = head - 1",
    "the floor": "UPDATE log SET floor = floor + 1",
    "the time of the head": "UPDATE log SET at = at + 1",
    "the totals": "UPDATE log SET sums = replace(sums, '7 5 ', '6 5 ')",
    "the log": "DELETE FROM log",
    "the name of the log": "UPDATE log SET tenant = 'other'",
    "the epoch": "UPDATE meta SET value = '1' WHERE name = 'epoch'",
    "the metadata": "DELETE FROM meta",
    "a table": "DROP TABLE entry",
    "an index": "DROP INDEX record_index_key",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_what_another_program_changed_is_corrupt(path: Path, change: str) -> None:
    """Whatever was changed, deleted or added by SQL: `Corrupt` for whoever reads everything."""
    sql(path, change)
    with pytest.raises(Corrupt) as caught:
        read_all(path)
    assert str(path) in caught.value.message
    assert "coord doctor --repair" in caught.value.hint


UNSEEN_BY_THEIR_READERS = (
    "a record", "a key", "all records", "a version", "a lost value", "a tombstone", "the newest entry"
)  # fmt: skip


@pytest.mark.parametrize("what", UNSEEN_BY_THEIR_READERS)
def test_a_vanished_record_is_noticed_when_the_log_is_opened(path: Path, what: str) -> None:
    """Nobody can read a row that is not there, so every opening counts."""
    sql(path, CHANGES[what])
    with closing(open_store(f"sqlite://{path}")) as database, pytest.raises(Corrupt):
        database.log("local")


def test_an_index_that_lost_an_entry_is_noticed(path: Path) -> None:
    """The index is compared with the records: a range by index key may not be shorter."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'record_dead'"
        ).fetchone()
        connection.execute("UPDATE sqlite_master SET rootpage = ? WHERE name = 'record_index_key'", (root,))
    with pytest.raises(Corrupt), closing(open_store(f"sqlite://{path}")) as database:
        database.log("local")


def test_an_index_without_one_record_is_noticed(path: Path) -> None:
    """The index lost one record, and nothing else is wrong: only its own count shows it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        (created,) = connection.execute(
            "SELECT sql FROM sqlite_master WHERE name = 'record_index_key'"
        ).fetchone()
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'record_index_key'", (PARTIAL,))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("REINDEX record_index_key")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'record_index_key'", (created,))
    with closing(open_store(f"sqlite://{path}")) as database, pytest.raises(Corrupt, match="4 records in"):
        database.log("local")


def test_a_vanished_log_is_not_created_again(path: Path) -> None:
    """Another tenant's log is gone: whoever asks for it would get an empty one, where nothing is locked."""
    with closing(open_store(f"sqlite://{path}")) as database:
        database.log("other")
    sql(path, "DELETE FROM log WHERE tenant = 'other'")
    with closing(open_store(f"sqlite://{path}")) as database, pytest.raises(Corrupt, match="1 logs"):
        database.log("other")


def test_the_full_check_asks_sqlite_itself(path: Path) -> None:
    """A page that no record needs can be damaged; SQLite finds it."""
    with closing(open_store(f"sqlite://{path}")) as database:
        log = database.log("local")
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("CREATE TABLE unused (a)")
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute("UPDATE sqlite_master SET rootpage = 3 WHERE name = 'unused'")
        with pytest.raises(Corrupt):
            read_everything(log)


def test_a_process_that_stays_notices_a_vanished_record(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker opens the file once: it counts again each minute."""
    clock = [0.0]
    monkeypatch.setattr(sqlite, "uptime_ms", lambda: clock[0])
    with closing(open_store(f"sqlite://{path}")) as database:
        store = database.log("local")
        sql(path, "DELETE FROM record WHERE key = 'key-3'")
        clock[0] = sqlite.VERIFY_EVERY_S * 1000 - 1
        assert value(store, "plain") == b"value"
        clock[0] += 1
        with pytest.raises(Corrupt, match="6 records; its log counted 7"):
            store.load(["plain"])


def test_a_large_file_is_counted_once_in_a_minute(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting costs time for each row: with many rows one process in a minute does it for all."""
    monkeypatch.setattr(sqlite, "VERIFY_ROWS", 6)
    mark = path.with_name("store.db-verified")
    read_all(path)
    assert mark.stat().st_mode & 0o777 == 0o600
    sql(path, "DELETE FROM record WHERE key = 'key-3'")
    with closing(open_store(f"sqlite://{path}")) as database:
        database.log("local")
    os.utime(mark, (0, 0))
    with closing(open_store(f"sqlite://{path}")) as database, pytest.raises(Corrupt):
        database.log("local")


def test_a_commit_over_a_damaged_record_is_refused(path: Path) -> None:
    """A commit reads what it replaces; damage there is not overwritten, and nothing is written."""
    with closing(open_store(f"sqlite://{path}")) as database:
        store = database.log("local")
        version = store.load(["key-3"])["key-3"].version
    with closing(open_store(f"sqlite://{path}")) as database:
        store = database.log("local")
        sql(path, "UPDATE record SET value = 'changed' WHERE key = 'key-3'")
        with pytest.raises(Corrupt, match="key-3"):
            store.commit(Commit({"key-3": version}, {"key-3": Put(b"new")}))
        assert store.seen.offset == 7


def test_trimming_a_damaged_file_removes_nothing(path: Path) -> None:
    """What trim removes is counted before and after: a wrong count undoes it."""
    with closing(open_store(f"sqlite://{path}")) as database:
        store = database.log("local")
        sql(path, "DELETE FROM record WHERE key = 'key-3'")
        with pytest.raises(Corrupt):
            store.trim(7)
        assert [entry.offset for entry in store.tail(0, 100)] == list(range(1, 8))


def test_totals_follow_every_kind_of_change(path: Path) -> None:
    """Puts, replacements, tombstones, revivals, index keys that come and go, trims: all are counted."""
    rng = random.Random(5)
    with closing(open_store(f"sqlite://{path}")) as database:
        store = database.log("local")
        for number in range(60):
            keys = rng.sample(range(9), 3)
            index_key = rng.choice(["", f"due/{rng.randrange(9)}"])
            write(store, {f"key-{keys[0]}": Put(b"%d" % number, index_key)}, deletes=[f"key-{keys[1]}"])
            if number % 20 == 19:
                store.trim(store.seen.offset - 3)
        kept = store.load((), WHOLE).ranges
    with closing(open_store(f"sqlite://{path}")) as database:
        assert database.log("local").load((), WHOLE).ranges == kept


# The campaign.


def test_no_damaged_page_gives_a_wrong_answer(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Zeroed, garbled, swapped, duplicated, older and foreign pages: refused, or answered as before."""
    campaign = page_campaign(tmp_path, seed=15, rounds=ROUNDS)
    record_property("campaign", str(campaign))
    assert campaign.wrong == []
    assert campaign.refused > campaign.rounds / 2


def opened_without_syncs(path: Path) -> Any:
    database: Any = open_store(f"sqlite://{path}")
    database._connection.execute("PRAGMA synchronous = OFF")
    return database


def page_campaign(folder: Path, seed: int, rounds: int) -> damage.Campaign:
    """Damage copies of a file and ask each everything."""
    path, copy = folder / "store.db", folder / "copy.db"
    damage.fill(f"sqlite://{path}", more=-4)
    older = path.read_bytes()
    damage.fill(f"sqlite://{folder}/other.db")
    other = (folder / "other.db").read_bytes()
    path.unlink()
    damage.fill(f"sqlite://{path}")
    whole = path.read_bytes()

    def answers(data: bytes) -> damage.Answers:
        for left in folder.glob("copy.db*"):
            left.unlink()
        copy.write_bytes(data)
        return damage.ask_all(lambda: opened_without_syncs(copy))

    kinds: dict[str, damage.Damage] = {
        "zeroed sector": damage.zeroed(damage.SECTOR),
        "zeroed page": damage.zeroed(damage.PAGE),
        "flipped bits": damage.flipped,
        "garbled sector": damage.garbled,
        "truncated": damage.truncated,
        "swapped pages": damage.swapped,
        "duplicated page": damage.duplicated,
        "a page of another store": damage.mixed_with(other),
        "a page of an older store": damage.mixed_with(older),
    }
    return damage.run_campaign(answers, whole, kinds, seed, rounds)
