"""What lies in the stream of a tenant's log: an entry for each commit, and marks in between.

The stream gives each message the next place, and takes one only for the place that its sender expects: so
each commit is decided on all before it. A mark says what is no commit: a raised floor, a raised epoch, which
server wrote, that the store was moved. So places and offsets differ by the marks, and a `Segment` begins
after each.

Every message names the one before it. Where a server forgot messages that somebody still remembers, that
memory shows, and what was decided on it is void.
"""

import os
from typing import NamedTuple

import msgspec

from coord.core.errors import CoordError, Corrupt
from coord.stores.contract import Commit, Entry, Put
from coord.stores.database import EPOCH_BITS

TOKEN_BYTES = 8
COUNTED_FROM_MS = 1_735_689_600_000


class Diverged(Exception):
    """A log goes on from another message than the newest one known here."""


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
        """Return it as the fold applies it."""
        return Commit({}, self.puts, self.deletes, self.events, self.at, self.id)


class ControlMessage(msgspec.Struct, frozen=True, array_like=True, tag="control"):
    """What holds from here on."""

    before: bytes
    token: bytes
    offset: int
    """The next entry has the one above."""
    floor: int
    leader: str = ""
    servers: dict[str, str] = {}
    """The servers that were written through: the run of each by its name."""
    migrated_to: str = ""
    copied: bool = False
    """The records before this are in a snapshot only."""


class _Shown(msgspec.Struct, frozen=True, array_like=True, tag="entry"):
    """An entry without its records."""

    before: bytes
    token: bytes
    offset: int
    at: int
    id: bytes
    events: list[bytes]


class Segment(NamedTuple):
    """Entries that follow each other without a mark in between: offset and place of the first."""

    offset: int
    sequence: int


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(EntryMessage | ControlMessage).decode
_decode_shown = msgspec.msgpack.Decoder(_Shown).decode


def new_token() -> bytes:
    """Return what tells a message from all others."""
    return os.urandom(TOKEN_BYTES)


def encode_entry(before: bytes, token: bytes, offset: int, commit: Commit) -> bytes:
    """Return the message of a commit."""
    return _encode(
        EntryMessage(before, token, offset, commit.at, commit.id, commit.events, commit.puts, commit.deletes)
    )


def encode_control(control: ControlMessage) -> bytes:
    """Return the message of a mark."""
    return _encode(control)


def decode(data: bytes, where: str) -> EntryMessage | ControlMessage:
    """Return a message of a log."""
    try:
        message: EntryMessage | ControlMessage = _decode(data)
    except msgspec.MsgspecError as error:
        raise damaged(where, str(error)) from error
    return message


def decode_shown(data: bytes, where: str) -> Entry:
    """Return an entry as the log shows it."""
    try:
        shown = _decode_shown(data)
    except msgspec.MsgspecError as error:
        raise damaged(where, str(error)) from error
    return Entry(shown.offset, shown.at, shown.id, shown.events)


def damaged(where: str, how: str) -> CoordError:
    """Return the error of a log that is not as it was written."""
    return Corrupt(f"{where} is damaged: {how}", hint="restore the stream from a copy; nothing was changed")


def start_of(epoch: int, now_ms: int) -> int:
    """Return the offset that a raised epoch begins after: not its first one, but as many as milliseconds have
    passed since 2025. If the mark that raised it is forgotten in its turn, the next one begins above all that
    was issued, unless there were more than a thousand commits in every second between."""
    return (epoch << EPOCH_BITS) + now_ms - COUNTED_FROM_MS


def sequences_after(segments: list[Segment], end: int, after: int, limit: int) -> list[int]:
    """Return the places of the entries after an offset, at most so many; `end` is the last place of all.

    >>> places_after([Chapter(1, 1), Chapter(4, 5)], 6, 1, 9)
    [2, 3, 5, 6]
    """
    found: list[int] = []
    ends = [*(segment.sequence - 2 for segment in segments[1:]), end]
    for segment, last in zip(segments, ends, strict=True):
        first = segment.sequence + max(0, after + 1 - segment.offset)
        found += range(first, min(last, first + limit - len(found) - 1) + 1)
    return found


def sequence_of(segments: list[Segment], end: int, offset: int) -> int:
    """Return the place below which all entries are below an offset, and never one beyond the last.

    >>> place_of([Chapter(1, 1), Chapter(4, 5)], 6, 4), place_of([Chapter(1, 1), Chapter(400, 5)], 6, 99)
    (5, 5)
    """
    following = [*(segment.sequence for segment in segments[1:]), end]
    found = 1
    for segment, limit in zip(segments, following, strict=True):
        if segment.offset <= offset:
            found = min(segment.sequence + offset - segment.offset, limit)
    return found


def segments_from(segments: list[Segment], floor: int) -> list[Segment]:
    """Return the chapters that hold anything from an offset on.

    >>> chapters_from([Chapter(1, 1), Chapter(4, 5), Chapter(9, 11)], 5)
    [Chapter(offset=4, place=5), Chapter(offset=9, place=11)]
    """
    passed = [number for number, segment in enumerate(segments) if segment.offset <= floor]
    return segments[passed[-1] if passed else 0 :]
