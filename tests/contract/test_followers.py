"""Followers on every store: computed again they have the same bytes, and a killed one counts once."""

from typing import Any

import pytest

from coord.core.followers import ForgetFollower, ReadFollower, RebuildFollower
from coord.core.tasks.commands import ClaimTask, SubmitResult
from coord.followers.follower import LogSource
from coord.followers.metrics.follower import MetricsFollower
from coord.followers.runner import Runner
from coord.host.store_location import StoreLocation
from coord.sdk.log_reader import first_offset
from coord.stores.database import Database
from tests.support.store_harness import StoreHarness

TASKS = 12


@pytest.fixture
def harness(database: Database[Any]) -> StoreHarness:
    return StoreHarness(database)


def runner_of(harness: StoreHarness, name: str = "me") -> Runner:
    location = StoreLocation(harness.database.url, "", None, harness.database.store_id, 0, "/nowhere")
    source = LogSource(harness.local, harness.store, location, {}, lambda: harness.now)
    return Runner(source, [MetricsFollower], name)


def work(harness: StoreHarness, first: int) -> None:
    """Let agents claim and complete some tasks."""
    for number in range(first, first + TASKS):
        harness.call(ClaimTask("local", "p", f"t{number}", "ada", "ada-1", 60_000))
        harness.pass_seconds(1)
        harness.call(SubmitResult("local", "p", f"t{number}", "ada-1", 1, b"{}", ""))


def state_of(harness: StoreHarness) -> bytes:
    state: bytes = harness.local.call(ReadFollower(MetricsFollower.name)).state
    return state


def test_a_follower_computed_again_has_the_same_bytes(harness: StoreHarness) -> None:
    """In steps with restarts, or in one go from the first entry: one state, whatever the store is."""
    for part in range(3):
        work(harness, part * TASKS)
        runner = runner_of(harness, f"process-{part}")
        runner.step()
        runner.close()
    before = state_of(harness)
    assert harness.local.call(ForgetFollower(MetricsFollower.name)) is True
    again = runner_of(harness, "later")
    again.step()
    again.close()
    assert state_of(harness) == before
    (run,) = again.runs
    assert isinstance(run.follower, MetricsFollower)
    assert run.follower.counts.series["generation_increments_total"]["local\x1fp"] == [3.0 * TASKS]


def test_a_killed_follower_counts_each_entry_once(harness: StoreHarness) -> None:
    """Whatever was not saved is read again, and what was saved is not."""
    work(harness, 0)
    saved = runner_of(harness)
    saved.step()
    saved.save()
    work(harness, TASKS)
    killed = runner_of(harness)
    killed.step()  # and it saves nothing
    work(harness, 2 * TASKS)
    last = runner_of(harness)
    last.step()
    (run,) = last.runs
    assert isinstance(run.follower, MetricsFollower)
    assert run.follower.counts.series["generation_increments_total"]["local\x1fp"] == [3.0 * TASKS]


def test_a_follower_of_a_trimmed_log_is_computed_again_to_the_same_bytes(harness: StoreHarness) -> None:
    """Issue 17, Proof: from the state that is kept when entries go; no counter falls."""
    for part in range(4):
        work(harness, part * TASKS)
        runner = runner_of(harness, f"process-{part}")
        runner.step()
        runner.close()
        if part in (1, 2):
            harness.store.trim(harness.head - 3 * TASKS)
    before = state_of(harness)
    first = first_offset(harness.store)
    assert first > 2 * TASKS
    offset = harness.local.call(RebuildFollower(MetricsFollower.name, MetricsFollower.version, first))
    assert first - 1 <= offset < harness.head - TASKS, "a part of the log is read again"
    assert state_of(harness) != before
    again = runner_of(harness, "later")
    again.step()
    again.close()
    assert state_of(harness) == before
