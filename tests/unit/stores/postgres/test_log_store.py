"""What only Postgres in the log shape can get wrong: the fold, snapshots, large values, what is missing."""

import math
from collections.abc import Callable, Iterator

import psycopg
import pytest

import coord
from coord.core.errors import Conflict, Corrupt, Invalid
from coord.stores.contract import Commit, Put
from coord.stores.log import snapshot, sole_writer
from coord.stores.log.snapshot import INLINE_BYTES, Reference, snapshot_of
from coord.stores.open import open_store
from coord.stores.postgres.log_store import PostgresLogStore
from tests.support.servers.postgres import PostgresServer, for_psycopg, in_log_shape
from tests.support.servers.tcp_relay import TcpRelay
from tests.support.stores.fixtures import AnyDatabase
from tests.support.stores.postgres_sessions import Sql, backend, rows, terminate, until
from tests.support.stores.steps import PLENTY, everything, head, value, version, versions, write

Open = Callable[[], PostgresLogStore]

LARGE = b"x" * (INLINE_BYTES + 1)


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    return postgres_server.fresh_url(in_log_shape)


@pytest.fixture
def opened(url: str, open_database: Callable[[str], AnyDatabase]) -> Open:
    """Return a function that opens the log as one more process would."""
    return lambda: open_database(url).log("local")


@pytest.fixture
def sql(url: str) -> Iterator[Sql]:
    """Somebody else's connection to the same database."""
    with psycopg.connect(for_psycopg(url), autocommit=True) as connection:
        yield connection


def fill(store: PostgresLogStore, commits: int = 8) -> None:
    """Write, replace, put in line, delete, and keep something large."""
    for number in range(commits):
        write(store, {f"k{number % 3}": Put(b"%d" % number, f"line/{number % 2}")}, events=[b"%d" % number])
    write(store, {"large": LARGE, "gone": b""}, events=[b"large"])
    write(store, deletes=["gone"])


def take_snapshot(store: PostgresLogStore) -> None:
    store._snapshots.write(snapshot_of(store._state), wait=True)


def snapshots(sql: Sql) -> list[int]:
    return [offset for (offset,) in rows(sql, 'SELECT "offset" FROM coord.snapshot ORDER BY 1')]


def test_a_schema_has_one_shape(postgres_server: PostgresServer) -> None:
    """What was installed in one shape is neither opened nor installed over in the other."""
    plain = postgres_server.blank_url()
    for installed, other, hint in (
        (f"{plain}?schema=a", in_log_shape(f"{plain}?schema=a"), "postgresql://"),
        (in_log_shape(f"{plain}?schema=b"), f"{plain}?schema=b", "postgresql+log://"),
    ):
        coord.install(installed)
        coord.install(installed)
        for use in (open_store, coord.install):
            with pytest.raises(Invalid, match=r"table-based|log-structured") as refused:
                use(other)
            assert hint in refused.value.hint
            assert "coord migrate" in refused.value.hint


