"""An image: the whole fold as of an offset, in pieces, so that opening need not read the whole log.

The first piece is the `Summary`, the others are `Chunk`s of the fold. How they are kept is up to the store.
"""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from coord.stores.contract import Record
from coord.stores.log.state import Fold

CHUNK_RECORDS = 64

ENTRY_WEIGHT = 1024
"""Bytes that reading an entry costs beside those in it."""

SNAPSHOT_AFTER_BYTES = 1024 * 1024

INLINE_BYTES = 4 * 1024
"""Larger values do not stay in memory."""


class Reference(bytes):
    """Stands in a record for its value, and says whatever its store needs to find it."""

    __slots__ = ()


class Place(NamedTuple):
    """Which snapshot: as of which offset, and with which floor."""

    offset: int
    floor: int


class Image(NamedTuple):
    """What a snapshot is made of."""

    place: Place
    at: int
    records: dict[str, Record]
    tombstones: dict[str, int]


class Summary(msgspec.Struct, frozen=True, array_like=True):
    """The first piece; the counts tell whether the rest is complete."""

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


_encode = msgspec.msgpack.Encoder().encode
_decode_summary = msgspec.msgpack.Decoder(Summary).decode
_decode_chunk = msgspec.msgpack.Decoder(Chunk).decode


def snapshot_is_due(entries: int, added_bytes: int, snapshot_bytes: int) -> bool:
    """Whether what came after a snapshot costs as much to read as the snapshot itself."""
    return entries * ENTRY_WEIGHT + added_bytes >= max(SNAPSHOT_AFTER_BYTES, snapshot_bytes)


def image_of(fold: Fold) -> Image:
    """Return what the fold is now; it may move on."""
    place = Place(fold.offset, fold.floor)
    return Image(place, fold.at, fold.records.copy(), fold.tombstones.copy())


def pieces(image: Image) -> Iterator[bytes]:
    """Yield the image piece by piece: other threads run in between."""
    offset, floor = image.place
    yield _encode(Summary(offset, floor, image.at, len(image.records), len(image.tombstones)))
    records = iter(image.records.values())
    while some := list(islice(records, CHUNK_RECORDS)):
        large = [
            replace(record, value=bytes(record.value))
            for record in some
            if isinstance(record.value, Reference)
        ]
        if large:
            some = [record for record in some if not isinstance(record.value, Reference)]
        yield _encode(Chunk(some, large, {}))
    tombstones = iter(image.tombstones.items())
    while dead := dict(islice(tombstones, CHUNK_RECORDS)):
        yield _encode(Chunk([], [], dead))


def fold_of(place: Place, found: Iterator[bytes]) -> Fold:
    """Return the fold that was made into these pieces; ValueError or MsgspecError if it is damaged."""
    summary = _decode_summary(next(found, b""))
    if (summary.offset, summary.floor) != place:
        raise ValueError(f"it is the snapshot of offset {summary.offset} and floor {summary.floor}")
    fold = Fold(summary.offset, summary.at, summary.floor)
    for piece in found:
        chunk = _decode_chunk(piece)
        fold.hold(chunk.records, chunk.tombstones)
        fold.hold((replace(record, value=Reference(record.value or b"")) for record in chunk.large), {})
    if (len(fold.records), len(fold.tombstones)) != (summary.records, summary.tombstones):
        raise ValueError("it is not complete")
    return fold
