"""What `coord top` shows, read from the store at one time."""

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from coord.core.errors import CoordError
from coord.core.locks.commands import LockInfo
from coord.core.messages.commands import MessageInfo
from coord.core.plans.commands import TaskInfo
from coord.core.sessions.commands import SessionInfo
from coord.core.tasks.types import TaskStatus
from coord.sdk.client.client import Client


class Snapshot(NamedTuple):
    """Sessions, locks, tasks and unread messages; `read_at` is the local clock, to count on from it."""

    project: str
    own: str
    sessions: Sequence[SessionInfo]
    locks: Sequence[LockInfo]
    tasks: Sequence[TaskInfo]
    messages: Sequence[MessageInfo]
    now_ms: int
    read_at: float


def read_snapshot(client: Client) -> Snapshot:
    """Read everything; whoever has no session sees the others and no messages."""
    sessions: list[Any] = []
    messages: list[MessageInfo] = []
    with suppress(CoordError):
        sessions.append(client.show())
        messages = client.recv(peek=True).messages
    own = sessions[0].session_id if sessions else ""
    sessions += client.peers()
    states = (TaskStatus.IN_PROGRESS, TaskStatus.READY, TaskStatus.BLOCKED)
    tasks = [task for state in states for task in client.task_list(state=state.value)]
    now_ms = client.log.now()
    return Snapshot(client.project, own, sessions, client.locks(), tasks, messages, now_ms, time.monotonic())
