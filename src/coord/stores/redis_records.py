"""How records, notes and lists travel between us and Redis: as one text with the sizes of its parts."""

from collections.abc import Iterable, Iterator, Sequence

from coord.core.errors import Corrupt
from coord.stores.store import Put, Record

VERSION_DIGITS = 16


def packed(puts: Iterable[Put | Record]) -> tuple[list[int], list[int], bytes]:
    """Return the sizes of values with their lines, the sizes of the lines alone, and all of it in one."""
    sizes, lines, texts = [], [], []
    for put in puts:
        line = put.line.encode()
        text = b"%b\0%b" % (line, put.value or b"")
        sizes.append(len(text))
        lines.append(len(line))
        texts.append(text)
    return sizes, lines, b"".join(texts)


def unpacked(sizes: bytes, texts: bytes) -> Iterator[bytes | None]:
    """Return the texts that a script put into one; -1 is the size of what is not there."""
    start = 0
    for size in map(int, sizes.split()):
        if size < 0:
            yield None
        else:
            yield texts[start : start + size]
            start += size


def record_of(key: str, data: bytes | None, absent: int) -> Record:
    """Return a record as it is stored; `absent` is the least version of what is not there."""
    if data is None:
        return Record(key, absent, None)
    try:
        version = int(data[:VERSION_DIGITS])
        if len(data) == VERSION_DIGITS:
            return Record(key, max(version, absent), None)
        end = data.index(b"\0", VERSION_DIGITS)
        return Record(key, version, data[end + 1 :], data[VERSION_DIGITS:end].decode())
    except ValueError as error:
        raise Corrupt(f"the record {key!r} cannot be read: {error}", hint="restore the store") from error


def notes_of(pairs: Sequence[bytes]) -> dict[str, str]:
    """Return names and values that came as one list."""
    words = [word.decode("utf-8", "replace") for word in pairs]
    return dict(zip(words[::2], words[1::2], strict=True))
