"""What all agents do, once: the rows of `coord dashboard`, with the columns of the first document."""

from collections.abc import Mapping, Sequence
from typing import Any

from coord.core.lifecycle.commands import Overview
from coord.core.locks.commands import LockInfo
from coord.core.plans.commands import QueueReply, TaskInfo
from coord.core.sessions.commands import SessionInfo
from coord.transports import arguments
from coord.transports.cli.handlers.sessions import task_of
from coord.transports.cli.output import count, form, has_colours, timestamp
from coord.transports.cli.table import Row, table

COLUMNS = ("Agent", "State", "Current Task", "QueueDepth", "LastHeartbeat")
TICKET_COLUMNS = ("file", "by", "expires_in", "waiters", "reason")
TASK_COLUMNS = ("task_id", "priority", "state", "assignee", "description")
NO_QUEUE = QueueReply([], [], [])
DAY = len("2026-11-18T")


def agent_rows(found: Overview, queue: QueueReply = NO_QUEUE) -> list[dict[str, Any]]:
    """Return a row for each session, as OBS-1 names its columns."""
    claimed = {(each.session_id, each.task_id): each for each in queue.working}
    kept: dict[str, int] = {}
    for task in queue.ready:
        if task.assignee:
            kept[task.assignee] = kept.get(task.assignee, 0) + 1
    today = (timestamp(found.now_ms) or "")[:DAY]
    return [
        {
            "Agent": session.agent or session.session_id,
            "State": session.state,
            "Current Task": current_task(session, claimed) or "(none)",
            "QueueDepth": queue_depth(session) + kept.pop(session.agent, 0),
            "LastHeartbeat": _heartbeat(session, today),
        }
        for session in found.sessions
    ]


def current_task(session: SessionInfo, claimed: Mapping[tuple[str, str], TaskInfo]) -> str:
    """Return what a session waits for, or else what it works on."""
    if not session.waits:
        return work_of(session, claimed)
    names = ", ".join(resource.removeprefix("file:") for resource in session.waits[0].resources)
    return f"Waiting for lock on {names}" if names else "Waiting for a task"


def work_of(session: SessionInfo, claimed: Mapping[tuple[str, str], TaskInfo]) -> str:
    """Return the task that a session has claimed, or else what it reported."""
    task = claimed.get((session.session_id, str(session.current_task.get("ticket", ""))))
    if task is None:
        return task_of(session)
    return f"{task.description} ({task.task_id})" if task.description else task.task_id


def queue_depth(session: SessionInfo) -> int:
    """Return how many tasks a session has besides the one it works on; a blocked one works on none."""
    return max(0, session.claims - 1) if session.state == "working" else session.claims


def ticket_rows(locks: Sequence[LockInfo]) -> list[dict[str, Any]]:
    """Return a row for each lock: the resource, and who has it."""
    return [
        {
            "file": lock.resource.removeprefix("file:"),
            "by": lock.agent or lock.owner,
            "session_id": lock.owner,
            "mode": lock.mode,
            "fence": lock.fence,
            "expires_in_s": lock.expires_in_s,
            "waiters": list(lock.waiters),
            "reason": lock.reason,
        }
        for lock in locks
    ]


def queued_rows(queue: QueueReply) -> list[dict[str, Any]]:
    """Return a row for each task that nobody works on, in the order of the queue."""
    return [
        {name: getattr(task, name) for name in ("task_id", "priority", "state", "assignee", "description")}
        for task in (*queue.ready, *queue.waiting)
    ]


def draw(fields: Mapping[str, Any], room: int) -> str:
    """Return the dashboard as text: the agents, the tickets, and the queued tasks."""
    whole, colours = form() == "wide", has_colours()
    tickets = [{**row, "expires_in": _span(row["expires_in_s"])} for row in fields["tickets"]]
    parts: list[tuple[str, Sequence[Row], Sequence[str]]] = [
        ("", fields["table"], COLUMNS),
        (count(len(tickets), "active ticket"), tickets, TICKET_COLUMNS),
        (count(len(fields["queued"]), "queued task"), fields["queued"], TASK_COLUMNS),
    ]
    shown = [
        (f"{title}\n" if title else "") + table(rows, columns, room, colours=colours, whole=whole)
        for title, rows, columns in parts
        if rows
    ]
    return "\n".join(shown)


def _span(seconds: float) -> str:
    return arguments.span(seconds) if seconds > 0 else "expired"


def _heartbeat(session: SessionInfo, today: str) -> str:
    """Return the time of the last heartbeat, to the second: `10:51:00Z`, before today with its day."""
    at = timestamp(session.last_heartbeat_ms)
    return "" if at is None else at[: len("2026-11-18T10:51:00")].removeprefix(today) + "Z"
