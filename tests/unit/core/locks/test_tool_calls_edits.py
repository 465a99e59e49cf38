"""Calls of tools that changed files: the ledger gets each file once a minute, and no commit more."""

from typing import Any

import pytest

from coord.core import keys
from coord.core.activity.files import KEPT_MAX, NAMED_MAX, QUIET_MS
from coord.core.locks.commands import BeginToolCall, EndToolCall
from coord.core.records import decode
from coord.core.sessions.schema import Session
from tests.support.lock_harness import REPOSITORY, LockHarness


class EditHarness(LockHarness):
    """A lock harness whose sessions edit files."""

    def edit(self, name: str, *files: str, call: str = "c1") -> None:
        begun = BeginToolCall(self.who(name), REPOSITORY, (), call=call, lease_ms=1000)
        self.engine.call(begun)
        self.engine.call(EndToolCall(self.who(name), call, edited=files))

    def edited(self) -> list[tuple[str, str]]:
        return [(each["session"], each["resource"]) for each in self.events("file.edited")]


@pytest.fixture
def harness() -> EditHarness:
    return EditHarness()


def test_an_edit_is_logged_with_its_session(harness: EditHarness) -> None:
    """AUD-5: file_edit."""
    harness.edit("ada", "file:a.py", "file:b.py", "file:a.py")
    (first, second) = harness.events("file.edited")
    assert (first["resource"], first["session"]) == ("file:a.py", "ada")
    assert second["resource"] == "file:b.py"
    assert "others" not in second


def test_a_busy_session_does_not_flood_the_log(harness: EditHarness) -> None:
    """Once per session, file and minute; another session and another file count for themselves."""
    for _ in range(10):
        harness.edit("ada", "file:a.py")
        harness.now += QUIET_MS // 20
    harness.edit("bob", "file:a.py")
    harness.edit("ada", "file:b.py")
    assert harness.edited() == [("ada", "file:a.py"), ("bob", "file:a.py"), ("ada", "file:b.py")]
    harness.now += QUIET_MS
    harness.edit("ada", "file:a.py")
    assert harness.edited()[-1] == ("ada", "file:a.py")
    assert len(harness.edited()) == 4


def test_an_edit_costs_no_commit(harness: EditHarness) -> None:
    """The end of a call is written anyway."""
    harness.edit("ada")
    before = harness.store.seen.offset
    harness.edit("ada")
    plain = harness.store.seen.offset - before
    harness.edit("ada", "file:a.py")
    assert harness.store.seen.offset - before == 2 * plain


def test_a_call_that_changed_everything_is_one_number(harness: EditHarness) -> None:
    files = [f"file:{number}" for number in range(NAMED_MAX + 1000)]
    harness.edit("ada", *files)
    logged: list[dict[str, Any]] = harness.events("file.edited")
    assert [each["resource"] for each in logged] == files[:NAMED_MAX]
    assert [each.get("others", 0) for each in logged] == [0] * (NAMED_MAX - 1) + [1000]


def test_what_a_session_remembers_is_bounded_and_short(harness: EditHarness) -> None:
    for number in range(3 * KEPT_MAX // NAMED_MAX):
        harness.edit("ada", *(f"file:{number}/{each}" for each in range(NAMED_MAX)))
    assert len(remembered(harness)) == KEPT_MAX
    harness.now += QUIET_MS
    harness.edit("ada", "file:x")
    assert list(remembered(harness)) == ["file:x"]


def remembered(harness: EditHarness) -> dict[str, int]:
    record = harness.store.load([keys.session("ada")])[keys.session("ada")]
    assert record.value is not None
    return decode(record.value, Session, "ada").edited


@pytest.mark.parametrize(
    "text", ["name:release", "lock.released", "", "project:x", "file:", "file:../x", "file:a\nb"]
)
def test_only_files_are_edited(harness: EditHarness, text: str) -> None:
    harness.edit("ada", text)
    assert harness.edited() == []
