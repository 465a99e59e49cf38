"""How a repository is set up on the machine of the hub: hooks, mirrors and reactions.

All of it is read only. Hooks and mirrors are files of a person, who changes them with the commands that the
answers name; what a reaction does stands in `coord.toml`.
"""

import asyncio
import time
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from coord.followers.follower import LogSource
from coord.followers.mirrors.switching import MirrorInfo, list_mirrors
from coord.followers.reactions.listing import ReactionsInfo, list_reactions
from coord.sdk.reports.doctor import Finding
from coord.transports.hub.api.endpoint import Asking, Endpoint, reading
from coord.transports.hub.api.this_repository import repository_of
from coord.transports.hub.stores import OpenStore

CHECKED_S = 10.0
"""How long the findings about hooks serve whoever asks next: a check starts every hook."""


class _Checked(NamedTuple):
    findings: list[Finding]
    at_s: float


class _Hooks:
    """The newest findings about the hooks of a repository, and the check under way."""

    def __init__(self) -> None:
        self.checking = asyncio.Lock()
        self.newest: _Checked | None = None


_hooks: "WeakKeyDictionary[OpenStore, _Hooks]" = WeakKeyDictionary()


async def show_hooks(asking: Asking) -> Any:
    """Check the hooks of git and of the agents, as `coord doctor` does; an answer serves for ten seconds."""
    from coord.integrations.setup.checks import examine_hooks

    repository = repository_of(asking)
    known = _hooks.setdefault(asking.store, _Hooks())
    async with known.checking:
        found = known.newest
        if found is None or time.monotonic() - found.at_s > CHECKED_S:
            findings = await asking.hub.stores.run(examine_hooks, repository, asking.hub.environ)
            found = known.newest = _Checked(findings, time.monotonic())
    return found.findings


async def show_mirrors(asking: Asking) -> Any:
    """Return the mirrors of the repository, and what others changed in them."""
    repository_of(asking)
    return await asking.hub.stores.run(list_mirrors, asking.store.location)


async def show_reactions(asking: Asking) -> Any:
    """Return the reactions, who performs them, and the deliveries that failed."""
    repository_of(asking)
    store = asking.store
    source = LogSource(await asking.engine(), store.log(asking.tenant), store.location, asking.hub.environ)
    return await asking.hub.stores.run(list_reactions, source)


def endpoints() -> list[Endpoint]:
    """Return the routes."""
    return [
        reading("/v1/hooks", "showHooks", show_hooks, list[Finding], tag="setup"),
        reading("/v1/mirrors", "showMirrors", show_mirrors, list[MirrorInfo], tag="setup"),
        reading("/v1/reactions", "showReactions", show_reactions, ReactionsInfo, tag="setup"),
    ]
