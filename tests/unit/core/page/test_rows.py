"""The tables of the page, read from records."""

import pytest

from coord.core.errors import Corrupt
from coord.core.locks.commands import AcquireLocks
from coord.core.page.rows import PREFIXES, tables_of
from coord.core.plans.commands import AddTasks, NewTask
from coord.core.questions.commands import AskQuestion
from coord.core.ranges import Range
from coord.core.tasks.commands import ClaimTask
from coord.stores.contract import Record
from tests.support.lock_harness import LockHarness


def records(harness: LockHarness) -> list[Record]:
    loaded = harness.store.load((), [Range(prefix, "key", 1000) for prefix in PREFIXES])
    return [record for found in loaded.ranges for record in found]


def test_rows_hold_what_the_records_say() -> None:
    harness = LockHarness()
    ada, bob = harness.who("ada"), harness.who("bob")
    harness.engine.call(AcquireLocks(ada, "r", ("file:a.py",)))
    harness.engine.call(AcquireLocks(bob, "r", ("file:a.py", "file:b.py"), wait_ms=60_000))
    harness.engine.call(AddTasks("p", (NewTask(task_id="t", description="do it", files=("a.py",)),)))
    harness.engine.call(ClaimTask("local", "p", "t", "claude", "ada", 500_000))
    harness.engine.call(AskQuestion(ada, text="which?"))
    tables = tables_of(records(harness))
    assert {name: len(rows) for name, rows in tables.items()} == {
        "sessions": 2,
        "locks": 1,
        "waits": 1,
        "tasks": 1,
        "questions": 1,
        "alerts": 0,
        "agents": 0,
        "held": 0,
    }
    (lock,), (wait,), (task,) = (tables[name].values() for name in ("locks", "waits", "tasks"))
    assert (lock["session"], lock["resource"], lock["fence"]) == ("ada", "file:a.py", 1)
    assert (wait["session"], wait["resources"]) == ("bob", ["file:a.py", "file:b.py"])
    assert (task["title"], task["state"], task["session"]) == ("do it", "in_progress", "ada")


def test_a_damaged_record_is_an_error_and_other_kinds_are_passed_over() -> None:
    assert tables_of([Record("guard/r", 1, b"{}")])["locks"] == {}
    with pytest.raises(Corrupt, match="lock/x"):
        tables_of([Record("lock/x", 1, b'{"schema":1,"mode":"loud"}')])
