"""What a session reports about itself, and what its end releases."""

import pytest

from coord.core.sessions.commands import GetSession, UpdateSession
from coord.core.tasks.commands import ClaimTask, GetTaskState
from tests.support.lock_harness import LockHarness


@pytest.fixture
def harness() -> LockHarness:
    return LockHarness()


@pytest.mark.parametrize("status", ["completed", "failed", "done", "error"])
def test_the_end_that_a_session_reports_frees_what_it_has(harness: LockHarness, status: str) -> None:
    """STA-21: its claims go back to the queue, its locks to who waits for them, in one commit."""
    harness.lock("ann", "file:a", "name:n")
    harness.engine.call(ClaimTask("local", "shop", "login", "ann", "ann", 60_000))
    harness.wait("bob", "file:a")
    before = len(harness.store.tail(0, 100_000))
    reply = harness.engine.call(UpdateSession(caller=harness.who("ann"), status=status))
    assert len(harness.store.tail(0, 100_000)) == before + 1
    assert (sorted(reply.released), reply.returned) == (["file:a", "name:n"], ["login"])
    assert harness.held() == {("bob", "file:a")}
    assert harness.engine.call(GetTaskState("local", "shop", "login")).state == "ready"
    assert {event["end_reason"] for event in harness.events("lock.released")} == {"released"}
    assert harness.beat("ann").session_id == "ann", "it may go on under the same id"


@pytest.mark.parametrize("status", ["idle", "working", "blocked", "stopping", "in review"])
def test_other_reports_release_nothing(harness: LockHarness, status: str) -> None:
    """STA-10: `blocked` on something outside of coord is a report that nothing else can show."""
    harness.lock("ann", "file:a")
    reply = harness.engine.call(UpdateSession(caller=harness.who("ann"), status=status))
    assert (reply.released, reply.returned) == ([], [])
    assert harness.held() == {("ann", "file:a")}
    assert reply.state == (status if status != "in review" else "idle")


def test_a_later_update_of_something_else_releases_nothing(harness: LockHarness) -> None:
    """The report ends what there was; what the session takes afterwards stays."""
    harness.engine.call(UpdateSession(caller=harness.who("ann"), status="completed"))
    harness.lock("ann", "file:a")
    harness.engine.call(UpdateSession(caller=harness.who("ann"), phase="once more"))
    assert harness.held() == {("ann", "file:a")}


def test_a_claim_after_the_report_shows_that_it_goes_on(harness: LockHarness) -> None:
    harness.engine.call(UpdateSession(caller=harness.who("ann"), status="completed"))
    harness.pass_time(1)
    harness.engine.call(ClaimTask("local", "shop", "login", "ann", "ann", 60_000))
    assert harness.engine.call(GetSession(harness.who("ann"))).state == "working"
