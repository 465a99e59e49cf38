"""Count the events of a log: a reducer whose state is numbers by metric and label values.

Each metric keeps at most `LABELS_MAX` combinations of labels; what comes later is counted as `other`, so that
a store with a million tasks or agents has a bounded number of series, and a state that fits into a record.
"""

from typing import Any

import msgspec

from coord.core.locks.schema import LOST, EndReason
from coord.core.locks.uses import HOOK
from coord.followers.metrics.families import FAMILIES
from coord.sdk.log_reader import LoggedEvent

LABELS_MAX = 100
OTHER = "other"
OPEN_MAX = 1000
"""How many open claims and sessions are remembered; the time of others is not counted."""
MINUTE_MS = 60_000
HOUR_MINUTES = 60
INTERVENTIONS = {
    "lock.preemption_asked": "preempt",
    "task.reset": "reset",
    "task.skipped": "skip",
    "task.superseded": "supersede",
    "agent.enabled": "enable",
    "question.answered": "answer",
}

Series = dict[str, list[float]]
"""The numbers of a metric by its label values, joined by `SEPARATOR`: a count, or buckets, sum and count."""
SEPARATOR = "\x1f"
_NO_SERIES: Series = {}


class Counts(msgspec.Struct):
    """The state: what was counted, and what is still open."""

    tenant: str = ""
    series: dict[str, Series] = {}
    claims: dict[str, tuple[str, int]] = {}
    """The agent and the begin of each open claim, by project and task."""
    sessions: dict[str, tuple[str, int]] = {}
    """The agent and the begin of each open session."""
    minutes: list[tuple[int, int]] = []
    """The minutes of the last hour in which tasks were completed, and how many; as of the newest of them."""

    def apply(self, logged: LoggedEvent) -> None:
        """Count one event."""
        self._add("coord_events_total", logged.event)
        details, at_ms = logged.details, logged.at_ms
        kind, _, what = logged.event.partition(".")
        if logged.event in INTERVENTIONS:
            self._add("coord_manual_interventions_total", INTERVENTIONS[logged.event])
        match kind:
            case "task":
                self._count_task(what, details, at_ms)
            case "lock":
                self._count_lock(what, details, at_ms)
            case "session":
                self._count_session(what, details, at_ms)
            case "message" if what in ("sent", "sent_to_group", "delivered"):
                received = what == "delivered"
                self._add("coord_messages_received_total" if received else "coord_messages_sent_total")
            case "git" if what in ("merge_refused", "commit_refused"):
                self._add("coord_overwrites_prevented_total", what.removesuffix("_refused"))
            case "file" if what == "restored":
                self._add("coord_overwrites_undone_total", amount=float(details["file_count"]))

    def _count_task(self, what: str, details: dict[str, Any], at_ms: int) -> None:
        project, task = str(details.get("project", "")), str(details.get("task", ""))
        where, key = f"{self.tenant}{SEPARATOR}{project}", f"{project}/{task}"
        match what:
            case "claimed":
                self._add("claims_total", f"{where}{SEPARATOR}granted")
                self._add("generation_increments_total", where)
                if len(self.claims) < OPEN_MAX:
                    self.claims[key] = (str(details.get("agent", "")), at_ms)
            case "renewed":
                self._add("lease_renewals_total", f"{where}{SEPARATOR}renewed")
            case "expired" | "released" | "superseded" | "completed":
                self._end_claim(what, where, key, details)
            case "result_rejected":
                self._add("results_total", f"{where}{SEPARATOR}{str(details['reason']).lower()}")
            case "refused" if details["operation"] == "claim":
                result = str(details["reason"]).lower().removesuffix("_claim")
                self._add("claims_total", f"{where}{SEPARATOR}{result}")
            case "refused" if details["operation"] == "renew":
                self._add("lease_renewals_total", f"{where}{SEPARATOR}failed")
            case "retried" if not details["retries"]:  # a person did it: the sweep counts retries
                self._add("coord_manual_interventions_total", "retry")
        if what == "completed":
            self._observe("task_completion_time_seconds", where, details.get("age_ms", 0) / 1000)
            self._observe("generations_per_task", where, float(details["generation"]))
            self._count_minute(at_ms // MINUTE_MS)

    def _count_minute(self, minute: int) -> None:
        last, count = self.minutes[-1] if self.minutes else (minute, 0)
        before = self.minutes[:-1] if last == minute else self.minutes
        kept = [each for each in before if each[0] > minute - 2 * HOUR_MINUTES]  # clocks may differ
        self.minutes = [*kept, (minute, count + 1 if last == minute else 1)]

    def _end_claim(self, what: str, where: str, key: str, details: dict[str, Any]) -> None:
        worked_s = details.get("worked_ms", 0) / 1000
        self.claims.pop(key, None)
        self._observe("claim_duration_seconds", where, worked_s)
        self._add("coord_agent_busy_seconds_total", str(details.get("agent", "")), worked_s)
        if what == "expired":
            self._add("lease_expirations_total", where)
        elif what == "completed":
            self._add("results_total", f"{where}{SEPARATOR}accepted")

    def _count_lock(self, what: str, details: dict[str, Any], at_ms: int) -> None:
        match what:
            case "acquired":
                self._add("coord_locks_acquired_total")
                if details.get("waited_ms"):
                    self._observe("coord_lock_wait_seconds", "", details["waited_ms"] / 1000)
            case "released":
                self._observe("coord_lock_hold_seconds", "", float(details["held_s"]))
                reason = str(details["end_reason"])
                if reason in LOST:
                    self._add("coord_locks_lost_total", reason)
                if reason == EndReason.STOLEN:
                    self._add("coord_manual_interventions_total", "steal")
            case "denied":
                self._add("coord_lock_denials_total")
                where = "hook" if details.get("use") == HOOK else "lock"
                self._add("coord_overwrites_prevented_total", where)
            case "deadlock":
                self._add("coord_deadlocks_total")
                if details.get("resolved"):
                    recovery_s = max(0, at_ms - details["since_ms"]) / 1000
                    self._observe("coord_deadlock_recovery_seconds", "", recovery_s)

    def _count_session(self, what: str, details: dict[str, Any], at_ms: int) -> None:
        session = str(details.get("session", ""))
        if what == "registered" and len(self.sessions) < OPEN_MAX:
            self.sessions[session] = (str(details.get("agent", "")), at_ms)
        elif what == "ended" and session in self.sessions:
            agent, since_ms = self.sessions.pop(session)
            self._add("coord_agent_seconds_total", agent, (at_ms - since_ms) / 1000)

    def _add(self, name: str, labels: str = "", amount: float = 1.0) -> None:
        numbers = self.series.get(name, _NO_SERIES).get(labels)
        (numbers or self._new_numbers(name, labels, 1))[0] += amount

    def _observe(self, name: str, labels: str, value: float) -> None:
        buckets = FAMILIES[name].buckets
        numbers = self.series.get(name, _NO_SERIES).get(labels)
        numbers = numbers or self._new_numbers(name, labels, len(buckets) + 2)
        for number, bound in enumerate(buckets):
            numbers[number] += value <= bound
        numbers[-2] += value
        numbers[-1] += 1

    def _new_numbers(self, name: str, labels: str, size: int) -> list[float]:
        """Return the numbers of labels that have none yet, or those of all others."""
        series = self.series.setdefault(name, {})
        if len(series) >= LABELS_MAX:
            given = labels.split(SEPARATOR)
            labels = SEPARATOR.join(each if each == self.tenant else OTHER for each in given)
        return series.setdefault(labels, [0.0] * size)

    def tasks_per_hour(self, now: int) -> int:
        """Return how many tasks were completed in the last hour."""
        first = now // MINUTE_MS - HOUR_MINUTES
        return sum(count for minute, count in self.minutes if minute > first)
