"""Metrics as Prometheus text (format 0.0.4), computed on demand.

Gauges come from queries, counters from the whole log: normal work counts nothing, so a scrape reads the log.
After a trim or a migration counters start at 0 again, which Prometheus takes for a restart. Label values are
escaped; beyond `LABELS_MAX` values of a label the rest is counted as one.
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from coord.core.locks.commands import ListLockRequests, ListLocks, LockInfo, LockRequestInfo
from coord.core.plans.commands import CountTasks, TaskCountPage
from coord.core.sessions.commands import ListSessions, SessionInfo
from coord.core.sessions.schema import Liveness
from coord.sdk.client.connection import Connection
from coord.sdk.log_reader import LoggedEvent, first_offset, logged_events, pages
from coord.stores.contract import Store

LABELS_MAX = 100
THE_REST = "other"
"""The label of all values beyond the limit; every resource has a colon, so none has this name."""

Labels = tuple[str, ...]

_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_EVENTS = {
    "message.sent": "coord_messages_sent_total",
    "message.delivered": "coord_messages_received_total",
    "lock.acquired": "coord_locks_acquired_total",
    "lock.denied": "coord_lock_denials_total",
    "lock.deadlock": "coord_deadlocks_total",
}
"""Counters of single events."""
_SILENT = (Liveness.STALE, Liveness.HUNG, Liveness.DEAD, Liveness.ENDED)


class Metric(NamedTuple):
    """A metric with its samples by label values."""

    name: str
    kind: str
    about: str
    labels: Labels
    samples: dict[Labels, int]


def metrics(connection: Connection) -> str:
    """Return all metrics of a tenant as Prometheus reads them."""
    found = [
        *_of_sessions(connection),
        *_of_locks(connection),
        *_of_tasks(connection),
        *_of_events(connection.log, connection.tenant),
    ]
    return "".join(line for metric in found for line in _lines(metric))


def _lines(metric: Metric) -> Iterator[str]:
    yield f"# HELP {metric.name} {metric.about}\n# TYPE {metric.name} {metric.kind}\n"
    for values, value in sorted(metric.samples.items()):
        pairs = zip(metric.labels, values, strict=True)
        labels = ",".join(f'{name}="{text.translate(_ESCAPES)}"' for name, text in pairs)
        yield f"{metric.name}{{{labels}}} {value}\n" if labels else f"{metric.name} {value}\n"


def _of_sessions(connection: Connection) -> Iterator[Metric]:
    sessions: list[SessionInfo] = connection.call(ListSessions(connection.caller, everyone=True))
    live = sum(session.liveness not in _SILENT for session in sessions)
    yield _gauge("coord_sessions_live", "Sessions with a sign of life.", {(): live})


def _of_locks(connection: Connection) -> Iterator[Metric]:
    locks: list[LockInfo] = connection.call(ListLocks(connection.caller))
    held: Counter[Labels] = Counter((lock.resource,) for lock in locks)
    yield _gauge("coord_locks_held", "Locks that are held.", _bounded(held), "resource")
    requests: list[LockRequestInfo] = connection.call(ListLockRequests())
    denied = sum(request.denied for request in requests)
    waiting = len(requests) - denied
    yield _gauge("coord_lock_waiters", "Requests in the wait queue for locks.", {(): waiting})
    yield _gauge("coord_lock_denied_requests", "Lock requests denied in the last minute.", {(): denied})


def _of_tasks(connection: Connection) -> Iterator[Metric]:
    active: Counter[Labels] = Counter()
    pending: Counter[Labels] = Counter()
    completed: Counter[Labels] = Counter()
    after, more = "", True
    while more:
        page: TaskCountPage = connection.call(CountTasks(after))
        for project, counts in page.counts.items():
            labels = (connection.tenant, project)
            active[labels] += counts.active
            pending[labels] += counts.pending
            completed[labels] += counts.completed
        after, more = page.after, bool(page.after)
    where = ("tenant", "project")
    yield _gauge("coditect_active_claims", "Claims that are active.", _bounded(active), *where)
    yield _gauge("coditect_pending_tasks", "Tasks that nobody works on.", _bounded(pending), *where)
    yield _gauge("coditect_completed_tasks", "Tasks with an accepted result.", _bounded(completed), *where)


def _of_events(log: Store, tenant: str) -> Iterator[Metric]:
    """Count the events of the log. A refusal that is repeated within a minute counts once."""
    total: Counter[str] = Counter()
    tasks: dict[str, Counter[Labels]] = {name: Counter() for name in _TASK_COUNTERS}
    for page in pages(log, first_offset(log)):
        for logged in logged_events(page):
            total[logged.event] += 1
            if logged.event.startswith("task."):
                _count_task(tasks, logged, tenant)
    events: dict[Labels, int] = {(event,): count for event, count in total.items()}
    yield _counter("coord_events_total", "Events in the log.", events, "event")
    for event, name in _EVENTS.items():
        yield _counter(name, f"How often: {event}.", {(): total[event]})
    for name, (about, labels) in _TASK_COUNTERS.items():
        yield _counter(name, about, _bounded(tasks[name]), *labels)


_PROJECT = ("tenant", "project")
_RESULT = (*_PROJECT, "result")
_TASK_COUNTERS = {
    "coditect_claims_total": ("Claims by outcome.", _RESULT),
    "coditect_results_total": ("Results by outcome.", _RESULT),
    "coditect_lease_renewals_total": ("Renewals of leases by outcome.", _RESULT),
    "coditect_lease_expirations_total": ("Leases that expired.", _PROJECT),
    "coditect_generation_increments_total": ("Generations that were started.", _PROJECT),
}


def _count_task(tasks: dict[str, Counter[Labels]], logged: LoggedEvent, tenant: str) -> None:
    details = logged.details
    where = (tenant, str(details.get("project", "")))
    match logged.event:
        case "task.claimed":
            tasks["coditect_claims_total"][(*where, "granted")] += 1
            tasks["coditect_generation_increments_total"][where] += 1
        case "task.renewed":
            tasks["coditect_lease_renewals_total"][(*where, "renewed")] += 1
        case "task.expired":
            tasks["coditect_lease_expirations_total"][where] += 1
        case "task.completed":
            tasks["coditect_results_total"][(*where, "accepted")] += 1
        case "task.result_rejected":
            tasks["coditect_results_total"][(*where, str(details["reason"]).lower())] += 1
        case "task.refused" if details["operation"] == "claim":
            result = str(details["reason"]).lower().removesuffix("_claim")
            tasks["coditect_claims_total"][(*where, result)] += 1
        case "task.refused" if details["operation"] == "renew":
            tasks["coditect_lease_renewals_total"][(*where, "failed")] += 1


def _bounded(counts: Counter[Labels]) -> dict[Labels, int]:
    """Return the largest counts and the sum of all others, so that not every file becomes a series.

    The sum replaces the label that varies: the resource, or the project.
    """
    kept = dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:LABELS_MAX])
    for labels, count in counts.items():
        if labels not in kept:
            rest = (THE_REST,) if len(labels) == 1 else (labels[0], THE_REST, *labels[2:])
            kept[rest] = kept.get(rest, 0) + count
    return kept


def _gauge(name: str, about: str, samples: dict[Labels, int], *labels: str) -> Metric:
    return Metric(name, "gauge", about, labels, samples)


def _counter(name: str, about: str, samples: dict[Labels, int], *labels: str) -> Metric:
    return Metric(name, "counter", about, labels, samples)
