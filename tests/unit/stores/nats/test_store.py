"""What only the NATS store can get wrong: connections, streams behind its back, snapshots, trims."""

import math
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from coord.core.errors import Conflict, Corrupt, LimitReached, Unavailable
from coord.stores.contract import KEY_BYTES, RECORD_BYTES, Commit, Put, Record, Store
from coord.stores.database import Database
from coord.stores.log import snapshot, sole_writer
from coord.stores.nats.database import NatsDatabase
from coord.stores.open import open_store
from tests.support.servers.nats import NatsServer, admin
from tests.support.servers.tcp_relay import TcpRelay, relaying
from tests.support.stores.steps import everything, head, value, versions, write

AnyDatabase = Database[Any]
Opener = Callable[[str], AnyDatabase]
ONE = Commit({"k": 0}, {"k": Put(b"1")}, id=b"one")
PATIENCE_S = 60


@pytest.fixture
def url(nats_server: NatsServer) -> str:
    return nats_server.fresh_store_url()


@pytest.fixture
def database(url: str, open_database: Opener) -> AnyDatabase:
    return open_database(url)


@pytest.fixture
def store(database: AnyDatabase) -> Store:
    store: Store = database.log("local")
    return store


@pytest.fixture
def relay(nats_server: NatsServer) -> Iterator[TcpRelay]:
    """A way to the server that can be cut."""
    with relaying(nats_server.port) as relay:
        yield relay


@pytest.fixture
def small_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a snapshot be due after a few commits."""
    monkeypatch.setattr(snapshot, "SNAPSHOT_AFTER_BYTES", 4 * snapshot.ENTRY_WEIGHT)


# Connections.


def test_questions_per_call(
    url: str, relay: TcpRelay, open_database: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit is one round trip, and so is a read; a conflict that is not known yet costs a second one.

    A hasty read asks nothing while all that came of late is ours.
    """
    store, other = open_database(relay.url(url)).log("local"), open_database(url).log("local")

    def questions(call: Callable[[], object]) -> int:
        before = relay.questions
        call()
        return relay.questions - before

    def written(value: bytes) -> None:
        write(store, {"k": value})
        store.load(["k"])  # the ring has been counted then

    written(b"0")
    assert questions(lambda: store.load(["k"])) == 1
    assert questions(lambda: store.scan("", by="key", limit=9)) == 1
    assert questions(lambda: store.commit(Commit({"k": 1}, {"k": Put(b"1")}))) <= 2, "with the ring"
    store.load(["k"])
    assert questions(store.now) == 0
    write(other, {"k": b"2"})
    with pytest.raises(Conflict):
        store.commit(Commit({"k": 2}, {"k": Put(b"3")}))
    assert questions(lambda: store.load(["k"])) == 1
    monkeypatch.setattr(sole_writer, "RECENT_MS", math.inf)
    written(b"4")
    assert questions(lambda: store.load(["k"], allow_stale=True)) == 1, "the one before was another's"
    written(b"5")
    assert questions(lambda: store.load(["k"], allow_stale=True)) == 0
    monkeypatch.setattr(sole_writer, "RECENT_MS", 0)
    assert questions(lambda: store.load(["k"], allow_stale=True)) == 1, "that was long ago"


def test_an_entry_that_a_message_cannot_hold_is_refused(store: Store) -> None:
    """Many tiny events are within `commit_bytes`, but more than the server takes: nothing happened."""
    events = [b"x"] * (store.limits.commit_bytes - 1)
    with pytest.raises(LimitReached):
        store.commit(Commit(events=events))
    assert head(store) == 0
    assert store.commit(ONE) == 1


# Streams behind its back.


def test_a_stream_that_is_gone_is_corrupt(url: str, store: Store, open_database: Opener) -> None:
    """A missing log never means "no locks": neither to who has it open, nor to who opens it."""
    write(store, {"k": b"1"})
    with admin(url) as server:
        server.delete(server.address.log_stream("local"))
    with pytest.raises(Corrupt, match="missing"):
        store.load(["k"])
    with pytest.raises(Corrupt, match="missing"):
        open_database(url).log("local")
    assert head(open_database(url).log("other")) == 0


