"""A follower far behind reads page by page while agents go on, holds one page at a time, and arrives."""

import weakref
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest

from coord.core.tasks.commands import ClaimTask
from coord.followers.follower import LogSource
from coord.followers.metrics.follower import MetricsFollower
from coord.followers.metrics.gauges import metrics_of
from coord.followers.runner import Runner
from coord.host.store_location import StoreLocation
from coord.sdk.log_reader import PAGE_ENTRIES
from coord.stores.contract import Commit, Entry
from coord.stores.open import open_store
from tests.conftest import SOAK
from tests.support.counting_follower import Counts
from tests.support.models.naive_metrics import NaiveMetrics, differences, read_samples
from tests.support.store_harness import StoreHarness

BEHIND = 200_000 if SOAK else 12_000
"""In entries: two hours of a fleet that commits 28 times a second, or seven minutes of it."""
LOCATION = StoreLocation("memory:", "repository", None, "store", 0, "/nowhere")


class Page(list[Entry]):
    """A page of the log that tells when nobody has it any more."""

    __hash__ = object.__hash__  # type: ignore[assignment]


class BusyLog:
    """A log that grows by some commits of agents each time that somebody reads a page of it."""

    def __init__(self, harness: StoreHarness, commits: int) -> None:
        self._harness, self._commits = harness, commits
        self._log = harness.store
        self._pages: weakref.WeakSet[Page] = weakref.WeakSet()
        self.held_max = self.read = self.claimed = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def tail(self, after: int, limit: int) -> list[Entry]:
        if limit == 1:  # a save asks whether the log was trimmed
            return self._log.tail(after, limit)
        assert limit <= PAGE_ENTRIES
        if limit == 1:  # `first_offset` looks whether the log was trimmed
            return self._log.tail(after, limit)
        page = Page(self._log.tail(after, limit))
        self._pages.add(page)
        self.held_max = max(self.held_max, len(self._pages))
        self.read += len(page)
        if len(page) == limit:
            self._commit()
        return page

    def _commit(self) -> None:
        for _ in range(self._commits):
            self.claimed += 1
            command = ClaimTask("local", "p", f"t{self.claimed}", "ada", "ada-1", 60_000)
            assert self._harness.local.call(command).success


@pytest.fixture
def harness() -> Iterator[StoreHarness]:
    with closing(open_store("memory:")) as database:
        yield StoreHarness(database)


def write_past(harness: StoreHarness, entries: int) -> None:
    """Write a long log without running rules: messages that were sent and received."""
    events = [
        [msgspec.json.encode({"event": f"message.{what}", "id": "m"})] for what in ("sent", "delivered")
    ]
    for number in range(entries):
        harness.store.commit(Commit(events=events[number % 2], at=harness.now, id=b"%d" % number))


def test_a_follower_far_behind_catches_up_while_agents_commit(harness: StoreHarness) -> None:
    """Issue 17, Proof: commits go on at a fifth of its speed, its lag reaches zero, and memory is a page."""
    write_past(harness, BEHIND)
    log = BusyLog(harness, PAGE_ENTRIES // 5)
    source = LogSource(harness.local, log, LOCATION, {}, lambda: harness.now)
    runner = Runner(source, [MetricsFollower, Counts], "me")
    runner.step()
    assert runner.offset == harness.head - 2, "only what saved the two states was not read"
    assert not runner.behind
    assert log.claimed >= BEHIND // PAGE_ENTRIES * (PAGE_ENTRIES // 5), "nobody had to wait for it"
    assert log.read <= harness.head, "both followers share what is read"
    assert log.held_max <= 2, "the page that is read, and the one before it"
    runner.close()
    metrics_run = runner.runs[0]
    assert isinstance(metrics_run.follower, MetricsFollower)
    text = metrics_of(source, harness.actor("ada-1").caller, metrics_run.follower.counts, 0)
    entries = harness.store.tail(0, harness.head)
    assert differences(read_samples(text), NaiveMetrics(entries, "local").counted()) == []


def test_one_that_is_killed_on_its_way_goes_on_from_the_last_save(harness: StoreHarness) -> None:
    """It saves while it catches up, so that a kill does not cost two hours of reading again."""
    write_past(harness, 5 * PAGE_ENTRIES)
    log = BusyLog(harness, 0)
    source = LogSource(harness.local, log, LOCATION, {}, lambda: harness.now)
    behind = []
    for number in range(1, 7):
        killed = Runner(source, [MetricsFollower], f"process-{number}")
        killed.step(pages_max=1)
        behind.append(killed.behind)
        killed.save()
    assert log.read == harness.head, "nothing is read twice"
    assert behind == [True] * 5 + [False]
