"""`with` blocks: a lost lock is noticed at once, and a block ends only its own use of a lock."""

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import coord
from coord.core.errors import LockLost
from coord.core.locks.commands import LockWatch
from coord.stores.open import open_store
from tests.support.client_harness import ClientHarness, open_client_harness
from tests.support.git_folders import made_repository
from tests.support.lock_harness import CountedStore
from tests.support.servers.server import poll_until

WAIT_S = 30
NAME = "name:main-push"


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[ClientHarness]:
    root = tmp_path / "repository"
    made_repository(root)
    with open_client_harness("memory:", root, tmp_path / "state") as clients:
        yield clients


class Heard:
    """A callback that remembers what it was called with."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._called = threading.Event()

    def __call__(self, value: Any) -> None:
        self.values.append(value)
        self._called.set()

    def wait(self) -> Any:
        assert self._called.wait(WAIT_S), "nothing was heard"
        self._called.clear()
        return self.values[-1]


def test_a_stolen_lock_is_lost_at_once(clients: ClientHarness) -> None:
    """The block waits on the store, not on the next renewal, which is two minutes away."""
    ann, bob = clients.client("ann"), clients.client("bob")
    lost = Heard()
    held = ann.lock(NAME, on_lost=lost)
    held.begin()
    bob.steal(NAME, force=True, reason="urgent")
    error = lost.wait()
    assert held.lost
    assert "name:main-push was taken by bob: by force: urgent" in error.message
    with pytest.raises(LockLost, match="taken by bob"):
        held.check()
    held.end(failed=True)
    assert [lock.owner for lock in bob.locks()] == ["bob"], "it releases only its own"


def test_a_preemption_is_heard_at_once_and_ends_the_block_at_its_deadline(clients: ClientHarness) -> None:
    """The holder keeps the lock during the grace time, although it cannot renew it any more."""
    ann, bob = clients.client("ann"), clients.client("bob")
    asked, lost = Heard(), Heard()
    held = ann.lock(NAME, on_asked=asked, on_lost=lost)
    held.begin()
    assert not bob.preempt(NAME, priority=5, reason="hotfix", grace_s=60, wait_s=0).ok
    state: LockWatch = asked.wait()
    assert (state.asked_by, state.ends_in_ms, held.lost) == ("bob", 60_000, False)
    clients.now += 60_000
    bob.sweep()
    assert "went to bob, which had asked for it" in lost.wait().message
    assert len(asked.values) == 1
    held.end(failed=True)


def test_a_lock_that_is_asked_for_is_kept_until_the_deadline(clients: ClientHarness) -> None:
    """A renewal is refused meanwhile, which costs nothing; a withdrawn request lets it go on for ever."""
    ann, bob = clients.client("ann"), clients.client("bob")
    asked = Heard()
    held = ann.lock(NAME, ttl_s=1.5, on_asked=asked)
    held.begin()
    assert not bob.preempt(NAME, priority=5, reason="hotfix", grace_s=60, wait_s=0).ok
    asked.wait()
    renewals = held.renewals
    poll_until(lambda: held.renewals > renewals, WAIT_S, "it does not go on")
    assert not held.lost
    held.end(failed=False)


def test_nested_blocks_release_nothing_that_the_outer_one_needs(clients: ClientHarness) -> None:
    """Two blocks of one session on one lock: each ends only its own use."""
    ann = clients.client("ann")
    with ann.lock(NAME) as outer:
        with ann.lock(NAME, "name:other") as inner:
            assert inner.fence == outer.fence
        assert [lock.resource for lock in ann.locks()] == [NAME]
        outer.check()
    assert ann.locks() == []


def test_a_lock_taken_by_hand_outlives_the_block(clients: ClientHarness) -> None:
    ann = clients.client("ann")
    ann.acquire(NAME)
    with ann.lock(NAME):
        pass
    assert [lock.uses for lock in ann.locks()] == [("",)]


def test_a_lost_lock_does_not_keep_the_others(clients: ClientHarness) -> None:
    """The end of the block releases every lock that is left, and raises what was lost."""
    ann, bob = clients.client("ann"), clients.client("bob")
    with pytest.raises(LockLost, match="name:b"), ann.lock("name:a", "name:b", "name:c"):
        bob.steal("name:b", force=True, reason="urgent")
    assert [lock.resource for lock in ann.locks()] == ["name:b"]


def test_a_new_waiter_is_reported_once(clients: ClientHarness) -> None:
    """Whoever begins to wait is heard of, and once."""
    ann, bob, cid = (clients.client(name) for name in ("ann", "bob", "cid"))
    waiting = Heard()
    held = ann.lock(NAME, on_waiter=waiting)
    held.begin()

    def wait(client: coord.Client) -> None:
        with client.lock(NAME, wait_s=60):
            pass

    begun = [threading.Thread(target=wait, args=(client,)) for client in (bob, cid)]
    for thread, name in zip(begun, ("bob", "cid"), strict=True):
        thread.start()
        assert waiting.wait().waiters == (name,)
        clients.now += 1
    held.end(failed=False)
    for thread in begun:
        thread.join(WAIT_S)
    assert [state.waiters for state in waiting.values] == [("bob",), ("cid",)]
    assert ann.locks() == []


class WatchedStore(CountedStore):
    """A counted store that says when somebody begins to wait."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.waits = threading.Semaphore(0)

    def wait(self, after: int, timeout: float) -> bool:
        self.waits.release()
        return bool(self._store.wait(after, timeout))


class WatchedDatabase:
    """A database whose log is watched."""

    def __init__(self, database: Any) -> None:
        self._database = database
        self.store = WatchedStore(database.log("local"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def log(self, tenant: str) -> Any:
        return self.store


def test_an_idle_block_asks_the_store_nothing(tmp_path: Path) -> None:
    """Until something changes, a block only waits; each change costs one question."""
    made_repository(tmp_path / "repository")
    with closing(open_store("memory:")) as opened:
        watched: Any = WatchedDatabase(opened)
        ann, bob = (
            ClientHarness(database, tmp_path / "repository", tmp_path / "state").client(name)
            for database, name in ((watched, "ann"), (opened, "bob"))
        )
        with ann.lock(NAME):
            asked = watched.store.questions
            assert watched.store.waits.acquire(timeout=WAIT_S)
            assert watched.store.questions == asked
            for changes in (1, 2):
                bob.acquire(f"name:else-{changes}")
                assert watched.store.waits.acquire(timeout=WAIT_S)
                assert watched.store.questions == asked + changes
        ann.engine.close()
        bob.engine.close()
