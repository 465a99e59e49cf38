"""The rules of locks, one by one: what ends a hold, who may take it, and what each step costs."""

from collections.abc import Callable
from typing import Any

import pytest

from coord.core.errors import CoordError, Invalid, NotFound, Refused
from coord.core.identity import Process, ProcessState
from coord.core.locks.commands import AcquireLocks, CheckLocks, ListLocks, ReleaseLocks, RenewLocks
from coord.core.locks.resources import parse_resource
from tests.support.lock_harness import REPOSITORY, LockHarness

EXPIRED, DEAD, SILENT, ALIVE, UNKNOWN = "expired", "dead", "silent", "alive", "unknown"
PROFILES = {"file": "file:a", "name": "name:a", "ticket": "file:a"}


@pytest.fixture
def harness() -> LockHarness:
    return LockHarness()


def refused(code: str, ask: Callable[[], Any]) -> str:
    """Check that a call is refused with this code; return what it says."""
    with pytest.raises(CoordError) as caught:
        ask()
    assert caught.value.code == code, caught.value
    assert caught.value.hint, "a refusal names the next step"
    return str(caught.value)


@pytest.mark.parametrize(
    ("profile", "owner", "granted"),
    [
        ("file", EXPIRED, True),
        ("file", DEAD, True),
        ("file", SILENT, False),
        ("file", ALIVE, False),
        ("file", UNKNOWN, False),
        ("name", EXPIRED, False),
        ("name", DEAD, False),
        ("name", SILENT, False),
        ("name", ALIVE, False),
        ("name", UNKNOWN, False),
        ("ticket", EXPIRED, True),
        ("ticket", DEAD, True),
        ("ticket", SILENT, True),
        ("ticket", ALIVE, False),
        ("ticket", UNKNOWN, False),
    ],
)
def test_what_ends_a_hold(harness: LockHarness, profile: str, owner: str, granted: bool) -> None:
    """CFL-6, CFL-8, LCK-27, LCK-38, LCK-77, SCH-4: what an acquire may pass over, by profile and owner."""
    harness.pids["ann"] = 7
    harness.life[7] = {DEAD: ProcessState.DEAD, ALIVE: ProcessState.ALIVE}.get(owner, ProcessState.UNKNOWN)
    ttl = 30_000 if owner == EXPIRED else 600_000
    first = harness.lock("ann", PROFILES[profile], ttl=ttl, profile=profile)
    harness.pass_time(121_000 if owner == SILENT else 20_000)
    if owner == EXPIRED:
        harness.beat("ann")
        harness.pass_time(10_000)
    reply = harness.lock("bob", PROFILES[profile], profile=profile)
    assert reply.ok is granted
    if granted:
        assert reply.locks[0].fence > first.locks[0].fence
    else:
        assert (reply.holder.owner, reply.position) == ("ann", 1)


def test_ticket_of_a_living_owner_outlasts_its_lease(harness: LockHarness) -> None:
    """LCK-27, CFL-6, AMB-4: past its lease a ticket stands as long as its owner's process is seen alive."""
    harness.pids["ann"], harness.life[7] = 7, ProcessState.ALIVE
    harness.lock("ann", "file:a", ttl=30_000, profile="ticket")
    harness.pass_time(100_000)
    assert not harness.lock("bob", "file:a").ok
    harness.life[7] = ProcessState.UNKNOWN
    assert harness.lock("cid", "file:a").ok


def test_silent_owner_keeps_its_other_locks_while_it_lives(harness: LockHarness) -> None:
    """SCN-24: two minutes of silence end a ticket; a process that is seen alive is not declared dead."""
    harness.pids["ann"], harness.life[7] = 7, ProcessState.ALIVE
    harness.lock("ann", "file:t", profile="ticket", ttl=900_000)
    harness.lock("ann", "file:f", ttl=900_000)
    harness.pass_time(121_000)
    assert harness.lock("bob", "file:t").ok
    assert ("ann", "file:f") in harness.held()


