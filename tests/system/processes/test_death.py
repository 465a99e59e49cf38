"""kill -9 of who holds, of who waits, and of who was just granted: the others go on."""

import os
import time

from coord.host.processes import describe, seen_by_all
from tests.support.process_group import Member, ProcessGroup

LONG_S = 3_600
QUICK_S = 30
"""Far less than any lease here: who is served within it was not served by time."""
STEP_MS = 5_000
"""Moves of the clock that leave whoever lives the time to renew its place in line."""


def wait_in_line(group: ProcessGroup, member: Member, resource: str = "src/a.py") -> None:
    """Let a session ask for a lock, and see that it stands in line."""
    member.send("acquire", resource, ttl_s=LONG_S, wait_s=LONG_S)
    group.log.until("lock.waiting", session=member.name)


def move_until_heard(group: ProcessGroup, member: Member, most_ms: int) -> int:
    """Move the clock step by step until somebody is heard; return how far it went."""
    moved = 0
    while member.has_no_output() and moved < most_ms:
        group.clock.move(STEP_MS)
        moved += STEP_MS
        deadline = time.monotonic() + 1  # who waits looks every few milliseconds: it renews, or is served
        while member.has_no_output() and time.monotonic() < deadline:
            group.log.linger()
    return moved


def test_a_killed_holder_makes_way_at_once(group: ProcessGroup) -> None:
    """SES: death is proven by pid and start time, long before the lease ends, and written down so.

    LCK-27, LCK-7.
    """
    holder, waiter, second = group.scripted_sessions("holder", "waiter", "second")
    assert holder.ask("acquire", "src/*", ttl_s=LONG_S)["outcome"] == "granted"
    wait_in_line(group, waiter)
    wait_in_line(group, second)
    holder.kill()
    assert waiter.receive(within_s=QUICK_S)["outcome"] == "granted"
    ended = group.log.until("session.ended", session="holder")
    assert ended["end_reason"] == "dead"
    assert f"pid {holder.process.pid} started" in ended["evidence"]
    released = group.log.until("lock.released", session="holder")
    assert (released["end_reason"], released["note"]) == ("owner_dead", ended["evidence"])
    assert second.has_no_output()
    waiter.kill()
    assert second.receive(within_s=QUICK_S)["outcome"] == "granted"


def test_a_killed_waiter_is_passed_over(group: ProcessGroup) -> None:
    """DESIGN 6: who died in line costs those behind it nothing, or out of sight its short leases."""
    group.stop_time()
    holder, first, second = group.scripted_sessions("holder", "first", "second", own_pid=False)
    assert holder.ask("acquire", "src/a.py", ttl_s=LONG_S)["outcome"] == "granted"
    wait_in_line(group, first)
    group.clock.move(1)
    wait_in_line(group, second)
    first.kill()
    holder.ask("unlock", "src/a.py")
    me = describe(os.getpid())
    in_sight = me is not None and seen_by_all(me) and not group.on_a_server
    moved = 0 if in_sight else move_until_heard(group, second, 40_000)
    assert second.receive(within_s=QUICK_S)["outcome"] == "granted"
    assert moved <= 30_000
    assert "first" not in {event["session"] for event in group.log.events_of("lock.acquired")} or moved > 0


def grant_and_kill(group: ProcessGroup, *, own_pid: bool) -> Member:
    """Hand the lock to a waiter that dies before it takes it over; return the one behind it."""
    group.stop_time()
    (holder,) = group.scripted_sessions("holder")
    granted, behind = group.scripted_sessions("granted", "behind", own_pid=own_pid)
    assert holder.ask("acquire", "src/a.py", ttl_s=LONG_S)["outcome"] == "granted"
    assert granted.ask("enqueue", "src/a.py", wait_s=LONG_S) == "waiting"
    group.clock.move(1)  # who comes within the same millisecond may be put ahead
    wait_in_line(group, behind)
    holder.ask("unlock", "src/a.py")
    assert group.log.events_of("lock.acquired", session="granted")
    granted.kill()
    return behind


def test_a_grant_that_nobody_confirms_lapses(group: ProcessGroup) -> None:
    """DESIGN 6: a hand-off stands for 15 s; if its process cannot be known to be dead, not a moment less."""
    behind = grant_and_kill(group, own_pid=False)
    (watcher,) = group.scripted_sessions("watcher")
    for _ in range(2):
        group.clock.move(STEP_MS)
        (lock,) = watcher.ask("locks")
        assert (lock["owner"], lock["provisional"]) == ("granted", True)
        group.log.linger(0.2)
    assert behind.has_no_output()
    group.clock.move(STEP_MS)
    assert behind.receive(within_s=QUICK_S)["outcome"] == "granted"
    assert group.log.until("lock.released", session="granted")["end_reason"] == "lapsed"


def test_a_granted_waiter_proven_dead_makes_way_at_once(group: ProcessGroup) -> None:
    """A hand-off to a session whose process is proven dead does not last its 15 s."""
    behind = grant_and_kill(group, own_pid=True)
    assert behind.receive(within_s=QUICK_S)["outcome"] == "granted"
    assert group.log.until("lock.released", session="granted")["end_reason"] == "owner_dead"
