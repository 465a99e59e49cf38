"""The files of `/tmp/claude-coord/`, as the third founding document writes them in its §3 and §4."""

import re
from typing import Any

from coord.core.locks.commands import LockInfo
from coord.core.messages.commands import MessageInfo
from coord.core.messages.quoting import visible
from coord.core.sessions.commands import SessionInfo
from coord.core.sessions.schema import Liveness
from coord.followers.mirrors.names import safe_name, short_names
from coord.followers.mirrors.present import Present, as_json, at
from coord.followers.mirrors.writer import Tree

SCHEMA = 1
OWNED: dict[str, Any] = {"worktrees": [], "branches": [], "prs": [], "processes": {}, "files": []}
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-")
_NUMBER = re.compile(r"-(\d+)$")


def claude_coord_files(present: Present) -> Tree:
    """Return the files below the folder itself."""
    files = {"schema": f"{SCHEMA}\n".encode()}
    for session in present.sessions:
        if session.liveness is not Liveness.ENDED:
            files[f"sessions/{safe_name(session.session_id)}.json"] = as_json(_session(session))
    for lock in reversed(present.locks):  # of several readers, the first one stays
        folder = f"locks/{_lock_name(lock.resource)}"
        files[f"{folder}/owner"] = f"{visible(lock.owner)}\n".encode()
        files[f"{folder}/record.json"] = as_json(_lock(lock, present.session(lock.owner)))
    return Tree({**files, **_inboxes(present)}, ("sessions", "locks", "messages"))


def _session(session: SessionInfo) -> dict[str, Any]:
    task = session.current_task
    return {
        "schema": SCHEMA,
        "session_id": session.session_id,
        "claude_pid": session.pid,
        "claude_version": session.version,
        "cwd": session.cwd,
        "bin": session.bin,
        "started_at": at(session.started_ms),
        "last_heartbeat": at(session.last_heartbeat_ms),
        "owned_resources": {**OWNED, **session.owned_resources},
        "current_task": {
            "ticket": task.get("ticket", ""),
            "phase": task.get("phase", ""),
            "status": task.get("status") or session.state,
        },
        "blob": session.blob,
    }


def _lock(lock: LockInfo, owner: SessionInfo | None) -> dict[str, Any]:
    record = {
        "schema": SCHEMA,
        "resource": lock.resource.removeprefix("name:"),
        "owner_session_id": lock.owner,
        "owner_pid": owner.pid if owner else 0,
        "acquired_at": at(lock.acquired_ms),
        "expires_at": at(lock.expires_ms),
        "reason": lock.reason,
    }
    return {**record, "scope": "project"} if lock.scope == "project" else record


def _lock_name(text: str) -> str:
    """Return the folder of a lock: a named one by its name, others with their kind in front."""
    kind, _, rest = text.partition(":")
    return safe_name(rest, escape=":") if kind == "name" else safe_name(text)


def _inboxes(present: Present) -> dict[str, bytes]:
    names = short_names(present.messages, lambda name: name[:8] if _UUID.match(name) else name)
    return {
        f"messages/inbox-{names[session]}/{name}.json": as_json(_message(message))
        for session, messages in present.messages.items()
        for name, message in _numbered(messages)
    }


def _numbered(messages: list[MessageInfo]) -> list[tuple[str, MessageInfo]]:
    """Return messages with their file names: time and number, which sort as they were sent (MSG-5)."""
    found: dict[str, MessageInfo] = {}
    for message in sorted(messages, key=lambda each: (each.sent_ms, _number(each.id), each.id)):
        second = (at(message.sent_ms) or "").replace(":", "-")
        number = _number(message.id)
        while f"{second}-{number:03d}" in found:  # from another mailbox with the same number
            number += 1
        found[f"{second}-{number:03d}"] = message
    return list(found.items())


def _number(name: str) -> int:
    """Return the number of a message in its mailbox, which its id ends with."""
    found = _NUMBER.search(name)
    return int(found[1][-9:]) if found else 1


def _message(message: MessageInfo) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "from_session_id": message.from_session_id,
        "to_session_id": message.to_session_id,
        "sent_at": at(message.sent_ms),
        "kind": message.kind,
        "subject": message.subject,
        "body": message.body,
        "blob": message.blob,
    }