@pytest.mark.parametrize("silent", [299_000, 300_000])
@pytest.mark.parametrize("ttl", [599_000, 700_000])
@pytest.mark.parametrize("age", [599_999, 600_000])
def test_strict_steal(harness: LockHarness, silent: int, ttl: int, age: int) -> None:
    """LCK-50, CFL-7, AMB-23: stale owner AND lease over AND ten minutes old; each alone is not enough."""
    first = harness.lock("ann", "name:n", ttl=ttl)
    harness.pass_time(age - silent)
    harness.beat("ann")
    harness.pass_time(silent)
    missing = [silent < 300_000, ttl > age, age < 600_000]
    if any(missing):
        said = refused("not_stealable", lambda: harness.steal("bob", "name:n"))
        words = ["heard of", "lease lasts", "old (needs"]
        assert [word in said for word in words] == missing
        assert harness.held() == {("ann", "name:n")}
    else:
        stolen = harness.steal("bob", "name:n")
        assert stolen.locks[0].fence > first.locks[0].fence
        assert "took your lock on name:n" in harness.told("ann", "preempt")[0]


@pytest.mark.parametrize("life", [ProcessState.ALIVE, ProcessState.UNKNOWN, ProcessState.DEAD])
def test_steal_from_a_dead_owner(harness: LockHarness, life: ProcessState) -> None:
    """CFL-7, LCK-51: --dead-owner needs a proven death, then neither age nor lease matter."""
    harness.pids["ann"], harness.life[7] = 7, life
    harness.lock("ann", "name:n", "file:f")
    harness.pass_time(400_000)
    if life is ProcessState.DEAD:
        assert harness.steal("bob", "name:n", dead_owner=True).ok
        assert harness.held() == {("bob", "name:n")}
        refused("dead", lambda: harness.lock("ann", "file:other"))
    else:
        refused("not_stealable", lambda: harness.steal("bob", "name:n", dead_owner=True))


def test_steal_by_force_is_audited(harness: LockHarness) -> None:
    """LCK-52, CFL-7: --force needs a reason; event and record keep it, and the old owner is refused."""
    fence = harness.lock("ann", "name:n").locks[0].fence
    with pytest.raises(Invalid):
        harness.steal("bob", "name:n", force=True)
    harness.steal("bob", "name:n", force=True, reason="stuck")
    (ended,) = harness.events("lock.released")
    assert (ended["end_reason"], ended["by"], ended["note"]) == ("stolen", "bob", "by force: stuck")
    refused("not_owner", lambda: harness.renew("ann", "name:n", fence=fence))
    refused("not_owner", lambda: harness.release("ann", "name:n"))
    assert not harness.check("ann", "name:n", fence=fence).free
    with pytest.raises(NotFound):
        harness.steal("cid", "name:nobody-has-it")


def test_steal_serves_what_else_came_free(harness: LockHarness) -> None:
    """LCK-35: who waits for another part of a stolen glob gets it in the same commit."""
    harness.lock("ann", "file:src/*")
    waiting = harness.wait("cid", "file:src/b")
    harness.steal("bob", "file:src/a", force=True, reason="stuck")
    assert harness.confirm("cid", waiting).ok


@pytest.mark.parametrize(("priority", "asked"), [(4, False), (5, False), (6, True)])
def test_preempt_needs_a_higher_priority(harness: LockHarness, priority: int, asked: bool) -> None:
    """Only strictly higher priority may ask; the holder keeps it for the grace.

    CFL-16, LCK-28, LCK-30, LCK-10.
    """
    harness.lock("ann", "file:a", priority=5)
    if not asked:
        with pytest.raises(Refused):
            harness.preempt("bob", "file:a", priority=priority)
        assert harness.renew("ann", "file:a")
        return
    reply = harness.preempt("bob", "file:a", priority=priority, grace_ms=10_000)
    assert (reply.asked, reply.until_ms) == (["ann"], harness.now + 10_000)
    assert "give it back within 10 s" in harness.told("ann", "preempt")[0]
    harness.pass_time(9_999)
    assert harness.held() == {("ann", "file:a")}
    assert harness.lock("bob", "file:a").holder.preempted_by == "bob"


