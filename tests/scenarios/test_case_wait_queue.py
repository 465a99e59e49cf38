"""The line (DESIGN §6): all or nothing, bids, hand-offs, modes; and heartbeats that do not fill the log."""

import pytest

from coord.core.errors import NotOwner
from coord.core.locks.commands import Outcome
from coord.core.sessions.commands import Heartbeat
from tests.support.store_harness import StoreHarness


def test_several_at_once_are_all_or_nothing(harness: StoreHarness) -> None:
    """DLK-1: of several resources none is held unless all are free; those in line get them together."""
    ann, bob, cid = harness.actor("ann"), harness.actor("bob"), harness.actor("cid")
    ann.take("file:b.py")
    assert bob.lock("file:a.py", "file:b.py", "name:main-push").outcome is Outcome.HELD
    assert harness.holders() == {"file:b.py": "ann"}
    place = bob.wait_for("file:a.py", "file:b.py", "name:main-push")
    assert harness.holders() == {"file:b.py": "ann"}, "who waits holds nothing meanwhile"
    assert cid.lock("file:a.py").outcome is Outcome.HELD, "but goes before who comes later"
    before = harness.head
    ann.unlock("file:b.py")
    assert harness.head == before + 1
    granted = bob.confirm(place)
    assert {lock.resource for lock in granted.locks} == {"file:a.py", "file:b.py", "name:main-push"}
    assert len({lock.fence for lock in granted.locks}) == 1, "one commit, one fence"
    assert set(harness.holders().values()) == {"bob"}


def test_releasing_several_is_all_or_nothing(harness: StoreHarness) -> None:
    """Who names one that it does not hold gives back none."""
    ann, bob = harness.actor("ann"), harness.actor("bob")
    ann.take("file:a.py")
    bob.take("file:b.py")
    held = harness.holders()
    with pytest.raises(NotOwner, match="held by bob"):
        ann.unlock("file:a.py", "file:b.py")
    assert harness.holders() == held


def test_a_bid_is_told_to_the_holder_once(harness: StoreHarness) -> None:
    """CFL-17: who is refused and asks again and again is told of once, while its bid lasts."""
    ann, bob = harness.actor("ann"), harness.actor("bob-7")
    ann.take("file:a.py", ttl_ms=3_600_000)
    for _ in range(20):
        denied = bob.lock("file:a.py", reason="fix the login")
        assert denied.outcome is Outcome.HELD
        harness.pass_seconds(7)
    (told,) = ann.receive()
    assert (told.kind, told.from_session_id) == ("request", "system")
    assert told.subject == '[System] bob wants a.py: "fix the login"'
    assert told.blob["session_id"] == "bob-7"
    assert told.blob["reason"] == "fix the login"
    assert len(harness.events("lock.denied")) == 1
    harness.pass_seconds(60)
    bob.lock("file:a.py")
    assert len(ann.receive()) == 1, "a bid that lapsed and is made anew is told anew"


def test_a_bid_is_in_nobodys_way(harness: StoreHarness) -> None:
    """A bid is never granted and nobody waits behind it."""
    ann, bob, cid = harness.actor("ann"), harness.actor("bob"), harness.actor("cid")
    ann.take("file:a.py")
    assert bob.lock("file:a.py", priority=9).outcome is Outcome.HELD
    ann.unlock("file:a.py")
    assert harness.holders() == {}
    assert cid.lock("file:a.py").outcome is Outcome.GRANTED


def test_a_circle_with_bids_is_told_first(harness: StoreHarness) -> None:
    """Bids in a deadlock: the victim is told at once, asked after 20 s, and loses after 30 s of grace."""
    old, young = harness.actor("old"), harness.actor("young")
    old.take("file:a.py", ttl_ms=3_600_000)
    harness.pass_seconds(5)
    young.take("file:b.py", ttl_ms=3_600_000)
    assert old.lock("file:b.py").outcome is Outcome.HELD
    denied = young.lock("file:a.py")
    assert denied.outcome is Outcome.HELD
    assert denied.cycle == ["young", "old", "young"]
    assert [event["resolved"] for event in harness.events("lock.deadlock")] == [False]
    assert [message.kind for message in young.receive()] == ["request", "preempt"]
    for _ in range(4):
        harness.pass_seconds(10)
        assert old.lock("file:b.py").outcome is Outcome.HELD
        assert young.lock("file:a.py").outcome is Outcome.HELD
    assert [message.kind for message in young.receive()] == ["preempt"], "asked once, with a deadline"
    assert harness.holders() == {"file:a.py": "old", "file:b.py": "young"}, "half a minute to give way"
    harness.pass_seconds(10)
    assert harness.holders() == {"file:a.py": "old"}, "what the other one needs is revoked"
    assert old.lock("file:b.py").outcome is Outcome.GRANTED
    assert harness.holders() == {"file:a.py": "old", "file:b.py": "old"}
    assert [event["victim"] for event in harness.events("lock.deadlock")] == ["young", "young"]


