"""Connect to the store as the global flags say."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from coord.host.repository import current_folder, find_repository
from coord.stores.urls import is_hub
from coord.transports.cli.args import Options
from coord.transports.cli.output import is_terminal, say

if TYPE_CHECKING:
    from coord.sdk.client.client import Client

NOT_IN_USE = "coord is not in use here yet: coord init sets it up"


@contextmanager
def connected(options: Options, *, timeout: float | None = None, create: bool = True) -> "Iterator[Client]":
    """Connect for one command; `timeout` and `create` as `connect` takes them."""
    from coord.sdk.client.client import connect

    url, environ = proposed_store(options.url)
    client = connect(
        url or None,
        session=options.session,
        agent=options.agent,
        role=options.role,
        project=options.project,
        tenant=options.tenant,
        parent=options.parent,
        pid=options.pid,
        environ=environ,
        timeout=timeout,
        create=create,
    )
    try:
        if client.location.notice:
            say(f"Warning: {client.location.notice}")
        if client.database.notice and is_terminal(sys.stderr):
            say(f"Warning: {client.database.notice}")
        if client.reads_only and is_terminal(sys.stderr):
            say(NOT_IN_USE)
        if client.location.repository is not None:
            from coord.integrations.git.worktree.templates import restore_templates

            restore_templates(client.location.repository.commondir)
        yield client
    finally:
        client.close()


def proposed_store(url: str) -> tuple[str, Mapping[str, str]]:
    """Return the URL to open and the environment; in a repository, `--url` obeys the pin like COORD_URL.

    Outside of repositories COORD_URL proposes nothing, unless it names a hub, which needs no repository.
    """
    if find_repository(current_folder()) is None:
        named = os.environ.get("COORD_URL", "")
        return url or (named if is_hub(named) else ""), os.environ
    return "", {**os.environ, "COORD_URL": url} if url else os.environ
