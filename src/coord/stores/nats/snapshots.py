"""Snapshots of a NATS store, so that opening it need not replay the whole log.

A snapshot is a number of messages of one subject with parts of the state, each as large as the server
accepts, and then a message of another subject with the `Manifest`, which contains their sequence numbers.
Each of these messages begins with a checksum. The
server accepts the manifest only if no other one came in between, so one of two writers gives up. The last two
snapshots are kept.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

import msgspec

from coord.core.errors import Corrupt
from coord.stores.checksums import REPAIR, sealed, unsealed
from coord.stores.contract import RECORD_BYTES, Record
from coord.stores.log.state import LogState
from coord.stores.nats.address import word_of
from coord.stores.nats.entries import ControlMessage, Segment
from coord.stores.nats.jetstream import LEAST_PAYLOAD, NatsServer

KEPT = 2
PART_RECORDS = 1024
"""This number of tombstones fits into a message even with the longest keys."""
PART_BYTES = RECORD_BYTES
"""The limit for the values of a part together; keys and index keys are extra."""


class Manifest(msgspec.Struct, frozen=True, array_like=True):
    """The last message of a snapshot: its sequence number, and where its parts are."""

    sequence: int
    token: bytes
    offset: int
    at: int
    floor: int
    control: ControlMessage | None
    segments: list[Segment]
    parts: list[int]
    records: int
    tombstones: int
    size: int
    former: int = 0
    """The sequence number of the previous manifest."""


class Part(msgspec.Struct, frozen=True, array_like=True):
    """Some of the records and tombstones."""

    records: list[Record]
    tombstones: dict[str, int]


class Snapshot(NamedTuple):
    """The content of a snapshot."""

    manifest: Manifest
    """Without parts yet."""
    records: dict[str, Record]
    tombstones: dict[str, int]


_value = attrgetter("value")
_encode_plain = msgspec.msgpack.Encoder().encode
_decode_manifest = msgspec.msgpack.Decoder(Manifest).decode
_decode_part = msgspec.msgpack.Decoder(Part).decode


def _encode(content: Manifest | Part) -> bytes:
    return sealed(_encode_plain(content))


class Snapshots:
    """The snapshots of one tenant."""

    def __init__(self, server: NatsServer, tenant: str) -> None:
        self._server = server
        self._stream = server.address.stream
        self._manifests = server.address.subject("snapshot", word_of(tenant), "manifest")
        self._parts = server.address.subject("snapshot", word_of(tenant), "part")

    def newest(self) -> tuple[int, Manifest] | None:
        """Return the newest manifest and its sequence number."""
        found = self._server.last(self._stream, self._manifests)
        return None if found is None else (found[0], self._decoded(found[1]))

    def fitting(self, fits: Callable[[Manifest], bool]) -> Manifest | None:
        """Return the newest snapshot that fits the log: after a failure the log may end before it."""
        found = self.newest()
        manifest = found[1] if found else None
        while manifest is not None and not fits(manifest):
            data = self._server.get(self._stream, manifest.former) if manifest.former else None
            manifest = None if data is None else self._decoded(data)
        return manifest

    def _decoded(self, data: bytes) -> Manifest:
        try:
            return _decode_manifest(unsealed(data))
        except (ValueError, msgspec.MsgspecError) as error:
            raise self._damaged(str(error)) from error

    def read(self, manifest: Manifest) -> LogState | None:
        """Return the state of a snapshot; None if another process removed it."""
        state = LogState(manifest.offset, manifest.at, manifest.floor)
        for part in manifest.parts:
            (data,) = self._server.get_all(self._stream, [part])
            if data is None:
                return None
            try:
                decoded = _decode_part(unsealed(data))
            except (ValueError, msgspec.MsgspecError) as error:
                raise self._damaged(str(error)) from error
            state.add(decoded.records, decoded.tombstones)
        if (len(state.records), len(state.tombstones)) != (manifest.records, manifest.tombstones):
            raise self._damaged("it is not complete")
        return state

    def _damaged(self, how: str) -> Corrupt:
        return Corrupt(
            f"a snapshot in {self._parts} is damaged: {how}",
            hint=REPAIR,
        )

    def write(self, snapshot: Snapshot, fits: Callable[[Manifest], bool]) -> int | None:
        """Write a snapshot into the stream and return its size; None if another process was faster.

        One of a later place that does not fit is of a log that its server forgot: it is no longer the newest.
        """
        former = self.newest()
        if former is not None and former[1].sequence > snapshot.manifest.sequence and fits(former[1]):
            return None
        parts: list[int] = []
        size = 0
        for data in _encoded(snapshot):
            size += len(data)
            parts.append(self._server.put(self._parts, data, {}) or 0)
        manifest = msgspec.structs.replace(
            snapshot.manifest,
            parts=parts,
            records=len(snapshot.records),
            tombstones=len(snapshot.tombstones),
            size=size,
            former=former[0] if former else 0,
        )
        expected = {"Nats-Expected-Last-Subject-Sequence": str(former[0] if former else 0)}
        if self._server.put(self._manifests, _encode(manifest), expected) is None:
            return None
        if former is not None:
            self._tidy(min(former[1].parts, default=former[0]))
        return size

    def _tidy(self, first: int) -> None:
        """Remove snapshots older than the previous one, and parts of dead writers."""
        self._server.purge(self._stream, filter=self._parts, seq=first)
        self._server.purge(self._stream, filter=self._manifests, keep=KEPT)

    def clear(self) -> None:
        """Remove all snapshots."""
        for subject in (self._manifests, self._parts):
            self._server.purge(self._stream, filter=subject)


def _encoded(snapshot: Snapshot) -> Iterator[bytes]:
    """Yield the parts one by one, so that other threads can run in between."""
    records = iter(snapshot.records.values())
    while some := list(islice(records, PART_RECORDS)):
        yield from _parts(some)
    tombstones = iter(snapshot.tombstones.items())
    while dead := dict(islice(tombstones, PART_RECORDS)):
        yield _encode(Part([], dead))


def _parts(records: list[Record]) -> Iterator[bytes]:
    """Yield one part with all records, or the parts of each half if that is too large.

    Values are looked at before: those of many large records together must not be in memory once more.
    """
    split_part = len(records) == 1
    if split_part or sum(map(len, map(_value, records))) <= PART_BYTES:
        data = _encode(Part(records, {}))
        if split_part or len(data) <= LEAST_PAYLOAD:
            yield data
            return
    half = len(records) // 2
    yield from _parts(records[:half])
    yield from _parts(records[half:])
