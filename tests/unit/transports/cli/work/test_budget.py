"""A command of `coord work` ends when its task or crew is over budget, if `coord.toml` says so."""

from typing import Any

import pytest

from coord.core.errors import Unavailable
from coord.core.usage.commands import Budget, SpentReply
from coord.core.usage.schema import Amounts
from coord.host.consent import Configuration
from coord.integrations.telemetry.prices import BudgetRules
from coord.transports.cli.work.budget import LOOK_S, BudgetCheck, budget_check


class Client:
    """What a worker asks, and how often."""

    def __init__(self, task: Amounts = Amounts(), crew: Amounts = Amounts(), **tables: Any) -> None:  # noqa: B008
        self.reply = SpentReply(task, crew)
        self.configuration = Configuration("coord.toml", tables)
        self.asked = 0
        self.fails = False

    def spent(self, task: str) -> SpentReply:
        assert task == "t1"
        self.asked += 1
        if self.fails:
            raise Unavailable("the store is away")
        return self.reply


def check(client: Any, **budget: int) -> Any:
    times = iter([0.0, *(LOOK_S * number for number in range(1, 100) for _ in "ab")])
    return BudgetCheck(client, BudgetRules(Budget(**budget), stop=True), lambda: next(times))


def test_a_task_or_crew_over_its_budget_is_named() -> None:
    spent = Amounts(cost=3_000_000)
    assert check(Client(spent), task_cost=2_000_000)("t1") == "the task used $3.00 of $2.00"
    assert check(Client(crew=spent), crew_cost=2_000_000)("t1") == "the crew used $3.00 of $2.00"
    assert check(Client(spent, spent), task_cost=3_000_000)("t1") == ""


def test_a_store_that_does_not_answer_ends_nothing() -> None:
    client = Client(Amounts(cost=5))
    client.fails = True
    assert check(client, task_cost=1)("t1") == ""


def test_it_asks_every_few_seconds_only() -> None:
    client: Any = Client()
    now = [0.0]
    found = BudgetCheck(client, BudgetRules(Budget(task_cost=1), stop=True), lambda: now[0])
    for _ in range(100):
        now[0] += LOOK_S / 50
        found("t1")
    assert client.asked in (1, 2)


@pytest.mark.parametrize(
    ("budget", "checks"),
    [
        ({}, False),
        ({"task_usd": 2}, False),
        ({"stop": True}, False),
        ({"task_usd": 2, "stop": True}, True),
    ],
)
def test_nothing_ends_unless_somebody_says_so(budget: dict[str, Any], checks: bool) -> None:
    client: Any = Client(budget=budget)
    assert (budget_check(client) is not None) is checks
