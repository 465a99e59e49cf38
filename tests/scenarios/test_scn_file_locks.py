"""The stories of the fourth founding document: locks on files between agents."""

from coord.core.locks.commands import Outcome
from tests.support.store_harness import START_MS, StoreHarness


def test_scn_45_a_denial_names_holder_and_time(harness: StoreHarness) -> None:
    """SCN-45, LCK-74: A locks a file; B is denied with holder, reason and the time left; A unlocks."""
    ann, bob = harness.actor("ann-1"), harness.actor("bob-1")
    lock = ann.take("file:src/auth/login.ts", reason="fix login")
    assert lock.expires_in_s == 300, "LCK-75"
    harness.pass_seconds(30)
    denied = bob.lock("file:src/auth/login.ts")
    assert denied.outcome is Outcome.HELD
    assert denied.holder is not None
    assert (denied.holder.owner, denied.holder.agent) == ("ann-1", "ann")
    assert (denied.holder.reason, denied.holder.expires_in_s, denied.position) == ("fix login", 270, 1)
    assert ann.unlock("file:src/auth/login.ts", fence=lock.fence).released == ["file:src/auth/login.ts"]
    assert bob.lock("file:src/auth/login.ts").ok


def test_scn_46_a_glob_covers_what_it_matches(harness: StoreHarness) -> None:
    """SCN-46, LCK-76: `src/auth/*` denies `src/auth/login.ts`, existing or not, and nothing beside it."""
    ann, bob = harness.actor("ann"), harness.actor("bob")
    ann.take("file:src/auth/*")
    for denied in ("src/auth/login.ts", "src/auth/session.ts", "src/auth", "src/*/login.ts", "SRC/Auth/x"):
        assert bob.lock(f"file:{denied}").outcome is Outcome.HELD, denied
    for free in ("src/author/login.ts", "src/login.ts", "src/auth/deep/login.ts"):
        assert bob.check(f"file:{free}").free, free
    assert not bob.check("file:src/auth/login.ts").free
    ann.unlock("file:src/auth/*")
    assert bob.lock("file:src/auth/login.ts").ok


def test_scn_47_expiry_is_told(harness: StoreHarness) -> None:
    """SCN-47, MSG-16: a lease that ran out is in the log with its own end, and its owner is told."""
    ann, bob = harness.actor("ann"), harness.actor("bob")
    old = ann.take("file:a.py")
    harness.at(299.999)
    assert bob.lock("file:a.py").outcome is Outcome.HELD
    harness.at(420)
    assert harness.holders() == {}, "a deadline acts when it passes, written down or not"
    taken = bob.lock("file:a.py")
    assert taken.ok
    assert taken.locks[0].fence > old.fence
    (ended,) = harness.events("lock.released")
    assert (ended["session"], ended["end_reason"], ended["fence"]) == ("ann", "expired", old.fence)
    assert (ended["until_ms"], ended["held_s"]) == (START_MS + 300_000, 300)
    warned = ann.receive()
    assert [(message.from_session_id, message.kind) for message in warned][-1] == ("system", "warn")
    assert warned[-1].subject == "[System] Your file lock on a.py has expired."
