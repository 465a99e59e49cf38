"""Sums of reports that may come twice, late, in any order, and again after a restart.

A log record is an increase: its id decides whether it is new. A counter is either an increase, with an id
too, or a total since its process started: the largest value of each start counts. Logs and counters of a tool
describe the same requests, so each number is the larger of the two sums, never both.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from coord.core.usage.commands import Source, UsageItem
from coord.core.usage.schema import Amounts, UsageState

RECENT_MAX = 256
"""How many ids of reports are remembered; one that is repeated later than that would count again."""
SERIES_MAX = 96
MODELS_MAX = 16
AMOUNT_MAX = 2**53 - 1
OTHER = "other"
UNKNOWN = "unknown"
FIELDS = Amounts.__struct_fields__
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/@+-]{0,99}")


def add(first: Amounts, second: Amounts) -> Amounts:
    """Return the sum of amounts, at most `AMOUNT_MAX` each."""
    return _each(lambda a, b: min(AMOUNT_MAX, a + b), first, second)


def increase(before: Amounts, after: Amounts) -> Amounts:
    """Return by how much each amount has grown."""
    return _each(lambda a, b: max(0, b - a), before, after)


def larger(first: Amounts, second: Amounts) -> Amounts:
    """Return the larger of each amount."""
    return _each(max, first, second)


def _each(rule: Any, first: Amounts, second: Amounts) -> Amounts:
    return Amounts(*(rule(getattr(first, name), getattr(second, name)) for name in FIELDS))


def split(amounts: Amounts, parts: int) -> list[Amounts]:
    """Return amounts in equal parts; the first one gets the remainder.

    >>> [each.input for each in split(Amounts(input=5), 2)]
    [3, 2]
    """
    if parts <= 1:
        return [amounts]
    part = Amounts(*(getattr(amounts, name) // parts for name in FIELDS))
    first = Amounts(*(getattr(amounts, name) - (parts - 1) * getattr(part, name) for name in FIELDS))
    return [first, *[part] * (parts - 1)]


def totals(state: UsageState) -> dict[str, Amounts]:
    """Return what a session used, by model."""
    models = dict.fromkeys((*state.logged, *state.metered))
    return {
        model: larger(state.logged.get(model, Amounts()), state.metered.get(model, Amounts()))
        for model in models
    }


def grown(before: Mapping[str, Amounts], after: Mapping[str, Amounts]) -> dict[str, Amounts]:
    """Return by how much the use of each model has grown; models without any are left out."""
    found = {model: increase(before.get(model, Amounts()), now) for model, now in after.items()}
    return {model: each for model, each in found.items() if each != Amounts()}


def count(state: UsageState, items: Iterable[UsageItem]) -> UsageState:
    """Return the state with all reports that it has not counted yet."""
    sums = {Source.LOG: dict(state.logged), Source.METRIC: dict(state.metered)}
    series, floor_ns = dict(state.series), state.floor_ns
    recent = dict.fromkeys(state.recent)
    context = (state.context_tokens, state.context_window)
    for item in items:
        amounts = bounded(item.amounts)
        if item.series:
            if item.start_ns <= floor_ns:
                continue
            key = f"{item.series}@{item.start_ns}"
            before = series.get(key, Amounts())
            amounts = increase(before, amounts)
            series[key] = larger(before, bounded(item.amounts))
            floor_ns = _forget_oldest(series, floor_ns)
        elif item.id in recent:
            continue
        else:
            recent[item.id] = None
        of_source = sums[item.source]
        model = _model(item.model, of_source)
        of_source[model] = add(of_source.get(model, Amounts()), amounts)
        if item.context_tokens > 0:
            context = (min(item.context_tokens, AMOUNT_MAX), max(0, min(item.context_window, AMOUNT_MAX)))
    return replace(
        state,
        logged=sums[Source.LOG],
        metered=sums[Source.METRIC],
        series=series,
        floor_ns=floor_ns,
        recent=tuple(recent)[-RECENT_MAX:],
        context_tokens=context[0],
        context_window=context[1],
    )


def _forget_oldest(series: dict[str, Amounts], floor_ns: int) -> int:
    """Forget the counters of the oldest start, if there are too many; return the newest start forgotten."""
    while len(series) > SERIES_MAX:
        oldest = min(map(_start_of, series))
        for key in [key for key in series if _start_of(key) == oldest]:
            del series[key]
        floor_ns = max(floor_ns, oldest)
    return floor_ns


def _start_of(key: str) -> int:
    return int(key.rpartition("@")[2])


def bounded(amounts: Amounts) -> Amounts:
    """Return amounts without what no tool can have used: negative numbers, and more than `AMOUNT_MAX`."""
    return Amounts(*(max(0, min(AMOUNT_MAX, getattr(amounts, name))) for name in FIELDS))


def _model(name: str, known: Mapping[str, Amounts]) -> str:
    """Return the name under which a model is counted: a session has at most `MODELS_MAX`."""
    if not _MODEL.fullmatch(name):
        name = UNKNOWN
    return name if name in known or len(known) < MODELS_MAX else OTHER


def context_percent(state: UsageState | None) -> int:
    """Return how full the context of a session was at its newest request; -1 if that is not known."""
    if state is None or state.context_tokens <= 0 or state.context_window <= 0:
        return -1
    return min(100, state.context_tokens * 100 // state.context_window)
