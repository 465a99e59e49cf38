"""Groups: who is in one, and for how long."""

from typing import Any

import pytest

from coord.core.errors import LimitReached, NotFound, Refused
from coord.core.lifecycle.commands import Register
from coord.core.messages.commands import JoinGroup, LeaveGroup, ListGroups, ShowGroup
from tests.support.lock_harness import LockHarness
from tests.support.message_calls import send


def join(harness: LockHarness, name: str, group: str = "ui", *, create: bool = False) -> Any:
    return harness.engine.call(JoinGroup(caller=harness.who(name), name=group, create=create))


def leave(harness: LockHarness, name: str, group: str = "ui") -> Any:
    return harness.engine.call(LeaveGroup(caller=harness.who(name), name=group))


def members(harness: LockHarness, group: str = "ui") -> list[str]:
    found: list[str] = harness.engine.call(ShowGroup(caller=harness.who("ann"), name=group)).members
    return found


def test_join_and_leave(harness: LockHarness) -> None:
    """MSG-18: a session joins once, leaves once, and the last one ends the group."""
    assert join(harness, "ann", create=True).members == ["ann"]
    assert join(harness, "bob").members == ["ann", "bob"]
    assert join(harness, "bob").members == ["ann", "bob"]
    with pytest.raises(Refused, match="exists already"):
        join(harness, "eve", create=True)
    assert leave(harness, "ann").members == ["bob"]
    with pytest.raises(NotFound, match="not in the group"):
        leave(harness, "ann")
    leave(harness, "bob")
    with pytest.raises(NotFound, match="no group ui"):
        send(harness, "ann", "group:ui", "x")
    assert [event["session"] for event in harness.events("group.joined")] == ["ann", "bob"]
    assert [event["session"] for event in harness.events("group.left")] == ["ann", "bob"]


def test_who_ends_leaves(harness: LockHarness) -> None:
    """MSG-18: a session that ended gets nothing more; one that replaces it takes its place."""
    join(harness, "ann", create=True)
    join(harness, "bob")
    harness.engine.call(Register(caller=harness.who("new"), replaces="bob", force=True, reason="it hangs"))
    assert members(harness) == ["ann", "new"]
    harness.leave("new")
    assert members(harness) == ["ann"]
    harness.beat("new")
    assert members(harness) == ["ann"], "who begins again has to join again"
    with pytest.raises(NotFound, match="no other session belongs to group ui"):
        send(harness, "ann", "group:ui", "x")


def test_groups_and_members_are_limited(harness: LockHarness) -> None:
    """MSG-18: a hundred members and a hundred groups; an empty group makes room for another."""
    join(harness, "ann", create=True)
    for number in range(99):
        join(harness, f"s-{number}")
    with pytest.raises(LimitReached, match="100 members"):
        join(harness, "bob")
    for number in range(99):
        join(harness, "bob", f"g-{number}", create=True)
    with pytest.raises(LimitReached, match="100 groups"):
        join(harness, "bob", "more", create=True)
    harness.leave("bob")
    assert join(harness, "eve", "more", create=True).members == ["eve"]
    listed = harness.engine.call(ListGroups(harness.who("eve")))
    assert [group.name for group in listed] == ["more", "ui"]
