"""Deadlocks: found when the last wait begins, resolved in the same commit, at the least cost."""

from typing import Any

import pytest

from coord.core.locks.deadlock import deadlock_text
from tests.support.lock_harness import LockHarness


@pytest.fixture
def harness() -> LockHarness:
    return LockHarness()


def ring(harness: LockHarness, size: int, **options: dict[str, Any]) -> dict[str, Any]:
    """Let `s0` … hold a file each, a second apart, and wait for the next one's; return the replies.

    `options` are for the waits of single sessions.
    """
    names = [f"s{n}" for n in range(size)]
    for name in names:
        harness.lock(name, f"file:{name}", ttl=3_600_000)
        harness.pass_time(1_000)
    replies = {}
    for place, name in enumerate(names):
        wanted = names[(place + 1) % size]
        replies[name] = harness.wait(name, f"file:{wanted}", **options.get(name, {}))
    return replies


@pytest.mark.parametrize("size", range(2, 9))
def test_ring_of_waits(harness: LockHarness, size: int) -> None:
    """The youngest is refused with the circle; the others get through.

    DLK-2, DLK-3, DLK-6, DLK-13, DLK-14, DLK-15, DLK-21, DLK-24.
    """
    replies = ring(harness, size)
    last, before = f"s{size - 1}", f"s{size - 2}"
    assert [replies[name].outcome for name in replies] == ["waiting"] * (size - 1) + ["deadlock"]
    assert replies[last].cycle == [last, *(f"s{n}" for n in range(size))]
    (event,) = harness.events("lock.deadlock")
    assert (event["victim"], event["resolved"]) == (last, True)
    again = f"coord lock s0 {last}"
    sentence = f"Deadlock: you lost {last} to {before}. Stop editing it, then run: {again}"
    assert harness.told(last, "preempt") == [f"[System] {sentence}"]
    refused = replies[last]
    assert (refused.lost, refused.lost_to) == ([f"file:{last}"], before)
    assert refused.again == ["file:s0", f"file:{last}"]
    for place in range(size - 2, -1, -1):
        assert harness.confirm(f"s{place}", replies[f"s{place}"]).ok
        harness.release(f"s{place}")
    assert harness.held() == set()


@pytest.mark.parametrize("size", range(2, 9))
@pytest.mark.parametrize("weak", [0, 1])
def test_lowest_priority_gives_way(harness: LockHarness, size: int, weak: int) -> None:
    """DLK-7, DLK-8: the lowest priority is the victim wherever it stands; who closed the circle waits on."""
    strong: dict[str, dict[str, Any]] = {f"s{n}": {"priority": 5} for n in range(size)}
    strong[f"s{weak}"] = {"priority": 3}
    replies = ring(harness, size, **strong)
    loser = f"s{weak}"
    assert harness.events("lock.deadlock")[0]["victim"] == loser
    if weak != size - 1:
        assert harness.confirm(loser, replies[loser]).outcome == "deadlock"
    assert (loser, f"file:{loser}") not in harness.held()
    winner = f"s{(weak - 1) % size}"
    served = replies[winner] if replies[winner].ok else harness.confirm(winner, replies[winner])
    assert served.ok, "who needed the victim's lock has it"


@pytest.mark.parametrize("closing", ["rem", "bea"])
def test_priority_of_a_lock_counts(harness: LockHarness, closing: str) -> None:
    """LCK-10, DLK-7, DLK-8, DLK-9: a session loses what has the lower priority, whatever its request says."""
    harness.lock("rem", "file:r", priority=3, ttl=3_600_000)
    harness.pass_time(20_000)
    harness.lock("bea", "file:b", priority=5, ttl=3_600_000)
    wants = {"rem": "file:b", "bea": "file:r"}
    first = "bea" if closing == "rem" else "rem"
    harness.wait(first, wants[first])
    harness.wait(closing, wants[closing])
    assert [event["victim"] for event in harness.events("lock.deadlock")] == ["rem"]
    assert harness.held() == {("bea", "file:b"), ("bea", "file:r")}


