"""What only the Redis store can get wrong: lost connections, errors of the server, damage, clusters."""

import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
import redis
from redis import exceptions

import coord
from coord.core.errors import Conflict, CoordError, Corrupt, Unavailable, Unknown, Unreachable
from coord.stores.contract import Commit, Put, Store
from coord.stores.redis.connection import translated
from coord.stores.redis.scripts import keys_of
from tests.support.servers.redis import SETTINGS, RedisServer
from tests.support.servers.server import running
from tests.support.servers.tcp_relay import TcpRelay, relaying
from tests.support.stores.fixtures import AnyDatabase
from tests.support.stores.redis_lives import PATIENCE_S, keys, stored, until
from tests.support.stores.steps import PLENTY, by_key, everything, head, value, write

Opener = Callable[[str], AnyDatabase]

ONE = Commit(expected_versions={"k": 0}, puts={"k": Put(b"1")}, events=[b"e"], id=b"one")


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A server for these tests alone, since they kill it and turn its screws."""
    with running(RedisServer, tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def admin(own_server: RedisServer) -> Iterator[redis.Redis]:
    with own_server.admin() as client:
        yield client


@pytest.fixture
def database(own_server: RedisServer, open_database: Opener) -> AnyDatabase:
    return open_database(own_server.fresh_store_url())


@pytest.fixture
def store(database: AnyDatabase) -> Store:
    return database.log("local")


@pytest.fixture
def way(own_server: RedisServer) -> Iterator[TcpRelay]:
    """A way to the server that can be cut."""
    with relaying(own_server.port) as relay:
        yield relay


# Losing connections.


def test_scripts_that_the_server_forgot_are_sent_again(store: Store, admin: redis.Redis) -> None:
    """After SCRIPT FLUSH, as after a restart, every call works, and a commit is made once."""
    write(store, {"k": b"0"})
    admin.script_flush()
    assert write(store, {"k": b"1"}) == 2
    admin.script_flush()
    assert [entry.offset for entry in store.tail(0, PLENTY)] == [1, 2]


def test_a_commit_is_one_round_trip(own_server: RedisServer, open_database: Opener, way: TcpRelay) -> None:
    """One question to the server per commit and per read; none for `now`."""
    store = open_database(way.url(own_server.fresh_store_url())).log("local")
    write(store, {"k": b"0"})  # the first time a script is also sent

    def questions(call: Callable[[], object]) -> int:
        before = way.questions
        call()
        return way.questions - before

    assert questions(lambda: store.commit(Commit({"k": 1}, {"k": Put(b"1")}))) == 1
    assert questions(lambda: store.load(["k"])) == 1
    assert questions(store.now) == 0


def test_one_commit_is_one_sync(own_server: RedisServer, store: Store, strace: str, tmp_path: Path) -> None:
    """The server syncs its log once per commit, and not for a read, a refusal, or a wait."""
    write(store, {"k": b"0"})
    trace = tmp_path / "trace"
    words = [strace, "-f", "-p", str(own_server.pid), "-e", "trace=fsync,fdatasync", "-o", str(trace)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as watching:
        assert watching.stderr is not None
        assert "attached" in watching.stderr.readline()
        for number in range(1, 11):
            store.commit(Commit({"k": number}, {"k": Put(b"x")}, events=[b"e"]))
            with pytest.raises(Conflict):
                store.commit(Commit({"k": 0}, {"k": Put(b"y")}))
            store.load(["k"])
        watching.send_signal(signal.SIGINT)
        watching.communicate(timeout=PATIENCE_S)
    assert len(re.findall(r"(?:fsync|fdatasync)\(", trace.read_text())) == 10


def test_a_moment_counts_within_one_connection(
    database: AnyDatabase, store: Store, admin: redis.Redis
) -> None:
    """A server may have lost what was seen over the last connection, and given its offset to another."""
    for number in range(2):
        write(store, {"k": b"%d" % number})
    found = store.load(["k"])
    admin.hset(keys(database)[3], "k", stored(database, "k", 1, b"lost"))
    admin.client_kill_filter(skipme=True)
    with pytest.raises(Conflict):
        store.commit(Commit({"k": 2}, {"k": Put(b"rests on it")}, read_point=found.read_point))
    assert (head(store), value(store, "k")) == (2, b"lost")


def test_a_commit_as_of_a_moment_looks_at_no_expectation(
    database: AnyDatabase, store: Store, admin: redis.Redis
) -> None:
    """`read_point`: nobody has committed since the load, so nothing that coord did can have changed it."""
    write(store, {"k": b"1", "other": b"1"})
    found = store.load(["k", "other"])
    admin.hset(keys(database)[3], "other", stored(database, "other", 7, b"by hand"))
    expected_versions = {"k": 1, "other": 1}
    with pytest.raises(Conflict):
        store.commit(Commit(expected_versions, {"k": Put(b"2")}))
    assert store.commit(Commit(expected_versions, {"k": Put(b"2")}, read_point=found.read_point)) == 2


def test_a_commit_after_others_has_its_own_offset(database: AnyDatabase, open_database: Opener) -> None:
    """Records are marked before they are sent; if somebody else took that offset, they are marked anew."""
    mine, others = database.log("local"), open_database(database.url).log("local")
    write(mine, {"k": b"1", "gone": b"1"})
    expected_versions = {key: record.version for key, record in mine.load(["k", "gone"]).items()}
    write(others, {"other": b"1"})
    assert mine.commit(Commit(expected_versions, {"k": Put(b"2", "line/2")}, ["gone"])) == 3
    for store in (mine, others):
        found = store.load(["k", "gone"]).values()
        assert [(each.version, each.value, each.index_key) for each in found] == [
            (3, b"2", "line/2"),
            (3, None, ""),
        ]
    assert [record.key for record in mine.scan("line/2", by="index_key", limit=9)] == ["k"]


# What the server refuses.


def test_a_full_server_takes_no_commit_and_still_answers(store: Store, admin: redis.Redis) -> None:
    """Out of memory: nothing happened, not even half of it; reading and trimming go on."""
    write(store, {"k": b"1"})
    admin.config_set("maxmemory", 1)
    try:
        with pytest.raises(Unavailable) as refused:
            store.commit(Commit({"k": 1}, {"k": Put(b"2")}))
        assert "memory" in refused.value.hint
        assert value(store, "k") == b"1"
        store.trim(1)
    finally:
        admin.config_set("maxmemory", 0)
    assert write(store, {"k": b"2"}) == 2


def test_a_server_busy_with_somebodys_script_is_unavailable(
    own_server: RedisServer, store: Store, admin: redis.Redis, thread: ThreadPoolExecutor
) -> None:
    """BUSY means that nothing was done."""
    write(store, {"k": b"1"})
    admin.config_set("busy-reply-threshold", 1)

    def spin() -> None:
        with own_server.admin() as other, pytest.raises(exceptions.ResponseError, match="SCRIPT KILL"):
            other.eval("while true do end", 0)

    stuck = thread.submit(spin)

    def busy() -> bool:
        try:
            admin.ping()
            return False
        except exceptions.ResponseError:
            return True

    until(busy)
    try:
        with pytest.raises(Unavailable, match="BUSY"):
            store.commit(Commit({"k": 1}, {"k": Put(b"2")}))
    finally:
        admin.script_kill()
        stuck.result(PATIENCE_S)
        admin.config_set("busy-reply-threshold", 5000)
    assert (head(store), value(store, "k")) == (1, b"1")


REFUSALS = [
    "LOADING Redis is loading",
    "MISCONF Errors writing",
    "MASTERDOWN Link down",
    "READONLY You can't",
]


@pytest.mark.parametrize(
    ("error", "meant"),
    [
        *((exceptions.ResponseError(text), Unavailable) for text in REFUSALS),
        (exceptions.BusyLoadingError("Redis is loading"), Unreachable),
        (exceptions.ReadOnlyError("You can't write"), Unavailable),
        (exceptions.NoPermissionError("this user"), Unavailable),
        (exceptions.AuthenticationError("invalid password"), Unavailable),
        (exceptions.ResponseError("user_script:1: Script killed by user with SCRIPT KILL"), Unavailable),
        (exceptions.ResponseError("WRONGTYPE, on @user_script:9."), Corrupt),
        (exceptions.ConnectionError("Connection closed by server"), Unknown),
        (exceptions.TimeoutError("Timeout reading"), Unknown),
    ],
)
def test_errors_say_whether_it_happened(error: exceptions.RedisError, meant: type[CoordError]) -> None:
    """An answer of the server is a no; no answer to a commit is a perhaps, and to a question a no."""
    assert type(translated(error, committing=True)) is meant
    assert type(translated(error)) is (Unreachable if meant is Unknown else meant)


def test_a_store_that_moved_says_where_to(database: AnyDatabase, store: Store) -> None:
    """Whoever had it open before is refused as well, and told the way."""
    coord.stores.open.migrator(database).seal("sqlite:///elsewhere.db", "id")
    with pytest.raises(Unavailable, match="elsewhere"):
        store.commit(ONE)
    assert head(store) == 0


# Damage.


def test_a_log_ahead_of_its_head_is_corrupt_and_nothing_happens(
    database: AnyDatabase, store: Store, admin: redis.Redis, open_database: Opener
) -> None:
    """Somebody changed the head: it does not match its checksum any more, and nobody commits."""
    for number in range(3):
        write(store, {"k": b"%d" % number})
    place, record = keys(database)[2:4]
    before = admin.hgetall(record)
    admin.hset(place, "head", 1)
    with pytest.raises(Corrupt):
        open_database(database.url).log("local").commit(Commit({"k": 3}, {"k": Put(b"x")}))
    with pytest.raises(Corrupt, match="head that does not match"):
        store.commit(Commit({"k": 3}, {"k": Put(b"x")}))
    assert admin.hgetall(record) == before


@pytest.mark.parametrize("data", [b"", b"12", b"x" * 16, b"%016d without a nul" % 1])
def test_a_damaged_record_is_corrupt(
    database: AnyDatabase, store: Store, admin: redis.Redis, data: bytes
) -> None:
    """It is never taken for an absent one."""
    write(store, {"k": b"1"})
    admin.hset(keys(database)[3], "k", data)
    for use in (lambda: store.load(["k"]), lambda: store.scan("", by="key", limit=9)):
        with pytest.raises(Corrupt):
            use()


def test_a_listed_key_without_a_record_is_corrupt(
    database: AnyDatabase, store: Store, admin: redis.Redis
) -> None:
    """A scan does not skip what it cannot find, and a key of another type is no empty one."""
    write(store, {"k": b"1"})
    admin.hdel(keys(database)[3], "k")
    with pytest.raises(Corrupt):
        store.scan("", by="key", limit=9)
    admin.set(keys(database)[3], "a text")
    with pytest.raises(Corrupt):
        store.load(["k"])


# Order, and the slots of a cluster.


class ClusterNode(RedisServer):
    """A server that has some of the slots of a cluster."""

    settings = {**SETTINGS, "cluster-enabled": "yes"}


def test_a_cluster_sends_us_to_the_node_that_has_the_store(open_database: Opener) -> None:
    """All keys of a store are in one slot; whichever node the url names, we find the one that has it."""
    with ExitStack() as stack:
        one, two = (stack.enter_context(running(ClusterNode)) for _ in range(2))
        with one.admin() as first, two.admin() as second:
            first.execute_command("CLUSTER ADDSLOTSRANGE 0 8191")
            second.execute_command("CLUSTER ADDSLOTSRANGE 8192 16383")
            second.execute_command(f"CLUSTER MEET 127.0.0.1 {one.port}")
            until(
                lambda: (
                    {first.cluster("info")["cluster_state"], second.cluster("info")["cluster_state"]}
                    == {"ok"}
                )
            )
            slots = {
                first.execute_command("CLUSTER KEYSLOT", key)
                for tenant in ("local", "other")
                for key in keys_of("coord", tenant)
            }
        assert len(slots) == 1
        for node in (one, two):
            coord.install(node.url)
        stores = [open_database(node.url).log("local") for node in (one, two)]
        write(stores[0], {"k": Put(b"1", "line/1")}, events=[b"e"])
        assert everything(stores[1]) == everything(stores[0])
        assert write(stores[1], {"k": b"2"}) == 2
        assert stores[0].wait(1, PATIENCE_S)


def test_the_page_of_grants_is_what_the_store_needs(own_server: RedisServer, open_database: Opener) -> None:
    """A user made by `grants` does everything a store does, and nothing outside of its prefix; one with less
    is refused at the door, before a script could fail half way."""
    url = own_server.blank_store_url()
    prefix = url.partition("prefix=")[2]
    with own_server.admin() as admin:
        for line in coord.stores.redis.store.grants(url):
            admin.execute_command(*line.replace("PASSWORD", "one-of-their-own").split())
        admin.execute_command(
            "ACL", "SETUSER", "coord_less", "on", ">less", f"~{{{prefix}}}:*", "+@all", "-zadd"
        )
    host = f"127.0.0.1:{own_server.port}/0"
    coord.install(f"redis://coord_owner:one-of-their-own@{host}?prefix={prefix}")
    database = open_database(f"redis://coord_agent:one-of-their-own@{host}?prefix={prefix}")
    store = database.log("local")
    write(store, {"k": Put(b"1", "line/1"), "gone": b""})
    write(store, {"k": b"2"}, deletes=["gone"], events=[b"e"])
    assert by_key(store) == ["k"]
    assert not store.wait(2, 0.01)
    store.trim(2)
    assert len(store.tail(1, 9)) == 1
    assert all(check.well for check in database.checks())
    with pytest.raises(Unavailable, match="permission"):
        open_database(f"redis://coord_agent:one-of-their-own@{host}?prefix=other")
    with pytest.raises(Unavailable, match="ZADD"):
        open_database(f"redis://coord_less:less@{host}?prefix={prefix}")
