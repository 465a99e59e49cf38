"""Reports are gathered: a session is written at most once a minute, and nothing counts twice."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from coord.core.errors import Unavailable
from coord.core.usage.commands import GetUsage, Source, UsageBy, UsageItem
from coord.core.usage.schema import Amounts
from coord.engine.pending import results_of
from coord.sdk.log_reader import logged_events
from coord.transports.hub.telemetry import gather
from coord.transports.hub.telemetry.gather import PAUSE_S, Gatherer, Target
from coord.transports.hub.telemetry.reports import Report
from tests.support.hub.site import Site, open_site


@pytest.fixture
def site() -> Iterator[Site]:
    with open_site() as found:
        yield found


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def report(session: str, name: str, tokens: int = 1, **fields: Any) -> Report:
    item = UsageItem(id=name, source=Source.LOG, model="m", amounts=Amounts(input=tokens), **fields)
    return Report("claude", session, item)


def gathering(site: Site, work: Callable[[Gatherer, Target, Clock], Coroutine[Any, Any, None]]) -> Gatherer:
    """Run work with a gatherer in the loop of the hub."""
    clock = Clock()
    gatherer = Gatherer(site.hub.stores, clock)
    target = Target(site.store, "local")
    asyncio.run_coroutine_threadsafe(work(gatherer, target, clock), site.thread.loop).result(60)
    return gatherer


def commits(site: Site) -> int:
    entries = site.database.log("local").tail(0, 1000)
    return sum(each.event == "usage.reported" for each in logged_events(entries))


def tokens(site: Site) -> dict[str, int]:
    found = site.run(GetUsage(per=UsageBy.SESSION)).totals
    return {each.name: each.amounts.tokens for each in found}


def test_a_busy_session_is_written_once_a_minute(site: Site) -> None:
    async def work(gatherer: Gatherer, target: Target, clock: Clock) -> None:
        for second in range(180):
            clock.now += 1
            gatherer.add(target, report("s1", f"r{second}"), b"")
            gatherer.add(target, report("s1", f"r{second}"), b"")  # a tool sends it again
            await gatherer.write()
        await gatherer.close()

    gathering(site, work)
    assert tokens(site) == {"s1": 180}
    assert commits(site) == 180 / PAUSE_S + 1


def test_totals_of_a_counter_wait_as_one_report(site: Site) -> None:
    async def work(gatherer: Gatherer, target: Target, clock: Clock) -> None:
        for value in (3, 9, 5):
            gatherer.add(target, report("s1", "", value, series="c", start_ns=1), b"")
        gatherer.add(target, report("s1", "", 2, series="c", start_ns=2), b"")
        await gatherer.close()

    gathering(site, work)
    assert tokens(site) == {"s1": 11}


class Away:
    """An engine whose store does not answer; with `writes`, only its answer was lost."""

    def __init__(self, engine: Any, writes: bool) -> None:
        self._engine, self._writes = engine, writes

    def ask_many(self, commands: list[Any], **options: Any) -> list["asyncio.Future[Any]"]:
        return [asyncio.ensure_future(self._lose(commands, options))]

    async def _lose(self, commands: list[Any], options: dict[str, Any]) -> None:
        if self._writes:
            await results_of(self._engine.ask_many(commands, **options))
        raise Unavailable("the store is away")


@pytest.mark.parametrize("writes", [False, True])
def test_a_store_that_does_not_answer_loses_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch, writes: bool
) -> None:
    async def away(store: Any, tenant: str) -> Any:
        return Away(store.engine(tenant), writes)

    async def work(gatherer: Gatherer, target: Target, clock: Clock) -> None:
        gatherer.add(target, report("s1", "r1"), b"")
        with monkeypatch.context() as broken:
            broken.setattr(site.hub.stores, "engine", away)
            await gatherer.write()
        clock.now += PAUSE_S
        gatherer.add(target, report("s1", "r2"), b"")
        await gatherer.write()

    gathering(site, work)
    assert tokens(site) == {"s1": 2}


def test_sessions_that_report_are_bounded(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gather, "SESSIONS_MAX", 3)

    async def work(gatherer: Gatherer, target: Target, clock: Clock) -> None:
        taken = [gatherer.add(target, report(f"s{number}", "r"), b"") for number in range(5)]
        assert taken == [True, True, True, False, False]
        assert gatherer.dropped == 2
        await gatherer.write()
        assert not gatherer.add(target, report("s4", "r"), b""), "those may report again within a minute"
        clock.now += PAUSE_S
        assert gatherer.add(target, report("s4", "r"), b"")

    gathering(site, work)
    assert tokens(site) == {"s0": 1, "s1": 1, "s2": 1}
