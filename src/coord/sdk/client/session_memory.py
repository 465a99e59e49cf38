"""Session memory: what a session did, and what it needs to continue after a restart.

The present (claims, lost claims, locks, messages) comes from one query. The past comes from the newest
`ENTRIES_MAX` entries of the log. If a session replaced another (`/clear` in an agent tool), the memory
includes that one.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from coord.core.errors import NotFound
from coord.core.identity import Caller
from coord.core.ids import TaskIdentifier
from coord.core.lifecycle.commands import GetSessionMemory, LostClaim, SessionMemoryReply
from coord.core.locks.commands import LockInfo
from coord.core.plans.commands import GetTasks, TaskInfo
from coord.core.tasks.types import TaskClaim
from coord.engine.engine import Engine
from coord.sdk.log_reader import LoggedEvent, first_offset, logged_events, pages_backwards
from coord.stores.contract import Store

ENTRIES_MAX = 20_000
"""The number of log entries that are read, newest first."""
LOG_MAX = 200
COMPLETED_MAX = 1_000
TASKS_MAX, PAGE = 10_000, 500
"""The number of tasks that are counted for the progress of tracks."""

SEED_EVENTS = {
    "task.claimed": "CLAIM_ACQUIRED",
    "task.renewed": "LEASE_RENEWED",
    "task.completed": "RESULT_SUBMITTED",
    "task.result_rejected": "RESULT_SUBMITTED",
    "task.expired": "CLAIM_LOST",
    "task.superseded": "CLAIM_LOST",
    "task.released": "CLAIM_RELEASED",
}
"""The names of these events in a session memory (SES-32)."""
OUTCOMES = {"task.completed": "ACCEPTED", "task.result_rejected": "REJECTED"}
_OF_ENTRY = ("project", "task", "generation", "session", "agent", "work_product")


class TaskLogEntry(msgspec.Struct, frozen=True):
    """An event about a task of the session."""

    timestamp_ms: int
    event: str
    task_id: str
    track: str
    sequence: int | None
    generation: int
    agent_id: str
    outcome: str | None
    work_product_ref: str | None
    details: dict[str, Any]


class ClaimRef(msgspec.Struct, frozen=True):
    """A claim that the session holds, with its remaining time."""

    task_id: str
    project_id: str
    generation: int
    expires_ms: int
    expires_in_s: float


class Resume(msgspec.Struct, frozen=True):
    """What a resumed agent needs to continue; `next` lists the steps, the most urgent first."""

    claims: list[ClaimRef]
    lost: list[LostClaim]
    locks: list[LockInfo]
    waiting_for: list[str]
    unread_messages: int
    next: list[str]


class SessionMemory(msgspec.Struct, frozen=True):
    """The memory of a session.

    `log_since_ms` is the time of the oldest log entry that was read; 0 if the whole log was read.
    `track_progress` is None if the project has more than `TASKS_MAX` tasks.
    """

    session_id: str
    tenant_id: str
    project_id: str
    user_id: str
    liveness: str
    created_ms: int
    last_activity_ms: int
    task_log: list[TaskLogEntry]
    active_claims: list[ClaimRef]
    completed_tasks: list[str]
    lost_claims: list[LostClaim]
    track_assignments: list[str]
    track_progress: dict[str, dict[str, int]] | None
    log_since_ms: int
    resume: Resume


def load_session_memory(engine: Engine, log: Store, command: GetSessionMemory, project: str) -> SessionMemory:
    """Return the memory of a session from its records and the log."""
    reply: SessionMemoryReply = engine.call(command)
    past = _SessionLog(reply.session_id)
    past.read(log)
    session = reply.session
    if session is None and not (past.log or reply.claims or reply.lost):
        raise NotFound(f"there is no session {reply.session_id}", hint="coord peers lists them")
    times = [entry.timestamp_ms for entry in past.log]
    claims = [_claim_ref(claim, reply.now_ms) for claim in reply.claims]
    tracks = {track or _track(ref.task_id)[0] for track, ref in zip(reply.tracks, claims, strict=True)}
    return SessionMemory(
        session_id=reply.session_id,
        tenant_id=command.tenant,
        project_id=(session.project if session else "") or project,
        user_id=session.user if session else "",
        liveness=session.liveness.value if session else "",
        created_ms=session.started_ms if session else min(times, default=0),
        last_activity_ms=max([*times, session.last_heartbeat_ms if session else 0]),
        task_log=past.log,
        active_claims=claims,
        completed_tasks=past.completed,
        lost_claims=reply.lost,
        track_assignments=sorted(tracks - {""}),
        track_progress=_progress(engine, (session.project if session else "") or project),
        log_since_ms=past.since_ms,
        resume=Resume(claims, reply.lost, reply.locks, reply.waiting_for, reply.unread, _next(reply, claims)),
    )


def coordinator_memory(engine: Engine, log: Store, tenant: str, session: str, project: str) -> SessionMemory:
    """Return the memory of a session, even of one that never registered."""
    command = GetSessionMemory(caller=Caller(session), tenant=tenant)
    return load_session_memory(engine, log, command, project)


class _SessionLog:
    """The events of a session in the log, read backwards."""

    def __init__(self, session: str) -> None:
        self.log: list[TaskLogEntry] = []
        self.completed: list[str] = []
        self.since_ms = 0
        self._names = {session}
        self._renewed: set[tuple[str, int]] = set()

    def read(self, log: Store) -> None:
        """Read the log backwards, at most `ENTRIES_MAX` entries."""
        first, looked_at = first_offset(log), 0
        for page in pages_backwards(log, first):
            for logged in self._own(page):
                self._note(logged)
            looked_at += len(page)
            if looked_at >= ENTRIES_MAX and page[0].offset > 1:
                self.since_ms = page[0].at
                break
            self.since_ms = page[0].at if first else 0
        self.log.reverse()
        self.completed.reverse()

    def _own(self, page: list[Any]) -> Iterator[LoggedEvent]:
        for entry in reversed(page):
            words = [name.encode() for name in self._names]
            if any(
                word in event for event in entry.events for word in words
            ):  # decoding every event would be slow
                yield from reversed(list(logged_events([entry])))

    def _note(self, logged: LoggedEvent) -> None:
        details = logged.details
        if logged.event == "session.ended" and details.get("successor") in self._names:
            self._names.add(details["session"])
        if details.get("session") not in self._names or logged.event not in SEED_EVENTS:
            return
        if logged.event == "task.completed" and len(self.completed) < COMPLETED_MAX:
            self.completed.append(details["task"])
        claim = (details["task"], details["generation"])
        if len(self.log) == LOG_MAX or (logged.event == "task.renewed" and claim in self._renewed):
            return  # only the latest renewal of a claim is kept
        if logged.event == "task.renewed":
            self._renewed.add(claim)
        self.log.append(_entry(logged))


def _entry(logged: LoggedEvent) -> TaskLogEntry:
    details = logged.details
    track, sequence = _track(details["task"])
    event = SEED_EVENTS[logged.event]
    if details.get("reason") == "RESET":
        event = "CLAIM_LOST"
    return TaskLogEntry(
        logged.at_ms,
        event,
        details["task"],
        track,
        sequence,
        details["generation"],
        details["agent"],
        OUTCOMES.get(logged.event),
        details.get("work_product"),
        {"event": logged.event, **{name: details[name] for name in details if name not in _OF_ENTRY}},
    )


def _track(task_id: str) -> tuple[str, int | None]:
    named = TaskIdentifier.find(task_id)
    return ("", None) if named is None else (named.track, named.sequence)


def _claim_ref(claim: TaskClaim, now_ms: int) -> ClaimRef:
    left_s = round(max(claim.expires_ms - now_ms, 0) / 1000, 3)
    return ClaimRef(claim.task_id, claim.project_id, claim.generation.generation, claim.expires_ms, left_s)


def _progress(engine: Engine, project: str) -> dict[str, dict[str, int]] | None:
    """Return the progress of each track of a project (TID-21)."""
    progress: dict[str, dict[str, int]] = {}
    after = ""
    for _ in range(TASKS_MAX // PAGE):
        page = engine.call(GetTasks(project, after=after, limit=PAGE)) if project else None
        for task in page.tasks if page else ():
            track = progress.setdefault(task.track, {"completed": 0, "in_progress": 0, "pending": 0})
            track[_stage(task)] += 1
        if page is None or not page.more:
            return dict(sorted(progress.items()))
        after = page.tasks[-1].task_id
    return None


def _stage(task: TaskInfo) -> str:
    if task.state in ("done", "skipped"):
        return "completed"
    return "in_progress" if task.state == "in_progress" else "pending"


def _next(reply: SessionMemoryReply, claims: list[ClaimRef]) -> list[str]:
    """Return the next steps, the most urgent first."""
    steps = []
    for lost in reply.lost:
        task = f"{lost.task_id} {lost.generation}"
        if lost.holder:
            has = "has done" if lost.state == "done" else "has"
            steps.append(f"drop {lost.task_id}: {lost.holder} {has} it, generation {lost.current_generation}")
        elif lost.still_open:
            steps.append(f"the lease of {lost.task_id} expired, but nobody took it: coord task submit {task}")
        elif lost.state == "ready":
            steps.append(f"{lost.task_id} is open again: coord task claim {lost.task_id}")
    steps += [
        f"continue {ref.task_id}, {ref.expires_in_s:.0f} s left:"
        f" coord task renew {ref.task_id} {ref.generation}"
        for ref in sorted(claims, key=lambda ref: ref.expires_ms)
    ]
    if reply.unread:
        steps.append(f"read {reply.unread} {'message' if reply.unread == 1 else 'messages'}: coord recv")
    return steps if claims else [*steps, "take the next task: coord task next"]
