"""Metrics as Prometheus text (format 0.0.4), computed on demand.

Gauges come from the records, counters from the log since its beginning: nothing is counted while work is
done, so a scrape reads the log. Where it was trimmed or moved, counters begin anew, which Prometheus takes
for a restart. Labels that come from outside are escaped, and at most `LABELS_MAX` values of one are told
apart: the rest is one.
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from coord.core import keys
from coord.core.locks.locks import ended_by_time
from coord.core.locks.schema import Lock, LockRequest, WaitState
from coord.core.records import decode
from coord.core.sessions.liveness import liveness
from coord.core.sessions.schema import Liveness, Session
from coord.core.tasks.schema import Task, as_of
from coord.core.tasks.types import ClaimState, TaskStatus
from coord.host.processes import probe
from coord.sdk.client.connection import Connection
from coord.sdk.log_reader import LoggedEvent, first_offset, logged_events, pages
from coord.sdk.reports.activity import records
from coord.stores.contract import Record, Store

LABELS_MAX = 100
THE_REST = "other"
"""Stands for all that are not told apart; every resource has a colon, so none is called so."""

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
    """One metric: its samples by the values of its labels."""

    name: str
    kind: str
    about: str
    labels: Labels
    samples: dict[Labels, int]


def metrics(connection: Connection, *, now: int | None = None) -> str:
    """Return all metrics of a tenant as Prometheus reads them, as of a moment (in milliseconds)."""
    log = connection.log
    now = log.now() if now is None else now
    found = [
        *_of_sessions(log, now),
        *_of_locks(log, now),
        *_of_tasks(log, connection.tenant, now),
        *_of_events(log, connection.tenant),
    ]
    return "".join(line for metric in found for line in _lines(metric))


def _lines(metric: Metric) -> Iterator[str]:
    yield f"# HELP {metric.name} {metric.about}\n# TYPE {metric.name} {metric.kind}\n"
    for values, value in sorted(metric.samples.items()):
        pairs = zip(metric.labels, values, strict=True)
        labels = ",".join(f'{name}="{text.translate(_ESCAPES)}"' for name, text in pairs)
        yield f"{metric.name}{{{labels}}} {value}\n" if labels else f"{metric.name} {value}\n"


def _of_sessions(log: Store, now: int) -> Iterator[Metric]:
    live = 0
    for record in records(log, keys.SESSION_PREFIX):
        session = decode(record.value or b"", Session, record.key)
        evidence = None if session.process is None else probe(session.process)
        live += liveness(session, now, evidence) not in _SILENT
    yield _gauge("coord_sessions_live", "Sessions with a sign of life.", {(): live})


def _of_locks(log: Store, now: int) -> Iterator[Metric]:
    held: Counter[Labels] = Counter()
    for record in records(log, keys.LOCK_PREFIX):
        hold = decode(record.value or b"", Lock, record.key)
        held[(hold.resource,)] += ended_by_time(hold, now) is None
    yield _gauge("coord_locks_held", "Locks that are held.", _bounded(+held), "resource")
    waiting = sum(_stands(record, now) for record in records(log, keys.WAIT_PREFIX))
    bids = sum(_stands(record, now) for record in records(log, keys.DENIED_PREFIX))
    yield _gauge("coord_lock_waiters", "Requests that wait in line for locks.", {(): waiting})
    yield _gauge("coord_lock_bids", "Requests that were refused within the last minute.", {(): bids})


def _stands(record: Record, now: int) -> bool:
    """Whether a request still counts: its line says until when, unless somebody renews it."""
    request = decode(record.value or b"", LockRequest, record.key)
    return request.state is WaitState.WAITING and now < keys.due_ms(record.index_key)


def _of_tasks(log: Store, tenant: str, now: int) -> Iterator[Metric]:
    active: Counter[Labels] = Counter()
    pending: Counter[Labels] = Counter()
    completed: Counter[Labels] = Counter()
    for record in records(log, keys.TASK_PREFIX):
        task = as_of(decode(record.value or b"", Task, record.key), now)
        labels = (tenant, keys.parts(record.key)[1])
        active[labels] += task.claim is ClaimState.ACTIVE
        pending[labels] += task.state in (TaskStatus.PENDING, TaskStatus.READY, TaskStatus.BLOCKED)
        completed[labels] += task.state is TaskStatus.DONE
    where = ("tenant", "project")
    yield _gauge("coditect_active_claims", "Claims that are active.", _bounded(active), *where)
    yield _gauge("coditect_pending_tasks", "Tasks that nobody works on.", _bounded(pending), *where)
    yield _gauge("coditect_completed_tasks", "Tasks with an accepted result.", _bounded(completed), *where)


def _of_events(log: Store, tenant: str) -> Iterator[Metric]:
    """Count what the log tells. A denied claim leaves no trace there, a rejected result one a minute."""
    total: Counter[str] = Counter()
    tasks: dict[str, Counter[Labels]] = {name: Counter() for name in _TASK_COUNTERS}
    for page in pages(log, first_offset(log)):
        for happening in logged_events(page):
            total[happening.event] += 1
            if happening.event.startswith("task."):
                _count_task(tasks, happening, tenant)
    events: dict[Labels, int] = {(event,): count for event, count in total.items()}
    yield _counter("coord_events_total", "What the log tells.", events, "event")
    for event, name in _EVENTS.items():
        yield _counter(name, f"How often: {event}.", {(): total[event]})
    for name, (about, labels) in _TASK_COUNTERS.items():
        yield _counter(name, about, _bounded(tasks[name]), *labels)


_PROJECT = ("tenant", "project")
_RESULT = (*_PROJECT, "result")
_TASK_COUNTERS = {
    "coditect_claims_total": ("Claims that were granted.", _RESULT),
    "coditect_results_total": ("Results, by what became of them.", _RESULT),
    "coditect_lease_renewals_total": ("Leases that were renewed.", _RESULT),
    "coditect_lease_expirations_total": ("Leases that ran out.", _PROJECT),
    "coditect_generation_increments_total": ("Generations that began.", _PROJECT),
}


def _count_task(tasks: dict[str, Counter[Labels]], happening: LoggedEvent, tenant: str) -> None:
    details = happening.details
    where = (tenant, str(details.get("project", "")))
    match happening.event:
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


def _bounded(counts: Counter[Labels]) -> dict[Labels, int]:
    """Return the largest counts, and all others as one: not a series for every file there is.

    Labels are summed up where they vary: in the resource, or in the project.
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
