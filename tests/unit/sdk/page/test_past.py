"""The page at any offset of the log: what the records said then."""

import stat
from contextlib import suppress
from copy import deepcopy
from itertools import pairwise, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coord.core.errors import NotFound, Trimmed
from coord.core.page.state import PageState
from coord.host.store_location import StoreLocation
from coord.sdk.page import kept_states, past, snapshot
from coord.sdk.page.past import PastStates
from coord.sdk.page.snapshot import take_snapshot
from coord.stores.contract import Entry
from coord.stores.database import EPOCH_BITS
from tests.simulation.oracles.page import comparable
from tests.support.lock_harness import T0, LockHarness
from tests.support.stores.leaping import leap

STEPS = 40


def lived() -> tuple[LockHarness, dict[int, PageState]]:
    """Return a log, and the state after each of its entries."""
    harness = LockHarness()
    states = {0: PageState()}
    for number in range(STEPS):
        harness.pass_time(1000)
        session = f"s{number % 3}"
        harness.lock(session, f"file:{number % 5}.py")
        if number % 4 == 3:
            harness.release(session)
        state = take_snapshot(harness.store)
        states[state.offset] = deepcopy(state)
    return harness, states


def test_a_past_state_is_what_the_records_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """In any order, and with states kept in between that make room for others."""
    monkeypatch.setattr(past, "EVERY", 3)
    monkeypatch.setattr(kept_states, "KEPT_MAX", 4)
    harness, states = lived()
    found = PastStates(harness.store)
    assert found.first() == 0
    for offset in [*[*states][::-3], *states]:
        state = found.at(offset)
        assert (state.offset, comparable(state)) == (offset, comparable(states[offset]))


def test_states_are_kept_and_found_where_offsets_leap(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new epoch begins 2^40 offsets later: between two entries, and not between two states."""
    monkeypatch.setattr(past, "EVERY", 3)
    harness, states = lived()
    before = max(states)
    after = leap(harness.store)
    for number in range(8):
        harness.lock("s0", f"file:{number}.js")
        state = take_snapshot(harness.store)
        states[state.offset] = deepcopy(state)
    found, newest = PastStates(harness.store), max(states)
    for offset in [*states][::-3]:
        assert comparable(found.at(offset)) == comparable(states[offset])
    assert found.at(after - 1).offset == before
    assert found.offset_at(states[before].at - 1) < before
    kept = PastStates(harness.store)
    while kept.keep_next(newest) + 3 <= newest:
        pass
    offsets = [each.offset for each in kept.kept.known()]
    assert [each for each in offsets if each < after] == [*range(3, before + 1, 3)]
    assert len([each for each in offsets if each >= after]) > 2
    assert all(comparable(kept.at(each)) == comparable(states[each]) for each in {*offsets} & {*states})


def test_a_state_does_not_count_after_its_entry_was_lost() -> None:
    """A server may lose its newest commits; then a new epoch begins, and states are checked again."""
    harness, states = lived()
    kept, lost = sorted(states)[-9], max(states)
    found = PastStates(harness.store)
    for offset in (kept, lost):
        found.kept.keep(deepcopy(states[offset]))
    found.at(lost)
    after = leap(harness.store, lost=3)
    harness.lock("s0", "file:new.js")
    found.at(after)
    assert [each.offset for each in found.kept.known()] == [kept]


def test_a_time_means_the_newest_entry_before_it() -> None:
    harness, states = lived()
    found = PastStates(harness.store)
    times = {state.at: offset for offset, state in sorted(states.items())}
    for at, offset in times.items():
        assert found.offset_at(at) == offset
    assert found.offset_at(T0 - 1) == 0
    assert found.offset_at(T0 + 10**9) == max(states)


def test_before_what_was_trimmed_nothing_is_known() -> None:
    harness, states = lived()
    newest = max(states)
    harness.store.trim(newest - 5)
    found = PastStates(harness.store)
    assert found.first() == newest
    assert comparable(found.at(newest)) == comparable(states[newest])
    for offset in (newest - 1, newest + 1, -1):
        with pytest.raises(NotFound, match="is not known"):
            found.at(offset)


def test_a_state_that_was_kept_before_the_log_was_trimmed_is_where_the_past_begins() -> None:
    harness, states = lived()
    middle, newest = sorted(states)[STEPS // 2], max(states)
    found = PastStates(harness.store)
    found.kept.keep(deepcopy(states[middle]))
    harness.store.trim(middle + 1)
    assert found.first() == middle
    assert comparable(found.at(newest)) == comparable(states[newest])


def test_an_offset_that_is_not_known_becomes_the_nearest_one() -> None:
    harness, states = lived()
    middle, newest = sorted(states)[STEPS // 2], max(states)
    found = PastStates(harness.store)
    found.kept.keep(deepcopy(states[middle]))
    harness.store.trim(middle + 1)
    assert [found.at(offset, nearest=True).offset for offset in (0, middle, newest + 9)] == [
        middle,
        middle,
        newest,
    ]


def folder_of(harness: LockHarness, path: Path) -> PastStates:
    path.mkdir(exist_ok=True)
    location = StoreLocation("memory:", "", None, "store", 0, str(path))
    return PastStates(harness.store, kept_states.kept_states(location, "local"))


def test_the_next_process_knows_what_was_kept_in_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a trim and a restart the past begins at most `EVERY` entries after the log does."""
    monkeypatch.setattr(past, "EVERY", 3)
    harness, states = lived()
    newest = max(states)
    first = folder_of(harness, tmp_path)
    while first.keep_next(newest) + 3 <= newest:
        pass
    assert [each.offset for each in first.kept.known()] == [*range(3, newest + 1, 3)]
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert modes == {0o600, 0o700}
    harness.store.trim(20)
    again = folder_of(harness, tmp_path)
    assert again.first() == 21
    for offset in (21, 22, newest):
        assert comparable(again.at(offset)) == comparable(states[offset])
    again.keep_next(newest)
    assert again.kept.known()[0].offset == 21


def test_a_damaged_and_a_foreign_state_do_not_count(tmp_path: Path) -> None:
    """Nor does one of other rules, or of a log that has another entry there."""
    harness, states = lived()
    newest = max(states)
    found = folder_of(harness, tmp_path)
    for offset in (10, 20, 30):
        found.kept.keep(deepcopy(states[offset]))
    found.kept.keep(PageState(11, states[11].at + 1))
    damaged, _, renamed, _ = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    damaged.write_bytes(b"x")
    at = states[20].at
    renamed.rename(renamed.with_name(renamed.name.replace(str(at), str(at + 1))))
    (damaged.parent / "000000000000-5-5").write_bytes(b"of other rules")
    harness.store.trim(8)
    again = folder_of(harness, tmp_path)
    assert comparable(again.at(12, nearest=True)) == comparable(states[30])
    assert comparable(again.at(newest)) == comparable(states[newest])
    assert [each.offset for each in again.kept.known()] == [30]
    again.kept.keep(deepcopy(states[newest]))
    assert not (damaged.parent / "000000000000-5-5").exists()


def test_kept_states_stay_evenly_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_states, "KEPT_MAX", 8)
    kept = kept_states.KeptStates()
    for offset in range(1, 201):
        kept.keep(PageState(offset, offset))
    offsets = [each.offset for each in kept.known()]
    assert (len(offsets), offsets[0], offsets[-1]) == (8, 1, 200)
    assert max(late - early for early, late in pairwise(offsets)) <= 64


