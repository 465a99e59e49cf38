"""Queries over all projects: counts of tasks in pages, and tasks that need a person."""

from coord.core.plans.commands import CountTasks, ListStuck, TaskCounts
from tests.support.plan_harness import PlanHarness


def test_tasks_are_counted_in_pages() -> None:
    """Pages change nothing; a claim whose lease has expired is pending again."""
    harness = PlanHarness()
    for name in ("a", "b", "c", "d"):
        harness.add(name)
    harness.take()
    assert harness.submit(harness.take("bob"), "bob")
    for limit in (1, 2, 500):
        total, after, more = [0, 0, 0], "", True
        while more:
            page = harness.engine.call(CountTasks(after, limit))
            for counts in page.counts.values():
                total = [total[0] + counts.active, total[1] + counts.pending, total[2] + counts.completed]
            after, more = page.after, bool(page.after)
        assert total == [1, 2, 1]
    harness.now += 400_000
    assert harness.engine.call(CountTasks()).counts == {"p": TaskCounts(0, 3, 1)}


def test_stuck_tasks_of_all_projects_are_named() -> None:
    harness = PlanHarness()
    harness.add("a")
    assert harness.engine.call(ListStuck()) == []
    harness.fail(harness.take(), final=True)
    assert harness.engine.call(ListStuck()) == ["p/a"]
