"""What is now: live sessions, held locks, open tasks, and the rates that follow from the counts."""

from collections import Counter
from collections.abc import Iterator

from coord.core.identity import Caller
from coord.core.locks.commands import ListLockRequests, ListLocks, LockInfo, LockRequestInfo
from coord.core.plans.commands import CountTasks, TaskCountPage
from coord.core.sessions.commands import ListSessions, SessionInfo
from coord.core.sessions.schema import Liveness
from coord.followers.direct import caught_up
from coord.followers.follower import LogSource
from coord.followers.metrics.counts import LABELS_MAX, OTHER, Counts
from coord.followers.metrics.families import PREFIX, PROJECT
from coord.followers.metrics.follower import MetricsFollower
from coord.followers.metrics.text import Gauge, metrics_text

Labels = tuple[str, ...]

_SILENT = (Liveness.STALE, Liveness.HUNG, Liveness.DEAD, Liveness.ENDED)


def metrics(source: LogSource, caller: Caller, prefix: str = PREFIX) -> str:
    """Return all metrics of a tenant as Prometheus reads them, counted to the end of its log."""
    follower = caught_up(source, MetricsFollower.name)
    assert isinstance(follower, MetricsFollower), "the registry names it"
    return metrics_of(source, caller, follower.counts, 0, prefix)


def metrics_of(source: LogSource, caller: Caller, counts: Counts, lag: int, prefix: str = PREFIX) -> str:
    """Return these counts and what is now; `lag` is how many entries are not counted yet."""
    return metrics_text(counts, gauges(source, caller, counts, lag), prefix)


def gauges(source: LogSource, caller: Caller, counts: Counts, lag: int = 0) -> list[Gauge]:
    """Return every gauge."""
    return [
        *_of_sessions(source, caller),
        *_of_locks(source, caller),
        *_of_tasks(source),
        *_of_counts(counts, source.now()),
        Gauge("coord_metrics_lag_entries", "Entries of the log that are not counted yet.", (), {(): lag}),
    ]


def _of_sessions(source: LogSource, caller: Caller) -> Iterator[Gauge]:
    sessions: list[SessionInfo] = source.engine.call(ListSessions(caller, everyone=True))
    live = sum(session.liveness not in _SILENT for session in sessions)
    yield Gauge("coord_sessions_live", "Sessions with a sign of life.", (), {(): live})


def _of_locks(source: LogSource, caller: Caller) -> Iterator[Gauge]:
    locks: list[LockInfo] = source.engine.call(ListLocks(caller))
    held: Counter[Labels] = Counter((lock.resource,) for lock in locks)
    yield Gauge("coord_locks_held", "Locks that are held.", ("resource",), _bounded(held))
    requests: list[LockRequestInfo] = source.engine.call(ListLockRequests())
    denied = sum(request.denied for request in requests)
    yield Gauge(
        "coord_lock_waiters", "Requests in the wait queue for locks.", (), {(): len(requests) - denied}
    )
    yield Gauge("coord_lock_denied_requests", "Lock requests denied in the last minute.", (), {(): denied})


def _of_tasks(source: LogSource) -> Iterator[Gauge]:
    active: Counter[Labels] = Counter()
    pending: Counter[Labels] = Counter()
    completed: Counter[Labels] = Counter()
    after, more = "", True
    while more:
        page: TaskCountPage = source.engine.call(CountTasks(after))
        for project, found in page.counts.items():
            labels = (source.tenant, project)
            active[labels] += found.active
            pending[labels] += found.pending
            completed[labels] += found.completed
        after, more = page.after, bool(page.after)
    yield Gauge("active_claims", "Claims that are active.", PROJECT, _bounded(active), seed=True)
    yield Gauge("pending_tasks", "Tasks that nobody works on.", PROJECT, _bounded(pending), seed=True)
    yield Gauge("completed_tasks", "Tasks with an accepted result.", PROJECT, _bounded(completed), seed=True)


def _of_counts(counts: Counts, now: int) -> Iterator[Gauge]:
    """Yield the rates that the first founding document asks for (OBS-5, OBS-7, OBS-8)."""
    undone = sum(each[0] for each in counts.series.get("coord_overwrites_undone_total", {}).values())
    acquired = sum(each[0] for each in counts.series.get("coord_locks_acquired_total", {}).values())
    rate = undone / acquired if acquired else 0.0
    yield Gauge("coord_collision_rate", "Overwrites that were undone, for each lock granted.", (), {(): rate})
    per_hour = counts.tasks_per_hour(now)
    yield Gauge("coord_tasks_per_hour", "Tasks completed in the last hour.", (), {(): per_hour})
    busy, there = _seconds(counts, now)
    used = {labels: min(1.0, busy[labels] / there[labels]) for labels in busy if there.get(labels)}
    yield Gauge(
        "coord_agent_utilisation", "The share of its time in which an agent had a claim.", ("agent",), used
    )


def _seconds(counts: Counts, now: int) -> tuple[dict[Labels, float], dict[Labels, float]]:
    """Return how long each agent was busy, and there; until now."""

    def until_now(name: str, open_ones: dict[str, tuple[str, int]]) -> dict[Labels, float]:
        found: dict[Labels, float] = {
            (agent,): numbers[0] for agent, numbers in counts.series.get(name, {}).items()
        }
        for agent, since_ms in open_ones.values():
            found[agent,] = found.get((agent,), 0.0) + max(0, now - since_ms) / 1000
        return found

    return (
        until_now("coord_agent_busy_seconds_total", counts.claims),
        until_now("coord_agent_seconds_total", counts.sessions),
    )


def _bounded(counts: "Counter[Labels]") -> dict[Labels, float]:
    """Return the largest counts and the sum of all others, so that not every file becomes a series.

    The sum replaces the label that varies: the resource, or the project.
    """
    kept: dict[Labels, float] = dict(
        sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:LABELS_MAX]
    )
    for labels, count in counts.items():
        if labels not in kept:
            rest = (OTHER,) if len(labels) == 1 else (labels[0], OTHER, *labels[2:])
            kept[rest] = kept.get(rest, 0) + count
    return kept