def test_preempted_lock_is_revoked_after_the_grace(harness: LockHarness) -> None:
    """No renewal once preemption is asked; then it ends at the promised moment.

    LCK-25, LCK-29, LCK-31, AUD-11.
    """
    fence = harness.lock("ann", "file:a").locks[0].fence
    waiting = harness.wait("bob", "file:a")
    until_ms = harness.preempt("bob", "file:a", priority=1, grace_ms=10_000).until_ms
    refused("lost", lambda: harness.renew("ann", "file:a"))
    assert harness.lock("ann", "file:a").locks[0].preempted_by == "bob", "asking again does not undo it"
    harness.pass_time(25_000)
    assert harness.held() == set(), "the deadline acts before anybody writes it down"
    harness.beat("cid")
    (ended,) = harness.events("lock.released")
    assert (ended["end_reason"], ended["by"], ended["until_ms"]) == ("preempted", "bob", until_ms)
    assert "went to bob" in harness.told("ann", "preempt")[-1]
    refused("not_owner", lambda: harness.release("ann", "file:a", fence=fence))
    assert harness.confirm("bob", waiting).ok


def test_second_preemption_sees_the_first(harness: LockHarness) -> None:
    """LCK-28: who asks again with a shorter grace learns when the lock is free, and asks nobody twice."""
    harness.lock("ann", "file:a")
    first = harness.preempt("bob", "file:a", priority=1, grace_ms=60_000)
    second = harness.preempt("cid", "file:a", priority=1, grace_ms=5_000)
    assert (second.asked, second.until_ms) == ([], first.until_ms)
    with pytest.raises(NotFound):
        harness.preempt("bob", "file:other", priority=1)


@pytest.mark.parametrize(
    ("held", "wanted", "granted"),
    [
        ("read", "read", True),
        ("read", "write", False),
        ("write", "read", False),
        ("write", "write", False),
        ("read", "exclusive", False),
        ("exclusive", "read", False),
    ],
)
def test_modes(harness: LockHarness, held: str, wanted: str, granted: bool) -> None:
    """LCK-5, LCK-13, LCK-14, LCK-16, LCK-17, LCK-18, LCK-19, LCK-20: only readers share."""
    harness.lock("ann", "file:a", mode=held)
    assert harness.lock("bob", "file:a", mode=wanted).ok is granted
    assert harness.check("bob", "file:a", mode=wanted).free is granted


@pytest.mark.parametrize(
    ("resource", "profile", "mode", "ttl_s"),
    [
        ("file:a", "", "write", 300),
        ("file:a", "ticket", "write", 300),
        ("name:a", "", "exclusive", 3600),
        ("project:a", "", "exclusive", 3600),
    ],
)
def test_defaults_by_kind(harness: LockHarness, resource: str, profile: str, mode: str, ttl_s: int) -> None:
    """LCK-15, LCK-43, LCK-75, CFL-3, CFL-5: each kind of lock has its own mode and time to live."""
    (lock,) = harness.lock("ann", resource, profile=profile).locks
    assert (lock.mode, lock.expires_in_s) == (mode, ttl_s)


def test_all_or_nothing(harness: LockHarness) -> None:
    """LCK-40, DLK-1: one resource that is held refuses the whole request, and nothing of it stays."""
    harness.lock("ann", "file:b")
    assert harness.lock("bob", "file:a", "file:b", "name:n").outcome == "held"
    assert harness.held() == {("ann", "file:b")}
    refused("not_found", lambda: harness.release("ann", "file:b", "file:a"))
    assert harness.held() == {("ann", "file:b")}


