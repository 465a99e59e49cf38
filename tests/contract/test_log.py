"""The contract of stores: `tail`, `wait`, `trim`, `now` and `seen`."""

import threading
import time
from collections.abc import Callable

import pytest

from coord.core.errors import Conflict, Trimmed
from coord.stores.contract import Commit, Head, Put, Store
from tests.support.stores.steps import (
    by_index_key,
    by_key,
    everything,
    head,
    put_index_keys,
    value,
    version,
    versions,
    write,
)


def offsets(store: Store, after: int, limit: int = 999) -> list[int]:
    return [entry.offset for entry in store.tail(after, limit)]


# tail


def test_tail_gives_entries_after_an_offset_in_order(store: Store) -> None:
    """`tail` gives entries after an offset, in order."""
    for number in range(1, 8):
        write(store, events=[b"%d" % number], at=number * 10, id_=b"id%d" % number)
    assert offsets(store, 0) == [1, 2, 3, 4, 5, 6, 7]
    assert offsets(store, 5) == [6, 7]
    assert offsets(store, 7) == offsets(store, 99) == []
    sixth = store.tail(5, 1)[0]
    assert (sixth.at, sixth.id, sixth.events) == (60, b"id6", [b"6"])


def test_tail_pages_add_up(store: Store) -> None:
    """`tail` gives at most so many, and reading on from the last gives each entry once."""
    for number in range(10):
        write(store, events=[b"%d" % number])
    met: list[int] = []
    while page := offsets(store, met[-1] if met else 0, 3):
        assert len(page) <= 3
        met += page
    assert met == list(range(1, 11))


def test_tail_sees_what_another_store_object_committed(two_stores: tuple[Store, Store]) -> None:
    """AUD-3: `tail` shows every finished commit, in the one order that all share."""
    one, other = two_stores
    for number in range(6):
        write(one if number % 2 else other, {f"k{number}": b"x"}, id_=b"%d" % number)
    assert one.tail(0, 99) == other.tail(0, 99)
    assert [entry.id for entry in one.tail(0, 99)] == [b"0", b"1", b"2", b"3", b"4", b"5"]


def test_who_saw_an_offset_never_sees_a_new_entry_before_it(two_stores: tuple[Store, Store]) -> None:
    """A follower that reads on from what it saw misses nothing, however fast others commit."""
    writer, follower = two_stores

    def commit_many() -> None:
        for number in range(80):
            write(writer, events=[b"%d" % number])

    threads = [threading.Thread(target=commit_many)]
    threads[0].start()
    met: list[int] = []
    deadline = time.monotonic() + 60
    while len(met) < 80 and time.monotonic() < deadline:
        met += offsets(follower, met[-1] if met else 0)
    threads[0].join()
    assert met == list(range(1, 81))


# wait


def test_wait_returns_when_the_head_has_passed(store: Store) -> None:
    """`wait` does not wait for what is there already."""
    write(store, {"a": b"1"})
    began = time.monotonic()
    assert store.wait(0, 30)
    assert time.monotonic() - began < 10


def test_wait_wakes_when_another_store_object_commits(two_stores: tuple[Store, Store]) -> None:
    """`wait` returns early when somebody else commits."""
    waiter, writer = two_stores
    woken = _wait_in_thread(waiter, after=head(waiter), timeout=60)
    write(writer, {"a": b"1"})
    assert woken() < 30


def test_wait_wakes_when_the_same_store_object_commits(store: Store) -> None:
    """`wait` returns early when another thread commits through the same object."""
    woken = _wait_in_thread(store, after=head(store), timeout=60)
    write(store, {"a": b"1"})
    assert woken() < 30


def test_many_wait_and_all_wake(two_stores: tuple[Store, Store]) -> None:
    """Every waiter is woken, in each store object."""
    after = head(two_stores[0])
    woken = [_wait_in_thread(two_stores[number % 2], after, timeout=60) for number in range(6)]
    write(two_stores[0], {"a": b"1"})
    assert max(wake() for wake in woken) < 30


def _wait_in_thread(store: Store, after: int, timeout: float) -> Callable[[], float]:
    """Wait in a thread until the head passes; return a function that gives the seconds it took."""
    took: list[float] = []

    def wait() -> None:
        began = time.monotonic()
        while not store.wait(after, timeout) or store.seen.offset <= after:
            store.load([])
            if time.monotonic() - began > timeout:
                break
        took.append(time.monotonic() - began)

    thread = threading.Thread(target=wait)
    thread.start()

    def joined() -> float:
        thread.join()
        return took[0]

    return joined


@pytest.mark.parametrize("timeout", [0, 0.05, 0.3])
def test_wait_never_sleeps_past_its_timeout(store: Store, timeout: float) -> None:
    """`wait` never sleeps longer than told (a hint may come early)."""
    write(store, {"a": b"1"})
    began = time.monotonic()
    store.wait(head(store), timeout)
    assert time.monotonic() - began < timeout + 5


# trim


def test_trim_forgets_entries_below_the_offset(store: Store) -> None:
    """`trim` forgets entries below an offset; who asks for them learns where the log begins."""
    for number in range(6):
        write(store, events=[b"%d" % number])
    store.trim(4)
    assert offsets(store, 3) == [4, 5, 6]
    for after in (0, 1, 2):
        with pytest.raises(Trimmed) as caught:
            store.tail(after, 9)
        assert caught.value.first == 4


