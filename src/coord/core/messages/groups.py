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
from coord.core.transaction import PAGE, Transaction

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
    if group is None and len(_names(tx)) >= GROUPS_MAX:
        raise LimitReached(f"there are {GROUPS_MAX} groups", hint="leave one: coord group leave NAME")
    members = group.members if group is not None else ()
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
    return _leave(tx, command.name, group, session)


def leave_groups(tx: Transaction, session: str) -> None:
    """Take a session that ends out of its groups."""
    for name in _names(tx):
        group = tx.get(keys.group(name), Group)
        if group is not None and session in group.members:
            _leave(tx, name, group, session)


def _leave(tx: Transaction, name: str, group: Group, session: str) -> GroupInfo:
    left = tuple(member for member in group.members if member != session)
    return _put(tx, name, left, GroupLeft(name, session))


def list_groups(tx: Transaction, _command: ListGroups, _now: int) -> list[GroupInfo]:
    """Return all groups with their members."""
    found = [(name, tx.get(keys.group(name), Group)) for name in _names(tx)]
    return [GroupInfo(name, list(group.members)) for name, group in found if group is not None]


def show_group(tx: Transaction, command: ShowGroup, _now: int) -> GroupInfo:
    """Return one group with its members."""
    return GroupInfo(command.name, [each.session_id for each in members_of(tx, command.name)])


def members_of(tx: Transaction, name: str) -> list[Session]:
    """Return the members of a group."""
    group = tx.get(keys.group(name), Group)
    if group is None:
        raise _unknown(tx, name)
    tx.prefetch(*(keys.session(member) for member in group.members))
    found = [tx.get(keys.session(member), Session) for member in group.members]
    return [session for session in found if session is not None]


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


def _names(tx: Transaction) -> list[str]:
    return [keys.parts(found.key)[1] for found in tx.scan(keys.GROUP_PREFIX, limit=PAGE)]


def _unknown(tx: Transaction, name: str) -> NotFound:
    names = ", ".join(_names(tx)[:5])
    hint = f"there are {names}" if names else f"coord group create {name} begins it"
    return NotFound(f"there is no group {name}", hint=hint)
