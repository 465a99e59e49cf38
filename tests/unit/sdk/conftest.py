"""A coordinator on stores of every shape, with a clock set by hand.

What the facade does, no store decides: it is tried in memory, with tables and with a log, on disk and on a
server; the soak tries it on all.
"""

from collections.abc import Callable, Iterator

import pytest

from coord import TaskCoordinator
from tests.conftest import SOAK
from tests.support.hand_clock import HandClock
from tests.support.servers.kinds import STORES

EACH_SHAPE = ("memory", "files", "sqlite", "postgres", "nats")


@pytest.fixture(params=STORES if SOAK else EACH_SHAPE)
def shape_url(request: pytest.FixtureRequest, make_url: Callable[[str], str]) -> str:
    """The url of a fresh store."""
    return make_url(request.param)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def coordinator(shape_url: str, clock: HandClock) -> Iterator[TaskCoordinator]:
    """The facade on a fresh store."""
    with TaskCoordinator.open(shape_url, clock=clock) as opened:
        yield opened
