"""A clock that jumps (DESIGN §5): ahead it stops writes until a person looked; back it revives nothing."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from coord.core.errors import CoordError, Unavailable
from coord.core.locks.commands import Outcome
from coord.engine.engine import Engine
from coord.stores.open import open_store
from tests.support.store_harness import START_MS, StoreHarness
from tests.support.stores.stand_in import StandInDatabase


@pytest.fixture
def harness(store_url: str) -> Iterator[StoreHarness]:
    """A scene that takes its time from the clock of its store, which the test sets."""
    with closing(StandInDatabase(open_store(store_url))) as database:
        harness = StoreHarness(database)
        harness.store.clock = lambda: harness.now
        harness.engine = Engine(database, harness.tenant, probe=harness.probe)
        yield harness
        harness.engine.close()


def test_a_jump_ahead_stops_writes_until_it_is_accepted(harness: StoreHarness) -> None:
    """An entry more than 60 s ahead: writes are refused, questions answered, until the clock is accepted."""
    ann, bob = harness.actor("ann"), harness.actor("bob")
    ann.take("file:a.py", ttl_ms=86_400_000)
    harness.at(3600)
    bob.take("file:b.py", ttl_ms=86_400_000)
    harness.at(3600 - 60)
    assert bob.lock("file:c.py").ok, "a minute is in order"
    harness.at(10)
    before = harness.head
    for act in (
        lambda: ann.lock("file:d.py"),
        lambda: ann.renew("file:a.py"),
        lambda: ann.unlock("file:a.py"),
        lambda: ann.send("bob", "status", "hello"),
        lambda: ann.register(),
    ):
        with pytest.raises(Unavailable, match="ahead of the clock") as caught:
            act()
        assert "accept" in caught.value.hint
    assert harness.head == before
    assert not ann.check("file:b.py").free
    assert harness.holders() == {"file:a.py": "ann", "file:b.py": "bob", "file:c.py": "bob"}

    harness.engine.accept_clock()
    assert [event["event"] for event in harness.events(after=before)] == ["clock.accepted"]
    assert ann.lock("file:d.py").ok
    assert ann.unlock("file:a.py").released == ["file:a.py"]


def test_a_jump_back_does_not_revive_a_lease(harness: StoreHarness) -> None:
    """What ran out once stays ended when the clock is set back, within a minute and after acceptance."""
    ann, bob = harness.actor("ann"), harness.actor("bob")
    fence = ann.take("file:a.py").fence
    harness.at(301)
    bob.register()
    for back_s in (299, 245):
        harness.at(back_s)
        assert harness.holders() == {}
        assert not ann.check("file:a.py", fence=fence).free
        with pytest.raises(CoordError):
            ann.renew("file:a.py", fence=fence)
    assert bob.lock("file:a.py").outcome is Outcome.GRANTED

    harness.at(100)
    harness.engine.accept_clock()
    assert harness.holders() == {"file:a.py": "bob"}
    with pytest.raises(CoordError):
        ann.renew("file:a.py", fence=fence)
    assert ann.lock("file:a.py").outcome is Outcome.HELD


def test_a_jump_back_does_not_shorten_or_lengthen_a_grant(harness: StoreHarness) -> None:
    """A grant made after the clock was set back begins where the log is, so that order stays true."""
    ann, bob = harness.actor("ann"), harness.actor("bob")
    first = ann.take("file:a.py")
    harness.at(-50)
    second = bob.take("file:b.py")
    assert second.fence > first.fence
    assert (first.acquired_ms, second.acquired_ms) == (START_MS, START_MS)
    harness.at(299)
    assert harness.holders() == {"file:a.py": "ann", "file:b.py": "bob"}
    harness.at(300)
    assert harness.holders() == {}
