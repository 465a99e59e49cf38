"""Connect to the store as the global flags say."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from coord.transports.cli.args import Options

if TYPE_CHECKING:
    from coord.sdk.client.client import Client


@contextmanager
def connected(options: Options, *, timeout: float | None = None) -> "Iterator[Client]":
    """Connect for one command; `timeout` as `connect` takes it."""
    from coord.sdk.client.client import connect

    client = connect(
        options.url or None,
        session=options.session,
        agent=options.agent,
        role=options.role,
        project=options.project,
        tenant=options.tenant,
        parent=options.parent,
        pid=options.pid,
        timeout=timeout,
    )
    try:
        yield client
    finally:
        client.close()
