"""A Redis server that lost commits it had answered: what is refused, what goes on, no fence comes twice."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from coord.core.errors import Conflict, CoordError, Corrupt, NotFound, Unavailable
from coord.core.tasks.types import RenewalReason
from coord.host.store_location import find_location
from coord.sdk.client.client import Client, connect
from coord.sdk.client.open import initialise, open_location
from coord.sdk.coordinator import TaskCoordinator
from coord.stores.contract import Commit, Put, Store
from coord.stores.database import EPOCH_BITS
from tests.support.servers.redis import SETTINGS, RedisServer
from tests.support.servers.server import running
from tests.support.servers.tcp_relay import relaying
from tests.support.stores.fixtures import AnyDatabase
from tests.support.stores.redis_lives import (
    ForgetfulServer,
    crash,
    follow,
    keys,
    promote,
    stop_following,
    until,
)
from tests.support.stores.steps import PLENTY, head, value, versions, write

Opener = Callable[[str], AnyDatabase]


@pytest.fixture
def forgetful(tmp_path: Path) -> Iterator[ForgetfulServer]:
    """A server for one test that forgets what was not saved."""
    with running(ForgetfulServer, tmp_path) as server:
        yield server


def epoch_of(offset: int) -> int:
    return offset >> EPOCH_BITS


def offsets(store: Store) -> list[int]:
    return [entry.offset for entry in store.tail(0, PLENTY)]


def again(call: Callable[[], int]) -> int:
    """Do something whose first try may only learn that the connection is lost."""
    try:
        return call()
    except Unavailable:
        return call()


def test_lost_offsets_never_come_again(forgetful: ForgetfulServer, open_database: Opener) -> None:
    """DESIGN §3: who notices first raises the epoch; later commits are above all that was ever answered."""
    url = forgetful.fresh_store_url()
    first, second = open_database(url), open_database(url)
    store, other = first.log("local"), second.log("local")
    assert not store.limits.durable
    write(store, {"k": b"kept"})
    with forgetful.admin() as admin:
        admin.save()
    lost = [write(store, {"k": b"lost", f"lost-{number}": b""}) for number in range(5)]
    stale = versions(other, "k", "lost-0", "never")
    crash(forgetful)
    new = again(lambda: write(store, {"k": b"new"}))
    assert epoch_of(new) == first.epoch == 1
    assert offsets(store) == [1, new]
    assert value(store, "lost-0") is None
    with pytest.raises((Unavailable, Conflict)):
        other.commit(Commit(stale, {"k": Put(b"by whoever saw what was lost")}))
    assert again(lambda: write(other, {"k": b"newer"})) == new + 1, "the second one raises nothing more"
    assert second.epoch == open_database(url).epoch == 1
    assert not {*lost} & {*offsets(store)}


def test_a_reader_may_begin_before_a_raised_epoch(forgetful: ForgetfulServer, open_database: Opener) -> None:
    """Whoever looks back some offsets, or for a time by halves, asks for offsets that were never given."""
    database = open_database(forgetful.fresh_store_url())
    store = database.log("local")
    write(store, {"k": b"1"})
    with forgetful.admin() as admin:
        admin.save()
        crash(forgetful)
        new = again(lambda: write(store, {"k": b"2"}))
        write(store, {"k": b"3"})
        write(store, {"k": b"4"})
        for after in (
            1,
            2,
            1 << (EPOCH_BITS - 1),
            (1 << EPOCH_BITS) - 1,
            1 << EPOCH_BITS,
            new - 500,
            new - 1,
        ):
            assert [entry.offset for entry in store.tail(after, 2)] == [new, new + 1]
        assert [entry.offset for entry in store.tail(0, 2)] == [1, new]
        log, missing = keys(database)[-1], f"{new + 1}-0"
        ((_, fields),) = admin.xrange(log, missing, missing)
        admin.xdel(log, missing)
        admin.xadd(log, fields, f"{new + 9}-0")  # otherwise their number is wrong
        with pytest.raises(Corrupt, match=f"{new + 1} is missing"):
            store.tail(new, 1)


def test_versions_that_were_lost_are_stale(forgetful: ForgetfulServer, open_database: Opener) -> None:
    """An expectation of what was lost conflicts, and so does one of an absence from before."""
    store = open_database(forgetful.fresh_store_url()).log("local")
    with forgetful.admin() as admin:
        admin.save()
    write(store, {"made": b"1"})
    seen = versions(store, "made", "absent")
    crash(forgetful)
    again(lambda: head(store))
    for key in seen:
        assert store.load([key])[key].version > seen[key]
    with pytest.raises(CoordError) as refused:
        store.commit(Commit(seen, {"made": Put(b"2")}))
    assert refused.value.code == "conflict"


def test_a_raise_that_was_lost_itself_repeats_no_offset(
    forgetful: ForgetfulServer, open_database: Opener
) -> None:
    """Two crashes, and the server forgets the first epoch as well: the second begins above the first."""
    url = forgetful.fresh_store_url()
    write(open_database(url).log("local"), events=[b"kept"])
    with forgetful.admin() as admin:
        admin.save()
    answered = []
    for _ in range(2):
        crash(forgetful)
        store = open_database(url).log("local")
        answered += [write(store, events=[b"lost"]) for _ in range(3)]
    assert len(set(answered)) == 6
    assert answered == sorted(answered)


def client_of(url: str, folder: Path, session: str) -> Client:
    environ = {"HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
    return connect(url, session=session, cwd=str(folder), environ=environ)


def test_holders_learn_at_the_next_renewal(forgetful: ForgetfulServer, tmp_path: Path) -> None:
    """DESIGN §3: a lock and a claim that were lost are not renewed, and the next grant has a higher fence."""
    url = forgetful.fresh_store_url()
    with (
        client_of(url, tmp_path, "ada") as ada,
        client_of(url, tmp_path, "bob") as bob,
        TaskCoordinator.open(url) as tasks,
    ):
        for client in (ada, bob):
            client.register()
        with forgetful.admin() as admin:
            admin.save()
        lost = ada.acquire("name:release", ttl_s=600).locks[0].fence
        claim = tasks.claim_task("local", "shop", "A-1", "ada", "ada").claim
        assert claim is not None
        crash(forgetful)
        with pytest.raises(NotFound, match="nobody holds name:release"):
            ada.renew("name:release")
        renewal = tasks.renew_lease("local", "shop", "A-1", "ada", claim.generation)
        assert renewal.reason is RenewalReason.NO_CLAIM
        assert bob.acquire("name:release").locks[0].fence > lost
        with pytest.raises(CoordError):
            ada.unlock("name:release", fence=lost)


def test_the_pin_follows_the_epoch(forgetful: ForgetfulServer, tmp_path: Path) -> None:
    """DESIGN §3, §5: the pin's epoch is a floor: a higher one is adopted, a lower one is `Corrupt`."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    environ = {"HOME": str(tmp_path), "COORD_URL": forgetful.fresh_store_url()}
    assert initialise(str(tmp_path), environ).epoch == 0
    with forgetful.admin() as admin:
        admin.save()
        crash(forgetful)
        database, place = open_location(find_location(str(tmp_path), environ))
        database.close()
        assert place.epoch == find_location(str(tmp_path), environ).epoch == 1
        admin.hset(keys(database)[0], "epoch", 0)
    with pytest.raises(Corrupt, match="went back from epoch 1 to 0"):
        open_location(place)


