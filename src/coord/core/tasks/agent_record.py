"""Agents: what stands against giving one work, and how it did with tasks so far.

An agent that has reached a rate limit, was disabled, or failed several times in a row gets nothing from the
queue. A success ends the row of failures, and time forgives one every `FORGIVE_MS`; so one that fails at
everything still gets a task now and then, and is back as soon as it can do one.

How an agent did is kept per session, so that sessions which share a name do not meet on one record; whoever
asks adds them up. After `TRACK_RECORD_TASKS_MAX` tasks of a type all its numbers are halved: what was long ago fades.
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
"""So many failures in a row, and an agent gets nothing."""
FORGIVE_MS = 60_000
FAILURES_COUNTED_MAX = 10
"""More are not counted: the longest pause is `FORGIVE_MS` for each above the last that is borne."""
EFFICIENCY_MIN = 0.01
"""Who is slower than this at a type of task cannot do it."""
TRACK_RECORD_TASKS_MAX = 50
TYPES_MAX = 20
OTHER_TYPES = ""
KEPT_MS = 30 * DAY_MS
"""How long an agent of which nothing more is heard is remembered."""


def agent_of(task: Task) -> str:
    """Return the agent that a claim counts for: a session without a name is an agent of its own."""
    return task.agent or task.session


def recent_failures(record: AgentRecord, now: int) -> int:
    """Return how many failures in a row still count."""
    return max(0, record.failures - max(0, now - record.failed_ms) // FORGIVE_MS)


def blocked_reason(record: AgentRecord, now: int) -> tuple[str, int]:
    """Return why an agent gets nothing now, and until when (0: until somebody says so); empty if it may."""
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
    """Give an agent nothing until its rate limit is over; an earlier end does not shorten a later one."""
    record = tx.get(keys.agent(project, agent), AgentRecord) or NO_RESTRICTIONS
    if until_ms > record.limited_until_ms:
        limited = msgspec.structs.replace(record, limited_until_ms=until_ms)
        put_agent(tx, project, agent, limited, now)
        tx.emit(AgentLimited(project, agent, until_ms, note))


def count_success(tx: Transaction, project: str, task_id: str, task: Task, now: int) -> None:
    """Write down that an agent did a task: its row of failures ends."""
    agent = agent_of(task)
    record = tx.get(keys.agent(project, agent), AgentRecord)
    if record is not None and record.failures:
        put_agent(tx, project, agent, msgspec.structs.replace(record, failures=0, failed_ms=0), now)
    spec = tx.get(keys.spec(project, task_id), Spec) or Spec()
    took_s = max(0, now - task.claimed_ms) / 1000
    # Without an estimate it took as long as was expected: no news about the pace.
    _count(tx, project, task, spec.type, TrackRecord(1, 0, took_s, spec.estimate_s or took_s), now)


def count_failure(tx: Transaction, project: str, task: Task, type_: str, now: int) -> None:
    """Write down that an agent failed at a task, or was lost with it."""
    agent = agent_of(task)
    record = tx.get(keys.agent(project, agent), AgentRecord) or NO_RESTRICTIONS
    failures = min(recent_failures(record, now) + 1, FAILURES_COUNTED_MAX)
    put_agent(tx, project, agent, msgspec.structs.replace(record, failures=failures, failed_ms=now), now)
    _count(tx, project, task, type_, TrackRecord(failed=1), now)


def put_agent(tx: Transaction, project: str, agent: str, record: AgentRecord, now: int) -> None:
    """Write what stands against an agent; nothing is forgotten before it is over."""
    index_key = keys.due(max(now, record.limited_until_ms) + KEPT_MS) if record.enabled else ""
    tx.put(keys.agent(project, agent), record, index_key)


def _count(tx: Transaction, project: str, task: Task, type_: str, more: TrackRecord, now: int) -> None:
    key = keys.track_record(project, agent_of(task), task.session)
    past = tx.get(key, AgentTrackRecords) or AgentTrackRecords()
    name = type_ if type_ in past.types or len(past.types) < TYPES_MAX else OTHER_TYPES
    sum_ = add_records(past.types.get(name, TrackRecord()), more)
    if sum_.done + sum_.failed > TRACK_RECORD_TASKS_MAX:
        sum_ = TrackRecord(sum_.done // 2, sum_.failed // 2, sum_.took_s / 2, sum_.expected_s / 2)
    # To the day, so that the record keeps its place in line while its agent works.
    index_key = keys.due((now // DAY_MS + 1) * DAY_MS + KEPT_MS)
    tx.put(key, msgspec.structs.replace(past, types={**past.types, name: sum_}), index_key)


def add_records(one: TrackRecord, other: TrackRecord) -> TrackRecord:
    """Return what two pasts come to."""
    return TrackRecord(
        one.done + other.done,
        one.failed + other.failed,
        round(one.took_s + other.took_s, 3),
        round(one.expected_s + other.expected_s, 3),
    )