def test_a_commit_is_one_round_trip_and_so_is_a_load(
    url: str,
    relay: TcpRelay,
    open_database: Callable[[str], AnyDatabase],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """STO-32: only a commit that meets another one's asks a second and a third time."""
    near, far = open_database(url).log("local"), open_database(relay.url(url)).log("local")
    write(far, {"k": b"0"})
    assert head(far) == 1

    def questions(call: Callable[[], object]) -> int:
        before = relay.questions
        call()
        return relay.questions - before

    assert questions(lambda: far.load(["k"])) == 1
    assert questions(lambda: far.commit(Commit({"k": 1}, {"k": Put(b"1")}))) == 1
    write(near, {"other": b""})
    assert questions(lambda: far.commit(Commit({"k": 2}, {"k": Put(b"2")}))) == 3
    assert versions(near, "k", "other") == {"k": 4, "other": 3}
    monkeypatch.setattr(sole_writer, "RECENT_MS", math.inf)
    assert questions(lambda: far.load(["k"], allow_stale=True)) == 1, "the one before was another's"
    far.commit(Commit({"k": 4}, {"k": Put(b"3")}))
    asked = [
        questions(lambda: far.load(["k"], allow_stale=True)) for _ in range(sole_writer.STALE_READS_MAX + 2)
    ]
    assert asked == [*[0] * sole_writer.STALE_READS_MAX, 1, 0], (
        "now and then others are given the time to get in"
    )


def test_a_commit_goes_in_behind_another_or_is_a_conflict(opened: Open) -> None:
    """Who is behind appends nothing before it has seen what came, and nothing that it expects has changed."""
    mine, other = opened(), opened()
    write(other, {"theirs": b"1"})
    assert mine.commit(Commit({"mine": 0}, {"mine": Put(b"1")})) == 2
    write(other, {"mine": b"2"})
    with pytest.raises(Conflict) as conflict:
        mine.commit(Commit({"mine": 2}, {"mine": Put(b"lost")}))
    assert conflict.value.keys == {"mine"}
    assert [entry.offset for entry in mine.tail(0, PLENTY)] == [1, 2, 3]


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("use", ["load", "commit"])
def test_another_past_is_noticed_after_a_new_connection(more: int, use: str, opened: Open, sql: Sql) -> None:
    """STO-32: a failover lost what was folded here, and as many or more commits came in its place."""
    store, other = opened(), opened()
    write(other, {"k": b"1"})
    write(other, {"k": b"lost"})
    assert value(store, "k") == b"lost"
    rows(sql, "UPDATE coord.log SET head = 1 RETURNING 1")
    rows(sql, 'DELETE FROM coord.entry WHERE "offset" = 2 RETURNING 1')
    after = opened()
    for number in range(1 + more):
        write(after, {f"other{number}": b"1"})
    terminate(sql, backend(store._database))
    calls = {
        "load": lambda: store.load(["k"]),
        "commit": lambda: store.commit(Commit({"k": 2}, deletes=["k"])),
    }
    with pytest.raises(Corrupt, match="entry 2 has changed"):
        calls[use]()
    assert value(opened(), "k") == b"1"


def test_a_trim_is_noticed_by_who_is_behind(opened: Open, sql: Sql) -> None:
    """The log is trimmed beneath a store: it begins anew from the snapshot, and can take no freed offset."""
    behind, ahead = opened(), opened()
    fill(ahead)
    ahead.trim(8)
    assert rows(sql, 'SELECT min("offset"), max("offset") FROM coord.entry') == [(8, 10)]
    with pytest.raises(Conflict) as conflict:
        behind.commit(Commit({"never": 0}, {"never": Put(b"")}))
    assert conflict.value.keys == {"never"}, "absence has the version of the floor now"
    assert everything(behind, 8) == everything(ahead, 8) == everything(opened(), 8)
    assert version(behind, "never") == 8


def test_a_store_opens_from_its_snapshot(opened: Open, sql: Sql) -> None:
    """What a snapshot holds is not read again: entries before it may be damaged unnoticed, later ones not."""
    store = opened()
    fill(store)
    before = everything(store)
    take_snapshot(store)
    sql.execute("UPDATE coord.entry SET body = 'x'")
    assert everything(opened()) == before
    write(store, {"k": b"after"})
    assert value(opened(), "k") == b"after"
    sql.execute("UPDATE coord.entry SET body = 'x'")
    with pytest.raises(Corrupt, match="entry 11 cannot be read"):
        opened()


def test_snapshots_come_by_themselves(opened: Open, sql: Sql, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the background, when the tail weighs as much; two stay, and what dead writers left goes."""
    monkeypatch.setattr(snapshot, "SNAPSHOT_AFTER_BYTES", 4000)
    monkeypatch.setattr(sole_writer, "RECENT_MS", 0)
    sql.execute("INSERT INTO coord.chunk VALUES (1, 2, 1, 'left behind'), (1, 99, 1, 'left behind')")
    store = opened()
    for number in range(1, 13):
        write(store, {f"k{number}": b"x"})
        if number % 4 == 0:
            until(lambda number=number: snapshots(sql)[-1:] == [number])  # type: ignore[misc]
            assert store._snapshot_writer is not None
            store._snapshot_writer.join()
    assert snapshots(sql) == [8, 12]
    assert rows(sql, 'SELECT DISTINCT "offset" FROM coord.chunk ORDER BY 1') == [(8,), (12,)]
    assert everything(opened()) == everything(store)


@pytest.mark.parametrize(("pause_ms", "due"), [(0, 10), (60_000, 22)])
def test_a_snapshot_waits_for_a_pause(
    pause_ms: int, due: int, opened: Open, sql: Sql, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between commits without a pause it waits for three times the bytes."""
    monkeypatch.setattr(snapshot, "SNAPSHOT_AFTER_BYTES", 50_000)
    monkeypatch.setattr(sole_writer, "RECENT_MS", pause_ms)
    store = opened()
    for _ in range(due):
        assert store._snapshot_writer is None
        write(store, {"k": b"1" * 4_000})
    assert store._snapshot_writer is not None
    store._snapshot_writer.join()
    assert snapshots(sql) == [due]


def test_one_process_writes_a_snapshot_at_a_time(opened: Open, sql: Sql) -> None:
    """Who need not wait lets the other finish; who finds a newer one writes none."""
    store = opened()
    fill(store)
    with psycopg.connect(sql.info.dsn, password=sql.info.password, autocommit=True) as other:
        other.execute(store._sql.lock_snapshots.replace("%b", "1").encode())
        assert store._snapshots.write(snapshot_of(store._state), wait=False) == 0
        assert snapshots(sql) == []
    old = snapshot_of(store._state)
    write(store, {"k": b"newer"})
    take_snapshot(store)
    assert store._snapshots.write(old, wait=True) == 0
    assert snapshots(sql) == [11]


def test_large_values_are_not_in_memory(opened: Open, sql: Sql) -> None:
    """They are fetched by key, replaced and removed by the commits that do so, and survive trims."""
    mine, other = opened(), opened()
    write(mine, {"large": Put(LARGE, "line"), "small": b"s"})
    assert type(mine._state.records["large"].value) is Reference
    assert mine.load(["large", "small"]) == other.load(["large", "small"])
    assert mine.scan("line", by="index_key", limit=1)[0].value == LARGE
    newer = LARGE + b"2"
    write(other, {"large": newer})
    mine.trim(2)
    assert value(mine, "large") == value(opened(), "large") == newer
    write(other, {"large": b"small again"})
    assert rows(sql, "SELECT * FROM coord.value") == []
    write(other, {"large": LARGE})
    write(mine, deletes=["large"])
    assert rows(sql, "SELECT * FROM coord.value") == []
    assert value(other, "large") is None


def test_a_value_replaced_meanwhile_is_looked_for_again(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another replaces the value after we caught up: the answer is of one moment all the same."""
    mine, other = opened(), opened()
    write(mine, {"large": LARGE, "beside": b"1"})
    newer = LARGE + b"2"
    catch_up, meddling = mine._catch_up, [True]

    def meddled() -> None:
        catch_up()
        if meddling.pop() if meddling else False:
            write(other, {"large": newer, "beside": b"2"})

    monkeypatch.setattr(mine, "_catch_up", meddled)
    found = mine.load(["large", "beside"])
    assert (found["large"].value, found["beside"].value) == (newer, b"2")


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ('DELETE FROM coord.entry WHERE "offset" = 5', "entry 5 is missing"),
        ('DELETE FROM coord.entry WHERE "offset" > 5', "entry 6 is missing"),
        ("UPDATE coord.entry SET body = 'x' WHERE \"offset\" = 5", "entry 5 cannot be read"),
        ("DELETE FROM coord.value", "value of 'large' is missing"),
        ("UPDATE coord.log SET floor = 5", "no snapshot"),
    ],
)
def test_damage_of_the_log_is_corrupt(damage: str, told: str, opened: Open, sql: Sql) -> None:
    """What is missing or garbled is never skipped."""
    fill(opened())
    sql.execute(damage.encode())
    with pytest.raises(Corrupt, match=told):
        value(opened(), "large")


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("DELETE FROM coord.snapshot", "there is no snapshot"),
        ('UPDATE coord.snapshot SET "offset" = 1', "entry 2 is missing, and no snapshot has it"),
        ("DELETE FROM coord.chunk WHERE number = 2", "not complete"),
        ("UPDATE coord.chunk SET body = 'x' WHERE number = 2", "snapshot of offset 10 is damaged"),
        ("UPDATE coord.snapshot SET floor = 3", "it is the snapshot of offset 10"),
    ],
)
def test_damage_of_a_snapshot_is_corrupt(damage: str, told: str, opened: Open, sql: Sql) -> None:
    """A trimmed log without its snapshot is not a log that begins there."""
    store = opened()
    fill(store)
    store.trim(8)
    sql.execute(damage.encode())
    with pytest.raises(Corrupt, match=told):
        opened()
