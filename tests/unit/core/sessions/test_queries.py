"""Find a session: by its id or a prefix, or the one that calls."""

import pytest

from coord.core.errors import Invalid, NotFound
from coord.core.sessions.commands import FindSession, GetSession
from tests.support.lock_harness import LockHarness


@pytest.fixture
def harness() -> LockHarness:
    """Three sessions; the oldest comes last in the alphabet."""
    harness = LockHarness()
    for name in ("zoe", "ann-1", "ann-2"):
        harness.beat(name)
        harness.pass_time(1_000)
    return harness


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


def test_a_caller_finds_out_which_session_it_is(harness: LockHarness) -> None:
    """By one read: gates and task commands need no more."""
    assert harness.engine.call(FindSession(harness.who("zoe"))).session_id == "zoe"
    assert harness.read_by(lambda: harness.engine.call(FindSession(harness.who("zoe")))) == 1
    with pytest.raises(NotFound, match="there is no session bob"):
        harness.engine.call(FindSession(harness.who("bob")))
