"""A store with a long past: the history of one task among many entries, and opening such a store.

The past is made cheaply, and is real all the same: entries with an event each, in the store's own log,
between two halves of the generations that are asked for afterwards.
"""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

import msgspec
import psycopg
import redis

import coord
from bench.figures import Figure
from bench.fresh import open_in_fresh_process
from bench.past_nats import lengthen_nats
from bench.places import Places
from bench.raw import entry_bytes
from bench.scale import FULL, Scale
from bench.workload import AGENT, LEASE_S, PROJECT, TENANT, Workplace
from coord.stores.contract import Commit, Entry, Record
from coord.stores.files.lock import Watermark
from coord.stores.files.log import SHARD
from coord.stores.log.snapshot import ENTRY_WEIGHT, SNAPSHOT_AFTER_BYTES, Snapshot, SnapshotId, snapshot_of
from coord.stores.mysql.connection import Address
from coord.stores.postgres.log_entry import NOTHING
from coord.stores.redis.scripts import keys_of
from coord.stores.sqlite.rows import make_log_row
from coord.stores.sqlite.statements import ADD_ENTRY
from tests.support.servers.postgres import for_psycopg

TASK = "A-001-long-history"
HISTORY_MS = 200.0
ASKED = 10
BATCH = 1000
PAST = b"past"
"""The id of every entry that is added: nobody looks for one of them."""


def measure(places: Places, scale: Scale, store: str) -> Iterator[Figure]:
    """Yield the time to ask for the history, then the time to open the store."""
    url = places.fresh_url(store)
    place = Workplace(url, keep_commits=True)
    try:
        for start in range(0, scale.live_claims, BATCH):
            place.claim_batch(min(BATCH, scale.live_claims - start))
        sample = place.watch.take()[1][-1]
        half = scale.generations // 2
        _pass_generations(place, range(half))
        if store == "memory":
            _lengthen_memory(place, sample, scale.past_entries)
        else:
            place.coordinator.close()
            LENGTHEN[store](url, sample, scale.past_entries)
            place = Workplace(url)
        _pass_generations(place, range(half, scale.generations))
        if store != "memory":  # ask as somebody does who has just come
            place.coordinator.close()
            place = Workplace(url)
        yield _history(place, scale, store)
    finally:
        place.coordinator.close()
    if store != "memory":
        name = f"open, {scale.past_entries:,} past entries, {scale.live_claims:,} live claims"
        opened = [open_in_fresh_process(url) for _ in range(3)]
        yield Figure.middle_of([each["open_ms"] for each in opened], "past", store, name, "ms")


def _pass_generations(place: Workplace, numbers: range) -> None:
    for number in numbers:
        session = f"session-{number}"
        reply = place.coordinator.claim_task(TENANT, PROJECT, TASK, AGENT, session, LEASE_S)
        assert reply.claim is not None, "the task is free"
        place.coordinator.release_claim(TENANT, PROJECT, TASK, session, reply.claim.generation)


def _history(place: Workplace, scale: Scale, store: str) -> Figure:
    millis = []
    for _ in range(ASKED):
        began = perf_counter()
        history = place.coordinator.get_claim_history(TENANT, PROJECT, TASK)
        millis.append((perf_counter() - began) * 1000)
        assert len(history) == scale.generations, "every generation ended"
    name = f"history of {scale.generations} generations among {scale.past_entries:,} entries"
    detail = {"first_ms": millis[0]}
    asked = HISTORY_MS if scale.past_entries >= FULL.past_entries else None
    return Figure.middle_of(millis, "past", store, name, "ms", most=asked, detail=detail)


def _lengthen_memory(place: Workplace, sample: Commit, count: int) -> None:
    store: Any = place.database.plain(TENANT)
    first = store.seen.offset + 1
    store._log.extend(
        Entry(offset, sample.at, offset.to_bytes(12, "big"), sample.events[:1])
        for offset in range(first, first + count)
    )
    store._state.offset += count


def _lengthen_sqlite(url: str, sample: Commit, count: int) -> None:
    with closing(coord.open_store(url)) as database:
        store: Any = database.log(TENANT)
        row = store._row
        grown = make_log_row(store._checksums, row.head + count, row.at, row.floor, row.totals)
    events = msgspec.msgpack.encode(sample.events[:1])
    digest = store._checksums.entry_digest(sample.at, PAST, events)
    connection = sqlite3.connect(urlsplit(url).path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(
        ADD_ENTRY,
        (
            (store._log, offset, digest + offset, sample.at, PAST, events)
            for offset in range(row.head + 1, grown.head + 1)
        ),
    )
    connection.execute("UPDATE log SET head = ?, sums = ? WHERE id = ?", (grown.head, grown.sums, store._log))
    connection.execute("COMMIT")
    connection.close()


def _digest(url: str, at: int, events: bytes) -> int:
    """Return the digest of the entries of the past, which all say the same."""
    with closing(coord.open_store(url)) as database:
        store: Any = database.log(TENANT)
        checksums = getattr(store, "_checksums", None) or store._log.checksums
        digest: int = checksums.entry_digest(at, PAST, events)
        return digest


def _lengthen_postgres(url: str, sample: Commit, count: int) -> None:
    events = msgspec.msgpack.encode(sample.events[:1])
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO coord.entry SELECT l.id, l.head + n, %s + l.head + n, %s, %s, %s "
            "FROM coord.log l, generate_series(1, %s) n WHERE l.tenant = %s",
            (_digest(url, sample.at, events), sample.at, PAST, events, count, TENANT),
        )
        connection.execute("UPDATE coord.log SET head = head + %s WHERE tenant = %s", (count, TENANT))
        connection.execute("CHECKPOINT")


