"""Heartbeats, and changes to what a session reports about itself."""

from typing import Any

import msgspec

from coord.core.errors import Invalid
from coord.core.sessions.commands import Heartbeat, HeartbeatReply, SessionInfo, UpdateSession
from coord.core.sessions.identify import ensure_session, put_session
from coord.core.sessions.queries import session_info
from coord.core.sessions.schema import Session, SessionUpdated
from coord.core.transaction import Transaction

MERGED_BYTES_MAX = 32 * 1024
STATES = (
    "starting",
    "idle",
    "working",
    "blocked",
    "stopping",
    "completed",
    "failed",
    "crashed",
    "terminated",
)
STATE_ALIASES = {
    "running": "working",
    "creating": "starting",
    "exited": "completed",
    "pending": "idle",
    "in_progress": "working",
    "done": "completed",
    "error": "failed",
}
"""Other names that the founding documents use for these states (CFL-11)."""


def heartbeat(tx: Transaction, command: Heartbeat, now: int) -> HeartbeatReply:
    """Record that a session is alive; write nothing shortly after the last heartbeat."""
    session = ensure_session(tx, command.caller, now)
    return HeartbeatReply(session.session_id, session.beat_ms, written=bool(tx.writes))


def update_session(tx: Transaction, command: UpdateSession, now: int) -> SessionInfo:
    """Change the fields that the command names; keep the others."""
    session = ensure_session(tx, command.caller, now)
    changed = apply_update(session, command)
    if changed != session:
        changed = put_session(tx, msgspec.structs.replace(changed, beat_ms=now))
        tx.emit(SessionUpdated(session.session_id, changed.state))
    return session_info(changed, now, None)


def apply_update(session: Session, command: UpdateSession) -> Session:
    """Return the session with the fields that the update names."""
    named = {"ticket": command.task, "phase": command.phase, "status": command.status}
    current = session.current_task | {name: value for name, value in named.items() if value is not None}
    blob = _merge(session.blob if command.blob is None else command.blob, command.merge_blob)
    owned = _merge(session.owned_resources, command.owned)
    state = STATE_ALIASES.get(command.status or "", command.status)
    return msgspec.structs.replace(
        session,
        current_task={name: value for name, value in current.items() if value != ""},
        blob=blob,
        owned_resources=owned,
        capabilities=session.capabilities | (command.capabilities or {}),
        state=state if state in STATES else session.state,
        role=session.role if command.role is None else command.role,
        bin=session.bin if command.bin is None else command.bin,
        version=session.version if command.version is None else command.version,
    )


def _merge(before: dict[str, Any], more: dict[str, Any] | None) -> dict[str, Any]:
    """Return both merged, or refuse: two small objects can add up to one that is too large."""
    merged = before if more is None else {**before, **more}
    if more is not None and len(msgspec.json.encode(merged)) > MERGED_BYTES_MAX:
        raise Invalid(
            f"the merged blob would be larger than {MERGED_BYTES_MAX} bytes",
            hint="replace it instead of merging",
        )
    return merged
