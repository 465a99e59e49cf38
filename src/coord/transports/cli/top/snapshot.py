"""What `coord top` shows, read from the store at one time."""

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from coord.core.errors import CoordError, Trimmed
from coord.core.lifecycle.commands import Need, Overview
from coord.core.locks.commands import LockInfo, SessionWait
from coord.core.messages.commands import MessageInfo
from coord.core.plans.commands import QueueReply, TaskInfo
from coord.core.sessions.commands import FindSession, SessionInfo
from coord.sdk.client.client import Client
from coord.sdk.log_reader import LoggedEvent, logged_events

LOCKS_MAX = 1000
ENTRIES_READ = 100
"""How many entries at the end of the log are read for the last events."""
EVENTS_MAX = 30
OTHER_NEEDS = ("question", "agent", "alert")


class Snapshot(NamedTuple):
    """Everything at about one time; `read_at` is the local clock, to count on from it.

    All of it is at least as new as the log at `offset`.
    """

    project: str
    own: str
    found: Overview
    locks: Sequence[LockInfo]
    waits: Sequence[SessionWait]
    queue: QueueReply
    stuck: Sequence[TaskInfo]
    messages: Sequence[MessageInfo]
    events: Sequence[LoggedEvent]
    offset: int
    read_at: float
    needs: Sequence[Need] = ()
    """Questions to people, agents that get no work, and alerts; the other fields have the rest."""

    def age_s(self, now: float) -> float:
        """Return the time since it was read."""
        return max(0.0, now - self.read_at)

    def session(self, name: str) -> SessionInfo | None:
        """Return a session by its id."""
        return next((each for each in self.found.sessions if each.session_id == name), None)


def read_snapshot(client: Client) -> Snapshot:
    """Read everything; whoever has no session sees the others and no messages."""
    with suppress(CoordError):
        client.check_alerts(at_once=False)
    found = client.overview()
    offset = client.log.seen.offset
    own, messages = "", list[MessageInfo]()
    with suppress(CoordError):
        own = client.call(FindSession(client.caller)).session_id
        messages = client.recv(peek=True).messages
    if all(session.session_id != own for session in found.sessions):
        own = ""
    return Snapshot(
        project=client.project,
        own=own,
        found=found,
        locks=[lock for page in client.lock_pages(limit=LOCKS_MAX) for lock in page.locks],
        waits=client.waits(),
        queue=client.queue(),
        stuck=client.stuck_tasks(),
        messages=messages,
        events=_last_events(client, offset),
        offset=offset,
        read_at=time.monotonic(),
        needs=[need for need in client.needs_you().needs if need.kind in OTHER_NEEDS],
    )


def _last_events(client: Client, head: int) -> list[LoggedEvent]:
    """Return the events of the last entries up to an offset, the newest first."""
    after = max(0, head - ENTRIES_READ)
    try:
        page = client.log.tail(after, ENTRIES_READ)
    except Trimmed as trimmed:
        page = client.log.tail(trimmed.first - 1, ENTRIES_READ)
    return list(logged_events(page))[: -EVENTS_MAX - 1 : -1]
