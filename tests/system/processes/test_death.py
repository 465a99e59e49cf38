"""kill -9 of who holds, of who waits, and of who was just granted: the others go on."""

import os
import time

from coord.host.processes import describe, seen_by_all
from tests.support.process_group import Crew, Member

LONG_S = 3_600
QUICK_S = 30
"""Far less than any lease here: who is served within it was not served by time."""
STEP_MS = 5_000
"""Moves of the clock that leave whoever lives the time to renew its place in line."""


def wait_in_line(crew: Crew, member: Member, resource: str = "src/a.py") -> None:
    """Let a session ask for a lock, and see that it stands in line."""
    member.say("acquire", resource, ttl_s=LONG_S, wait_s=LONG_S)
    crew.story.until("lock.waiting", session=member.name)


def move_until_heard(crew: Crew, member: Member, most_ms: int) -> int:
    """Move the clock step by step until somebody is heard; return how far it went."""
    moved = 0
    while member.silent() and moved < most_ms:
        crew.clock.move(STEP_MS)
        moved += STEP_MS
        deadline = time.monotonic() + 1  # who waits looks every few milliseconds: it renews, or is served
        while member.silent() and time.monotonic() < deadline:
            crew.story.linger()
    return moved


def test_a_killed_holder_makes_way_at_once(crew: Crew) -> None:
    """SES: death is proven by pid and start time, long before the lease ends, and written down so.

    LCK-27, LCK-7.
    """
    holder, waiter, second = crew.players("holder", "waiter", "second")
    assert holder.ask("acquire", "src/*", ttl_s=LONG_S)["outcome"] == "granted"
    wait_in_line(crew, waiter)
    wait_in_line(crew, second)
    holder.kill()
    assert waiter.hear(within_s=QUICK_S)["outcome"] == "granted"
    ended = crew.story.until("session.ended", session="holder")
    assert ended["ending"] == "dead"
    assert f"pid {holder.process.pid} started" in ended["evidence"]
    released = crew.story.until("lock.released", session="holder")
    assert (released["ending"], released["note"]) == ("owner_dead", ended["evidence"])
    assert second.silent()
    waiter.kill()
    assert second.hear(within_s=QUICK_S)["outcome"] == "granted"


def test_a_killed_waiter_is_passed_over(crew: Crew) -> None:
    """DESIGN 6: who died in line costs those behind it nothing, or out of sight its short leases."""
    crew.stop_time()
    holder, first, second = crew.players("holder", "first", "second", own_pid=False)
    assert holder.ask("acquire", "src/a.py", ttl_s=LONG_S)["outcome"] == "granted"
    wait_in_line(crew, first)
    crew.clock.move(1)
    wait_in_line(crew, second)
    first.kill()
    holder.ask("unlock", "src/a.py")
    me = describe(os.getpid())
    in_sight = me is not None and seen_by_all(me) and not crew.on_a_server
    moved = 0 if in_sight else move_until_heard(crew, second, 40_000)
    assert second.hear(within_s=QUICK_S)["outcome"] == "granted"
    assert moved <= 30_000
    assert "first" not in {event["session"] for event in crew.story.told("lock.acquired")} or moved > 0


def grant_and_kill(crew: Crew, *, own_pid: bool) -> Member:
    """Hand the lock to a waiter that dies before it takes it over; return the one behind it."""
    crew.stop_time()
    (holder,) = crew.players("holder")
    granted, behind = crew.players("granted", "behind", own_pid=own_pid)
    assert holder.ask("acquire", "src/a.py", ttl_s=LONG_S)["outcome"] == "granted"
    assert granted.ask("stand", "src/a.py", wait_s=LONG_S) == "waiting"
    crew.clock.move(1)  # who comes within the same millisecond may be put ahead
    wait_in_line(crew, behind)
    holder.ask("unlock", "src/a.py")
    assert crew.story.told("lock.acquired", session="granted")
    granted.kill()
    return behind


def test_a_grant_that_nobody_confirms_lapses(crew: Crew) -> None:
    """DESIGN 6: a hand-off stands for 15 s; if its process cannot be known to be dead, not a moment less."""
    behind = grant_and_kill(crew, own_pid=False)
    (watcher,) = crew.players("watcher")
    for _ in range(2):
        crew.clock.move(STEP_MS)
        (lock,) = watcher.ask("locks")
        assert (lock["owner"], lock["provisional"]) == ("granted", True)
        crew.story.linger(0.2)
    assert behind.silent()
    crew.clock.move(STEP_MS)
    assert behind.hear(within_s=QUICK_S)["outcome"] == "granted"
    assert crew.story.until("lock.released", session="granted")["ending"] == "lapsed"


def test_a_granted_waiter_proven_dead_makes_way_at_once(crew: Crew) -> None:
    """A hand-off to a session whose process is proven dead does not last its 15 s."""
    behind = grant_and_kill(crew, own_pid=True)
    assert behind.hear(within_s=QUICK_S)["outcome"] == "granted"
    assert crew.story.until("lock.released", session="granted")["ending"] == "owner_dead"
