"""What only the files store has: its syncs, large values, snapshots, several processes, and a full disk."""

import errno
import os
import shutil
import stat
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from coord.core.errors import Conflict, Trimmed, Unavailable, Unknown
from coord.stores.contract import Commit, Record
from coord.stores.files.io import FileLayer
from coord.stores.files.store import FilesDatabase, FilesStore
from coord.stores.log import snapshot
from coord.stores.log.snapshot import INLINE_BYTES, Reference, Snapshot, SnapshotId
from coord.stores.log.state import LogState
from tests.support.stores.processes import children
from tests.support.stores.recording_layer import SwiftLayer
from tests.support.stores.steps import head, value, version, write

LARGE = b"large" * 2000


class CountingLayer(SwiftLayer):
    """Counts what it does."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def open(self, name: str, flags: int, folder: int | None = None) -> int:
        self.counts["open"] += 1
        return super().open(name, flags, folder)

    def read(self, file: int, most: int) -> bytes:
        data = super().read(file, most)
        self.counts["bytes read"] += len(data)
        return data

    def names(self, folder: int) -> list[str]:
        names = super().names(folder)
        self.counts["names"] += len(names)
        return names

    def sync_file(self, file: int) -> None:
        self.counts["file sync"] += 1

    def sync_folder(self, folder: int) -> None:
        self.counts["folder sync"] += 1

    def syncs(self) -> tuple[int, int]:
        """Return how many files and folders were synced since the last question."""
        counted = self.counts["file sync"], self.counts["folder sync"]
        self.counts.clear()
        return counted


class FailingLayer(SwiftLayer):
    """Fails in one operation, with one error, as long as it is told to."""

    def __init__(self) -> None:
        self.failing = ""
        self.error = errno.ENOSPC

    def _fail(self, operation: str) -> None:
        if operation == self.failing:
            raise OSError(self.error, os.strerror(self.error))

    def open(self, name: str, flags: int, folder: int | None = None) -> int:
        if flags & os.O_CREAT and name != "lock":
            self._fail("open")
        return super().open(name, flags, folder)

    def write(self, file: int, data: bytes) -> None:
        if self.failing == "write":
            super().write(file, data[: len(data) // 2])
        self._fail("write")
        super().write(file, data)

    def sync_file(self, file: int) -> None:
        self._fail("sync_file")

    def sync_folder(self, folder: int) -> None:
        self._fail("sync_folder")

    def link(self, name: str, folder: int, new_name: str, new_folder: int) -> None:
        self._fail("link")
        super().link(name, folder, new_name, new_folder)

    def make_folder(self, name: str, folder: int | None = None) -> None:
        self._fail("make_folder")
        super().make_folder(name, folder)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def open_store_with(path: Path) -> Iterator[Callable[[FileLayer], FilesStore]]:
    """Return a function that opens the store anew with a layer."""
    with ExitStack() as opened:

        def open_with(layer: FileLayer) -> FilesStore:
            database = FilesDatabase(f"file://{path}", str(path), layer)
            return opened.enter_context(closing(database)).log("local")

        yield open_with


OpenWith = Callable[[FileLayer], FilesStore]


def home(path: Path) -> Path:
    return path / "tenants" / "local"


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def with_snapshot(store: FilesStore, puts: dict[str, bytes]) -> None:
    """Commit, and write a snapshot."""
    store._bytes_since_base = 1 << 40
    write(store, puts)
    store._finish_snapshot()


# Syncs.


def test_a_commit_syncs_one_file_and_one_folder(open_store_with: OpenWith) -> None:
    """Two syncs for an ordinary commit, and none for anything that reads."""
    layer = CountingLayer()
    store = open_store_with(layer)
    write(store, {"a": b"1"})
    layer.syncs()
    for _ in range(3):
        write(store, {"a": b"2", "b": b"3"}, events=[b"event"])
        assert layer.syncs() == (1, 1)
    with pytest.raises(Conflict):
        store.commit(Commit({"a": 0}, {}, ["a"]))
    store.load(["a"])
    store.scan("", by="key", limit=10)
    store.tail(0, 10)
    head(store)
    assert layer.syncs() == (0, 0)


def test_what_else_a_commit_may_have_to_sync(open_store_with: OpenWith) -> None:
    """A new shard is one folder more; large values are a file each and one folder more."""
    layer = CountingLayer()
    store = open_store_with(layer)
    layer.syncs()
    write(store, {"a": b"1"})
    assert layer.syncs() == (1, 2)
    write(store, {"a": LARGE, "b": LARGE + b"!", "c": b"small"})
    assert layer.syncs() == (3, 2)
    for _ in range(997):
        store.commit(Commit(events=[b"event"]))
    assert store.seen.offset == 999
    for thread in threading.enumerate():
        if thread.name == "coord-snapshot":  # it has syncs of its own, and a slow disk takes its time
            thread.join()
    layer.syncs()
    write(store, {"a": b"2"})
    assert layer.syncs() == (1, 2)


def test_a_process_that_comes_and_goes_syncs_no_more_than_its_commit(open_store_with: OpenWith) -> None:
    """Opening, reading and committing in a store that others use costs the two syncs of the commit."""
    write(open_store_with(SwiftLayer()), {"a": b"1"})
    layer = CountingLayer()
    store = open_store_with(layer)
    assert value(store, "a") == b"1"
    write(store, {"a": b"2"})
    assert layer.syncs() == (1, 1)


def test_reading_costs_one_look_when_nothing_is_new(open_store_with: OpenWith) -> None:
    """A reader looks for the next entry by its name, and lists nothing."""
    layer = CountingLayer()
    store = open_store_with(layer)
    write(store, {"a": b"1"})
    layer.counts.clear()
    store.load(["a"])
    assert layer.counts == {"open": 1}


def test_everything_is_private_to_the_user(path: Path, open_store_with: OpenWith) -> None:
    """AMB-31: Folders are 0700 and files 0600, whatever the umask allows."""
    before = os.umask(0)
    try:
        store = open_store_with(SwiftLayer())
        with_snapshot(store, {"a": LARGE})
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(each.stat().st_mode) for each in [path, *path.rglob("*")] if each.is_dir()}
    assert modes == {0o700}
    assert {stat.S_IMODE(each.stat().st_mode) for each in path.rglob("*") if each.is_file()} == {0o600}


# Large values.


def test_large_values_are_kept_by_position(path: Path, open_store_with: OpenWith) -> None:
    """A value over 4 KiB is not in memory, not in the log and not in snapshots, and reads like any other."""
    store = open_store_with(SwiftLayer())
    write(store, {"edge": b"x" * INLINE_BYTES, "large": b"x" * (INLINE_BYTES + 1)})
    with_snapshot(store, {"other": LARGE})
    for each in (store, open_store_with(SwiftLayer())):
        assert type(each._state.records["edge"].value) is bytes
        assert type(each._state.records["large"].value) is Reference
        assert value(each, "large") == b"x" * (INLINE_BYTES + 1)
        found = each.scan("", by="key", limit=10)
        assert [len(record.value or b"") for record in found] == [INLINE_BYTES, INLINE_BYTES + 1, len(LARGE)]
    kept = [*(home(path) / "log").rglob("0*"), *(home(path) / "snapshots").iterdir()]
    assert not any(b"largelarge" in file.read_bytes() for file in kept if file.is_file())


def test_values_that_nothing_refers_to_leave_with_a_trim(path: Path, open_store_with: OpenWith) -> None:
    """A value stays as long as any record has it, and no longer than until the next trim."""
    store = open_store_with(SwiftLayer())
    write(store, {"a": LARGE, "b": LARGE, "c": LARGE + b"!"})
    write(store, {"a": b"small"}, deletes=["c"])
    assert len(names(home(path) / "values")) == 2
    store.trim(2)
    assert len(names(home(path) / "values")) == 1
    assert value(store, "b") == LARGE
    write(store, {"c": LARGE + b"!"})
    assert value(store, "c") == LARGE + b"!"


def test_a_reader_whose_value_was_replaced_and_removed_looks_again(
    path: Path, open_store_with: OpenWith
) -> None:
    """Between finding a reference and reading it, another process may replace the value and trim."""

    class MeddlingLayer(SwiftLayer):
        meddle: Callable[[], object] | None = None

        def read_file(self, name: str, folder: int, most: int) -> bytes:
            if len(name) == 64 and self.meddle is not None:
                meddle, self.meddle = self.meddle, None
                meddle()
            return super().read_file(name, folder, most)

    layer = MeddlingLayer()
    reader, other = open_store_with(layer), open_store_with(SwiftLayer())
    write(other, {"a": LARGE})

    def replace_and_trim() -> None:
        write(other, {"a": LARGE + b"!"})
        other.trim(2)

    layer.meddle = replace_and_trim
    assert value(reader, "a") == LARGE + b"!"
    assert layer.meddle is None


# Snapshots and trim.


def test_snapshots_come_by_themselves_and_two_are_kept(path: Path, open_store_with: OpenWith) -> None:
    """A snapshot is written when the log since the last one weighs as much as it does, 1 MiB at least."""
    store = open_store_with(SwiftLayer())
    for number in range(40):
        write(store, {f"{number}/{part}": os.urandom(4000) for part in range(40)})
        store._finish_snapshot()
    snapshots = [SnapshotId(*map(int, name.split("-"))) for name in names(home(path) / "snapshots")]
    assert len(snapshots) == 2
    assert snapshots[0].offset * 2 >= snapshots[1].offset - 7
    layer = CountingLayer()
    again = open_store_with(layer)
    assert again._state.records == store._state.records
    assert layer.counts["open"] < 20 + 40 - snapshots[1].offset + 20


def test_a_store_that_was_trimmed_reopens_as_it_was(path: Path, open_store_with: OpenWith) -> None:
    """Records, tombstones, floor, lines and the rest of the log survive snapshot, trim and reopening."""
    store = open_store_with(SwiftLayer())
    write(store, {"a": b"1", "b": b"1", "c": b"1"}, at=5)
    write(store, deletes=["a"])
    write(store, {"b": b"2"}, deletes=["c"])
    write(store, {"d": LARGE}, events=[b"last"], at=9)
    store.trim(3)
    again = open_store_with(SwiftLayer())
    assert names(home(path) / "log" / "0000000000") == [f"{3:016d}", f"{4:016d}"]
    assert again.load("abcdx") == store.load("abcdx")
    assert [version(again, key) for key in "abcdx"] == [3, 3, 3, 4, 3]
    assert again.seen == (4, 9)
    assert [entry.offset for entry in again.tail(2, 10)] == [3, 4]
    with pytest.raises(Trimmed):
        again.tail(1, 10)


def test_whole_shards_leave_with_a_trim(path: Path, open_store_with: OpenWith) -> None:
    """Folders of a thousand entries are removed when all of them are forgotten."""
    store = open_store_with(SwiftLayer())
    for _ in range(2001):
        store.commit(Commit(events=[b"event"]))
    store.trim(1500)
    assert names(home(path) / "log") == ["0000000001", "0000000002"]
    assert names(home(path) / "log" / "0000000001")[0] == f"{1500:016d}"
    assert open_store_with(SwiftLayer()).tail(1499, 1)[0].offset == 1500


def test_the_floor_is_known_to_every_process_at_once(open_store_with: OpenWith) -> None:
    """Absence has one version, whichever process is asked, also right after a trim by another."""
    first, second = open_store_with(SwiftLayer()), open_store_with(SwiftLayer())
    write(first, {"a": b"1", "b": b"1"})
    write(first, deletes=["a"])
    write(first, {"b": b"2"})
    assert version(second, "a") == 2
    first.trim(3)
    assert version(second, "a") == version(first, "a") == version(second, "never") == 3
    with pytest.raises(Trimmed):
        second.tail(0, 1)


def test_a_snapshot_of_another_process_is_taken_over(path: Path, open_store_with: OpenWith) -> None:
    """Who finds that another process has written a snapshot lately writes none."""
    first, second = open_store_with(SwiftLayer()), open_store_with(SwiftLayer())
    with_snapshot(first, {"a": b"1"})
    with_snapshot(second, {"a": b"2"})
    assert names(home(path) / "snapshots") == [f"{1:016d}-{0:016d}"]
    with_snapshot(second, {"a": b"3"})
    assert names(home(path) / "snapshots")[-1] == f"{3:016d}-{0:016d}"


def test_a_floor_never_falls_when_a_trim_dies_before_it_tells(path: Path, open_store_with: OpenWith) -> None:
    """A snapshot with a new floor counts from its link on, for those who come and for those who snapshot."""
    first, dying = open_store_with(SwiftLayer()), open_store_with(SwiftLayer())
    write(first, {"a": b"1"})
    write(first, deletes=["a"])
    write(first, {"b": b"1"})
    head(dying)
    state = dying._state
    dying._snapshots.write(Snapshot(SnapshotId(3, 3), state.at, state.records, {}), 0)
    first._base = SnapshotId(9, 0)  # as after a snapshot of its own that failed
    write(first, {"b": b"2"})
    with_snapshot(first, {"b": b"3"})
    assert names(home(path) / "snapshots") == [f"{3:016d}-{3:016d}", f"{5:016d}-{3:016d}"]
    assert version(first, "a") == version(open_store_with(SwiftLayer()), "a") == version(dying, "a") == 3


def test_a_snapshot_that_fails_fails_no_commit(
    path: Path, open_store_with: OpenWith, caplog: pytest.LogCaptureFixture
) -> None:
    """A commit is done when it is done; that no snapshot could follow is only a warning."""

    class NoSnapshots(SwiftLayer):
        def write(self, file: int, data: bytes) -> None:
            if data.startswith(b"coord-snapshot"):
                raise OSError(errno.ENOSPC, "full")
            super().write(file, data)

    store = open_store_with(NoSnapshots())
    with_snapshot(store, {"a": b"1"})
    assert value(open_store_with(SwiftLayer()), "a") == b"1"
    assert names(home(path) / "snapshots") == names(home(path) / "tmp") == []
    assert "cannot write a snapshot" in caplog.text


def test_opening_reads_the_snapshot_and_not_a_million_entries(path: Path, open_store_with: OpenWith) -> None:
    """A store with 1,000,000 past entries and 10,000 live records opens by reading some twenty files."""
    past, live = 1_000_000, 10_000
    store = open_store_with(SwiftLayer())
    store._state = LogState(past - 1)
    store._state.add((Record(f"task/{number}", past - number - 1, b"x" * 300) for number in range(live)), {})
    for shard in range(past // 1000):
        (home(path) / "log" / f"{shard:010d}").mkdir()
    with_snapshot(store, {"newest": b"1"})
    write(store, {"newest": b"2"})

    layer = CountingLayer()
    store = open_store_with(layer)
    assert store.seen.offset == past + 1
    assert len(store.scan("task/", by="key", limit=past)) == live
    assert layer.counts["open"] < 30
    assert layer.counts["names"] < past / 500
    assert write(store, {"newest": b"3"}) == past + 2
    assert layer.syncs() == (1, 1)


# Several processes.


def test_processes_count_together_while_another_trims(path: Path, open_store_with: OpenWith) -> None:
    """Two writers, a trimmer and a reader on one folder: no update lost, no gap, no torn value, ever."""
    times, store = 150, open_store_with(FileLayer())
    arguments = [(str(path), "count", str(times)), (str(path), "count", str(times)), (str(path), "trim", "0")]
    with children("files_child", *arguments) as (one, two, trimmer):
        for child in (one, two, trimmer):
            child.hear_until("ready")
        number = 0
        while number < 2 * times:
            found = store.load(["small", "large"])
            before, number = number, int(found["small"].value or b"0")
            assert number >= before
            assert not number or (found["large"].value or b"").startswith(b"%d." % number)
            assert found["small"].version == found["large"].version == number == store.seen.offset
            trimmer.say("trim")
            trimmer.hear_until("trimmed")
        assert one.finish() == two.finish() == 0
    assert head(store) == 2 * times
    floor = version(store, "never")
    assert [entry.events for entry in store.tail(floor - 1, 1000)] == [
        [b"%d" % number] for number in range(floor, 2 * times + 1)
    ]


def test_a_reader_survives_a_trim_by_another_process(path: Path, open_store_with: OpenWith) -> None:
    """Who lags behind what was trimmed reads the newest snapshot and goes on, with every version right."""
    reader, writer = open_store_with(SwiftLayer()), open_store_with(SwiftLayer())
    write(writer, {"a": b"1", "b": b"1"})
    assert value(reader, "a") == b"1"
    for number in range(2, 30):
        write(writer, {"a": b"%d" % number}, deletes=["b"] if number == 5 else ())
    with children("files_child", (str(path), "trim", "0")) as (trimmer,):
        trimmer.say("trim")
        trimmer.hear_until("trimmed")
    assert not (home(path) / "log" / "0000000000" / f"{2:016d}").exists()
    assert reader.load(["a", "b"]) == {"a": Record("a", 29, b"29"), "b": Record("b", 29, None)}
    assert write(reader, {"b": b"again"}) == 30
    assert value(writer, "b") == b"again"


def test_a_process_killed_while_it_writes_a_snapshot_does_no_harm(
    path: Path, open_store_with: OpenWith
) -> None:
    """Half a snapshot is debris: the commit before it counts, and the next to come removes it."""
    with children("files_child", (str(path), "snapshot", "0")) as (child,):
        child.hear_until("half")
        while_it_lives = open_store_with(SwiftLayer())
        assert value(while_it_lives, "small") == b"1"
        while_it_lives.trim(0)
        assert len(names(home(path) / "tmp")) == 1
        child.kill()
    store = open_store_with(SwiftLayer())
    assert value(store, "small") == b"1"
    assert names(home(path) / "tmp") == []
    with_snapshot(store, {"small": b"2"})
    assert names(home(path) / "snapshots") == [f"{2:016d}-{0:016d}"]


def test_a_lock_that_is_held_too_long_is_unavailable(open_store_with: OpenWith) -> None:
    """Nobody waits for ever for a process that is stopped; reading needs no lock."""
    first, second = open_store_with(SwiftLayer()), open_store_with(SwiftLayer())
    write(first, {"a": b"1"})
    with first._exclusive():
        with pytest.raises(Unavailable, match="lock"), second._lock_file.held(0):
            pass
        assert value(second, "a") == b"1"
    assert write(second, {"a": b"2"}) == 2


def test_a_store_from_before_a_fork_is_refused(
    open_store_with: OpenWith, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child shares its parent's lock, so it must not write with it."""
    store = open_store_with(SwiftLayer())
    write(store, {"a": b"1"})
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: -1)
        with pytest.raises(Unavailable, match="fork"):
            write(store, {"a": b"2"})
    assert write(store, {"a": b"2"}) == 2


