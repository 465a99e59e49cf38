"""Messages that another program changed, added or removed in NATS are refused, never skipped."""

from collections.abc import Callable
from contextlib import closing

import msgspec
import pytest

import coord
from coord.core.errors import Corrupt
from coord.stores.checksums import REPAIR
from coord.stores.contract import Commit, Put
from coord.stores.log import snapshot
from coord.stores.nats import snapshots
from coord.stores.nats.address import word_of
from coord.stores.nats.entries import encode_entry, new_token
from coord.stores.nats.jetstream import NatsServer as Client
from coord.stores.nats.jetstream import StreamInfo
from coord.stores.open import open_store
from tests.support.servers.nats import NatsServer, admin
from tests.support.stores import damage
from tests.support.stores.steps import everything, write

TENANT = "local"
Attack = Callable[[Client], object]


def filled(url: str) -> None:
    """Write five records and a tombstone, and a snapshot of all that when small snapshots are due."""
    with closing(open_store(url)) as database:
        store = database.log(TENANT)
        for number in range(5):
            write(store, {f"key-{number}": Put(b'{"n":%d}' % number, f"due/{number}")}, events=[b"event"])
        write(store, {"gone": b"x"})
        write(store, deletes=["gone"])


def removed(server: Client, sequence: int) -> None:
    """Delete one message, as `nats stream rmm` does."""
    answer = server._api("STREAM.MSG.DELETE", server.address.log_stream(TENANT), StreamInfo, seq=sequence)
    assert answer.error is None


def rewritten(change: Callable[[bytes], bytes], at: int) -> Attack:
    """Write the stream anew with one message changed."""

    def attack(server: Client) -> None:
        stream, subject = server.address.log_stream(TENANT), server.address.log_subject(TENANT)
        info = server.info(stream)
        assert info is not None
        messages = [server.get(stream, sequence) or b"" for sequence in range(1, info.state.last_seq + 1)]
        server.delete(stream)
        server.create(stream, [subject], 1)
        for number, data in enumerate(messages, 1):
            server.put(subject, change(data) if number == at else data, {})

    return attack


def other_value(data: bytes) -> bytes:
    assert b'"n":' in data
    return data.replace(b'"n":', b'"m":')


def last_removed(server: Client) -> None:
    info = server.info(server.address.log_stream(TENANT))
    assert info is not None
    removed(server, info.state.last_seq)


def stray(server: Client) -> None:
    """Add an entry without a checksum, else as coord would write it."""
    data = encode_entry(new_token(), new_token(), 8, Commit(puts={"key-3": Put(b"{}")}))
    server.put(server.address.log_subject(TENANT), data[4:], {})


def meta(server: Client, content: bytes) -> None:
    server.put(server.address.subject("meta"), content, {})


def without_epoch(server: Client) -> None:
    found = server.last(server.address.stream, server.address.subject("meta"))
    assert found is not None
    names = msgspec.json.decode(found[1])
    del names["epoch"]
    meta(server, msgspec.json.encode(names))


ATTACKS: dict[str, Attack] = {
    "a value": rewritten(other_value, 4),
    "a message of zeroes": rewritten(lambda data: bytes(len(data)), 4),
    "a removed message": lambda server: removed(server, 4),
    "the newest message": last_removed,
    "the oldest message": lambda server: removed(server, 1),
    "a purge": lambda server: server.purge(server.address.log_stream(TENANT)),
    "a purge of the past": lambda server: server.purge(server.address.log_stream(TENANT), keep=1),
    "the stream": lambda server: server.delete(server.address.log_stream(TENANT)),
    "a foreign message": lambda server: server.put(
        server.address.log_subject(TENANT), b'{"valid":"json"}', {}
    ),
    "an entry without a checksum": stray,
    "metadata that say nothing": lambda server: meta(server, b"[]"),
    "metadata without an epoch": without_epoch,
}


@pytest.mark.parametrize("what", ATTACKS)
@pytest.mark.parametrize("durable", ["0", "1"])
def test_what_another_program_changed_is_corrupt(nats_server: NatsServer, what: str, durable: str) -> None:
    """Whatever was changed or removed by hand: `Corrupt` for whoever opens the log."""
    url = nats_server.blank_url(f"?durable={durable}")
    coord.install(url)
    filled(url)
    with admin(url) as server:
        ATTACKS[what](server)
    with pytest.raises(Corrupt) as refused, closing(open_store(url)) as database:
        database.log(TENANT)
    assert "metadata" in what or f"tenant {TENANT}" in str(refused.value)
    assert refused.value.hint == REPAIR


def test_a_process_that_stays_refuses_what_it_reads(nats_server: NatsServer) -> None:
    """It has the records in memory, and reads the entries again."""
    url = nats_server.fresh_store_url()
    filled(url)
    with closing(open_store(url)) as database, admin(url) as server:
        store = database.log(TENANT)
        ATTACKS["a value"](server)
        with pytest.raises(Corrupt, match="does not match its checksum"):
            store.tail(0, 9)


def snapshot_subject(server: Client, part: str) -> str:
    return server.address.subject("snapshot", word_of(TENANT), part)


@pytest.mark.parametrize("part", ["manifest", "part"])
@pytest.mark.parametrize("change", ["other", "gone"])
def test_a_damaged_snapshot_is_corrupt(
    nats_server: NatsServer, part: str, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a trimmed log the records are only in the snapshot: one that was changed or removed is refused."""
    monkeypatch.setattr(snapshot, "SNAPSHOT_AFTER_BYTES", 10**9)
    url = nats_server.fresh_store_url()
    filled(url)
    with closing(open_store(url)) as database:
        database.log(TENANT).trim(7)
    with admin(url) as server:
        subject = snapshot_subject(server, part)
        found = server.last(server.address.stream, subject)
        assert found is not None
        if change == "gone":
            server.purge(server.address.stream, filter=subject)
        elif part == "manifest":
            server.put(subject, found[1][:-1] + bytes([found[1][-1] ^ 1]), {})
        else:
            rewrite_part(server, found)
    with pytest.raises(Corrupt) as refused, closing(open_store(url)) as database:
        everything(database.log(TENANT), 7)
    assert refused.value.hint == REPAIR


def rewrite_part(server: Client, found: tuple[int, bytes]) -> None:
    """Add a changed part, and let the manifest name it in place of the right one."""
    old = server.last(server.address.stream, snapshot_subject(server, "manifest"))
    assert old is not None
    changed = found[1].replace(b"gone", b"done")
    assert changed != found[1]
    place = server.put(snapshot_subject(server, "part"), changed, {})
    assert place is not None
    manifest = snapshots._decode_manifest(old[1][4:])
    parts = [place if number == found[0] else number for number in manifest.parts]
    server.put(
        snapshot_subject(server, "manifest"),
        snapshots._encode(msgspec.structs.replace(manifest, parts=parts)),
        {},
    )


def test_no_damage_gives_a_wrong_answer(nats_server: NatsServer) -> None:
    """Locks, tasks and claims in messages that vanish or change: refused, or answered as before."""
    url = nats_server.fresh_store_url()
    damage.fill(url)
    campaign = damage.Campaign(damage.ask_other(lambda: open_store(url)))
    for what in ("a removed message", "the newest message", "the oldest message", "a purge", "the stream"):
        url = nats_server.fresh_store_url()
        damage.fill(url)
        with admin(url) as server:
            ATTACKS[what](server)
        campaign.add(what, damage.ask_other(lambda url=url: open_store(url)))  # type: ignore[misc]
    assert campaign.wrong == []
    assert campaign.refused == campaign.rounds