def test_a_server_that_kept_nothing_is_corrupt_for_who_has_it_open(
    forgetful: ForgetfulServer, open_database: Opener
) -> None:
    """No store is not an empty store: whoever knew one stops, whoever comes is told to install."""
    url = forgetful.fresh_store_url()
    store = open_database(url).log("local")
    crash(forgetful)
    with pytest.raises(Corrupt, match="no store any more"):
        again(lambda: head(store))
    with pytest.raises(NotFound):
        open_database(url)


def test_a_plain_restart_of_a_durable_server_is_no_new_epoch(tmp_path: Path, open_database: Opener) -> None:
    """What syncs before it answers has lost nothing, killed or stopped: offsets go on without a gap."""
    with running(RedisServer, tmp_path) as server:
        database = open_database(server.fresh_store_url())
        store = database.log("local")
        for number, end in enumerate((server.kill, server.stop), start=1):
            assert write(store, events=[b"e"]) == number
            end()
            server.restart()
            assert again(lambda: head(store)) == number
        assert (database.epoch, store.limits.durable) == (0, True)


@pytest.mark.parametrize(
    "settings",
    [
        {"appendfsync": "everysec"},
        {"appendfsync": "no"},
        {"appendonly": "no"},
        {"no-appendfsync-on-rewrite": "yes"},
    ],
)
def test_only_a_server_that_syncs_first_is_durable(
    tmp_path: Path, settings: dict[str, str], open_database: Opener
) -> None:
    """`limits.durable` is what the server says of itself now; in doubt a restart begins an epoch."""
    kind: type[RedisServer] = type("Server", (RedisServer,), {"settings": {**SETTINGS, **settings}})
    with running(kind, tmp_path) as server:
        url = server.fresh_store_url()
        database = open_database(url)
        write(database.log("local"), events=[b"e"])
        assert not database.log("local").limits.durable
        (check,) = [check for check in database.checks() if check.name == "durability"]
        assert not check.well
        assert check.hint
        server.stop()
        server.restart()
        if settings.get("appendonly") != "no":  # that one has forgotten everything
            assert open_database(url).epoch == 1


