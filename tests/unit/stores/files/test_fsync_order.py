"""The order of syncs in the files store: whatever moment the power fails, what was acknowledged is there.

A run is recorded operation by operation. For every prefix of the recording, every state that a power cut at
that moment could leave is put on a real disk and opened by the real store. It must be the state after the
last step that was acknowledged, or after the one that was under way: nothing lost, nothing half, no gap, and
debris is never taken for damage. The memory store says what the states are.
"""

import copy
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from coord.core.errors import CoordError, Trimmed, Unknown
from coord.stores.contract import Commit, Put
from coord.stores.files.store import FilesDatabase, FilesStore
from coord.stores.log.store import LogStore
from coord.stores.memory import MemoryStore
from tests.support.stores.recording_layer import (
    SYNCS,
    Disk,
    Operation,
    RecordingLayer,
    SwiftLayer,
    Tree,
    put_on_disk,
)

KEYS = ["a", "b", "c", "large", "twin", "never"]
OLD = 996
Step = Callable[[LogStore], object]


class Recording(NamedTuple):
    """What happened to the disk, from which beginning, and what an observer may see after each step."""

    beginning: Disk
    operations: list[Operation]
    states: list[Any]


def change(puts: dict[str, bytes], *deletes: str) -> Step:
    """A step that commits; every put stands in line."""

    def step(store: LogStore) -> None:
        found = store.load([*puts, *deletes])
        at = store.seen.at + 1
        store.commit(
            Commit(
                {key: record.version for key, record in found.items()},
                {key: Put(value, f"due/{at:04d}") for key, value in puts.items()},
                list(deletes),
                [b"event %d" % at],
                at,
                b"id %d" % at,
            )
        )

    return step


def change_and_snapshot(key: str) -> Step:
    """A step after which a snapshot is written."""

    def step(store: LogStore) -> None:
        if isinstance(store, FilesStore):
            store._bytes_since_base = 1 << 40
        change({key: b"before a snapshot"})(store)
        if isinstance(store, FilesStore):
            store._finish_snapshot()

    return step


def change_and_see(key: str) -> Step:
    """A step whose commit is acknowledged by nobody; but then somebody sees it."""

    def step(store: LogStore) -> None:
        if isinstance(store, FilesStore):
            layer = store._folder.layer
            assert isinstance(layer, RecordingLayer)
            layer.failing_folder_syncs = 1
            with pytest.raises(Unknown):
                change({key: b"seen"})(store)
        else:
            change({key: b"seen"})(store)
        assert store.load([key])[key].value == b"seen"

    return step


def trim(before: int) -> Step:
    return lambda store: store.trim(before)


YOUNG: list[Step] = [
    change({"a": b"1", "b": b"1"}),
    change({"large": b"x" * 5000, "a": b"2"}),
    change_and_snapshot("b"),
    change({"large": b"y" * 5000, "twin": b"y" * 5000}, "a"),
    trim(3),
    change({"a": b"again"}, "twin"),
    change_and_snapshot("c"),
    change_and_snapshot("b"),
    trim(6),
    change_and_see("a"),
    change({"c": b"last"}),
]
OLDER: list[Step] = [
    change({"a": b"1", "large": b"x" * 9000}),
    change({"b": b"1"}),
    change({"c": b"1"}, "a"),
    change({"c": b"2", "large": b"z" * 9000}),
    change({"c": b"3"}),
    trim(OLD + 5),
    change_and_see("b"),
]


def observe(store: LogStore) -> tuple[Any, ...]:
    """Return all that can be seen of a store."""
    floor = store.load(["never"])["never"].version
    return (
        floor < 2 or is_trimmed(store, floor - 2),
        store.load(KEYS),
        store.scan("", by="key", limit=100),
        store.scan("", by="index_key", limit=100),
        store.tail(max(floor - 1, 0), 2000),
        store.seen,
    )


def is_trimmed(store: LogStore, after: int) -> bool:
    try:
        store.tail(after, 1)
    except Trimmed:
        return True
    return False


