"""What another program changed or removed in Redis is refused, never skipped."""

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from coord.core.errors import Corrupt
from coord.stores.checksums import REPAIR
from coord.stores.contract import Commit, Put, Store
from coord.stores.full_check import read_everything
from coord.stores.open import open_store
from coord.stores.redis import store as redis_store
from coord.stores.redis.records import check_page
from coord.stores.redis.scripts import keys_of
from coord.stores.redis.store import RedisDatabase
from tests.support.servers.redis import RedisServer
from tests.support.stores import damage
from tests.support.stores.fixtures import AnyDatabase
from tests.support.stores.redis_lives import stored
from tests.support.stores.steps import PLENTY, everything, value, write

Attack = Callable[[Any, dict[str, str]], object]


def filled(url: str) -> None:
    """Write five records with index keys, one without, and a tombstone."""
    with closing(open_store(url)) as database:
        store = database.log("local")
        for number in range(5):
            write(store, {f"key-{number}": Put(b'{"n":%d}' % number, f"due/{number}")}, events=[b"event"])
        write(store, {"plain": b"{}", "gone": b"x"})
        write(store, deletes=["gone"])


def parts_of(url: str) -> dict[str, str]:
    """Return the keys of tenant `local` by their last word."""
    names = keys_of(url.partition("prefix=")[2], "local")
    return {name.rpartition(":")[2]: name for name in names}


def changed(client: Any, name: str, key: str, change: Callable[[bytes], bytes]) -> None:
    found = client.hget(name, key)
    assert isinstance(found, bytes)
    client.hset(name, key, change(found))


