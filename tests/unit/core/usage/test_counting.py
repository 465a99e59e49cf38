"""Sums of reports: whatever comes twice, late, in another order or after a restart, each counts once."""

import random
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coord.core.usage.commands import Source, UsageItem
from coord.core.usage.counting import (
    AMOUNT_MAX,
    MODELS_MAX,
    OTHER,
    RECENT_MAX,
    SERIES_MAX,
    UNKNOWN,
    context_percent,
    count,
    grown,
    split,
    totals,
)
from coord.core.usage.schema import Amounts, UsageState


def log(name: str, tokens: int, model: str = "m", **fields: Any) -> UsageItem:
    return UsageItem(
        id=name, source=Source.LOG, model=model, amounts=Amounts(requests=1, input=tokens), **fields
    )


def counter(tokens: int, start: int, series: str = "s", model: str = "m") -> UsageItem:
    amounts = Amounts(input=tokens)
    return UsageItem(id="", source=Source.METRIC, model=model, amounts=amounts, series=series, start_ns=start)


def inputs(state: UsageState) -> dict[str, int]:
    return {model: amounts.input for model, amounts in totals(state).items()}


REPORTS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 10_000)), max_size=12)


@given(REPORTS, st.randoms(use_true_random=False), st.integers(1, 5))
@settings(max_examples=150, deadline=None)
def test_increases_count_once_in_any_order_and_any_batches(
    reports: list[tuple[str, int]], order: random.Random, batch: int
) -> None:
    items = [log(str(number), tokens, model) for number, (model, tokens) in enumerate(reports)]
    sent = [*items, *order.sample(items, len(items) // 2), *items[:1]]
    order.shuffle(sent)
    state = UsageState()
    for first in range(0, len(sent), batch):
        state = count(state, sent[first : first + batch])
    expected: dict[str, int] = defaultdict(int)
    for model, tokens in reports:
        expected[model] += tokens
    assert inputs(state) == expected


RUNS = st.lists(st.lists(st.integers(0, 1000), min_size=1, max_size=5), min_size=1, max_size=4)


@given(RUNS, st.randoms(use_true_random=False))
@settings(max_examples=150, deadline=None)
def test_totals_of_counters_survive_restarts_repeats_and_disorder(
    runs: list[list[int]], order: random.Random
) -> None:
    """Each process counts from zero, under its own start; the sum is what all of them counted."""
    points = []
    for start, increases in enumerate(runs, 1):
        value = 0
        for each in increases:
            value += each
            points.append(counter(value, start))
    sent = [*points, *order.sample(points, len(points) // 2)]
    order.shuffle(sent)
    state = UsageState()
    for point in sent:
        state = count(state, [point])
    assert inputs(state).get("m", 0) == sum(map(sum, runs))


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=8), st.integers(0, 8), st.booleans())
@settings(max_examples=100, deadline=None)
def test_logs_and_counters_of_the_same_requests_count_once(
    tokens: list[int], arrived: int, counters_first: bool
) -> None:
    """A part of the log records is lost; the counters have everything, and come before or after them."""
    logs = [log(str(number), each) for number, each in enumerate(tokens)][:arrived]
    counters = [counter(sum(tokens), 1)]
    state = count(UsageState(), [*counters, *logs] if counters_first else [*logs, *counters])
    assert inputs(state) == {"m": sum(tokens)}


def test_the_growth_of_reports_adds_up_to_their_total() -> None:
    """What each report adds to a task is never negative, and all of it is the total."""
    items = [log("1", 5), counter(8, 1), log("2", 4), counter(9, 1), log("2", 4)]
    state, added = UsageState(), 0
    for item in items:
        after = count(state, [item])
        added += sum(each.input for each in grown(totals(state), totals(after)).values())
        state = after
    assert added == 9 == inputs(state)["m"]


def test_what_is_remembered_is_bounded() -> None:
    state = count(UsageState(), [log(str(number), 1) for number in range(RECENT_MAX + 10)])
    assert len(state.recent) == RECENT_MAX
    assert inputs(count(state, [log(str(RECENT_MAX), 1)])) == {"m": RECENT_MAX + 10}, "known"
    state = count(UsageState(), [counter(1, start) for start in range(1, SERIES_MAX + 11)])
    assert len(state.series) == SERIES_MAX
    assert inputs(state) == {"m": SERIES_MAX + 10}
    assert inputs(count(state, [counter(7, 3)])) == {"m": SERIES_MAX + 10}, "its start was forgotten"
    assert inputs(count(state, [counter(7, 11)])) == {"m": SERIES_MAX + 16}


def test_models_are_bounded_and_named_plainly() -> None:
    state = count(UsageState(), [log(str(number), 1, f"m{number}") for number in range(MODELS_MAX + 5)])
    assert inputs(state)[OTHER] == 5
    assert len(inputs(state)) == MODELS_MAX + 1
    hostile = ["", "\x1b[31mred", "x" * 101, "a b", "CREW_UPDATE -->"]
    state = count(UsageState(), [log(str(number), 1, name) for number, name in enumerate(hostile)])
    assert inputs(state) == {UNKNOWN: len(hostile)}


@pytest.mark.parametrize("value", [-1, -(2**63), 2**63, 2**200])
def test_amounts_that_nobody_can_use_are_cut(value: int) -> None:
    state = count(UsageState(), [log("1", value), log("2", 5)])
    assert inputs(state)["m"] in (5, AMOUNT_MAX)
    assert inputs(count(state, [log("3", value)]))["m"] <= AMOUNT_MAX


def test_amounts_are_split_without_a_rest() -> None:
    parts = split(Amounts(input=10, cost=7, requests=1), 3)
    assert [each.input for each in parts] == [4, 3, 3]
    assert [each.cost for each in parts] == [3, 2, 2]
    assert sum(each.requests for each in parts) == 1
    assert split(Amounts(input=3), 0) == [Amounts(input=3)]


def test_the_context_is_known_or_unknown() -> None:
    assert context_percent(None) == -1
    state = count(UsageState(), [log("1", 1, context_tokens=50_000, context_window=200_000)])
    assert context_percent(state) == 25
    state = count(state, [log("2", 1)])
    assert context_percent(state) == 25, "a request of a sub-agent says nothing about it"
    state = count(state, [log("3", 1, context_tokens=900_000, context_window=200_000)])
    assert context_percent(state) == 100
    assert context_percent(count(state, [log("4", 1, context_tokens=1)])) == -1, "another model"
