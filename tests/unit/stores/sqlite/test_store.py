"""What is true of the SQLite store alone: its settings, its files, and what it refuses to open."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from coord.core.errors import CoordError, Corrupt, Unavailable, Unknown, Unsupported
from coord.stores.contract import FORMAT, Commit, Put
from coord.stores.open import open_store
from coord.stores.sqlite import store as sqlite
from coord.stores.sqlite.store import PAGE_BYTES, SqliteDatabase, translated
from tests.support.stores.steps import by_key, everything, head, value, write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def opened(path: Path) -> Any:
    return closing(open_store(f"sqlite://{path}"))


def refuses(path: Path, error: type[CoordError]) -> CoordError:
    """Return the error with which the file is refused; the file stays as it is."""
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(error) as caught:
        open_store(f"sqlite://{path}")
    assert (path.read_bytes() if path.is_file() else b"") == before
    return caught.value


def test_a_load_sees_no_transaction_that_was_left_open(path: Path) -> None:
    """A signal may have left one where nobody could end it: a load shows the newest state all the same."""
    with opened(path) as one, opened(path) as other:
        mine, theirs = one.log("local"), other.log("local")
        write(mine, {"k": b"old"})
        one._cursor.execute("BEGIN")
        one._cursor.execute("SELECT count(*) FROM record").fetchall()
        write(theirs, {"k": b"new"})
        assert value(mine, "k") == b"new"
        one._cursor.execute("BEGIN IMMEDIATE")
        one._cursor.execute("DELETE FROM record")
        assert mine.load(["k"])["k"].value == b"new"


def test_every_commit_is_synced_and_readers_never_stop(path: Path) -> None:
    """WAL and synchronous=FULL, without which a commit would not be durable when it returns."""
    with opened(path) as database:
        ask = database._connection.execute
        assert ask("PRAGMA journal_mode").fetchone() == ("wal",)
        assert ask("PRAGMA synchronous").fetchone() == (2,)
        assert ask("PRAGMA wal_autocheckpoint").fetchone()[0] > 0


def test_the_write_ahead_log_does_not_grow_for_ever(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints happen while the store is open, so the write-ahead log stays small."""
    monkeypatch.setattr(sqlite, "CHECKPOINT_PAGES", 50)
    with opened(path) as database:
        store = database.log("local")
        for number in range(60):
            write(store, {f"k{number % 3}": bytes(20_000)})
        assert path.with_name("store.db-wal").stat().st_size < 60 * 20_000 / 2


def test_a_damaged_file_is_corrupt(path: Path) -> None:
    """A file that is no database is `Corrupt`: it is refused, never overwritten."""
    path.write_bytes(b"This is not a database at all. " * 500)
    refuses(path, Corrupt)


def test_a_damaged_header_is_corrupt(path: Path) -> None:
    """A store whose first page is damaged is `Corrupt`."""
    with opened(path) as database:
        write(database.log("local"), {"a": b"1"})
    damage(path, 0, 100)
    refuses(path, Corrupt)


def test_damage_inside_is_corrupt_when_it_is_met(path: Path) -> None:
    """Damaged pages are `Corrupt` for whoever needs them: never an empty answer."""
    with opened(path) as database:
        store = database.log("local")
        for number in range(40):
            write(store, {f"k{number:02d}": bytes(3000)}, events=[bytes(3000)])
    damage(path, PAGE_BYTES * 3, path.stat().st_size - PAGE_BYTES * 3)
    with pytest.raises(Corrupt), opened(path) as database:
        everything(database.log("local"))


def damage(path: Path, start: int, length: int) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(b"\xa5" * length)


def test_a_truncated_file_is_corrupt(path: Path) -> None:
    """A file that ends too early is `Corrupt`."""
    with opened(path) as database:
        for number in range(40):
            write(database.log("local"), {f"k{number:02d}": bytes(3000)})
    os.truncate(path, PAGE_BYTES * 5 + 100)
    with pytest.raises(Corrupt), opened(path) as database:
        everything(database.log("local"))


def test_an_entry_that_cannot_be_read_is_corrupt(path: Path) -> None:
    """A torn entry is `Corrupt`, never skipped."""
    with opened(path) as database:
        store = database.log("local")
        write(store, events=[b"one"])
        write(store, events=[b"two"])
        database._connection.execute("UPDATE entry SET events = x'ff' WHERE \"offset\" = 1")
        with pytest.raises(Corrupt):
            store.tail(0, 9)
        assert [entry.offset for entry in store.tail(1, 9)] == [2]


