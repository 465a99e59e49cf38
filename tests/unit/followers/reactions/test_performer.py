"""Who performs reactions: somebody, or every list says that nobody does."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from coord.followers.follower import LogSource
from coord.followers.reactions.performer import Performer, find_performer
from coord.followers.runner import LEASE_MS
from coord.host.store_location import StoreLocation
from coord.stores.open import open_store
from tests.support.store_harness import StoreHarness
from tests.unit.followers.reactions.test_follower import Place, Scripted, finish


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    Scripted.done, Scripted.failing, Scripted.gated = [], {}, set()
    with closing(open_store("memory:")) as database:
        yield Place(StoreHarness(database), tmp_path / "home")


def performer(place: Place, **environ: str) -> Performer:
    harness = place.harness
    location = StoreLocation("memory:", "r", None, harness.database.store_id, 0, "/nowhere")
    return find_performer(
        LogSource(harness.local, harness.store, location, {**place.environ, **environ}, lambda: harness.now)
    )


def test_nobody_is_reported_with_what_waits(place: Place) -> None:
    """Events that no reaction means do not wait, nor those that were performed."""
    place.work()
    assert performer(place) == Performer(0)
    assert not performer(place).problem, "nobody wants any"
    place.configure("a", "b")
    assert performer(place).problem == "nobody performs the reactions (0 events wait)"
    runner = place.runner()
    finish(runner)
    assert performer(place) == Performer(2, "me", 0)
    assert not performer(place).problem
    runner.close()
    place.work(1)
    assert performer(place).problem == "nobody performs the reactions (1 event waits)"
    place.work(2)
    assert performer(place) == Performer(2, "", 3)
    finish(again := place.runner())
    again.close()
    assert performer(place) == Performer(2, "", 0)


def test_a_lease_that_ended_is_nobody(place: Place) -> None:
    place.configure("a")
    place.runner().step()
    assert performer(place).name == "me"
    place.harness.pass_seconds(LEASE_MS / 1000 + 1)
    assert performer(place).name == ""


def test_another_tenant_wants_none(place: Place) -> None:
    place.configure("a")
    assert performer(place, COORD_TENANT="acme") == Performer(0)
