"""Two hosts, servers that both can reach, and a group of processes that live on them."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import SOAK
from tests.support.network import Network, networked
from tests.support.process_group import ProcessGroup, process_group
from tests.support.servers.kinds import ON_SERVERS, OnServer, Servers
from tests.support.servers.server import Server

KINDS = tuple(ON_SERVERS) if SOAK else ("postgres", "redis", "nats")


@pytest.fixture(scope="session")
def whole_network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    with networked(tmp_path_factory.mktemp("hosts")) as network:
        yield network


@pytest.fixture
def network(whole_network: Network) -> Iterator[Network]:
    """The two hosts, on a network that is whole before and after."""
    yield whole_network
    whole_network.heal()


@pytest.fixture(scope="session")
def far_servers(whole_network: Network, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Servers that listen where the hosts find them."""
    with ExitStack() as stack:
        yield Servers(stack, tmp_path_factory.mktemp("far-servers"), whole_network.address)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> OnServer:
    """Each kind of store that hosts can share."""
    return ON_SERVERS[request.param]


@pytest.fixture
def server(kind: OnServer, far_servers: Servers) -> Server:
    """The server of that kind."""
    return far_servers.get(kind.server)


@pytest.fixture
def far_url(kind: OnServer, server: Server) -> str:
    """A fresh store on it."""
    return kind.fresh_url(server)


@pytest.fixture
def group(network: Network, far_url: str, tmp_path: Path) -> Iterator[ProcessGroup]:
    """A group for that store; each member names the host that it lives on."""
    with process_group(far_url, tmp_path) as group:
        yield group