# A disk that fails.


@pytest.mark.parametrize("operation", ["open", "write", "sync_file", "link", "make_folder"])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_what_fails_before_the_link_did_not_happen(
    path: Path, open_store_with: OpenWith, operation: str, error: int
) -> None:
    """A full or broken disk is Unavailable: nothing changed, nothing is left, and it can be tried again."""
    layer = FailingLayer()
    store = open_store_with(layer)
    if operation != "make_folder":
        write(store, {"a": b"1"})
    before = store.seen.offset
    layer.failing, layer.error = operation, error
    for puts in ({"a": b"2"}, {"a": LARGE}):
        with pytest.raises(Unavailable):
            write(store, puts)
    assert head(store) == head(open_store_with(SwiftLayer())) == before
    assert names(home(path) / "tmp") == []
    layer.failing = ""
    assert write(store, {"a": b"3"}) == before + 1


def test_what_fails_after_the_link_is_unknown_until_somebody_looks(open_store_with: OpenWith) -> None:
    """An entry whose folder could not be synced may or may not be durable, and is shown to nobody."""
    layer = FailingLayer()
    store = open_store_with(layer)
    write(store, {"a": b"1"})
    layer.failing, layer.error = "sync_folder", errno.EIO
    with pytest.raises(Unknown):
        write(store, {"a": b"2"}, id_=b"mine")
    with pytest.raises(Unavailable):
        store.load(["a"])
    with pytest.raises(Unavailable):
        store.tail(1, 10)
    layer.failing = ""
    assert [entry.id for entry in store.tail(1, 10)] == [b"mine"]
    assert value(store, "a") == b"2"
    assert write(store, {"a": b"3"}) == 3


