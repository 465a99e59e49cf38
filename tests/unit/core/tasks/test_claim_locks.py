"""A claim and its locks live and die together."""

from collections.abc import Callable

import pytest

from coord.core.errors import Refused
from coord.core.identity import ProcessState
from coord.core.locks.commands import CheckFences
from coord.core.sessions.commands import Heartbeat
from coord.core.tasks.claim_locks import AGING_MAX, lock_priority
from coord.core.tasks.commands import GetClaimHistory, SubmitResult
from coord.core.tasks.schema import PRIORITY_STEP_MS, Spec
from tests.support.claim_harness import LEASE_MS, ClaimHarness
from tests.support.lock_harness import REPOSITORY, T0
from tests.support.rule_harness import Kept, RuleHarness


@pytest.fixture
def harness() -> ClaimHarness:
    harness = ClaimHarness()
    harness.add("t", "a.py", "b.py")
    assert harness.claim("ann", "t").success
    return harness


def stolen(harness: ClaimHarness) -> None:
    assert harness.steal("bob", "file:a.py", force=True, reason="urgent").ok


def preempted(harness: ClaimHarness) -> None:
    harness.preempt("bob", "file:a.py", priority=9)
    harness.pass_time(10_000)
    assert harness.lock("bob", "file:a.py").ok


def deadlocked(harness: ClaimHarness) -> None:
    harness.lock("bob", "file:c.py", priority=5)
    harness.wait("bob", "file:a.py", priority=5)
    assert harness.wait("ann", "file:c.py").cycle


def expired(harness: ClaimHarness) -> None:
    harness.pass_time(LEASE_MS)
    assert harness.lock("bob", "file:a.py").ok


LOSSES = [stolen, preempted, deadlocked, expired]


@pytest.mark.parametrize("lose", LOSSES)
def test_a_claim_ends_with_its_lock(harness: ClaimHarness, lose: Callable[[ClaimHarness], None]) -> None:
    """DLK-16, CFL-16: the commit that takes one lock requeues the task and frees its other lock."""
    lose(harness)
    assert harness.state("t") == "ready"
    assert ("ann", "file:b.py") not in harness.held()
    assert harness.lock("cleo", "file:b.py").ok


@pytest.mark.parametrize("lose", LOSSES)
def test_the_old_holder_is_refused_with_a_reason(
    harness: ClaimHarness, lose: Callable[[ClaimHarness], None]
) -> None:
    """Renew, release and submit are refused, and the submission counts as lost work."""
    lose(harness)
    late = lose is expired
    reply = harness.submit("ann", "t")
    assert (reply.accepted, reply.reason, reply.work_lost) == (False, "LOCK_LOST", True)
    assert "bob" in reply.detail
    reason = "ALREADY_EXPIRED" if late else "LOCK_LOST"
    assert harness.renew_claim("ann", "t").reason == reason
    assert harness.release_claim("ann", "t").reason == reason
    assert harness.state("t") == "ready"


@pytest.mark.parametrize("lose", LOSSES[:3])
def test_the_holder_is_notified(harness: ClaimHarness, lose: Callable[[ClaimHarness], None]) -> None:
    """DLK-15: the message names the task, the lock and the session that has it now."""
    lose(harness)
    subjects = harness.told("ann", "preempt")
    assert any("You lost task t (generation 1): file:a.py was lost to bob" in text for text in subjects)
    (past,) = harness.engine.call(GetClaimHistory("local", "p", "t"))
    assert past.release_reason == "PREEMPTED"
    assert "file:a.py" in past.note


@pytest.mark.parametrize("lose", LOSSES[:3])
def test_nobody_failed(harness: ClaimHarness, lose: Callable[[ClaimHarness], None]) -> None:
    """A lost lock costs neither a retry nor the agent's reputation: it gets the task again at once."""
    lose(harness)
    for resource in ("file:a.py", "file:c.py"):
        if ("bob", resource) in harness.held():
            harness.release("bob", resource)
    assert harness.take("ann") == "t"
    assert harness.submit("ann", "t", 2).accepted


def test_preemption_ends_the_claim_when_its_time_is_over(harness: ClaimHarness) -> None:
    """A deadline acts when it passes: nobody has to take the lock or to sweep first."""
    harness.preempt("bob", "file:a.py", priority=9, grace_ms=10_000)
    harness.pass_time(9_999)
    assert harness.renew_claim("ann", "t").success
    unswept = RuleHarness()
    (records,) = harness.store.load([], [("", "key", 1000, ("", ""))]).ranges
    unswept.records = {each.key: Kept(each.value, each.index_key) for each in records}
    submit = SubmitResult("local", "p", "t", "ann", 1, b"{}", "wp")
    assert unswept.run(submit, harness.now + 1).reply.reason == "LOCK_LOST"


def test_a_late_result_counts_while_nobody_had_the_files(harness: ClaimHarness) -> None:
    """CLM-52: the lease ran out, but nobody claimed the task or locked its files since."""
    harness.pass_time(LEASE_MS + 1)
    assert harness.lock("bob", "file:c.py").ok
    assert harness.submit("ann", "t").accepted


@pytest.mark.parametrize("swept", [False, True])
@pytest.mark.parametrize("resource", ["file:a.py", "file:*.py"])
def test_a_late_result_is_rejected_after_somebody_had_a_file(
    harness: ClaimHarness, resource: str, swept: bool
) -> None:
    """The other session may have changed the file, and has released it since: nothing else shows that."""
    harness.pass_time(LEASE_MS + 20_000)
    if swept:
        harness.engine.call(Heartbeat(harness.who("watcher")))
        assert harness.state("t") == "ready"
    harness.lock("bob", resource)
    harness.release("bob", resource)
    reply = harness.submit("ann", "t")
    assert (reply.reason, reply.detail) == ("LOCK_LOST", "bob had its files after the lease expired")


