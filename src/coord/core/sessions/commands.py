"""What can be asked about sessions, each command after its reply."""

from typing import Any

from coord.core.commands import Reply, SessionCommand
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
    """Change what a session says of itself; what is None stays."""

    rule = "coord.core.sessions.session:update_session"
    prefetch_keys = "coord.core.sessions.session:caller_reads"
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
    """Say that a session is alive."""

    rule = "coord.core.sessions.session:heartbeat"
    prefetch_keys = "coord.core.sessions.session:caller_reads"
    reply = HeartbeatReply


class GetSession(SessionCommand, frozen=True):
    """Ask for a session, the caller's own if none is named."""

    rule = "coord.core.sessions.queries:get_session"
    reply = SessionInfo
    reads_only = True
    session: str = ""


class ListSessions(SessionCommand, frozen=True):
    """Ask who is there."""

    rule = "coord.core.sessions.queries:list_sessions"
    reply = list[SessionInfo]
    reads_only = True
    live: bool = False
