"""A reset opens a task again, and withdraws what waits for it."""

import pytest

from coord.core.tasks.dependencies import UPDATES_MAX
from tests.support.plan_harness import PlanHarness
from tests.support.rule_harness import RuleHarness


@pytest.fixture
def harness() -> PlanHarness:
    return PlanHarness()


def test_a_reset_withdraws_everything_that_waits_for_it_at_once(harness: PlanHarness) -> None:
    """Issue 4: none runs before its dependencies, however many depend on one that is opened again."""
    many = UPDATES_MAX + 600
    harness.add_all({"a": ()} | {f"t{number:04d}": ("a",) for number in range(many)})
    assert harness.take() == "a"
    assert harness.submit("a")
    for _ in range(3):
        harness.pass_time()
    assert harness.counted("ready") == many
    harness.reset("a")
    assert harness.counted("ready") == 1
    assert harness.take() == "a"


def test_a_generation_never_falls_through_resets() -> None:
    """CLM-22, CLM-58: a reset opens the task again and the generation goes on rising."""
    harness = RuleHarness()
    seen = []
    for turn in range(1, 6):
        seen.append(harness.claim().reply.claim.generation.generation)
        if turn % 2:
            harness.submit(generation=turn)
        harness.reset()
    assert seen == [1, 2, 3, 4, 5]
    assert [entry.release_reason for entry in harness.history()] == [
        "COMPLETED",
        "RESET",
        "COMPLETED",
        "RESET",
        "COMPLETED",
    ]
