"""The messages in the stream of a tenant's log: an entry for each commit, and control messages in between.

The stream gives each message the next sequence number and accepts it only at the number that its sender
expects, so each commit was checked against everything before it. A control message is not a commit: it raises
the floor or the epoch, names the server that writes, or seals the store. So sequence numbers and offsets
differ by the control messages, and each of them starts a new `Segment`.

Every message begins with a checksum, and contains the token of the one before it. If a server lost messages
that a process has read, the tokens differ, and a commit that relied on the lost messages is ignored.
"""

import os
from typing import NamedTuple

import msgspec

from coord.core.errors import CoordError, Corrupt
from coord.stores.checksums import REPAIR, sealed, unsealed
from coord.stores.contract import Commit, Entry, Put
from coord.stores.database import EPOCH_BITS

TOKEN_BYTES = 8
COUNTED_FROM_MS = 1_735_689_600_000


class Diverged(Exception):
    """The log continues from another message than the newest one known here."""


class EntryMessage(msgspec.Struct, frozen=True, array_like=True, tag="entry"):
    """A commit."""

    before: bytes
    token: bytes
    offset: int
    at: int
    id: bytes
    events: list[bytes]
    puts: dict[str, Put]
    deletes: list[str]

    def commit(self) -> Commit:
        """Return the commit as the state applies it."""
        return Commit({}, self.puts, self.deletes, self.events, self.at, self.id)


class ControlMessage(msgspec.Struct, frozen=True, array_like=True, tag="control"):
    """The floor, epoch, servers and seal from here on."""

    before: bytes
    token: bytes
    offset: int
    """The next entry has this offset + 1."""
    floor: int
    leader: str = ""
    servers: dict[str, str] = {}
    """The servers that wrote: the run id of each by its name."""
    migrated_to: str = ""
    copied: bool = False
    """The records before this message are only in a snapshot."""


class _EntryOnly(msgspec.Struct, frozen=True, array_like=True, tag="entry"):
    """An entry without its records."""

    before: bytes
    token: bytes
    offset: int
    at: int
    id: bytes
    events: list[bytes]


class Segment(NamedTuple):
    """Adjacent entries without a control message in between: offset and sequence number of the first."""

    offset: int
    sequence: int


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(EntryMessage | ControlMessage).decode
_decode_entry_only = msgspec.msgpack.Decoder(_EntryOnly).decode


def new_token() -> bytes:
    """Return a random token that identifies a message."""
    return os.urandom(TOKEN_BYTES)


def encode_entry(before: bytes, token: bytes, offset: int, commit: Commit) -> bytes:
    """Return the message of a commit."""
    return sealed(
        _encode(
            EntryMessage(
                before, token, offset, commit.at, commit.id, commit.events, commit.puts, commit.deletes
            )
        )
    )


def encode_control(control: ControlMessage) -> bytes:
    """Return an encoded control message."""
    return sealed(_encode(control))


def decode(data: bytes, where: str) -> EntryMessage | ControlMessage:
    """Return a message of a log."""
    try:
        message: EntryMessage | ControlMessage = _decode(unsealed(data))
    except (ValueError, msgspec.MsgspecError) as error:
        raise damaged(where, str(error)) from error
    return message


def decode_entry(data: bytes, where: str) -> Entry:
    """Return an entry as the log shows it."""
    try:
        entry = _decode_entry_only(unsealed(data))
    except (ValueError, msgspec.MsgspecError) as error:
        raise damaged(where, str(error)) from error
    return Entry(entry.offset, entry.at, entry.id, entry.events)


def damaged(where: str, how: str) -> CoordError:
    """Return the error for a damaged log."""
    return Corrupt(f"{where} is damaged: {how}", hint=REPAIR)


def start_of(epoch: int, now_ms: int) -> int:
    """Return the offset before the first entry of a raised epoch: its base plus the milliseconds since 2025.

    If the server loses that control message too, the next one starts above every issued offset, unless there
    were more than a thousand commits per second in between.
    """
    return (epoch << EPOCH_BITS) + now_ms - COUNTED_FROM_MS


def sequences_after(segments: list[Segment], end: int, after: int, limit: int) -> list[int]:
    """Return the sequence numbers of up to `limit` entries after an offset; `end` is the last number.

    >>> sequences_after([Segment(1, 1), Segment(4, 5)], 6, 1, 9)
    [2, 3, 5, 6]
    """
    found: list[int] = []
    ends = [*(segment.sequence - 2 for segment in segments[1:]), end]
    for segment, last in zip(segments, ends, strict=True):
        first = segment.sequence + max(0, after + 1 - segment.offset)
        found += range(first, min(last, first + limit - len(found) - 1) + 1)
    return found


def sequence_of(segments: list[Segment], end: int, offset: int) -> int:
    """Return the sequence number below which all entries are below an offset; never one after the last.

    >>> sequence_of([Segment(1, 1), Segment(4, 5)], 6, 4)
    5
    >>> sequence_of([Segment(1, 1), Segment(400, 5)], 6, 99)
    5
    """
    following = [*(segment.sequence for segment in segments[1:]), end]
    found = 1
    for segment, limit in zip(segments, following, strict=True):
        if segment.offset <= offset:
            found = min(segment.sequence + offset - segment.offset, limit)
    return found


def segments_from(segments: list[Segment], floor: int) -> list[Segment]:
    """Return the segments that hold anything from an offset on.

    >>> segments_from([Segment(1, 1), Segment(4, 5), Segment(9, 11)], 5)
    [Segment(offset=4, place=5), Segment(offset=9, place=11)]
    """
    passed = [number for number, segment in enumerate(segments) if segment.offset <= floor]
    return segments[passed[-1] if passed else 0 :]
