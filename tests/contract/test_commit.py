"""The contract of stores: what `commit` does, and what it refuses."""

import contextlib
from collections.abc import Callable

import pytest

from coord.core.errors import Conflict, CoordError, Invalid, LimitReached
from coord.stores.contract import KEY_BYTES, RECORD_BYTES, Commit, Entry, Put, Record, Store
from tests.support.stores.steps import (
    by_key,
    everything,
    head,
    put_index_keys,
    refusal_of,
    value,
    version,
    versions,
    write,
)


def test_offsets_count_without_gaps(store: Store) -> None:
    """The offset of a commit is head + 1: 1, 2, 3 … and every put and tombstone has it as its version."""
    assert head(store) == 0
    assert [write(store, {"a": b"%d" % number}) for number in range(1, 6)] == [1, 2, 3, 4, 5]
    assert write(store, {"b": b"x", "c": b"x"}, deletes=["a"]) == 6
    assert versions(store, "a", "b", "c") == {"a": 6, "b": 6, "c": 6}
    assert [entry.offset for entry in store.tail(0, 99)] == [1, 2, 3, 4, 5, 6]


def test_a_failed_commit_leaves_no_gap(store: Store) -> None:
    """Offsets have no gaps: a conflict uses none up."""
    write(store, {"a": b"1"})
    for _ in range(3):
        with pytest.raises(Conflict):
            store.commit(Commit({"a": 0}, {"a": Put(b"2")}))
    assert write(store, {"a": b"3"}) == 2
    assert [entry.offset for entry in store.tail(0, 99)] == [1, 2]


def test_all_of_a_commit_becomes_visible(store: Store) -> None:
    """`commit` applies puts, deletes and events together."""
    put_index_keys(store, {"old": "l/1", "moved": "l/2"})
    offset = store.commit(
        Commit(
            versions(store, "old", "moved", "new"),
            {"moved": Put(b"m", "l/9"), "new": Put(b"n", "l/5")},
            ["old"],
            [b"event 1", b"event 2"],
            1234,
            b"id",
        )
    )
    assert store.load(["old", "moved", "new"]) == {
        "old": Record("old", offset, None, ""),
        "moved": Record("moved", offset, b"m", "l/9"),
        "new": Record("new", offset, b"n", "l/5"),
    }
    assert store.tail(offset - 1, 9) == [Entry(offset, 1234, b"id", [b"event 1", b"event 2"])]


def loaded_and_changed(store: Store, *keys: str) -> Commit:
    """Load some records, and return the commit that changes them all as of that moment."""
    found = store.load(keys)
    expected_versions = {key: record.version for key, record in found.items()}
    return Commit(expected_versions, {key: Put(b"changed") for key in keys}, read_point=found.read_point)


def test_what_was_loaded_at_the_head_stands(store: Store) -> None:
    """`read_point`: while head and floor are those of the load, whatever was expected holds."""
    write(store, {"a": b"1"})
    assert store.commit(loaded_and_changed(store, "a", "new")) == 2
    assert store.commit(loaded_and_changed(store, "a", "new")) == 3
    assert versions(store, "a", "new") == {"a": 3, "new": 3}


def test_a_head_that_moved_is_no_conflict_by_itself(store: Store) -> None:
    """`read_point`: others may have written what this commit does not expect."""
    commit = loaded_and_changed(store, "a", "b")
    write(store, {"elsewhere": b"x"})
    assert store.commit(commit) == 2


@pytest.mark.parametrize("writes", [True, False], ids=["writing", "only-asking"])
@pytest.mark.parametrize("changed", ["a", "never-seen"])
def test_what_changed_after_the_load_conflicts(store: Store, changed: str, writes: bool) -> None:
    """`read_point`: a commit conflicts if somebody wrote a loaded key since; nothing happens."""
    write(store, {"a": b"1"})
    commit = loaded_and_changed(store, "a", "never-seen")
    if not writes:
        commit = Commit(commit.expected_versions, read_point=commit.read_point)
    write(store, {changed: b"theirs"})
    before = everything(store)
    with pytest.raises(Conflict) as conflict:
        store.commit(commit)
    assert conflict.value.keys == {changed}
    assert everything(store) == before


