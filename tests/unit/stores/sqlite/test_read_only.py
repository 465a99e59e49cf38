"""A process that may only read a SQLite store sees its newest state, whatever files lie beside it."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from coord.core.errors import Unavailable
from coord.stores.open import open_store
from coord.stores.sqlite.read_only import Reader
from tests.support.read_only import run_read_only
from tests.support.stores.steps import write

READ = """
import itertools, sys
from contextlib import closing
from coord.core.errors import Unavailable
from coord.stores.contract import Commit, Put
from coord.stores.open import open_store
try:
    with closing(open_store("sqlite://" + sys.argv[1])) as database:
        store = database.log("local")
        for line in itertools.chain([""], sys.stdin if sys.argv[2:] else []):
            print(store.load(["k"])["k"].value.decode(), flush=True)
        try:
            store.commit(Commit({"k": 0}, {"k": Put(b"mine")}))
        except Unavailable as error:
            print(error.message, error.hint, sep="\\n")
except Unavailable as error:
    print(error.message)
"""
KILLED = """
import os, signal, sys
from coord.stores.open import open_store
from tests.support.stores.steps import write
write(open_store("sqlite://" + sys.argv[1]).log("local"), {"k": b"killed"})
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "store with space"
    folder.mkdir()
    with closing(open_store(f"sqlite://{folder}/store.db")) as database:
        write(database.log("local"), {"k": b"closed"})
    return folder / "store.db"


def read(path: Path) -> list[str]:
    """What a process reads that may not write."""
    done = run_read_only(path.parent, [sys.executable, "-c", READ, str(path)])
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def kill_a_writer(path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL


def names(path: Path) -> list[str]:
    return sorted(each.name for each in path.parent.iterdir())


def test_a_closed_file_is_read(path: Path) -> None:
    """Nobody has it open, so there is no WAL; a change is refused with the next step, and nothing changes."""
    before = (names(path), path.read_bytes())
    value, problem, hint = read(path)
    assert value == "closed"
    assert problem == f"{path} is read-only here; nothing was changed"
    assert "coord init" in hint
    assert (names(path), path.read_bytes()) == before


def test_the_wal_of_a_live_writer_is_read(path: Path) -> None:
    """The newest commit is in the WAL only."""
    with closing(open_store(f"sqlite://{path}")) as database:
        write(database.log("local"), {"k": b"open"})
        assert read(path)[0] == "open"


def test_the_wal_of_a_killed_writer_is_read(path: Path) -> None:
    """Its WAL stays, and is not lost on a reader."""
    kill_a_writer(path)
    assert f"{path.name}-wal" in names(path)
    assert read(path)[0] == "killed"


def test_a_wal_that_cannot_be_read_is_not_ignored(path: Path) -> None:
    """Without the -shm file SQLite cannot read the WAL here: an error, never the state before it."""
    kill_a_writer(path)
    path.with_name(f"{path.name}-shm").unlink()
    (problem,) = read(path)
    assert problem == f"{path}-wal has changes that only a process with write access can read"


def test_an_empty_wal_hides_nothing(path: Path) -> None:
    path.with_name(f"{path.name}-wal").touch()
    assert read(path)[0] == "closed"


@contextmanager
def reading(path: Path) -> Iterator[Any]:
    """A reader that stays, and reads again for every line that it gets."""
    command = [sys.executable, "-c", READ, str(path), "again"]
    show = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    with subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", show, str(path.parent), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        answers, questions = process.stdout, process.stdin
        assert answers is not None
        assert questions is not None

        def ask() -> str:
            questions.write("again\n")
            questions.flush()
            return answers.readline().strip()

        assert answers.readline().strip() == "closed"
        yield ask
        questions.close()


def test_a_reader_that_stays_sees_every_commit(path: Path) -> None:
    """A file that nobody had open may be opened and changed later, also by processes that end again."""
    with reading(path) as ask:
        with closing(open_store(f"sqlite://{path}")) as database:
            assert ask() == "closed"
            write(database.log("local"), {"k": b"one"})
            assert ask() == "one"
        assert ask() == "one"
        with closing(open_store(f"sqlite://{path}")) as database:
            write(database.log("local"), {"k": b"two"})
        assert ask() == "two"


def test_a_writer_that_came_and_went_is_noticed(path: Path) -> None:
    """The first writer after the reader cannot remove the WAL, so the reader finds it."""
    with reading(path) as ask:
        with closing(open_store(f"sqlite://{path}")) as database:
            write(database.log("local"), {"k": b"quick"})
        assert f"{path.name}-shm" in names(path)
        assert ask() == "quick"
    with closing(open_store(f"sqlite://{path}")) as database:
        database.log("local").load(["k"])
    assert names(path) == [path.name], "the last process to close it still cleans up"


def test_what_was_read_while_the_file_changed_is_refused(path: Path) -> None:
    """A checkpoint writes into the file; pages from before and after it make no state."""
    reader = Reader(str(path))
    with closing(reader.connect()), closing(reader):
        reader.check()
        path.with_name(f"{path.name}-shm").touch()
        reader.check()
        os.utime(path, ns=(0, 0))
        with pytest.raises(Unavailable, match="changed while it was read"):
            reader.check()


def test_a_file_whose_shm_file_cannot_be_read_is_not_waited_for(path: Path) -> None:
    """The error says what SQLite says."""
    path.with_name(f"{path.name}-shm").mkdir()
    (problem,) = read(path)
    assert problem == f"{path} cannot be read here: unable to open database file"


def test_a_reader_closes_what_it_opened(path: Path) -> None:
    """No descriptor stays open, whichever way the file was read."""
    code = (
        "import os, sys; from contextlib import closing; from coord.stores.open import open_store\n"
        "def count(): return len(os.listdir('/proc/self/fd'))\n"
        "before = count()\n"
        "for _ in range(3):\n"
        "    with closing(open_store('sqlite://' + sys.argv[1])) as database: database.log('local')\n"
        "print(count() - before)"
    )
    done = run_read_only(path.parent, [sys.executable, "-c", code, str(path)])
    assert done.stdout.strip() == "0", done.stderr


def test_opening_a_store_needs_no_write_lock(path: Path) -> None:
    """A store that exists is opened while another process writes."""
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        with closing(open_store(f"sqlite://{path}")) as other:
            assert other.log("local").load(["k"])["k"].value == b"closed"