def test_refresh_keeps_the_fence(harness: LockHarness) -> None:
    """LCK-79, CFL-18: the owner asking again begins the lease anew under the same fence: no new grant."""
    first = harness.lock("ann", "file:a").locks[0]
    harness.pass_time(100_000)
    again = harness.lock("ann", "file:a").locks[0]
    assert (again.fence, again.refreshed) == (first.fence, True)
    assert again.expires_ms == first.expires_ms + 100_000
    assert len(harness.events("lock.acquired")) == 1
    upgraded = [harness.lock("bob", "file:b", mode=mode).locks[0] for mode in ("read", "write", "read")]
    assert upgraded[1].fence > upgraded[0].fence
    assert (upgraded[2].mode, upgraded[2].fence) == ("write", upgraded[1].fence)


def test_expiry_is_told(harness: LockHarness) -> None:
    """LCK-80, LCK-81, SCH-20: the end of a lease is an event at that moment and a message to the owner."""
    fence = harness.lock("ann", "file:src/a.py").locks[0].fence
    harness.pass_time(400_000)
    harness.beat("bob")
    (ended,) = harness.events("lock.released")
    assert (ended["end_reason"], ended["until_ms"], ended["held_s"]) == (
        "expired",
        harness.now - 100_000,
        300.0,
    )
    assert harness.told("ann", "warn") == ["[System] Your lock on file:src/a.py has expired."]
    refused("not_found", lambda: harness.renew("ann", "file:src/a.py", fence=fence))


def test_hand_off_lapses_unless_confirmed(harness: LockHarness) -> None:
    """LCK-35: the lock goes to the first in line, for 15 s; unconfirmed it goes to the next."""
    harness.lock("ann", "file:a")
    first, second = harness.wait("bob", "file:a"), harness.wait("cid", "file:a")
    assert (first.position, second.position) == (1, 2)
    harness.release("ann", "file:a")
    assert harness.held() == {("bob", "file:a")}
    harness.pass_time(15_000)
    harness.beat("watcher")
    assert harness.held() == {("cid", "file:a")}
    assert harness.confirm("cid", second).ok
    assert harness.confirm("bob", first).outcome == "waiting", "it is back in line"


def test_hand_off_leaves_alone_what_is_held(harness: LockHarness) -> None:
    """LCK-79: waiting for more, or giving that up, does not put at risk what the session holds already."""
    harness.lock("ann", "file:mine")
    harness.lock("bob", "file:his")
    waiting = harness.wait("ann", "file:mine", "file:his")
    harness.release("bob", "file:his")
    harness.withdraw("ann", waiting)
    assert harness.held() == {("ann", "file:mine")}
    harness.pass_time(16_000)
    assert harness.renew("ann", "file:mine").locks[0].provisional is False


def test_line_goes_by_priority_then_age(harness: LockHarness) -> None:
    """DLK-17, AMB-3: a step of priority is worth a minute in line, and no more."""
    harness.lock("ann", "file:a")
    old = harness.wait("old", "file:a")
    harness.pass_time(59_999)
    assert harness.wait("high", "file:a", priority=1).position == 1
    harness.pass_time(2)
    assert harness.wait("late", "file:a", priority=1).position == 3
    assert harness.confirm("old", old).position == 2


def test_gone_waiter_is_passed_over(harness: LockHarness) -> None:
    """A request in line lives as long as its process: those behind it notice when that is dead."""
    harness.lock("ann", "file:a")
    harness.life[9] = ProcessState.ALIVE
    harness.wait("bob", "file:a", "file:b", waiter=Process(9, 1))
    behind = harness.wait("cid", "file:b")
    assert harness.confirm("cid", behind).outcome == "waiting"
    harness.life[9] = ProcessState.DEAD
    assert harness.confirm("cid", behind).ok


