"""Questions about sessions: one by its id or prefix, and a list of the others."""

import pytest

from coord.core.errors import Invalid, NotFound
from coord.core.identity import ProcessState
from coord.core.sessions.commands import GetSession, ListSessions
from coord.core.sessions.liveness import STALE_MS
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


def test_a_prefix_names_the_only_session_that_begins_with_it(harness: LockHarness) -> None:
    """AMB-26: a full id always wins; a prefix that fits several sessions, or none, is refused."""

    def found(name: str) -> str:
        session_id: str = harness.engine.call(GetSession(harness.who("zoe"), name)).session_id
        return session_id

    assert [found(""), found("ann-1"), found("z")] == ["zoe", "ann-1", "zoe"]
    with pytest.raises(Invalid, match="more than one session begins with ann"):
        found("ann")
    with pytest.raises(NotFound, match="there is no session bob"):
        found("bob")
    harness.beat("ann")
    assert found("ann") == "ann"


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
