"""A crew of processes for every store that several processes can open.

What only processes, signals and namespaces decide is tried on two of them; the soak tries it on all.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import SOAK
from tests.processes.crew import Crew, gathered
from tests.servers.kinds import SHARED_STORES

STORES_DECIDE = ("test_proc_drain", "test_proc_exclusion", "test_proc_lock_histories", "test_proc_messages")
FEW_STORES = ("sqlite", "postgres")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each test of this folder the stores it needs."""
    if "shared_url" in metafunc.fixturenames:
        all_of_them = SOAK or metafunc.module.__name__.rpartition(".")[2] in STORES_DECIDE
        metafunc.parametrize("shared_url", SHARED_STORES if all_of_them else FEW_STORES, indirect=True)


@pytest.fixture
def shared_url(request: pytest.FixtureRequest, make_url: Callable[[str], str]) -> str:
    """The url of a fresh store of a kind."""
    return make_url(request.param)


@pytest.fixture
def crew(shared_url: str, tmp_path: Path) -> Iterator[Crew]:
    with gathered(shared_url, tmp_path) as crew:
        yield crew
