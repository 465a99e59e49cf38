"""List prices, prices of a repository, and its budgets."""

from typing import Any

import pytest

from coord.core.errors import Invalid
from coord.core.usage.commands import Budget
from coord.core.usage.schema import Amounts
from coord.integrations.telemetry.prices import (
    UNKNOWN,
    BudgetRules,
    budget_rules,
    find_model,
    list_prices,
    own_prices,
)
from coord.integrations.telemetry.setup import TEXTS, lines_for, with_session


def test_every_list_price_is_plausible() -> None:
    for name, model in list_prices().items():
        assert 0 < (model.cache_read or 0) < (model.input or 0) < (model.output or 0), name
        assert model.window >= 100_000, name


def test_a_dated_model_has_the_price_of_its_name() -> None:
    assert find_model("gpt-5-2025-08-07") == find_model("gpt-5")
    assert find_model("claude-sonnet-4-5-20250929") == find_model("claude-sonnet-4-5")
    assert find_model("gpt-5.9") == find_model("gpt-5-other") == find_model("") == UNKNOWN


def test_an_estimate_is_in_micro_dollars() -> None:
    model = find_model("gpt-5")
    assert model.estimate(Amounts(input=1_000_000)) == 1_250_000
    assert model.estimate(Amounts(cache_write=1_000_000)) == 1_250_000, "as input"
    assert UNKNOWN.estimate(Amounts(input=1)) is None
    assert UNKNOWN.estimate(Amounts()) == 0


def test_a_repository_gives_its_own_prices() -> None:
    own = own_prices({"prices": {"gpt-5": {"input": 1}, "my-model": {"input": 2.5, "output": 5}}})
    assert (own["gpt-5"].input, own["gpt-5"].output) == (1.0, 10.0)
    assert find_model("my-model", own).estimate(Amounts(input=2, output=1)) == 10
    assert find_model("my-model-2026-01-01", own) == own["my-model"]
    assert own_prices({}) == {}


@pytest.mark.parametrize(
    "tables",
    [
        {"prices": 5},
        {"prices": {"m": 5}},
        {"prices": {"m": {"inputs": 5}}},
        {"prices": {"m": {"input": -1}}},
        {"prices": {"m": {"input": float("nan")}}},
        {"prices": {"m": {"input": "5"}}},
        {"prices": {"m": {"input": True}}},
        {"prices": {"m": {"window": 1.5}}},
    ],
    ids=repr,
)
def test_a_wrong_price_is_refused(tables: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        own_prices(tables)


def test_budgets_are_dollars_and_tokens() -> None:
    found = budget_rules({"budget": {"task_usd": 2.5, "crew_tokens": 1000, "stop": True}})
    assert found == BudgetRules(Budget(task_cost=2_500_000, crew_tokens=1000), stop=True)
    assert budget_rules({}) == BudgetRules()


@pytest.mark.parametrize(
    "budget",
    [5, {"task": 1}, {"task_usd": -1}, {"task_usd": float("inf")}, {"crew_tokens": 1.5}, {"stop": 1}],
    ids=repr,
)
def test_a_wrong_budget_is_refused(budget: Any) -> None:
    with pytest.raises(Invalid):
        budget_rules({"budget": budget})


def test_a_program_of_coord_work_states_its_session() -> None:
    assert with_session({}, "w") == "coord.session.id=w"
    before = {"OTEL_RESOURCE_ATTRIBUTES": "team=a, coord.session.id=old,,b=c"}
    assert with_session(before, "w") == "team=a,b=c,coord.session.id=w"


def test_the_settings_of_each_tool_name_the_hub() -> None:
    for tool in TEXTS:
        assert "http://127.0.0.1:7420" in lines_for(tool, "http://127.0.0.1:7420")
