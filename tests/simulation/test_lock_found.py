"""What the simulation of locks found, one scene each: the same without chance."""

import json
from typing import Any

import pytest

from coord.core.commands import Command
from coord.core.errors import CoordError, LockLost
from coord.core.identity import Caller, Evidence, Process, ProcessState
from coord.core.lifecycle.commands import Deregister, Register
from coord.core.locks.commands import (
    AcquireLocks,
    ListLocks,
    LockReply,
    Outcome,
    ReleaseLocks,
    RenewLocks,
    StealLock,
)
from coord.core.messages.commands import ReceiveMessages, SendMessage
from coord.core.sessions.commands import Heartbeat
from coord.engine.engine import Engine
from coord.stores.memory import MemoryDatabase

NOW = 1_700_000_000_000
REPOSITORY = "repo"


class Office:
    """Several engines on one store, each with a clock of its own."""

    def __init__(self) -> None:
        self.database = MemoryDatabase("memory:", "shared")
        self.clocks = [NOW, NOW]
        self.dead: set[int] = set()
        self.engines = [self._engine(number) for number in range(2)]

    def _engine(self, number: int) -> Engine:
        return Engine(self.database, "local", clock=lambda: self.clocks[number], probe=self._probe)

    def _probe(self, process: Process) -> Evidence:
        return Evidence(ProcessState.DEAD if process.pid in self.dead else ProcessState.ALIVE)

    def pass_time(self, ms: int) -> None:
        self.clocks = [clock + ms for clock in self.clocks]

    def call(self, command: Command, engine: int = 0) -> Any:
        return self.engines[engine].call(command)

    def lock(self, session: str, *resources: str, engine: int = 0, **how: Any) -> LockReply:
        caller = how.pop("caller", Caller(session))
        reply: LockReply = self.call(
            AcquireLocks(caller, REPOSITORY, resources, wait_id=session, **how), engine
        )
        return reply

    def release(self, session: str, *resources: str, engine: int = 0) -> Any:
        return self.call(ReleaseLocks(Caller(session), REPOSITORY, resources), engine)

    def holders(self) -> dict[str, str]:
        locks = self.call(ListLocks(Caller("auditor")))
        return {lock.resource: lock.owner for lock in locks}

    def subjects(self, session: str) -> list[str]:
        reply = self.call(ReceiveMessages(Caller(session), drain=True))
        return [message.subject for message in reply.messages]

    def events(self, kind: str) -> list[dict[str, Any]]:
        entries = self.database.log("local").tail(0, 1_000)
        events = [json.loads(event) for entry in entries for event in entry.events]
        return [event for event in events if event["event"] == kind]


@pytest.fixture
def office() -> Office:
    return Office()


def _expire_unseen(office: Office) -> None:
    """`ann` gets a short lease that the second engine does not know of when it looks for deadlines next."""
    office.call(Heartbeat(Caller("eve")), engine=1)
    assert office.lock("ann", "file:docs/x.md", ttl_ms=100).ok
    office.clocks[1] += 150


def test_a_hand_off_ends_the_expired_hold_that_it_passes_over(office: Office) -> None:
    """Rule 3: a renewal that was decided in time but comes late does not revive what was given to another."""
    office.lock("ann", "file:docs/x.md")
    office.lock("bob", "file:src")
    assert office.lock("cid", "file:**/*.py", wait_ms=60_000).outcome is Outcome.WAITING
    office.call(Heartbeat(Caller("eve")), engine=1)
    office.call(RenewLocks(Caller("ann"), REPOSITORY, ("file:docs/x.md",), ttl_ms=100))
    office.clocks[1] += 150
    office.release("bob", "file:src", engine=1)
    with pytest.raises(CoordError):
        office.call(RenewLocks(Caller("ann"), REPOSITORY, ("file:docs/x.md",)))
    assert office.holders() == {"file:**/*.py": "cid"}


def test_a_theft_ends_the_expired_hold_that_it_passes_over(office: Office) -> None:
    """Rule 3, for a thief whose glob covers what another had besides."""
    office.lock("bob", "file:src", ttl_ms=400_000)
    _expire_unseen(office)
    theft = StealLock(Caller("cid"), REPOSITORY, ("file:**/*.py",), force=True, reason="urgent")
    office.call(theft, engine=1)
    with pytest.raises(CoordError):
        office.call(RenewLocks(Caller("ann"), REPOSITORY, ("file:docs/x.md",)))
    assert office.holders() == {"file:**/*.py": "cid"}


def test_a_lease_that_ran_out_proves_nothing_although_nobody_wrote_it_down(office: Office) -> None:
    """DESIGN §5: a deadline acts when it passes, not when a sweep comes by."""
    _expire_unseen(office)
    with pytest.raises(LockLost):
        office.release("ann", "file:docs/x.md", engine=1)


