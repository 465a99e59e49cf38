"""A NATS server that forgot what it acknowledged: no offset, and so no fence, is ever issued twice."""

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import coord
from coord.core.errors import Conflict, Corrupt
from coord.stores.contract import Commit, Put
from coord.stores.database import EPOCH_BITS, Database
from coord.stores.log import snapshot
from coord.stores.nats.entries import encode_entry, new_token
from tests.support.servers.nats import NatsServer, admin
from tests.support.servers.server import running
from tests.support.stores.steps import everything, head, value, write

Opener = Callable[[str], Database[Any]]
FIRST_OF_EPOCH = 1 << EPOCH_BITS


@pytest.fixture
def server() -> Iterator[NatsServer]:
    with running(NatsServer) as server:
        yield server


@pytest.fixture
def url(server: NatsServer) -> str:
    """A store that nobody called durable."""
    url = server.blank_url()
    coord.install(url)
    return url


def restore_older_copy(server: NatsServer) -> None:
    """What a power cut does to a server that does not sync: it comes back with what it had some time ago."""
    server.kill()
    shutil.rmtree(server.folder / "data")
    shutil.move(server.folder / "copy", server.folder / "data")
    server.restart()


def restore_older_log(server: NatsServer) -> None:
    """What a power cut may do, too: streams are synced apart, so snapshots stay that the log is behind."""
    server.kill()
    (log,) = (server.folder / "data").rglob("*-log-local")
    shutil.rmtree(log)
    shutil.copytree(server.folder / "copy" / log.relative_to(server.folder / "data"), log)
    for path in [log, *log.rglob("*")]:
        server.own(path)
    server.restart()


def copy_data(server: NatsServer) -> None:
    server.stop()
    shutil.copytree(server.folder / "data", server.folder / "copy")
    for path in [server.folder / "copy", *(server.folder / "copy").rglob("*")]:
        server.own(path)
    server.restart()


def test_offsets_count_from_1_while_the_server_runs(url: str, open_database: Opener) -> None:
    """Without a restart an epoch goes on, whoever opens the store."""
    assert [write(open_database(url).log("local"), {"k": b"x"}) for _ in range(3)] == [1, 2, 3]
    database = open_database(url)
    assert (database.epoch, database.log("local").limits.durable) == (0, False)


def test_no_offset_is_issued_again_after_a_loss(server: NatsServer, url: str, open_database: Opener) -> None:
    """The server forgets acknowledged commits: whoever comes first raises the epoch, and all follow."""
    survivor = open_database(url).log("local")
    write(survivor, {"kept": b"1"})
    copy_data(server)
    issued = [write(survivor, {"lost": b"%d" % number}) for number in range(5)]
    assert value(survivor, "lost") == b"4"
    restore_older_copy(server)
    fresh = open_database(url)
    again = [write(fresh.log("local"), {"new": b"%d" % number}) for number in range(6)]
    assert again == list(range(again[0], again[0] + 6)), "without gaps within an epoch"
    assert min(again) > max(issued)
    assert open_database(url).epoch == fresh.epoch > 0
    assert (value(survivor, "lost"), value(survivor, "new")) == (None, b"5")
    assert everything(survivor) == everything(open_database(url).log("local"))
    assert write(survivor, {"lost": b"again"}) == again[-1] + 1


def test_who_remembers_the_lost_is_refused(server: NatsServer, url: str, open_database: Opener) -> None:
    """A commit decided on what was forgotten conflicts, although the stream is as long as it was again."""
    survivor = open_database(url).log("local")
    write(survivor, {"k": b"1"})
    copy_data(server)
    seen = write(survivor, {"k": b"lost"})
    restore_older_copy(server)
    fresh = open_database(url).log("local")
    write(fresh, {"other": b"1"})
    with pytest.raises(Conflict):
        survivor.commit(Commit({"k": seen}, {"k": Put(b"2")}))
    assert value(survivor, "k") == b"1"