def _lengthen_postgres_log(url: str, sample: Commit, count: int) -> None:
    """Add entries that change no record, and a snapshot behind them, as the store writes one in time."""
    events = msgspec.msgpack.encode(sample.events[:1])
    with psycopg.connect(for_psycopg(url), autocommit=True) as connection:
        connection.execute(
            "INSERT INTO coord.entry SELECT l.id, l.head + n, %s + l.head + n, %s, %s, %s, %s "
            "FROM coord.log l, generate_series(1, %s) n WHERE l.tenant = %s",
            (_digest(url, sample.at, events), sample.at, PAST, events, NOTHING, count, TENANT),
        )
        connection.execute("UPDATE coord.log SET head = head + %s WHERE tenant = %s", (count, TENANT))
        connection.execute("CHECKPOINT")
    database = coord.open_store(url)
    store: Any = database.log(TENANT)
    store._snapshots.write(snapshot_of(store._state), wait=True)
    database.close()


def _lengthen_mariadb(url: str, sample: Commit, count: int) -> None:
    events = msgspec.msgpack.encode(sample.events[:1]).hex().encode()
    address = Address(url)
    with closing(address.connect()) as session:
        session.ask(
            address.sql.named(
                "INSERT INTO {entry} SELECT l.id, l.head + n.seq, %d, LPAD(n.seq, 12, '0'), x'%b' "
                "FROM {log} l, seq_1_to_%d n WHERE l.tenant = '%b'"
            )
            % (sample.at, events, count, TENANT.encode())
        )
        grow = address.sql.named("UPDATE {log} SET head = head + %d WHERE tenant = '%b'")
        session.ask(grow % (count, TENANT.encode()))


def _lengthen_redis(url: str, sample: Commit, count: int) -> None:
    server, _, prefix = url.partition("?prefix=")
    _, _, place, *_, entry = keys_of(prefix, TENANT)
    cells = ("at", sample.at, "id", b"past", "events", msgspec.msgpack.encode(sample.events[:1]))
    with redis.from_url(server) as client:
        add = client.register_script(
            "for n = ARGV[1], ARGV[2] do redis.call('XADD', KEYS[1], string.format('%.0f-0', n), "
            "unpack(ARGV, 3)) end redis.call('HSET', KEYS[2], 'head', ARGV[2])"
        )
        head = int(client.hget(place, "head") or 0)
        for first in range(head + 1, head + count + 1, BATCH):
            add(keys=[entry, place], args=[first, min(first + BATCH - 1, head + count), *cells])


def _lengthen_files(url: str, sample: Commit, count: int) -> None:
    """Add names of past entries, a snapshot behind them, and after it as long a tail as the store allows.

    A million files take minutes to make and to remove. So the names of a folder are links to one file, with
    the bytes of its first entry: whoever reads another one finds it `Corrupt`. The tail is of real entries:
    the renewals of one claim, as many as the store lets gather before it writes the next snapshot.
    """
    database = coord.open_store(url)
    store: Any = database.log(TENANT)
    state = store._state
    first, last = state.offset + 1, state.offset + count
    key, put = next((key, put) for key, put in sample.puts.items() if key.startswith("task/"))
    renewal = Commit({}, {key: put}, [], sample.events[:1], sample.at, b"past-renewal")
    place = SnapshotId(last, state.floor)
    records = {**state.records, key: Record(key, last, put.value, put.index_key)}
    size = store._snapshots.write(Snapshot(place, state.at, records, state.tombstones), 0)
    weight = ENTRY_WEIGHT + len(entry_bytes(last, renewal))
    tail = max(SNAPSHOT_AFTER_BYTES, size) // weight - 1
    log = Path(store._folder.path) / "log"
    _link_entries(log, range(first, last + 1), renewal)
    for offset in range(last + 1, last + tail + 1):
        _write_entry(_entry_path(log, offset), offset, renewal)
    store._lock_file.write(Watermark(last + tail, state.floor))
    database.close()


def _link_entries(log: Path, offsets: range, renewal: Commit) -> None:
    original = ""
    for offset in offsets:
        path = _entry_path(log, offset)
        if not original or offset % SHARD == 0:
            _write_entry(path, offset, renewal)
            original = path
        else:
            os.link(original, path)


def _entry_path(log: Path, offset: int) -> str:
    return f"{log}/{offset // SHARD:010d}/{offset:016d}"


def _write_entry(path: str, offset: int, renewal: Commit) -> None:
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_bytes(entry_bytes(offset, renewal))


LENGTHEN: dict[str, Callable[[str, Commit, int], None]] = {
    "files": _lengthen_files,
    "sqlite": _lengthen_sqlite,
    "postgres": _lengthen_postgres,
    "postgres-log": _lengthen_postgres_log,
    "mariadb": _lengthen_mariadb,
    "redis": _lengthen_redis,
    "nats": lengthen_nats,
}
"""How each store that can be closed gets its past, while nobody has it open."""
