"""The log that a subscriber means, and what its token lets it see there."""

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, aclosing, asynccontextmanager
from typing import NamedTuple

from coord.core.errors import Invalid
from coord.transports.hub.authentication import is_still_valid
from coord.transports.hub.hub import Hub
from coord.transports.hub.identity import Identity
from coord.transports.hub.request import Request
from coord.transports.hub.stores import OpenStore
from coord.transports.hub.streams.entries import Filter, parse_kinds
from coord.transports.hub.streams.feed import Feeds
from coord.transports.hub.streams.subscription import Delivery, Subscription, Wanted

OFFSET_DIGITS_MAX = 18
TENANT = "local"


def parse_wanted(identity: Identity, after: object, kinds: list[str], project: str) -> Wanted:
    """Return what a subscriber asks for, as far as its token allows it."""
    which = Filter(parse_kinds(kinds), identity.check_project(project))
    if after is None:
        return Wanted(None, which)
    text = str(after)
    if not text.isdecimal() or not text.isascii() or len(text) > OFFSET_DIGITS_MAX:
        raise Invalid(f"{text[:40]!r} is not an offset", hint="name the last offset that you have, or none")
    return Wanted(int(text), which)


class Target(NamedTuple):
    """A log, and who subscribes to it."""

    hub: Hub
    request: Request
    store: OpenStore
    tenant: str

    def counted(self) -> AbstractContextManager[None]:
        """Count a stream while its connection is open."""
        token = self.request.identity.token
        return feeds_of(self.hub).stream(token.id if token is not None else "")

    @asynccontextmanager
    async def subscribed(self, wanted: Wanted) -> AsyncIterator[AsyncIterator[Delivery]]:
        """Yield the deliveries of a subscription, which ends with the block."""
        hub = self.hub

        async def is_valid() -> bool:
            return await is_still_valid(hub, self.request)

        with self.store.in_use():
            feed = feeds_of(hub).of(self.store, self.tenant)
            token = self.request.identity.token
            subscription = Subscription(hub, feed, wanted, token=token, is_valid=is_valid)
            async with aclosing(subscription.deliveries()) as found:
                yield found


async def target_of(hub: Hub, request: Request) -> Target:
    """Return the log that a request means: over TCP its token decides."""
    identity: Identity = request.identity
    tenant = identity.check_tenant(request.query.get("tenant", "")) or TENANT
    store = identity.store or await hub.stores.of_repository(request.headers.get("coord-repository", ""))
    await hub.stores.engine(store, tenant)
    feeds_of(hub).check_room(identity.token.id if identity.token is not None else "")
    return Target(hub, request, store, tenant)


def feeds_of(hub: Hub) -> Feeds:
    """Return the feeds of a hub."""
    if hub.feeds is None:
        hub.feeds = Feeds(hub)
    found: Feeds = hub.feeds
    return found
