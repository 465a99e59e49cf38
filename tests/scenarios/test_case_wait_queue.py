"""The line (DESIGN §6): all or nothing, bids, hand-offs, modes; and heartbeats that do not fill the log."""

import pytest

from coord.core.commands import Heartbeat
from coord.core.errors import NotOwner
from coord.core.replies import Outcome
from tests.support.store_harness import Scene


def test_several_at_once_are_all_or_nothing(scene: Scene) -> None:
    """DLK-1: of several resources none is held unless all are free; those in line get them together."""
    ann, bob, cid = scene.actor("ann"), scene.actor("bob"), scene.actor("cid")
    ann.take("file:b.py")
    assert bob.lock("file:a.py", "file:b.py", "name:main-push").outcome is Outcome.HELD
    assert scene.holders() == {"file:b.py": "ann"}
    place = bob.wait_for("file:a.py", "file:b.py", "name:main-push")
    assert scene.holders() == {"file:b.py": "ann"}, "who waits holds nothing meanwhile"
    assert cid.lock("file:a.py").outcome is Outcome.HELD, "but goes before who comes later"
    before = scene.head
    ann.unlock("file:b.py")
    assert scene.head == before + 1
    granted = bob.confirm(place)
    assert {lock.resource for lock in granted.locks} == {"file:a.py", "file:b.py", "name:main-push"}
    assert len({lock.fence for lock in granted.locks}) == 1, "one commit, one fence"
    assert set(scene.holders().values()) == {"bob"}


def test_releasing_several_is_all_or_nothing(scene: Scene) -> None:
    """Who names one that it does not hold gives back none."""
    ann, bob = scene.actor("ann"), scene.actor("bob")
    ann.take("file:a.py")
    bob.take("file:b.py")
    held = scene.holders()
    with pytest.raises(NotOwner, match="held by bob"):
        ann.unlock("file:a.py", "file:b.py")
    assert scene.holders() == held


def test_a_bid_is_told_to_the_holder_once(scene: Scene) -> None:
    """CFL-17: who is refused and asks again and again is told of once, while its bid lasts."""
    ann, bob = scene.actor("ann"), scene.actor("bob-7")
    ann.take("file:a.py", ttl_ms=3_600_000)
    for _ in range(20):
        denied = bob.lock("file:a.py", reason="fix the login")
        assert denied.outcome is Outcome.HELD
        scene.pass_seconds(7)
    (told,) = ann.receive()
    assert (told.kind, told.from_session_id) == ("request", "system")
    assert told.subject == "[System] bob wants file:a.py"
    assert told.blob["session_id"] == "bob-7"
    assert told.blob["reason"] == "fix the login"
    assert len(scene.events("lock.denied")) == 1
    scene.pass_seconds(60)
    bob.lock("file:a.py")
    assert len(ann.receive()) == 1, "a bid that lapsed and is made anew is told anew"


def test_a_bid_is_in_nobodys_way(scene: Scene) -> None:
    """A bid is never granted and nobody waits behind it."""
    ann, bob, cid = scene.actor("ann"), scene.actor("bob"), scene.actor("cid")
    ann.take("file:a.py")
    assert bob.lock("file:a.py", priority=9).outcome is Outcome.HELD
    ann.unlock("file:a.py")
    assert scene.holders() == {}
    assert cid.lock("file:a.py").outcome is Outcome.GRANTED


def test_a_circle_with_bids_is_told_first(scene: Scene) -> None:
    """Bids in a deadlock: the victim is told at once, and loses after 30 s only to bids renewed since."""
    old, young = scene.actor("old"), scene.actor("young")
    old.take("file:a.py", ttl_ms=3_600_000)
    scene.pass_seconds(5)
    young.take("file:b.py", ttl_ms=3_600_000)
    assert old.lock("file:b.py").outcome is Outcome.HELD
    denied = young.lock("file:a.py")
    assert denied.outcome is Outcome.HELD
    assert denied.cycle == ["young", "old", "young"]
    assert [event["resolved"] for event in scene.events("lock.deadlock")] == [False]
    assert [message.kind for message in young.receive()] == ["request", "preempt"]
    scene.pass_seconds(29)
    assert old.lock("file:b.py").outcome is Outcome.HELD
    assert young.lock("file:a.py").outcome is Outcome.HELD
    assert scene.holders() == {"file:a.py": "old", "file:b.py": "young"}, "half a minute to give way"
    scene.pass_seconds(1)
    assert young.lock("file:a.py").outcome is Outcome.HELD
    assert scene.holders() == {"file:a.py": "old"}, "what the other one needs is revoked"
    assert old.lock("file:b.py").outcome is Outcome.GRANTED
    assert scene.holders() == {"file:a.py": "old", "file:b.py": "old"}
    assert [event["victim"] for event in scene.events("lock.deadlock")] == ["young", "young"]


