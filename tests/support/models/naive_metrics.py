"""What `/metrics` has to show, counted naively: each metric by itself, from the whole log, with no state.

Times come from the entries and not from the fields that the rules add up: how long a claim lasted is the time
between the entry that granted it and the one that ended it.
"""

import heapq
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from coord.stores.contract import Entry

SERIES_MAX = 100
PROJECT = ("tenant", "project")
RESULT = (*PROJECT, "result")
SHORT = (1, 5, 15, 60, 300, 900, 3600)
LABELS: dict[str, tuple[str, ...]] = {
    "coditect_claims_total": RESULT,
    "coditect_results_total": RESULT,
    "coditect_lease_renewals_total": RESULT,
    "coditect_lease_expirations_total": PROJECT,
    "coditect_generation_increments_total": PROJECT,
    "coord_events_total": ("event",),
    "coord_messages_sent_total": (),
    "coord_messages_received_total": (),
    "coord_locks_acquired_total": (),
    "coord_lock_denials_total": (),
    "coord_locks_lost_total": ("reason",),
    "coord_overwrites_prevented_total": ("where",),
    "coord_overwrites_undone_total": (),
    "coord_deadlocks_total": (),
    "coord_manual_interventions_total": ("kind",),
    "coord_agent_seconds_total": ("agent",),
    "coord_agent_busy_seconds_total": ("agent",),
}
BUCKETS: dict[str, tuple[tuple[str, ...], tuple[float, ...]]] = {
    "coditect_claim_duration_seconds": (PROJECT, SHORT),
    "coditect_task_completion_time_seconds": (PROJECT, (10, 60, 300, 900, 3600, 7200)),
    "coditect_generations_per_task": (PROJECT, (1, 2, 3, 5, 10, 20, 50)),
    "coord_lock_hold_seconds": ((), SHORT),
    "coord_lock_wait_seconds": ((), (0.1, 1, 5, 15, 60, 300)),
    "coord_deadlock_recovery_seconds": ((), (1, 5, 15, 30, 60, 120, 300)),
}
RATES = ("coord_collision_rate", "coord_tasks_per_hour", "coord_agent_utilisation")
CLAIM_ENDS = ("task.completed", "task.released", "task.expired", "task.superseded")
NOT_LOST = ("released", "session_ended", "lapsed")
BY_HAND = {
    "lock.preemption_asked": "preempt",
    "task.reset": "reset",
    "task.skipped": "skip",
    "task.superseded": "supersede",
    "agent.enabled": "enable",
    "question.answered": "answer",
}
Observed = tuple[str, tuple[str, ...], float]
Samples = dict[str, float]


class Event(NamedTuple):
    """One event of the log, with the offset and the time of its entry."""

    offset: int
    at: int
    name: str
    about: dict[str, Any]

    @property
    def task(self) -> tuple[str, str]:
        return self.about["project"], self.about["task"]


