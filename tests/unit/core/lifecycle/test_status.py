"""Sessions as they are shown: one, the others, and the caller's own with all that concerns it."""

from typing import Any

import msgspec
import pytest

from coord.core.identity import ProcessState
from coord.core.lifecycle.commands import GetOverview, GetStatus
from coord.core.messages.commands import SendMessage
from coord.core.sessions.commands import GetSession, Heartbeat, ListSessions, UpdateSession
from coord.core.sessions.liveness import STALE_MS
from coord.core.tasks.commands import ClaimTask
from tests.support.claim_harness import LEASE_MS, ClaimHarness
from tests.support.lock_harness import LockHarness


@pytest.fixture
def harness() -> LockHarness:
    """Three sessions; the oldest comes last in the alphabet."""
    harness = LockHarness()
    for name in ("zoe", "ann-1", "ann-2"):
        harness.beat(name)
        harness.pass_time(1_000)
    return harness


def listed(harness: LockHarness, by: str, **options: bool) -> list[str]:
    return [one.session_id for one in harness.engine.call(ListSessions(harness.who(by), **options))]


def status(harness: LockHarness, name: str) -> Any:
    return harness.engine.call(GetStatus(caller=harness.who(name), tenant="local"))


def test_the_others_are_listed_oldest_first(harness: LockHarness) -> None:
    """The caller and ended sessions are listed only on request."""
    assert listed(harness, "ann-1") == ["zoe", "ann-2"]
    harness.leave("zoe")
    assert listed(harness, "ann-1") == ["ann-2"]
    assert listed(harness, "ann-1", everyone=True) == ["zoe", "ann-1", "ann-2"]


def test_live_leaves_out_stale_and_dead_sessions(harness: LockHarness) -> None:
    harness.pids["ann-2"] = 7
    harness.pass_time(STALE_MS)
    harness.beat("ann-1")
    harness.beat("ann-2")
    assert listed(harness, "ann-1", live=True) == ["ann-2"], "zoe is stale"
    harness.life[7] = ProcessState.DEAD
    assert listed(harness, "ann-1", live=True) == []
    assert listed(harness, "ann-1") == ["zoe", "ann-2"]


def test_sub_agents_are_among_what_a_session_owns(harness: LockHarness) -> None:
    """SUP-14, SUP-16: from their first command until they end, beside what the session names itself."""
    harness.parents = {"kid": "zoe", "sib": "zoe"}
    harness.engine.call(UpdateSession(caller=harness.who("zoe"), owned={"agents": ["helper"], "files": 2}))

    def owned() -> Any:
        (zoe,) = [
            one for one in harness.engine.call(ListSessions(harness.who("ann-1"))) if one.session_id == "zoe"
        ]
        shown = harness.engine.call(GetSession(harness.who("ann-1"), "zoe"))
        assert zoe.owned_resources == shown.owned_resources
        return zoe.owned_resources

    assert owned() == {"agents": ["helper"], "files": 2}
    harness.beat("kid")
    harness.beat("sib")
    assert owned() == {"agents": ["helper", "kid", "sib"], "files": 2}
    harness.leave("kid")
    assert owned() == {"agents": ["helper", "sib"], "files": 2}


def test_status_has_all_that_concerns_a_session(harness: LockHarness) -> None:
    """Its claims, locks, waits, messages and sub-agents."""
    harness.parents = {"kid": "zoe"}
    harness.beat("kid")
    harness.lock("ann-1", "file:a")
    harness.lock("zoe", "file:z")
    harness.wait("zoe", "file:a")
    harness.engine.call(ClaimTask("local", "shop", "login", "zoe", "zoe", 60_000))
    for kind in ("status", "emergency"):
        harness.engine.call(SendMessage(caller=harness.who("ann-1"), to="zoe", kind=kind, subject="hello"))
    found = status(harness, "zoe")
    assert (found.session.session_id, found.session.state) == ("zoe", "blocked")
    assert [wait.behind for wait in found.session.waits] == [["ann-1"]]
    assert [claim.task_id for claim in found.claims] == ["login"]
    assert [(lock.resource, lock.expires_in_s) for lock in found.locks] == [("file:z", 300)]
    assert (found.unread, found.emergencies) == (2, 1)
    assert [agent.session_id for agent in found.agents] == ["kid"]


def test_nobody_gets_a_status_of_somebody_else(harness: LockHarness) -> None:
    """Neither one who never registered, nor one that ended, nor a terminal outside of its repository."""
    assert status(harness, "nobody").session is None
    harness.leave("ann-1")
    assert status(harness, "ann-1").session is None
    inside = msgspec.structs.replace(harness.who("zoe"), session="term", repository="/home/ann/shop")
    harness.engine.call(Heartbeat(inside))
    assert harness.engine.call(GetStatus(caller=inside, tenant="local", stubs=True)).session is None
    shown = harness.engine.call(GetStatus(caller=inside, tenant="local")).session
    assert (shown.session_id, shown.repository) == ("term", "/home/ann/shop")


def test_the_overview_counts_claims_as_of_now() -> None:
    """No sweep has to run before a task whose lease has expired no longer counts as being worked on."""
    harness = ClaimHarness()
    harness.add("t")
    harness.add("u")
    assert harness.claim("ann", "t").success
    counts = []
    for ms in (0, LEASE_MS - 1, 1):
        harness.pass_time(ms)
        found = harness.engine.call(GetOverview(project="p")).queue
        counts.append((found.unfinished, found.working, found.stuck))
    assert counts == [(2, 1, 0), (2, 1, 0), (2, 0, 0)]
