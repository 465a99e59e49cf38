"""The end of a session: its locks, claims, requests and messages end with it."""

import pytest

from coord.core.errors import NotFound, Refused
from coord.core.identity import ProcessState
from coord.core.lifecycle.commands import Deregister
from coord.core.lifecycle.end import SILENT_KEPT_MS
from coord.core.sessions.identify import ENDED_KEPT_MS
from tests.support.lock_harness import LockHarness


@pytest.fixture
def harness() -> LockHarness:
    return LockHarness()


def end(harness: LockHarness, by: str, session: str, *, to_parent: bool = False) -> list[str]:
    """End a session; return the resources that it released."""
    reply = harness.engine.call(Deregister(harness.who(by), session, to_parent))
    released: list[str] = reply.released
    return released


def test_locks_and_requests_end_with_the_session(harness: LockHarness) -> None:
    """The next in the queue gets the lock in the same commit; a request of the session is dropped."""
    harness.lock("ann", "file:a")
    harness.lock("cid", "file:b")
    harness.wait("ann", "file:b")
    harness.wait("bob", "file:a")
    assert end(harness, "ann", "") == ["file:a"]
    assert harness.held() == {("bob", "file:a"), ("cid", "file:b")}
    harness.release("cid", "file:b")
    assert harness.held() == {("bob", "file:a")}
    (ended,) = harness.events("session.ended")
    assert (ended["session"], ended["end_reason"]) == ("ann", "deregistered")


def test_only_the_session_its_parent_or_anybody_after_its_death_may_end_it(harness: LockHarness) -> None:
    harness.parents["kid"] = "ann"
    harness.pids["bob"] = 7
    for name in ("ann", "kid", "bob"):
        harness.beat(name)
    with pytest.raises(Refused, match="is not yours"):
        end(harness, "ann", "bob")
    with pytest.raises(Refused, match="is not yours"):
        end(harness, "kid", "ann")
    assert end(harness, "ann", "kid") == []
    harness.life[7] = ProcessState.DEAD
    assert end(harness, "ann", "bob") == []
    with pytest.raises(NotFound, match="there is no session bob"):
        end(harness, "ann", "bob")


def test_a_lock_that_a_sub_agent_asked_for_is_not_left_to_its_parent(harness: LockHarness) -> None:
    """Only locks that hooks took pass to the parent; this one goes to the next in the queue."""
    harness.parents["kid"] = "ann"
    harness.beat("ann")
    harness.lock("kid", "file:a")
    harness.wait("bob", "file:a")
    assert end(harness, "kid", "", to_parent=True) == ["file:a"]
    assert harness.held() == {("bob", "file:a")}


def test_a_silent_session_is_forgotten_in_the_end(harness: LockHarness) -> None:
    """One that holds nothing ends after a week; its record is deleted a day later."""
    harness.beat("silent")
    harness.pass_time(SILENT_KEPT_MS - 1)
    harness.beat("ann")
    assert harness.events("session.ended") == []
    for _ in range(4):
        harness.pass_time(ENDED_KEPT_MS)
        harness.beat("ann")
    (ended,) = harness.events("session.ended")
    assert (ended["session"], ended["end_reason"]) == ("silent", "forgotten")
    assert "session/silent" not in {
        record.key for record in harness.store.scan("session/", by="key", limit=9)
    }
