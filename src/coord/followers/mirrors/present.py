"""What the mirrors show: the locks, sessions, tasks and messages of a store as they are now."""

import json
import time
from typing import Any, NamedTuple

from coord.core.identity import Caller
from coord.core.locks.commands import GetLocks, LockInfo, LockPage
from coord.core.messages.commands import MessageInfo, PeekMessages
from coord.core.plans.commands import GetQueue, GetTasks, QueueReply, TaskInfo, TaskList
from coord.core.routing.commands import AgentInfo, GetAgents
from coord.core.sessions.commands import ListSessions, SessionInfo
from coord.core.sessions.schema import Liveness
from coord.engine.engine import Engine

NOBODY = Caller("")
TASKS_MAX = 1000
"""How many tasks a mirror shows: of each list of the queue, and in all."""
GRADES_MS = (60_000, 120_000, 300_000, 600_000)
"""Ages of a heartbeat at which a session is shown differently."""


class Present(NamedTuple):
    """A store as it is now."""

    now: int
    locks: list[LockInfo]
    sessions: list[SessionInfo]
    queue: QueueReply
    tasks: list[TaskInfo]
    agents: dict[str, AgentInfo]
    messages: dict[str, list[MessageInfo]]

    def session(self, name: str) -> SessionInfo | None:
        """Return a session by its id."""
        return next((each for each in self.sessions if each.session_id == name), None)

    def agent_of(self, session: str) -> str:
        """Return the name of a session's agent, or of the session if it has none."""
        found = self.session(session)
        return (found.agent if found else "") or session

    @property
    def due_ms(self) -> int:
        """When something is shown differently although nobody does anything; 0 for never."""
        times = [lock.expires_ms for lock in self.locks]
        times += [self.now + round(1000 * lock.expires_in_s) for lock in self.locks if lock.preempted_by]
        times += [task.expires_ms for task in (*self.queue.working, *self.tasks)]
        times += [
            each.last_heartbeat_ms + grade
            for each in self.sessions
            if each.liveness is not Liveness.ENDED
            for grade in GRADES_MS
        ]
        return min((each for each in times if each > self.now), default=0)


def read_present(engine: Engine, project: str, now: int, parts: frozenset[str]) -> Present:
    """Ask for what a mirror shows; `parts` may contain queue, tasks and messages."""
    sessions: list[SessionInfo] = engine.call(ListSessions(NOBODY, everyone=True))
    with_tasks = bool(project) and "queue" in parts
    queue: QueueReply = engine.call(GetQueue(project, TASKS_MAX)) if with_tasks else QueueReply([], [], [])
    agents: list[AgentInfo] = engine.call(GetAgents(project)) if with_tasks else []
    tasks = _tasks(engine, project) if project and "tasks" in parts else []
    living = [each.session_id for each in sessions if each.liveness is not Liveness.ENDED]
    messages = {name: _messages(engine, name) for name in living} if "messages" in parts else {}
    by_name = {agent.name: agent for agent in agents}
    return Present(now, _locks(engine), sessions, queue, tasks, by_name, messages)


def _locks(engine: Engine) -> list[LockInfo]:
    found: list[LockInfo] = []
    after, more = "", True
    while more:
        page: LockPage = engine.call(GetLocks(NOBODY, after=after))
        found += page.locks
        after = page.after
        more = bool(after)
    return sorted(found, key=lambda lock: (lock.acquired_ms, lock.resource, lock.owner))


def _tasks(engine: Engine, project: str) -> list[TaskInfo]:
    page: TaskList = engine.call(GetTasks(project, limit=TASKS_MAX))
    return page.tasks


def _messages(engine: Engine, session: str) -> list[MessageInfo]:
    found: list[MessageInfo] = engine.call(PeekMessages(Caller(session))).messages
    return found


def at(ms: int | None) -> str | None:
    """Return a time as the documents write it, in UTC (CFL-28); None for 0.

    >>> at(1_762_165_800_999)
    '2025-11-03T10:30:00Z'
    """
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ms // 1000)) if ms else None


def as_json(value: Any) -> bytes:
    """Return a record as it stands in a file: indented, and without characters that hide or control."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    shown = text if text.replace("\n", "").isprintable() else "".join(map(_shown, text))
    return f"{shown}\n".encode()


def _shown(char: str) -> str:
    if char.isprintable() or char == "\n":
        return char
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[index]:02x}{units[index + 1]:02x}" for index in range(0, len(units), 2))
