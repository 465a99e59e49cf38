"""What each agent tool reports: log records and counters become reports of usage.

Claude Code, Codex and Gemini CLI write one log record for each answer of a model. Only Claude Code has
counters that name the session; those of the others are left out (decision 0077). Whatever is no plausible
number, or names no session, is dropped.
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from coord.core.ids import is_id
from coord.core.keys import digest
from coord.core.usage.commands import Source, UsageItem
from coord.core.usage.schema import Amounts
from coord.integrations.telemetry.prices import Model, find_model
from coord.transports.hub.telemetry.otlp import CUMULATIVE, DELTA, Point, Record, Value

NUMBER_MAX = 2**40
"""More tokens or micro-dollars than that in one report are not believed."""
MAIN_QUERIES = ("", "sdk", "main", "repl_main_thread")
"""The requests of Claude Code whose size is that of its context; those of sub-agents have their own."""
CLAUDE_TYPES = {
    "input": "input",
    "output": "output",
    "cacheRead": "cache_read",
    "cacheCreation": "cache_write",
}
SERIES = ("session.id", "model", "type", "query_source", "coord.session.id")


class Report(NamedTuple):
    """A report of usage, and the tool and the session that it belongs to."""

    tool: str
    session: str
    item: UsageItem


class NotCounted(Exception):
    """A record or point without numbers that could be counted."""


Prices = Mapping[str, Model]


def of_record(record: Record, prices: Prices) -> Report | None:
    """Return the usage that a log record reports; None if it reports none."""
    attributes = record.attributes
    name = _text(attributes, "event.name")
    if name in ("api_request", "claude_code.api_request"):
        read: Callable[[Record, Prices], UsageItem] = _claude
        tool = "claude"
    elif name.startswith("codex.") and "input_token_count" in attributes:
        read, tool = _codex, "codex"
    elif name == "gemini_cli.api_response":
        read, tool = _gemini, "gemini"
    else:
        return None
    session = _session(attributes)
    if not session:
        return None
    try:
        return Report(tool, session, read(record, prices))
    except NotCounted:
        return None


def of_point(point: Point) -> Report | None:
    """Return the usage that a point of a counter reports; None if it reports none."""
    session = _session(point.attributes)
    if not session or point.temporality not in (DELTA, CUMULATIVE):
        return None
    scale, field = 1.0, CLAUDE_TYPES.get(_text(point.attributes, "type"), "")
    if point.name == "claude_code.cost.usage":
        scale, field = 1e6, "cost"
    value = round(point.value * scale) if abs(point.value) <= NUMBER_MAX else -1  # also for NaN
    if not field or not 0 < value <= NUMBER_MAX:
        return None
    names = [point.name, *(_text(point.attributes, name) for name in SERIES)]
    series = digest("\0".join(names))[:16]
    item = UsageItem(
        id=digest(f"{series}\0{point.start_ns}\0{point.time_ns}\0{value}")[:16],
        source=Source.METRIC,
        model=_text(point.attributes, "model"),
        amounts=Amounts(**{field: value}),
        series=series if point.temporality == CUMULATIVE else "",
        start_ns=max(1, point.start_ns) if point.temporality == CUMULATIVE else 0,
    )
    return Report("claude", session, item)


def _claude(record: Record, prices: Prices) -> UsageItem:
    get = _numbers(record)
    amounts = Amounts(
        requests=1,
        input=get("input_tokens"),
        output=get("output_tokens"),
        cache_read=get("cache_read_tokens"),
        cache_write=get("cache_creation_tokens"),
    )
    model = _text(record.attributes, "model")
    cost = get("cost_usd_micros") if "cost_usd_micros" in record.attributes else get("cost_usd", 1e6)
    if "cost_usd" in record.attributes or "cost_usd_micros" in record.attributes:
        priced = _with(amounts, cost=cost)
    else:
        priced = _priced(amounts, model, prices)
    main = _text(record.attributes, "query_source") in MAIN_QUERIES
    context = amounts.input + amounts.cache_read + amounts.cache_write if main else 0
    return _item(record, model, priced, context, prices)


def _codex(record: Record, prices: Prices) -> UsageItem:
    get = _numbers(record)
    whole, cached, written = (
        get("input_token_count"),
        get("cached_token_count"),
        get("cache_write_token_count"),
    )
    amounts = Amounts(
        requests=1,
        input=max(0, whole - cached - written),  # it counts the cached ones, too
        output=get("output_token_count"),
        cache_read=min(whole, cached),
        cache_write=written,
    )
    model = _text(record.attributes, "model")
    return _item(record, model, _priced(amounts, model, prices), whole, prices)


def _gemini(record: Record, prices: Prices) -> UsageItem:
    get = _numbers(record)
    whole, cached = get("input_token_count"), get("cached_content_token_count")
    amounts = Amounts(
        requests=1,
        input=max(0, whole - cached) + get("tool_token_count"),
        output=get("output_token_count") + get("thoughts_token_count"),
        cache_read=min(whole, cached),
    )
    model = _text(record.attributes, "model")
    context = whole if _text(record.attributes, "role") in ("", "main") else 0
    return _item(record, model, _priced(amounts, model, prices), context, prices)


def _item(record: Record, model: str, amounts: Amounts, context: int, prices: Prices) -> UsageItem:
    """Return the report of a log record. Two of them differ in time, number or amounts."""
    names = ("event.name", "event.timestamp", "event.sequence", "prompt.id", "prompt_id", "session.id")
    seen = [str(record.attributes.get(name, "")) for name in (*names, "conversation.id")]
    same = "\0".join((*seen, str(record.time_ns), str(record.observed_ns), model, repr(amounts)))
    window = find_model(model, prices).window if context else 0
    return UsageItem(
        id=digest(same)[:16],
        source=Source.LOG,
        model=model,
        amounts=amounts,
        context_tokens=context,
        context_window=window,
    )


def _priced(amounts: Amounts, model: str, prices: Prices) -> Amounts:
    cost = find_model(model, prices).estimate(amounts)
    return _with(amounts, unpriced=amounts.tokens) if cost is None else _with(amounts, estimated=cost)


def _with(amounts: Amounts, **fields: int) -> Amounts:
    return replace(amounts, **fields)


def _numbers(record: Record) -> Callable[..., int]:
    """Return what reads a number of a record; one that is absent is 0, and a hostile one drops the record."""

    def get(name: str, scale: float = 1.0) -> int:
        value = record.attributes.get(name, 0)
        if isinstance(value, str):
            if not (value.isascii() and value.isdigit() and len(value) <= 15):
                raise NotCounted(name)
            value = int(value)
        if isinstance(value, float) and not math.isfinite(value):
            raise NotCounted(name)
        if not 0 <= value <= NUMBER_MAX:
            raise NotCounted(name)
        found = round(value * scale) if scale != 1.0 or isinstance(value, float) else int(value)
        if found > NUMBER_MAX:
            raise NotCounted(name)
        return found

    return get


def _text(attributes: Mapping[str, Value], name: str) -> str:
    value = attributes.get(name, "")
    return value if isinstance(value, str) else ""


def _session(attributes: Mapping[str, Value]) -> str:
    """Return the session that reports: the one that `coord work` states, or that of the tool itself."""
    for name in ("coord.session.id", "session.id", "conversation.id"):
        found = _text(attributes, name)
        if found:
            return found if is_id(found) else ""
    return ""
