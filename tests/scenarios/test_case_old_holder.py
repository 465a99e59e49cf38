"""The old holder comes back (DESIGN §2, rule 3): superseded, every later step of it is refused everywhere."""

from collections.abc import Callable

import pytest

from coord.core.errors import LockLost, NotFound, NotOwner
from coord.core.locks.commands import Outcome
from tests.support.store_harness import Actor, StoreHarness

FILE = "file:src/app.py"


def lose_by_expiry(harness: StoreHarness, old: Actor, new: Actor) -> None:
    harness.pass_seconds(300)
    new.take(FILE)


def lose_by_expiry_to_a_glob(harness: StoreHarness, old: Actor, new: Actor) -> None:
    harness.pass_seconds(300)
    new.take("file:src/*.py")


def lose_by_expiry_to_nobody(harness: StoreHarness, old: Actor, new: Actor) -> None:
    harness.pass_seconds(300)


def lose_by_theft(harness: StoreHarness, old: Actor, new: Actor) -> None:
    assert new.steal(FILE, force=True, reason="it hangs").ok


def lose_by_preemption(harness: StoreHarness, old: Actor, new: Actor) -> None:
    assert new.preempt(FILE, priority=5, grace_s=30).asked == ["old"]
    place = new.wait_for(FILE, priority=5)
    with pytest.raises(LockLost) as caught:
        old.renew(FILE)
    assert "release it" in caught.value.hint
    assert not new.check(FILE).free, "it may still finish"
    harness.pass_seconds(30)
    assert new.confirm(place).outcome is Outcome.GRANTED


def lose_by_deadlock(harness: StoreHarness, old: Actor, new: Actor) -> None:
    new.take("file:other.py", priority=5)
    place = old.wait_for("file:other.py")
    assert new.lock(FILE, wait_s=60, priority=5).ok
    assert old.confirm(place).outcome is Outcome.DEADLOCK


def lose_by_handing_over(harness: StoreHarness, old: Actor, new: Actor) -> None:
    place = new.wait_for(FILE)
    old.unlock(FILE)
    assert new.confirm(place).ok


def lose_and_have_it_again(harness: StoreHarness, old: Actor, new: Actor) -> None:
    new.steal(FILE, force=True, reason="it hangs")
    new.unlock(FILE)
    old.take(FILE)


LOSSES = [
    lose_by_expiry,
    lose_by_expiry_to_a_glob,
    lose_by_expiry_to_nobody,
    lose_by_theft,
    lose_by_preemption,
    lose_by_deadlock,
    lose_by_handing_over,
    lose_and_have_it_again,
]


@pytest.mark.parametrize("lose", LOSSES)
def test_what_the_old_holder_proves_is_refused(
    harness: StoreHarness, lose: Callable[[StoreHarness, Actor, Actor], None]
) -> None:
    """After expiry, theft, preemption and deadlock every renew, release and fence check is refused.

    DLK-22.
    """
    old, new = harness.actor("old"), harness.actor("new")
    fence = old.take(FILE).fence
    new.register()
    assert old.check(FILE, fence=fence).free
    lose(harness, old, new)
    holders = harness.holders()
    for _ in range(2):
        with pytest.raises((LockLost, NotOwner, NotFound)) as renewal:
            old.renew(FILE, fence=fence)
        with pytest.raises((LockLost, NotOwner, NotFound)) as release:
            old.unlock(FILE, fence=fence)
        assert renewal.value.hint
        assert release.value.hint
        assert not old.check(FILE, fence=fence).free
        assert harness.holders() == holders, "nothing of the new holder is touched"
        harness.pass_seconds(1)


def test_a_later_fence_is_larger_wherever_two_locks_meet(harness: StoreHarness) -> None:
    """Fences of overlapping resources compare: each later grant has a larger one (file, glob, directory)."""
    fences = []
    for number, resource in enumerate(("src/app.py", "src/*.py", "src", "{src,docs}/app.py", ".")):
        holder = harness.actor(f"holder-{number}")
        fences.append(holder.take(f"file:{resource}").fence)
        holder.unlock()
    assert fences == sorted(set(fences))


def test_renewing_keeps_the_fence(harness: StoreHarness) -> None:
    """CFL-18: renewing and asking again refresh the lease under the fence of the first grant."""
    ann = harness.actor("ann")
    fence = ann.take(FILE).fence
    for _ in range(3):
        harness.pass_seconds(200)
        assert ann.renew(FILE, fence=fence).locks[0].fence == fence
        harness.pass_seconds(200)
        again = ann.take(FILE)
        assert (again.fence, again.refreshed, again.expires_in_s) == (fence, True, 300)
    assert ann.unlock(FILE, fence=fence).released == [FILE]
    assert len(harness.events("lock.acquired")) == 1
