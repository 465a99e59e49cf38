"""A private etcd: one member, which syncs every write before it answers."""

import contextlib
import json
import shutil
from http.client import HTTPConnection, HTTPException

from tests.support.servers.server import Server


class EtcdServer(Server):
    """One server process, asked in JSON over HTTP."""

    name = "etcd"

    @classmethod
    def program(cls) -> str | None:
        return shutil.which("etcd")

    @property
    def url(self) -> str:
        """What a client connects to."""
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        nobody_else = "http://127.0.0.1:0"  # it has no other members, but wants a place for them
        settings = {
            "data-dir": str(self.folder / "data"),
            "listen-client-urls": self.url,
            "advertise-client-urls": self.url,
            "listen-peer-urls": nobody_else,
            "initial-advertise-peer-urls": nobody_else,
            "initial-cluster": f"default={nobody_else}",
            "logger": "zap",
        }
        return [str(self.program()), *(f"--{name}={value}" for name, value in settings.items())]

    def answers(self) -> bool:
        with contextlib.suppress(OSError, HTTPException, ValueError):
            connection = HTTPConnection("127.0.0.1", self.port, timeout=5)
            with contextlib.closing(connection):
                connection.request("GET", "/health")
                return bool(json.loads(connection.getresponse().read())["health"] == "true")
        return False
