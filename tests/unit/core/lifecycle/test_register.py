"""Registering a session again, or in the place of another."""

from typing import Any

import pytest

from coord.core.errors import Dead
from coord.core.identity import ProcessState
from coord.core.lifecycle.commands import Register
from tests.support.lock_harness import LockHarness


@pytest.fixture
def harness() -> LockHarness:
    return LockHarness()


def register(harness: LockHarness, name: str, **said: Any) -> Any:
    return harness.engine.call(Register(caller=harness.who(name), **said))


def test_dead_session_must_register(harness: LockHarness) -> None:
    """One declared dead is refused everything until it registers, and then holds nothing."""
    harness.pids["ann"], harness.life[7] = 7, ProcessState.DEAD
    harness.lock("ann", "file:a")
    harness.lock("ann", "name:n")
    assert harness.lock("bob", "file:a").ok
    for ask in (
        lambda: harness.beat("ann"),
        lambda: harness.renew("ann", "name:n"),
        lambda: harness.lock("ann", "x"),
    ):
        with pytest.raises(Dead):
            ask()
    register(harness, "ann")
    assert harness.held() == {("bob", "file:a")}


def test_replacing_one_never_seen(harness: LockHarness) -> None:
    """A start hook that names a session nobody has seen registers, and nothing moves."""
    reply = register(harness, "ann", replaces="never-seen")
    assert (reply.session.session_id, reply.moved_locks, reply.moved_claims) == ("ann", 0, 0)
    harness.beat("never-seen-either")
    assert register(harness, "ann", replaces="never").new is False
    assert harness.beat("never-seen-either").session_id == "never-seen-either", "a prefix replaces nobody"