def test_waiting_long_counts_like_priority(harness: LockHarness) -> None:
    """DLK-17: effective priority grows by one step a minute, also in the choice of the victim."""
    harness.lock("old", "file:a", ttl=3_600_000)
    harness.lock("new", "file:b", ttl=3_600_000)
    harness.wait("old", "file:b")
    harness.pass_time(120_000)
    assert harness.wait("new", "file:a", priority=1).outcome == "deadlock"


@pytest.mark.parametrize("where", ["wait", "hold"])
def test_preemptible_gives_way(harness: LockHarness, where: str) -> None:
    """DLK-9, DLK-10: among equals the one that said it may be preempted, although it has worked longer."""
    harness.lock("old", "file:a", preemptible=where == "hold")
    harness.pass_time(60_000)
    harness.lock("new", "file:b")
    waiting = harness.wait("old", "file:b", preemptible=where == "wait")
    assert harness.wait("new", "file:a").ok
    assert harness.confirm("old", waiting).outcome == "deadlock"


def test_victim_loses_only_what_is_needed(harness: LockHarness) -> None:
    """DLK-14: of the victim's locks only those that stand in the way are revoked."""
    harness.lock("ann", "file:a")
    harness.pass_time(1_000)
    harness.lock("bob", "file:b", "file:other")
    harness.wait("ann", "file:b")
    assert harness.wait("bob", "file:a").outcome == "deadlock"
    assert harness.held() == {("ann", "file:a"), ("ann", "file:b"), ("bob", "file:other")}


def test_chain_is_no_deadlock(harness: LockHarness) -> None:
    """DLK-20, AMB-2: waits without a circle are left alone."""
    harness.lock("ann", "file:a")
    harness.lock("bob", "file:b")
    assert harness.wait("bob", "file:a").outcome == "waiting"
    assert harness.wait("cid", "file:b").outcome == "waiting"
    assert harness.wait("dan", "file:b").outcome == "waiting"
    assert harness.events("lock.deadlock") == []


def test_two_readers_that_both_want_to_write(harness: LockHarness) -> None:
    """LCK-17, DLK-3: two readers that upgrade wait for each other; one is refused, the other writes."""
    harness.lock("ann", "file:a", mode="read")
    harness.pass_time(1_000)
    harness.lock("bob", "file:a", mode="read")
    waiting = harness.wait("ann", "file:a", mode="write")
    assert harness.wait("bob", "file:a", mode="write").outcome == "deadlock"
    assert harness.confirm("ann", waiting).locks[0].mode == "write"


def test_place_in_line_closes_a_circle(harness: LockHarness) -> None:
    """DLK-2, DLK-9: who stands ahead in line is waited for, too; losing a place there costs least."""
    harness.lock("bob", "file:b")
    waiting = harness.wait("ann", "file:b", "file:c")
    assert harness.wait("bob", "file:c").ok, "ann was ahead for c, and waits for b"
    assert harness.confirm("ann", waiting).outcome == "deadlock"
    (told,) = harness.told("ann", "preempt")
    loss = "you lost your place in the wait queue to bob, but no lock"
    assert told == f"[System] Deadlock: {loss}. To wait again, run: coord lock b c"


def bids(harness: LockHarness, size: int) -> None:
    """Close a ring of bids: nobody waits, everybody was refused."""
    for n in range(size):
        harness.lock(f"s{n}", f"file:{n}", ttl=3_600_000)
        harness.pass_time(1_000)
    for n in range(size):
        harness.lock(f"s{n}", f"file:{(n + 1) % size}")


def renew_bids(harness: LockHarness, size: int, *but: int) -> None:
    for n in range(size):
        if n not in but:
            harness.lock(f"s{n}", f"file:{(n + 1) % size}")