def test_another_programs_database_is_refused_and_untouched(path: Path) -> None:
    """A database of somebody else is `Corrupt`, and not one byte of it changes."""
    with closing(sqlite3.connect(path)) as theirs:
        theirs.execute("CREATE TABLE precious (x)")
        theirs.commit()
    refuses(path, Corrupt)
    assert os.listdir(path.parent) == ["store.db"]


def test_another_format_is_unsupported(path: Path) -> None:
    """A store written by another version of coord is `Unsupported`, and says so with both numbers."""
    with opened(path) as database:
        write(database.log("local"), {"a": b"1"})
        database._connection.execute("UPDATE meta SET value = '99' WHERE name = 'format'")
    error = refuses(path, Unsupported)
    assert "99" in error.message
    assert str(FORMAT) in error.message
    assert error.hint == "upgrade coord"


def test_a_store_of_an_older_version_is_unsupported(path: Path) -> None:
    """An older store is not misread; the hint says what helps."""
    with opened(path) as database:
        database._connection.execute("UPDATE meta SET value = '1' WHERE name = 'format'")
    assert "create a new store" in refuses(path, Unsupported).hint


@pytest.mark.parametrize(
    "make", [lambda path, other: path.symlink_to(other), lambda path, other: path.mkdir()]
)
def test_only_a_regular_file_is_opened(path: Path, make: Callable[[Path, Path], None]) -> None:
    """A symbolic link or a folder in the place of the store is refused."""
    make(path, path.with_name("elsewhere.db"))
    refuses(path, Corrupt)
    assert not path.with_name("elsewhere.db").exists()


def test_a_folder_that_cannot_be_made_is_unavailable(path: Path) -> None:
    """A path below a file cannot be opened: `Unavailable`, with the path."""
    path.write_text("a file")
    with pytest.raises(Unavailable) as caught:
        open_store(f"sqlite://{path}/store.db")
    assert "store.db" in caught.value.message


def test_missing_folders_are_made(tmp_path: Path) -> None:
    """The store is made on first open, with the folders above it; odd names and all."""
    path = tmp_path / "new folder" / "é%20 ?#" / "store.db"
    url = "sqlite://" + str(path).replace("%", "%25").replace("?", "%3F").replace("#", "%23")
    with closing(open_store(url)) as database:
        write(database.log("local"), {"a": b"1"})
    assert path.stat().st_size > 0


def test_a_busy_file_is_waited_for(path: Path) -> None:
    """A writer that finds another at work waits for it."""
    with opened(path) as database, closing(sqlite3.connect(path, isolation_level=None)) as other:
        store = database.log("local")
        other.execute("BEGIN IMMEDIATE")
        waits: list[float] = []

        def backoff(_: float) -> None:
            waits.append(0)
            if len(waits) == 3:
                other.execute("ROLLBACK")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("coord.stores.local.backoff.time.sleep", backoff)
            assert write(store, {"a": b"1"}) == 1
        assert len(waits) == 3


