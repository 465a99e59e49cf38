"""The contract of stores: what `load` and `scan` show."""

import math
import threading
from collections.abc import Callable

import pytest

from coord.core.errors import Conflict
from coord.core.ranges import Range
from coord.stores.contract import Commit, Put, Record, Store
from coord.stores.log import sole_writer
from tests.support.stores.steps import (
    by_index_key,
    by_key,
    check_order_of_bytes,
    head,
    keys_of,
    put_index_keys,
    value,
    version,
    versions,
    write,
)

EVERY_BYTE = bytes(range(256))


def test_load_gives_the_newest_value_version_and_line(store: Store) -> None:
    """`load` gives the newest committed state of every key."""
    write(store, {"a": Put(b"old", "line/1")})
    offset = write(store, {"a": Put(b"new", "line/2"), "b": Put(b"other")})
    assert store.load(["a", "b"]) == {
        "a": Record("a", offset, b"new", "line/2"),
        "b": Record("b", offset, b"other", ""),
    }


def test_load_takes_no_keys_one_key_twice_and_any_iterable(store: Store) -> None:
    """`load` takes an iterable of keys, whatever it is, and answers for each key once."""
    write(store, {"a": b"1"})
    assert store.load([]) == {}
    assert keys_of(store.load(key for key in ("a", "b", "a")).values()) == ["a", "b"]


def test_load_of_many_keys_at_once(store: Store) -> None:
    """`load` has no limit on the number of keys."""
    names = [f"key/{number:05d}" for number in range(3000)]
    offset = write(store, {key: key.encode() for key in names[::2]})
    found = store.load(names)
    assert [found[key].value for key in names[::2]] == [key.encode() for key in names[::2]]
    assert {found[key].version for key in names[::2]} == {offset}
    assert {found[key].value for key in names[1::2]} == {None}


def test_load_is_as_of_one_offset(two_stores: tuple[Store, Store]) -> None:
    """`load` gives keys and ranges as of one offset: what always changes together is never seen apart."""
    writer, reader = two_stores
    names = [f"pair/{number}" for number in range(20)]
    ranges = [
        Range("pair/1", "key", 50),
        Range("line/", "index_key", 5),
        Range("pair/", "key", 7, ("", "pair/3")),
    ]

    def rewrite_all(value: bytes) -> None:
        write(writer, {name: Put(value, f"line/{name}") for name in names})

    def seen() -> set[bytes | None]:
        found = reader.load(names[:5], ranges)
        assert [len(records) for records in found.ranges] == [11, 5, 6]
        return {record.value for records in (found.values(), *found.ranges) for record in records}

    rewrite_all(b"0")
    finished = threading.Event()

    def rewrite() -> None:
        for number in range(60):
            rewrite_all(b"%d" % number)
        finished.set()

    thread = threading.Thread(target=rewrite)
    thread.start()
    torn = 0
    while not finished.is_set():
        torn += len(seen()) != 1
    thread.join()
    assert torn == 0
    assert seen() == {b"59"}


