"""List prices and context windows of models, and the budgets of a repository."""

import math
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from coord.core.errors import Invalid
from coord.core.ids import short_repr
from coord.core.usage.commands import Budget
from coord.core.usage.counting import AMOUNT_MAX
from coord.core.usage.schema import Amounts
from coord.host.config import configuration_file, read_configuration, user_configuration_file
from coord.host.consent import read_consented
from coord.host.repository import Repository

DATA = "models.toml"
PRICES = ("input", "output", "cache_read", "cache_write")
USD_MAX = 1e6
_DATED = re.compile(r"(.+?)[-@](?:20[0-9]{2}-?[0-9]{2}-?[0-9]{2}|latest|preview)")


class Model(NamedTuple):
    """What a model costs, in dollars for a million tokens (None: unknown), and its window (0: unknown)."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None
    window: int = 0

    def estimate(self, amounts: Amounts) -> int | None:
        """Return the price of tokens in micro-dollars; None if one of the prices is not known."""
        total = 0.0
        for name in PRICES:
            tokens, price = getattr(amounts, name), getattr(self, name)
            if name == "cache_write" and price is None:
                price = self.input  # most providers take no extra for it
            if tokens and price is None:
                return None
            total += tokens * (price or 0.0)
        return min(AMOUNT_MAX, round(total))


UNKNOWN = Model()


@cache
def list_prices() -> dict[str, Model]:
    """Return the models that coord knows."""
    import tomllib

    text = files(__package__).joinpath(DATA).read_text(encoding="utf-8")
    return {name: Model(**fields) for name, fields in tomllib.loads(text)["models"].items()}


def find_model(name: str, own: Mapping[str, Model] | None = None) -> Model:
    """Return a model by its name or by that of its undated version; `own` prices come first."""
    for table in (own or {}, list_prices()):
        found = table.get(name)
        if found is not None:
            return found
    undated = _DATED.fullmatch(name)
    return find_model(undated[1], own) if undated else UNKNOWN


def own_prices(tables: Mapping[str, Any]) -> dict[str, Model]:
    """Return the prices that a `coord.toml` gives: `[prices."my-model"]` with `input`, `output` and so on."""
    given = _table(tables, "prices")
    return {name: _model(name, fields) for name, fields in given.items()}


def prices_for(repository: Repository | None, environ: Mapping[str, str]) -> dict[str, Model]:
    """Return the prices that the user's own `coord.toml` gives, and over them those of the repository."""
    return {name: model for name, (model, _) in _configured(repository, environ).items()}


def all_prices(repository: Repository | None, environ: Mapping[str, str]) -> dict[str, tuple[Model, str]]:
    """Return every model with its price, and where that comes from: a list, or a file."""
    return {
        **{name: (model, "list") for name, model in list_prices().items()},
        **_configured(repository, environ),
    }


def _configured(repository: Repository | None, environ: Mapping[str, str]) -> dict[str, tuple[Model, str]]:
    own, file = user_configuration_file(environ), configuration_file(repository)
    found = {name: (model, own) for name, model in own_prices(read_configuration(own)).items()}
    given = own_prices(read_consented(repository, environ).tables)
    return {**found, **{name: (model, file) for name, model in given.items()}}


def _model(name: str, fields: Any) -> Model:
    if not isinstance(fields, dict) or not set(fields) <= {*PRICES, "window"}:
        raise Invalid(
            f"[prices.{short_repr(name)}] is no price", hint=f"use {', '.join(PRICES)} and window there"
        )
    known = find_model(name)
    prices = {each: _usd(f"prices.{name}.{each}", fields[each]) for each in PRICES if each in fields}
    window = fields.get("window", known.window)
    if type(window) is not int or not 0 <= window <= AMOUNT_MAX:
        raise Invalid(f"prices.{name}.window is {short_repr(window)}", hint="use a number of tokens")
    return known._replace(**prices, window=window)


class BudgetRules(NamedTuple):
    """The budgets of a repository, and whether they end what coord started."""

    budget: Budget = Budget()
    stop: bool = False


_BUDGET = ("task_usd", "task_tokens", "crew_usd", "crew_tokens", "stop")


def budget_rules(tables: Mapping[str, Any]) -> BudgetRules:
    """Return the budgets that a `coord.toml` gives in `[budget]`."""
    given = _table(tables, "budget")
    for name in given:
        if name not in _BUDGET:
            raise Invalid(f"[budget] has an unknown {short_repr(name)}", hint=f"use {', '.join(_BUDGET)}")
    stop = given.get("stop", False)
    if type(stop) is not bool:
        raise Invalid(f"budget.stop is {short_repr(stop)}", hint="use true or false")
    budget = Budget(
        task_cost=round(_usd("budget.task_usd", given.get("task_usd", 0)) * 1e6),
        task_tokens=_tokens("budget.task_tokens", given.get("task_tokens", 0)),
        crew_cost=round(_usd("budget.crew_usd", given.get("crew_usd", 0)) * 1e6),
        crew_tokens=_tokens("budget.crew_tokens", given.get("crew_tokens", 0)),
    )
    return BudgetRules(budget, stop)


def _table(tables: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = tables.get(name, {})
    if not isinstance(found, dict):
        raise Invalid(f"{name} is {short_repr(found)}", hint=f"write a table: [{name}]")
    return found


def _usd(name: str, value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value) or not 0 <= value <= USD_MAX:
        raise Invalid(f"{name} is {short_repr(value)}", hint="use an amount in dollars, for example 2.50")
    return float(value)


def _tokens(name: str, value: Any) -> int:
    if type(value) is not int or not 0 <= value <= AMOUNT_MAX:
        raise Invalid(f"{name} is {short_repr(value)}", hint="use a number of tokens, for example 2_000_000")
    return value
