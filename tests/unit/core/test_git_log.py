"""The record of a commit, and how a loss is remembered."""

import pytest

from coord.core.errors import LockLost
from coord.core.git_log import RecordCommit
from coord.core.locks.locks import LOSS_KEPT_MS
from coord.core.sweep import SWEEP_MAX
from tests.support.lock_harness import REPOSITORY, LockHarness


@pytest.fixture
def harness() -> LockHarness:
    """A fresh harness."""
    return LockHarness()


def record(harness: LockHarness, *fences: int) -> str:
    """Record a commit of ann under these fences."""
    command = RecordCommit(
        harness.who("ann"),
        REPOSITORY,
        ("file:a.py", "file:b.py")[: len(fences)],
        fences=fences,
        commit="1a2b3c",
        branch="main",
        subject="feat: login",
        files=("a.py",),
        file_count=1,
    )
    return str(harness.engine.call(command).commit)


def test_a_commit_under_held_locks_is_told(harness: LockHarness) -> None:
    """GIT-21, AMB-33: the event names commit, files and fences."""
    fences = [harness.lock("ann", name).locks[0].fence for name in ("file:a.py", "file:b.py")]
    assert record(harness, *fences) == "1a2b3c"
    (event,) = harness.events("git.committed")
    assert (event["session"], event["commit"], event["files"]) == ("ann", "1a2b3c", ["a.py"])
    assert event["fences"] == fences


@pytest.mark.parametrize("how", ["ran out", "other fence", "released", "of another"])
def test_a_commit_under_a_lost_lock_is_not_told(harness: LockHarness, how: str) -> None:
    """GIT-21: whatever became of the lock, the log does not vouch for the commit."""
    fence = harness.lock("bob" if how == "of another" else "ann", "file:a.py", ttl=10_000).locks[0].fence
    if how == "ran out":
        harness.lock("zed", *(f"file:z{number}" for number in range(SWEEP_MAX + 8)), ttl=9_000)
        harness.pass_time(10_000)  # so much is due that the sweep does not come to it
    elif how == "other fence":
        fence -= 1
    elif how == "released":
        harness.release("ann", "file:a.py")
    with pytest.raises(LockLost, match="was lost"):
        record(harness, fence)
    assert harness.events("git.committed") == []


@pytest.mark.parametrize("how", ["expired", "stolen", "preempted", "released", "left"])
def test_the_next_holder_hears_of_a_loss(harness: LockHarness, how: str) -> None:
    """REC-11: a grant says for a day whether somebody near lost a lock; what was given back is no loss."""
    harness.lock("ann", "file:a.py", ttl=10_000)
    if how == "stolen":
        harness.steal("bob", "file:a.py", force=True, reason="x")
    elif how == "preempted":
        harness.preempt("bob", "file:a.py", priority=1, grace_ms=0)
    elif how == "released":
        harness.release("ann", "file:a.py")
    elif how == "left":
        harness.leave("ann")
    harness.pass_time(10_000)
    harness.lock("bob", "file:a.py", ttl=10_000)
    harness.release("bob", "file:a.py")
    lost = how in ("expired", "stolen", "preempted")
    assert harness.lock("cid", "file:b.py").after_loss is lost
    harness.release("cid", "file:b.py")
    harness.pass_time(LOSS_KEPT_MS)
    assert not harness.lock("dan", "file:c.py").after_loss


def test_a_waiter_hears_of_a_loss(harness: LockHarness) -> None:
    """REC-11: who was handed a lock that its holder lost is told when it takes it over."""
    harness.lock("ann", "file:a.py", ttl=10_000)
    waiting = harness.wait("bob", "file:a.py")
    harness.pass_time(10_000)
    reply = harness.confirm("bob", waiting)
    assert reply.ok
    assert reply.after_loss
