"""List prices, prices of a repository, and its budgets."""

from pathlib import Path
from typing import Any

import pytest

from coord.core.errors import Invalid
from coord.core.usage.commands import Budget
from coord.core.usage.schema import Amounts
from coord.host.repository import find_repository
from coord.integrations.telemetry.prices import (
    UNKNOWN,
    BudgetRules,
    all_prices,
    budget_rules,
    find_model,
    list_prices,
    own_prices,
    prices_for,
)
from coord.integrations.telemetry.setup import TOOLS, lines_for, with_session
from tests.support.consent import write_configuration
from tests.support.git_folders import made_repository


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
    for tool in TOOLS:
        assert "http://127.0.0.1:7420" in lines_for(tool, "http://127.0.0.1:7420")


def test_a_person_sets_prices_for_all_repositories_and_for_one(tmp_path: Path) -> None:
    """The repository's file comes before the user's, and both before the list; unconfirmed it is nothing."""
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "s")}
    own = tmp_path / "coord/coord.toml"
    own.parent.mkdir()
    own.write_text("[prices.gpt-5]\ninput = 7\n[prices.mine]\ninput = 1\noutput = 2\n")
    made_repository(tmp_path / "shop")
    repository = find_repository(str(tmp_path / "shop"))
    (tmp_path / "shop/coord.toml").write_text("[prices.mine]\ninput = 100\n")
    assert prices_for(repository, environ)["mine"].input == 1, "nobody has confirmed it"
    write_configuration(tmp_path / "shop", "[prices.mine]\ninput = 3\n", environ)
    found = prices_for(repository, environ)
    assert (found["gpt-5"].input, found["gpt-5"].output) == (7, find_model("gpt-5").output)
    assert (found["mine"].input, found["mine"].output) == (3, None)
    every = all_prices(repository, environ)
    assert (every["mine"][1], every["gpt-5"][1]) == (str(tmp_path / "shop/coord.toml"), str(own))
    assert every["claude-sonnet-4-5"] == (find_model("claude-sonnet-4-5"), "list")
    assert find_model("mine", found).estimate(Amounts(input=2_000_000)) == 6_000_000
