"""Commands about the beginning and the end of a session, and their replies: the API."""

from coord.core.commands import Reply, SessionCommand
from coord.core.locks.commands import LockInfo
from coord.core.sessions.commands import SessionInfo, UpdateSession
from coord.core.tasks.types import TaskClaim


class RegisterReply(Reply, frozen=True):
    """A session after it registered, and the peers it has."""

    session: SessionInfo
    peers: list[SessionInfo]
    new: bool = True
    moved_locks: int = 0
    moved_claims: int = 0


class Register(UpdateSession, frozen=True, kw_only=True):
    """Begin a session, or come back to it; `replaces` names the one whose place it takes."""

    rule = "coord.core.lifecycle.end:register"
    reply = RegisterReply  # type: ignore[assignment]
    replaces: str = ""


class DeregisterReply(Reply, frozen=True):
    """What a session gave back when it ended."""

    session_id: str
    released: list[str]


class Deregister(SessionCommand, frozen=True):
    """End a session and give back what it holds; `session` may name a sub-agent or a dead one.

    With `to_parent` what hooks locked for it goes to the session above: its edits are there still.
    """

    rule = "coord.core.lifecycle.end:deregister"
    reply = DeregisterReply
    session: str = ""
    to_parent: bool = False


class LostClaim(Reply, frozen=True):
    """A claim that a session lost: why, and how the task stands.

    `holder` is who had or has it since. `still_open`: nobody took it, and a late submission would count.
    """

    project: str
    task_id: str
    generation: int
    reason: str
    lost_ms: int
    note: str
    state: str
    holder: str
    current_generation: int
    still_open: bool


class SessionMemoryReply(Reply, frozen=True):
    """What stands of a session at a moment; `session` is None where its record is forgotten."""

    session_id: str
    now_ms: int
    session: SessionInfo | None
    claims: list[TaskClaim]
    tracks: list[str]
    lost: list[LostClaim]
    locks: list[LockInfo]
    unread: int
    waiting_for: list[str]


class GetSessionMemory(SessionCommand, frozen=True, kw_only=True):
    """Ask what stands of a session: claims, those it lost, locks, messages; the caller's if none is named."""

    rule = "coord.core.lifecycle.memory:get_session_memory"
    reply = SessionMemoryReply
    reads_only = True
    tenant: str
    session: str = ""