def test_two_who_open_a_new_log_at_once_both_have_it(
    url: str, open_database: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream that another process makes between two looks was not there at the first, and is not gone."""
    one, other = open_database(url), open_database(url)
    assert isinstance(one, NatsDatabase)
    look, looks = one.server.info, []

    def look_and_be_late(stream: str) -> Any:
        looks.append(look(stream))
        if len(looks) == 1:
            write(other.log("local"), {"k": b"1"})
        return looks[-1]

    monkeypatch.setattr(one.server, "info", look_and_be_late)
    assert value(one.log("local"), "k") == b"1"
    assert looks[0] is None, "it was made after the first look"


def test_a_purged_stream_is_corrupt(url: str, store: Store, open_database: Opener) -> None:
    """Messages removed by hand are missing, and that is said."""
    for number in range(3):
        write(store, {"k": b"%d" % number})
    with admin(url) as server:
        server.purge(server.address.log_stream("local"), keep=1)
    with pytest.raises(Corrupt, match="missing"):
        open_database(url).log("local")
    with pytest.raises(Corrupt, match="missing"):
        store.tail(0, 9)


def test_a_durable_log_that_went_back_is_corrupt(url: str, store: Store) -> None:
    """A stream with fewer messages than were seen was restored: nothing goes on as if nothing were."""
    write(store, {"k": b"1"})
    write(store, {"k": b"2"})
    with admin(url) as server:
        first = server.get(server.address.log_stream("local"), 1) or b""
        server.delete(server.address.log_stream("local"))
        server.create(server.address.log_stream("local"), [server.address.log_subject("local")], 1)
        server.put(server.address.log_subject("local"), first, {})
    for call in (lambda: store.load(["k"]), lambda: write(store, {"k": b"3"})):
        with pytest.raises(Corrupt, match="went back"):
            call()


def test_what_coord_did_not_write_is_corrupt(url: str, store: Store) -> None:
    """A message that is no entry is never skipped."""
    write(store, {"k": b"1"})
    with admin(url) as server:
        server.put(server.address.log_subject("local"), b"not ours", {})
    with pytest.raises(Corrupt, match="damaged"):
        store.load(["k"])


# Snapshots and trims.


def past(store: Store, count: int) -> None:
    for number in range(count):
        write(store, {f"k{number % 7}": b"%d" % number}, deletes=[f"d{number % 5}"])


@pytest.mark.usefixtures("small_snapshots")
def test_opening_does_not_read_the_whole_past(url: str, relay: TcpRelay) -> None:
    """A store with a long past is opened by its newest snapshot and the few messages after it."""
    store: Any
    with closing(open_store(url)) as database:
        store = database.log("local")
        past(store, 150)
        store._finish_snapshot()  # a busy machine may not have finished it: the next one begins then
        past(store, 50)
        before = everything(store)
    with closing(open_store(relay.url(url))) as database:
        store = database.log("local")
        assert store._sequence - store._base_sequence < 100
        _, newest = store._snapshots.newest()
        former = store._snapshots.fitting(lambda manifest: manifest.sequence < newest.sequence)
        assert store._snapshots.read(former).offset == former.offset, "the one before it is kept whole"
        assert everything(store) == before
    with admin(url) as server:
        info = server.info(server.address.stream)
        assert info is not None
        assert info.state.messages < 12, "old snapshots are removed"


@pytest.mark.usefixtures("small_snapshots")
def test_who_fell_behind_a_trim_begins_anew(url: str, open_database: Opener) -> None:
    """Messages that somebody has not read are removed: it goes on with the snapshot that covers them."""
    ahead, behind = open_database(url).log("local"), open_database(url).log("local")
    past(ahead, 3)
    assert head(behind) == 3
    past(ahead, 40)
    ahead.trim(40)
    with admin(url) as server:
        info = server.info(server.address.log_stream("local"))
        assert info is not None
        assert info.state.first_seq == 40
    assert versions(behind, "k1", "never") == versions(ahead, "k1", "never")
    assert everything(behind, 40) == everything(ahead, 40) == everything(open_database(url).log("local"), 40)
    assert write(behind, {"k": b"1"}) == 44


def test_a_trim_that_died_is_finished_by_the_next(
    url: str, store: Store, open_database: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The floor is raised first; what lies below leaves once a snapshot covers it, now or later."""
    past(store, 9)

    def die(*_: object, **__: object) -> None:
        raise Unavailable("killed")

    monkeypatch.setattr("coord.stores.nats.jetstream.NatsServer.purge", die)
    with pytest.raises(Unavailable, match="killed"):
        store.trim(5)
    monkeypatch.undo()
    other = open_database(url).log("local")
    assert [entry.offset for entry in other.tail(5, 99)] == [6, 7, 8, 9]
    other.trim(5)
    with admin(url) as server:
        info = server.info(server.address.log_stream("local"))
        assert info is not None
        assert info.state.first_seq == 5
    assert everything(other, 5) == everything(store, 5)


@pytest.mark.parametrize(
    ("value", "pause_ms", "due"),
    [(10_000, 0, 9), (10_000, PATIENCE_S * 1000, 22), (10, 0, 90), (10, PATIENCE_S * 1000, 90)],
)
def test_a_snapshot_waits_for_a_pause(
    value: int, pause_ms: int, due: int, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between commits without a pause it waits for three times the bytes, but hardly for more entries."""
    monkeypatch.setattr(snapshot, "SNAPSHOT_AFTER_BYTES", 95_000)
    monkeypatch.setattr(sole_writer, "RECENT_MS", pause_ms)
    commits = 0
    while store._snapshot_writer is None and commits < 100:
        commits += 1
        write(store, {"k": b"1" * value})
    assert commits == pytest.approx(due, abs=2)
    store._snapshot_writer.join()
    _, manifest = store._snapshots.newest()
    assert manifest.offset == head(store)


def test_of_two_snapshot_writers_one_gives_up(url: str, open_database: Opener) -> None:
    """Nobody replaces a snapshot that came after it looked; what is there can be read whole."""
    one: Any = open_database(url).log("local")
    past(one, 20)
    other: Any = open_database(url).log("local")
    older = one._snapshot(one._state.records, one._state.tombstones)
    put = other._server.put
    done: list[int | None] = []

    def overtaken(*values: Any, **more: Any) -> int | None:
        if not done:
            done.append(one._snapshots.write(older, one._fits))
        written: int | None = put(*values, **more)
        return written

    other._server.put = overtaken
    newer = other._snapshot(other._state.records, other._state.tombstones)
    assert other._snapshots.write(newer, other._fits) is None
    assert done[0]
    assert everything(open_database(url).log("local")) == everything(one)


def test_a_snapshot_of_anything_fits_into_messages(database: AnyDatabase) -> None:
    """Many records go into one message, and fewer where keys, lines or values are long: none is too large."""
    store: Any = database.log("local")
    past(store, 3)
    names = [f"{number:0{KEY_BYTES}}" for number in range(1_100)]
    kept = [Record(name, 1, b"1", name) for name in names]
    kept += [Record(f"middle-{number}", 2, b"2" * 4096) for number in range(300)]
    kept += [Record(f"large-{number}", 3, b"3" * RECORD_BYTES) for number in range(3)]
    records, tombstones = {record.key: record for record in kept}, dict.fromkeys(names, 3)
    assert store._snapshots.write(store._snapshot(records, tombstones), store._fits)
    _, manifest = store._snapshots.newest()
    found = store._snapshots.read(manifest)
    assert (found.records, found.tombstones) == (records, tombstones)
    small = {f"small-{number}": Record(f"small-{number}", 4, b"4") for number in range(1_000)}
    assert store._snapshots.write(store._snapshot(small, {}), store._fits)
    assert len(store._snapshots.newest()[1].parts) == 1