def test_leased_waiter_has_to_renew(harness: LockHarness) -> None:
    """Where its process cannot be seen, a request in line lapses 15 s after it was last heard of."""
    harness.lock("ann", "file:a")
    bob, cid = harness.wait("bob", "file:a", leased=True), harness.wait("cid", "file:a", leased=True)
    for _ in range(3):
        harness.pass_time(10_000)
        harness.confirm("cid", cid)
    harness.release("ann", "file:a")
    assert harness.confirm("cid", cid).ok
    assert harness.confirm("bob", bob).outcome == "withdrawn"


def test_sub_agent_under_its_parents_lock(harness: LockHarness) -> None:
    """A child works under its parent's lock, which ends both; it excludes its siblings and its parent."""
    harness.parents.update(kid="ann", sib="ann")
    harness.lock("ann", "file:src")
    assert harness.lock("kid", "file:src/a").ok
    assert harness.lock("sib", "file:src/a").holder.owner == "kid"
    assert harness.lock("ann", "file:src/a").holder.owner == "kid"
    harness.release("ann", "file:src")
    assert harness.held() == set()
    (_, lent) = harness.events("lock.released")
    assert (lent["session"], lent["end_reason"]) == ("kid", "parent_ended")


def test_lent_lock_ends_when_its_lender_did(harness: LockHarness) -> None:
    """A lock under another one ends at the moment that one ended, also if that is noticed late."""
    harness.parents["kid"] = "ann"
    harness.lock("ann", "file:src")
    harness.lock("kid", "file:src/a", ttl=900_000)
    harness.pass_time(350_000)
    harness.beat("watcher")
    assert {event["until_ms"] for event in harness.events("lock.released")} == {harness.now - 50_000}


def test_parent_that_came_back_lends_again(harness: LockHarness) -> None:
    """A session that left and came back ends what it lends then, although its child never left."""
    harness.parents["kid"] = "ann"
    harness.beat("ann")
    harness.beat("kid")
    harness.leave("ann")
    harness.lock("ann", "file:src")
    harness.lock("kid", "file:src/a")
    harness.release("ann", "file:src")
    assert harness.held() == set()


def test_child_in_line_goes_with_its_parent(harness: LockHarness) -> None:
    """LCK-35: when a parent ahead of its child gets the lock, the child is in nobody's way any more."""
    harness.parents["kid"] = "ann"
    harness.beat("ann")
    harness.lock("bob", "file:a")
    parent, child = harness.wait("ann", "file:a", "file:x"), harness.wait("kid", "file:x")
    harness.release("bob", "file:a")
    assert harness.confirm("ann", parent).ok
    assert harness.confirm("kid", child).ok


def test_renewal_fails_nobody_in_its_batch(harness: LockHarness) -> None:
    """LCK-24: a renewal and others of the same batch are all answered; it keeps its fence."""
    fence = harness.lock("ann", "file:a").locks[0].fence
    renew = RenewLocks(harness.who("ann"), REPOSITORY, ("file:a",))
    acquire = AcquireLocks(harness.who("bob"), REPOSITORY, ("file:b",))
    renewed, acquired = harness.engine.call_many([renew, acquire])
    assert renewed.locks[0].fence == fence
    assert acquired.ok


def test_batch_grants_once(harness: LockHarness) -> None:
    """Of commands that were decided together, one gets the lock; a hand-over takes another commit."""
    asks = [AcquireLocks(harness.who(name), REPOSITORY, ("file:a",)) for name in ("ann", "bob")]
    release = ReleaseLocks(harness.who("ann"), REPOSITORY, ("file:a",))
    first, released, second = harness.engine.call_many([asks[0], release, asks[1]])
    assert (first.ok, released.released) == (True, ["file:a"])
    assert not second.ok or second.locks[0].fence > first.locks[0].fence


