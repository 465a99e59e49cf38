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
from tests.support.hub.in_process import TRANSPORTS
from tests.support.servers.kinds import STORES
from tests.support.store_harness import StoreHarness, open_store_harness

FEW_STORES = ("memory", "files", "sqlite")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give each story the stores it needs."""
    if "store_url" in metafunc.fixturenames:
        rules_only = not SOAK and metafunc.module.__name__.rpartition(".")[2].startswith("test_case_")
        kinds = FEW_STORES if rules_only else STORES
        metafunc.parametrize("store_url", (*kinds, *_transports(metafunc)), indirect=True)


def _transports(metafunc: pytest.Metafunc) -> tuple[str, ...]:
    """Return the ways to a hub for a story: over HTTP nobody believes what is said about processes."""
    if not {"harness", "clients"} & set(metafunc.fixturenames):
        return ()
    names = (*metafunc.function.__code__.co_names, metafunc.module.__name__.rpartition("_")[2])
    return ("socket",) if {"process", "caller"} & set(names) else TRANSPORTS


@pytest.fixture
def transport(request: pytest.FixtureRequest) -> str:
    """How commands get to the store: "" without a hub."""
    kind = request.node.callspec.params["store_url"]
    return kind if kind in TRANSPORTS else ""


@pytest.fixture
def store_url(request: pytest.FixtureRequest, make_url: Callable[[str], str]) -> str:
    """The url of a fresh store of a kind; a hub serves one in memory."""
    return make_url("memory" if request.param in TRANSPORTS else request.param)


@pytest.fixture
def harness(store_url: str, transport: str) -> Iterator[StoreHarness]:
    """Sessions on a fresh store of every kind, and through a hub."""
    with open_store_harness(store_url, transport) as harness:
        yield harness


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A real git repository in which coord was never used."""
    made_repository(tmp_path / "shop")
    return tmp_path / "shop"


@pytest.fixture
def clients(store_url: str, transport: str, repository: Path, tmp_path: Path) -> Iterator[ClientHarness]:
    """Clients of the library that share a fresh store of every kind, and through a hub."""
    with open_client_harness(store_url, repository, tmp_path / "state", transport) as clients:
        yield clients
