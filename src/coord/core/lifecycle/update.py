"""Change what a session reports about itself; one that reports its end gives everything back."""

import msgspec

from coord.core import keys
from coord.core.locks.locks import end_lock, locks_of
from coord.core.locks.schema import EndReason
from coord.core.locks.wait_queue import grant_waiters
from coord.core.sessions.commands import UpdateReply, UpdateSession
from coord.core.sessions.identify import emit_update, ensure_session, put_session
from coord.core.sessions.state import is_terminal
from coord.core.sessions.update import apply_update
from coord.core.tasks.activity import describe
from coord.core.tasks.orphans import end_claims
from coord.core.tasks.types import ReleaseReason
from coord.core.transaction import Transaction


def update_session(tx: Transaction, command: UpdateSession, now: int) -> UpdateReply:
    """Change the fields that the command names; keep the others."""
    session = ensure_session(tx, command.caller, now)
    changed = apply_update(session, command, now)
    if changed != session:
        changed = put_session(tx, msgspec.structs.replace(changed, beat_ms=now))
        emit_update(tx, changed)
    released: list[str] = []
    returned: list[str] = []
    if command.status is not None and is_terminal(changed.state):
        released, returned = _give_back(tx, session.session_id, changed.state, now)
    (shown,) = describe(tx, [changed], now, blockers=False)
    return UpdateReply(**msgspec.structs.asdict(shown), released=released, returned=returned)


def _give_back(tx: Transaction, name: str, state: str, now: int) -> tuple[list[str], list[str]]:
    """Release the locks and return the tasks of a session that reports its end (STA-21)."""
    held = locks_of(tx, name)
    claims = [found.key for page in tx.pages(keys.by_session_prefix(name)) for found in page]
    freed = end_claims(tx, name, ReleaseReason.VOLUNTARY, f"its session reported {state}", now)
    for lock_at in held:
        freed += end_lock(tx, lock_at, EndReason.RELEASED, now)
    grant_waiters(tx, freed, now)
    returned = [keys.parts(key)[-1] for key in claims]
    return [lock_at.lock.resource for lock_at in held], returned
