"""Processes that wait for each other in a circle: one gives way, at once, and all others get through."""

from typing import Any

import pytest

from tests.support.process_group import Member, ProcessGroup

LONG_S = 3_600
QUICK_S = 30
"""Far less than the waits and leases here."""


def see_through(members: list[Member]) -> dict[str, Any]:
    """Hear what everybody was told, and let each give back what it has; return the answers by session."""
    replies = {}
    waiting = list(members)
    while waiting:
        member = Member.first_with_output(waiting, QUICK_S)
        waiting.remove(member)
        replies[member.name] = member.receive()
        member.ask("unlock")
    return replies


@pytest.mark.parametrize("parties", [2, 4])
def test_a_circle_has_one_victim_and_the_others_get_through(group: ProcessGroup, parties: int) -> None:
    """DLK: found when the last wait begins and broken in the same commit, with one victim that is told.

    DLK-24, DLK-21.
    """
    names = [f"party-{number}" for number in range(parties)]
    members = group.scripted_sessions(*names)
    for number, member in enumerate(members):
        assert member.ask("acquire", f"src/{number}.py", ttl_s=LONG_S)["outcome"] == "granted"
    for number, member in enumerate(members):
        member.send("acquire", f"src/{(number + 1) % parties}.py", ttl_s=LONG_S, wait_s=LONG_S)
    replies = see_through(members)
    (victim,) = [name for name, reply in replies.items() if reply["outcome"] == "deadlock"]
    assert set(replies[victim]["cycle"]) == set(names)
    assert all(reply["outcome"] == "granted" for name, reply in replies.items() if name != victim)
    (found,) = group.log.events_of("lock.deadlock")
    assert (found["victim"], found["resolved"]) == (victim, True)
    (revoked,) = group.log.events_of("lock.released", end_reason="deadlock")
    assert revoked["session"] == victim