def test_a_file_that_stays_busy_is_unavailable(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that nobody lets in gives up after a while: nothing happened."""
    monkeypatch.setattr(sqlite, "BUSY_TRIES", 3)
    with opened(path) as database, closing(sqlite3.connect(path, isolation_level=None)) as other:
        store = database.log("local")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable):
            write(store, {"a": b"1"})
        assert value(store, "a") is None, "readers are never stopped"
        other.execute("ROLLBACK")
        assert write(store, {"a": b"2"}) == 1


def test_a_full_disk_is_unavailable_and_changes_nothing(path: Path) -> None:
    """A commit for which there is no room does not happen, and the next one does."""
    with opened(path) as database:
        store = database.log("local")
        write(store, {"a": b"1"})
        before = everything(store)
        pages = database._connection.execute("PRAGMA page_count").fetchone()[0]
        database._connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(Unavailable) as caught:
            write(store, {f"k{number}": bytes(100_000) for number in range(5)}, events=[b"e"])
        assert "full" in caught.value.hint
        assert everything(store) == before
        database._connection.execute("PRAGMA max_page_count = 1000000")
        assert write(store, {"b": b"2"}) == 2


def test_a_read_only_file_is_unavailable(path: Path) -> None:
    """A file that cannot be written is `Unavailable` for writers; readers go on."""
    with opened(path) as database:
        store = database.log("local")
        write(store, {"a": b"1"})
        database._connection.execute("PRAGMA query_only = ON")
        with pytest.raises(Unavailable):
            write(store, {"a": b"2"})
        assert value(store, "a") == b"1"


ERRORS: list[tuple[str, bool, type[CoordError]]] = [
    ("SQLITE_CORRUPT", False, Corrupt),
    ("SQLITE_CORRUPT_INDEX", True, Corrupt),
    ("SQLITE_NOTADB", False, Corrupt),
    ("SQLITE_BUSY", False, Unavailable),
    ("SQLITE_BUSY_SNAPSHOT", True, Unavailable),
    ("SQLITE_FULL", True, Unavailable),
    ("SQLITE_READONLY", True, Unavailable),
    ("SQLITE_CANTOPEN", False, Unavailable),
    ("SQLITE_IOERR", False, Unavailable),
    ("SQLITE_IOERR_FSYNC", True, Unknown),
    ("SQLITE_INTERRUPT", True, Unknown),
    ("", True, Unknown),
]


@pytest.mark.parametrize(("name", "committing", "expected"), ERRORS)
def test_driver_errors_are_translated(name: str, committing: bool, expected: type[CoordError]) -> None:
    """One function says whether it happened: only an interrupted COMMIT is `Unknown`."""
    error = sqlite3.OperationalError("the driver's words")
    error.sqlite_errorname = name
    assert type(translated(error, committing=committing)) is expected


def test_a_connection_from_before_a_fork_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite connections do not survive a fork; the child is told to open the store anew."""
    with opened(path) as database:
        store = database.log("local")
        with monkeypatch.context() as patch:
            patch.setattr(database, "_process", os.getpid() + 1)
            with pytest.raises(Unavailable, match="fork"):
                head(store)
        assert head(store) == 0


def test_tenants_share_one_file_and_one_connection(path: Path) -> None:
    """Thousands of tenants need no more than one file."""
    with opened(path) as database:
        assert isinstance(database, SqliteDatabase)
        for number in range(200):
            write(database.log(f"tenant-{number}"), {"a": Put(b"%d" % number, "l")})
        assert by_key(database.log("tenant-7")) == ["a"]
        assert value(database.log("tenant-199"), "a") == b"199"
    assert [name for name in os.listdir(path.parent) if not name.endswith("-turn")] == ["store.db"]


def test_a_store_opened_twice_in_one_process_keeps_its_log(path: Path) -> None:
    """Rule 2: a second opening must not drop the locks of the first, or others would take its log away.

    A process loses its locks on a file as soon as it closes that file anywhere; then the next process that
    closes the store believes to be the last one, and removes the log that this process goes on writing.
    """
    look = (
        "import sys; from coord import open_store; database = open_store(sys.argv[1]);"
        "print(*(found.key for found in database.log('local').scan('', by='key', limit=9))); database.close()"
    )

    def seen_by_others() -> str:
        words = [sys.executable, "-c", look, f"sqlite://{path}"]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()

    with opened(path) as first, opened(path) as second:
        write(first.log("local"), {"a": b"1"})
        assert seen_by_others() == "a"
        write(second.log("local"), {"b": b"2"})
        assert seen_by_others() == "a b"


@pytest.mark.parametrize("how", ["removed", "replaced", "moved away"])
def test_a_file_that_is_taken_away_is_noticed(tmp_path: Path, how: str) -> None:
    """A process that goes on in a deleted file would keep locks that nobody else sees."""
    path = tmp_path / "coord.db"
    with closing(open_store(f"sqlite://{path}")) as database:
        log = database.log("local")
        log.commit(Commit({"a": 0}, {"a": Put(b"1")}, at=1, id=b"1"))
        if how == "moved away":
            path.rename(tmp_path / "other.db")
        else:
            path.unlink()
        if how == "replaced":
            open_store(f"sqlite://{path}").close()
        for use in (
            lambda: log.load(["a"]),
            lambda: log.commit(Commit({"b": 0}, {"b": Put(b"1")}, at=2, id=b"2")),
            lambda: log.tail(0, 10),
            lambda: log.wait(1, 0),
        ):
            with pytest.raises(Corrupt, match="removed or replaced"):
                use()