def test_a_second_loss_takes_the_raised_epoch_along(
    server: NatsServer, url: str, open_database: Opener
) -> None:
    """Even the mark that raised the epoch is forgotten: the next one begins above all that was issued."""
    write(open_database(url).log("local"), {"k": b"1"})
    copy_data(server)
    shutil.copytree(server.folder / "data", server.folder / "once more")
    first = [write(open_database(url).log("local"), {"k": b"%d" % number}) for number in range(5)]
    assert first[0] > FIRST_OF_EPOCH
    shutil.rmtree(server.folder / "copy")
    (server.folder / "once more").rename(server.folder / "copy")
    for path in [server.folder / "copy", *(server.folder / "copy").rglob("*")]:
        server.own(path)
    restore_older_copy(server)
    assert write(open_database(url).log("local"), {"k": b"again"}) > max(first)


def test_what_was_decided_on_the_forgotten_is_void(url: str, open_database: Opener) -> None:
    """A message that does not follow the one before it counts for nobody, and offsets go on without it."""
    store = open_database(url).log("local")
    write(store, {"k": b"1"})
    stray = encode_entry(new_token(), new_token(), 2, Commit(puts={"k": Put(b"stray")}, events=[b"stray"]))
    with admin(url) as client:
        client.put(client.address.log_subject("local"), stray, {})
    other = open_database(url).log("local")
    assert (value(store, "k"), head(store), head(other)) == (b"1", 1, 1)
    assert write(store, {"k": b"2"}) == 2
    assert [entry.offset for entry in other.tail(0, 9)] == [1, 2]
    assert everything(store) == everything(other)


@pytest.mark.parametrize("commits", [1, 3])
def test_who_remembers_another_past_follows_the_stream(url: str, commits: int, open_database: Opener) -> None:
    """Messages were taken back while a process had them, and as many or more came: it gives them up."""
    store = open_database(url).log("local")
    write(store, {"k": b"1"})
    with admin(url) as client:
        stream, subject = client.address.log_stream("local"), client.address.log_subject("local")
        kept = [data or b"" for data in client.get_all(stream, [1, 2])]
        write(store, {"k": b"taken back"})
        client.delete(stream)
        client.create(stream, [subject], 1)
        for data in kept:
            client.put(subject, data, {})
    other = open_database(url).log("local")
    assert value(other, "k") == b"1"
    for number in range(commits):
        write(other, {"k": b"other %d" % number})
    assert value(store, "k") == b"other %d" % (commits - 1)
    assert write(store, {"k": b"2"}) == head(other)
    assert everything(store) == everything(other)


def test_a_trim_relies_on_no_snapshot_of_the_forgotten(
    server: NatsServer, url: str, open_database: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot of what was forgotten is not the newest: a trim after it leaves a log that can be opened."""
    store: Any = open_database(url).log("local")
    write(store, {"k": b"1"})
    copy_data(server)
    monkeypatch.setattr(snapshot, "SNAPSHOT_AFTER_BYTES", 4 * snapshot.ENTRY_WEIGHT)
    for number in range(30):
        write(store, {"lost": b"%d" % number})
    store.close()
    restore_older_log(server)
    store = open_database(url).log("local")
    assert store._snapshots.newest()[1].sequence > store._sequence, "the snapshot is still there"
    for number in range(5):
        write(store, {"k": b"%d" % number})
    store.trim(head(store))
    assert everything(open_database(url).log("local"), head(store)) == everything(store, head(store))


def test_an_empty_log_beside_a_snapshot_is_refused(url: str, open_database: Opener) -> None:
    """Where the server has lost the whole log, what is missing is not taken for "nobody holds anything"."""
    store = open_database(url).log("local")
    store.trim(write(store, {"k": b"1"}))
    with admin(url) as client:
        stream, subject = client.address.log_stream("local"), client.address.log_subject("local")
        client.delete(stream)
        client.create(stream, [subject], 1)
    with pytest.raises(Corrupt):
        open_database(url).log("local")
    with pytest.raises(Corrupt):
        store.load(["k"])


def test_a_new_log_after_a_restart_begins_above(server: NatsServer, url: str, open_database: Opener) -> None:
    """The server may have forgotten that a tenant had a log at all: what it might have issued is avoided."""
    assert write(open_database(url).log("early"), {"k": b"1"}) == 1
    server.restart()
    assert write(open_database(url).log("late"), {"k": b"1"}) > FIRST_OF_EPOCH
