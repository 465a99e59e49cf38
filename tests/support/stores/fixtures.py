"""Opened stores for the tests of the contract."""

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import pytest

from coord.stores.contract import Store
from coord.stores.database import Database
from coord.stores.open import open_store
from tests.support.servers.postgres import PostgresServer
from tests.support.servers.tcp_relay import TcpRelay, relaying

AnyDatabase = Database[Any]


@pytest.fixture
def database(store_url: str) -> Iterator[AnyDatabase]:
    """A fresh database of every kind."""
    with closing(open_store(store_url)) as database:
        yield database


@pytest.fixture
def store(database: AnyDatabase) -> Store:
    """The store of one tenant in a fresh database of every kind."""
    store: Store = database.log("local")
    return store


@pytest.fixture
def open_database() -> Iterator[Callable[[str], AnyDatabase]]:
    """Return a function that opens a url and closes it after the test."""
    with ExitStack() as opened:
        yield lambda url: opened.enter_context(closing(open_store(url)))


@pytest.fixture
def two_stores(shared_url: str, open_database: Callable[[str], AnyDatabase]) -> tuple[Store, Store]:
    """Two store objects, as two processes would have them, over one log of every shared kind."""
    return open_database(shared_url).log("local"), open_database(shared_url).log("local")


@pytest.fixture(scope="session")
def strace() -> str:
    """The program that counts and interrupts system calls."""
    found = shutil.which("strace")
    if found is None:
        pytest.skip("strace is not installed (tools/setup servers)")
    return found


@pytest.fixture
def relay(postgres_server: PostgresServer) -> Iterator[TcpRelay]:
    """A way to the Postgres server that can be cut."""
    with relaying(postgres_server.port) as relay:
        yield relay


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    """Threads for what has to happen beside the test."""
    with ThreadPoolExecutor(8) as threads:
        yield threads
