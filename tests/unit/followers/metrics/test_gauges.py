"""What `/metrics` says about now: the value of each gauge after a short story with known times."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from coord.core.git_log import RecordRestore
from coord.core.identity import Caller
from coord.core.tasks.commands import ClaimTask, SubmitResult
from coord.followers.follower import LogSource
from coord.followers.metrics.counts import Counts
from coord.followers.metrics.gauges import metrics, metrics_of
from coord.host.store_location import StoreLocation
from coord.sdk.log_reader import logged_events
from coord.stores.open import open_store
from tests.support.models.naive_metrics import GAUGES, NaiveMetrics, differences, read_samples
from tests.support.store_harness import StoreHarness


@pytest.fixture
def harness() -> Iterator[StoreHarness]:
    with closing(open_store("memory:")) as database:
        yield StoreHarness(database)


def source_of(harness: StoreHarness) -> LogSource:
    location = StoreLocation("memory:", "repository", None, harness.database.store_id, 0, "/nowhere")
    return LogSource(harness.local, harness.store, location, {}, lambda: harness.now)


def shown(harness: StoreHarness) -> dict[str, float]:
    return read_samples(metrics(source_of(harness), Caller("prometheus")))


def claim(harness: StoreHarness, task: str, agent: str) -> int:
    reply = harness.call(ClaimTask("local", "shop", task, agent, f"{agent}-1", 600_000))
    return int(reply.claim.generation)


def test_utilisation_is_the_share_of_its_time_in_which_an_agent_had_a_claim(harness: StoreHarness) -> None:
    """OBS-8: with claims and sessions that have not ended, until now; who has no session has no share."""
    ada, bob = (harness.actor(f"{name}-1") for name in ("ada", "bob"))
    ada.register()
    bob.register()
    generation = claim(harness, "a", "ada")
    claim(harness, "z", "zoe")
    harness.pass_seconds(30)
    harness.call(SubmitResult("local", "shop", "a", "ada-1", generation, b"{}", ""))
    harness.pass_seconds(70)
    found = shown(harness)
    assert found['coord_agent_utilisation{agent="ada"}'] == 0.3
    assert 'coord_agent_utilisation{agent="bob"}' not in found, "it has never had a claim"
    assert 'coord_agent_utilisation{agent="zoe"}' not in found, "how long it was there is not known"
    claim(harness, "b", "ada")
    harness.pass_seconds(100)
    assert shown(harness)['coord_agent_utilisation{agent="ada"}'] == 0.65
    ada.leave()
    harness.pass_seconds(500)
    again = harness.actor("ada-2", agent="ada")
    again.register()
    harness.pass_seconds(200)
    found = shown(harness)
    assert found['coord_agent_utilisation{agent="ada"}'] == 130 / 400
    assert found['coord_agent_busy_seconds_total{agent="ada"}'] == 130
    assert found['coord_agent_seconds_total{agent="ada"}'] == 200


def test_one_who_works_on_two_tasks_is_busy_once(harness: StoreHarness) -> None:
    harness.actor("ada-1").register()
    claim(harness, "a", "ada")
    claim(harness, "b", "ada")
    harness.pass_seconds(10)
    assert shown(harness)['coord_agent_utilisation{agent="ada"}'] == 1


def test_live_sessions_held_locks_and_waiters_are_those_of_now(harness: StoreHarness) -> None:
    """OBS-22: who waits is in the queue, and who was only denied is not."""
    ada, bob, cid, dan = (harness.actor(f"{name}-1") for name in ("ada", "bob", "cid", "dan"))
    for actor in (ada, bob, cid, dan):
        actor.register()
    ada.take("name:a")
    ada.take("name:b")
    bob.wait_for("name:a")
    cid.wait_for("name:a")
    dan.lock("name:b")
    found = shown(harness)
    assert found["coord_sessions_live"] == 4
    assert {name: value for name, value in found.items() if name.startswith("coord_locks_held")} == {
        'coord_locks_held{resource="name:a"}': 1,
        'coord_locks_held{resource="name:b"}': 1,
    }
    assert (found["coord_lock_waiters"], found["coord_lock_denied_requests"]) == (2, 1)
    harness.pass_seconds(90 * 60)
    dan.beat()
    found = shown(harness)
    assert found["coord_sessions_live"] == 1, "the others are silent"
    assert found["coord_lock_denied_requests"] == 0


def test_the_collision_rate_is_undone_overwrites_by_granted_locks(harness: StoreHarness) -> None:
    """OBS-5."""
    ada = harness.actor("ada-1")
    assert shown(harness)["coord_collision_rate"] == 0
    for name in "abcd":
        ada.take(f"name:{name}")
    restore = RecordRestore(ada.caller, files=("a", "b", "c"), file_count=3, holders=("bob-1",))
    harness.call(restore)
    found = shown(harness)
    assert found["coord_collision_rate"] == 0.75
    assert found["coord_overwrites_undone_total"] == 3


def test_tasks_are_counted_as_they_are_now(harness: StoreHarness) -> None:
    """OBS-16, OBS-17, OBS-18, OBS-7: a lease that has expired is no claim, whether it was swept or not."""
    done = claim(harness, "a", "ada")
    claim(harness, "b", "bob")
    harness.call(SubmitResult("local", "shop", "a", "ada-1", done, b"{}", ""))
    gauges = [f'{name}{{tenant="local",project="shop"}}' for name in GAUGES]
    assert [shown(harness)[name] for name in gauges] == [1, 0, 1]
    assert shown(harness)["coord_tasks_per_hour"] == 1
    harness.pass_seconds(59 * 60)
    assert shown(harness)["coord_tasks_per_hour"] == 1
    harness.pass_seconds(60)
    assert [shown(harness)[name] for name in gauges] == [0, 1, 1]
    assert shown(harness)["coord_tasks_per_hour"] == 0
    naive = NaiveMetrics(harness.store.tail(0, 100), "local")
    assert differences(shown(harness), naive.counted()) == []
    assert differences(shown(harness), naive.tasks(harness.now), GAUGES) == []


def test_the_lag_is_shown_as_it_is(harness: StoreHarness) -> None:
    claim(harness, "a", "ada")
    counts = Counts("local")
    for logged in logged_events(harness.store.tail(0, 100)):
        counts.apply(logged)
    text = metrics_of(source_of(harness), Caller("prometheus"), counts, 17)
    assert read_samples(text)["coord_metrics_lag_entries"] == 17
