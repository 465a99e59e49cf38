"""Groups of sessions: a message to `group:NAME` reaches every member.

A member is a session. A session that ends leaves its groups; one that replaces another takes its place.
"""

import msgspec

from coord.core import keys
from coord.core.errors import LimitReached, NotFound, Refused
from coord.core.messages.commands import GroupInfo, JoinGroup, LeaveGroup, ListGroups, ShowGroup
from coord.core.messages.schema import Group, GroupJoined, GroupLeft
from coord.core.sessions.identify import ensure_session
from coord.core.sessions.schema import Session
from coord.core.transaction import Transaction

GROUPS_MAX = 100
MEMBERS_MAX = 100


def join_group(tx: Transaction, command: JoinGroup, now: int) -> GroupInfo:
    """Join a group, or with `create` begin one."""
    session = ensure_session(tx, command.caller, now).session_id
    group = tx.get(keys.group(command.name), Group)
    if group is None and not command.create:
        raise _unknown(tx, command.name)
    if group is not None and command.create:
        raise Refused(
            f"the group {command.name} exists already", hint=f"coord group join {command.name} joins it"
        )
    if group is None:
        _make_room(tx)
    members = tuple(each.session_id for each in _present(tx, group or Group()))
    if session in members:
        return GroupInfo(command.name, list(members))
    if len(members) >= MEMBERS_MAX:
        raise LimitReached(f"{command.name} has {len(members)} members", hint="begin another group")
    return _put(tx, command.name, (*members, session), GroupJoined(command.name, session))


def leave_group(tx: Transaction, command: LeaveGroup, now: int) -> GroupInfo:
    """Leave a group; the group ends with its last member."""
    session = ensure_session(tx, command.caller, now).session_id
    group = tx.get(keys.group(command.name), Group)
    if group is None:
        raise _unknown(tx, command.name)
    if session not in group.members:
        raise NotFound(f"{session} is not in the group {command.name}", hint="coord group list shows all")
    left = tuple(each.session_id for each in _present(tx, group) if each.session_id != session)
    return _put(tx, command.name, left, GroupLeft(command.name, session))


def list_groups(tx: Transaction, _command: ListGroups, _now: int) -> list[GroupInfo]:
    """Return all groups with their present members."""
    found = [(name, tx.get(keys.group(name), Group)) for name in _names(tx)]
    return [
        GroupInfo(name, [each.session_id for each in _present(tx, group)])
        for name, group in found
        if group is not None
    ]


def show_group(tx: Transaction, command: ShowGroup, _now: int) -> GroupInfo:
    """Return one group with its present members."""
    return GroupInfo(command.name, [each.session_id for each in members_of(tx, command.name)])


def members_of(tx: Transaction, name: str) -> list[Session]:
    """Return the members of a group that have not ended."""
    group = tx.get(keys.group(name), Group)
    if group is None:
        raise _unknown(tx, name)
    return _present(tx, group)


def replace_member(tx: Transaction, session: str, successor: str) -> None:
    """Put a session in the place of the one that it replaces."""
    for name in _names(tx):
        group = tx.get(keys.group(name), Group)
        if group is not None and session in group.members:
            members = tuple(successor if each == session else each for each in group.members)
            tx.put(keys.group(name), msgspec.structs.replace(group, members=tuple(dict.fromkeys(members))))


def _put(tx: Transaction, name: str, members: tuple[str, ...], event: GroupJoined | GroupLeft) -> GroupInfo:
    if members:
        tx.put(keys.group(name), Group(members=members))
    else:
        tx.delete(keys.group(name))
    tx.emit(event)
    return GroupInfo(name, list(members))


def _present(tx: Transaction, group: Group) -> list[Session]:
    tx.prefetch(*(keys.session(name) for name in group.members))
    found = [tx.get(keys.session(name), Session) for name in group.members]
    return [session for session in found if session is not None and not session.ended_ms]


def _names(tx: Transaction) -> list[str]:
    return [keys.parts(found.key)[1] for found in tx.scan(keys.GROUP_PREFIX, limit=GROUPS_MAX + 1)]


def _make_room(tx: Transaction) -> None:
    """Delete groups without members if there are too many groups; refuse if that does not help."""
    names = _names(tx)
    if len(names) < GROUPS_MAX:
        return
    empty = [name for name in names if not _present(tx, tx.get(keys.group(name), Group) or Group())]
    for name in empty:
        tx.delete(keys.group(name))
    if not empty:
        raise LimitReached(f"there are {len(names)} groups", hint="leave one: coord group leave NAME")


def _unknown(tx: Transaction, name: str) -> NotFound:
    names = ", ".join(_names(tx)[:5])
    hint = f"there are {names}" if names else f"coord group create {name} begins it"
    return NotFound(f"there is no group {name}", hint=hint)
