"""Harnesses and repositories for the scenarios.

The acceptance scenarios run on every store. The further cases are about rules, which see no store: they are
tried on one in memory and one of each shape on disk; the soak tries them on all.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import SOAK
from tests.support.client_harness import ClientHarness, open_client_harness
from tests.support.git_folders import made_repository
from tests.support.servers.kinds import STORES
from tests.support.store_harness import StoreHarness, open_store_harness

FEW_STORES = ("memory", "files", "sqlite")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each story the stores it needs."""
    if "store_url" in metafunc.fixturenames:
        rules_only = not SOAK and metafunc.module.__name__.rpartition(".")[2].startswith("test_case_")
        metafunc.parametrize("store_url", FEW_STORES if rules_only else STORES, indirect=True)


@pytest.fixture
def store_url(request: pytest.FixtureRequest, make_url: Callable[[str], str]) -> str:
    """The url of a fresh store of a kind."""
    return make_url(request.param)


@pytest.fixture
def harness(store_url: str) -> Iterator[StoreHarness]:
    """Sessions on a fresh store of every kind."""
    with open_store_harness(store_url) as harness:
        yield harness


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A real git repository in which coord was never used."""
    made_repository(tmp_path / "shop")
    return tmp_path / "shop"


@pytest.fixture
def clients(store_url: str, repository: Path, tmp_path: Path) -> Iterator[ClientHarness]:
    """Clients of the library that share a fresh store of every kind."""
    with open_client_harness(store_url, repository, tmp_path / "state") as clients:
        yield clients