def test_a_circle_with_a_bid_given_up_costs_nobody(scene: Scene) -> None:
    """Where one of the bids was not renewed nobody loses a lock."""
    old, young = scene.actor("old"), scene.actor("young")
    old.take("file:a.py", ttl_ms=3_600_000)
    young.take("file:b.py", ttl_ms=3_600_000)
    old.lock("file:b.py")
    young.lock("file:a.py")
    for _ in range(6):
        scene.pass_seconds(20)
        old.lock("file:b.py")
        assert scene.holders() == {"file:a.py": "old", "file:b.py": "young"}


def test_a_hand_off_that_nobody_takes_lapses(scene: Scene) -> None:
    """A hand-off is provisional for 15 s; then it goes to the next in line, and the late one waits again."""
    ann, gone, next_one = scene.actor("ann"), scene.actor("gone"), scene.actor("next")
    ann.take("file:a.py")
    late = gone.wait_for("file:a.py")
    place = next_one.wait_for("file:a.py")
    ann.unlock("file:a.py")
    assert scene.holders() == {"file:a.py": "gone"}
    scene.pass_seconds(14)
    assert next_one.confirm(place).outcome is Outcome.WAITING
    scene.pass_seconds(1)
    assert next_one.confirm(place).outcome is Outcome.GRANTED
    assert scene.events("lock.released")[-1]["ending"] == "lapsed"
    again = gone.confirm(late)
    assert again.outcome is Outcome.WAITING
    assert again.holder is not None
    assert again.holder.owner == "next"


def test_a_waiter_whose_process_died_is_passed_over(scene: Scene) -> None:
    """A waiter lives as long as its own process, or its lease of 15 s where that cannot be seen."""
    ann, dead, silent, patient = (scene.actor(name) for name in ("ann", "dead", "silent", "patient"))
    ann.take("file:a.py")
    process = scene.process(10)
    dead.wait_for("file:a.py", waiter=process)
    silent.wait_for("file:a.py", leased=True)
    place = patient.wait_for("file:a.py", waiter=scene.process(20))
    scene.kill(process)
    scene.pass_seconds(15)
    ann.unlock("file:a.py")
    assert scene.holders() == {"file:a.py": "patient"}
    assert patient.confirm(place).ok


def test_who_withdraws_lets_others_go_on(scene: Scene) -> None:
    """SIGTERM and SIGINT withdraw: a place in line, or a lock just handed over, goes to who is next."""
    reader, writer, other = scene.actor("reader"), scene.actor("writer"), scene.actor("other")
    reader.take("file:a.py", mode="read")
    place = writer.wait_for("file:a.py")
    behind = other.wait_for("file:a.py", mode="read")
    assert writer.withdraw(place)
    assert other.confirm(behind).ok
    assert not writer.withdraw(place), "once is enough"
    place = writer.wait_for("file:a.py")
    reader.unlock()
    other.unlock()
    assert scene.holders() == {"file:a.py": "writer"}
    writer.withdraw(place)
    assert scene.holders() == {}


@pytest.mark.parametrize("held", ["read", "write", "exclusive"])
@pytest.mark.parametrize("asked", ["read", "write", "exclusive"])
def test_modes(scene: Scene, held: str, asked: str) -> None:
    """Only readers share; a writer behind them is not overtaken for ever.

    LCK-16, LCK-17, LCK-18, LCK-19, LCK-20.
    """
    ann, bob = scene.actor("ann"), scene.actor("bob")
    ann.take("file:a.py", mode=held)
    shared = held == asked == "read"
    assert bob.check("file:a.py", mode=asked).free is shared
    assert bob.lock("file:a.py", mode=asked).ok is shared
    if shared:
        scene.actor("writer").wait_for("file:a.py", mode="write")
        assert scene.actor("late").lock("file:a.py", mode="read").outcome is Outcome.HELD


def test_heartbeats_are_coalesced(scene: Scene) -> None:
    """A hundred sessions beat every 5 s for 10 minutes: at most one write per session and 15 s."""
    actors = [scene.actor(f"agent-{number:03d}") for number in range(100)]
    beats = [Heartbeat(actor.caller) for actor in actors]
    written = dict.fromkeys((actor.session for actor in actors), 0)
    entries = 0
    for _ in range(10 * 60 // 5):
        before = scene.head
        for reply in scene.engine.call_many(beats):
            written[reply.session_id] += reply.written
        entries += scene.head - before
        scene.pass_seconds(5)
    assert set(written.values()) == {10 * 60 // 15}
    assert entries == 10 * 60 // 15, "beats of one moment share an entry"
    assert len(scene.events()) == 100, "and besides the registrations nothing is told"
    assert {peer.liveness for peer in scene.actor("onlooker").peers()} == {"live"}


def test_one_heartbeat_alone(scene: Scene) -> None:
    """Every command is a heartbeat; one soon after another writes nothing, and the reply says so."""
    ann = scene.actor("ann")
    ann.register()
    before = scene.head
    for seconds in (5, 10, 14.999):
        scene.at(seconds)
        assert not ann.beat().written
    assert scene.head == before
    scene.at(15)
    assert ann.beat().written
    assert ann.show().last_heartbeat_ms == scene.now
    assert scene.head == before + 1