class NaiveMetrics:
    """All events of a log, asked again for each metric."""

    def __init__(self, entries: Iterable[Entry], tenant: str) -> None:
        self.tenant = tenant
        self.events = [
            Event(entry.offset, entry.at, about["event"], about)
            for entry in entries
            for about in map(json.loads, entry.events)
        ]
        self.at = {event.offset: event.at for event in self.events}
        self._named: dict[str, list[tuple[int, Event]]] = defaultdict(list)
        for number, event in enumerate(self.events):
            self._named[event.name].append((number, event))

    def named(self, *names: str) -> list[Event]:
        """Return the events with these names, in the order of the log."""
        return [event for _, event in heapq.merge(*(self._named[name] for name in names))]

    def counted(self) -> Samples:
        """Return every sample of counters and histograms."""
        values: dict[str, list[tuple[tuple[str, ...], float]]] = defaultdict(list)
        for name, labels, value in self._observed():
            values[name].append((labels, value))
        found: Samples = {}
        for name, labels in LABELS.items():
            for key, amounts in self._series(labels, values[name]).items():
                found[sample(name, labels, key)] = sum(amounts)
        for name, (labels, bounds) in BUCKETS.items():
            for key, amounts in self._series(labels, values[name]).items():
                for bound in bounds:
                    below = sum(amount <= bound for amount in amounts)
                    found[sample(f"{name}_bucket", (*labels, "le"), (*key, f"{bound:g}"))] = below
                found[sample(f"{name}_bucket", (*labels, "le"), (*key, "+Inf"))] = len(amounts)
                found[sample(f"{name}_sum", labels, key)] = sum(amounts)
                found[sample(f"{name}_count", labels, key)] = len(amounts)
        return found

    def rates(self, now: int) -> Samples:
        """Return the gauges that follow from what was counted: OBS-5, OBS-7, OBS-8."""
        granted = len(self.named("lock.acquired"))
        undone = sum(event.about["file_count"] for event in self.named("file.restored"))
        last_hour = [
            event for event in self.named("task.completed") if event.at // 60_000 > now // 60_000 - 60
        ]
        found = {
            "coord_collision_rate": undone / granted if granted else 0,
            "coord_tasks_per_hour": len(last_hour),
        }
        busy, there = self._claimed_s(now), self._there_s(now)
        for agent in busy:
            if there.get(agent):
                found[sample("coord_agent_utilisation", ("agent",), (agent,))] = min(
                    1, busy[agent] / there[agent]
                )
        return found

    def tasks(self, now: int) -> Samples:
        """Return the gauges of tasks: OBS-16, OBS-17, OBS-18."""
        last: dict[tuple[str, str], Event] = {}
        until: dict[tuple[str, str], int] = {}
        for event in self.events:
            if event.name == "task.claimed":
                until[event.task] = event.at + event.about["lease_ms"]
            elif event.name == "task.renewed":
                until[event.task] = event.about["expires_ms"]
            ended = event.name in CLAIM_ENDS and event.name != "task.completed"
            if ended and last[event.task].name != "task.claimed":
                continue  # the same entry says first what became of the task
            if event.name in STATES and not event.about.get("changed"):
                last[event.task] = event
        states = {
            task: "pending" if STATES[event.name] == "active" and until[task] <= now else STATES[event.name]
            for task, event in last.items()
        }
        found: Samples = {}
        for (project, _), state in states.items():
            for name, shown in GAUGES.items():
                key = sample(name, PROJECT, (self.tenant, project))
                found[key] = found.get(key, 0) + (state == shown)
        return found

    def _series(
        self, labels: tuple[str, ...], values: list[tuple[tuple[str, ...], float]]
    ) -> dict[tuple[str, ...], list[float]]:
        """Return the values by their labels: the first hundred combinations, and all others together."""
        kept = set(list(dict.fromkeys(key for key, _ in values))[:SERIES_MAX])
        rest = tuple(self.tenant if label == "tenant" else "other" for label in labels)
        found: dict[tuple[str, ...], list[float]] = {} if labels else {(): []}
        for key, value in values:
            found.setdefault(key if key in kept else rest, []).append(value)
        return found

    def _observed(self) -> Iterator[Observed]:
        yield from (("coord_events_total", (event.name,), 1) for event in self.events)
        yield from self._of_claims()
        yield from self._of_results()
        yield from self._of_locks()
        yield from self._of_people()
        sent = self.named("message.sent", "message.sent_to_group")
        yield from (("coord_messages_sent_total", (), 1) for _ in sent)
        yield from (("coord_messages_received_total", (), 1) for _ in self.named("message.delivered"))
        for agent, seconds in self._ended_sessions():
            yield "coord_agent_seconds_total", (agent,), seconds

    def _where(self, event: Event) -> tuple[str, str]:
        return self.tenant, event.about["project"]

    def _of_claims(self) -> Iterator[Observed]:
        for event in self.named("task.claimed", "task.refused"):
            if event.name == "task.claimed":
                yield "coditect_claims_total", (*self._where(event), "granted"), 1
            elif event.about["operation"] == "claim":
                result = event.about["reason"].lower().replace("active_claim", "active")
                yield "coditect_claims_total", (*self._where(event), result), 1
        for event in self.named("task.claimed"):
            yield "coditect_generation_increments_total", self._where(event), 1
        for event in self.named("task.renewed", "task.refused"):
            if event.name == "task.renewed":
                yield "coditect_lease_renewals_total", (*self._where(event), "renewed"), 1
            elif event.about["operation"] == "renew":
                yield "coditect_lease_renewals_total", (*self._where(event), "failed"), 1
        for event, seconds in self._ended_claims():
            yield "coditect_claim_duration_seconds", self._where(event), seconds
            yield "coord_agent_busy_seconds_total", (event.about["agent"],), seconds
        for event in self.named("task.expired"):
            yield "coditect_lease_expirations_total", self._where(event), 1

    def _of_results(self) -> Iterator[Observed]:
        for event in self.named("task.completed", "task.result_rejected"):
            result = "accepted" if event.name == "task.completed" else event.about["reason"].lower()
            yield "coditect_results_total", (*self._where(event), result), 1
        begun: dict[tuple[str, str], int] = {}
        for event in self.named("task.added", "task.claimed", "task.reset", "task.completed"):
            if event.name in ("task.added", "task.claimed"):
                begun.setdefault(event.task, event.at)
            elif event.name == "task.reset":
                begun[event.task] = event.at
            else:
                seconds = (event.at - begun[event.task]) / 1000
                yield "coditect_task_completion_time_seconds", self._where(event), seconds
                yield "coditect_generations_per_task", self._where(event), event.about["generation"]

    def _of_locks(self) -> Iterator[Observed]:
        for event in self.named("lock.acquired"):
            yield "coord_locks_acquired_total", (), 1
            if event.about.get("waited_ms"):
                yield "coord_lock_wait_seconds", (), event.about["waited_ms"] / 1000
        for event in self.named("lock.released"):
            seconds = (event.about["until_ms"] - self.at[event.about["fence"]]) / 1000
            yield "coord_lock_hold_seconds", (), seconds
            if event.about["end_reason"] not in NOT_LOST:
                yield "coord_locks_lost_total", (event.about["end_reason"],), 1
        for event in self.named("lock.denied", "git.commit_refused", "git.merge_refused"):
            if event.name == "lock.denied":
                yield "coord_lock_denials_total", (), 1
            at_a_lock = "hook" if event.about.get("use") == "hook" else "lock"
            where = {"git.commit_refused": "commit", "git.merge_refused": "merge"}.get(event.name, at_a_lock)
            yield "coord_overwrites_prevented_total", (where,), 1
        for event in self.named("file.restored"):
            yield "coord_overwrites_undone_total", (), event.about["file_count"]
        for event in self.named("lock.deadlock"):
            yield "coord_deadlocks_total", (), 1
            if event.about.get("resolved"):
                yield "coord_deadlock_recovery_seconds", (), (event.at - event.about["since_ms"]) / 1000

    def _of_people(self) -> Iterator[Observed]:
        for event in self.events:
            stolen = event.name == "lock.released" and event.about["end_reason"] == "stolen"
            retried = event.name == "task.retried" and not event.about["retries"]
            kind = "steal" if stolen else "retry" if retried else BY_HAND.get(event.name)
            if kind:
                yield "coord_manual_interventions_total", (kind,), 1

    def _ended_claims(self) -> Iterator[tuple[Event, float]]:
        began = {(event.task, event.about["generation"]): event.at for event in self.named("task.claimed")}
        for event in self.named(*CLAIM_ENDS):
            until = event.about["expired_ms"] if event.name == "task.expired" else event.at
            yield event, (until - began[event.task, event.about["generation"]]) / 1000

    def _claimed_s(self, now: int) -> Counter[str]:
        """How long each agent had a claim, with those that have not ended."""
        found: Counter[str] = Counter()
        ended = set()
        for event, seconds in self._ended_claims():
            found[event.about["agent"]] += seconds  # type: ignore[assignment]
            ended.add((event.task, event.about["generation"]))
        for event in self.named("task.claimed"):
            if (event.task, event.about["generation"]) not in ended:
                found[event.about["agent"]] += max(0, now - event.at) / 1000  # type: ignore[assignment]
        return found

    def _ended_sessions(self) -> Iterator[tuple[str, float]]:
        began: dict[str, Event] = {}
        for event in self.named("session.registered", "session.ended"):
            if event.name == "session.registered":
                began[event.about["session"]] = event
            elif first := began.pop(event.about["session"], None):
                yield first.about["agent"], (event.at - first.at) / 1000

    def _there_s(self, now: int) -> Counter[str]:
        found: Counter[str] = Counter()
        for agent, seconds in self._ended_sessions():
            found[agent] += seconds  # type: ignore[assignment]
        open_ones: dict[str, Event] = {}
        for event in self.named("session.registered", "session.ended"):
            if event.name == "session.registered":
                open_ones[event.about["session"]] = event
            else:
                open_ones.pop(event.about["session"], None)
        for event in open_ones.values():
            found[event.about["agent"]] += max(0, now - event.at) / 1000  # type: ignore[assignment]
        return found


