"""Which nothing there is, when others finish what is left between two looks at the store."""

from collections.abc import Callable
from typing import Any

import pytest

from coord.core import keys
from coord.core.plans.commands import Runnable, SkipTask
from coord.engine.engine import Engine
from tests.support.plan_harness import PlanHarness


def asked_while(harness: PlanHarness, happens: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Ask for work in another process, for which something happens right after it saw what is unfinished."""
    engine = Engine(harness.database, "local", clock=lambda: harness.now)
    store = harness.database.log("local")
    look, looks = store.load, list[Any]()

    def look_and_be_late(wanted: Any, ranges: Any = (), **options: Any) -> Any:
        found = look(wanted, ranges, **options)
        if not looks and keys.unfinished_prefix("p") in [range_.prefix for range_ in ranges]:
            looks.append(found)
            happens()
        return found

    monkeypatch.setattr(store, "load", look_and_be_late)
    reply = engine.call(harness.next_command("bob"))
    monkeypatch.undo()
    assert looks, "everything unfinished was looked at"
    return reply


def test_what_is_finished_meanwhile_is_no_deadlock(monkeypatch: pytest.MonkeyPatch) -> None:
    """CLM-15: tasks that are finished since they were looked for: look again, nothing is stuck."""
    harness = PlanHarness()
    harness.add("a")
    harness.fail(harness.take(), final=True)
    reply = asked_while(harness, lambda: harness.engine.call(SkipTask("local", "p", "a")), monkeypatch)
    assert (reply.outcome, reply.look_ms) == (Runnable.BLOCKED, harness.now)
    assert reply.waiting_for == ["a has just finished"]
    assert harness.take("bob") == "done"


def test_what_stays_stuck_is_a_deadlock(monkeypatch: pytest.MonkeyPatch) -> None:
    """CLM-15: the same looks with nothing in between: what failed, and that nothing will come."""
    harness = PlanHarness()
    harness.add("a")
    harness.fail(harness.take(), final=True)
    reply = asked_while(harness, lambda: None, monkeypatch)
    assert (reply.outcome, reply.waiting_for) == (Runnable.DEADLOCKED, ["a failed"])
