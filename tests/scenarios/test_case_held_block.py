"""Blocks of the library: they raise when a lock is lost, and wait well while others write without end."""

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from coord.core.errors import LockLost
from coord.stores.open import open_store
from tests.support.client_harness import ClientHarness

WAITS_MAX = 200


def test_a_block_raises_what_it_lost(clients: ClientHarness) -> None:
    """Whoever leaves a block under a lock that went to another is told so."""
    ann, bob = clients.client("ann"), clients.client("bob")
    with pytest.raises(LockLost), ann.lock("src/a.py"):
        bob.steal("src/a.py", force=True, reason="stuck")
    assert [lock.owner for lock in ann.locks()] == ["bob"]


def test_what_a_block_raises_itself_is_not_hidden(clients: ClientHarness) -> None:
    """An exception of the block is what is raised, although its lock is lost too."""
    ann, bob = clients.client("ann"), clients.client("bob")

    def fail() -> None:
        bob.steal("src/a.py", force=True, reason="stuck")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), ann.lock("src/a.py"):
        fail()


def test_a_coroutine_is_told_as_well(clients: ClientHarness) -> None:
    """The same block in a coroutine."""
    ann, bob = clients.client("ann"), clients.client("bob")

    async def work() -> None:
        async with ann.lock("src/a.py"):
            bob.steal("src/a.py", force=True, reason="stuck")

    with pytest.raises(LockLost):
        asyncio.run(work())


def test_host_names_are_one_in_all_spellings(clients: ClientHarness) -> None:
    """LCK-64: a name of the host is locked in the user's own store, however it is spelled."""
    ann, bob = clients.client("ann"), clients.client("bob")
    assert ann.acquire("name:claude-config").ok
    assert not bob.acquire("name:Claude-Config").ok


class BusyStore:
    """A store in which something changes whenever somebody waits for that; time goes on with each look."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.now_ms = 1_767_506_400_000
        self.waits = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def now(self) -> int:
        return self.now_ms

    def wait(self, after: int, timeout: float) -> bool:
        self.waits += 1
        assert self.waits < WAITS_MAX, "it never looked whether the lease had run out"
        self.now_ms += 100
        return True


class BusyDatabase:
    """A database with one such log."""

    def __init__(self, database: Any) -> None:
        self._database = database
        self.store = BusyStore(database.log("local"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def log(self, tenant: str) -> Any:
        return self.store


def test_a_wait_is_looked_after_however_busy_the_store_is(repository: Path, tmp_path: Path) -> None:
    """LCK-35: while others commit without end, an expired lease in the way is noticed all the same."""
    with closing(open_store("memory:")) as database:
        busy: Any = BusyDatabase(database)
        clients = ClientHarness(busy, repository, tmp_path / "state")
        ann, bob = (clients.client(name) for name in ("ann", "bob"))
        ann.engine, bob.engine = (_on_its_clock(client, busy.store) for client in (ann, bob))
        assert ann.acquire("src/a.py", ttl_s=5).ok
        assert bob.acquire("src/a.py", wait_s=600).ok


def _on_its_clock(client: Any, store: BusyStore) -> Any:
    """The same engine, but on the clock of the store."""
    return type(client.engine)(client.database, client.tenant, clock=store.now)
