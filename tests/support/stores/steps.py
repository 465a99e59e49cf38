"""Short words for what the tests of the contract do to a store."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import pytest

from coord.core.errors import Conflict, CoordError
from coord.stores.contract import Commit, Entry, Put, Record, Store

PLENTY = 100_000


def write(
    store: Store,
    puts: Mapping[str, bytes | Put] | None = None,
    deletes: Iterable[str] = (),
    events: Iterable[bytes] = (),
    at: int = 0,
    id_: bytes = b"",
) -> int:
    """Commit over whatever is there at this moment."""
    new = {key: put if isinstance(put, Put) else Put(put) for key, put in (puts or {}).items()}
    gone = list(deletes)
    return store.commit(Commit(versions(store, *new, *gone), new, gone, list(events), at, id_))


def put_index_keys(store: Store, index_keys: Mapping[str, str]) -> int:
    """Give each key its place in line."""
    return write(store, {key: Put(b"x", index_key) for key, index_key in index_keys.items()})


def versions(store: Store, *keys: str) -> dict[str, int]:
    """Return the versions of keys as of now."""
    return {key: record.version for key, record in store.load(keys).items()}


def version(store: Store, key: str) -> int:
    """Return the version of one key."""
    return store.load([key])[key].version


def value(store: Store, key: str) -> bytes | None:
    """Return the value of one key."""
    return store.load([key])[key].value


def refusal_of(act: Callable[..., object], *arguments: object) -> type[CoordError] | None:
    """Return with which error a call is refused, None if it is not."""
    try:
        act(*arguments)
    except CoordError as error:
        return type(error)
    return None


def check_a_moment_within_one_connection(
    store: Store, *, lose: Callable[[], object], hang_up: Callable[[], object]
) -> None:
    """Commit as of a load, after the store has lost what was loaded and the connection has ended."""
    for number in range(2):
        write(store, {"k": b"%d" % number})
    found = store.load(["k", "new"])
    lose()
    hang_up()
    before = everything(store)
    store.load(["new"])  # now the store knows what the commit replaces, but not what it rests on
    expected = {key: record.version for key, record in found.items()}
    with pytest.raises(Conflict):
        store.commit(Commit(expected, {"new": Put(b"rests on it")}, read_point=found.read_point))
    assert everything(store) == before


def head(store: Store) -> int:
    """Return the offset of the newest commit."""
    return store.commit(Commit())


def keys_of(records: Iterable[Record]) -> list[str]:
    """Return the keys in the order of the records."""
    return [record.key for record in records]


def by_key(store: Store, prefix: str = "", after: Record | None = None, limit: int = PLENTY) -> list[str]:
    """Return the keys of a scan by key."""
    return keys_of(store.scan(prefix, by="key", after=after, limit=limit))


def by_index_key(
    store: Store, prefix: str = "", after: Record | None = None, limit: int = PLENTY
) -> list[str]:
    """Return the keys of a scan by line."""
    return keys_of(store.scan(prefix, by="index_key", after=after, limit=limit))


ACCENTS = ("a", "B", "Ä", "z", "Z", "ä", "é", "e\u0301", "ﬀ", "ß", "\ue000", "\U00010000")
SIGNS = ("_", "-", "a b", "a ", "ab", "\x7f", "\n", "`", '"', "it's", "''", "\\", "a\\'b", "%s", "%d", "; --")


def check_order_of_bytes(store: Store) -> None:
    """Names that people sort in other ways, or that mean something in SQL, are in the order of bytes."""
    expected = sorted((*ACCENTS, *SIGNS), key=str.encode)
    write(store, {name: Put(name.encode(), f"line/{name}") for name in reversed(expected)})
    assert by_key(store) == expected
    assert by_index_key(store, "line/") == expected
    for place, name in enumerate(expected):
        found = store.load([name])[name]
        assert found.value == name.encode()
        assert by_key(store, after=found, limit=2) == expected[place + 1 : place + 3]
        assert by_index_key(store, "line/", after=found, limit=2) == expected[place + 1 : place + 3]


class Everything(NamedTuple):
    """All that a store shows to anybody."""

    head: int
    records: list[Record]
    index_key: list[Record]
    entries: list[Entry]


def everything(store: Store, after: int = 0) -> Everything:
    """Return all that a store shows, to compare it with itself later or with another store."""
    return Everything(
        head(store),
        store.scan("", by="key", limit=PLENTY),
        store.scan("", by="index_key", limit=PLENTY),
        store.tail(after, PLENTY),
    )
