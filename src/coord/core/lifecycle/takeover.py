"""One session takes over another (`/clear` in an agent tool): everything moves in one commit."""

import msgspec

from coord.core import keys
from coord.core.limits import Count
from coord.core.locks.locks import (
    LockAt,
    deadline_key,
    ended_by_time,
    locks_of,
    overlapping_locks,
    read_lock,
    touch_guard,
)
from coord.core.locks.schema import Lock, LockMoved, LockRef, SessionWaits
from coord.core.locks.wait_queue import put_waits
from coord.core.messages.groups import replace_member
from coord.core.messages.undelivered import move_messages
from coord.core.sessions.identify import ancestors, emit_update, put_session
from coord.core.sessions.queries import every_session
from coord.core.sessions.schema import Session
from coord.core.tasks.schema import Task, TaskMoved
from coord.core.transaction import Transaction


def move_all(tx: Transaction, old: Session, session: Session, now: int) -> tuple[int, int]:
    """Move locks, claims, messages and sub-agents; return how many locks and claims."""
    held = locks_of(tx, old.session_id)
    for lock_at in held:
        _move_lock(tx, lock_at, session, lent=old.children)
    claims = _move_claims(tx, old.session_id, session.session_id)
    if old.children:
        _move_children(tx, old.session_id, session)
    move_messages(tx, old.session_id, session.session_id, now)
    replace_member(tx, old.session_id, session.session_id)
    return len(held), claims


def pass_to_parent(
    tx: Transaction, held: list[LockAt], child: Session, parent: Session, now: int
) -> list[LockAt]:
    """Move the locks that hooks took for a sub-agent to its parent; return those that stay."""
    left = []
    for lock_at in held:
        has = tx.get(lock_at.resource.lock_key(parent.session_id), Lock)
        if not lock_at.lock.worktree or has is not None or ended_by_time(lock_at.lock, now) is not None:
            left.append(lock_at)
            continue
        _move_lock(tx, lock_at, parent, lent=child.children)
    return left


def _move_lock(tx: Transaction, lock_at: LockAt, session: Session, *, lent: bool) -> None:
    """Move a lock to another session, with its fence; `lent`: sub-agents may have locks under it."""
    lock = read_lock(tx, lock_at.key)
    assert lock is not None, f"{lock_at.key} was just listed"
    key = lock_at.resource.lock_key(session.session_id)
    under = "" if lock.under == session.session_id else lock.under
    own = tx.get(key, Lock)
    uses = lock.uses if own is None else tuple(dict.fromkeys((*own.uses, *lock.uses)))
    moved = msgspec.structs.replace(
        lock, owner=session.session_id, agent=session.agent or lock.agent, under=under, uses=uses
    )
    tx.delete(lock_at.key)
    tx.delete(keys.session_lock(lock.owner, lock_at.key))
    tx.put(key, moved, deadline_key(moved))
    tx.put(keys.session_lock(session.session_id, key), LockRef(key=key))
    touch_guard(tx, lock_at.resource, owner=session.session_id)
    tx.emit(LockMoved(lock.resource, lock.owner, session.session_id, moved.agent))
    for theirs in list(overlapping_locks(tx, lock_at.resource)) if lent else ():
        below = read_lock(tx, theirs.key)
        if below is not None and below.under == lock.owner:
            tx.put(theirs.key, msgspec.structs.replace(below, under=session.session_id), deadline_key(below))


def _move_children(tx: Transaction, old: str, session: Session) -> None:
    """Make the sub-agents of a session those of its successor, except the successor's own ancestors."""
    above = (session.session_id, *ancestors(tx, session.session_id))
    for child in list(every_session(tx)):
        if child.parent == old and not child.ended_ms and child.session_id not in above:
            emit_update(tx, put_session(tx, msgspec.structs.replace(child, parent=session.session_id)))
    put_session(tx, msgspec.structs.replace(session, children=True))
    waits = tx.get(keys.waits(old), SessionWaits)
    if waits is not None and waits.below:
        own = tx.get(keys.waits(session.session_id), SessionWaits) or SessionWaits()
        put_waits(tx, session.session_id, msgspec.structs.replace(own, below=(*own.below, *waits.below)))
        put_waits(tx, old, msgspec.structs.replace(waits, below=()))


def _move_claims(tx: Transaction, old: str, new: str) -> int:
    """Move the active claims of a session to another one, with their generations."""
    moved = 0
    for page in tx.pages(keys.by_session_prefix(old)):
        for found in page:
            project, task_id = keys.parts(found.key)[2:]
            task_key = keys.task(project, task_id)
            task = tx.get(task_key, Task)
            assert task is not None, f"{found.key} is an index of it"
            tx.put(task_key, msgspec.structs.replace(task, session=new), keys.due(task.expires_ms))
            tx.emit(TaskMoved(project, task_id, task.generation, old, task.agent, new))
            tx.delete(found.key)
            tx.put_marker(keys.by_session(new, project, task_id))
            moved += 1
    _move_count(tx, keys.count_session(old), keys.count_session(new))
    return moved


def _move_count(tx: Transaction, old_key: str, new_key: str) -> None:
    """Move the claim count of a session to another one; the unlimited tenant has no counts."""
    old, new = tx.get(old_key, Count), tx.get(new_key, Count)
    if old is None:
        return
    tx.delete(old_key)
    tx.put(new_key, old if new is None else Count(old.n + new.n, here=new.here))
    sessions = tx.get(keys.COUNT_SESSIONS, Count)
    if new is not None and sessions is not None:  # two sessions became one
        tx.put(keys.COUNT_SESSIONS, Count(sessions.n - 1))
