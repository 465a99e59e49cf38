"""The files below `.claude/`, as the fifth founding document writes them, in every worktree (GIT-24)."""

from typing import Any

from coord.core.locks.commands import LockInfo
from coord.core.locks.schema import Mode
from coord.core.sessions.commands import SessionInfo
from coord.core.sessions.schema import Liveness
from coord.followers.mirrors.names import safe_name
from coord.followers.mirrors.present import Present, as_json, at
from coord.followers.mirrors.writer import Tree

STATUSES = {
    "starting": "starting",
    "completed": "completed",
    "terminated": "completed",
    "failed": "failed",
    "crashed": "failed",
}
"""The states of a session that this layout knows (STA-18); every other one is working."""


def agent_claims_files(present: Present) -> Tree:
    """Return the files below the top of each worktree."""
    files = {
        ".claude/agent-claims.json": as_json({"claims": _claims(present)}),
        ".claude/agent-claims-expiry.json": as_json({"claims": _expiries(present)}),
        ".claude/plans/task-status.json": as_json({"tasks": _tasks(present)}),
    }
    statuses = {
        f".claude/subagent-status/{safe_name(agent)}.json": as_json(_status(session))
        for agent, session in _by_agent(present).items()
    }
    return Tree({**files, **statuses}, (".claude/subagent-status",))


def _claims(present: Present) -> list[dict[str, Any]]:
    """Return who may change which file; a lock to read claims nothing (CFL-3)."""
    return [{**_claim(lock), "claimed_at": at(lock.acquired_ms)} for lock in _claiming(present)]


def _expiries(present: Present) -> list[dict[str, Any]]:
    """Return when each of these claims ends: the document has no field for that."""
    return [{**_claim(lock), "expires_at": at(lock.expires_ms)} for lock in _claiming(present)]


def _claiming(present: Present) -> list[LockInfo]:
    return [lock for lock in present.locks if lock.scope in ("file", "glob") and lock.mode != Mode.READ]


def _claim(lock: LockInfo) -> dict[str, Any]:
    return {"agent": lock.agent or lock.owner, "file": lock.resource.partition(":")[2]}


def _by_agent(present: Present) -> dict[str, SessionInfo]:
    """Return the session that stands for each agent: one that lives, and of those the newest."""
    found: dict[str, SessionInfo] = {}
    for session in present.sessions:
        agent = session.agent or session.session_id
        if agent not in found or _rank(session) > _rank(found[agent]):
            found[agent] = session
    return found


def _rank(session: SessionInfo) -> tuple[bool, int, str]:
    return session.liveness is not Liveness.ENDED, session.started_ms, session.session_id


def _status(session: SessionInfo) -> dict[str, Any]:
    return {
        "status": STATUSES.get(session.state, "working"),
        "task_id": session.current_task.get("ticket", ""),
        "heartbeat": at(session.last_heartbeat_ms),
        "current_file": session.current_file,
    }


def _tasks(present: Present) -> list[dict[str, Any]]:
    return [
        {"task_id": task.task_id, "status": task.state, "agent": task.agent, "note": task.note}
        for task in present.tasks
    ]
