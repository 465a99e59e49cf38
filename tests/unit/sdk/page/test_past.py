"""The page at any offset of the log: what the records said then."""

from copy import deepcopy

import pytest

from coord.core.errors import NotFound
from coord.core.page.state import PageState
from coord.sdk.page import past
from coord.sdk.page.past import PastStates
from coord.sdk.page.snapshot import take_snapshot
from tests.simulation.oracles.page import comparable
from tests.support.lock_harness import T0, LockHarness

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
    monkeypatch.setattr(past, "KEPT_MAX", 4)
    harness, states = lived()
    found = PastStates(harness.store)
    assert found.first() == 0
    for offset in [*[*states][::-3], *states]:
        state = found.at(offset)
        assert (state.offset, comparable(state)) == (offset, comparable(states[offset]))


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
    found.keep(deepcopy(states[middle]))
    harness.store.trim(middle + 1)
    assert found.first() == middle
    assert comparable(found.at(newest)) == comparable(states[newest])
