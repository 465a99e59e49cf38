"""Taking a lock from its holder (DESIGN §6): dead owner, force, preemption, circles, upgrades."""

import pytest

from coord.core.errors import Invalid, NotStealable, Refused
from coord.core.locks.commands import Outcome
from tests.support.store_harness import START_MS, StoreHarness


def test_a_dead_owner_may_be_robbed_at_once(harness: StoreHarness) -> None:
    """CFL-7: `--dead-owner` needs proof of death and nothing else; the evidence is kept."""
    process = harness.process(10)
    ann, unseen, bob = harness.actor("ann", process=process), harness.actor("unseen"), harness.actor("bob")
    ann.take("name:main-push")
    unseen.take("name:cargo-build")
    for resource in ("name:main-push", "name:cargo-build"):
        with pytest.raises(NotStealable, match="not proven") as caught:
            bob.steal(resource, dead_owner=True)
        assert "--force" in caught.value.hint
    harness.kill(process)
    assert bob.lock("name:main-push").outcome is Outcome.HELD, "a name is never freed by itself"
    assert bob.steal("name:main-push", dead_owner=True).ok
    with pytest.raises(NotStealable):
        bob.steal("name:cargo-build", dead_owner=True)
    (ended,) = harness.events("lock.released")
    assert (ended["end_reason"], ended["by"], ended["note"]) == ("stolen", "bob", "pid 10 is dead")
    assert bob.show("ann").state == "crashed"


def test_force_needs_a_reason_and_is_told(harness: StoreHarness) -> None:
    """CFL-7: `--force` takes from anybody, for a reason that stands in the log and is told to the owner."""
    ann, bob = harness.actor("ann"), harness.actor("bob")
    ann.take("file:a.py")
    with pytest.raises(Invalid):
        bob.steal("file:a.py", force=True)
    assert bob.steal("file:a.py", force=True, reason="production is down").ok
    assert harness.events("lock.released")[0]["note"] == "by force: production is down"
    (told,) = ann.receive()
    assert "bob" in told.subject
    assert "production is down" in told.subject


def test_what_a_theft_frees_besides_goes_to_those_in_line(harness: StoreHarness) -> None:
    """Who steals one file of a directory's lock ends all of it: the rest is handed to those in line."""
    ann, bob, cid = harness.actor("ann"), harness.actor("bob"), harness.actor("cid")
    ann.take("file:src")
    place = cid.wait_for("file:src/b.py")
    bob.steal("file:src/a.py", force=True, reason="why")
    assert harness.holders() == {"file:src/a.py": "bob", "file:src/b.py": "cid"}
    assert cid.confirm(place).ok


def test_preemption_asks_first(harness: StoreHarness) -> None:
    """Strictly higher priority, a message, a grace period; then the lock goes to who asked.

    CFL-16, MSG-11.
    """
    ann, bob = harness.actor("ann"), harness.actor("bob")
    ann.take("file:a.py", priority=5, ttl_ms=3_600_000)
    for priority in (4, 5):
        with pytest.raises(Refused) as caught:
            bob.preempt("file:a.py", priority=priority, grace_s=30)
        assert "above 5" in caught.value.hint
    asked = bob.preempt("file:a.py", priority=6, grace_s=30, reason="hotfix")
    assert (asked.asked, asked.until_ms) == (["ann"], START_MS + 30_000)
    place = bob.wait_for("file:a.py", priority=6)
    told, waits = ann.receive()
    assert (told.kind, waits.subject) == ("preempt", "[System] bob waits for a.py")
    assert "hotfix" in told.subject
    assert "30 s" in told.subject
    harness.at(29)
    assert bob.confirm(place).outcome is Outcome.WAITING
    assert harness.holders() == {"file:a.py": "ann"}
    harness.at(30)
    assert bob.confirm(place).outcome is Outcome.GRANTED
    (ended,) = harness.events("lock.released")
    assert (ended["end_reason"], ended["by"], ended["until_ms"]) == ("preempted", "bob", START_MS + 30_000)


def test_who_gives_way_in_time_is_not_revoked(harness: StoreHarness) -> None:
    """One that was asked and gives back within its grace hands over like any other."""
    ann, bob = harness.actor("ann"), harness.actor("bob")
    ann.take("file:a.py")
    bob.preempt("file:a.py", priority=1, grace_s=30)
    place = bob.wait_for("file:a.py", priority=1)
    harness.pass_seconds(10)
    ann.unlock("file:a.py")
    assert bob.confirm(place).ok
    assert harness.events("lock.released")[0]["end_reason"] == "released"


def test_two_readers_that_both_want_to_write(harness: StoreHarness) -> None:
    """Two readers that wait for each other's end are a circle: one keeps its place and gets the write."""
    ann, bob = harness.actor("ann"), harness.actor("bob")
    read = ann.take("file:a.py", mode="read")
    harness.pass_seconds(5)
    bob.take("file:a.py", mode="read")
    place = ann.wait_for("file:a.py", mode="write")
    assert bob.lock("file:a.py", mode="write", wait_s=60).outcome is Outcome.DEADLOCK
    granted = ann.confirm(place)
    assert granted.outcome is Outcome.GRANTED
    assert granted.locks[0].mode == "write"
    assert granted.locks[0].fence > read.fence, "what it read before is not what it may write under"
    assert harness.holders() == {"file:a.py": "ann"}


@pytest.mark.parametrize("parties", [2, 3, 5, 8])
def test_circles_of_many(harness: StoreHarness, parties: int) -> None:
    """DLK-3: a circle of any size is broken by the commit that would close it, and all others go on."""
    actors = [harness.actor(f"agent-{number}") for number in range(parties)]
    for number, actor in enumerate(actors):
        actor.take(f"file:{number}.py", ttl_ms=3_600_000, priority=0 if number == 1 else 1)
        harness.pass_seconds(1)
    places = {}
    for number, actor in enumerate(actors[:-1]):
        places[number] = actor.wait_for(f"file:{number + 1}.py", priority=0 if number == 1 else 1)
    last = actors[-1].lock("file:0.py", wait_s=600, priority=0 if parties == 2 else 1)
    (found,) = harness.events("lock.deadlock")
    assert (found["victim"], len(found["cycle"])) == ("agent-1", parties + 1)
    if parties == 2:
        assert last.outcome is Outcome.DEADLOCK
    else:
        assert last.outcome is Outcome.WAITING
        assert actors[1].confirm(places[1]).outcome is Outcome.DEADLOCK
    assert actors[0].confirm(places[0]).outcome is Outcome.GRANTED
    assert harness.holders()["file:1.py"] == "agent-0"
