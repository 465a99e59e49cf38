"""The queue as people see it."""

from coord.core.plans.commands import GetQueue
from tests.support.plan_harness import LEASE_MS, PlanHarness


def names(harness: PlanHarness, limit: int = 100) -> tuple[list[str], list[str], list[str]]:
    reply = harness.engine.call(GetQueue("p", limit))
    working, ready, waiting = (
        [task.task_id for task in tasks] for tasks in (reply.working, reply.ready, reply.waiting)
    )
    return working, ready, waiting


def test_ready_tasks_are_in_the_order_in_which_agents_get_them() -> None:
    """OBS-3: by priority and age over all classes, not by name; done and stuck tasks are not queued."""
    harness = PlanHarness()
    harness.add("c", type="code")
    harness.now += 1000
    harness.add("a", track="A")
    harness.add("b", priority=9)
    harness.add("done", priority=5)
    harness.add("later", "a")
    harness.add("stuck", priority=8)
    order = names(harness)[1]
    taken = [harness.take(agent) for agent in ("ann", "bob", "cid", "dan", "eve")]
    assert order == taken == ["b", "stuck", "done", "c", "a"]
    assert names(harness) == (sorted(taken), [], ["later"])
    harness.fail("stuck", "bob", final=True)
    assert harness.submit("done", "cid")
    assert names(harness) == (["a", "b", "c"], [], ["later"])


def test_each_list_is_as_long_as_the_limit() -> None:
    """A long plan costs no more than its beginning."""
    harness = PlanHarness()
    harness.add_all({f"t{number}": () for number in range(9)})
    harness.add_all({f"u{number}": ("t0",) for number in range(9)})
    assert [len(each) for each in names(harness, 2)] == [0, 2, 0]
    for agent in ("ann", "bob", "cid"):
        harness.take(agent)
    assert [len(each) for each in names(harness, 6)] == [3, 6, 6]


def test_a_task_whose_lease_has_expired_is_ready_without_a_sweep() -> None:
    harness = PlanHarness()
    harness.add("a")
    assert harness.take() == "a"
    harness.now += LEASE_MS * 100
    assert names(harness) == ([], ["a"], [])


def test_a_task_that_is_tried_again_later_waits() -> None:
    harness = PlanHarness()
    harness.add("a")
    harness.fail(harness.take())
    assert names(harness) == ([], [], ["a"])
