"""Registering a session again, or in the place of another."""

from typing import Any

import pytest

from coord.core.errors import Dead, Invalid, Refused
from coord.core.identity import ProcessState
from coord.core.lifecycle.commands import Register
from coord.core.sessions.commands import GetSession
from coord.core.sessions.liveness import STALE_MS
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


def test_nobody_replaces_a_session_that_may_be_alive(harness: LockHarness) -> None:
    """Locks are not taken from the living: neither from another process nor from one that named none."""
    harness.pids["pid"], harness.life[7] = 7, ProcessState.ALIVE
    for name in ("pid", "nameless"):
        harness.lock(name, f"name:{name}")
    harness.pass_time(STALE_MS - 1)
    for name, why in (("pid", "another process than thief .pid 7."), ("nameless", "was active 299 s ago")):
        with pytest.raises(Refused, match=why) as caught:
            register(harness, "thief", replaces=name)
        assert f"coord register --replaces {name} --force --reason" in caught.value.hint
    assert {owner for owner, _ in harness.held()} == {"pid", "nameless"}
    harness.life[7] = ProcessState.UNKNOWN
    harness.pass_time(1)
    with pytest.raises(Refused):
        register(harness, "thief", replaces="pid")
    assert register(harness, "heir", replaces="nameless").moved_locks == 1


def test_a_session_that_is_proven_dead_may_be_replaced(harness: LockHarness) -> None:
    harness.pids.update(old=7, new=8)
    harness.life = {7: ProcessState.DEAD, 8: ProcessState.ALIVE}
    harness.lock("old", "name:n")
    assert register(harness, "new", replaces="old").moved_locks == 1
    assert harness.held() == {("new", "name:n")}
    (ended,) = harness.events("session.ended")
    assert (ended["end_reason"], ended["evidence"], ended.get("by")) == ("replaced", "pid 7", None)


def test_a_takeover_by_force_is_recorded_and_told(harness: LockHarness) -> None:
    """The event has the reason, the parent gets a message, and the replaced session is refused with it."""
    harness.parents["old"] = "lead"
    harness.beat("lead")
    harness.lock("old", "file:a")
    with pytest.raises(Invalid, match="needs a reason"):
        register(harness, "new", replaces="old", force=True)
    reply = register(harness, "new", replaces="old", force=True, reason="its laptop sleeps")
    assert reply.moved_locks == 1
    (ended,) = harness.events("session.ended")
    told = 'new replaced it by force: "its laptop sleeps"'
    assert (ended["end_reason"], ended["by"], ended["successor"]) == ("terminated", "new", "new")
    assert ended["evidence"] == told
    assert harness.told("lead", "warn") == [f"[System] Your sub-agent old has ended: {told}"]
    with pytest.raises(Dead, match="old was terminated: new replaced it by force"):
        harness.beat("old")
    assert harness.engine.call(GetSession(harness.who("new"), "old")).state == "terminated"


def test_force_changes_nothing_where_there_is_proof(harness: LockHarness) -> None:
    """A `/clear` in the same process is an ordinary end, and needs no reason."""
    harness.pids.update(old=7, new=7)
    harness.lock("old", "file:a")
    register(harness, "new", replaces="old", force=True)
    (ended,) = harness.events("session.ended")
    assert (ended["end_reason"], ended.get("by")) == ("replaced", None)


def test_a_registration_may_leave_out_the_peers(harness: LockHarness) -> None:
    """A hook that does not show them reads no other session."""
    for number in range(20):
        harness.beat(f"s{number}")
    assert harness.read_by(lambda: register(harness, "ann", peers=False)) <= 6
    assert register(harness, "ann", peers=False).peers == []
    assert len(register(harness, "ann").peers) == 20