def test_trim_never_touches_records(store: Store) -> None:
    """`trim` never forgets records: not their values, versions or places in line."""
    for number in range(5):
        put_index_keys(store, {f"k{number}": f"l{9 - number}"})
    write(store, deletes=["k2"])
    records = store.scan("", by="key", limit=9)
    index_key = store.scan("", by="index_key", limit=9)
    store.trim(head(store))
    assert store.scan("", by="key", limit=9) == records
    assert store.scan("", by="index_key", limit=9) == index_key
    assert by_key(store) == ["k0", "k1", "k3", "k4"]
    assert by_index_key(store) == ["k4", "k3", "k1", "k0"]


def test_trim_twice_is_trim_once(store: Store) -> None:
    """`trim` is idempotent, and a lower offset changes nothing: the floor never falls."""
    for number in range(6):
        write(store, {"a": b"%d" % number})
    store.trim(4)
    before = everything(store, after=3)
    floor = version(store, "never")
    for offset in (4, 2, 0, -1):
        store.trim(offset)
        assert everything(store, after=3) == before
        assert version(store, "never") == floor == 4


def test_trim_of_an_empty_log(store: Store) -> None:
    """There may be nothing to forget."""
    store.trim(0)
    store.trim(10)
    assert version(store, "a") == 0
    assert write(store, {"a": b"1"}) == 1
    assert offsets(store, 0) == [1]


def test_the_floor_is_never_above_the_head(store: Store) -> None:
    """A floor above the head would meet the version of the next put, and a stale absence would pass."""
    write(store, {"other": b"1"})
    absent = versions(store, "a")
    store.trim(head(store) + 100)
    trimmed = versions(store, "a")
    assert trimmed["a"] <= head(store)
    write(store, {"a": b"mine"})
    for stale in (absent, trimmed):
        with pytest.raises(Conflict):
            store.commit(Commit(stale, {"a": Put(b"theirs")}))
    assert value(store, "a") == b"mine"


def test_a_floor_that_rose_conflicts_with_older_absences(store: Store) -> None:
    """Once tombstones are forgotten, an absence read before is no longer proven, so it conflicts."""
    write(store, {"a": b"1"})
    write(store, deletes=["a"])
    deleted = versions(store, "a")
    write(store, {"b": b"1"})
    store.trim(head(store))
    with pytest.raises(Conflict):
        store.commit(Commit(deleted, {"a": Put(b"2")}))
    assert store.commit(Commit(versions(store, "a"), {"a": Put(b"3")})) == head(store)


def test_a_trim_right_after_a_read_conflicts_too(two_stores: tuple[Store, Store]) -> None:
    """An expected version must be current at the commit, also when nothing but the floor has changed."""
    one, other = two_stores
    write(one, {"a": b"1"})
    write(one, deletes=["a"])
    write(one, {"b": b"1"})
    never, deleted = versions(one, "never"), versions(one, "a")
    one.trim(2)
    with pytest.raises(Conflict):
        one.commit(Commit(never, events=[b"stale"]))
    assert versions(one, "a") == deleted
    other.trim(3)
    with pytest.raises(Conflict):
        one.commit(Commit(deleted, events=[b"stale"]))
    assert versions(one, "a", "never") == {"a": 3, "never": 3}
    assert head(one) == 3


def test_a_tombstone_at_the_offset_of_the_trim_stays(store: Store) -> None:
    """`trim` forgets what is below the offset, not what is at it."""
    write(store, {"a": b"1"})
    deleted = write(store, deletes=["a"])
    write(store, {"b": b"1"})
    store.trim(deleted)
    assert version(store, "a") == deleted
    assert offsets(store, deleted - 1) == [deleted, deleted + 1]


def test_the_log_goes_on_after_a_trim(store: Store) -> None:
    """Offsets go on where they were, also when the whole past is forgotten."""
    for number in range(5):
        write(store, {"a": b"%d" % number})
    store.trim(5)
    assert write(store, {"a": b"next"}) == 6
    store.trim(99)
    assert write(store, {"a": b"more"}) == 7
    assert offsets(store, 6) == [7]


def test_another_store_object_notices_a_trim(two_stores: tuple[Store, Store]) -> None:
    """The floor is shared: absence has the same version wherever it is read."""
    one, other = two_stores
    write(one, {"a": b"1"})
    write(other, deletes=["a"])
    write(one, {"b": b"1"})
    one.trim(3)
    assert versions(other, "a", "never") == versions(one, "a", "never") == {"a": 3, "never": 3}
    with pytest.raises(Trimmed):
        other.tail(0, 9)
    assert other.commit(Commit(versions(one, "a"), {"a": Put(b"2")})) == 4
    assert value(one, "a") == b"2"


# now and seen


def test_now_is_in_milliseconds_and_never_falls(store: Store) -> None:
    """`now` is the store's clock in milliseconds since the epoch, never decreasing."""
    readings = [store.now() for _ in range(200)]
    assert readings == sorted(readings)
    assert abs(readings[-1] - time.time() * 1000) < 3_600_000


def test_seen_is_the_newest_offset_and_time_met(store: Store) -> None:
    """`seen` follows the commits of this store object."""
    assert store.seen == Head(0, 0)
    write(store, events=[b"e"], at=500)
    assert store.seen == Head(1, 500)
    write(store, events=[b"e"], at=400)
    assert store.seen == Head(2, 400)


def test_seen_follows_what_others_committed(two_stores: tuple[Store, Store]) -> None:
    """`seen` follows the commits of others as soon as this object reads."""
    one, other = two_stores
    write(one, events=[b"e"], at=700)
    other.load([])
    assert other.seen == Head(1, 700)
    write(one, events=[b"e"], at=800)
    other.scan("", by="key", limit=1)
    assert other.seen == Head(2, 800)
    write(one, events=[b"e"], at=900)
    other.tail(2, 9)
    assert other.seen == Head(3, 900)
    write(one, events=[b"e"], at=950)
    other.commit(Commit())
    assert other.seen == Head(4, 950)
