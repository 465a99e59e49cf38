"""A coordinator on stores of every shape, with a clock set by hand.

What the facade does, no store decides: it is tried in memory, with tables and with a log, on disk and on a
server; the soak tries it on all.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from coord import TaskCoordinator
from coord.engine.engine import Engine
from coord.stores.database import Database
from coord.stores.open import open_store
from tests.conftest import SOAK
from tests.support.hand_clock import HandClock
from tests.support.hub.in_process import TRANSPORTS, shared_hub
from tests.support.servers.kinds import STORES

EACH_SHAPE = ("memory", "files", "sqlite", "postgres", "nats")


@pytest.fixture(params=STORES if SOAK else EACH_SHAPE)
def shape_url(request: pytest.FixtureRequest, make_url: Callable[[str], str]) -> str:
    """The url of a fresh store."""
    return make_url(request.param)


@pytest.fixture(params=(*(STORES if SOAK else EACH_SHAPE), *TRANSPORTS))
def shape(request: pytest.FixtureRequest) -> str:
    """A kind of store, or a way to a hub that serves one."""
    kind: str = request.param
    return kind


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def database(shape: str, make_url: Callable[[str], str]) -> Iterator[Database[Any]]:
    """The store below the facade; a hub serves one in memory."""
    with closing(open_store(make_url("memory" if shape in TRANSPORTS else shape))) as opened:
        yield opened


@pytest.fixture
def coordinator(shape: str, database: Database[Any], clock: HandClock) -> Iterator[TaskCoordinator]:
    """The facade on a fresh store, and through a hub."""
    if shape not in TRANSPORTS:
        with TaskCoordinator(database, clock) as opened:
            yield opened
        return

    def new_engine(database: Database[Any], tenant: str) -> Engine:
        return Engine(database, tenant, clock=clock)

    with shared_hub().serving(database, shape, new_engine) as remote:
        yield TaskCoordinator(remote, clock)
