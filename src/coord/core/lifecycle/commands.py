"""Commands about the beginning and the end of a session, and their replies: the API."""

from typing import Self

import msgspec

from coord.core.commands import Command, Reply, SessionCommand
from coord.core.identity import Process
from coord.core.locks.commands import LockInfo, NamedLocksCommand
from coord.core.sessions.commands import SessionInfo, UpdateSession
from coord.core.tasks.types import TaskClaim


class RegisterReply(Reply, frozen=True):
    """The registered session and its peers."""

    session: SessionInfo
    peers: list[SessionInfo]
    new: bool = True
    moved_locks: int = 0
    moved_claims: int = 0


class Register(UpdateSession, frozen=True, kw_only=True):
    """Begin a session, or come back to it; `replaces` names a session that this one takes over.

    That session must be gone or live in the same process. `force` takes it over all the same; the reason is
    recorded, and those concerned are notified. Without `peers` the reply lists none, which costs less.
    `runner`: the session lives in a process of `coord work`, which coord may end if it hangs.
    """

    rule = "coord.core.lifecycle.register:register"
    reply = RegisterReply  # type: ignore[assignment]
    replaces: str = ""
    force: bool = False
    reason: str = ""
    peers: bool = True
    runner: bool = False


class DeregisterReply(Reply, frozen=True):
    """The resources that a session released when it ended, and the sub-agents that ended with it."""

    session_id: str
    released: list[str]
    terminated: list[str] = []


class Deregister(SessionCommand, frozen=True):
    """End a session and its sub-agents; `session` may name a sub-agent of the caller, or a dead session.

    With `to_parent` the locks that hooks took for it go to its parent, because its edits are still there.
    `read`: the files that the caller read and that are not in the ledger yet. With `force` a person ends any
    session; the reason is recorded.
    """

    rule = "coord.core.lifecycle.end:deregister"
    reply = DeregisterReply
    session: str = ""
    to_parent: bool = False
    read: tuple[str, ...] = ()
    force: bool = False
    reason: str = ""


class HandoffReply(Reply, frozen=True):
    """The session that took over, the locks it has now, and the claim with its new generation."""

    to: str
    locks: list[LockInfo]
    task: str = ""
    generation: int = 0

    def with_fence(self, offset: int) -> Self:
        """Return the reply with the fences of this commit."""
        return msgspec.structs.replace(self, locks=[lock.with_fence(offset) for lock in self.locks])


class Handoff(NamedLocksCommand, frozen=True, kw_only=True):
    """Give locks of the caller, or its claim of a task, to another session.

    If the command names both, it means the task, provided that the caller has claimed it.
    """

    rule = "coord.core.lifecycle.handoff:hand_off"
    prefetch_keys = "coord.core.locks.locks:lock_reads"
    reply = HandoffReply
    fenced = True
    to: str
    tenant: str
    project: str
    task: str = ""
    note: str = ""


class HungSession(Reply, frozen=True):
    """A session that hangs, and the process in which `coord work` runs it."""

    session_id: str
    agent: str
    silent_ms: int
    runner: Process


class ListHung(Command, frozen=True):
    """List the sessions of `coord work` that hang: silent for too long, and not proven dead."""

    rule = "coord.core.lifecycle.hung:list_hung"
    reply = list[HungSession]
    reads_only = True


class LostClaim(Reply, frozen=True):
    """A claim that a session lost, the reason, and the state of the task now.

    `holder` is the session that claimed it since. If `still_open`, nobody did, and a late result is accepted.
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
    """What a session holds, lost and waits for; `session` is None if its record was deleted."""

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
    """Return the claims, lost claims, locks and messages of a session; the caller's if none is named."""

    rule = "coord.core.lifecycle.memory:get_session_memory"
    reply = SessionMemoryReply
    reads_only = True
    tenant: str
    session: str = ""


class StatusReply(Reply, frozen=True):
    """The caller's session with its claims, locks, unread messages and sub-agents; None if it has none."""

    now_ms: int
    session: SessionInfo | None
    claims: list[TaskClaim] = []
    locks: list[LockInfo] = []
    unread: int = 0
    emergencies: int = 0
    agents: list[SessionInfo] = []


class GetStatus(SessionCommand, frozen=True, kw_only=True):
    """Return everything that concerns the caller's session now.

    In the user's store, sessions of repositories are only `stubs`: they show that a session exists elsewhere.
    """

    rule = "coord.core.lifecycle.status:get_status"
    prefetch_keys = "coord.core.sessions.identify:caller_reads"
    reply = StatusReply
    reads_only = True
    tenant: str
    stubs: bool = False


class QueueCounts(Reply, frozen=True):
    """The tasks of a project that are not done: all of them, those in work, and those that need a person."""

    unfinished: int = 0
    working: int = 0
    stuck: int = 0


class Overview(Reply, frozen=True):
    """All sessions that have not ended, the number of locks, and the queue of a project."""

    now_ms: int
    sessions: list[SessionInfo]
    locks: int
    queue: QueueCounts


class GetOverview(Command, frozen=True, kw_only=True):
    """Return what all sessions do, and the queue of a project; `stubs` as in `GetStatus`."""

    rule = "coord.core.lifecycle.status:get_overview"
    reply = Overview
    reads_only = True
    project: str
    stubs: bool = False


class Need(Reply, frozen=True, kw_only=True):
    """Something that needs a person: `kind` is question, session, task, agent or budget; `id` names it.

    `text` is its content; `urgency` 0 is the most urgent. `since_ms` is 0 if nobody knows.
    """

    kind: str
    id: str
    what: str
    text: str
    urgency: int
    since_ms: int
    next: str
    session_id: str = ""
    agent: str = ""
    project: str = ""
    options: list[str] = []


class NeedsReply(Reply, frozen=True):
    """What needs a person, the most urgent first, all of it counted by kind.

    `oldest_question_ms` is when the oldest open question was asked; 0 without one.
    """

    now_ms: int
    needs: list[Need]
    counts: dict[str, int] = {}
    oldest_question_ms: int = 0


class NeedsYou(Command, frozen=True, kw_only=True):
    """List what needs a person in a project, or in all: questions, silent sessions, tasks, agents."""

    rule = "coord.core.lifecycle.needs:needs_you"
    reply = NeedsReply
    reads_only = True
    project: str = ""
    limit: int = 100
