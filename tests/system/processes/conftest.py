"""A group of processes for every store that several processes can open.

What rules, processes, signals and namespaces decide is tried on two of them; the soak tries it on all.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import SOAK
from tests.support.process_group import ProcessGroup, process_group
from tests.support.servers.kinds import SHARED_STORES

STORES_DECIDE = (
    "test_a_plan_is_drained",
    "test_eight_processes_share_one_lock",
    "test_one_order_explains_what_processes_were_told",
    "test_two_readers_drain_what_many_send",
)
FEW_STORES = ("sqlite", "postgres")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each test of this folder the stores it needs."""
    if "shared_url" in metafunc.fixturenames:
        all_of_them = SOAK or metafunc.function.__name__ in STORES_DECIDE
        metafunc.parametrize("shared_url", SHARED_STORES if all_of_them else FEW_STORES, indirect=True)


@pytest.fixture
def shared_url(request: pytest.FixtureRequest, make_url: Callable[[str], str]) -> str:
    """The url of a fresh store of a kind."""
    return make_url(request.param)


@pytest.fixture
def group(shared_url: str, tmp_path: Path) -> Iterator[ProcessGroup]:
    with process_group(shared_url, tmp_path) as group:
        yield group