def test_a_failover_that_lost_commits_raises_the_epoch(tmp_path: Path, open_database: Opener) -> None:
    """The last commits never reached the replica that became the master: no offset is given twice, and the
    doctor names the newest entry that was kept."""
    with (
        running(RedisServer) as master,
        running(RedisServer, tmp_path) as replica,
        relaying(master.port) as address,
    ):
        url = address.url(master.fresh_store_url())
        database = open_database(url)
        store = database.log("local")
        assert store.limits.durable
        kept = write(store, {"k": b"kept"})
        follow(replica, master)
        until(lambda: replica.admin().exists(keys(database)[-1]))
        assert not open_database(url).log("local").limits.durable, (
            "a replica may take over without the newest commits"
        )
        stop_following(replica)
        lost = [write(store, {"k": b"lost"}) for _ in range(3)]
        promote(replica)
        address._server = ("127.0.0.1", replica.port)
        address.cut()
        new = again(lambda: write(store, {"k": b"new"}))
        assert epoch_of(new) == database.epoch == 1
        assert not store.limits.durable
        assert offsets(store) == [kept, new]
        assert new > max(lost)
        (check,) = [check for check in database.checks() if check.name == "epoch"]
        assert f"the newest that was kept: {kept} of local" in check.text
        (check,) = [check for check in database.checks() if check.name == "durability"]
        assert "replica" in check.text
        # The old master, which knows nothing of it, is made master again: nobody takes that old copy.
        address._server = ("127.0.0.1", master.port)
        address.cut()
        with pytest.raises(Corrupt, match="went back from epoch 1 to 0"):
            again(lambda: head(store))


def test_a_replica_is_refused(tmp_path: Path, open_database: Opener) -> None:
    """A replica may be behind: it is not opened, and a master that became one is not even read."""
    with running(RedisServer) as master, running(RedisServer, tmp_path) as other:
        url = other.fresh_store_url()
        store = open_database(url).log("local")
        write(store, {"k": b"1"})
        with other.admin() as admin:
            admin.replicaof("127.0.0.1", str(master.port))
        for use in (lambda: store.load(["k"]), lambda: store.commit(Commit(events=[b"e"]))):
            with pytest.raises(Unavailable, match="replica"):
                use()
        with pytest.raises(Unavailable, match="replica"):
            open_database(url)
        promote(other)
        assert epoch_of(again(lambda: head(store))) == 1, "it may have been given an older state meanwhile"
        assert value(store, "k") == b"1"


@pytest.mark.parametrize("connected", [True, False])
def test_a_failover_and_back_that_nobody_saw_raises_the_epoch(
    connected: bool, tmp_path: Path, open_database: Opener
) -> None:
    """A replica that lacked commits became master, and gave its state to the old one, which is master again:
    the same process as before, but not the same log."""
    with running(RedisServer) as master, running(RedisServer, tmp_path) as replica:
        url = master.fresh_store_url()
        database = open_database(url)
        store = database.log("local")
        kept = write(store, {"k": b"kept"})
        follow(replica, master)
        until(lambda: replica.admin().exists(keys(database)[-1]))
        stop_following(replica)
        lost = [write(store, {"k": b"lost"}) for _ in range(3)]
        promote(replica)
        follow(master, replica)
        promote(master)
        store = store if connected else open_database(url).log("local")
        new = again(lambda: store.commit(Commit(events=[b"new"])))
        assert new > max(lost)
        assert offsets(store) == [kept, new]


def test_a_commit_of_another_epoch_is_refused(tmp_path: Path, open_database: Opener) -> None:
    """DESIGN §3: who still commits under an earlier epoch is refused once, and goes on in the new one."""
    with running(RedisServer, tmp_path) as server:
        url = server.fresh_store_url()
        database = open_database(url)
        store = database.log("local")
        write(store, events=[b"e"])
        with server.admin() as admin:
            admin.hset(keys(database)[0], "epoch", "1")
        with pytest.raises(Unavailable, match="COORDTERM"):
            store.commit(Commit(events=[b"e"]))
        assert write(store, events=[b"e"]) == 2
        assert database.epoch == 1
