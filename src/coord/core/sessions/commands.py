"""Commands about sessions, and their replies: the API."""

from typing import Any

from coord.core.commands import Command, Reply, SessionCommand
from coord.core.sessions.schema import Liveness


class SessionInfo(Reply, frozen=True):
    """A session as others see it."""

    session_id: str
    liveness: Liveness
    state: str
    agent: str
    role: str
    project: str
    parent: str
    user: str
    host: str
    pid: int
    cwd: str
    bin: str
    version: str
    started_ms: int
    last_heartbeat_ms: int
    current_task: dict[str, Any]
    owned_resources: dict[str, Any]
    blob: dict[str, Any]
    capabilities: dict[str, float] = {}


class UpdateSession(SessionCommand, frozen=True, kw_only=True):
    """Change what a session reports about itself; fields that are None stay."""

    rule = "coord.core.sessions.update:update_session"
    prefetch_keys = "coord.core.sessions.identify:caller_reads"
    reply = SessionInfo
    task: str | None = None
    phase: str | None = None
    status: str | None = None
    role: str | None = None
    bin: str | None = None
    version: str | None = None
    blob: dict[str, Any] | None = None
    merge_blob: dict[str, Any] | None = None
    owned: dict[str, Any] | None = None
    capabilities: dict[str, float] | None = None


class HeartbeatReply(Reply, frozen=True):
    """The answer to a heartbeat."""

    session_id: str
    last_heartbeat_ms: int
    written: bool


class Heartbeat(SessionCommand, frozen=True):
    """Report that a session is alive."""

    rule = "coord.core.sessions.update:heartbeat"
    prefetch_keys = "coord.core.sessions.identify:caller_reads"
    reply = HeartbeatReply


class GetSession(SessionCommand, frozen=True):
    """Return a session, the caller's own if none is named."""

    rule = "coord.core.sessions.queries:get_session"
    reply = SessionInfo
    reads_only = True
    session: str = ""


class ListSessions(SessionCommand, frozen=True):
    """List the other sessions that have not ended; with `everyone`, all sessions on record."""

    rule = "coord.core.sessions.queries:list_sessions"
    reply = list[SessionInfo]
    reads_only = True
    live: bool = False
    everyone: bool = False


class DeclareDead(Command, frozen=True):
    """End a session that is proven dead, with its claims and locks; only rules send this command."""

    rule = "coord.core.lifecycle.end:declare_dead"
    reply = None
    session: str
    evidence: str


class IsWaiting(Command, frozen=True):
    """Whether a session waits for these resources; only rules send this command."""

    rule = "coord.core.locks.wait_queue:is_waiting"
    reply = bool
    reads_only = True
    session: str
    resources: tuple[str, ...]
