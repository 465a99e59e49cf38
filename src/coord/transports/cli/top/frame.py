"""Make lines of a snapshot: a title, and a table each of sessions, locks, tasks and messages."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from coord.core.messages.quoting import visible
from coord.core.sessions.commands import SessionInfo
from coord.transports import arguments
from coord.transports.cli.handlers.sessions import in_words, task_of
from coord.transports.cli.output import count, fields_of, timestamp
from coord.transports.cli.table import Row, fitted, table
from coord.transports.cli.top.snapshot import Snapshot

SORTS = ("name", "state", "time")
TASKS_MAX = 30
"""The most tasks in a frame; the title of the section counts all of them."""


def frame(taken: Snapshot, room: int, *, sort: str, now: float, colours: bool) -> list[str]:
    """Return the lines of a snapshot as of `now`, each at most `room` cells wide."""
    lines = [fitted(visible(_title(taken)), room).rstrip()]
    for title, rows, columns in _sections(taken, sort, now - taken.read_at):
        lines += ["", title if rows else f"{title}: none"]
        if rows:
            lines += table(rows, columns, room, colours=colours).splitlines()
    return lines


def _title(taken: Snapshot) -> str:
    live = sum(session.liveness == "live" for session in taken.sessions)
    parts = [f"{live} live of {count(len(taken.sessions), 'session')}", count(len(taken.locks), "lock")]
    return " · ".join([f"coord top: {taken.project}", *parts, count(len(taken.messages), "unread message")])


def _sections(taken: Snapshot, sort: str, age_s: float) -> Iterator[tuple[str, list[Row], tuple[str, ...]]]:
    now_ms = taken.now_ms + round(age_s * 1000)
    sessions = [_session_row(each, now_ms, own=each.session_id == taken.own) for each in taken.sessions]
    columns = ("session", "state", "liveness", "task", "file", "last_heartbeat_at")
    yield "SESSIONS", _sorted(sessions, sort, "session", "last_heartbeat_at"), columns
    locks = [_lock_row(fields_of(lock), age_s) for lock in taken.locks]
    yield (
        "LOCKS",
        _sorted(locks, sort, "resource", "expires_in_s"),
        ("resource", "holder", "expires_in", "waiters", "reason"),
    )
    tasks = [fields_of(task) for task in taken.tasks]
    title = f"TASKS ({len(tasks)})" if len(tasks) > TASKS_MAX else "TASKS"
    shown = _sorted(tasks, sort, "task_id", "task_id")[:TASKS_MAX]
    yield title, shown, ("task_id", "state", "agent", "priority", "description")
    messages: list[Row] = [
        {
            "from": each.from_session_id,
            "sent_at": timestamp(each.sent_ms),
            "kind": each.kind,
            "subject": each.subject,
        }
        for each in taken.messages
    ]
    yield "UNREAD MESSAGES", messages, ("from", "sent_at", "kind", "subject")


def _session_row(session: SessionInfo, now_ms: int, *, own: bool) -> dict[str, Any]:
    return {
        "session": f"{session.agent or session.session_id}{' (you)' if own else ''}",
        "state": in_words(session, now_ms),
        "liveness": session.liveness,
        "task": task_of(session),
        "file": session.current_file,
        "last_heartbeat_at": timestamp(session.last_heartbeat_ms),
    }


def _lock_row(lock: dict[str, Any], age_s: float) -> dict[str, Any]:
    left_s = lock["expires_in_s"] - age_s
    return {
        "resource": lock["resource"],
        "holder": lock["agent"] or lock["owner"],
        "expires_in": arguments.span(left_s) if left_s > 0 else "expired",
        "expires_in_s": left_s,
        "waiters": lock["waiters"],
        "reason": lock["reason"],
    }


def _sorted(rows: Sequence[Row], sort: str, name: str, at: str) -> list[Row]:
    keys: dict[str, Callable[[Row], Any]] = {
        "name": lambda row: str(row[name]),
        "state": lambda row: (str(row.get("state", "")), str(row[name])),
        "time": lambda row: row[at] or "",
    }
    return sorted(rows, key=keys[sort])
