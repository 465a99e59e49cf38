"""Snapshots: the whole state at one offset in chunks, so that opening a store need not replay the whole log.

The first chunk is the `Summary`, the others are `Chunk`s of the state. Each backend stores them in its way.
"""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from coord.stores.checksums import sealed, unsealed
from coord.stores.contract import Record
from coord.stores.log.state import LogState

CHUNK_RECORDS = 64

ENTRY_WEIGHT = 1024
"""The cost of reading an entry, in bytes, besides its own bytes."""

SNAPSHOT_AFTER_BYTES = 1024 * 1024

INLINE_BYTES = 4 * 1024
"""Larger values are not kept in memory."""


class Reference(bytes):
    """Replaces a large value in a record; its content says where the value is."""

    __slots__ = ()


class SnapshotId(NamedTuple):
    """The offset and the floor of a snapshot."""

    offset: int
    floor: int


class Snapshot(NamedTuple):
    """The content of a snapshot."""

    id: SnapshotId
    at: int
    records: dict[str, Record]
    tombstones: dict[str, int]


class Summary(msgspec.Struct, frozen=True, array_like=True):
    """The first chunk; its counts show whether the rest is complete."""

    offset: int
    floor: int
    at: int
    records: int
    tombstones: int


class Chunk(msgspec.Struct, frozen=True, array_like=True):
    """Some of the records and tombstones."""

    records: list[Record]
    large: list[Record]
    tombstones: dict[str, int]


_encode_chunk = msgspec.msgpack.Encoder().encode
_decode_summary = msgspec.msgpack.Decoder(Summary).decode
_decode_chunk = msgspec.msgpack.Decoder(Chunk).decode


def _encode(chunk: Summary | Chunk) -> bytes:
    return sealed(_encode_chunk(chunk))


def snapshot_is_due(entries: int, added_bytes: int, snapshot_bytes: int) -> bool:
    """Return whether the entries after the last snapshot cost as much to read as that snapshot."""
    return entries * ENTRY_WEIGHT + added_bytes >= max(SNAPSHOT_AFTER_BYTES, snapshot_bytes)


def snapshot_of(state: LogState) -> Snapshot:
    """Return a copy of the state, which may change afterwards."""
    id_ = SnapshotId(state.offset, state.floor)
    return Snapshot(id_, state.at, state.records.copy(), state.tombstones.copy())


def chunks(snapshot: Snapshot) -> Iterator[bytes]:
    """Yield the encoded chunks one by one, so that other threads can run in between."""
    offset, floor = snapshot.id
    yield _encode(Summary(offset, floor, snapshot.at, len(snapshot.records), len(snapshot.tombstones)))
    records = iter(snapshot.records.values())
    while some := list(islice(records, CHUNK_RECORDS)):
        large = [
            replace(record, value=bytes(record.value))
            for record in some
            if isinstance(record.value, Reference)
        ]
        if large:
            some = [record for record in some if not isinstance(record.value, Reference)]
        yield _encode(Chunk(some, large, {}))
    tombstones = iter(snapshot.tombstones.items())
    while dead := dict(islice(tombstones, CHUNK_RECORDS)):
        yield _encode(Chunk([], [], dead))


def state_of(id_: SnapshotId, encoded: Iterator[bytes]) -> LogState:
    """Return the state that these chunks encode; raises ValueError or MsgspecError if they are damaged."""
    summary = _decode_summary(unsealed(next(encoded, b"")))
    if (summary.offset, summary.floor) != id_:
        raise ValueError(f"it is the snapshot of offset {summary.offset} and floor {summary.floor}")
    state = LogState(summary.offset, summary.at, summary.floor)
    for data in encoded:
        chunk = _decode_chunk(unsealed(data))
        state.add(chunk.records, chunk.tombstones)
        state.add((replace(record, value=Reference(record.value or b"")) for record in chunk.large), {})
    if (len(state.records), len(state.tombstones)) != (summary.records, summary.tombstones):
        raise ValueError("it is not complete")
    return state
