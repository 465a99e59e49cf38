"""The contract of stores: opening, closing, tenants, and what is there the next time."""

import contextlib
import threading
from collections.abc import Callable
from typing import Any

import pytest

from coord.core.errors import Conflict, Invalid, Unavailable
from coord.stores.contract import Commit, Head, Put, Store
from coord.stores.database import Database
from coord.stores.open import install, open_store
from tests.support.servers.kinds import SHARED_STORES
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

OpenDatabase = Callable[[str], Database[Any]]


# Closing.


def test_close_is_idempotent(store_url: str) -> None:
    """`close` may be called twice, on the database and on its stores."""
    database = open_store(store_url)
    store = database.log("local")
    write(store, {"a": b"1"})
    for _ in range(2):
        database.close()
        store.close()
    with pytest.raises(Unavailable):
        database.log("local")


USES: dict[str, Callable[[Store], object]] = {
    "load": lambda store: store.load(["a"]),
    "scan": lambda store: store.scan("", by="key", limit=9),
    "commit": lambda store: store.commit(Commit({"a": 1}, {"a": Put(b"2")})),
    "verify": lambda store: store.commit(Commit({"a": 1})),
    "tail": lambda store: store.tail(0, 9),
    "trim": lambda store: store.trim(1),
}


@pytest.mark.parametrize("use", USES)
def test_use_after_close_is_unavailable(store_url: str, use: str) -> None:
    """A closed store says `Unavailable`: nothing happened."""
    database = open_store(store_url)
    store = database.log("local")
    write(store, {"a": b"1"})
    database.close()
    with pytest.raises(Unavailable):
        USES[use](store)


def test_closing_wakes_or_refuses_a_waiter(store_url: str) -> None:
    """Nobody waits for a closed store: `wait` returns or says `Unavailable`, well before its timeout."""
    database = open_store(store_url)
    store = database.log("local")
    ended = threading.Event()

    def wait() -> None:
        with contextlib.suppress(Unavailable):
            store.wait(0, 60)
        ended.set()

    thread = threading.Thread(target=wait)
    thread.start()
    database.close()
    assert ended.wait(30)
    thread.join()


# Tenants.


def test_tenants_are_independent(database: Database[Any]) -> None:
    """STO-34: Each tenant has its own records, its own log and its own offsets."""
    one, other = database.log("one"), database.log("other")
    put_index_keys(one, {"a": "l/1"})
    write(one, {"b": b"1"}, events=[b"e"])
    assert everything(other) == (0, [], [], [])
    assert write(other, {"a": b"theirs"}) == 1
    assert (value(one, "a"), value(other, "a")) == (b"x", b"theirs")
    assert (head(one), head(other)) == (2, 1)
    one.trim(2)
    assert version(one, "never") == 2
    assert version(other, "never") == 0
    assert [entry.offset for entry in other.tail(0, 9)] == [1]


def test_tenants_whose_names_are_alike(database: Database[Any]) -> None:
    """Names are compared exactly: by case, by punctuation, by length."""
    names = [
        "a",
        "A",
        "a.",
        "a.b",
        "a_b",
        "a-b",
        "a~1",
        "a@b",
        "a+b",
        "a=b",
        "aa",
        "_",
        "0",
        "x" * 127,
        "x" * 128,
    ]
    for name in names:
        write(database.log(name), {"name": name.encode()})
    assert [value(database.log(name), "name") for name in names] == [name.encode() for name in names]
    assert {head(database.log(name)) for name in names} == {1}


BAD_NAMES = ["", ".", "..", "-a", "a/b", "../a", "a b", "a\n", "a\0", "é", "a:b", "a%b", "'", "x" * 129]


def test_a_bad_tenant_name_is_invalid(database: Database[Any]) -> None:
    """A tenant's name comes from outside; it is checked before anything is made of it."""
    for name in BAD_NAMES:
        assert refusal_of(database.log, name) is Invalid, name
        assert everything(database.log("local")) == (0, [], [], []), name


