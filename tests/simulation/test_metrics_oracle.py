"""The oracle of metrics looks while others work, meets every outcome, and leaves a run as it is."""

import re

import pytest

from tests.linearizability.ledger import Violation
from tests.simulation.replay import run_lock_seed, run_plan_seed, run_seed
from tests.simulation.world import World
from tests.support.models.naive_metrics import NaiveMetrics

RICH = ((run_seed, (3, 7, 9)), (run_lock_seed, (1, 2, 9, 11, 12)), (run_plan_seed, (2, 3, 13)))
"""Seeds that together meet everything, as things stand."""
MUST_MEET = """
claims_total granted, claims_total denied_active, claims_total denied_completed, claims_total
denied_not_ready, claims_total denied_limit_active_sessions, results_total accepted, results_total
stale_generation, results_total session_mismatch, results_total no_claim, results_total lock_lost,
results_total task_already_completed, lease_renewals_total renewed, lease_renewals_total failed,
lease_expirations_total, generation_increments_total, claim_duration_seconds_sum,
task_completion_time_seconds_sum, generations_per_task_sum, locks_acquired_total, lock_denials_total,
lock_hold_seconds_sum, lock_wait_seconds_sum, locks_lost_total expired, locks_lost_total stolen,
locks_lost_total preempted, locks_lost_total deadlock, locks_lost_total owner_dead, locks_lost_total
parent_ended, locks_lost_total claim_lost, overwrites_prevented_total lock, deadlocks_total,
deadlock_recovery_seconds_count, messages_sent_total, messages_received_total, agent_seconds_total,
agent_busy_seconds_total, agent_utilisation, tasks_per_hour, active_claims, pending_tasks,
completed_tasks, manual_interventions_total steal, manual_interventions_total preempt,
manual_interventions_total reset, manual_interventions_total retry, manual_interventions_total skip,
manual_interventions_total supersede
"""


def test_every_outcome_is_compared() -> None:
    """Issue 17, Proof: a simulation proves nothing about numbers that are zero all the time."""
    missing, compared = {" ".join(what.split()) for what in MUST_MEET.split(",")}, 0
    for run, seeds in RICH:
        for seed in seeds:
            oracle = run(seed).metrics
            compared += oracle.compared - 1
            for entries in (oracle.log.entries, oracle.log.entries[: len(oracle.log.entries) // 2]):
                naive, now = NaiveMetrics(entries, oracle.tenant), entries[-1].at
                shown = {**naive.counted(), **naive.rates(now), **naive.tasks(now)}
                missing -= {_short(name) for name, value in shown.items() if value}
    assert not missing
    assert compared > len(RICH), "it compares in the middle of runs, too"


def test_a_wrong_number_fails_the_run() -> None:
    """The check itself: one event that is counted twice, or not at all, is noticed at the end."""
    for amount in (1, -1):
        world = World(3)
        conclude = world.metrics.conclude

        def spoilt() -> None:
            world.metrics.counted().counts.series["claims_total"].popitem()[1][0] += amount  # noqa: B023
            conclude()  # noqa: B023

        world.metrics.conclude = spoilt  # type: ignore[method-assign]
        with pytest.raises(Violation, match="the metrics at offset"):
            world.run()


def _short(sample: str) -> str:
    """Return the name of a metric without its prefix, and what it is about."""
    name, _, labels = sample.partition("{")
    about = re.search(r'(?:result|reason|kind|where)="([^"]*)"', labels)
    return f"{name.partition('_')[2]} {about[1] if about else ''}".strip()