def test_the_same_commit_lands_once(store: Store) -> None:
    """`read_point`: committed again, as after a lost answer, it meets what it has written itself."""
    commit = loaded_and_changed(store, "a")
    assert store.commit(commit) == 1
    with pytest.raises(Conflict):
        store.commit(commit)
    assert head(store) == 1


def test_nothing_of_a_conflicting_commit_happens(store: Store) -> None:
    """All or nothing: one changed key among many, and no put, delete, line or event takes effect.

    CFL-2, STO-5.
    """
    put_index_keys(store, {key: f"l/{key}" for key in "abcd"})
    stale = versions(store, "a", "b", "c", "d", "e")
    write(store, {"d": b"changed"})
    before = everything(store)
    with pytest.raises(Conflict):
        store.commit(Commit(stale, {"a": Put(b"no", "m"), "e": Put(b"no")}, ["b"], [b"no"], 99, b"no"))
    assert everything(store) == before


def test_a_conflict_names_exactly_the_changed_keys(store: Store) -> None:
    """`Conflict` names the keys that changed and no other: put, deleted, created, expected too high."""
    write(store, dict.fromkeys(("same", "put", "deleted", "future"), b"1"))
    seen = versions(store, "same", "put", "deleted", "created", "absent", "future")
    write(store, {"put": b"2", "created": b"1", "unread": b"1"}, deletes=["deleted"])
    with pytest.raises(Conflict) as caught:
        store.commit(Commit({**seen, "future": 77}, {"same": Put(b"2")}))
    assert caught.value.keys == {"put", "deleted", "created", "future"}


def test_a_version_that_was_never_there_conflicts(store: Store) -> None:
    """A commit succeeds only if every expected version is current; higher ones are not."""
    offset = write(store, {"a": b"1"})
    for expected in (0, offset + 1, 2**40):
        with pytest.raises(Conflict):
            store.commit(Commit({"a": expected}, {"a": Put(b"2")}))
    with pytest.raises(Conflict):
        store.commit(Commit({"absent": 5}, events=[b"e"]))
    assert value(store, "a") == b"1"


def test_expected_reads_make_write_skew_impossible(store: Store) -> None:
    """Keys only read are expected too: of two commits that rest on what the other writes, one fails."""
    write(store, {"x": b"free", "y": b"free"})
    seen = versions(store, "x", "y")
    store.commit(Commit(seen, {"x": Put(b"taken")}))
    with pytest.raises(Conflict) as caught:
        store.commit(Commit(seen, {"y": Put(b"taken")}))
    assert caught.value.keys == {"x"}
    assert value(store, "y") == b"free"


def test_an_expected_read_keeps_its_version(store: Store) -> None:
    """A key that is expected but not written stays as it is."""
    first = write(store, {"read": b"1"})
    store.commit(Commit({"read": first, "written": 0}, {"written": Put(b"1")}))
    assert version(store, "read") == first


def test_a_commit_that_writes_nothing_verifies_and_returns_the_head(store: Store) -> None:
    """A commit without puts, deletes and events appends nothing; it verifies and returns the head."""
    write(store, {"a": b"1"})
    write(store, {"b": b"1"})
    seen = versions(store, "a", "absent")
    before = everything(store)
    assert store.commit(Commit(seen, at=5, id=b"unused")) == 2
    assert store.commit(Commit()) == 2
    assert everything(store) == before
    write(store, {"a": b"2"})
    with pytest.raises(Conflict) as caught:
        store.commit(Commit(seen))
    assert caught.value.keys == {"a"}


def test_an_empty_store_has_the_head_0(store: Store) -> None:
    """Creating a store writes no entry."""
    assert store.commit(Commit()) == 0
    assert store.commit(Commit({"a": 0, "b": 0})) == 0
    assert everything(store) == (0, [], [], [])