def test_a_tenant_has_one_store_object(database: Database[Any]) -> None:
    """`log` gives the same object each time, from every thread."""
    met: list[Store] = []
    threads = [threading.Thread(target=lambda: met.append(database.log("local"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(met) == 8
    assert all(store is database.log("local") for store in met)


# Opening again.


def test_everything_is_there_after_reopening(shared_url: str, open_database: OpenDatabase) -> None:
    """What was committed, deleted and trimmed is the same for whoever opens the store next.

    PRB-19, AUD-33.
    """
    database = open_database(shared_url)
    store = database.log("local")
    put_index_keys(store, {f"k{number}": f"l{9 - number}" for number in range(6)})
    write(store, {"k0": Put(b"\0\xff", "l/x")}, deletes=["k1", "k2"], events=[b"e"], at=77, id_=b"id")
    write(store, deletes=["k3"])
    store.trim(2)
    before = everything(store, after=1), versions(store, "k1", "k3", "never"), store.seen
    write(database.log("second"), {"a": b"2"})
    identity = database.store_id, database.epoch
    database.close()

    again = open_database(shared_url)
    assert (again.store_id, again.epoch) == identity
    store = again.log("local")
    assert (everything(store, after=1), versions(store, "k1", "k3", "never"), store.seen) == before
    assert value(again.log("second"), "a") == b"2"
    assert write(store, {"next": b"x"}) == before[0].head + 1


def test_stale_versions_conflict_after_reopening(shared_url: str, open_database: OpenDatabase) -> None:
    """Versions outlive the process that read them."""
    store = open_database(shared_url).log("local")
    write(store, {"a": b"1"})
    write(store, deletes=["b"])
    seen = versions(store, "a", "b", "never")
    open_database(shared_url).log("local").commit(Commit(seen, {"a": Put(b"2")}, ["b"]))
    with pytest.raises(Conflict) as caught:
        open_database(shared_url).log("local").commit(Commit(seen, {"never": Put(b"3")}))
    assert caught.value.keys == {"a", "b"}


def test_a_fresh_store_object_has_seen_the_head_once_it_has_read(
    shared_url: str, open_database: OpenDatabase
) -> None:
    """`seen` of a store just opened is right after its first read, whatever that reads."""
    write(open_database(shared_url).log("local"), events=[b"e"], at=123)
    store = open_database(shared_url).log("local")
    store.load([])
    assert store.seen == Head(1, 123)


@pytest.mark.parametrize("shared", SHARED_STORES)
def test_each_store_has_an_id_of_its_own(make_url: Callable[[str], str], shared: str) -> None:
    """A store id is drawn when the store is made."""
    ids = []
    for url in (make_url(shared), make_url(shared)):
        database = open_store(url)
        ids.append(database.store_id)
        database.close()
    assert all(ids)
    assert ids[0] != ids[1]


def test_installing_again_changes_nothing(shared_url: str, open_database: OpenDatabase) -> None:
    """`install` does nothing where the store is prepared already."""
    database = open_database(shared_url)
    write(database.log("local"), {"a": b"1"})
    install(shared_url)
    install(shared_url)
    assert by_key(database.log("local")) == ["a"]
    assert open_database(shared_url).store_id == database.store_id


def test_durable_stores_are_shared_stores(store: Store, database: Database[Any]) -> None:
    """What outlives the process can be opened by another; what cannot be shared promises nothing durable."""
    assert store.limits.durable == store.limits.shared
    assert store.limits.commit_bytes >= 2 * store.limits.record_bytes
    assert database.store_id


@pytest.mark.parametrize(
    "url",
    [
        "",
        "memory",
        "nowhere:x",
        "file:",
        "file://",
        "file:///",
        "sqlite://",
        "sqlite:///",
        "file://host/x",
        "sqlite:///a?b=c",
        "file://[x",
    ],
)
def test_a_bad_url_is_invalid(url: str) -> None:
    """A url that names no store is refused with a hint, and makes nothing."""
    with pytest.raises(Invalid) as caught:
        open_store(url)
    assert caught.value.hint
