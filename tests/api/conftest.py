"""A coordinator on every store, with a clock set by hand."""

from collections.abc import Iterator

import pytest

from coord import TaskCoordinator
from tests.api.hand_clock import HandClock


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def coordinator(store_url: str, clock: HandClock) -> Iterator[TaskCoordinator]:
    """The facade on a fresh store of every kind."""
    with TaskCoordinator.open(store_url, clock=clock) as opened:
        yield opened