def test_events_alone_are_a_commit(store: Store) -> None:
    """A commit with events only appends an entry and changes no record."""
    write(store, {"a": b"1"})
    records = store.scan("", by="key", limit=9)
    assert store.commit(Commit(events=[b"tick"], at=7, id=b"id")) == 2
    assert store.tail(1, 9) == [Entry(2, 7, b"id", [b"tick"])]
    assert store.scan("", by="key", limit=9) == records


def test_a_put_without_events_is_an_entry_too(store: Store) -> None:
    """One commit, one entry: also where it tells nothing."""
    write(store, {"a": b"1"}, at=3, id_=b"x")
    assert store.tail(0, 9) == [Entry(1, 3, b"x", [])]


def test_putting_the_same_value_is_a_change(store: Store) -> None:
    """A put gives a new version whether or not the value differs."""
    write(store, {"a": b"same"})
    seen = versions(store, "a")
    write(store, {"a": b"same"})
    with pytest.raises(Conflict):
        store.commit(Commit(seen, {"a": Put(b"mine")}))


def test_a_large_commit_goes_in_whole(store: Store) -> None:
    """Thousands of records in one commit share one offset."""
    names = [f"k/{number:05d}" for number in range(4000)]
    offset = write(store, {key: Put(key.encode(), f"l/{key}") for key in names}, events=[b"e"] * 4000)
    assert by_key(store, "k/") == names
    assert {record.version for record in store.scan("l/", by="index_key", limit=5000)} == {offset}
    assert len(store.tail(0, 9)[0].events) == 4000


# Malformed and oversized commits: refused before anything is touched.

Malform = Callable[[Store], Commit]


def _all_expected(commit: Commit) -> Commit:
    return Commit(
        dict.fromkeys([*commit.puts, *commit.deletes], 0), commit.puts, commit.deletes, commit.events
    )


def _with_index_key(index_key: str) -> Commit:
    return _all_expected(Commit(puts={"a": Put(b"x", index_key)}))


def _with_key(key: str) -> Commit:
    return _all_expected(Commit(puts={key: Put(b"x")}))


