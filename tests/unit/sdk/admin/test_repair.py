"""`coord doctor --repair`: what is proven stays, what is not is named, and no fence returns."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from coord.core.errors import Corrupt, Invalid, Refused, Unavailable, Unsupported
from coord.core.identity import Caller
from coord.core.locks.commands import AcquireLocks, ListLocks
from coord.core.tasks.commands import ClaimTask, SubmitResult
from coord.engine.engine import Engine
from coord.host.caller import Flags
from coord.host.store_location import find_location, local_path
from coord.sdk.admin import repair as repair_module
from coord.sdk.admin.repair import repair_store
from coord.sdk.client.open import initialise, open_location
from coord.sdk.log_reader import first_offset, is_beginning
from coord.stores.database import EPOCH_BITS
from coord.stores.sqlite import store as sqlite
from tests.support.consent import write_configuration
from tests.support.git_folders import made_repository
from tests.support.stores.steps import write

ADA = Caller("ada")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.fixture
def repository(tmp_path: Path, environ: dict[str, str]) -> Path:
    """A repository with two locks of ada."""
    folder = tmp_path / "repository"

    made_repository(folder)
    initialise(str(folder), environ)
    for name in ("file:a.py", "file:b.py"):
        in_engine(folder, environ, partial(lock, name))
    return folder


def lock(name: str, engine: Engine) -> Any:
    return engine.call(AcquireLocks(ADA, "r", (name,)))


def in_engine(folder: Path, environ: dict[str, str], act: Callable[[Engine], Any]) -> Any:
    with closing(open_location(find_location(str(folder), environ))[0]) as database:
        return act(Engine(database, "local"))


def locks(folder: Path, environ: dict[str, str]) -> list[str]:
    found: list[str] = in_engine(
        folder, environ, lambda engine: [lock.resource for lock in engine.call(ListLocks(ADA))]
    )
    return found


def store_of(folder: Path, environ: dict[str, str]) -> Path:
    return Path(local_path(find_location(str(folder), environ).url))


def damage(folder: Path, environ: dict[str, str], statement: str) -> None:
    with closing(sqlite3.connect(store_of(folder, environ), isolation_level=None)) as sql:
        assert sql.execute(statement).rowcount > 0
    with pytest.raises(Corrupt):
        locks(folder, environ)


def repair(folder: Path, environ: dict[str, str]) -> Any:
    return repair_store(str(folder), environ, Flags())


def test_a_repair_keeps_what_is_proven(repository: Path, environ: dict[str, str]) -> None:
    """A changed record is lost and named; the others stay, and the damaged file is kept."""
    damage(repository, environ, "UPDATE record SET value = '{}' WHERE key LIKE 'lock/%a.py%'")
    damaged = store_of(repository, environ).read_bytes()
    done = repair(repository, environ)
    assert locks(repository, environ) == ["file:b.py"]
    assert done.lost == {"lock": 1}
    assert Path(done.damaged_copy).read_bytes() == damaged
    assert Path(done.damaged_copy).stat().st_mode & 0o777 == 0o600


def test_a_repair_counts_what_has_vanished(repository: Path, environ: dict[str, str]) -> None:
    """Nobody knows the key of a row that is gone, but the log has counted it."""
    damage(repository, environ, "DELETE FROM record WHERE key LIKE 'lock/%a.py%'")
    assert repair(repository, environ).lost == {"unknown": 1}


def test_no_fence_returns_after_a_repair(repository: Path, environ: dict[str, str]) -> None:
    """New fences are above all earlier ones, and the pin refuses the damaged store."""
    damage(repository, environ, "DELETE FROM record WHERE key LIKE 'lock/%a.py%'")
    done = repair(repository, environ)
    reply = in_engine(
        repository, environ, lambda engine: engine.call(AcquireLocks(Caller("bob"), "r", ("file:a.py",)))
    )
    assert reply.locks[0].fence > 1 << EPOCH_BITS
    assert find_location(str(repository), environ).epoch == 1
    Path(done.damaged_copy).replace(store_of(repository, environ))
    with pytest.raises(Corrupt, match="went back from epoch 1 to 0"):
        locks(repository, environ)


def test_the_log_of_a_new_store_is_whole_and_a_repaired_one_is_not(
    repository: Path, environ: dict[str, str]
) -> None:
    """Both begin in a later epoch; only the repaired one has records that its log does not explain."""

    def is_whole() -> bool:
        with closing(open_location(find_location(str(repository), environ))[0]) as database:
            return is_beginning(first_offset(database.log("local")))

    assert is_whole()
    damage(repository, environ, "DELETE FROM record WHERE key LIKE 'lock/%a.py%'")
    repair(repository, environ)
    assert not is_whole()
    Path(store_of(repository, environ)).unlink()
    initialise(str(repository), environ, new_store=True)
    for _ in range(2):
        assert is_whole()
        in_engine(repository, environ, partial(lock, "file:a.py"))


def test_a_whole_store_is_not_repaired(repository: Path, environ: dict[str, str]) -> None:
    """Raising the epoch of a whole store would only take locks away."""
    with pytest.raises(Invalid, match="nothing to repair"):
        repair(repository, environ)
    assert locks(repository, environ) == ["file:a.py", "file:b.py"]


def test_an_agent_may_not_repair(repository: Path, environ: dict[str, str]) -> None:
    """A repair gives up locks of others, so a person decides."""
    damage(repository, environ, "DELETE FROM record WHERE key LIKE 'lock/%a.py%'")
    with pytest.raises(Refused, match="only a person"):
        repair(repository, {**environ, "COORD_SESSION_ID": "ada"})


def test_a_new_store_replaces_one_that_cannot_be_read(repository: Path, environ: dict[str, str]) -> None:
    """The way out of every damage; the damaged file is kept."""
    path = store_of(repository, environ)
    path.write_bytes(bytes(4096) + path.read_bytes()[4096:])
    with pytest.raises(Corrupt, match="coord init --new-store"):
        repair(repository, environ)
    initialise(str(repository), environ, new_store=True)
    assert locks(repository, environ) == []
    assert len(list(path.parent.glob("coord.db.damaged-*"))) == 1


def test_a_new_store_replaces_one_with_a_vanished_record(repository: Path, environ: dict[str, str]) -> None:
    """The file opens, its log does not: it is not whole."""
    damage(repository, environ, "DELETE FROM record WHERE key LIKE 'lock/%a.py%'")
    initialise(str(repository), environ, new_store=True)
    assert locks(repository, environ) == []


def old_format(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET value = '2' WHERE name = 'format'")


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def a_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def only_a_log(path: Path) -> None:
    path.with_name("coord.db-wal").write_bytes(b"of the lost file")
    path.unlink()


@pytest.mark.parametrize("harm", [old_format, a_folder, a_pipe, a_link, only_a_log])
def test_a_new_store_replaces_whatever_is_in_its_place(
    repository: Path, environ: dict[str, str], harm: Callable[[Path], None]
) -> None:
    """Each error names `coord init --new-store`, and that is no dead end; what was there is kept."""
    path = store_of(repository, environ)
    harm(path)
    with pytest.raises((Corrupt, Unsupported)) as caught:
        locks(repository, environ)
    assert "coord init --new-store" in caught.value.hint
    initialise(str(repository), environ, new_store=True)
    assert locks(repository, environ) == []
    assert len(list(path.parent.glob("coord.db.damaged-*"))) == 1


def test_a_newer_format_is_never_set_aside(repository: Path, environ: dict[str, str]) -> None:
    """Others use it with a newer coord: only an upgrade helps."""
    with closing(sqlite3.connect(store_of(repository, environ))) as connection, connection:
        connection.execute("UPDATE meta SET value = '99' WHERE name = 'format'")
    with pytest.raises(Unsupported, match="upgrade coord"):
        initialise(str(repository), environ, new_store=True)


def test_the_store_of_an_older_coord_gets_a_successor(repository: Path, environ: dict[str, str]) -> None:
    """It was beside the pin; the new one is in the folder of the store, and the old file stays."""
    path, pin = store_of(repository, environ), repository / ".git/coord/coord.id"
    old_format(path)
    earlier = path.rename(repository / ".git/coord/coord.db")
    for copy in (pin, repository / ".git/coord.id"):
        copy.write_text(copy.read_text().replace("./store/coord.db", "./coord.db"))
    with pytest.raises(Unsupported, match="has format 2") as caught:
        locks(repository, environ)
    assert "coord init --new-store" in caught.value.hint
    assert initialise(str(repository), environ, new_store=True).epoch == 1
    assert store_of(repository, environ) == path
    assert locks(repository, environ) == []
    assert earlier.exists()


def test_the_store_of_a_user_gets_a_successor(tmp_path: Path, environ: dict[str, str]) -> None:
    """Outside of repositories; where no store is damaged, init still needs a repository."""
    with pytest.raises(Invalid, match="not in a git repository"):
        initialise(str(tmp_path), environ, new_store=True)
    assert locks(tmp_path, environ) == []
    store_of(tmp_path, environ).unlink()
    with pytest.raises(Corrupt, match="coord init --new-store, outside of repositories"):
        locks(tmp_path, environ)
    initialise(str(tmp_path), environ, new_store=True)
    assert locks(tmp_path, environ) == []


def test_a_missing_store_is_not_repaired_but_replaced(repository: Path, environ: dict[str, str]) -> None:
    store_of(repository, environ).unlink()
    with pytest.raises(Invalid, match=r"no store to repair.*coord init --new-store"):
        repair(repository, environ)


def test_a_damaged_pin_names_its_copy(repository: Path, environ: dict[str, str]) -> None:
    pin = repository / ".git/coord/coord.id"
    pin.write_text("x")
    with pytest.raises(Corrupt) as caught:
        locks(repository, environ)
    assert caught.value.hint == "coord doctor --fix restores it from its copy"


OPENS = "import sqlite3, sys; sqlite3.connect(sys.argv[1], 0).execute('SELECT * FROM meta')"
VANISHED = "DELETE FROM record WHERE key LIKE 'lock/%a.py%'"


def test_a_repair_keeps_running_writers_out(
    repository: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a process committed during a repair would be answered, and lost: it is refused, then and later."""
    monkeypatch.setattr(sqlite, "BUSY_TRIES", 1)
    with closing(open_location(find_location(str(repository), environ))[0]) as running:
        log = running.log("local")
        damage(repository, environ, VANISHED)
        rebuild = repair_module._rebuild

        def meanwhile(*args: Any) -> Any:
            done = rebuild(*args)
            with pytest.raises(Unavailable, match="locked"):
                write(log, {"late": b"x"})
            opened = [sys.executable, "-c", OPENS, str(store_of(repository, environ))]
            assert b"locked" in subprocess.run(opened, capture_output=True, check=False).stderr
            return done

        monkeypatch.setattr(repair_module, "_rebuild", meanwhile)
        done = repair(repository, environ)
        with pytest.raises(Corrupt, match="removed or replaced"):
            write(log, {"later": b"x"})
    assert (done.lost, locks(repository, environ)) == ({"unknown": 1}, ["file:b.py"])


