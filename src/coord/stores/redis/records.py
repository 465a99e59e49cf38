"""The encoding of records, metadata and lists for the scripts: one text, and the sizes of its parts."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec

from coord.core.ranges import Range
from coord.stores.checksums import Checksums, damaged
from coord.stores.contract import Entry, Put, Record
from coord.stores.database import EPOCH_BITS

DIGITS = 16
HEADER = 2 * DIGITS
"""Before a record are its version and its checksum."""
ENTRY_PARTS = 5

_sizes_of = msgspec.msgpack.Decoder(list[int]).decode


def packed(
    checksums: Checksums, puts: Iterable[tuple[str, int, Put | Record]]
) -> tuple[list[int], list[int], bytes]:
    """Return the sizes of records, those of their index keys, and all of it in one.

    A record comes with its key and version.
    """
    sizes, index_sizes, texts = [], [], []
    for key, version, put in puts:
        index_key, value = put.index_key.encode(), put.value or b""
        checksum = checksums.digest(key, value, put.index_key) + version
        text = b"%0*d%0*d%b\0%b" % (DIGITS, version, DIGITS, checksum, index_key, value)
        sizes.append(len(text))
        index_sizes.append(len(index_key))
        texts.append(text)
    return sizes, index_sizes, b"".join(texts)


def unpacked(sizes: bytes, texts: bytes) -> Iterator[bytes | None]:
    """Yield the parts of a text that a script returned; a size of -1 means a missing part."""
    start = 0
    for size in _sizes_of(sizes):
        if size < 0:
            yield None
        else:
            yield texts[start : start + size]
            start += size


def records_of(
    checksums: Checksums, keys: Iterable[str], found: Iterable[bytes | None], absent: int
) -> dict[str, Record]:
    """Return decoded records; `absent` is the version of a missing key."""
    records: dict[str, Record] = {}
    for key, data in zip(keys, found, strict=True):
        if data is None:
            records[key] = Record(key, absent, None)
            continue
        value, index_key = None, ""
        try:
            version, checksum = int(data[:DIGITS]), int(data[DIGITS:HEADER])
            if len(data) > HEADER:
                end = data.index(b"\0", HEADER)
                index_key, value = data[HEADER:end].decode(), data[end + 1 :]
            right = checksum - version == checksums.digest(key, value, index_key)
        except ValueError:
            version, right = 0, False
        if not right:
            raise damaged(f"the record {key!r} of {checksums.where} does not match its checksum")
        records[key] = Record(key, version if value is not None else max(version, absent), value, index_key)
    return records


def entries_of(checksums: Checksums, found: Sequence[bytes | None]) -> list[Entry]:
    """Return decoded entries: of each its offset, checksum, time, id and events."""
    entries = []
    for start in range(0, len(found), ENTRY_PARTS):
        offset, checksum, at, id_, events = (part or b"" for part in found[start : start + ENTRY_PARTS])
        try:
            numbers = int(offset), int(checksum), int(at)
        except ValueError as error:
            raise damaged(f"entry {offset.decode()} of {checksums.where} cannot be read: {error}") from error
        entries.append(checksums.checked_entry(*numbers, id_, events))
    return entries


def check_page(where: str, offsets: Sequence[int], after: int, limit: int, head: int, floor: int) -> None:
    """Refuse a page of the log in which an entry is missing; offsets may leap only into a later epoch.

    The log has every entry after the floor, and the one at the floor unless the log began there.
    """
    if limit <= 0 or (after > head and not offsets):
        return
    before = after if after >= floor or (offsets and offsets[0] == after + 1) else floor
    ends = offsets[-1] if len(offsets) >= limit else head
    for one, next_ in pairwise([before, *offsets, ends + 1]):
        if next_ != one + 1 and next_ >> EPOCH_BITS <= one >> EPOCH_BITS:
            raise damaged(f"entry {one + 1} is missing in {where}")


def bounds_of(range_: Range) -> tuple[str, bytes, bytes, int]:
    """Return a range as arguments of the script."""
    prefix, by, limit, (index_key, key) = range_
    start = prefix.encode()
    last = key.encode() if by == "key" or not key else f"{index_key}\0{key}".encode()
    low = b"(" + last if key and last >= start else b"[" + start
    return by, low, b"(" + start + b"\xff", limit  # no byte of UTF-8 is as high


def metadata_of(pairs: Sequence[bytes]) -> dict[str, str]:
    """Return metadata from a list of names and values."""
    words = [word.decode("utf-8", "replace") for word in pairs]
    return dict(zip(words[::2], words[1::2], strict=True))
