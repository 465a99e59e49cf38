"""What was used, by agent, task, model, day, session and crew."""

import pytest

from coord.core import keys
from coord.core.usage.commands import GetSpent, GetUsage, UsageBy
from coord.core.usage.queries import NO_TASK
from coord.core.usage.schema import UsageState
from coord.core.usage.usage import DAY_MS
from tests.support.rule_harness import T0, RuleHarness
from tests.support.usage_harness import begin, claim, item, record, used


@pytest.fixture
def harness() -> RuleHarness:
    return RuleHarness()


def test_usage_counts_by_agent_task_model_day_and_crew(harness: RuleHarness) -> None:
    begin(harness, "lead")
    begin(harness, "ann", parent="lead")
    claim(harness, "ann", "t1")
    outcome = record(harness, "ann", item(10, cost=30), item(5, "n"))
    assert outcome.reply.tasks == ["t1"]
    assert outcome.event_tags == ["usage.reported"]
    event = outcome.events[0]
    assert (event["session"], event["agent"], event["tasks"], event["input"], event["cost"]) == (
        *("ann", "agent-ann", ["t1"], 15, 30),
    )
    record(harness, "lead", item(100), now=T0 + DAY_MS)
    assert used(harness, "agent") == {"agent-lead": (115 - 15, 0), "agent-ann": (15, 30)}
    assert used(harness, "task") == {"t1": (15, 30), NO_TASK: (100, 0)}
    assert used(harness, "model") == {"m": (110, 30), "n": (5, 0)}
    assert used(harness, "crew") == {"lead": (115, 30)}
    assert used(harness, "session") == {"ann": (15, 30), "lead": (100, 0)}
    assert used(harness, "day") == {"2023-11-15": (100, 0), "2023-11-14": (15, 30)}
    assert used(harness, "agent", since_ms=T0 + DAY_MS) == {"agent-lead": (100, 0)}
    assert used(harness, "agent", project="other") == {}
    assert harness.run(GetUsage(project="shop", limit=1)).reply.total.tokens == 115
    assert len(harness.run(GetUsage(limit=1)).reply.totals) == 1


def test_the_context_of_a_session_is_shown(harness: RuleHarness) -> None:
    begin(harness, "ann")
    outcome = record(harness, "ann", item(context_tokens=150_000, context_window=200_000))
    assert outcome.events[0]["context_percent"] == 75
    assert harness.run(GetUsage(per=UsageBy.SESSION)).reply.totals[0].context_percent == 75
    assert harness.read(keys.usage_state("ann"), UsageState).tool == "claude"


def test_what_counts_against_budgets_is_that_of_the_whole_crew(harness: RuleHarness) -> None:
    begin(harness, "lead")
    begin(harness, "sub", parent="lead")
    claim(harness, "sub", "t1")
    record(harness, "sub", item(7))
    record(harness, "lead", item(5))
    spent = harness.run(GetSpent(project="shop", task="t1", session="sub")).reply
    assert (spent.task.tokens, spent.crew.tokens) == (7, 12)
    nothing = harness.run(GetSpent(project="shop", task="t2")).reply
    assert (nothing.task.tokens, nothing.crew.tokens) == (0, 0)
