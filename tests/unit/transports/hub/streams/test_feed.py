"""The reader of a log, and what its subscribers get when it cannot go on."""

from contextlib import aclosing

from coord.transports.hub.streams.subscription import Delivery, Kind, Subscription, Wanted
from coord.transports.hub.streams.target import feeds_of
from tests.support.hub.harness import HubHarness


async def is_valid() -> bool:
    return True


def test_subscribers_are_told_when_the_hub_opens_the_store_again() -> None:
    """`coord serve --reload`, a migration, a repair: they connect again, and so read the new store."""

    async def follow() -> list[Delivery]:
        found = []
        feed = feeds_of(hub.hub).of(hub.store, "local")
        subscription = Subscription(hub.hub, feed, Wanted(), is_valid=is_valid)
        with hub.store.in_use():
            async with aclosing(subscription.deliveries()) as deliveries:
                async for delivery in deliveries:
                    found.append(delivery)
                    if delivery.kind is Kind.BEGIN:
                        hub.hub.stores.reopen()
                    elif delivery.kind is Kind.HEARTBEAT:
                        break
        return found

    with HubHarness() as hub:
        begin, end = hub._run(follow())
    assert (begin.kind, end.kind) == (Kind.BEGIN, Kind.END)
    assert "opened the store again" in end.reason
