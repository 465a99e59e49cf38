"""The tables of the page as the records say them: the same rows as the log makes (`rules.py`).

The log forgets its beginning; the records never do. What only the log knows (`ESTIMATED`) begins empty.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from coord.core import keys
from coord.core.alerts.schema import Alert
from coord.core.locks.schema import Lock, LockRequest, WaitState
from coord.core.page.rules import JOINTS, TABLES
from coord.core.page.state import Fields, Table
from coord.core.questions.schema import Question, QuestionState
from coord.core.records import decode
from coord.core.sessions.schema import Session
from coord.core.settings import HeldWork
from coord.core.tasks.schema import ACTIVE, FILES_LOGGED, TITLE_CHARS, AgentRecord, Spec, Task
from coord.core.tasks.types import TaskStatus
from coord.core.usage.schema import UsageDay

ESTIMATED = {
    "sessions": ("seen_ms", "file", "hung_s", "cost", "input", "output", "context_percent"),
    "locks": ("reason", "asked_reason"),
    "waits": ("holder",),
    "tasks": ("reason", "ended_ms", "assignee", "assigned_until_ms", "retry_ms"),
    "agents": ("reason",),
    "alerts": ("severity", "text"),
}
"""Fields that the records do not hold as the log has them."""
_OPEN = (TaskStatus.PENDING, TaskStatus.READY, TaskStatus.BLOCKED)


class Found(Protocol):
    """A record of a store."""

    @property
    def key(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def value(self) -> bytes | None: ...


def tables_of(records: Iterable[Found]) -> dict[str, Table]:
    """Return the tables that these records make; records of other kinds are passed over."""
    tables: dict[str, Table] = {name: {} for name in TABLES}
    usage: list[UsageDay] = []
    for record in records:
        kind = record.key.partition("/")[0]
        if record.value is None:
            continue
        if kind == "usage":
            usage.append(decode(record.value, UsageDay, record.key))
        elif kind in _READERS:
            for table, parts, fields in _READERS[kind](record, record.value):
                row = tables[table].setdefault(JOINTS.get(table, "\n").join(parts), {})
                row.update((name, value) for name, value in fields.items() if value)
    for day in usage:
        _add_usage(tables["sessions"].get(day.session, {}), day)
    return tables


def _add_usage(session: Fields, day: UsageDay) -> None:
    """Add what a session used on a day."""
    for row in day.rows:
        for name in ("cost", "estimated", "input", "output"):
            if more := getattr(row.amounts, name):
                session[name] = session.get(name, 0) + more


_Row = tuple[str, Iterable[str], Fields]


def _session(record: Found, value: bytes) -> Iterator[_Row]:
    found = decode(value, Session, record.key)
    if found.ended_ms:
        return
    fields = {
        "session": found.session_id,
        "agent": found.agent,
        "role": found.role,
        "tool": found.bin,
        "model": found.model,
        "user": found.user,
        "project": found.project,
        "parent": found.parent,
        "person": found.person,
        "state": found.state,
        "started_ms": found.started_ms,
        "seen_ms": found.beat_ms,
        "file": found.current_file,
    }
    yield "sessions", (found.session_id,), fields


def _lock(record: Found, value: bytes) -> Iterator[_Row]:
    found = decode(value, Lock, record.key)
    fields: dict[str, Any] = {
        "session": found.owner,
        "resource": found.resource,
        "agent": found.agent,
        "mode": found.mode.value,
        "fence": found.fence or record.version,
        "since_ms": found.acquired_ms,
        "expires_ms": found.expires_ms,
        "reason": found.reason,
    }
    if found.preempted_by:
        fields |= {"asked_by": found.preempted_by, "asked_until_ms": found.preempt_ms}
    yield "locks", (found.owner, found.resource), fields


def _wait(record: Found, value: bytes) -> Iterator[_Row]:
    found = decode(value, LockRequest, record.key)
    if found.state is not WaitState.WAITING or found.denied:
        return
    name = keys.wait_id(record.key)
    fields = {
        "id": name,
        "session": found.session,
        "agent": found.agent,
        "resources": list(found.resources),
        "priority": found.priority,
        "since_ms": found.since_ms,
    }
    yield "waits", (name,), fields


def _spec(record: Found, value: bytes) -> Iterator[_Row]:
    found = decode(value, Spec, record.key)
    _, project, task = keys.parts(record.key)
    fields = {
        "project": project,
        "task": task,
        "title": found.description[:TITLE_CHARS],
        "type": found.type,
        "track": found.track,
        "role": found.role,
        "needs": list(found.needs),
        "priority": found.priority,
        "files": list(found.files[:FILES_LOGGED]),
        "depends_on": list(found.depends_on),
        "deadline_ms": found.deadline_ms,
        "estimate_s": found.estimate_s,
        "added_ms": found.created_ms,
        "parts": found.parts,
        "assignee": found.assignee,
        "assigned_until_ms": found.assigned_until_ms,
    }
    yield "tasks", (project, task), fields


def _task(record: Found, value: bytes) -> Iterator[_Row]:
    found = decode(value, Task, record.key)
    _, project, task = keys.parts(record.key)
    fields: dict[str, Any] = {
        "project": project,
        "task": task,
        "generation": found.generation,
        "state": "" if found.state in _OPEN else found.state.value.lower(),
        "ended_ms": found.ended_ms,
        "retries": found.retries,
        "retry_ms": found.retry_ms,
        "reason": found.note,
        "work_product": found.work_product,
    }
    if found.claim is ACTIVE:
        fields |= {"session": found.session, "agent": found.agent}
        fields |= {"claimed_ms": found.claimed_ms, "expires_ms": found.expires_ms}
    yield "tasks", (project, task), fields


def _question(record: Found, value: bytes) -> Iterator[_Row]:
    found = decode(value, Question, record.key)
    if found.state is not QuestionState.OPEN:
        return
    fields = {
        "id": found.id,
        "session": found.session,
        "agent": found.agent,
        "project": found.project,
        "kind": found.kind.value,
        "text": found.text,
        "options": list(found.options),
        "asked_ms": found.asked_ms,
        "expires_ms": found.expires_ms,
    }
    yield "questions", (found.id,), fields


def _alert(record: Found, value: bytes) -> Iterator[_Row]:
    found = decode(value, Alert, record.key)
    if found.closed_ms:
        return
    fields = {
        "id": found.id,
        "rule": found.rule,
        "severity": found.severity.value,
        "subject": found.subject,
        "text": found.text,
        "session": found.session,
        "agent": found.agent,
        "project": found.project,
        "since_ms": found.raised_ms,
    }
    yield "alerts", (found.id,), fields


def _agent(record: Found, value: bytes) -> Iterator[_Row]:
    found = decode(value, AgentRecord, record.key)
    if found.enabled and not found.limited_until_ms:
        return
    _, project, agent = keys.parts(record.key)
    fields = {
        "project": project,
        "agent": agent,
        "disabled": not found.enabled,
        "reason": found.because,
        "limited_until_ms": found.limited_until_ms,
    }
    yield "agents", (project, agent), fields


def _held(record: Found, value: bytes) -> Iterator[_Row]:
    found = decode(value, HeldWork, record.key)
    fields = {"mode": found.mode, "reason": found.reason, "by": found.by, "since_ms": found.since_ms}
    yield "held", (), fields


_READERS: dict[str, Callable[[Found, bytes], Iterator[_Row]]] = {
    "session": _session,
    "lock": _lock,
    "wait": _wait,
    "spec": _spec,
    "task": _task,
    "question": _question,
    "alert": _alert,
    "agent": _agent,
    "work_mode": _held,
}
PREFIXES = (*(f"{kind}/" for kind in _READERS), keys.USAGE_PREFIX)
