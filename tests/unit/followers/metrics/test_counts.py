"""Metrics count what the log says: against a naive count, and after any restart."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coord.core.tasks.commands import ClaimTask, ReleaseClaim, RenewLease, ResetTask, SubmitResult
from coord.core.tasks.types import ReleaseReason
from coord.followers.follower import LogSource
from coord.followers.metrics.counts import LABELS_MAX, OTHER, SEPARATOR, Counts
from coord.followers.metrics.families import FAMILIES
from coord.followers.metrics.follower import MetricsFollower
from coord.followers.metrics.gauges import _of_counts
from coord.followers.metrics.text import metrics_text
from coord.host.store_location import StoreLocation
from coord.sdk.log_reader import LoggedEvent, logged_events
from coord.stores.contract import Entry
from coord.stores.open import open_store
from tests.support.models.naive_metrics import RATES, NaiveMetrics, differences, read_samples
from tests.support.store_harness import StoreHarness

TASK = {"project": "p", "task": "t"}
EVENTS = st.sampled_from(
    [
        ("task.claimed", {**TASK, "generation": 1, "agent": "ada"}),
        (
            "task.completed",
            {"project": "p", "task": "t", "generation": 2, "agent": "ada", "worked_ms": 61_000},
        ),
        ("task.expired", {"project": "q", "task": "u", "generation": 1, "agent": "bob", "worked_ms": 900}),
        (
            "task.refused",
            {**TASK, "operation": "claim", "reason": "DENIED_ACTIVE_CLAIM"},
        ),
        ("task.refused", {**TASK, "operation": "renew", "reason": "SESSION_MISMATCH"}),
        ("task.result_rejected", {**TASK, "reason": "STALE_GENERATION"}),
        ("lock.acquired", {"resource": "name:a", "session": "s", "waited_ms": 2000}),
        ("lock.released", {"resource": "name:a", "session": "s", "held_s": 3.5, "end_reason": "stolen"}),
        ("lock.denied", {"resources": ["name:a"], "session": "s"}),
        ("lock.deadlock", {"cycle": ["a", "b"], "victim": "a", "resolved": True, "since_ms": 0}),
        ("session.registered", {"session": "s", "agent": "ada"}),
        ("session.ended", {"session": "s", "agent": "ada", "end_reason": "ended"}),
        ("message.sent", {}),
        ("git.merge_refused", {}),
        ("agent.enabled", {}),
        ("something.new", {"of": ["a", "later", "version"]}),
    ]
)


def counted(events: list[LoggedEvent]) -> Counts:
    counts = Counts("local")
    for logged in events:
        counts.apply(logged)
    return counts


@given(st.lists(EVENTS, max_size=60))
def test_every_event_counts_once(chosen: list[tuple[str, dict]]) -> None:
    """OBS-11, OBS-12, OBS-13, OBS-14: the series of an outcome have as many as there are such events."""
    events = [LoggedEvent(n + 1, 1000 * n, name, dict(details)) for n, (name, details) in enumerate(chosen)]
    counts = counted(events)
    names = Counter(name for name, _ in chosen)

    def total(name: str, *labels: str) -> float:
        return counts.series.get(name, {}).get(SEPARATOR.join(labels), [0.0])[-1]

    for name, count in names.items():
        assert total("coord_events_total", name) == count
    assert total("claims_total", "local", "p", "granted") == names["task.claimed"]
    refused = Counter(details["operation"] for name, details in chosen if name == "task.refused")
    assert total("claims_total", "local", "p", "denied_active") == refused["claim"]
    assert total("lease_renewals_total", "local", "p", "failed") == refused["renew"]
    assert total("results_total", "local", "p", "stale_generation") == names["task.result_rejected"]
    assert total("claim_duration_seconds", "local", "p") == names["task.completed"]
    assert total("lease_expirations_total", "local", "q") == names["task.expired"]
    interventions = counts.series.get("coord_manual_interventions_total", {})
    assert sum(each[0] for each in interventions.values()) == names["lock.released"] + names["agent.enabled"]


SIMPLE = st.sampled_from(
    [
        ("lock.denied", {"use": "hook"}),
        ("lock.denied", {}),
        ("git.commit_refused", {"findings": 2}),
        ("git.merge_refused", {"status": "conflict"}),
        ("git.merged", {}),
        ("file.restored", {"file_count": 3}),
        ("file.edited", {"agent": "ada"}),
        ("message.sent", {"to": ["a", "b"]}),
        ("message.sent_to_group", {"group": "g"}),
        ("message.delivered", {}),
        ("message.undelivered", {}),
        ("question.answered", {}),
        ("question.asked", {}),
        ("agent.enabled", {"enabled": False}),
        ("lock.preemption_asked", {}),
        ("lock.deadlock", {"resolved": True, "since_ms": 0}),
        ("lock.deadlock", {"since_ms": 0}),
        ("session.registered", {"session": "s", "agent": "ada"}),
        ("session.registered", {"session": "t", "agent": "bob"}),
        ("session.ended", {"session": "s", "agent": "ada"}),
        ("session.ended", {"session": "u", "agent": "never"}),
        ("task.skipped", {"project": "p", "task": "t"}),
        ("task.retried", {"project": "p", "task": "t", "retries": 0}),
        ("task.retried", {"project": "p", "task": "t", "retries": 2}),
        ("something.new", {"project": 7}),
    ]
)


@given(st.lists(SIMPLE, max_size=60), st.integers(0, 200_000))
def test_simple_events_count_as_a_naive_count_says(chosen: list[tuple[str, dict]], later_ms: int) -> None:
    """OBS-5, OBS-6, OBS-9, OBS-22: what the simulation never meets; the simulation compares all others."""
    entries = [
        Entry(n + 1, 1000 * n, b"", [msgspec.json.encode({"event": name, **details})])
        for n, (name, details) in enumerate(chosen)
    ]
    now = 1000 * len(entries) + later_ms
    counts, naive = counted(list(logged_events(entries))), NaiveMetrics(entries, "local")
    shown = read_samples(metrics_text(counts, list(_of_counts(counts, now))))
    assert differences(shown, naive.counted()) == []
    assert differences(shown, naive.rates(now), RATES) == []


@given(st.lists(EVENTS, max_size=60), st.integers(0, 60))
def test_a_saved_state_goes_on_as_if_it_had_never_stopped(chosen: list[tuple[str, dict]], cut: int) -> None:
    events = [LoggedEvent(n + 1, 1000 * n, name, dict(details)) for n, (name, details) in enumerate(chosen)]
    whole, first, second = (_follower() for _ in range(3))
    for logged in events:
        whole.apply(logged)
    for logged in events[:cut]:
        first.apply(logged)
    second.load(first.dump())
    for logged in events[cut:]:
        second.apply(logged)
    assert second.dump() == whole.dump()


def test_histograms_have_the_buckets_of_the_documents() -> None:
    """OBS-19, OBS-20, OBS-21."""
    bounds = {name: list(map(int, family.buckets)) for name, family in FAMILIES.items() if family.seed}
    assert bounds["claim_duration_seconds"] == [1, 5, 15, 60, 300, 900, 3600]
    assert bounds["task_completion_time_seconds"] == [10, 60, 300, 900, 3600, 7200]
    assert bounds["generations_per_task"] == [1, 2, 3, 5, 10, 20, 50]
    details = {
        "project": "p",
        "task": "t",
        "generation": 3,
        "agent": "a",
        "worked_ms": 60_000,
        "age_ms": 90_000,
    }
    text = metrics_text(counted([LoggedEvent(1, 0, "task.completed", details)]), [])
    for line in (
        'coditect_claim_duration_seconds_bucket{tenant="local",project="p",le="15"} 0',
        'coditect_claim_duration_seconds_bucket{tenant="local",project="p",le="60"} 1',
        'coditect_claim_duration_seconds_bucket{tenant="local",project="p",le="+Inf"} 1',
        'coditect_task_completion_time_seconds_sum{tenant="local",project="p"} 90',
        'coditect_generations_per_task_bucket{tenant="local",project="p",le="2"} 0',
        'coditect_generations_per_task_bucket{tenant="local",project="p",le="3"} 1',
        'coditect_generations_per_task_count{tenant="local",project="p"} 1',
    ):
        assert f"{line}\n" in text
    assert 'my_claim_duration_seconds_count{tenant="local",project="p"} 1\n' in metrics_text(
        counted([LoggedEvent(1, 0, "task.completed", details)]), [], "my"
    )


def test_labels_are_bounded() -> None:
    """However many projects there are, the state fits into a record."""
    names = [f"p{number}" for number in range(3 * LABELS_MAX)]
    counts = counted(
        [LoggedEvent(1, 0, "task.claimed", {"project": name, "task": "t", "generation": 1}) for name in names]
    )
    series = counts.series["generation_increments_total"]
    assert len(series) == LABELS_MAX + 1
    assert series[SEPARATOR.join(("local", OTHER))][0] == 2 * LABELS_MAX


@pytest.fixture
def harness() -> Iterator[StoreHarness]:
    with closing(open_store("memory:")) as database:
        yield StoreHarness(database)


def test_times_come_from_the_events(harness: StoreHarness) -> None:
    """A claim that was released and one that was completed: how long each lasted, and the whole task."""
    harness.call(ClaimTask("local", "p", "t", "ada", "ada-1", 600_000))
    harness.pass_seconds(20)
    harness.call(ReleaseClaim("local", "p", "t", "ada-1", 1, reason=ReleaseReason.VOLUNTARY))
    harness.pass_seconds(100)
    harness.call(ClaimTask("local", "p", "t", "bob", "bob-1", 600_000))
    harness.pass_seconds(50)
    harness.call(SubmitResult("local", "p", "t", "bob-1", 2, b"{}", ""))
    counts = counted(list(logged_events(harness.store.tail(0, 100))))
    where = SEPARATOR.join(("local", "p"))
    assert counts.series["claim_duration_seconds"][where][-2:] == [70.0, 2.0]
    assert counts.series["task_completion_time_seconds"][where][-2:] == [170.0, 1.0]
    assert counts.series["generations_per_task"][where][-2:] == [2.0, 1.0]
    busy = counts.series["coord_agent_busy_seconds_total"]
    assert {agent: numbers[0] for agent, numbers in busy.items()} == {"ada": 20.0, "bob": 50.0}
    assert (counts.tasks_per_hour(harness.now), counts.tasks_per_hour(harness.now + 3_600_000)) == (1, 0)


def test_every_outcome_of_the_documents_appears(harness: StoreHarness) -> None:
    """OBS-11, OBS-12, OBS-13, OBS-9: the literal results, from what the rules really write."""

    def claim(task: str, agent: str) -> None:
        harness.call(ClaimTask("local", "p", task, agent, f"{agent}-1", 60_000))

    def submit(task: str, agent: str, generation: int) -> None:
        harness.call(SubmitResult("local", "p", task, f"{agent}-1", generation, b"{}", ""))

    claim("t", "ada")
    claim("t", "bob")
    for agent in ("ada", "bob"):
        harness.call(RenewLease("local", "p", "t", f"{agent}-1", 1))
    submit("t", "bob", 1)
    submit("t", "ada", 1)
    claim("t", "bob")
    submit("never", "ada", 1)
    claim("u", "ada")
    harness.pass_seconds(61)
    claim("u", "bob")
    submit("u", "ada", 1)
    harness.call(ResetTask("local", "p", "u", "again"))
    counts = counted(list(logged_events(harness.store.tail(0, 100))))

    def results(name: str) -> dict[str, float]:
        return {key.split(SEPARATOR)[-1]: numbers[0] for key, numbers in counts.series[name].items()}

    assert results("claims_total") == {"granted": 3, "denied_active": 1, "denied_completed": 1}
    wanted = {"accepted": 1, "session_mismatch": 1, "no_claim": 1, "stale_generation": 1}
    assert results("results_total") == wanted
    assert results("lease_renewals_total") == {"renewed": 1, "failed": 1}
    assert results("coord_manual_interventions_total") == {"reset": 1}


def test_a_deadlock_has_its_recovery_time() -> None:
    """OBS-6: from the time the cycle arose to the commit that broke it; one that was only found has none."""
    about = {"cycle": ["a", "b"], "victim": "a", "since_ms": 1000}
    counts = counted(
        [
            LoggedEvent(1, 5000, "lock.deadlock", {**about, "resolved": True}),
            LoggedEvent(2, 9000, "lock.deadlock", about),
        ]
    )
    assert counts.series["coord_deadlocks_total"][""] == [2.0]
    assert counts.series["coord_deadlock_recovery_seconds"][""][-2:] == [4.0, 1.0]


def _follower() -> MetricsFollower:
    class Engine:
        tenant = "local"

    location = StoreLocation("memory:", "repository", None, "", 0, "/nowhere")
    return MetricsFollower(LogSource(Engine(), None, location, {}))  # type: ignore[arg-type]
