"""The reader of a log, and what its subscribers get when it cannot go on."""

from contextlib import aclosing

import pytest

from coord.stores.contract import Commit
from coord.transports.hub.streams import feed, subscription
from coord.transports.hub.streams.subscription import Delivery, Kind, Subscription, Wanted
from coord.transports.hub.streams.target import feeds_of
from tests.support.hub.harness import HubHarness
from tests.support.stores.leaping import leap


async def is_valid() -> bool:
    return True


def write(hub: HubHarness, count: int) -> list[int]:
    log = hub.store.log("local")
    return [log.commit(Commit(events=[b'{"event":"file.read"}'], at=log.now())) for _ in range(count)]


@pytest.mark.parametrize("kept", [1, 3, 100])
def test_where_offsets_leap_a_subscriber_reads_the_state_again(
    kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new epoch begins where entries may be lost, also some that the subscriber has."""
    monkeypatch.setattr(feed, "WINDOW_ENTRIES", kept)

    async def follow(after: int) -> tuple[list[int], Delivery]:
        """Return the offsets that a subscriber gets while a new epoch begins, and what it gets then."""
        found: list[int] = []
        follower = Subscription(
            hub.hub, feeds_of(hub.hub).of(hub.store, "local"), Wanted(after), is_valid=is_valid
        )
        async with aclosing(follower.deliveries()) as deliveries:
            async for delivery in deliveries:
                if delivery.kind is Kind.BEGIN and after == newest:
                    leap(hub.store.log("local"))
                    write(hub, 2)
                found += [entry.offset for entry in delivery.entries]
                if delivery.kind not in (Kind.BEGIN, Kind.ENTRIES):
                    break
        return found, delivery

    with HubHarness() as hub:
        *_, before, newest = write(hub, 4)
        live, told = hub._run(follow(newest))
        assert (live, told.kind, told.offset) == ([], Kind.RESYNC, hub.store.log("local").seen.offset)
        late, told = hub._run(follow(before))
        assert (late, told.kind) == ([newest], Kind.RESYNC)
        monkeypatch.setattr(subscription, "HEARTBEAT_S", 0.001)
        assert hub._run(follow(told.offset - 1))[0] == [told.offset]


def test_subscribers_are_told_when_the_hub_opens_the_store_again() -> None:
    """`coord serve --reload`, a migration, a repair: they connect again, and so read the new store."""

    async def follow() -> list[Delivery]:
        found = []
        reader = feeds_of(hub.hub).of(hub.store, "local")
        follower = Subscription(hub.hub, reader, Wanted(), is_valid=is_valid)
        with hub.store.in_use():
            async with aclosing(follower.deliveries()) as deliveries:
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