def replaced(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    def change(record: bytes) -> bytes:
        assert old in record
        return record.replace(old, new)

    return change


def other_events(client: Any, keys: dict[str, str]) -> None:
    """Write the stream anew, with one entry changed: an entry cannot be changed in its place."""
    entries = client.xrange(keys["entry"])
    client.delete(keys["entry"])
    for id_, fields in entries:
        client.xadd(keys["entry"], {**fields, b"at": b"9"} if id_ == b"3-0" else fields, id=id_)


def moved_entry(client: Any, keys: dict[str, str]) -> None:
    """Remove one entry and add a copy with a right checksum at the end: their number stays."""
    fields = client.xrange(keys["entry"], "3", "3")[0][1]
    client.xdel(keys["entry"], "3-0")
    client.xadd(keys["entry"], {**fields, b"checksum": int(fields[b"checksum"]) + 5}, id="8-0")


def swapped(client: Any, keys: dict[str, str]) -> None:
    """Move a record to another key: the number of records stays."""
    record = client.hget(keys["record"], "key-3")
    client.hdel(keys["record"], "key-3")
    client.hset(keys["record"], "key-9", record)


ATTACKS: dict[str, Attack] = {
    "a value": lambda c, k: changed(c, k["record"], "key-3", replaced(b'"n":3', b'"n":9')),
    "a version": lambda c, k: changed(c, k["record"], "key-3", replaced(b"%016d" % 4, b"%016d" % 5)),
    "an index key": lambda c, k: changed(c, k["record"], "key-3", replaced(b"due/3", b"due/9")),
    "a foreign value": lambda c, k: c.hset(k["record"], "key-3", '{"valid":"json"}'),
    "a tombstone over a record": lambda c, k: changed(c, k["record"], "key-3", lambda old: old[:32]),
    "a key": swapped,
    "a record": lambda c, k: c.hdel(k["record"], "key-3"),
    "a tombstone": lambda c, k: c.hdel(k["record"], "gone"),
    "an added record": lambda c, k: c.hset(k["record"], "more", c.hget(k["record"], "key-3")),
    "all records": lambda c, k: c.delete(k["record"]),
    "records of another type": lambda c, k: c.delete(k["record"]) and c.set(k["record"], '{"a":1}'),
    "a listed key": lambda c, k: c.zrem(k["key"], "key-3"),
    "another listed key": lambda c, k: c.zrem(k["key"], "key-3") and c.zadd(k["key"], {"other": 0}),
    "all listed keys": lambda c, k: c.delete(k["key"]),
    "an index entry": lambda c, k: c.zrem(k["index"], "due/3\0key-3"),
    "another index entry": lambda c, k: (
        c.zrem(k["index"], "due/3\0key-3") and c.zadd(k["index"], {"due/1\0key-3": 0})
    ),
    "the index": lambda c, k: c.delete(k["index"]),
    "the list of tombstones": lambda c, k: c.delete(k["dead"]),
    "an entry": lambda c, k: c.xdel(k["entry"], "3-0"),
    "the newest entry": lambda c, k: c.xdel(k["entry"], "7-0"),
    "an entry moved to the end": moved_entry,
    "the time of an entry": other_events,
    "an added entry": lambda c, k: c.xadd(k["entry"], {"a": "b"}, id="8-0"),
    "all entries": lambda c, k: c.delete(k["entry"]),
    "the head": lambda c, k: c.hset(k["head"], "head", 6),
    "the floor": lambda c, k: c.hset(k["head"], "floor", 5),
    "the time of the head": lambda c, k: c.hset(k["head"], "at", 5),
    "the totals": lambda c, k: c.hincrby(k["head"], "digest", 1),
    "a lost seal": lambda c, k: c.hdel(k["head"], "seal"),
    "the whole head": lambda c, k: c.delete(k["head"]),
    "the whole log": lambda c, k: c.delete(*(k[part] for part in k if part not in ("meta", "tenants"))),
    "the metadata of another type": lambda c, k: c.delete(k["meta"]) and c.set(k["meta"], "{}"),
    "the epoch of the metadata": lambda c, k: c.hdel(k["meta"], "epoch"),
    "the base of the metadata": lambda c, k: c.hset(k["meta"], "base", "x"),
    "the id of the store": lambda c, k: c.hset(k["meta"], "store_id", "another"),
}


@pytest.mark.parametrize("what", ATTACKS)
def test_what_another_program_changed_is_corrupt(redis_server: RedisServer, what: str) -> None:
    """Whatever was changed or deleted by redis-cli: `Corrupt` for whoever reads everything."""
    url = redis_server.fresh_store_url()
    filled(url)
    with redis_server.admin() as client:
        ATTACKS[what](client, parts_of(url))
    with pytest.raises(Corrupt), closing(open_store(url)) as database:
        everything(database.log("local"))


def test_what_is_damaged_is_named_with_the_next_step(redis_server: RedisServer) -> None:
    """The tenant, the key, and `coord doctor`."""
    for what, named in {
        "a record": 'tenant local in Redis has 6 records; its log counted 7: it has lost the record "key-3"',
        "a value": "the record 'key-3' of tenant local in redis://",
        "records of another type": "tenant local in Redis has something else at",
        "the newest entry": "tenant local in Redis has 6 entries; its log counted 7",
    }.items():
        url = redis_server.fresh_store_url()
        filled(url)
        with redis_server.admin() as client:
            ATTACKS[what](client, parts_of(url))
        with pytest.raises(Corrupt) as refused, closing(open_store(url)) as database:
            everything(database.log("local"))
        assert named in str(refused.value)
        assert refused.value.hint == REPAIR


@pytest.mark.parametrize("what", ["a record", "an index entry", "an entry", "all records", "the whole head"])
def test_a_process_that_stays_notices_at_its_next_step(redis_server: RedisServer, what: str) -> None:
    """What vanished is noticed by every read and commit, whatever key it is about; nothing is written."""
    url = redis_server.fresh_store_url()
    filled(url)
    with closing(open_store(url)) as database, redis_server.admin() as client:
        store: Store = database.log("local")
        found, keys = store.load(["new"]), parts_of(url)
        ATTACKS[what](client, keys)
        before = client.hgetall(keys["record"])
        for use in (
            lambda: store.load(["plain"]),
            lambda: store.commit(Commit({"new": 0}, {"new": Put(b"1")}, read_point=found.read_point)),
            lambda: store.tail(6, 1),
            lambda: store.trim(5),
        ):
            with pytest.raises(Corrupt):
                use()
        assert client.hgetall(keys["record"]) == before


def test_a_trim_keeps_live_records_that_are_listed_as_dead(redis_server: RedisServer) -> None:
    """A damaged list of tombstones does not lead a trim to live records."""
    url = redis_server.fresh_store_url()
    filled(url)
    with closing(open_store(url)) as database, redis_server.admin() as client:
        store, keys = database.log("local"), parts_of(url)
        client.zrem(keys["dead"], "gone")
        client.zadd(keys["dead"], {"key-3": 1})
        with pytest.raises(Corrupt, match="key-3"):
            store.trim(7)
        assert client.hexists(keys["record"], "key-3")


def older(client: Any, url: str) -> None:
    """Put an older record in place of a newer one; its checksum is right."""
    with closing(open_store(url)) as database:
        assert isinstance(database, RedisDatabase)
        record = stored(database, "key-3", 1, b"old", "due/3")
    client.hset(parts_of(url)["record"], "key-3", record)


def test_an_older_record_with_a_right_checksum_is_noticed(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An opening looks at all records if there are few; `coord doctor` does it in any case."""
    url = redis_server.fresh_store_url()
    filled(url)
    with redis_server.admin() as client:
        older(client, url)
    with closing(open_store(url)) as database, pytest.raises(Corrupt, match="older ones"):
        database.log("local")
    monkeypatch.setattr(redis_store, "VERIFY_ROWS", 3)
    with closing(open_store(url)) as database:
        store = database.log("local")
        assert value(store, "key-3") == b"old"
        with pytest.raises(Corrupt, match="older ones"):
            read_everything(store)


def test_totals_follow_every_kind_of_change(
    redis_server: RedisServer, open_database: Callable[[str], AnyDatabase]
) -> None:
    """Puts, other index keys, deletions, revivals, trims, and commits after those of others."""
    url = redis_server.fresh_store_url()
    mine, others = (open_database(url).log("local") for _ in range(2))
    for number in range(30):
        store = (mine, others)[number % 3 == 1]
        puts = {f"key-{number % 7}": Put(b"%d" % number, f"due/{number}" if number % 2 else "")}
        write(store, puts, deletes=[f"key-{(number + 3) % 7}"], events=[b"event"])
        if number % 10 == 9:
            store.trim(number - 3)
        for each in (mine, others):
            each.verify()
    assert len(mine.tail(27, PLENTY)) == 3
    assert everything(mine, 27) == everything(others, 27)


def test_offsets_may_leap_only_into_a_later_epoch() -> None:
    """A raised epoch begins anywhere; within one no entry is missing."""
    leap = (1 << 40) + 77
    for offsets, after, limit, head in (
        ([3, 4, 5], 2, 9, 5),
        ([3, 4], 2, 2, 5),
        ([], 5, 9, 5),
        ([], 9, 9, 5),
        ([5, leap + 1], 4, 9, leap + 1),
        ([5], 4, 9, leap),
        ([3], 1, 9, 3),
    ):
        check_page("here", offsets, after, limit, head, floor=2)
    for offsets, after, limit, head in (
        ([4, 5], 2, 9, 5),
        ([3, 5], 2, 9, 5),
        ([3, 4], 2, 9, 5),
        ([], 2, 9, 5),
        ([6], 5, 9, 5),
        ([5, leap + 1, leap + 3], 4, 9, leap + 3),
        ([leap + 1, 5], 4, 2, leap + 3),
    ):
        with pytest.raises(Corrupt, match="is missing in here"):
            check_page("here", offsets, after, limit, head, floor=2)


def of_locks(client: Any, keys: dict[str, str], pattern: bytes) -> list[bytes]:
    found = [key for key in client.hkeys(keys["record"]) if pattern in key]
    assert found
    return found


def other_owner(client: Any, keys: dict[str, str]) -> None:
    for key in of_locks(client, keys, b"lock/"):
        changed(client, keys["record"], key.decode(), lambda old: old.replace(b'"ada"', b'"eve"'))


ANSWERS: dict[str, Attack] = {
    "a lock": lambda c, k: c.hdel(k["record"], *of_locks(c, k, b"=ada")),
    "a finished task": lambda c, k: c.hdel(k["record"], *of_locks(c, k, b"task-00")),
    "a changed owner": other_owner,
    "everything": lambda c, k: c.delete(*(k[part] for part in k if part not in ("meta", "tenants"))),
}


def test_no_damage_gives_a_wrong_answer(redis_server: RedisServer) -> None:
    """Locks, tasks and claims that vanish or change: refused, or answered as before."""
    url = redis_server.fresh_store_url()
    damage.fill(url)
    campaign = damage.Campaign(damage.ask_other(lambda: open_store(url)))
    for what, attack in ANSWERS.items():
        url = redis_server.fresh_store_url()
        damage.fill(url)
        with redis_server.admin() as client:
            attack(client, parts_of(url))
        campaign.add(what, damage.ask_other(lambda url=url: open_store(url)))  # type: ignore[misc]
    assert campaign.wrong == []
    assert campaign.refused == campaign.rounds
