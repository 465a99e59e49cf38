"""The list of reactions: what is configured, what waits, and what failed for the last time."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from coord.followers.follower import LogSource
from coord.followers.reactions.listing import ReactionsInfo, list_dead, list_reactions
from coord.host.store_location import StoreLocation
from coord.stores.open import open_store
from tests.support.store_harness import StoreHarness
from tests.unit.followers.reactions.test_follower import Place, Scripted, finish


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    Scripted.done, Scripted.failing, Scripted.gated = [], {}, set()
    with closing(open_store("memory:")) as database:
        yield Place(StoreHarness(database), tmp_path / "home")


def source(place: Place) -> LogSource:
    harness = place.harness
    location = StoreLocation("memory:", "r", None, harness.database.store_id, 0, "/nowhere")
    return LogSource(harness.local, harness.store, location, place.environ, lambda: harness.now)


def test_it_is_empty_without_a_configuration(place: Place) -> None:
    assert list_reactions(source(place)) == ReactionsInfo([], [], "", 0, "", [])


def test_each_reaction_has_what_waits_and_what_failed(place: Place) -> None:
    place.configure("a", "b")
    runner = place.runner()
    finish(runner)
    runner.close()
    place.work(1)
    found = list_reactions(source(place))
    assert [(each.name, each.dead) for each in found.reactions] == [("a", 0), ("b", 0)]
    assert (found.performed_by, found.waiting) == ("", 1)
    assert found.problem == "nobody performs the reactions (1 event waits)"
    assert list_dead(source(place)) == []


def test_a_delivery_that_failed_is_listed_until_somebody_decides(place: Place) -> None:
    place.configure("a")
    runner = place.runner()
    Scripted.failing["a"] = 99
    place.work(1)
    finish(runner)
    found = list_reactions(source(place))
    assert [(each.reaction, each.attempts > 0, each.retry) for each in found.dead] == [("a", True, False)]
    assert found.dead == list_dead(source(place))
    assert (found.reactions[0].dead, found.performed_by) == (1, "me")