def test_earlier_fence_proves_nothing(harness: LockHarness) -> None:
    """Who was granted a lock anew has lost what it proved with the fence before."""
    earlier = harness.lock("ann", "file:a").locks[0].fence
    harness.release("ann", "file:a")
    fence = harness.lock("ann", "file:a").locks[0].fence
    refused("lost", lambda: harness.renew("ann", "file:a", fence=earlier))
    refused("lost", lambda: harness.release("ann", "file:a", fence=earlier))
    assert not harness.check("ann", "file:a", fence=earlier).free
    assert harness.check("ann", "file:a", fence=fence).free


def test_nobody_overtakes_who_is_ahead(harness: LockHarness) -> None:
    """LCK-35: what comes free does not go past one who waits for it and for more."""
    harness.lock("ann", "file:a")
    harness.lock("cid", "file:b")
    both, one = harness.wait("bob", "file:a", "file:b"), harness.wait("dan", "file:b")
    harness.release("cid", "file:b")
    assert harness.confirm("dan", one).position == 2
    assert not harness.lock("eve", "file:b").ok, "who does not wait is behind those who do"
    harness.release("ann", "file:a")
    assert harness.confirm("bob", both).ok


def test_giving_back_never_fails_for_those_in_line(harness: LockHarness) -> None:
    """LCK-35: of more than a commit can grant some are granted, and the others when they look next."""
    harness.lock("ann", "file:src")
    files = [[f"file:src/{place}/{number}-{'x' * 300}" for place in range(64)] for number in range(8)]
    waiting = {str(number): harness.wait(str(number), *names) for number, names in enumerate(files)}
    harness.release("ann", "file:src")
    granted = {owner for owner, _ in harness.held()}
    assert 0 < len(granted) < len(waiting)
    assert all(harness.confirm(name, place).ok for name, place in waiting.items())


def test_answers_rest_on_the_guard(harness: LockHarness) -> None:
    """What rests on finding nothing is decided again where a lock is granted meanwhile (phantoms).

    A look by itself reads all at one moment, where nothing can come between; beside others it rests on it.
    """
    look = CheckLocks(harness.who("bob"), REPOSITORY, ("file:new",))
    asks: list[Callable[[], Any]] = [
        lambda: harness.engine.call_many([look, ListLocks(harness.who("bob"))]),
        lambda: harness.lock("bob", "file:new"),
        lambda: harness.lock("cid", "file:new"),
        lambda: harness.wait("cid", "file:new"),
        lambda: refused("not_found", lambda: harness.release("bob", "file:other")),
        lambda: refused("not_found", lambda: harness.steal("bob", "file:other")),
        lambda: refused("not_found", lambda: harness.preempt("bob", "file:other", priority=1)),
    ]
    for ask in asks:
        harness.store.expected = set()
        ask()
        assert "guard/file/r" in harness.store.expected


def test_names_are_one_in_all_spellings(harness: LockHarness) -> None:
    """CFL-4: a name in another case or composition is the same lock, and every session can hold it."""
    harness.lock("ann", "name:\u0390")
    assert not harness.lock("bob", "name:\u03aa\u0301").ok
    assert harness.lock("s" * 128, "name:" + "\u0390" * 70).ok
    with pytest.raises(Invalid):
        harness.lock("ann", "name:" + "%" * 100 + "\U0001f600" * 40)


def test_bids_are_bounded(harness: LockHarness) -> None:
    """Who asks for one file after another leaves 64 bids, not a record that grows with each."""
    harness.lock("ann", "file:src")
    for number in range(70):
        assert harness.lock("bob", f"file:src/{number}").holder.owner == "ann"
    assert len(harness.told("ann", "request")) == 64
    with pytest.raises(Refused, match="already waits for 64 requests"):
        harness.wait("bob", "file:src/more")
    harness.pass_time(60_000)
    harness.beat("cid")
    assert harness.wait("bob", "file:src/more").position == 1


# What it costs.


