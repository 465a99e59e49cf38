"""What coord records about an agent: why it gets no task, and its track record.

An agent gets no task if it is disabled, has reached a rate limit, or failed several times in a row. A success
resets the failures; every `FORGIVE_MS` forgives one, so that a failing agent still gets a task now and then.

Track records are kept per session, so that sessions with the same agent name do not conflict on one record;
queries add them up. Above `TRACK_RECORD_TASKS_MAX` tasks of a type its numbers are halved, so that recent
tasks count more.
"""

import msgspec

from coord.core import keys
from coord.core.limits import DAY_MS
from coord.core.tasks.schema import (
    NO_RESTRICTIONS,
    AgentLimited,
    AgentRecord,
    AgentTrackRecords,
    Spec,
    Task,
    TrackRecord,
)
from coord.core.transaction import Transaction

FAILURES_TO_BLOCK = 3
"""An agent with this number of failures in a row gets no task."""
FORGIVE_MS = 60_000
FAILURES_COUNTED_MAX = 10
"""Further failures are not counted, which limits how long an agent stays blocked."""
EFFICIENCY_MIN = 0.01
"""An agent with a lower efficiency at a type of task cannot do it."""
UNAVAILABLE_STATES = frozenset({"stopping", "failed", "crashed", "terminated"})
"""An agent that reports one of these states gets no task."""
TRACK_RECORD_TASKS_MAX = 50
TYPES_MAX = 20
OTHER_TYPES = ""
KEPT_MS = 30 * DAY_MS
"""How long the records of an inactive agent are kept."""


def agent_of(task: Task) -> str:
    """Return the agent that a claim counts for; a session without an agent name counts as one."""
    return task.agent or task.session


def recent_failures(record: AgentRecord, now: int) -> int:
    """Return the number of failures in a row that are not forgiven yet."""
    return max(0, record.failures - max(0, now - record.failed_ms) // FORGIVE_MS)


def blocked_reason(record: AgentRecord, now: int) -> tuple[str, int]:
    """Return why an agent gets no task, and until when (0: until it is enabled); empty if it may."""
    if not record.enabled:
        return f"disabled{f': {record.because}' if record.because else ''}", 0
    if record.limited_until_ms > now:
        return f"rate limited for {(record.limited_until_ms - now + 999) // 1000} s", record.limited_until_ms
    failures = recent_failures(record, now)
    if failures >= FAILURES_TO_BLOCK:
        until_ms = record.failed_ms + (record.failures - FAILURES_TO_BLOCK + 1) * FORGIVE_MS
        return f"it failed {failures} times in a row", until_ms
    return "", 0


def limit_agent(tx: Transaction, project: str, agent: str, until_ms: int, note: str, now: int) -> None:
    """Block an agent until its rate limit ends; a later end that is on record stays."""
    record = tx.get(keys.agent(project, agent), AgentRecord) or NO_RESTRICTIONS
    if until_ms > record.limited_until_ms:
        limited = msgspec.structs.replace(record, limited_until_ms=until_ms)
        put_agent(tx, project, agent, limited, now)
        tx.emit(AgentLimited(project, agent, until_ms, note))


def count_success(tx: Transaction, project: str, task_id: str, task: Task, now: int) -> None:
    """Count a task that an agent completed, and reset its failures."""
    agent = agent_of(task)
    record = tx.get(keys.agent(project, agent), AgentRecord)
    if record is not None and record.failures:
        put_agent(tx, project, agent, msgspec.structs.replace(record, failures=0, failed_ms=0), now)
    spec = tx.get(keys.spec(project, task_id), Spec) or Spec()
    took_s = max(0, now - task.claimed_ms) / 1000
    # A task without an estimate says nothing about the pace: it took as long as expected.
    _count(tx, project, task, spec.type, TrackRecord(1, 0, took_s, spec.estimate_s or took_s), now)


def count_failure(tx: Transaction, project: str, task: Task, type_: str, now: int) -> None:
    """Count a task that an agent failed at, or lost its lease on."""
    agent = agent_of(task)
    record = tx.get(keys.agent(project, agent), AgentRecord) or NO_RESTRICTIONS
    failures = min(recent_failures(record, now) + 1, FAILURES_COUNTED_MAX)
    put_agent(tx, project, agent, msgspec.structs.replace(record, failures=failures, failed_ms=now), now)
    _count(tx, project, task, type_, TrackRecord(failed=1), now)


def put_agent(tx: Transaction, project: str, agent: str, record: AgentRecord, now: int) -> None:
    """Write the record of an agent; it is kept at least as long as it blocks the agent."""
    index_key = keys.due(max(now, record.limited_until_ms) + KEPT_MS) if record.enabled else ""
    tx.put(keys.agent(project, agent), record, index_key)


def _count(tx: Transaction, project: str, task: Task, type_: str, more: TrackRecord, now: int) -> None:
    key = keys.track_record(project, agent_of(task), task.session)
    records = tx.get(key, AgentTrackRecords) or AgentTrackRecords()
    name = type_ if type_ in records.types or len(records.types) < TYPES_MAX else OTHER_TYPES
    total = add_records(records.types.get(name, TrackRecord()), more)
    if total.done + total.failed > TRACK_RECORD_TASKS_MAX:
        total = TrackRecord(total.done // 2, total.failed // 2, total.took_s / 2, total.expected_s / 2)
    # Rounded to days, so that the index key stays the same while the agent works.
    index_key = keys.due((now // DAY_MS + 1) * DAY_MS + KEPT_MS)
    tx.put(key, msgspec.structs.replace(records, types={**records.types, name: total}), index_key)


def add_records(one: TrackRecord, other: TrackRecord) -> TrackRecord:
    """Return the sum of two track records."""
    return TrackRecord(
        one.done + other.done,
        one.failed + other.failed,
        round(one.took_s + other.took_s, 3),
        round(one.expected_s + other.expected_s, 3),
    )
