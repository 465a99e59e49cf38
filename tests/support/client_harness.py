"""A harness for clients: several of them in one repository, on one store, with a clock set by hand."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import coord
from coord import Client
from coord.engine.engine import Engine
from coord.host.processes import probe
from coord.stores.database import Database
from coord.stores.open import open_store
from tests.support.hub.in_process import shared_hub
from tests.support.store_harness import START_MS


class ClientHarness:
    """Makes clients that share an open store, even one in the memory of this process."""

    def __init__(self, database: Database[Any], repository: Path, state: Path) -> None:
        self.database = database
        self.repository = repository
        self.environ = {"XDG_STATE_HOME": str(state)}
        self.now = START_MS
        self.clients: list[Client] = []
        self.through: Database[Any] = database
        """What the clients use: the store, or a hub before it."""

    def client(self, session: str, cwd: Path | None = None, **described: Any) -> Client:
        """A client as `coord.connect` makes it, but on the store that all share."""
        folder = str(cwd or self.repository)
        alone = coord.connect("memory:", session=session, cwd=folder, environ=self.environ, **described)
        alone.close()
        client = Client(
            self.through,
            alone.location._replace(url=self.database.url),
            alone.caller,
            tenant=alone.tenant,
            cwd=folder,
            environ=self.environ,
            clock=lambda: self.now,
        )
        self.clients.append(client)
        return client

    @property
    def head(self) -> int:
        """The offset of the newest entry."""
        store = self.database.log("local")
        store.load(())
        return int(store.seen.offset)


@contextmanager
def open_client_harness(
    url: str, repository: Path, state: Path, transport: str = ""
) -> Iterator[ClientHarness]:
    """Open the store of a URL, perhaps behind a hub, and close its clients at the end."""
    with closing(open_store(url)) as database, ExitStack() as stack:
        harness = ClientHarness(database, repository, state)
        if transport:

            def new_engine(database: Database[Any], tenant: str) -> Engine:
                return Engine(database, tenant, clock=lambda: harness.now, probe=probe)

            harness.through = stack.enter_context(shared_hub().serving(database, transport, new_engine))
        try:
            yield harness
        finally:
            for client in harness.clients:
                client.close()