@pytest.mark.parametrize("operation", ["open", "write", "sync_file", "link", "sync_folder"])
def test_a_trim_that_fails_forgets_nothing(path: Path, open_store_with: OpenWith, operation: str) -> None:
    """Until the floor is durable no entry is removed and no tombstone forgotten."""
    layer = FailingLayer()
    store = open_store_with(layer)
    write(store, {"a": b"1"})
    write(store, deletes=["a"])
    write(store, {"b": b"1"})
    layer.failing = operation
    with pytest.raises(Unavailable):
        store.trim(3)
    layer.failing = ""
    assert [entry.offset for entry in store.tail(0, 10)] == [1, 2, 3]
    assert version(store, "a") == 2
    store.trim(3)
    assert version(store, "a") == 3


@pytest.fixture
def read_only(path: Path) -> Iterator[Path]:
    """A store in a folder that this process may read but not write."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        copy = Path(folder) / "store"
        with closing(FilesDatabase("first", str(path), SwiftLayer())) as database:
            write(database.log("local"), {"a": LARGE})
        shutil.copytree(path, copy)
        for each in [copy, *copy.rglob("*")]:
            each.chmod(0o555 if each.is_dir() else 0o444)
        root = os.geteuid() == 0
        if root:  # to whom permissions mean nothing
            os.seteuid(65534)
        try:
            yield copy
        finally:
            if root:
                os.seteuid(0)
            for each in [copy, *copy.rglob("*")]:
                each.chmod(0o755)


def test_a_read_only_store_can_be_read(read_only: Path) -> None:
    """In a folder that may not be written all reads work, and commits are Unavailable with the reason."""
    with closing(FilesDatabase("second", str(read_only))) as database:
        store = database.log("local")
        assert value(store, "a") == LARGE
        assert head(store) == 1
        for _ in range(2):
            with pytest.raises(Unavailable, match="read-only"):
                write(store, {"a": b"2"})
        with pytest.raises(Unavailable, match="read-only"):
            store.trim(1)
        with pytest.raises(Unavailable):
            database.log("another")
    with pytest.raises(Unavailable):
        FilesDatabase("third", str(read_only.parent / "new"))


def test_missing_folders_are_made(tmp_path: Path) -> None:
    """A store is made at any depth on first open."""
    path = tmp_path / "a" / "b" / "store"
    with closing(FilesDatabase("deep", str(path), SwiftLayer())) as database:
        assert write(database.log("local"), {"a": b"1"}) == 1
    assert names(path) == ["format", "tenants"]


def test_the_constants_that_the_words_above_rest_on() -> None:
    """1 MiB for a snapshot, 1 KiB for the cost of a file, 4 KiB in line."""
    assert (snapshot.SNAPSHOT_AFTER_BYTES, snapshot.ENTRY_WEIGHT, INLINE_BYTES) == (1 << 20, 1 << 10, 4 << 10)