def grown(store: LogStore) -> None:
    """Commit so often that the next shard is near, and forget nearly all of it."""
    for _ in range(OLD):
        change({"b": b"long ago"})(store)
    store.trim(OLD - 1)


def record(base: Path, steps: list[Step], old: bool) -> Recording:
    """Run the steps in a recorded store and in the model; return the recording."""
    base.mkdir()
    model = MemoryStore()
    if old:
        grown(model)
        with_swift_store(base / "store", grown)
    layer = RecordingLayer(base)
    beginning = Disk(base)
    states = [observe(model)]
    database = FilesDatabase("recorded", str(base / "store"), layer)
    store = database.log("local")
    for number, step in enumerate(steps, 1):
        layer.note("begun", number)
        step(store)
        layer.note("done", number)
        step(model)
        states.append(observe(model))
        assert observe(store) == states[-1]
    database.close()
    return Recording(beginning, layer.operations, states)


def with_swift_store(path: Path, use: Callable[[FilesStore], Any]) -> Any:
    database = FilesDatabase("swift", str(path), SwiftLayer())
    try:
        return use(database.log("local"))
    finally:
        database.close()


def look(store: FilesStore) -> tuple[Any, ...]:
    """Return what can be seen of a reopened store, which must go on from there."""
    seen = observe(store)
    offset = store.commit(Commit(events=[b"goes on"]))
    assert offset == seen[-1].offset + 1
    assert store.tail(offset - 1, 9)[0].events == [b"goes on"]
    return seen


class Loss(NamedTuple):
    """A power cut after which the store was not as it should be."""

    after: int
    what: str


def opened(tree: Tree, base: Path) -> Any:
    """Put a state on a disk and open it; return what can be seen, or the error."""
    folder = base / "cut"
    put_on_disk(tree, folder)
    try:
        return with_swift_store(folder / "store", look)
    except (CoordError, AssertionError) as error:
        return error
    finally:
        shutil.rmtree(folder)


def first_loss(
    recording: Recording, base: Path, known: dict[Any, Any], forgotten: Collection[int] = ()
) -> Loss | None:
    """Cut the power at every moment, in every way; return the first cut that is not survived.

    The syncs at the forgotten places do not happen, as if the store lacked them. `known` is what was seen of
    states of the disk: many cuts leave the same, and it is opened once.
    """
    disk = copy.deepcopy(recording.beginning)
    begun = done = 0
    for place, operation in enumerate(recording.operations):
        if operation.kind == "begun":
            begun = operation.place
        elif operation.kind == "done":
            done = operation.place
        elif place not in forgotten:
            disk.apply(operation)
        if place < min(forgotten, default=0):
            continue
        for tree in disk.crashes(seed=place):
            state = frozenset(tree.items())
            if state not in known:
                known[state] = opened(tree, base)
            if known[state] not in recording.states[done : begun + 1]:
                return Loss(place, str(known[state]))
    return None


def successor(disk: Disk, base: Path) -> tuple[list[Operation], list[Any]]:
    """Let a process go on where another has died; return what it did, and what it saw after each step."""
    folder = base / "successor"
    put_on_disk(disk.as_written(), folder)
    layer = RecordingLayer(folder)
    database = FilesDatabase("successor", str(folder / "store"), layer)
    store = database.log("local")
    seen = []
    for number, step in enumerate([observe, change({"c": b"goes on"}), trim(1 << 40)]):
        step(store)
        seen.append(observe(store))
        layer.note("done", number)
    database.close()
    shutil.rmtree(folder)
    return layer.operations, seen


