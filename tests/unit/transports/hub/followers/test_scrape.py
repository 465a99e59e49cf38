"""`/metrics`: who may read it, whose numbers it has, and that no counter ever falls."""

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from coord.core.errors import Unavailable
from coord.core.tasks.commands import ClaimTask
from coord.followers.follower import LogSource
from coord.followers.metrics import follower as follower_module
from coord.followers.metrics.text import CONTENT_TYPE
from coord.sdk.log_reader import newest_offset
from coord.transports.hub.followers import scrape
from coord.transports.hub.followers.run import HubFollowers
from coord.transports.hub.followers.scrape import PATH
from tests.support.hub.harness import HubHarness


@pytest.fixture
def hub() -> Iterator[HubHarness]:
    with HubHarness() as harness:
        yield harness


def claim(hub: HubHarness, tasks: int, tenant: str = "local", project: str = "shop") -> None:
    engine = hub.store.engine(tenant)
    for number in range(tasks):
        engine.call(ClaimTask(tenant, project, f"t{number}", "ada", "ada-1", 60_000))


def granted(text: str, tenant: str = "local") -> float:
    name = f'coditect_claims_total{{tenant="{tenant}",project="shop",result="granted"}} '
    return float(next((line.removeprefix(name) for line in text.splitlines() if line.startswith(name)), 0))


def follow(hub: HubHarness) -> HubFollowers:
    """Let the hub of a harness follow its logs, as a real one does."""

    async def start() -> HubFollowers:
        followers = HubFollowers(hub.hub, {})
        hub.hub.followers = followers
        followers.opened(hub.store)
        return followers

    return hub.loop.run_until_complete(start())


def test_a_token_reads_the_counts_of_its_tenant(hub: HubHarness) -> None:
    """OBS-22, OBS-11: any role may read; a token sees its own tenant, and one of a project sees nothing."""
    claim(hub, 2)
    claim(hub, 3, "acme")
    text = hub.text(PATH)
    assert granted(text) == 2
    assert "acme" not in text
    assert granted(hub.text(PATH, token=hub.new_token("view", "acme")), "acme") == 3
    assert hub.ask("GET", PATH, token="").status == 401
    assert hub.ask("GET", PATH, query={"tenant": "acme"}).status == 403
    assert hub.ask("GET", PATH, token=hub.new_token("view", project="shop")).status == 403
    response = hub.raw("GET", PATH, b"", "", hub.token)
    assert (response.status, response.content_type) == (200, CONTENT_TYPE)


def test_the_counts_are_those_of_the_follower(hub: HubHarness) -> None:
    """The hub does not count again what its follower has counted, and says how far that is."""
    claim(hub, 2)
    followers = follow(hub)
    assert granted(hub.text(PATH)) == 2
    found = followers.of(hub.store, "local")
    assert found is not None
    run = found.running("metrics")
    assert run is not None
    assert isinstance(run.follower, follower_module.MetricsFollower)
    run.follower.counts.series["claims_total"]["local\x1fshop\x1fgranted"][0] = 77
    text = hub.text(PATH)
    assert granted(text) == 77
    assert "coord_metrics_lag_entries 0\n" in text
    hub.hub.stop()
    hub.loop.run_until_complete(followers.close())


def test_no_counter_falls_after_a_restart(hub: HubHarness) -> None:
    """A follower that starts from an old state shows nothing before it has counted the log again."""
    claim(hub, 30)
    followers = follow(hub)
    found = None
    while found is None:  # the first request opens it
        hub.text(PATH)
        found = followers.of(hub.store, "local")
    run = found.running("metrics")
    assert run is not None
    run.follower.load(follower_module.MetricsFollower(run.follower.source).dump())  # as after kill -9
    run.offset = 0
    run.ready = False
    assert granted(hub.text(PATH)) == 30
    hub.hub.stop()
    hub.loop.run_until_complete(followers.close())


def test_counts_that_lag_behind_are_not_shown(hub: HubHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """A follower that has not read what the log had when it was first asked."""
    monkeypatch.setattr(scrape, "COUNTED_S", 0.05)
    claim(hub, 3)
    source = LogSource(hub.store.engine("local"), hub.store.log("local"), hub.store.location, {})
    head = newest_offset(source.log)
    run = SimpleNamespace(follower=follower_module.MetricsFollower(source), offset=head - 1)
    followers = SimpleNamespace(running=lambda _: run, news=asyncio.Event())

    async def counted() -> object:
        return await scrape._counted(hub.hub, source, followers)  # type: ignore[arg-type]

    with pytest.raises(Unavailable, match="being counted"):
        hub.loop.run_until_complete(counted())
    run.offset = head
    assert hub.loop.run_until_complete(counted()) is run.follower
