"""One session takes the place of another (`/clear` in an agent tool): what it had moves, in one commit."""

import msgspec

from coord.core import keys
from coord.core.errors import Invalid
from coord.core.events import LockMoved
from coord.core.limits import Count
from coord.core.locks.locks import (
    Held,
    Hold,
    Standing,
    ended_by_time,
    holds_meeting,
    holds_of,
    line_of,
    read_hold,
    touch_guard,
)
from coord.core.messages.message import move_messages
from coord.core.sessions.session import Session, ancestors, every_session, put_session
from coord.core.tasks.schema import Task
from coord.core.transaction import View


def replaced_session(view: View, old_name: str, session: Session) -> Session | None:
    """Return the session whose place this one takes, or refuse; None if there is none any more, or was."""
    old = view.get(keys.session(old_name), Session)
    if old is None or old.ended_ms:
        return None
    if old.process is not None and old.process != session.process:
        raise Invalid(
            f"session {old_name} lives in another process than {session.session_id}",
            hint="a session can be replaced from its own process only",
        )
    return old


def move_everything(view: View, old: Session, session: Session, now: int) -> tuple[int, int]:
    """Move locks, claims, messages and sub-agents; return how many locks and claims."""
    held = holds_of(view, old.session_id)
    for standing in held:
        _move_hold(view, standing, session, lent=old.children)
    claims = _move_claims(view, old.session_id, session.session_id)
    move_messages(view, old.session_id, session.session_id, now)
    if old.children:
        _move_children(view, old.session_id, session)
    return len(held), claims


def hand_up(view: View, held: list[Standing], child: Session, parent: Session, now: int) -> list[Standing]:
    """Give what hooks locked for a sub-agent to the session above it; return what it keeps."""
    left = []
    for standing in held:
        has = view.get(standing.resource.hold_key(parent.session_id), Hold)
        if not standing.hold.worktree or has is not None or ended_by_time(standing.hold, now) is not None:
            left.append(standing)
            continue
        _move_hold(view, standing, parent, lent=child.children)
    return left


def _move_hold(view: View, standing: Standing, session: Session, *, lent: bool) -> None:
    """Give a hold to another session, under the same fence; `lent`: with what sub-agents have under it."""
    hold = read_hold(view, standing.key)
    assert hold is not None, f"{standing.key} was just listed"
    key = standing.resource.hold_key(session.session_id)
    under = "" if hold.under == session.session_id else hold.under
    moved = msgspec.structs.replace(
        hold, owner=session.session_id, agent=session.agent or hold.agent, under=under
    )
    view.delete(standing.key)
    view.delete(keys.held(hold.owner, standing.key))
    view.put(key, moved, line_of(moved))
    view.put(keys.held(session.session_id, key), Held(key=key))
    touch_guard(view, standing.resource)
    view.emit(LockMoved(hold.resource, hold.owner, session.session_id))
    for theirs in list(holds_meeting(view, standing.resource)) if lent else ():
        below = read_hold(view, theirs.key)
        if below is not None and below.under == hold.owner:
            view.put(theirs.key, msgspec.structs.replace(below, under=session.session_id), line_of(below))


def _move_children(view: View, old: str, session: Session) -> None:
    """Let the sub-agents of a session be those of its successor, but for those that this one is below."""
    above = (session.session_id, *ancestors(view, session.session_id))
    for child in list(every_session(view)):
        if child.parent == old and not child.ended_ms and child.session_id not in above:
            put_session(view, msgspec.structs.replace(child, parent=session.session_id))
    put_session(view, msgspec.structs.replace(session, children=True))


def _move_claims(view: View, old: str, new: str) -> int:
    """Give the active claims of a session to another one, under the same generation."""
    moved = 0
    for page in view.pages(keys.by_session_prefix(old)):
        for found in page:
            project, task_id = keys.parts(found.key)[2:]
            task_key = keys.task(project, task_id)
            task = view.get(task_key, Task)
            assert task is not None, f"{found.key} is an index of it"
            view.put(task_key, msgspec.structs.replace(task, session=new), keys.due(task.expires_ms))
            view.delete(found.key)
            view.put_marker(keys.by_session(new, project, task_id))
            moved += 1
    _move_count(view, keys.count_session(old), keys.count_session(new))
    return moved


def _move_count(view: View, old_key: str, new_key: str) -> None:
    """Count the claims of a session for another one; the unlimited tenant has no counts."""
    old, new = view.get(old_key, Count), view.get(new_key, Count)
    if old is None:
        return
    view.delete(old_key)
    view.put(new_key, old if new is None else Count(old.n + new.n, here=new.here))
    sessions = view.get(keys.COUNT_SESSIONS, Count)
    if new is not None and sessions is not None:  # two sessions became one
        view.put(keys.COUNT_SESSIONS, Count(sessions.n - 1))