def first_loss_after_a_death(recording: Recording, base: Path, forgotten: str = "") -> Loss | None:
    """Kill the process at every moment, let another go on, then cut the power: return the first loss.

    The other one forgets to sync this kind of thing.
    """
    disk = copy.deepcopy(recording.beginning)
    survived: set[Any] = set()
    for place, operation in enumerate(recording.operations):
        if operation.kind in ("begun", "done"):
            continue
        disk.apply(operation)
        later = copy.deepcopy(disk)
        operations, seen = successor(later, base)
        for step in operations:
            if step.kind != "done":
                if step.kind not in SYNCS or what_is_synced(step) != forgotten:
                    later.apply(step)
                continue
            for tree in later.crashes(seed=place, thorough=False):
                state = (str(seen[step.place]), frozenset(tree.items()))
                if state not in survived:
                    survived.add(state)
                    found = opened(tree, base)
                    if found != seen[step.place]:
                        return Loss(place, str(found))
    return None


def what_is_synced(operation: Operation) -> str:
    """Name the kind of file or folder, which is the line of code that syncs it."""
    path = re.sub(r"-[0-9a-f]{16}$", "", operation.path)
    return re.sub(r"\d{10}$", "shard", path).removeprefix("store/tenants/local/")


def syncs_of(recording: Recording, steps: list[Step]) -> Iterator[list[int]]:
    """Yield the places of syncs that must not be forgotten: each alone, but for one exception.

    Two snapshots are kept, so the name of one that nobody has trimmed by may be lost, but not of two.
    """
    of_snapshots: list[int] = []
    step = 0
    for place, operation in enumerate(recording.operations):
        if operation.kind == "begun":
            step = operation.place
        elif operation.kind in SYNCS:
            by_the_way = steps[step - 1].__qualname__.startswith("change_and_snapshot")
            if by_the_way and what_is_synced(operation) == "snapshots":
                of_snapshots.append(place)
            else:
                yield [place]
    if of_snapshots:
        yield of_snapshots


@contextmanager
def folder_in_memory() -> Iterator[Path]:
    """A folder in memory if there is such a thing: thousands of small stores are made in it."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as path:
        yield Path(path)


@pytest.fixture
def swift_path() -> Iterator[Path]:
    with folder_in_memory() as path:
        yield path


class Run(NamedTuple):
    """Steps, what they did, and what was seen of the states of the disk that were opened so far."""

    steps: list[Step]
    recording: Recording
    known: dict[Any, Any]


@pytest.fixture(scope="module", params=[(YOUNG, False), (OLDER, True)], ids=["young", "old"])
def run(request: pytest.FixtureRequest) -> Run:
    """One recording for all tests: most states that a forgotten sync can leave are met without one, too."""
    steps, old = request.param
    with folder_in_memory() as path:
        return Run(steps, record(path / "run", steps, old), {})


@pytest.mark.timeout(900)
def test_a_power_cut_at_any_moment_loses_nothing_acknowledged(run: Run, swift_path: Path) -> None:
    """Every prefix of a run, with what is not synced lost, kept, torn or scattered, opens as it should."""
    assert first_loss(run.recording, swift_path, run.known) is None


@pytest.mark.timeout(900)
def test_every_sync_is_needed(run: Run, swift_path: Path) -> None:
    """Mutants: forgetting any one sync of a run, of a file or of a folder, loses something at some cut."""
    mutants = list(syncs_of(run.recording, run.steps))
    survivors = [
        what_is_synced(run.recording.operations[mutant[0]])
        for mutant in mutants
        if first_loss(run.recording, swift_path, run.known, mutant) is None
    ]
    assert len(mutants) > len(run.steps)
    assert survivors == []


@pytest.mark.timeout(900)
def test_what_a_dead_process_left_unsynced_is_durable_before_it_is_shown(run: Run, swift_path: Path) -> None:
    """A process dies, another one looks and goes on, then the power fails: all that it saw is there."""
    assert first_loss_after_a_death(run.recording, swift_path) is None


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "kind", [".", "store", "store/tenants", "store/tenants/local", "log", "log/shard", "snapshots"]
)
def test_a_successor_needs_its_syncs(kind: str, swift_path: Path) -> None:
    """Mutants: a process that does not sync what a dead one may have left unsynced loses what it showed."""
    recording = record(swift_path / "run", YOUNG, old=False)
    assert first_loss_after_a_death(recording, swift_path, kind) is not None