@pytest.mark.parametrize("folder", ["none", ""])
def test_without_a_folder_states_stay_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    monkeypatch.chdir(tmp_path)
    missing = StoreLocation("memory:", "", None, "store", 0, folder)
    kept = kept_states.kept_states(missing, "local")
    kept.keep(PageState(3, 4))
    assert ([*kept.known()], kept.read(kept.known()[0])) == ([(3, 4)], PageState(3, 4))
    assert [*tmp_path.iterdir()] == []


class LogTrimmedLater:
    """A log that is trimmed when it was read for some times."""

    def __init__(self, store: Any, floor: int, reads: int) -> None:
        self._store, self._floor, self._reads = store, floor, reads

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def tail(self, after: int, limit: int) -> list[Entry]:
        self._reads -= 1
        if self._reads < 0 and after + 1 < self._floor:
            raise Trimmed(self._floor)
        found: list[Entry] = self._store.tail(after, limit)
        return found


def test_a_trim_while_a_state_is_made_leaves_no_wrong_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever the trim comes, each state that is answered or kept is what the records said."""
    monkeypatch.setattr(past, "EVERY", 6)
    monkeypatch.setattr(snapshot, "PAGE_ENTRIES", 4)
    harness, states = lived()
    whole, newest, answered = PastStates(harness.store), max(states), 0
    for reads, offset in product(range(24), (22, newest - 1)):
        found = PastStates(LogTrimmedLater(harness.store, 21, reads))
        for _ in range(3):
            found.keep_next(newest)
        with suppress(NotFound):
            assert comparable(found.at(offset)) == comparable(whole.at(offset))
            answered += 1
        for each in found.kept.known():
            kept = found.kept.read(each)
            assert kept is not None
            assert comparable(kept) == comparable(whole.at(each.offset))
    assert answered


def later(store: Any, base: int) -> Any:
    """Return a log that began in a later epoch, or after it, with the entries of another one."""

    def tail(after: int, limit: int) -> list[Entry]:
        if after + 1 < base:
            raise Trimmed(base)
        found = store.tail(max(0, after - base), limit)
        return [Entry(base + each.offset, each.at, each.id, each.events) for each in found]

    seen = SimpleNamespace(offset=base + store.seen.offset)
    return SimpleNamespace(tail=tail, load=lambda *_: None, seen=seen)


def test_a_log_that_began_in_a_later_epoch_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """After `coord init --new-store`, offsets begin at a high number; nothing was trimmed."""
    monkeypatch.setattr(past, "EVERY", 6)
    harness, states = lived()
    base = 3 << EPOCH_BITS
    found = PastStates(later(harness.store, base))
    assert (found.first(), found.knows(base)) == (base, True)
    for offset, state in states.items():
        assert found.at(base + offset).tables["locks"].keys() == state.tables["locks"].keys()
    assert found.at(0, nearest=True) == PageState(base)
    assert found.keep_next(base + max(states)) == max(each.offset for each in found.kept.known())
    assert not PastStates(later(harness.store, base + 1)).knows(base + 1), "a repaired log has records before"