def test_a_sub_agent_does_not_spoil_a_late_result(harness: ClaimHarness) -> None:
    """A session and its sub-agents work together: locks of the family are no loss."""
    harness.parents["sub"] = "ann"
    harness.pass_time(LEASE_MS + 1)
    harness.lock("sub", "file:a.py")
    harness.release("sub", "file:a.py")
    assert harness.submit("ann", "t").accepted


def test_a_claim_needs_what_its_session_had_before() -> None:
    """A lock taken by hand before the claim survives it, but its loss ends the claim."""
    harness = ClaimHarness()
    harness.add("t", "a.py")
    harness.lock("ann", "file:a.py")
    assert harness.claim("ann", "t").success
    assert harness.submit("ann", "t").accepted
    assert harness.held() == {("ann", "file:a.py")}
    harness.reset("t")
    assert harness.claim("ann", "t").success
    stolen(harness)
    assert harness.submit("ann", "t", 2).reason == "LOCK_LOST"


def test_a_lock_of_a_claim_is_not_released_by_hand(harness: ClaimHarness) -> None:
    """Otherwise another session could change the file under a claim that still counts."""
    with pytest.raises(Refused, match=r"file:a\.py belongs to the claim of t") as caught:
        harness.release("ann", "file:a.py")
    assert "coord task release t" in caught.value.hint
    harness.lock("ann", "file:c.py")
    reply = harness.release("ann")
    assert (reply.released, sorted(reply.kept)) == (["file:c.py"], ["file:a.py", "file:b.py"])
    assert harness.submit("ann", "t").accepted
    assert harness.held() == set()


def test_asking_again_keeps_the_lease_of_the_claim(harness: ClaimHarness) -> None:
    """A short lease by hand must not end the lock before the claim."""
    harness.lock("ann", "file:a.py", ttl=1_000)
    harness.renew("ann", "file:a.py", ttl=1_000)
    harness.pass_time(LEASE_MS - 1)
    assert not harness.lock("bob", "file:a.py").ok
    assert harness.submit("ann", "t").accepted


def test_renewing_a_claim_renews_its_locks(harness: ClaimHarness) -> None:
    """CLM-12: nobody gets a file while the claim is renewed."""
    for _ in range(3):
        harness.pass_time(LEASE_MS - 1)
        assert harness.renew_claim("ann", "t").success
        assert not harness.lock("bob", "file:b.py").ok


def test_a_claim_dies_with_its_session(harness: ClaimHarness) -> None:
    """Locks and task are free together when the holder is proven dead."""
    harness.pids["dot"] = 7
    harness.add("u", "d.py")
    assert harness.claim("dot", "u").success
    harness.life[7] = ProcessState.DEAD
    assert harness.lock("bob", "file:d.py").ok
    assert harness.state("u") == "ready"


@pytest.mark.parametrize("life", [ProcessState.ALIVE, ProcessState.UNKNOWN, ProcessState.DEAD])
def test_a_task_of_a_dead_session_is_claimed_by_name(life: ProcessState) -> None:
    """REC-28: whoever asks for the task proves that its holder is dead; only a proof counts."""
    harness = ClaimHarness()
    harness.pids["ann"] = 7
    harness.add("t", "a.py")
    assert harness.claim("ann", "t").success
    harness.life[7] = life
    reply = harness.claim("bob", "t")
    assert reply.success is (life is ProcessState.DEAD)
    assert harness.held() == {("bob" if reply.success else "ann", "file:a.py")}
    assert harness.submit("ann", "t").accepted is not reply.success


def test_a_fence_of_a_claim_is_superseded(harness: ClaimHarness) -> None:
    """Rule 3: the gates of git, too, refuse what the claim's other lock covered."""
    fence = next(lock.fence for lock in harness.lock("ann", "file:b.py").locks)
    stolen(harness)
    harness.lock("cleo", "file:b.py")
    (found,) = harness.engine.call(CheckFences(REPOSITORY, ((fence, "file:b.py", ""),)))
    assert (found.end_reason, found.superseded, found.by) == ("claim_lost", True, "cleo")


def test_priority_reaches_the_locks() -> None:
    """LCK-10: a task of priority 9 keeps its file against a request of priority 1."""
    harness = ClaimHarness()
    harness.add("t", "a.py", priority=9)
    assert harness.claim("ann", "t").success
    with pytest.raises(Refused, match="priority 9"):
        harness.preempt("bob", "file:a.py", priority=1)
    assert harness.preempt("bob", "file:a.py", priority=10).asked == ["ann"]


def test_waiting_raises_the_priority_up_to_a_bound() -> None:
    """DLK-17: a task that waited is not preempted by the next best, but a person still can."""
    spec = Spec(priority=2, created_ms=T0)
    assert lock_priority(spec, T0) == 2
    assert lock_priority(spec, T0 + 3 * PRIORITY_STEP_MS) == 5
    assert lock_priority(spec, T0 + 1000 * PRIORITY_STEP_MS) == 2 + AGING_MAX


def test_two_claims_of_a_session_share_a_lock() -> None:
    """The first claim to end releases nothing that the second needs."""
    harness = ClaimHarness()
    harness.add("t", "a.py")
    harness.add("u", "a.py")
    assert harness.claim("ann", "t").success
    assert harness.claim("ann", "u").success
    assert harness.submit("ann", "t").accepted
    assert harness.held() == {("ann", "file:a.py")}
    stolen(harness)
    assert harness.submit("ann", "u").reason == "LOCK_LOST"