def test_records_per_operation(harness: LockHarness) -> None:
    """An uncontended lock is three records, and the session's where its heartbeat is due."""
    harness.beat("ann")
    assert harness.written_by(lambda: harness.lock("ann", "file:a")) == ["guard", "held", "lock"]
    assert harness.written_by(lambda: harness.renew("ann", "file:a")) == ["lock"]
    assert harness.written_by(lambda: harness.lock("ann", "file:a")) == ["lock"]
    assert harness.written_by(lambda: harness.check("bob", "file:a")) == []
    assert harness.written_by(lambda: harness.release("ann", "file:a")) == ["ended", "guard", "held", "lock"]
    harness.pass_time(15_000)
    assert harness.written_by(lambda: harness.lock("ann", "file:a")) == ["guard", "held", "lock", "session"]


def test_repeated_refusal_is_quiet(harness: LockHarness) -> None:
    """A refusal leaves a bid and tells the holder; within 5 s the same one again writes nothing."""
    harness.beat("bob")
    harness.lock("ann", "file:a")
    first = harness.written_by(lambda: harness.lock("bob", "file:a"))
    assert first == ["denied", "inbox", "mailbox", "waits"]
    harness.pass_time(4_999)
    assert harness.written_by(lambda: harness.lock("bob", "file:a")) == []
    harness.pass_time(1)
    assert harness.written_by(lambda: harness.lock("bob", "file:a")) == ["denied"]
    assert len(harness.told("ann", "request")) == 1


def test_reads_do_not_grow_with_locks_elsewhere(harness: LockHarness) -> None:
    """Ten thousand locks in the same and other directories cost nothing to who asks for another file."""

    def work() -> None:
        assert harness.check("bob", "file:src/new.py").free
        assert harness.lock("bob", "file:src/new.py").ok
        harness.release("bob", "file:src/new.py")

    harness.beat("bob")
    work()
    exact = harness.read_by(work)
    harness.beat("ann")
    harness.give("ann", [f"file:src/{'' if n % 2 else f'p{n % 100}/'}m{n}.py" for n in range(10_000)])
    assert harness.read_by(work) == exact
    assert harness.check("bob", "file:src/m9999.py", "file:src/p98/m9998.py").free is False


def test_questions_to_the_store(harness: LockHarness) -> None:
    """OPN-7: a lock is one read and one commit however deep its path, a look is one read."""
    harness.beat("ann")
    path = "file:" + "/".join("abcdefgh")

    def questions(act: Callable[[], Any]) -> int:
        harness.store.questions = 0
        act()
        return harness.store.questions

    assert questions(lambda: harness.lock("ann", path, "file:b/c/d", "file:e/f/**")) == 2
    assert questions(lambda: harness.check("ann", f"{path}/i")) == 1
    harness.beat("bob")
    assert questions(lambda: harness.check("bob", path)) <= 3, (
        "who holds it is read, too, and all of it verified"
    )
    assert questions(lambda: harness.lock("bob", "file:z")) == 2


def test_too_many_resources_are_refused_unread(harness: LockHarness) -> None:
    """A command that names too much is refused, and nobody looks for all of it first."""
    harness.beat("ann")
    harness.store.questions = harness.store.reads = 0
    with pytest.raises(Invalid, match="at most 64"):
        harness.lock("ann", *(f"file:d{number}/a/b/c/f.py" for number in range(5_000)))
    assert harness.store.questions <= 1
    assert harness.store.reads < 20


def test_more_ranges_than_are_read_at_once(harness: LockHarness) -> None:
    """What stands in the way is found in the last portion of ranges as in the first."""
    paths = [f"file:d{number:02d}/a/b/c/d/e/f.py" for number in range(60)]
    assert sum(len(resource.ranges) for path in paths for resource in parse_resource(path, REPOSITORY)) > 400
    for held in (paths[0], paths[-1], "file:d59/a/b/**"):
        harness.lock("ann", held)
        assert not harness.lock("bob", *paths).ok
        assert not harness.check("bob", *paths).free
        harness.release("ann", held)
    harness.release("bob")
    assert harness.lock("cid", *paths).ok
