"""The files of `.contract/`, as the first founding document writes them (CFL-1, CFL-14, CFL-20)."""

import uuid
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from coord.core.locks.commands import LockInfo
from coord.core.plans.commands import TaskInfo
from coord.core.sessions.commands import SessionInfo
from coord.core.sessions.schema import Liveness
from coord.followers.mirrors.names import safe_name, short_names
from coord.followers.mirrors.present import Present, as_json, at
from coord.followers.mirrors.writer import Tree

FOLDERS = ("tickets", "status", "queue", "queue/claiming", "signals", "logs")
STATES = {"working": "working", "blocked": "blocked", "crashed": "crashed", "failed": "error"}
"""The states of a session that this layout knows (STA-3, STA-13); every other one is idle."""
_RANK = ("working", "blocked", "error", "idle", "crashed")


def contract_files(present: Present, root: str) -> Tree:
    """Return the files of `.contract/` in the repository's top folder `root`."""
    files = {**_tickets(present, root), **_statuses(present), **_tasks(present)}
    return Tree(
        {f".contract/{name}": as_json(content) for name, content in files.items()},
        [f".contract/{name}" for name in FOLDERS],
    )


def ticket_id(lock: LockInfo) -> str:
    """Return the id of a lock's ticket: a UUID that follows from the lock, so it stays the same."""
    digest = sha256(f"{lock.resource}\0{lock.owner}\0{lock.fence}".encode("utf-8", "surrogatepass")).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))


def _tickets(present: Present, root: str) -> dict[str, Any]:
    files: dict[str, Any] = {}
    for lock in present.locks:
        name, owner = ticket_id(lock), lock.agent or lock.owner
        session = present.session(lock.owner)
        ticket: dict[str, Any] = {
            "ticket_id": name,
            "resource": _resource(lock.resource, root),
            "operation": lock.mode,
            "owner": owner,
            "pid": session.pid if session else 0,
            "acquired_at": at(lock.acquired_ms),
            "expires_at": at(lock.expires_ms),
            "priority": lock.priority,
            "metadata": {"task": lock.reason or _task_of(session), "session": lock.owner},
        }
        if lock.preempted_by:
            by = present.agent_of(lock.preempted_by)
            ticket["preempted_by"] = by
            signal = {"ticket_id": name, "resource": ticket["resource"], "requested_by": by}
            files[f"signals/{safe_name(owner)}_release_{name}"] = signal
        files[f"tickets/ticket_{name}.json"] = ticket
    return files


def _resource(text: str, root: str) -> str:
    """Return a resource as this document names it: a file by its absolute path, others by their name."""
    kind, _, rest = text.partition(":")
    if kind in ("file", "glob"):
        return root if rest == "." else f"{root}/{rest}"
    return rest if kind == "name" else text


def _task_of(session: SessionInfo | None) -> str:
    return str(session.current_task.get("ticket") or "") if session else ""


def _statuses(present: Present) -> dict[str, Any]:
    """Return one status for each agent; of several sessions, that of the one that does most (STA-1)."""
    shown: dict[str, tuple[int, int, str]] = {}
    files: dict[str, Any] = {}
    for session in present.sessions:
        state = STATES.get(session.state, "idle")
        if session.liveness is Liveness.ENDED and session.state != "crashed":
            continue
        agent = session.agent or session.session_id
        rank = (_RANK.index(state), -session.started_ms, session.session_id)
        if agent not in shown or rank < shown[agent]:
            shown[agent] = rank
            files[f"status/{safe_name(agent)}.json"] = {
                "agent": agent,
                "state": state,
                "current_task": _current_task(present, session),
                "workload": _workload(present, agent),
                "last_heartbeat": at(session.last_heartbeat_ms),
            }
    return files


def _current_task(present: Present, session: SessionInfo) -> dict[str, Any] | None:
    """Return the work of a session, with its newest ticket; None if it has neither claim nor lock."""
    task = session.current_task
    held = [lock for lock in present.locks if lock.owner == session.session_id]
    if session.liveness is Liveness.ENDED or not (held or task):
        return None
    newest = held[-1] if held else None
    started = int(task.get("started_ms") or 0) or (newest.acquired_ms if newest else 0)
    ends = int(task.get("estimated_completion_ms") or 0) or (newest.expires_ms if newest else 0)
    return {
        "ticket_id": ticket_id(newest) if newest else None,
        "started_at": at(started or session.started_ms),
        "estimated_completion": at(ends),
    }


def _workload(present: Present, agent: str) -> dict[str, Any]:
    """Return the tasks that wait for an agent, and how long its tasks took on average (STA-8)."""
    waiting = sum(task.assignee == agent for task in (*present.queue.ready, *present.queue.waiting))
    known = present.agents.get(agent)
    records = list(known.track_record.values()) if known else []
    done = sum(record.done for record in records)
    took_s = sum(record.took_s for record in records)
    return {"queue_depth": waiting, "avg_task_duration_sec": round(took_s / done) if done else 0}


def _tasks(present: Present) -> dict[str, Any]:
    queue = present.queue
    every = [*queue.working, *queue.ready, *queue.waiting]
    names = short_names((task.task_id for task in every), lambda name: name.removeprefix("task-"))
    files: dict[str, Any] = {
        f"queue/task_{names[task.task_id]}.json": _task(task) for task in (*queue.ready, *queue.waiting)
    }
    return {**files, **_claimed(queue.working, names)}


def _claimed(tasks: Iterable[TaskInfo], names: dict[str, str]) -> dict[str, Any]:
    files = {}
    for task in tasks:
        agent = safe_name(task.agent or task.session_id, escape=".")
        files[f"queue/claiming/task_{names[task.task_id]}.{agent}.json"] = {
            **_task(task),
            "generation": task.generation,
            "lease_expires_at": at(task.expires_ms),
        }
    return files


def _task(task: TaskInfo) -> dict[str, Any]:
    return {
        "task_id": task.task_id,
        "description": task.description,
        "type": task.type,
        "priority": task.priority,
        "created_at": at(task.created_ms),
        "requirements": task.requirements,
    }
