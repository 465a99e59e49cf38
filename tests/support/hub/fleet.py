"""Hubs of one store that a test kills and starts again, and what its clients need to reach them."""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import coord
from coord.host.store_location import find_location
from coord.sdk.client.open import open_for_use
from coord.sdk.coordinator import TaskCoordinator
from tests.support.hub.process import PATIENCE_S, RunningHub, private_home, serving
from tests.support.servers.server import LOOPBACK, free_port

TENANT = "local"


class KilledHub:
    """A hub that is started again at the same addresses, however often it is killed."""

    def __init__(self, repository: Path, folder: Path, stack: ExitStack, host: str = LOOPBACK) -> None:
        self._repository = repository
        self._environ = stack.enter_context(private_home(folder))
        self._listen = f"{host}:{free_port(host)}"
        self._words = () if host == LOOPBACK else ("--behind-proxy",)
        self._now: ExitStack = stack.enter_context(ExitStack())
        self.recoveries_s: list[float] = []
        self.running = self._start()

    def _start(self) -> RunningHub:
        return self._now.enter_context(
            serving(self._repository, self._environ, *self._words, listen=self._listen)
        )

    def kill(self) -> None:
        """End it as a power failure does."""
        self.running.kill()
        self._now.close()

    def restart(self) -> None:
        """Kill it and start it again; note how long nobody could be served."""
        began = time.monotonic()
        self.kill()
        self.running = self._start()
        self.recoveries_s.append(time.monotonic() - began)

    def way(self, transport: str, token: str) -> dict[str, Any]:
        """Return the options with which a process of the tests uses this hub."""
        if transport == "http":
            return {"url": self.running.url, "hub": {"token": token}}
        return {"url": "", "hub": {"socket": self.running.socket, "cwd": str(self._repository)}}


def use_hub(options: dict[str, Any]) -> dict[str, str]:
    """Return the environment of a client as the options of its hub say; the token goes into ours."""
    hub = options.get("hub") or {}
    if token := hub.get("token"):
        os.environ["COORD_TOKEN"] = token
    return {"COORD_HUB": hub["socket"]} if "socket" in hub else {}


def open_coordinator(options: dict[str, Any]) -> TaskCoordinator:
    """Open the store of some options: itself, by `http://`, or through the hub at a socket."""
    environ = use_hub(options)
    if options["url"]:
        return TaskCoordinator.open(options["url"])
    location = find_location(options["hub"]["cwd"], environ)
    database, _ = open_for_use(location, PATIENCE_S, environ, TENANT)
    assert database.is_remote, "the hub runs, so it is used"
    return TaskCoordinator(database)


def new_token(repository: Path, role: str = "admin", tenant: str = TENANT) -> str:
    """Return a new token of the store of a repository."""
    environ = {"COORD_HUB": "off", "HOME": str(repository), "USER": "tester"}
    with closing(coord.connect(cwd=str(repository), environ=environ, tenant=tenant)) as client:
        return client.create_token(role).text


@contextmanager
def hubs_of(repository: Path, folder: Path, count: int, host: str = LOOPBACK) -> Iterator[list[KilledHub]]:
    """Yield some hubs that serve one repository, each in a home of its own."""
    with ExitStack() as stack:
        yield [KilledHub(repository, folder / f"hub-{number}", stack, host) for number in range(count)]
