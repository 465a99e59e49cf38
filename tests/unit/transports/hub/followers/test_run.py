"""Followers in a hub: how far they are is what they have read, and not what is saved."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from coord.core.followers import FollowerInfo, ListFollowers, ReadFollower
from coord.core.tasks.commands import ClaimTask
from coord.followers.registry import FOLLOWERS
from coord.sdk.log_reader import newest_offset
from coord.transports.hub.followers.run import HubFollowers, LogFollowers
from coord.transports.hub.followers.scrape import PATH
from tests.support import counting_follower
from tests.support.hub.harness import HubHarness
from tests.support.servers.server import poll_until


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubHarness]:
    """Return a hub that runs one follower besides the metrics."""
    for name in set(FOLLOWERS) - {"metrics"}:
        monkeypatch.delitem(FOLLOWERS, name)
    monkeypatch.setitem(FOLLOWERS, "counts", counting_follower.TARGET)
    with HubHarness() as harness:
        yield harness


def claim(hub: HubHarness, *tasks: str) -> None:
    for task in tasks:
        hub.store.engine("local").call(ClaimTask("local", "shop", task, "ada", "ada-1", 60_000))


def listed(hub: HubHarness) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in hub.ask("GET", "/v1/followers").body}


def test_the_hub_says_what_its_followers_have_read(hub: HubHarness) -> None:
    """Nothing is saved for some seconds; the list is right all the same, and says that it is."""
    claim(hub, "t1", "t2")

    async def start() -> HubFollowers:
        followers = HubFollowers(hub.hub, {})
        hub.hub.followers = followers
        followers.opened(hub.store)
        return followers

    followers = hub.loop.run_until_complete(start())
    hub.text(PATH)  # answers when the metrics have read the log
    engine = hub.store.engine("local")
    assert engine.call(ReadFollower("counts")).offset == 0, "it is not saved"
    head = newest_offset(hub.store.log("local"))
    poll_until(lambda: listed(hub)["counts"]["offset"] == head, 10, "it shows the saved offset")
    assert [(row["offset"], row["live"]) for row in listed(hub).values()] == [(head, True)] * 2
    hub.hub.stop()
    hub.loop.run_until_complete(followers.close())
    assert [each.live for each in engine.call(ListFollowers())] == [False, False]
    assert {name: row["live"] for name, row in listed(hub).items()} == {"counts": False, "metrics": False}


def test_whoever_commits_is_answered_before_the_followers_read(
    hub: HubHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They wait, so that one read takes in many commits; the end of the hub does not."""
    monkeypatch.setattr("coord.transports.hub.followers.run.PAUSE_S", 3600.0)
    stepped: list[float] = []
    step = LogFollowers.step

    def counted(followers: LogFollowers) -> float:
        stepped.append(step(followers))
        return stepped[-1]

    monkeypatch.setattr(LogFollowers, "step", counted)

    async def follow() -> None:
        followers = HubFollowers(hub.hub, {})
        hub.hub.followers = followers
        followers.opened(hub.store)
        while not stepped:  # noqa: ASYNC110 - a thread fills it
            await asyncio.sleep(0.001)
        claim(hub, "t1")
        for _ in range(1000):
            await asyncio.sleep(0)
        hub.hub.stop()
        await followers.close()

    hub.loop.run_until_complete(asyncio.wait_for(follow(), 60))
    assert len(stepped) == 1


def test_other_replies_are_left_alone(hub: HubHarness) -> None:
    """Only one command has a reply that the hub completes; an error stays an error."""

    async def start() -> HubFollowers:
        return HubFollowers(hub.hub, {})

    followers = hub.loop.run_until_complete(start())
    error = ValueError()
    assert followers.completed(hub.store, "local", ListFollowers(), error) is error
    saved = [FollowerInfo("x", 3, 0, 1, 0, 0, "", "", 0)]
    assert followers.completed(hub.store, "local", ListFollowers(), saved) is saved
    hub.loop.run_until_complete(followers.close())
