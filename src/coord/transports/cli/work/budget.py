"""Ends a command of `coord work` that has spent its budget, if `coord.toml` says so: `[budget] stop = true`.

Only what coord started ends this way. An agent that a person started is reported, never ended.
"""

import time
from collections.abc import Callable

from coord.core.errors import CoordError
from coord.core.usage.usage import exceeded
from coord.integrations.telemetry.prices import BudgetRules, budget_rules
from coord.sdk.client.client import Client

LOOK_S = 10.0
"""How often a worker asks what its task has used; reports are written once a minute."""


def budget_check(client: Client) -> Callable[[str], str] | None:
    """Return what says how far a task is over its budget; None if no budget ends anything here."""
    rules = budget_rules(client.configuration.tables)
    if not rules.stop or rules.budget == type(rules.budget)():
        return None
    return BudgetCheck(client, rules)


class BudgetCheck:
    """Asks from time to time what a task and its crew have used."""

    def __init__(
        self, client: Client, rules: BudgetRules, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._budget = rules.budget
        self._clock = clock
        self._asked_s = clock()

    def __call__(self, task: str) -> str:
        """Return how far a task is over its budget; empty if it is not, or nobody can say."""
        if self._clock() - self._asked_s < LOOK_S:
            return ""
        self._asked_s = self._clock()
        try:
            spent = self._client.spent(task)
        except CoordError:
            return ""  # the claim decides whether the work goes on, and not the budget
        budget = self._budget
        own = exceeded(spent.task, budget.task_cost, budget.task_tokens)
        crew = exceeded(spent.crew, budget.crew_cost, budget.crew_tokens)
        return f"the task used {own}" if own else f"the crew used {crew}" if crew else ""
