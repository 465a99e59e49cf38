"""A private Redis server that syncs every write before it answers."""

import contextlib
import shutil

import redis

from tests.servers.server import PASSWORD, Server

SETTINGS = {"bind": "127.0.0.1", "appendonly": "yes", "appendfsync": "always", "save": ""}
"""Durable as a store of coord is: an answer means that it is on disk."""


class RedisServer(Server):
    """One server process."""

    name = "Redis"
    account = "redis"

    @classmethod
    def program(cls) -> str | None:
        return shutil.which("redis-server")

    @property
    def url(self) -> str:
        """What a client connects to."""
        return f"redis://:{PASSWORD}@127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        settings = {**SETTINGS, "port": str(self.port), "dir": str(self.folder), "requirepass": PASSWORD}
        lines = [f'{name} "{value}"' for name, value in settings.items()]
        (self.folder / "redis.conf").write_text("\n".join(lines) + "\n")
        return [str(self.program()), str(self.folder / "redis.conf")]

    def answers(self) -> bool:
        with contextlib.suppress(redis.ConnectionError), redis.from_url(self.url) as client:
            return bool(client.ping())
        return False