STATES = {
    "task.added": "pending",
    "task.claimed": "active",
    "task.completed": "completed",
    "task.released": "pending",
    "task.expired": "pending",
    "task.reset": "pending",
    "task.retried": "pending",
    "task.skipped": "over",
    "task.failed": "over",
    "task.errored": "over",
}
"""What the newest event of a task says about it."""
GAUGES = {
    "coditect_active_claims": "active",
    "coditect_pending_tasks": "pending",
    "coditect_completed_tasks": "completed",
}


def sample(name: str, labels: Iterable[str], values: Iterable[str]) -> str:
    """Return a metric with its labels as Prometheus writes it."""
    pairs = ",".join(f'{label}="{value}"' for label, value in zip(labels, values, strict=True))
    return f"{name}{{{pairs}}}" if pairs else name


def read_samples(text: str) -> Samples:
    """Return the samples of an answer of `/metrics`; none may be there twice."""
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    found = {name: float(value) for name, _, value in lines}
    assert len(found) == len(lines), "a sample is there twice"
    return found


def differences(shown: Samples, wanted: Samples, metrics: Iterable[str] = ()) -> list[str]:
    """Return where an answer differs from what was counted; `metrics` are those that are compared."""
    prefixes = tuple(metrics) or (*LABELS, *BUCKETS)
    mine = {name: value for name, value in shown.items() if name.startswith(prefixes)}
    return [
        f"{name}: {mine.get(name)} instead of {wanted.get(name)}"
        for name in sorted({*mine, *wanted})
        if name not in mine or name not in wanted or abs(mine[name] - wanted[name]) > TOLERANCE
    ]


TOLERANCE = 0.0015
"""Sums of seconds are shown with three digits."""
