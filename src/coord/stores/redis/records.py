"""The encoding of records, metadata and lists for the scripts: one text, and the sizes of its parts."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from coord.core.errors import Corrupt
from coord.core.ranges import Range
from coord.stores.contract import Put, Record

VERSION_DIGITS = 16

_sizes_of = msgspec.msgpack.Decoder(list[int]).decode


def packed(puts: Iterable[Put | Record], mark: bytes = b"") -> tuple[list[int], list[int], bytes]:
    """Return the sizes of records that begin with a mark, those of their index keys, and all of it in one."""
    sizes, index_sizes, texts = [], [], []
    for put in puts:
        index_key = put.index_key.encode()
        text = b"%b%b\0%b" % (mark, index_key, put.value or b"")
        sizes.append(len(text))
        index_sizes.append(len(index_key))
        texts.append(text)
    return sizes, index_sizes, b"".join(texts)


def mark_of(offset: int) -> bytes:
    """Return the version as the scripts store it before a record."""
    return b"%0*d" % (VERSION_DIGITS, offset)


def unpacked(sizes: bytes, texts: bytes) -> Iterator[bytes | None]:
    """Yield the parts of a text that a script returned; a size of -1 means a missing part."""
    start = 0
    for size in _sizes_of(sizes):
        if size < 0:
            yield None
        else:
            yield texts[start : start + size]
            start += size


def records_of(keys: Iterable[str], found: Iterable[bytes | None], absent: int) -> dict[str, Record]:
    """Return decoded records; `absent` is the version of a missing key."""
    records: dict[str, Record] = {}
    for key, data in zip(keys, found, strict=True):
        if data is None:
            records[key] = Record(key, absent, None)
            continue
        try:
            version = int(data[:VERSION_DIGITS])
            if len(data) == VERSION_DIGITS:
                records[key] = Record(key, max(version, absent), None)
                continue
            end = data.index(b"\0", VERSION_DIGITS)
            records[key] = Record(key, version, data[end + 1 :], data[VERSION_DIGITS:end].decode())
        except ValueError as error:
            raise Corrupt(f"the record {key!r} cannot be read: {error}", hint="restore the store") from error
    return records


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
