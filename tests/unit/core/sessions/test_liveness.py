"""A session is dead only when there is evidence."""

import pytest

from coord.core.identity import ProcessState
from tests.support.lock_harness import LockHarness


@pytest.fixture
def harness() -> LockHarness:
    return LockHarness()


def test_unknown_is_not_dead(harness: LockHarness) -> None:
    """SES-19: what cannot be seen frees nothing, however long its owner is silent, before the lease ends."""
    harness.pids["ann"], harness.life[7] = 7, ProcessState.UNKNOWN
    harness.lock("ann", "file:a", ttl=10_000_000)
    harness.pass_time(9_000_000)
    assert not harness.lock("bob", "file:a").ok
    assert harness.events("session.ended") == []