def test_a_load_in_haste_may_miss_others_and_says_so(
    two_stores: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stale load may be older than the newest commit, but not than what this object showed or wrote."""
    monkeypatch.setattr(sole_writer, "RECENT_MS", math.inf)
    mine, other = two_stores
    for number in range(3):
        write(mine, {"k": b"mine %d" % number, "old": b""}, at=number)
    write(other, {"k": b"theirs"}, at=9)
    plain, stale = mine.load(["k"]), mine.load(["k"], allow_stale=True)
    assert (plain["k"].value, plain.maybe_stale, stale["k"].value) == (b"theirs", False, b"theirs")
    for number in range(2):
        write(mine, {"k": b"mine %d" % number})
    before = head(mine)
    write(other, {"k": b"theirs"})
    found = mine.load(["k", "never"], allow_stale=True)
    assert found.maybe_stale == getattr(mine, "append_is_conditional", False), (
        "only stores with all records in memory read stale"
    )
    if not found.maybe_stale:
        assert found["k"].value == b"theirs"
        return
    assert (found["k"].value, found["never"].value, found.read_point.offset) == (b"mine 1", None, before)
    with pytest.raises(Conflict) as conflict:
        mine.commit(Commit({"k": found["k"].version}, read_point=found.read_point))
    assert set(conflict.value.keys) == {"k"}
    assert mine.load(["k"], allow_stale=True)["k"].value == b"theirs", (
        "whoever was told does not miss it any more"
    )


SHOWN: dict[str, Callable[[Store], object]] = {
    "scan": lambda store: store.scan("k", by="key", limit=1),
    "tail": lambda store: store.tail(2, 1),
    "commit": lambda store: store.commit(Commit()),
}


@pytest.mark.parametrize("shown", SHOWN)
def test_a_load_in_haste_is_not_older_than_what_was_shown(
    two_stores: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch, shown: str
) -> None:
    """Whichever call has told a store object of another's commit, no load of it misses that afterwards."""
    monkeypatch.setattr(sole_writer, "RECENT_MS", math.inf)
    mine, other = two_stores
    for _ in range(2):
        write(mine, {"k": b"mine"})
    write(other, {"k": b"theirs"})
    SHOWN[shown](mine)
    assert mine.load(["k"], allow_stale=True)["k"].value == b"theirs"


def test_load_sees_every_commit_that_finished_before_it(two_stores: tuple[Store, Store]) -> None:
    """`load` is not older than any commit finished before the call, whichever store object made it."""
    one, other = two_stores
    for number in range(10):
        write(one, {"a": b"%d" % number})
        assert value(other, "a") == b"%d" % number
        write(other, {"a": b"back"})
        assert value(one, "a") == b"back"


def test_a_key_never_seen_is_absent_at_the_floor(store: Store) -> None:
    """Absence has a version: a key never seen reads with the store's floor, which is 0 before any trim."""
    write(store, {"other": b"1"})
    assert store.load(["never"]) == {"never": Record("never", 0, None, "")}


def test_a_deleted_key_is_absent_at_the_offset_of_its_deletion(store: Store) -> None:
    """Absence has a version: a deleted key reads with the offset of its tombstone, without line."""
    put_index_keys(store, {"a": "line/1"})
    offset = write(store, deletes=["a"])
    write(store, {"other": b"1"})
    assert store.load(["a"]) == {"a": Record("a", offset, None, "")}


def test_a_trimmed_tombstone_reads_at_the_floor(store: Store) -> None:
    """Absence has a version: a key whose tombstone was trimmed reads with the floor."""
    write(store, {"a": b"1"})
    write(store, deletes=["a"])
    offset = write(store, {"b": b"1"})
    store.trim(offset)
    assert store.load(["a", "never"]) == {
        "a": Record("a", offset, None, ""),
        "never": Record("never", offset, None, ""),
    }


def test_absent_then_created_then_deleted_again_is_noticed(store: Store) -> None:
    """No ABA: who read an absence conflicts when the key was there in between."""
    seen = versions(store, "a")
    write(store, {"a": b"1"})
    write(store, deletes=["a"])
    with pytest.raises(Conflict):
        store.commit(Commit(seen, {"a": Put(b"2")}))
    assert value(store, "a") is None


def test_deleting_what_is_absent_changes_its_version(store: Store) -> None:
    """A tombstone has the offset of its commit as its version, also where nothing was there."""
    offset = write(store, deletes=["ghost"])
    assert store.load(["ghost"])["ghost"] == Record("ghost", offset, None, "")
    assert by_key(store) == []


def test_versions_of_a_key_never_fall(store: Store) -> None:
    """Versions of one key never fall: not by deletion, not by trim, not when it is created again."""
    met = [version(store, "a")]
    for number in range(4):
        write(store, {"a": b"%d" % number})
        met.append(version(store, "a"))
        write(store, deletes=["a"])
        met.append(version(store, "a"))
        store.trim(head(store))
        met.append(version(store, "a"))
        write(store, {"other": b"x"})
        store.trim(head(store))
        met.append(version(store, "a"))
    assert met == sorted(met)


def test_an_empty_value_is_not_absence(store: Store) -> None:
    """A value may be empty; that is a record, and a scan shows it."""
    offset = write(store, {"a": b""})
    assert store.load(["a"])["a"] == Record("a", offset, b"", "")
    assert store.scan("", by="key", limit=9) == [Record("a", offset, b"", "")]


def test_values_and_events_are_any_bytes(store: Store) -> None:
    """Values, events and commit ids come back byte for byte."""
    write(store, {"a": EVERY_BYTE}, events=[EVERY_BYTE, b""], id_=EVERY_BYTE[:16])
    assert value(store, "a") == EVERY_BYTE
    (entry,) = store.tail(0, 9)
    assert (entry.events, entry.id) == ([EVERY_BYTE, b""], EVERY_BYTE[:16])


ORDERED = [
    "B",
    "Z",
    "a",
    "a b",
    "a!",
    "a-b",
    "a/b",
    "a0",
    "aB",
    "ab",
    "z",
    "é",
    "ÿ",
    "Ā",
    "ア",
    "\ud7ff",
    "\ue000",
    "🐍",
    "\U0010ffff",
]


def test_scan_by_key_is_in_byte_order(store: Store) -> None:
    """`scan` by key is in byte order: case, punctuation and code points beyond the BMP included."""
    write(store, dict.fromkeys(reversed(ORDERED), b"x"))
    assert by_key(store) == ORDERED == sorted(ORDERED, key=str.encode)


def test_names_that_people_sort_in_other_ways_are_in_byte_order(store: Store) -> None:
    """`scan` by key and by line, from any record on: nothing is folded, trimmed or taken for SQL."""
    check_order_of_bytes(store)


def test_scan_by_line_is_in_byte_order_and_ties_by_key(store: Store) -> None:
    """`scan` by line is in byte order of the line; equal lines are in byte order of their keys."""
    put_index_keys(store, {f"k{number:02d}": index_key for number, index_key in enumerate(reversed(ORDERED))})
    put_index_keys(store, dict.fromkeys(("ké", "kB", "ka", "k"), "a"))
    found = store.scan("", by="index_key", limit=99)
    assert [record.index_key for record in found] == sorted([*ORDERED, *"aaaa"], key=str.encode)
    assert [record.key for record in found if record.index_key == "a"] == ["k", "k16", "kB", "ka", "ké"]


def test_scan_after_is_exclusive(store: Store) -> None:
    """`scan` goes on strictly after the given record, which need not exist any more."""
    put_index_keys(store, {"a": "2", "b": "1", "c": "1", "d": "3"})
    found = {record.key: record for record in store.scan("", by="key", limit=9)}
    assert by_key(store, after=found["b"]) == ["c", "d"]
    assert by_index_key(store, after=found["b"]) == ["c", "a", "d"]
    assert by_index_key(store, after=found["c"]) == ["a", "d"]
    write(store, deletes=["b", "c"])
    assert by_key(store, after=found["b"]) == ["d"]
    assert by_index_key(store, after=found["b"]) == ["a", "d"]


def test_scan_after_something_outside_the_prefix(store: Store) -> None:
    """A start before the range begins at the range; a start behind it finds nothing."""
    put_index_keys(store, {"b/1": "m/1", "b/2": "m/2", "c": "n"})
    before, behind = Record("a", 0, None, "a"), Record("x", 0, None, "x")
    assert by_key(store, "b/", after=before) == ["b/1", "b/2"]
    assert by_index_key(store, "m/", after=before) == ["b/1", "b/2"]
    assert by_key(store, "b/", after=behind) == []
    assert by_index_key(store, "m/", after=behind) == []


@pytest.mark.parametrize("by", ["key", "index_key"])
def test_scan_pages_add_up(store: Store, by: str) -> None:
    """Reading on from the last record of each page gives every record once."""
    put_index_keys(store, {f"k{number:02d}": f"line/{number % 7}" for number in range(50)})
    whole = store.scan("", by=by, limit=99)  # type: ignore[arg-type]
    pages: list[Record] = []
    while page := store.scan("", by=by, after=pages[-1] if pages else None, limit=7):  # type: ignore[arg-type]
        assert len(page) <= 7
        pages += page
    assert pages == whole
    assert len(whole) == 50


def test_scan_of_a_prefix(store: Store) -> None:
    """A prefix selects the keys that start with it: itself, and nothing that merely stands beside it."""
    write(store, dict.fromkeys(("a", "a/", "a/b", "a/b/c", "a0", "aa", "b", "A/b"), b"x"))
    assert by_key(store, "a/") == ["a/", "a/b", "a/b/c"]
    assert by_key(store, "a/b") == ["a/b", "a/b/c"]
    assert by_key(store, "a") == ["a", "a/", "a/b", "a/b/c", "a0", "aa"]
    assert by_key(store, "c") == []
    assert by_key(store, "") == ["A/b", "a", "a/", "a/b", "a/b/c", "a0", "aa", "b"]


@pytest.mark.parametrize("edge", ["\x7f", "ÿ", "\u07ff", "\ud7ff", "\uffff", "\U0010ffff"])
def test_scan_of_a_prefix_that_ends_at_an_edge_of_unicode(store: Store, edge: str) -> None:
    """A prefix may end in any code point; the range ends where the bytes end."""
    inside = [edge, edge + "\x01", edge + "a", edge + edge]
    outside = ["a", "\ue000" if edge == "\ud7ff" else "b"]
    put_index_keys(store, {f"p{text}": f"q{text}" for text in inside + outside})
    expected = [f"p{text}" for text in sorted(inside, key=str.encode)]
    assert by_key(store, f"p{edge}") == expected
    assert by_index_key(store, f"q{edge}") == expected


def test_scan_of_the_last_code_point_alone(store: Store) -> None:
    """A prefix above which there is no string has no end."""
    last = "\U0010ffff"
    put_index_keys(store, {"a": "a", last: last, last + last: last + last})
    assert by_key(store, last) == [last, last + last]
    assert by_index_key(store, last) == [last, last + last]


def test_wildcards_in_a_prefix_mean_themselves(store: Store) -> None:
    """A prefix is no pattern."""
    write(store, dict.fromkeys(("a%b", "a_b", "aXb", "a*b", "a\\b", "a'b", 'a"b', "a?b"), b"x"))
    for prefix in ("a%", "a_", "a*", "a\\", "a'", 'a"', "a?"):
        assert by_key(store, prefix) == [prefix + "b"]


def test_scan_limit(store: Store) -> None:
    """`scan` gives at most so many, from the beginning of the range."""
    put_index_keys(store, {f"k{number}": f"l{9 - number}" for number in range(9)})
    assert by_key(store, limit=2) == ["k0", "k1"]
    assert by_index_key(store, limit=2) == ["k8", "k7"]


def test_scan_shows_no_tombstones(store: Store) -> None:
    """Deleted records are in no scan and take no place under its limit."""
    put_index_keys(store, {f"k{number}": f"l{number}" for number in range(6)})
    write(store, deletes=["k0", "k1", "k4"])
    assert by_key(store, limit=3) == by_index_key(store, limit=3) == ["k2", "k3", "k5"]


def test_only_records_in_line_are_scanned_by_line(store: Store) -> None:
    """A record stands in a line only while it has one."""
    put_index_keys(store, {"a": "l", "b": "", "c": "l"})
    assert by_index_key(store) == ["a", "c"]
    put_index_keys(store, {"a": "", "b": "l"})
    assert by_index_key(store) == ["b", "c"]
    assert by_key(store) == ["a", "b", "c"]


def test_a_record_moves_in_line(store: Store) -> None:
    """A put with another line moves the record; it never stands in two places."""
    put_index_keys(store, {"a": "1", "b": "2", "c": "3"})
    put_index_keys(store, {"a": "9"})
    assert by_index_key(store) == ["b", "c", "a"]
    assert [record.index_key for record in store.scan("9", by="index_key", limit=9)] == ["9"]


def test_two_records_swap_lines_in_one_commit(store: Store) -> None:
    """Two records may swap their places in one commit."""
    put_index_keys(store, {"a": "1", "b": "2"})
    put_index_keys(store, {"a": "2", "b": "1"})
    assert by_index_key(store) == ["b", "a"]


def test_a_scan_shows_what_load_shows(store: Store) -> None:
    """`scan` gives whole records: key, version, value and line."""
    write(store, {"a": Put(b"1", "l2"), "b": Put(EVERY_BYTE, "l1"), "c": Put(b"")})
    write(store, {"a": Put(b"2", "l2")})
    loaded = store.load(["a", "b", "c"])
    assert store.scan("", by="key", limit=9) == [loaded["a"], loaded["b"], loaded["c"]]
    assert store.scan("", by="index_key", limit=9) == [loaded["b"], loaded["a"]]
