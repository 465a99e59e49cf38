"""Heartbeats, and changes to what a session reports about itself."""

from typing import Any

import msgspec

from coord.core.errors import Invalid
from coord.core.sessions.commands import Heartbeat, HeartbeatReply, UpdateSession
from coord.core.sessions.identify import ensure_session
from coord.core.sessions.schema import Session
from coord.core.sessions.state import STATE_ALIASES, STATES
from coord.core.transaction import Transaction

MERGED_BYTES_MAX = 32 * 1024


def heartbeat(tx: Transaction, command: Heartbeat, now: int) -> HeartbeatReply:
    """Record that a session is alive; write nothing shortly after the last heartbeat."""
    session = ensure_session(tx, command.caller, now)
    return HeartbeatReply(session.session_id, session.beat_ms, written=bool(tx.writes))


def apply_update(session: Session, command: UpdateSession, now: int) -> Session:
    """Return the session with the fields that the update names."""
    named = {"ticket": command.task, "phase": command.phase, "status": command.status}
    current = session.current_task | {name: value for name, value in named.items() if value is not None}
    blob = _merge(session.blob if command.blob is None else command.blob, command.merge_blob)
    owned = _merge(session.owned_resources, command.owned)
    state = STATE_ALIASES.get(command.status or "", command.status)
    reported = {"state": state, "reported_ms": now} if state in STATES else {}
    return msgspec.structs.replace(
        session,
        current_task={name: value for name, value in current.items() if value != ""},
        blob=blob,
        owned_resources=owned,
        capabilities=session.capabilities | (command.capabilities or {}),
        role=session.role if command.role is None else command.role,
        bin=session.bin if command.bin is None else command.bin,
        version=session.version if command.version is None else command.version,
        model=session.model if command.model is None else command.model,
        **reported,
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
