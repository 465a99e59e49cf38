"""The state of the page as the store has it now."""

import pytest

from coord.core.page.state import PageState
from coord.sdk.page import snapshot
from coord.sdk.page.snapshot import replay, take_snapshot
from tests.support.lock_harness import LockHarness


def test_a_snapshot_knows_the_newest_events_and_what_a_session_was_seen_doing() -> None:
    harness = LockHarness()
    harness.lock("ada", "file:a.py")
    harness.lock("bob", "file:a.py")
    state = take_snapshot(harness.store)
    assert [each["event"] for each in state.recent["refusals"]] == ["lock.denied"]
    assert state.tables["sessions"]["ada"]["seen_ms"] == state.at
    assert state.offset == harness.store.seen.offset


def test_entries_that_were_trimmed_are_passed_over() -> None:
    harness = LockHarness()
    for name in ("ada", "bob", "eve"):
        harness.lock(name, f"file:{name}.py")
    newest = harness.store.seen.offset
    harness.store.trim(newest)
    state = replay(harness.store, PageState(), newest)
    assert (state.offset, [*state.tables["sessions"]]) == (newest, ["eve"])
    assert take_snapshot(harness.store).tables["locks"].keys() == {
        f"{name}\nfile:{name}.py" for name in ("ada", "bob", "eve")
    }


def test_a_snapshot_reads_its_records_at_one_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that moves from one session to another between two reads would be shown twice, or never."""
    harness = LockHarness()
    harness.lock("ada", "file:a.py")
    questions = harness.store.questions
    monkeypatch.setattr(snapshot, "RECENT_ENTRIES", 0)
    take_snapshot(harness.store)
    assert harness.store.questions == questions + 1
