"""A lock or a claim changes hands in one commit."""

from typing import Any

import pytest

from coord.core.errors import CoordError, Dead, Denied, Invalid, NotFound, Refused
from coord.core.identity import ProcessState
from coord.core.lifecycle.commands import Handoff
from coord.core.locks.commands import CheckFences
from coord.core.sessions.commands import Heartbeat
from coord.core.tasks.commands import GetClaimHistory
from tests.support.claim_harness import LEASE_MS, ClaimHarness
from tests.support.lock_harness import REPOSITORY

NOTE = "go on"


@pytest.fixture
def harness() -> ClaimHarness:
    harness = ClaimHarness()
    for name in ("ann", "bob", "cleo"):
        harness.engine.call(Heartbeat(harness.agent(name)))
    return harness


def hand(harness: ClaimHarness, giver: str, taker: str, *resources: str, task: str = "") -> Any:
    command = Handoff(
        harness.agent(giver),
        REPOSITORY,
        resources,
        to=taker,
        tenant="local",
        project="p",
        task=task,
        note=NOTE,
    )
    return harness.engine.call(command)


def test_a_lock_changes_hands(harness: ClaimHarness) -> None:
    """MSG-15: the taker has it under a larger fence, is notified, and no waiter slips in between."""
    old = harness.lock("ann", "file:a").locks[0].fence
    waiting = harness.wait("cleo", "file:a")
    reply = hand(harness, "ann", "bob", "file:a")
    assert (reply.to, reply.locks[0].owner) == ("bob", "bob")
    assert reply.locks[0].fence > old
    assert harness.held() == {("bob", "file:a")}
    assert harness.told("bob", "handoff") == ['[System] ann handed you file:a: "go on"']
    with pytest.raises(CoordError):
        harness.renew("ann", "file:a")
    harness.release("bob", "file:a")
    assert harness.confirm("cleo", waiting).ok


def test_work_done_before_stays_valid(harness: ClaimHarness) -> None:
    """The giver let it go by choice, so its commits count; later ones would not."""
    fence = harness.lock("ann", "file:a").locks[0].fence
    hand(harness, "ann", "bob", "file:a")
    (found,) = harness.engine.call(CheckFences(REPOSITORY, ((fence, "file:a", ""),)))
    assert (found.end_reason, found.superseded) == ("released", False)


def test_a_claim_changes_hands_with_its_files(harness: ClaimHarness) -> None:
    """MSG-15: the taker has the next generation and the locks; the giver is a zombie from now on."""
    harness.add("t", "a.py", "b.py")
    assert harness.claim("ann", "t").success
    waiting = harness.wait("cleo", "file:a.py")
    reply = hand(harness, "ann", "bob", task="t")
    assert (reply.task, reply.generation) == ("t", 2)
    assert harness.held() == {("bob", "file:a.py"), ("bob", "file:b.py")}
    assert harness.submit("ann", "t", 1).reason == "STALE_GENERATION"
    assert harness.submit("bob", "t", 2).accepted
    assert harness.confirm("cleo", waiting).ok
    past = harness.engine.call(GetClaimHistory("local", "p", "t"))
    first = past[0]
    assert (first.session_id, first.release_reason, first.note) == ("ann", "VOLUNTARY", "handed to bob")


def test_a_word_means_the_task_that_is_claimed(harness: ClaimHarness) -> None:
    """A file may have the name of a task; what the session has claimed comes first."""
    harness.add("t")
    harness.lock("ann", "file:t")
    assert hand(harness, "ann", "bob", "file:t", task="t").task == ""
    harness.claim("bob", "t")
    reply = hand(harness, "bob", "ann", "file:t", task="t")
    assert (reply.task, reply.generation) == ("t", 2)


def test_what_cannot_be_handed_over(harness: ClaimHarness) -> None:
    """Each refusal names the reason, and changes nothing."""
    harness.add("t", "a.py")
    assert harness.claim("ann", "t").success
    harness.lock("ann", "file:src", "file:src/b.py")
    harness.pids["dot"] = 7
    harness.engine.call(Heartbeat(harness.agent("dot")))
    harness.life[7] = ProcessState.DEAD
    before = harness.held()
    for error, text, call in (
        (Refused, "belongs to the claim of t", lambda: hand(harness, "ann", "bob", "file:a.py")),
        (Denied, "file:src/b.py of ann overlaps", lambda: hand(harness, "ann", "bob", "file:src")),
        (NotFound, "nobody holds", lambda: hand(harness, "ann", "bob", "file:c")),
        (CoordError, "is held by ann", lambda: hand(harness, "cleo", "bob", "file:src")),
        (Refused, "t is claimed by ann", lambda: hand(harness, "cleo", "bob", "name:t", task="t")),
        (Refused, "does not hold t", lambda: hand(harness, "cleo", "bob", task="t")),
        (NotFound, "nobody", lambda: hand(harness, "ann", "nobody", "file:src")),
        (Invalid, "this session", lambda: hand(harness, "ann", "ann", "file:src")),
        (Dead, "dot is dead", lambda: hand(harness, "ann", "dot", "file:src")),
        (Invalid, "nothing to hand over", lambda: hand(harness, "ann", "bob")),
    ):
        with pytest.raises(error, match=text):
            call()
    assert harness.held() == before
    assert harness.submit("ann", "t").accepted


def test_a_lock_by_hand_blocks_the_claim_it_covers(harness: ClaimHarness) -> None:
    """The giver would keep the file, so the claim cannot go without it."""
    harness.add("t", "a.py")
    harness.lock("ann", "file:a.py")
    assert harness.claim("ann", "t").success
    with pytest.raises(Denied, match=r"file:a\.py is also locked by ann") as caught:
        hand(harness, "ann", "bob", task="t")
    assert caught.value.hint == "release it first: coord unlock file:a.py"
    assert harness.submit("ann", "t").accepted


def test_an_expired_claim_is_not_handed_over(harness: ClaimHarness) -> None:
    """What the giver no longer holds, it cannot give."""
    harness.add("t", "a.py")
    assert harness.claim("ann", "t").success
    harness.pass_time(LEASE_MS)
    with pytest.raises(Refused, match="already expired"):
        hand(harness, "ann", "bob", task="t")


def test_a_promised_lock_goes_only_to_the_session_it_is_promised_to(harness: ClaimHarness) -> None:
    """CFL-16: a preemption is not evaded by passing the lock on."""
    harness.lock("ann", "file:a")
    harness.preempt("cleo", "file:a", priority=5)
    with pytest.raises(CoordError, match="cleo was promised file:a"):
        hand(harness, "ann", "bob", "file:a")
    assert hand(harness, "ann", "cleo", "file:a").to == "cleo"


def test_a_lock_that_the_taker_has_already_keeps_its_uses(harness: ClaimHarness) -> None:
    """Two readers: the lock of the taker may belong to a claim, and is not replaced."""
    harness.lock("ann", "file:a", mode="read")
    harness.lock("bob", "file:a", mode="read", use="guard:1")
    with pytest.raises(Denied, match="bob has a lock on file:a already"):
        hand(harness, "ann", "bob", "file:a")
    assert harness.held() == {("ann", "file:a"), ("bob", "file:a")}