MALFORMED: dict[str, Malform] = {
    "a put that is not expected": lambda store: Commit({"b": 0}, {"a": Put(b"x"), "b": Put(b"x")}),
    "a delete that is not expected": lambda store: Commit({"b": 0}, {"b": Put(b"x")}, ["a"]),
    "a key put and deleted": lambda store: Commit({"a": 0}, {"a": Put(b"x")}, ["a"]),
    "a key deleted twice": lambda store: Commit({"a": 0}, {}, ["a", "a"]),
    "an empty key": lambda store: _with_key(""),
    "a key with NUL": lambda store: _with_key("a\0b"),
    "a key with half a surrogate pair": lambda store: _with_key("a\ud800"),
    "a line with NUL": lambda store: _with_index_key("a\0b"),
    "a line with half a surrogate pair": lambda store: _with_index_key("\udfff"),
    "a key that is too long": lambda store: _with_key("k" * (KEY_BYTES + 1)),
    "a key of too many bytes": lambda store: _with_key("é" * (KEY_BYTES // 2 + 1)),
    "a line that is too long": lambda store: _with_index_key("l" * (KEY_BYTES + 1)),
    "an empty key deleted": lambda store: _all_expected(Commit(deletes=[""])),
    "a key with NUL deleted": lambda store: _all_expected(Commit(deletes=["a\0b"])),
    "a key with half a surrogate pair deleted": lambda store: _all_expected(Commit(deletes=["\ud800"])),
    "a key that is too long deleted": lambda store: _all_expected(Commit(deletes=["k" * (KEY_BYTES + 1)])),
    "a key with NUL expected": lambda store: Commit({"a\0b": 0}, events=[b"e"]),
    "a key with half a surrogate pair expected": lambda store: Commit({"\ud800": 0}, events=[b"e"]),
}


def test_a_malformed_commit_is_invalid(store: Store) -> None:
    """`Invalid`: the commit is malformed, nothing happened."""
    write(store, {"there": b"1"})
    before = everything(store)
    for what, malformed in MALFORMED.items():
        assert refusal_of(store.commit, malformed(store)) is Invalid, what
        assert everything(store) == before, what


TOO_LARGE: dict[str, Malform] = {
    "a value": lambda store: _all_expected(Commit(puts={"a": Put(bytes(store.limits.record_bytes + 1))})),
    "many values": lambda store: _all_expected(Commit(puts=_puts_of(store.limits.commit_bytes + 1))),
    "events": lambda store: Commit(events=_events_of(store.limits.commit_bytes + 1)),
}


def _puts_of(size: int) -> dict[str, Put]:
    number, rest = divmod(size, RECORD_BYTES)
    return {f"k{index:03d}": Put(bytes(RECORD_BYTES)) for index in range(number)} | {"rest": Put(bytes(rest))}


def _events_of(size: int) -> list[bytes]:
    number, rest = divmod(size, 65536)
    return [bytes(65536)] * number + [bytes(rest)]


@pytest.mark.parametrize("what", TOO_LARGE)
def test_a_commit_over_a_limit_is_refused(store: Store, what: str) -> None:
    """`LimitReached`: the commit is too large, nothing happened."""
    write(store, {"there": b"1"})
    before = everything(store)
    with pytest.raises(LimitReached):
        store.commit(TOO_LARGE[what](store))
    assert everything(store) == before


def test_the_largest_value_and_the_longest_key_and_line(store: Store) -> None:
    """A value of exactly 256 KiB and a key and line of exactly 700 bytes are taken, and come back whole."""
    assert (store.limits.record_bytes, store.limits.key_bytes) == (256 * 1024, 700)
    key, index_key = "é" * 350, "l" * 700
    blob = bytes(number % 251 for number in range(256 * 1024))
    offset = write(store, {key: Put(blob, index_key)})
    assert store.load([key])[key] == Record(key, offset, blob, index_key)
    assert store.scan("lll", by="index_key", limit=2) == [Record(key, offset, blob, index_key)]


def test_a_commit_of_almost_all_it_may_hold(store: Store) -> None:
    """A commit just below `commit_bytes` is taken."""
    room = store.limits.commit_bytes - 4096
    offset = store.commit(_all_expected(Commit(puts=_puts_of(room))))
    assert sum(len(record.value or b"") for record in store.scan("", by="key", limit=999)) == room
    assert versions(store, "k000", "rest") == {"k000": offset, "rest": offset}


@pytest.mark.parametrize("bad", ["\0", "a\0b", "\ud800", "k" * 5000])
def test_reading_an_impossible_key_fails_cleanly(store: Store, bad: str) -> None:
    """Nothing but coord's own errors is raised: a key that cannot exist is absent, or `Invalid`."""
    write(store, {"there": b"1"})
    with contextlib.suppress(Invalid):
        assert store.load([bad])[bad].value is None
    with contextlib.suppress(Invalid):
        assert store.scan(bad, by="key", limit=9) == store.scan(bad, by="index_key", limit=9) == []
    assert value(store, "there") == b"1"


def test_control_characters_quotes_and_spaces_are_good_keys(store: Store) -> None:
    """Everything else may be in a key or a line."""
    odd = [
        "\x01",
        " ",
        "'",
        '"',
        "\\",
        "a\nb",
        "a\tb",
        "%s",
        "{}",
        "--",
        "../x",
        "~",
        "\x7f",
        "\x85",
        "\u2028",
        "\ufeff",
    ]
    put_index_keys(store, {text: text for text in odd})
    assert by_key(store) == sorted(odd, key=str.encode)
    assert [record.index_key for record in store.scan("", by="index_key", limit=99)] == sorted(
        odd, key=str.encode
    )
    assert {key: record.key for key, record in store.load(odd).items()} == dict(zip(odd, odd, strict=True))


def test_errors_are_those_of_coord(store: Store) -> None:
    """Every refusal is a `CoordError`, so that callers can tell whether it happened."""
    for commit in (Commit({"a": 9}, events=[b"e"]), Commit(puts={"a": Put(b"x")})):
        with pytest.raises(CoordError):
            store.commit(commit)
    assert head(store) == 0