def test_a_circle_with_a_bid_given_up_costs_nobody(harness: StoreHarness) -> None:
    """Where one of the bids was not renewed nobody loses a lock."""
    old, young = harness.actor("old"), harness.actor("young")
    old.take("file:a.py", ttl_ms=3_600_000)
    young.take("file:b.py", ttl_ms=3_600_000)
    old.lock("file:b.py")
    young.lock("file:a.py")
    for _ in range(6):
        harness.pass_seconds(20)
        old.lock("file:b.py")
        assert harness.holders() == {"file:a.py": "old", "file:b.py": "young"}


def test_a_hand_off_that_nobody_takes_lapses(harness: StoreHarness) -> None:
    """A hand-off is provisional for 15 s; then it goes to the next in line, and the late one waits again."""
    ann, gone, next_one = harness.actor("ann"), harness.actor("gone"), harness.actor("next")
    ann.take("file:a.py")
    late = gone.wait_for("file:a.py")
    place = next_one.wait_for("file:a.py")
    ann.unlock("file:a.py")
    assert harness.holders() == {"file:a.py": "gone"}
    harness.pass_seconds(14)
    assert next_one.confirm(place).outcome is Outcome.WAITING
    harness.pass_seconds(1)
    assert next_one.confirm(place).outcome is Outcome.GRANTED
    assert harness.events("lock.released")[-1]["end_reason"] == "lapsed"
    again = gone.confirm(late)
    assert again.outcome is Outcome.WAITING
    assert again.holder is not None
    assert again.holder.owner == "next"


def test_a_waiter_whose_process_died_is_passed_over(harness: StoreHarness) -> None:
    """A waiter lives as long as its own process, or its lease of 15 s where that cannot be seen."""
    ann, dead, silent, patient = (harness.actor(name) for name in ("ann", "dead", "silent", "patient"))
    ann.take("file:a.py")
    process = harness.process(10)
    dead.wait_for("file:a.py", waiter=process)
    silent.wait_for("file:a.py", leased=True)
    place = patient.wait_for("file:a.py", waiter=harness.process(20))
    harness.kill(process)
    harness.pass_seconds(15)
    ann.unlock("file:a.py")
    assert harness.holders() == {"file:a.py": "patient"}
    assert patient.confirm(place).ok


def test_who_withdraws_lets_others_go_on(harness: StoreHarness) -> None:
    """SIGTERM and SIGINT withdraw: a place in line, or a lock just handed over, goes to who is next."""
    reader, writer, other = harness.actor("reader"), harness.actor("writer"), harness.actor("other")
    reader.take("file:a.py", mode="read")
    place = writer.wait_for("file:a.py")
    behind = other.wait_for("file:a.py", mode="read")
    assert writer.withdraw(place)
    assert other.confirm(behind).ok
    assert not writer.withdraw(place), "once is enough"
    place = writer.wait_for("file:a.py")
    reader.unlock()
    other.unlock()
    assert harness.holders() == {"file:a.py": "writer"}
    writer.withdraw(place)
    assert harness.holders() == {}


@pytest.mark.parametrize("held", ["read", "write", "exclusive"])
@pytest.mark.parametrize("asked", ["read", "write", "exclusive"])
def test_modes(harness: StoreHarness, held: str, asked: str) -> None:
    """Only readers share; a writer behind them is not overtaken for ever.

    LCK-16, LCK-17, LCK-18, LCK-19, LCK-20.
    """
    ann, bob = harness.actor("ann"), harness.actor("bob")
    ann.take("file:a.py", mode=held)
    shared = held == asked == "read"
    assert bob.check("file:a.py", mode=asked).free is shared
    assert bob.lock("file:a.py", mode=asked).ok is shared
    if shared:
        harness.actor("writer").wait_for("file:a.py", mode="write")
        assert harness.actor("late").lock("file:a.py", mode="read").outcome is Outcome.HELD


def test_heartbeats_are_coalesced(harness: StoreHarness) -> None:
    """A hundred sessions beat every 5 s for 10 minutes: at most one write per session and 15 s."""
    actors = [harness.actor(f"agent-{number:03d}") for number in range(100)]
    beats = [Heartbeat(actor.caller) for actor in actors]
    written = dict.fromkeys((actor.session for actor in actors), 0)
    entries = 0
    for _ in range(10 * 60 // 5):
        before = harness.head
        for reply in harness.engine.call_many(beats):
            written[reply.session_id] += reply.written
        entries += harness.head - before
        harness.pass_seconds(5)
    assert set(written.values()) == {10 * 60 // 15}
    assert entries == 10 * 60 // 15, "beats of one moment share an entry"
    assert len(harness.events()) == 100, "and besides the registrations nothing is told"
    assert {peer.liveness for peer in harness.actor("onlooker").peers()} == {"live"}


def test_one_heartbeat_alone(harness: StoreHarness) -> None:
    """Every command is a heartbeat; one soon after another writes nothing, and the reply says so."""
    ann = harness.actor("ann")
    ann.register()
    before = harness.head
    for seconds in (5, 10, 14.999):
        harness.at(seconds)
        assert not ann.beat().written
    assert harness.head == before
    harness.at(15)
    assert ann.beat().written
    assert ann.show().last_heartbeat_ms == harness.now
    assert harness.head == before + 1
