"""The follower that keeps states of the page: one for every so many entries, the rest when there is time."""

from pathlib import Path
from typing import Any, cast

import pytest

from coord.followers import past_states
from coord.followers.follower import LogSource
from coord.followers.past_states import PAUSE_MS, PastStatesFollower
from coord.followers.runner import Runner
from coord.host.store_location import StoreLocation
from coord.sdk.page import past
from coord.sdk.page.kept_states import kept_states
from tests.support.lock_harness import LockHarness

EVERY = 5


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch) -> LockHarness:
    for module in (past, past_states):
        monkeypatch.setattr(module, "EVERY", EVERY)
    return LockHarness()


def source_of(harness: LockHarness, folder: Path) -> LogSource:
    location = StoreLocation("memory:", "", None, "store", 0, str(folder))
    engine = cast("Any", type("Engine", (), {"tenant": "local"})())
    return LogSource(engine, harness.store, location, {}, lambda: harness.now)


def kept(source: LogSource) -> list[int]:
    return [each.offset for each in kept_states(source.location, "local").known()]


def grow(harness: LockHarness, count: int) -> None:
    for number in range(count):
        harness.lock(f"s{number}", f"name:{harness.store.seen.offset}")


def test_a_state_is_kept_for_every_so_many_entries(harness: LockHarness, tmp_path: Path) -> None:
    source = source_of(harness, tmp_path)
    runner = Runner(source, [PastStatesFollower], "test")
    grow(harness, EVERY - 1)
    assert (runner.step(), kept(source)) == (0, [])
    grow(harness, 1)
    assert (runner.step(), kept(source)) == (0, [EVERY])
    grow(harness, EVERY - 1)
    assert (runner.step(), kept(source)) == (0, [EVERY])


def test_what_is_missing_is_made_one_after_the_other(harness: LockHarness, tmp_path: Path) -> None:
    """A hub that is new has other work, too."""
    grow(harness, 3 * EVERY + 1)
    source = source_of(harness, tmp_path)
    runner = Runner(source, [PastStatesFollower], "test")
    for many in (1, 2):
        assert runner.step() == harness.now + PAUSE_MS
        assert len(kept(source)) == many
    assert runner.step() == 0
    assert kept(source) == [EVERY, 2 * EVERY, 3 * EVERY]


def test_of_a_trimmed_log_the_present_is_kept_at_once(harness: LockHarness, tmp_path: Path) -> None:
    """Nothing earlier is known, so the past begins now; states that lead nowhere any more are removed."""
    grow(harness, 2 * EVERY)
    source = source_of(harness, tmp_path)
    first = Runner(source, [PastStatesFollower], "test")
    while first.step():
        pass
    grow(harness, EVERY - 2)
    harness.store.trim(3 * EVERY - 3)
    Runner(source, [PastStatesFollower], "test").step()
    assert kept(source) == [3 * EVERY - 2]


def test_a_store_without_a_pin_has_none(harness: LockHarness, tmp_path: Path) -> None:
    source = source_of(harness, tmp_path)
    assert PastStatesFollower.wanted(source)
    nowhere = source.location._replace(folder=str(tmp_path / "none"))
    assert not PastStatesFollower.wanted(source._replace(location=nowhere))
    unpinned = source.location._replace(store_id="")
    assert not PastStatesFollower.wanted(source._replace(location=unpinned))


def test_it_has_no_state_of_its_own(harness: LockHarness, tmp_path: Path) -> None:
    follower = PastStatesFollower(source_of(harness, tmp_path))
    follower.load(b"")
    assert (follower.dump(), follower.resume()) == (b"", harness.store.seen.offset)