@pytest.mark.parametrize("size", range(2, 9))
def test_bids_are_told_at_once_asked_late_and_revoked_after_grace(harness: LockHarness, size: int) -> None:
    """A circle of bids is told at once; after 20 s of asking on, the victim gets 30 s as with `preempt`.

    DLK-5, DLK-13, CFL-17, LCK-23.
    """
    bids(harness, size)
    loser, winner, closed = f"s{size - 1}", f"s{size - 2}", harness.now
    (event,) = harness.events("lock.deadlock")
    assert (event["victim"], event["resolved"]) == (loser, False)
    assert f"Please release {size - 1}, which {winner} needs" in harness.told(loser, "preempt")[0]
    everything = {(f"s{n}", f"file:{n}") for n in range(size)}
    harness.pass_time(19_000)
    renew_bids(harness, size)
    assert harness.told(loser, "preempt") == [], "nobody is told twice, and 20 s have not passed"
    harness.pass_time(1_000)
    renew_bids(harness, size)
    (asked,) = harness.told(loser, "preempt")
    assert f"{winner} needs file:{size - 1} (deadlock: " in asked
    assert asked.endswith("release it within 30 s")
    (event,) = harness.events("lock.preemption_asked")
    assert (event["session"], event["by"], event["until_ms"]) == (loser, winner, harness.now + 30_000)
    for _ in range(3):
        harness.pass_time(9_900)
        renew_bids(harness, size)
        assert harness.held() == everything, "the grace lasts"
    harness.pass_time(300)
    assert harness.held() == everything - {(loser, f"file:{size - 1}")}
    assert harness.lock(winner, f"file:{size - 1}").ok
    assert f"Your lock on file:{size - 1} went to {winner}" in harness.told(loser, "preempt")[0]
    assert harness.now - closed <= 60_000


@pytest.mark.parametrize("who", ["winner", "victim"])
def test_bid_given_up_during_the_grace_saves_the_victim(harness: LockHarness, who: str) -> None:
    """CFL-17, LCK-23: the victim keeps its lock if the circle has gone before the end of its grace."""
    bids(harness, 2)
    harness.pass_time(20_000)
    renew_bids(harness, 2)
    assert len(harness.events("lock.preemption_asked")) == 1
    for _ in range(3):
        harness.pass_time(9_000)
        renew_bids(harness, 2, 0 if who == "winner" else 1)
    assert len(harness.events("lock.preemption_withdrawn")) == 1
    assert "s0 no longer asks for file:1: keep it" in harness.told("s1", "preempt")[-1]
    harness.pass_time(60_000)
    assert harness.held() == {("s0", "file:0"), ("s1", "file:1")}
    assert harness.renew("s1", "file:1").locks


def test_a_place_in_the_queue_needs_no_grace(harness: LockHarness) -> None:
    """CFL-17: a victim without a lock that others need loses its place, after the warning."""
    harness.lock("bob", "file:b", ttl=3_600_000)
    harness.lock("cid", "file:d", ttl=3_600_000)
    waiting = harness.wait("ann", "file:b", "file:c")
    harness.wait("cid", "file:c")
    harness.lock("bob", "file:d")
    assert [event["victim"] for event in harness.events("lock.deadlock")] == ["ann"]
    harness.pass_time(20_000)
    harness.lock("bob", "file:d")
    assert harness.confirm("ann", waiting).outcome == "deadlock"
    assert harness.events("lock.preemption_asked") == []


def test_bid_that_was_not_renewed_saves_the_victim(harness: LockHarness) -> None:
    """CFL-17: one that stopped asking may have moved on; nothing is asked back for a bid of before."""
    bids(harness, 3)
    harness.pass_time(31_000)
    harness.lock("s0", "file:1")
    harness.lock("s1", "file:2")
    assert harness.events("lock.preemption_asked") == []
    harness.lock("s2", "file:0")
    assert len(harness.events("lock.preemption_asked")) == 1, "now all three have asked again"


def test_bids_that_lapsed_are_no_circle(harness: LockHarness) -> None:
    """A bid of a minute ago is forgotten: who asks alone closes nothing."""
    harness.lock("ann", "file:a", ttl=3_600_000)
    harness.lock("bob", "file:b", ttl=3_600_000)
    harness.lock("ann", "file:b")
    harness.pass_time(60_000)
    assert harness.lock("bob", "file:a").cycle == []
    assert harness.events("lock.deadlock") == []


