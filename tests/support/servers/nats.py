"""A private NATS server with JetStream, and a cluster of three."""

import contextlib
import itertools
import json
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import coord
from coord.stores.nats.address import Address
from coord.stores.nats.jetstream import NatsServer as Client
from tests.support.servers.server import LOOPBACK, PASSWORD, STOP_S, Server, free_port, lacking, poll_until

USER = "coord"


class NatsServer(Server):
    """One server process with its streams."""

    name = "NATS"
    account = "nats"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.server_name = "alone"
        self.settings = ""
        self._names = (f"test_{number}" for number in itertools.count(1))

    @classmethod
    def program(cls) -> str | None:
        return shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin")

    def command(self) -> list[str]:
        lines = f"""
            server_name: {self.server_name}
            listen: {self.host}:{self.port}
            jetstream {{ store_dir: "{self.folder}/data" }}
            authorization {{ user: {USER}, password: {PASSWORD} }}
            {self.settings}
        """
        (self.folder / "nats.conf").write_text(lines)
        return [str(self.program()), "-c", str(self.folder / "nats.conf")]

    def answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection((self.host, self.port), 1) as door:
            return bool(json.loads(door.recv(65536).removeprefix(b"INFO ")).get("jetstream"))
        return False

    def url(self, store: str, parameters: str = "", password: str = PASSWORD) -> str:
        """Return the url of a store on this server."""
        return f"nats://{USER}:{password}@{self.host}:{self.port}/{store}{parameters}"

    def blank_url(self, parameters: str = "") -> str:
        """Return the url of a store that is not installed."""
        return self.url(next(self._names), parameters)

    def fresh_store_url(self) -> str:
        """Return the url of a new store; a killed process loses nothing, so it counts as durable here."""
        url = self.blank_url("?durable=1")
        coord.install(url)
        return url


class NatsCluster:
    """Three servers that keep streams together; each can be killed and restarted alone."""

    def __init__(self, folder: Path, host: str = LOOPBACK) -> None:
        routes = [free_port() for _ in range(3)]
        self.servers: list[NatsServer] = []
        for number, route in enumerate(routes):
            home = folder / f"node-{number}"
            home.mkdir()
            server = NatsServer(home)
            server.host = host
            server.server_name = f"node-{number}"
            others = ", ".join(f"nats://127.0.0.1:{port}" for port in routes)
            server.settings = f"cluster {{ name: tests, listen: 127.0.0.1:{route}, routes: [{others}] }}"
            self.servers.append(server)

    @property
    def url(self) -> str:
        """The url of a store that all three keep."""
        hosts = ",".join(f"{server.host}:{server.port}" for server in self.servers)
        return f"nats://{USER}:{PASSWORD}@{hosts}/cluster?replicas=3"

    def create(self) -> None:
        """Start all, wait until they have a leader, and install the store."""
        for server in self.servers:
            server.create()
        self.settle()

    def settle(self) -> None:
        """Wait until streams can be made, and make those of the store."""

        def installed() -> bool:
            with contextlib.suppress(coord.CoordError):
                coord.install(self.url, timeout=0)
                return True
            return False

        poll_until(installed, STOP_S, "the cluster has no leader")

    def discard(self) -> None:
        """End all at once and for good."""
        for server in self.servers:
            server.discard()


@contextlib.contextmanager
def cluster(host: str = LOOPBACK) -> Iterator[NatsCluster]:
    """Run a cluster of three; skip where NATS is not installed."""
    if NatsServer.program() is None:
        pytest.skip(lacking(NatsServer))
    home = Path(tempfile.mkdtemp(prefix="coord-cluster-"))
    home.chmod(0o755)  # the servers run as another user
    three = NatsCluster(home, host)
    try:
        three.create()
        yield three
    finally:
        three.discard()
        shutil.rmtree(home)


@contextlib.contextmanager
def admin(url: str) -> Iterator[Client]:
    """Give the questions of JetStream, for what a test does behind coord's back."""
    client = Client(Address(url))
    try:
        yield client
    finally:
        client.close()


def remove_streams(url: str) -> None:
    """Remove a store with all its streams."""
    with admin(url) as server:
        for stream in server.streams(server.address.subject(">")):
            server.delete(stream)
