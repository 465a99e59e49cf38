"""The routes of the founding document for locks and alerts, with its paths and its field names.

An agent is named by its id alone, which is also its session. A path may have its slashes as they are, or as
%2F.
"""

from datetime import UTC, datetime
from typing import Any

import msgspec

from coord.core.alerts.commands import AlertInfo, AlertList, ListAlerts
from coord.core.locks.commands import AcquireLocks, GetLocks, LockInfo, LockPage, LockReply, ReleaseLocks
from coord.core.sessions.commands import ListSessions, SessionInfo
from coord.transports.hub.api import replies
from coord.transports.hub.api.endpoint import Answer, Asking, Endpoint, role_of
from coord.transports.hub.api.endpoints.commands import build_from, caller_of
from coord.transports.hub.api.fields import PAGE_MAX, Id, Line, PublicBody, Resource
from coord.transports.hub.problems import PROBLEM

LOCKS = "/api/coordination/locks"
ALERTS = "/api/coordination/alerts"


class FileLock(msgspec.Struct, frozen=True, rename="camel"):
    """A lock on a file, as the founding document has it."""

    file_path: str
    agent_id: str
    agent_role: str
    reason: str
    acquired_at: str
    expires_at: str
    fence: int


class FileLocks(msgspec.Struct, frozen=True):
    """All locks on files."""

    locks: list[FileLock]


class AcquireFileLock(PublicBody, frozen=True, kw_only=True, rename="camel"):
    """Who locks which file, and why."""

    agent_id: Id
    file_path: Resource
    reason: Line = ""


class ReleaseFileLock(PublicBody, frozen=True, kw_only=True, rename="camel"):
    """Whose lock it is."""

    agent_id: Id


class FileLockGranted(msgspec.Struct, frozen=True):
    """The lock that was granted."""

    ok: bool
    lock: FileLock


class FileLockReleased(msgspec.Struct, frozen=True):
    """The files that are free again."""

    ok: bool
    released: list[str]


class FileLockDenied(replies.Problem, frozen=True, kw_only=True):
    """Who has the file."""

    ok: bool | msgspec.UnsetType = msgspec.UNSET
    holder: FileLock | msgspec.UnsetType = msgspec.UNSET


class FoundingAlert(msgspec.Struct, frozen=True, rename="camel"):
    """An open alert, as the founding document has it."""

    id: str
    type: str
    severity: str
    agent_id: str
    subject: str
    message: str
    timestamp: str


async def list_alerts(asking: Asking) -> Any:
    """List the open alerts, newest first."""
    command = build_from(ListAlerts, asking, {})
    found: AlertList = await asking.ask(command)
    return [_alert(each) for each in found.alerts]


def _alert(alert: AlertInfo) -> FoundingAlert:
    return FoundingAlert(
        alert.id,
        alert.rule,
        alert.severity.value,
        alert.session_id,
        alert.subject,
        alert.text,
        _iso(alert.raised_ms),
    )


async def list_locks(asking: Asking) -> Any:
    """List the locks on files."""
    caller = caller_of(asking, {}, GetLocks)
    found: list[LockInfo] = []
    after, more = "", True
    while more:
        page: LockPage = await asking.ask(GetLocks(caller, after=after, limit=PAGE_MAX))
        found += page.locks
        after, more = page.after, bool(page.after)
    roles = await _roles(asking)
    return FileLocks([_file_lock(lock, roles) for lock in found if lock.resource.startswith("file:")])


async def acquire(asking: Asking) -> Any:
    """Lock a file for an agent; 409 if another one has it."""
    body: AcquireFileLock = asking.values
    given = {
        "session": body.agent_id,
        "agent": body.agent_id,
        "resources": (f"file:{body.file_path.removeprefix('file:')}",),
        "reason": body.reason,
    }
    reply: LockReply = await asking.ask(build_from(AcquireLocks, asking, given))
    roles = await _roles(asking)
    answer = replies.answer(reply)
    if answer.status < 400:
        return answer._replace(value=FileLockGranted(True, _file_lock(reply.locks[0], roles)))
    problem = {name: answer.value[name] for name in ("type", "title", "status", "detail", "code", "hint")}
    holder = {} if reply.holder is None else {"holder": _file_lock(reply.holder, roles)}
    return Answer(409, {**problem, "ok": False, **holder}, PROBLEM)


async def release(asking: Asking) -> Any:
    """Release the lock of an agent on a file."""
    body: ReleaseFileLock = asking.values
    path = asking.path["path"].removeprefix("file:")
    given = {"session": body.agent_id, "agent": body.agent_id, "resources": (f"file:{path}",)}
    reply = await asking.ask(build_from(ReleaseLocks, asking, given))
    return FileLockReleased(True, [text.removeprefix("file:") for text in reply.released])


async def _roles(asking: Asking) -> dict[str, str]:
    """Return the role of each session that has one."""
    caller = caller_of(asking, {}, ListSessions)
    sessions: list[SessionInfo] = await asking.ask(ListSessions(caller, everyone=True))
    return {session.session_id: session.role for session in sessions if session.role}


def _file_lock(lock: LockInfo, roles: dict[str, str]) -> FileLock:
    acquired, expires = _iso(lock.acquired_ms), _iso(lock.expires_ms)
    path = lock.resource.removeprefix("file:")
    return FileLock(path, lock.owner, roles.get(lock.owner, ""), lock.reason, acquired, expires, lock.fence)


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


def endpoints() -> list[Endpoint]:
    """Return the routes."""
    return [
        Endpoint(
            "GET",
            ALERTS,
            "listCurrentAlerts",
            list_alerts,
            summary=str(list_alerts.__doc__),
            tag="founding",
            role=role_of(ListAlerts),
            replies={200: list[FoundingAlert]},
        ),
        Endpoint(
            "GET",
            LOCKS,
            "listFileLocks",
            list_locks,
            summary=str(list_locks.__doc__),
            tag="founding",
            role=role_of(GetLocks),
            replies={200: FileLocks},
        ),
        Endpoint(
            "POST",
            LOCKS,
            "acquireFileLock",
            acquire,
            summary=str(acquire.__doc__),
            tag="founding",
            role=role_of(AcquireLocks),
            body=AcquireFileLock,
            replies={200: FileLockGranted, 201: FileLockGranted, 409: FileLockDenied},
        ),
        Endpoint(
            "DELETE",
            f"{LOCKS}/{{path...}}",
            "releaseFileLock",
            release,
            summary=str(release.__doc__),
            tag="founding",
            role=role_of(ReleaseLocks),
            query=ReleaseFileLock,
            replies={200: FileLockReleased},
        ),
    ]
