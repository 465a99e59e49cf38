"""Usage counts for the session, its day, its tasks and its crew; budgets are compared with it."""

import pytest

from coord.core.errors import Invalid
from coord.core.lifecycle.commands import NeedsYou
from coord.core.sweep import Sweep
from coord.core.usage.commands import Budget, GetSpent
from coord.core.usage.queries import NO_TASK
from coord.core.usage.usage import (
    ITEMS_MAX,
    KEPT_MS,
    OTHER_SESSION,
    OVER_KEPT_MS,
    ROWS_MAX,
    UNKNOWN_MAX,
    dollars,
)
from tests.support.rule_harness import T0, RuleHarness
from tests.support.usage_harness import begin, claim, item, record, used


@pytest.fixture
def harness() -> RuleHarness:
    return RuleHarness()


def test_a_token_of_one_project_reports_for_its_sessions_only(harness: RuleHarness) -> None:
    begin(harness, "ann")
    ignored = record(harness, "ann", item(), project="other")
    assert (ignored.writes, ignored.events) == ({}, [])
    assert record(harness, "ann", item(), project="shop").reply.added.input == 10


def test_a_report_that_comes_again_changes_nothing(harness: RuleHarness) -> None:
    begin(harness, "ann")
    report = item(10)
    assert record(harness, "ann", report).reply.added.input == 10
    again = record(harness, "ann", report)
    assert (again.reply.added.input, again.writes, again.events) == (0, {}, [])
    assert used(harness, "agent") == {"agent-ann": (10, 0)}


def test_several_tasks_share_what_was_used(harness: RuleHarness) -> None:
    begin(harness, "ann")
    claim(harness, "ann", "t1", "t2")
    record(harness, "ann", item(11, cost=5))
    assert used(harness, "task") == {"t1": (6, 3), "t2": (5, 2)}


def test_a_sub_agent_works_for_the_task_of_its_parent(harness: RuleHarness) -> None:
    begin(harness, "lead")
    begin(harness, "sub", parent="lead")
    claim(harness, "lead", "t1")
    assert record(harness, "sub", item()).reply.tasks == ["t1"]


def test_unknown_sessions_are_kept_under_their_own_id_and_bounded(harness: RuleHarness) -> None:
    for number in range(UNKNOWN_MAX + 5):
        record(harness, f"tool-{number}", item(1))
    found = used(harness, "session")
    assert len(found) == UNKNOWN_MAX + 1
    assert found["tool-0"] == (1, 0)
    assert found[OTHER_SESSION] == (5, 0)
    record(harness, "tool-0", item(1))
    assert used(harness, "session")["tool-0"] == (2, 0)


@pytest.mark.parametrize("name", ["", "a/b", "../x", "x" * 129, "a\nb"])
def test_a_session_that_is_no_id_is_refused(harness: RuleHarness, name: str) -> None:
    with pytest.raises(Invalid):
        record(harness, name, item())


def test_a_report_is_bounded(harness: RuleHarness) -> None:
    with pytest.raises(Invalid):
        record(harness, "ann", *[item()] * (ITEMS_MAX + 1))
    begin(harness, "ann")
    for number in range(ROWS_MAX + 3):
        for key in [key for key in harness.records if key.startswith("by-session/")]:
            del harness.records[key]
        claim(harness, "ann", f"t{number}")
        record(harness, "ann", item(1))
    found = used(harness, "task")
    assert len(found) == ROWS_MAX + 1
    assert found[NO_TASK] == (3, 0)


def test_a_budget_is_exceeded_once_and_listed(harness: RuleHarness) -> None:
    begin(harness, "ann")
    claim(harness, "ann", "t1")
    budget = Budget(task_cost=2_000_000, crew_tokens=1000)
    assert record(harness, "ann", item(10, cost=2_000_000), budget=budget).reply.over == []
    outcome = record(harness, "ann", item(10, cost=1), budget=budget)
    assert outcome.reply.over == ["task t1"]
    assert outcome.event_tags == ["budget.exceeded", "usage.reported"]
    event = outcome.events[0]
    assert (event["scope"], event["name"], event["spent"], event["limit"]) == (
        *("task", "t1", 2_000_001, "$2.00 of $2.00"),
    )
    again = record(harness, "ann", item(10, cost=1), budget=budget)
    assert again.reply.over == ["task t1"]
    assert again.event_tags == ["usage.reported"], "said once"
    needs = harness.run(NeedsYou()).reply
    assert [(each.kind, each.what, each.id) for each in needs.needs] == [("budget", "task over budget", "t1")]
    assert needs.counts == {"budget": 1}
    assert harness.run(NeedsYou(project="other")).reply.needs == []
    spent = harness.run(GetSpent(project="shop", task="t1", session="ann")).reply
    assert (spent.task.spent, spent.crew.tokens) == (2_000_002, 30)
    raised = Budget(task_cost=9_000_000)
    assert record(harness, "ann", item(1), budget=raised).reply.over == []
    assert harness.run(NeedsYou()).reply.needs == []


def test_a_crew_has_a_budget_of_tokens(harness: RuleHarness) -> None:
    begin(harness, "lead")
    begin(harness, "sub", parent="lead")
    budget = Budget(crew_tokens=100)
    record(harness, "lead", item(60), budget=budget)
    outcome = record(harness, "sub", item(60), budget=budget)
    assert outcome.reply.over == ["crew lead"]
    assert outcome.events[0]["limit"] == "120 of 100 tokens"


def test_old_usage_is_forgotten_by_the_sweep(harness: RuleHarness) -> None:
    begin(harness, "ann")
    claim(harness, "ann", "t1")
    record(harness, "ann", item(cost=5), budget=Budget(task_cost=1))
    harness.run(Sweep("local", 32), T0 + OVER_KEPT_MS)
    assert [key for key in harness.records if key.startswith("over-budget/")] == []
    assert used(harness, "task") == {"t1": (10, 5)}
    harness.run(Sweep("local", 32), T0 + KEPT_MS)
    assert [key for key in harness.records if key.startswith(("usage/", "usage-state/", "spent/"))] == []


def test_money_is_written_as_people_read_it() -> None:
    assert [dollars(each) for each in (0, 1, 9_999, 10_000, 1_994_999, 1_995_000, 10**12)] == [
        *("$0.00", "$0.0000", "$0.0100", "$0.01", "$1.99", "$2.00", "$1000000.00"),
    ]