def test_wait_and_bid_in_one_circle(harness: LockHarness) -> None:
    """CFL-17: with a bid in the circle nobody is blocked for certain, also if the others wait."""
    harness.lock("ann", "file:a", ttl=3_600_000)
    harness.pass_time(1_000)
    harness.lock("bob", "file:b", ttl=3_600_000)
    waiting = harness.wait("ann", "file:b")
    told = harness.lock("bob", "file:a")
    assert (told.outcome, told.cycle) == ("held", ["bob", "ann", "bob"])
    assert harness.held() == {("ann", "file:a"), ("bob", "file:b")}
    for _ in range(5):
        harness.pass_time(10_000)
        assert harness.lock("bob", "file:a").outcome == "held"
    assert harness.confirm("ann", waiting).ok, "bob asked on, and lost b"


def test_bid_repeated_in_another_mode_counts_at_once(harness: LockHarness) -> None:
    """DLK-3, CFL-17: who first asked to read and now asks to write waits for the readers, too."""
    harness.lock("ann", "file:a")
    harness.lock("bob", "file:b", mode="read")
    harness.lock("cid", "file:c")
    harness.lock("ann", "file:b", "file:c", mode="read")
    harness.lock("ann", "file:b", "file:c", mode="write")
    assert harness.wait("bob", "file:a").outcome == "waiting"
    assert [event["cycle"] for event in harness.events("lock.deadlock")] == [["bob", "ann", "bob"]]


def test_bids_do_not_hide_a_circle_of_waits(harness: LockHarness) -> None:
    """DLK-3, DLK-13: a circle of waits is resolved at once, also if one with a bid shares a wait with it."""
    harness.lock("ann", "file:a")
    harness.lock("aaa", "file:x", mode="read")
    harness.lock("zoe", "file:x", mode="read")
    harness.lock("aaa", "file:a")
    harness.wait("zoe", "file:a")
    harness.wait("ann", "file:x")
    resolved = [event for event in harness.events("lock.deadlock") if event["resolved"]]
    assert [set(event["cycle"]) for event in resolved] == [{"ann", "zoe"}]


def test_refused_wait_leaves_no_trace_in_line(harness: LockHarness) -> None:
    """DLK-15: the victim may ask again at once, and waits behind the winner."""
    ring(harness, 2)
    again = harness.wait("s1", "file:1")
    assert again.ok, "what it asks for now is free"
    assert harness.wait("s1", "file:s0").outcome == "waiting"


LOSSES = [
    (
        ["file:y.py"],
        ["file:x.py", "file:y.py"],
        [],
        "Deadlock: you lost y.py to ada. Stop editing it, then run: coord lock x.py y.py",
    ),
    (
        ["file:y.py", "file:z z.py"],
        ["file:y.py", "file:z z.py"],
        ["T2"],
        (
            "Deadlock: you lost y.py, z z.py to ada. Stop editing them, "
            "then run: coord lock y.py 'z z.py' && coord task claim T2"
        ),
    ),
    (
        ["name:push"],
        ["file:x.py", "name:push"],
        [],
        "Deadlock: you lost name:push to ada. Stop using it, then run: coord lock x.py name:push",
    ),
    (
        [],
        ["file:x.py"],
        [],
        (
            "Deadlock: you lost your place in the wait queue to ada, but no lock. "
            "To wait again, run: coord lock x.py"
        ),
    ),
]


@pytest.mark.parametrize(("lost", "again", "claims", "sentence"), LOSSES)
def test_the_victim_reads_its_loss_and_one_command(
    lost: list[str], again: list[str], claims: list[str], sentence: str
) -> None:
    """DLK-15: which lock was lost, to whom, and what gets everything together."""
    assert deadlock_text(lost, "ada", again, claims) == sentence


def test_the_victim_that_waited_for_a_task_waits_again_without_locks() -> None:
    """DLK-15: it takes its locks after the task has come, so that it blocks nobody before."""
    waits = "coord task next --wait 10m"
    assert deadlock_text(["file:x"], "bob", ["file:x"], task=True) == (
        f"Deadlock: you lost x to bob. Stop editing it, then run: {waits} && coord lock x"
    )
    assert deadlock_text([], "bob", [], task=True) == (
        f"Deadlock: bob waits behind the task that you hold. Submit or release it, then run: {waits}"
    )
