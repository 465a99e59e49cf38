"""Every metric that is counted from the log: its name, its labels, its buckets, and what it says.

Names of the second founding document have the prefix `coditect`, which can be changed (CFL-24).
"""

from typing import NamedTuple

DURATIONS = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0)
COMPLETIONS = (10.0, 60.0, 300.0, 900.0, 3600.0, 7200.0)
GENERATIONS = (1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0)
RECOVERIES = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0)
WAITS = (0.1, 1.0, 5.0, 15.0, 60.0, 300.0)
PROJECT = ("tenant", "project")
RESULT = (*PROJECT, "result")
PREFIX = "coditect"


class Family(NamedTuple):
    """One metric; with buckets it is a histogram, otherwise a counter. `seed` ones have the prefix."""

    about: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    seed: bool = False

    @property
    def kind(self) -> str:
        """The type as Prometheus calls it."""
        return "histogram" if self.buckets else "counter"


FAMILIES = {
    "claims_total": Family("Claims by outcome.", RESULT, seed=True),
    "results_total": Family("Results by outcome.", RESULT, seed=True),
    "lease_renewals_total": Family("Renewals of leases by outcome.", RESULT, seed=True),
    "lease_expirations_total": Family("Leases that expired.", PROJECT, seed=True),
    "generation_increments_total": Family("Generations that were started.", PROJECT, seed=True),
    "claim_duration_seconds": Family("How long claims lasted.", PROJECT, DURATIONS, seed=True),
    "task_completion_time_seconds": Family(
        "From the time a task was added, or first claimed, to its result.", PROJECT, COMPLETIONS, seed=True
    ),
    "generations_per_task": Family("Claims until a task was done.", PROJECT, GENERATIONS, seed=True),
    "coord_events_total": Family("Events in the log.", ("event",)),
    "coord_messages_sent_total": Family("Messages that were sent."),
    "coord_messages_received_total": Family("Messages that were received."),
    "coord_locks_acquired_total": Family("Locks that were granted."),
    "coord_lock_denials_total": Family("Requests for locks that were denied; once a minute for the same."),
    "coord_lock_hold_seconds": Family("How long locks were held.", (), DURATIONS),
    "coord_lock_wait_seconds": Family("How long granted requests had waited.", (), WAITS),
    "coord_locks_lost_total": Family("Locks that ended without their holder's wish.", ("reason",)),
    "coord_overwrites_prevented_total": Family("Writes to files of others that were refused.", ("where",)),
    "coord_overwrites_undone_total": Family("Writes to files of others that were taken back."),
    "coord_deadlocks_total": Family("Deadlocks that were found."),
    "coord_deadlock_recovery_seconds": Family(
        "From the time a deadlock arose to its resolution.", (), RECOVERIES
    ),
    "coord_manual_interventions_total": Family("What people had to do by hand.", ("kind",)),
    "coord_agent_seconds_total": Family("How long agents had a session.", ("agent",)),
    "coord_agent_busy_seconds_total": Family("How long agents had a claim.", ("agent",)),
}
"""All counted metrics by name, in the order in which they are shown."""