def test_a_theft_serves_who_waits_for_the_rest(office: Office) -> None:
    """What came free with a stolen glob, and is not the thief's, goes to those in line at once."""
    office.lock("ann", "file:src/**")
    assert office.lock("bob", "file:src/b.py", wait_ms=60_000).outcome is Outcome.WAITING
    theft = StealLock(Caller("cid"), REPOSITORY, ("file:src/a.py",), force=True, reason="urgent")
    office.call(theft)
    assert office.holders() == {"file:src/a.py": "cid", "file:src/b.py": "bob"}


def test_a_refusal_names_the_fence_of_who_was_just_handed_the_lock(office: Office) -> None:
    """DESIGN §6: a denial shows the holder with its fence, also where this very commit granted it."""
    _expire_unseen(office)
    assert office.lock("bob", "file:docs/x.md", wait_ms=60_000).outcome is Outcome.WAITING
    reply = office.lock("cid", "file:docs/x.md", engine=1)
    assert reply.outcome is Outcome.HELD
    assert reply.holder is not None
    assert reply.holder.owner == "bob"
    assert reply.holder.fence == office.database.log("local").seen.offset


def test_a_circle_of_bids_is_broken_after_the_grace(office: Office) -> None:
    """DLK-7, DLK-22: the victim's lock is marked, and free for the asker when its grace is over."""
    office.lock("ann", "name:a")
    office.lock("bob", "name:b", preemptible=True)
    for _ in range(9):
        assert not office.lock("ann", "name:b").ok
        assert not office.lock("bob", "name:a").ok
        office.pass_time(6_000)
    reply = office.lock("ann", "name:b")
    assert [event["victim"] for event in office.events("lock.deadlock")] == ["bob", "bob"]
    assert reply.ok
    assert office.holders() == {"name:a": "ann", "name:b": "ann"}


def test_a_sub_agents_lock_stays_while_another_lock_of_its_parent_covers_it(office: Office) -> None:
    """DESIGN §5: the child's grant ends with what it was granted under, not with any lock of its parent."""
    office.lock("ann", "file:src")
    office.lock("ann", "file:**/*.py", mode="read", ttl_ms=1_000)
    office.lock("kid", "file:src/a.py", caller=Caller("kid", parent="ann"))
    office.pass_time(2_000)
    office.call(Heartbeat(Caller("eve")))
    assert len(office.events("lock.released")) == 1
    assert office.holders() == {"file:src": "ann", "file:src/a.py": "kid"}
    office.release("ann", "file:src")
    assert office.holders() == {}


def test_nothing_is_handed_to_a_session_that_is_proven_dead(office: Office) -> None:
    """SES-19: who waits in the name of the dead is passed over; no grant begins and ends in one commit."""
    office.lock("ann", "file:a")
    lived = Caller("bob", process=Process(7, 7))
    office.lock("bob", "file:a", caller=lived, wait_ms=60_000, leased=False)
    office.lock("cid", "file:a", wait_ms=60_000, leased=False)
    office.dead.add(7)
    office.pass_time(30_000)
    office.release("ann", "file:a")
    assert office.holders() == {"file:a": "cid"}
    assert all(event["fence"] for event in office.events("lock.released"))


def _broadcast(office: Office, ttl_ms: int = 0) -> None:
    for name in ("ann", "bob"):
        office.call(Register(caller=Caller(name)))
    office.call(SendMessage(caller=Caller("ann"), kind="status", subject="lunch", ttl_ms=ttl_ms))


def test_a_broadcast_that_nobody_read_in_time_comes_back(office: Office) -> None:
    """Nothing vanishes silently: the sender of a broadcast learns who has not read it."""
    _broadcast(office, ttl_ms=1_000)
    office.pass_time(2_000)
    assert office.subjects("ann") == ['[System] "lunch": nobody read it in time']
    assert [event["session"] for event in office.events("message.undelivered")] == ["bob"]
    assert office.subjects("bob") == []


def test_a_broadcast_to_a_session_that_is_replaced_reaches_its_successor(office: Office) -> None:
    """A `/clear` takes over what waits, broadcasts included."""
    _broadcast(office)
    office.call(Register(caller=Caller("bob-2"), replaces="bob", force=True, reason="a new terminal"))
    assert office.subjects("bob-2") == ["lunch"]


def test_a_session_that_comes_back_is_not_sent_its_past(office: Office) -> None:
    """What was delivered, or returned when a session left, is not delivered under the same id again."""
    _broadcast(office)
    assert office.subjects("bob") == ["lunch"]
    office.call(Deregister(Caller("bob")))
    office.call(Register(caller=Caller("bob")))
    assert office.subjects("bob") == []
