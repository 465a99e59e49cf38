"""Damage in a files store, and things that somebody else put into its folder: both are refused."""

import os
import re
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from coord.core.errors import Corrupt, Invalid, Unsupported
from coord.stores.contract import Commit
from coord.stores.files.log import ENTRY_BYTES
from coord.stores.files.store import FilesDatabase, FilesStore
from tests.support.stores.recording_layer import SwiftLayer
from tests.support.stores.steps import value, write

LARGE = b"a large value " * 1000
Damage = Callable[[Path], object]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with six entries, a snapshot after the third, and a large value."""
    path = tmp_path / "store"
    with closing(opened(path)) as database:
        store = database.log("local")
        for number in range(1, 7):
            if number == 3:
                store._bytes_since_base = 1 << 40
            write(store, {"key": b"%d" % number, "large": LARGE}, events=[b"event %d" % number])
            store._finish_snapshot()
    return path


def opened(path: Path) -> FilesDatabase:
    return FilesDatabase(f"file://{path}", str(path), SwiftLayer())


def home(path: Path) -> Path:
    return path / "tenants" / "local"


def entry(path: Path, offset: int) -> Path:
    return home(path) / "log" / "0000000000" / f"{offset:016d}"


def snapshot(path: Path) -> Path:
    (only,) = (home(path) / "snapshots").iterdir()
    return only


def cut_short(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 1)


def flip(file: Path, place: int) -> None:
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(data)


def become_a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def blow_up(file: Path) -> None:
    os.truncate(file, ENTRY_BYTES + 1)


def open_and_read(path: Path) -> None:
    with closing(opened(path)) as database:
        store = database.log("local")
        store.load(["key", "large"])
        store.tail(0, 100)


@pytest.mark.parametrize("offset", [2, 5], ids=["before the snapshot", "after the snapshot"])
@pytest.mark.parametrize(
    "damage",
    [
        cut_short,
        blow_up,
        lambda file: os.truncate(file, 0),
        lambda file: flip(file, 0),
        lambda file: flip(file, 30),
        lambda file: flip(file, -1),
        lambda file: shutil.copy(file.with_name(f"{4:016d}"), file),
        lambda file: file.write_bytes(b""),
        lambda file: file.unlink(),
        lambda file: (file.unlink(), file.mkdir()),
        become_a_pipe,
    ],
    ids=[
        "torn",
        "oversized",
        "empty",
        "magic",
        "checksum",
        "edited",
        "misplaced",
        "blank",
        "missing",
        "folder",
        "pipe",
    ],
)
def test_a_damaged_entry_is_corrupt_and_never_skipped(path: Path, damage: Damage, offset: int) -> None:
    """A torn, edited, misplaced, oversized or missing entry is told by its name; nothing is guessed."""
    damage(entry(path, offset))
    before = sorted(path.rglob("*"))
    with pytest.raises(Corrupt, match=f"{offset:016d}"):
        open_and_read(path)
    assert sorted(path.rglob("*")) == before


def test_a_damaged_entry_stops_a_store_that_is_open(path: Path) -> None:
    """A reader that meets a damaged entry on its way refuses, again and again, and commits nothing."""
    with closing(opened(path)) as reader, closing(opened(path)) as writer:
        stopped, other = reader.log("local"), writer.log("local")
        write(other, {"key": b"7"})
        cut_short(entry(path, 7))
        for _ in range(2):
            with pytest.raises(Corrupt, match=f"{7:016d}"):
                stopped.load(["key"])
        with pytest.raises(Corrupt, match=f"{7:016d}"):
            stopped.commit(Commit(events=[b"on top of what?"]))
    assert not entry(path, 8).exists()


def test_a_gap_is_noticed_even_without_a_mark(path: Path) -> None:
    """An entry missing in the middle is noticed by those behind it, if the lock file is empty too."""
    entry(path, 5).unlink()
    (home(path) / "lock").write_bytes(b"")
    with pytest.raises(Corrupt, match=f"{5:016d} is missing"):
        open_and_read(path)


def test_a_lost_end_is_noticed_by_the_mark(path: Path) -> None:
    """The newest entry missing is noticed, because it was marked as durable."""
    entry(path, 6).unlink()
    with pytest.raises(Corrupt, match=f"{6:016d} is missing"):
        open_and_read(path)


def test_a_lost_log_is_noticed_by_the_snapshot(path: Path) -> None:
    """A snapshot alone is not a store: the entry of its offset belongs to it."""
    for offset in range(1, 7):
        entry(path, offset).unlink()
    (home(path) / "lock").write_bytes(b"")
    with closing(opened(path)) as database, pytest.raises(Corrupt, match="is missing"):
        database.log("local")


def test_an_entry_of_a_newer_format_is_unsupported(path: Path) -> None:
    """An entry of a newer version of coord is neither damage nor to be skipped."""
    file = entry(path, 5)
    file.write_bytes(file.read_bytes().replace(b"coord-entry 3 ", b"coord-entry 4 "))
    with pytest.raises(Unsupported, match="upgrade"):
        open_and_read(path)


@pytest.mark.parametrize(
    "damage",
    [
        cut_short,
        lambda file: os.truncate(file, 0),
        lambda file: flip(file, 3),
        lambda file: flip(file, 40),
        lambda file: flip(file, -1),
        lambda file: os.truncate(file, len(b"coord-snapshot 1\n") + 4 + 32 + 6),
        lambda file: file.rename(file.with_name(f"{4:016d}-{0:016d}")),
        lambda file: (file.unlink(), file.symlink_to("/etc/passwd")),
    ],
    ids=["torn", "empty", "magic", "summary", "chunk", "only the summary", "misnamed", "link"],
)
def test_a_damaged_snapshot_is_corrupt(path: Path, damage: Damage) -> None:
    """Doubt refuses: no older state is taken instead of a damaged snapshot, although the log is complete."""
    damage(snapshot(path))
    with pytest.raises(Corrupt, match=re.escape(snapshot(path).name)):
        open_and_read(path)


@pytest.mark.parametrize(
    "damage",
    [cut_short, lambda file: flip(file, 100), lambda file: file.unlink()],
    ids=["torn", "edited", "missing"],
)
def test_a_damaged_large_value_is_corrupt_when_it_is_asked_for(path: Path, damage: Damage) -> None:
    """A value that is not what its name says is refused; records beside it are not harmed."""
    (file,) = (home(path) / "values").iterdir()
    damage(file)
    with closing(opened(path)) as database:
        store = database.log("local")
        assert value(store, "key") == b"6"
        with pytest.raises(Corrupt, match=file.name):
            store.load(["large"])
        with pytest.raises(Corrupt, match=file.name):
            store.scan("", by="key", limit=10)


@pytest.mark.parametrize(
    "place",
    [
        "format",
        "tenants",
        "tenants/local",
        "tenants/local/lock",
        "tenants/local/log",
        "tenants/local/log/0000000000",
        "tenants/local/log/0000000000/0000000000000005",
        "tenants/local/snapshots",
        "tenants/local/tmp",
        "tenants/local/values",
    ],
)
def test_a_link_in_place_of_anything_is_refused(path: Path, tmp_path: Path, place: str) -> None:
    """No link below the root is followed, even to the very thing that was there."""
    (path / place).rename(tmp_path / "moved")
    (path / place).symlink_to(tmp_path / "moved")
    with pytest.raises(Corrupt, match=re.escape(Path(place).name)):
        open_and_read(path)


def test_a_link_in_place_of_the_next_entry_is_refused(path: Path, tmp_path: Path) -> None:
    """A link planted where the next entry will be: the commit is refused, the target untouched."""
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    entry(path, 7).symlink_to(target)
    with pytest.raises(Corrupt, match=f"{7:016d}"), closing(opened(path)) as database:
        write(database.log("local"), {"key": b"7"})
    assert target.read_bytes() == b"precious"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_a_lock_that_is_no_regular_file_is_refused(path: Path, make: Callable[[Path], None]) -> None:
    """A lock file of the wrong kind is refused, and nobody waits for it."""
    lock = home(path) / "lock"
    lock.unlink()
    make(lock)
    with pytest.raises(Corrupt, match="lock"):
        open_and_read(path)


def test_the_folder_of_another_tenant_is_refused(path: Path) -> None:
    """A tenant's folder that was moved does not pass for another's."""
    home(path).rename(path / "tenants" / "other")
    with closing(opened(path)) as database, pytest.raises(Corrupt, match="other was made for tenant local"):
        database.log("other")


def test_a_store_that_was_removed_while_open_is_corrupt(path: Path) -> None:
    """Reading and writing stop when the folder is gone; an empty memory is not taken for the truth."""
    with closing(opened(path)) as database:
        store = database.log("local")
        shutil.rmtree(path)
        with pytest.raises(Corrupt, match="removed"):
            store.load(["key"])
        with pytest.raises(Corrupt, match="removed"):
            store.commit(Commit(events=[b"into the void"]))
    assert not path.exists()


# The root.


def test_a_folder_of_somebody_else_is_invalid_and_untouched(tmp_path: Path) -> None:
    """A folder that is not empty and has no format file is not ours to write in."""
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(Invalid, match="empty or new folder"):
        opened(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_store_without_its_format_file_is_corrupt(path: Path) -> None:
    """A missing format file does not mean a new store."""
    (path / "format").unlink()
    with pytest.raises(Corrupt, match="format is missing"):
        opened(path)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", Corrupt),
        (b"{", Corrupt),
        (b'{"format": 3}', Corrupt),
        (b'{"format": 3, "store_id": 5, "epoch": 0}', Corrupt),
        (b'{"format": 1, "store_id": "x", "epoch": 0}', Unsupported),
        (b'{"format": 4, "store_id": "x", "epoch": 0}', Unsupported),
        (b" " * 5000, Corrupt),
    ],
)
def test_a_format_file_that_says_something_else_is_refused(
    path: Path, content: bytes, error: type[Exception]
) -> None:
    """STO-12: What cannot be read is damage; what can be read but is newer asks for an upgrade."""
    (path / "format").write_bytes(content)
    with pytest.raises(error):
        opened(path)


@pytest.fixture
def debris(path: Path) -> Path:
    """What processes leave behind that died at a bad moment."""
    tmp = home(path) / "tmp"
    (path / ".format-0123456789abcdef").write_bytes(b"{")
    (tmp / "entry-0123456789abcdef").write_bytes(b"half an entr")
    (tmp / "value-0123456789abcdef").write_bytes(b"half a valu")
    (tmp / "snapshot-0123456789abcdef").write_bytes(b"half a snapsho")
    (home(path) / "log" / "0000000001").mkdir()
    (home(path) / "values" / ("0" * 64)).write_bytes(b"of a commit that never was")
    return tmp


def test_debris_of_dead_processes_is_no_damage_and_goes_away(path: Path, debris: Path) -> None:
    """Leftovers are removed at the next opening, values that nothing refers to at the next trim."""
    with closing(opened(path)) as database:
        store: FilesStore = database.log("local")
        assert value(store, "large") == LARGE
        assert list(debris.iterdir()) == []
        store.trim(4)
    assert len(list((home(path) / "values").iterdir())) == 1


def test_what_a_living_process_writes_is_not_taken_for_debris(path: Path, debris: Path) -> None:
    """Nothing in tmp is removed while another process holds the lock."""
    with closing(opened(path)) as first:
        store = first.log("local")
        (debris / "entry-fedcba9876543210").write_bytes(b"being written")
        with store._exclusive(), closing(opened(path)) as second:
            second.log("local").load(["key"])
            assert [file.name for file in debris.iterdir()] == ["entry-fedcba9876543210"]