def test_a_writer_that_waited_for_a_repair_is_refused(
    repository: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets the write lock of the file that was set aside, where a commit would be lost."""
    database: Any = open_location(find_location(str(repository), environ))[0]
    with closing(database):
        log = database.log("local")
        damage(repository, environ, VANISHED)
        execute = database.execute_when_free

        def after_repair(statement: str, values: tuple[object, ...] = ()) -> None:
            if statement == "BEGIN IMMEDIATE":
                repair(repository, environ)
            execute(statement, values)

        monkeypatch.setattr(database, "execute_when_free", after_repair)
        with pytest.raises(Corrupt, match="removed or replaced"):
            write(log, {"late": b"x"})
    assert locks(repository, environ) == ["file:b.py"]


def test_the_second_of_two_repairs_changes_nothing(
    repository: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both found the damage; the first has replaced the file when the second gets to it."""
    damage(repository, environ, VANISHED)
    check = repair_module._check_damaged

    def slower(*args: Any) -> Any:
        found = check(*args)
        monkeypatch.setattr(repair_module, "_check_damaged", check)
        repair(repository, environ)
        return found

    monkeypatch.setattr(repair_module, "_check_damaged", slower)
    with pytest.raises(Unavailable, match="replaced by another process"):
        repair(repository, environ)
    assert find_location(str(repository), environ).epoch == 1


def test_a_repair_that_fails_leaves_the_file_as_it_was(
    repository: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the files beside it: an empty -shm file would stop those who may only read."""
    damage(repository, environ, VANISHED)
    path = store_of(repository, environ)
    before = path.read_bytes()
    monkeypatch.setattr(repair_module, "_rebuild", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        repair(repository, environ)
    assert path.read_bytes() == before
    assert not path.with_name("coord.db-shm").exists()


def test_a_repair_keeps_the_write_ahead_log_with_the_damaged_file(
    repository: Path, environ: dict[str, str]
) -> None:
    """The WAL of the damaged file may not stay beside the new one; its commits are part of what is proven."""
    with closing(open_location(find_location(str(repository), environ))[0]) as running:
        Engine(running, "local").call(AcquireLocks(ADA, "r2", ("file:c.py",)))
        damage(repository, environ, VANISHED)
        done = repair(repository, environ)
        assert Path(f"{done.damaged_copy}-wal").stat().st_size > 0
    assert locks(repository, environ) == ["file:b.py", "file:c.py"]


def test_a_repair_reads_from_both_ends(repository: Path, environ: dict[str, str]) -> None:
    """Of records behind a damaged page all are kept that can be reached from the other end."""
    with closing(open_location(find_location(str(repository), environ))[0]) as database:
        for number in range(40):
            write(database.log("local"), {f"big/{number:02}": bytes(1000)})
    path = store_of(repository, environ)
    data = path.read_bytes()
    at = data.index(b"big/20") // 4096 * 4096
    path.write_bytes(data[:at] + bytes(4096) + data[at + 4096 :])
    done = repair(repository, environ)
    assert 0 < done.lost["unknown"] < 20
    with closing(open_location(find_location(str(repository), environ))[0]) as database:
        kept = database.log("local").load(["big/00", "big/39"])
    assert all(record.value is not None for record in kept.values())


@pytest.mark.parametrize(
    "also_lost",
    ["DELETE FROM record WHERE key LIKE 'history/%'", 'DELETE FROM entry WHERE "offset" > 2'],
    ids=["the log names it", "its history names it"],
)
def test_no_generation_returns_after_a_repair(
    repository: Path, environ: dict[str, str], also_lost: str
) -> None:
    """A lost task goes on above what its history, or the log, names: its holder's result is refused."""

    def claim(engine: Engine, session: str) -> Any:
        return engine.call(ClaimTask("local", "p", "t", session, session, 60_000, force=True))

    for session in ("ada", "bob", "ada"):
        in_engine(repository, environ, partial(claim, session=session))
    damage(repository, environ, "DELETE FROM record WHERE key = 'task/p/t'")
    with closing(sqlite3.connect(store_of(repository, environ), isolation_level=None)) as connection:
        assert connection.execute(also_lost).rowcount > 0
    repair(repository, environ)
    submit = SubmitResult("local", "p", "t", "ada", 3, b"{}", "")
    assert not in_engine(repository, environ, lambda engine: engine.call(submit)).accepted
    assert in_engine(repository, environ, partial(claim, session="ada")).claim.generation == 4


def test_the_server_store_of_an_older_coord_gets_a_successor_elsewhere(
    repository: Path, environ: dict[str, str], make_url: Callable[[str], str]
) -> None:
    """It stays where it is, for those who still use it; each error names the next step, which works."""
    older, newer = make_url("redis"), make_url("redis")
    here = Path(str(made_repository(repository.parent / "other").root))
    pinned = initialise(str(here), environ, url=older)
    address = older.partition("?")[0]
    with closing(redis.Redis.from_url(address)) as server:
        server.hset(f"{{{older.partition('prefix=')[2]}}}:meta", "format", "2")
    for call in (partial(locks, here, environ), partial(initialise, str(here), environ, new_store=True)):
        with pytest.raises(Unsupported, match=r"format 2.*coord init --new-store --url URL"):
            call()
    moved = initialise(str(here), environ, url=newer, new_store=True)
    assert (moved.url, moved.epoch, moved.repository_id) == (newer, 1, pinned.repository_id)
    assert locks(here, environ) == []
    with pytest.raises(Invalid, match="the pinned store is intact"):
        initialise(str(here), environ, url=make_url("redis"), new_store=True)


def test_a_lost_store_gets_a_successor_where_coord_toml_says(
    repository: Path, environ: dict[str, str], tmp_path: Path
) -> None:
    """While the pinned store is intact, another one is refused; an unconfirmed file names none."""
    elsewhere = f"sqlite://{tmp_path}/elsewhere.db"
    (repository / "coord.toml").write_text(f'[store]\nurl = "{elsewhere}"\n')
    with pytest.raises(Invalid, match="nobody has confirmed"):
        initialise(str(repository), environ, new_store=True)
    write_configuration(repository, f'[store]\nurl = "{elsewhere}"\n', environ)
    with pytest.raises(Invalid, match="the pinned store is intact"):
        initialise(str(repository), environ, new_store=True)
    (repository / ".git/coord/store/coord.db").unlink()
    assert initialise(str(repository), environ, new_store=True).url == elsewhere
    assert locks(repository, environ) == []
