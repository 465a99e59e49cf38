"""Commands about sessions, and their replies: the API."""

from typing import Any

from coord.core.commands import Command, Reply, SessionCommand
from coord.core.sessions.schema import Liveness


class SessionWait(Reply, frozen=True):
    """A request of a session that waits: for what, since when, behind whom, and at which position.

    A wait for a task has no resources; it names the `project`.
    """

    resources: tuple[str, ...]
    since_ms: int
    behind: list[str] = []
    position: int = 0
    project: str = ""


class SessionInfo(Reply, frozen=True):
    """A session as others see it.

    `state` follows from what the session does (`sessions/state.py`), `waits` from its requests.
    `current_task` is what it reported, or else its newest claim.
    """

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
    model: str = ""
    current_file: str = ""
    claims: int = 0
    waits: list[SessionWait] = []
    repository: str = ""
    end_note: str = ""
    current_command: str = ""


class SessionIdentity(Reply, frozen=True):
    """The ids of a session and of its agent."""

    session_id: str
    agent: str


class FindSession(SessionCommand, frozen=True):
    """Return which session the caller belongs to; cheaper than to ask for all that is known about it."""

    rule = "coord.core.sessions.queries:identify_session"
    reply = SessionIdentity
    reads_only = True


class UpdateReply(SessionInfo, frozen=True):
    """The session after an update; one that reports its end releases its locks and returns its tasks."""

    released: list[str] = []
    returned: list[str] = []


class UpdateSession(SessionCommand, frozen=True, kw_only=True):
    """Change what a session reports about itself; fields that are None stay."""

    rule = "coord.core.lifecycle.update:update_session"
    prefetch_keys = "coord.core.sessions.identify:caller_reads"
    reply = UpdateReply
    task: str | None = None
    phase: str | None = None
    status: str | None = None
    role: str | None = None
    bin: str | None = None
    version: str | None = None
    model: str | None = None
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

    rule = "coord.core.lifecycle.status:get_session"
    reply = SessionInfo
    reads_only = True
    session: str = ""


class ListSessions(SessionCommand, frozen=True):
    """List the other sessions that have not ended; with `everyone`, all sessions on record."""

    rule = "coord.core.lifecycle.status:list_sessions"
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


class TokenMayAct(Command, frozen=True):
    """Whether the bearer of a token may act for a session that came with another one, or with none.

    Only rules send this command. The reply is true if the session belongs to the token from now on.
    """

    rule = "coord.core.tokens.permission:check_may_act"
    reply = bool
    reads_only = True
    token: str
    session: str
    before: str = ""
    """The token of the session."""


class GrantAllWaiters(Command, frozen=True):
    """Grant what is free to all who wait for locks, after a stop; only rules send this command."""

    rule = "coord.core.locks.wait_queue:grant_all_waiters"
    reply = None


class IsWaiting(Command, frozen=True):
    """Whether a session waits for these resources; only rules send this command."""

    rule = "coord.core.locks.wait_queue:is_waiting"
    reply = bool
    reads_only = True
    session: str
    resources: tuple[str, ...]
