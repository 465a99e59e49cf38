"""What each tool reports becomes the same amounts; hostile numbers and names are dropped."""

from typing import Any

import pytest

from coord.core.usage.schema import Amounts
from coord.transports.hub.telemetry.otlp import CUMULATIVE, DELTA, Point, Record
from coord.transports.hub.telemetry.reports import NUMBER_MAX, Report, of_point, of_record
from tests.support.hub.otlp import claude, codex, gemini


def read(attributes: dict[str, Any], time_ns: int = 0, **prices: Any) -> Report | None:
    return of_record(Record(attributes, time_ns, 0), prices)


def amounts(attributes: dict[str, Any]) -> Amounts:
    found = read(attributes)
    assert found is not None
    return found.item.amounts


def test_claude_reports_its_cost_itself() -> None:
    found = read(claude("s1"))
    assert found is not None
    assert (found.tool, found.session, found.item.model) == ("claude", "s1", "claude-sonnet-4-5")
    used = {"requests": 1, "input": 100, "output": 20, "cache_read": 3000, "cache_write": 400}
    assert found.item.amounts == Amounts(**used, cost=12300)
    assert (found.item.context_tokens, found.item.context_window) == (3500, 200_000)
    without = {name: value for name, value in claude("s1").items() if name != "cost_usd_micros"}
    assert amounts(without).cost == 12300


def test_the_context_of_a_sub_agent_is_not_that_of_the_session() -> None:
    found = read(claude("s1", query_source="agent:custom"))
    assert found is not None
    assert found.item.context_tokens == 0
    other = read(gemini("s1", role="subagent"))
    assert other is not None
    assert other.item.context_tokens == 0


def test_codex_counts_cached_tokens_among_its_input() -> None:
    """gpt-5-codex: 200 at $1.25, 800 cached at $0.125 and 50 at $10 for a million."""
    used = {"requests": 1, "input": 200, "output": 50, "cache_read": 800}
    assert amounts(codex("s1")) == Amounts(**used, estimated=850)


def test_gemini_thinks_at_the_price_of_output() -> None:
    """gemini-2.5-pro: 800 at $1.25, 200 cached at $0.125 and 80 at $10 for a million."""
    used = {"requests": 1, "input": 800, "output": 80, "cache_read": 200}
    assert amounts(gemini("s1")) == Amounts(**used, estimated=1825)


def test_a_model_without_a_price_has_tokens_only() -> None:
    found = amounts(codex("s1", model="my-model"))
    assert (found.spent, found.unpriced, found.tokens) == (0, 1050, 1050)


@pytest.mark.parametrize(
    "changes",
    [
        {"event.name": "user_prompt"},
        {"event.name": 5},
        {"session.id": ""},
        {"session.id": "a/b"},
        {"session.id": "x" * 200},
        {"session.id": 7},
        {"input_tokens": -1},
        {"input_tokens": 2**63},
        {"input_tokens": float("nan")},
        {"input_tokens": float("inf")},
        {"input_tokens": "many"},
        {"input_tokens": "-5"},
        {"input_tokens": "9" * 30},
        {"input_tokens": NUMBER_MAX + 1},
        {"cost_usd_micros": -3},
    ],
    ids=repr,
)
def test_what_is_no_report_is_dropped(changes: dict[str, Any]) -> None:
    assert read({**claude("s1"), **changes}) is None


def test_the_session_of_coord_work_comes_first() -> None:
    found = read({**claude("s1"), "coord.session.id": "work-1"})
    assert found is not None
    assert found.session == "work-1"


def test_two_requests_differ_and_a_repeat_does_not() -> None:
    ids = [
        found.item.id
        for found in (
            *(read(claude("s1", 1)), read(claude("s1", 2)), read(claude("s1", 1, input_tokens=101))),
            *(read(claude("s1", 1)), read(claude("s1", 1), time_ns=5)),
        )
        if found is not None
    ]
    assert len(ids) == 5
    assert ids[0] == ids[3]
    assert len(set(ids)) == 4


def point(value: float, **changes: Any) -> Report | None:
    fields: dict[str, Any] = {"session.id": "s1", "model": "m", "type": "cacheRead"}
    made = {"name": "claude_code.token.usage", "temporality": CUMULATIVE, **changes}
    attributes = {**fields, **made.pop("attributes", {})}
    return of_point(Point(made["name"], attributes, value, 11, 12, made["temporality"]))


def test_a_counter_is_a_total_or_an_increase() -> None:
    total = point(5.0)
    assert total is not None
    assert total.item.amounts == Amounts(cache_read=5)
    assert (bool(total.item.series), total.item.start_ns) == (True, 11)
    increase = point(5.0, temporality=DELTA)
    assert increase is not None
    assert (increase.item.series, increase.item.start_ns) == ("", 0)
    money = point(0.5, name="claude_code.cost.usage")
    assert money is not None
    assert money.item.amounts == Amounts(cost=500_000)
    other = point(5.0, attributes={"type": "output"})
    assert other is not None
    assert other.item.series != total.item.series


@pytest.mark.parametrize("value", [-1.0, 0.0, float("nan"), float("inf"), 2.0**63, 1e300])
def test_a_counter_with_a_hostile_value_is_dropped(value: float) -> None:
    assert point(value) is None
    assert point(value, name="claude_code.cost.usage") is None


def test_a_counter_that_we_do_not_know_is_dropped() -> None:
    assert point(1.0, temporality=0) is None
    assert point(1.0, attributes={"type": "thoughts"}) is None
    assert point(1.0, attributes={"session.id": "a b"}) is None
