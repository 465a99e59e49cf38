"""The generation at which a lost task goes on."""

import msgspec

from coord.core import keys
from coord.core.tasks.schema import Task, TaskClaimed
from coord.sdk.admin.lost_tasks import lost_tasks

CLAIMED = msgspec.json.encode(TaskClaimed("p", "t", 5, "ada", "ada", 60_000))


def test_the_highest_generation_that_anything_names_counts() -> None:
    """A history was written by the next claim; results, refusals and events name their own generation."""
    history, result = keys.history("p", "t", 2), keys.result("p", "t", 7)
    rejected = keys.rejected("p", "t", 9, "ada", "claim:DENIED")
    for found, events, generation in [
        ([history], [], 3),
        ([result], [CLAIMED], 7),
        ([rejected, history], [CLAIMED], 9),
        ([history], [CLAIMED, b"{}", b"no json"], 5),
    ]:
        assert lost_tasks(found, events) == {"task/p/t": Task(generation, reset_generation=generation)}


def test_a_task_that_was_found_is_not_lost() -> None:
    """Its own record counts, and a task that nobody has claimed has no generation to keep."""
    assert lost_tasks([keys.task("p", "t"), keys.history("p", "t", 2)], [CLAIMED]) == {}
    assert lost_tasks([keys.rejected("p", "t", 0, "ada", "claim:DENIED")], []) == {}
