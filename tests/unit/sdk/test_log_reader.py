"""Reading a log: forwards, backwards, and where its offsets leap."""

import pytest

from coord.sdk import log_reader
from coord.sdk.log_reader import logged_events, pages, pages_backwards
from coord.stores.contract import Commit, Entry, Store
from coord.stores.open import open_store
from tests.support.stores.leaping import leap


def written(store: Store, count: int) -> list[int]:
    return [store.commit(Commit(events=[b'{"event":"file.read"}'], at=number)) for number in range(count)]


def offsets_backwards(store: Store, first: int) -> list[int]:
    found = [[entry.offset for entry in page] for page in pages_backwards(store, first)]
    assert all(page for page in found), "a page is never empty"
    return [offset for page in reversed(found) for offset in page]


@pytest.mark.parametrize("size", [1, 4, 500])
def test_a_log_whose_offsets_leap_is_read_backwards(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two epochs are 2^40 offsets without an entry; they are passed over by halves."""
    monkeypatch.setattr(log_reader, "PAGE_ENTRIES", size)
    store = open_store("memory:").log("local")
    offsets = []
    for count in (9, 1, 10):
        offsets += written(store, count)
        leap(store)
    offsets += written(store, 3)
    for first in (0, 1, 5, offsets[9], offsets[9] + 1, offsets[12], offsets[-1]):
        assert offsets_backwards(store, first) == [offset for offset in offsets if offset >= first]
    assert offsets_backwards(store, offsets[-1] + 1) == []
    assert [entry.offset for page in pages(store, 1) for entry in page] == offsets
    store.trim(offsets[11])
    assert offsets_backwards(store, offsets[11]) == offsets[11:]


UNREADABLE = {
    "half a surrogate": b'{"event":"x","s":"\xed\xa0\x80"}',
    "half a surrogate, escaped": b'{"event":"x","s":"\\ud800"}',
    "much nesting": b'{"event":"x","d":' + b"[" * 5000 + b"]" * 5000 + b"}",
    "no object": b"[1]",
    "no event": b'{"session":"s"}',
    "no JSON": b"nope",
    "nothing": b"",
}


@pytest.mark.parametrize("raw", UNREADABLE.values(), ids=UNREADABLE)
def test_an_event_that_cannot_be_read_keeps_its_place(raw: bytes) -> None:
    """The ledger and reactions name events by their place in the entry, and other readers go on."""
    whole = b'{"event":"file.read"}'
    found = [each.event for each in logged_events([Entry(1, 1, b"x", [whole, raw, whole])])]
    assert found == ["file.read", "unreadable", "file.read"]
