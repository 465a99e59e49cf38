"""Waiting for commits on NATS: a ring after each, and a look now and then for those that did not ring."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from coord.stores.contract import Commit, Store
from coord.stores.database import Database
from coord.stores.server import listener
from tests.support.servers.nats import NatsServer
from tests.support.servers.server import poll_until

Opener = Callable[[str], Database[Any]]
PATIENCE_S = 60
ONE = Commit(events=[b"one"])


@pytest.fixture
def url(nats_server: NatsServer) -> str:
    return nats_server.fresh_store_url()


@pytest.fixture
def store(url: str, open_database: Opener) -> Store:
    store: Store = open_database(url).log("local")
    return store


@pytest.fixture
def waiter(url: str, open_database: Opener) -> Database[Any]:
    return open_database(url)


@pytest.fixture
def waiting(waiter: Database[Any]) -> Iterator[list["Future[bool]"]]:
    """Two threads of another process, as it were, that wait for the first commit."""
    log = waiter.log("local")
    with ThreadPoolExecutor(2) as threads:
        yield [threads.submit(log.wait, 0, PATIENCE_S) for _ in range(2)]
        waiter.close()


def listening(database: Any) -> bool:
    """Whether the listener has looked once, so that it hears whatever comes after."""
    return bool(database._listener._heads)


def test_a_commit_rings(
    store: Store, waiter: Database[Any], waiting: list["Future[bool]"], monkeypatch: pytest.MonkeyPatch
) -> None:
    """STO-25, EVT-11: A ring reaches all who wait, long before they would look for themselves."""
    monkeypatch.setattr(listener, "POLL_S", 2 * PATIENCE_S)
    poll_until(lambda: listening(waiter), PATIENCE_S, "nobody listens")
    store.commit(ONE)
    assert [each.result(PATIENCE_S) for each in waiting] == [True, True]
    monkeypatch.undo()
    store.commit(ONE)


def test_a_commit_that_does_not_ring_is_found(
    store: Any, waiter: Database[Any], waiting: list["Future[bool]"], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one whose process died before it rang."""
    poll_until(lambda: listening(waiter), PATIENCE_S, "nobody listens")
    monkeypatch.setattr(store._server, "publish", lambda *_: None)
    store.commit(ONE)
    assert [each.result(PATIENCE_S) for each in waiting] == [True, True]


def test_waiting_threads_are_let_go_by_close(waiter: Database[Any], waiting: list["Future[bool]"]) -> None:
    """Closing the database ends its listener and everybody's wait."""
    poll_until(lambda: listening(waiter), PATIENCE_S, "nobody listens")
    waiter.close()
    assert [each.result(PATIENCE_S) for each in waiting] == [False, False]
    assert not [each for each in threading.enumerate() if each.name == "coord-listen"]
