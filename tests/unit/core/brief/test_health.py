"""The health of a project in numbers, and the icon that sums it up."""

import pytest

from coord.core.brief.commands import Health
from coord.core.brief.health import is_many_idle
from tests.support.brief_harness import BriefHarness


@pytest.fixture
def crew() -> BriefHarness:
    harness = BriefHarness()
    harness.join("boss", "lead")
    harness.join("dev", "developer", parent="boss")
    return harness


def health(crew: BriefHarness) -> Health:
    found = crew.brief("boss").health
    assert found is not None
    return found


def test_completion_counts_what_is_done_or_skipped(crew: BriefHarness) -> None:
    """CTX-8: (done + skipped) / total of the plan; without a plan there is none."""
    assert health(crew).completion is None
    for number in range(9):
        crew.add(f"t{number}")
    assert health(crew).completion == 0
    for number in range(5):
        crew.claim("dev", f"t{number}")
        crew.finish("dev", f"t{number}")
    crew.skip("t5")
    crew.skip("t6")
    assert health(crew).completion == 77, "7 of 9, never rounded up to done"


def test_fleet(crew: BriefHarness) -> None:
    """CTX-9: active, idle and completed agents, without the one that reads."""
    crew.add("t")
    crew.claim("dev", "t")
    crew.join("qa", "reviewer")
    crew.join("old", "reviewer")
    crew.leave("old")
    found = health(crew)
    assert (found.active, found.idle, found.done) == (1, 1, 1)


def test_blocked_and_failed_tasks_are_critical(crew: BriefHarness) -> None:
    """CTX-11, CTX-12: a failed task, and the one that depends on it."""
    crew.add("a")
    crew.add("b", "a")
    crew.add("c", "b")
    assert (health(crew).icon, health(crew).blocked_tasks) == ("✅", 0)
    crew.claim("dev", "a")
    crew.fail("dev", "a")
    found = health(crew)
    assert (found.icon, found.blocked_tasks, found.failed_tasks) == ("🔴", 2, 1)


def test_many_idle_agents_are_a_warning(crew: BriefHarness) -> None:
    """CTX-12: more agents are idle than work."""
    assert health(crew).icon == "✅", "a single idle agent is not many"
    crew.join("qa", "reviewer")
    assert health(crew).icon == "⚠️"
    crew.add("t")
    crew.claim("dev", "t")
    assert health(crew).icon == "✅"


def test_pending_decisions_are_a_warning(crew: BriefHarness) -> None:
    """CTX-10, CTX-12: how many, and since when the oldest waits; those of other projects do not count."""
    crew.add("t")
    crew.claim("dev", "t")
    asked_ms = crew.now
    question = crew.ask("dev", "JWT or cookies?")
    crew.pass_time(60_000)
    crew.ask("boss", "Which port?")
    crew.projects["far"] = "elsewhere"
    crew.ask("far", "Lunch?")
    found = health(crew)
    assert (found.icon, found.decisions, found.oldest_decision_ms) == ("⚠️", 2, asked_ms)
    crew.decide(question, "JWT")
    assert health(crew).decisions == 1


def test_the_example_of_the_founding_documents_is_healthy() -> None:
    """CTX-5: 3 active, 2 idle."""
    assert not is_many_idle(3, 2)
    assert is_many_idle(1, 2)
