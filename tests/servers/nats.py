"""A private NATS server with JetStream, and a cluster of three."""

import contextlib
import itertools
import json
import shutil
import socket
from pathlib import Path

import coord
from tests.servers.server import PASSWORD, Server

USER = "coord"


class NatsServer(Server):
    """One server process with its streams."""

    name = "NATS"
    account = "nats"
    settings = ""
    """More lines of its configuration."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._names = (f"test_{number}" for number in itertools.count(1))

    @classmethod
    def program(cls) -> str | None:
        return shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin")

    def command(self) -> list[str]:
        lines = f"""
            listen: 127.0.0.1:{self.port}
            jetstream {{ store_dir: "{self.folder}/data" }}
            authorization {{ user: {USER}, password: {PASSWORD} }}
            {self.settings}
        """
        (self.folder / "nats.conf").write_text(lines)
        return [str(self.program()), "-c", str(self.folder / "nats.conf")]

    def answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as door:
            return bool(json.loads(door.recv(65536).removeprefix(b"INFO ")).get("jetstream"))
        return False

    def url(self, store: str, parameters: str = "", password: str = PASSWORD) -> str:
        """Return the url of a store on this server."""
        return f"nats://{USER}:{password}@127.0.0.1:{self.port}/{store}{parameters}"

    def blank_url(self, parameters: str = "") -> str:
        """Return the url of a store that is not installed."""
        return self.url(next(self._names), parameters)

    def fresh_store_url(self) -> str:
        """Return the url of a new store; a killed process loses nothing, so it counts as durable here."""
        url = self.blank_url("?durable=1")
        coord.install(url)
        return url
