"""A private Redis server that syncs every write before it answers."""

import contextlib
import itertools
import shutil
from pathlib import Path
from typing import ClassVar

import redis

import coord
from tests.support.servers.server import PASSWORD, Server

SETTINGS = {"appendonly": "yes", "appendfsync": "always", "save": ""}
"""Durable as a store of coord is: an answer means that it is on disk."""


class RedisServer(Server):
    """One server process."""

    name = "Redis"
    account = "redis"
    settings: ClassVar[dict[str, str]] = SETTINGS

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._names = (f"test_{number}" for number in itertools.count(1))

    @classmethod
    def program(cls) -> str | None:
        return shutil.which("redis-server")

    @property
    def url(self) -> str:
        """What a client connects to."""
        return f"redis://:{PASSWORD}@{self.host}:{self.port}/0"

    def command(self) -> list[str]:
        place = {"bind": self.host, "port": str(self.port), "dir": str(self.folder)}
        settings = {**self.settings, **place, "requirepass": PASSWORD}
        lines = [f'{name} "{value}"' for name, value in settings.items()]
        (self.folder / "redis.conf").write_text("\n".join(lines) + "\n")
        return [str(self.program()), str(self.folder / "redis.conf")]

    def answers(self) -> bool:
        with contextlib.suppress(redis.ConnectionError), redis.from_url(self.url) as client:
            return bool(client.ping())
        return False

    def fresh_store_url(self) -> str:
        """Return the url of a new store below a prefix of its own."""
        url = self.blank_store_url()
        coord.install(url)
        return url

    def blank_store_url(self) -> str:
        """Return the url of a store that is not installed yet."""
        return f"{self.url}?prefix={next(self._names)}"

    def admin(self) -> redis.Redis:
        """Return a client that may do everything, for what a test does behind coord's back."""
        return redis.from_url(self.url)
