"""Tasks that come to depend on one while another process finishes that, or opens it again."""

import pytest

from coord.core.commands import Command
from coord.core.plans.commands import AddTasks, NewTask
from coord.core.tasks.commands import ResetTask
from coord.engine.engine import Engine
from coord.stores.contract import Limits
from coord.stores.open import open_store
from tests.support.plan_harness import PlanHarness
from tests.support.stores.stand_in import StandInDatabase


@pytest.mark.parametrize("before", [(), ("old",)])
@pytest.mark.parametrize(
    ("done", "command", "becomes"),
    [
        (False, PlanHarness.submission("a", "ann"), "ready"),
        (True, ResetTask("local", "p", "a"), "pending"),
    ],
)
def test_a_dependent_added_concurrently_is_not_forgotten(
    before: tuple[str, ...], done: bool, command: Command, becomes: str
) -> None:
    """TID-14, issue 6: a command that saw no such dependent looks again, whether there were others or not."""
    harness = PlanHarness()
    harness.add("a")
    for name in before:
        harness.add(name, "a")
    assert harness.take() == "a"
    assert not done or harness.submit("a")
    other = StandInDatabase(harness.database)
    other.log("local").before_commit.append(lambda _: harness.add("new", "a"))
    Engine(other, "local", clock=lambda: harness.now).call(command)
    assert harness.states("new", *before) == [becomes] * (1 + len(before))


def test_a_plan_of_tasks_that_follow_each_other_fits_where_it_fitted_without() -> None:
    """TID-14, issue 6: what a step writes twice is committed once, and weighs once."""
    room = Limits(commit_bytes=768 * 1024, durable=False, shared=False)
    engine = Engine(StandInDatabase(open_store("memory:"), room), "local")
    tasks = [
        NewTask(task_id=f"t{at}", description="x" * 1800, depends_on=(f"t{at - 1}",) if at else ())
        for at in range(250)
    ]
    assert len(engine.call(AddTasks("p", tuple(tasks))).added) == 250
