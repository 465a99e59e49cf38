"""Log records and points of counters, as both encodings of OTLP carry them, reduced to what we count.

An attribute that is not `WANTED` is never kept: prompts, answers and arguments of tools end in the reader.
"""

from typing import NamedTuple

from coord.core.errors import Invalid

Value = str | int | float
WANTED = frozenset(
    (
        *("service.name", "session.id", "conversation.id", "coord.session.id"),
        *("event.name", "event.kind", "event.timestamp", "event.sequence", "prompt.id", "prompt_id"),
        *("model", "type", "role", "query_source"),
        *("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens"),
        *("cost_usd", "cost_usd_micros"),
        *("input_token_count", "output_token_count", "cached_token_count", "cache_write_token_count"),
        *("cached_content_token_count", "thoughts_token_count", "tool_token_count"),
    )
)
METRICS = frozenset(("claude_code.token.usage", "claude_code.cost.usage"))
"""The counters that name a session, of tools whose logs can be switched off."""
TEXT_CHARS_MAX = 200
RECORDS_MAX = 20_000
"""How many records or points one request may have."""
DELTA, CUMULATIVE = 1, 2


class Record(NamedTuple):
    """A log record; the attributes of its resource are below its own."""

    attributes: dict[str, Value]
    time_ns: int
    observed_ns: int


class Point(NamedTuple):
    """A value of a counter: an increase, or a total since `start_ns`."""

    name: str
    attributes: dict[str, Value]
    value: float
    start_ns: int
    time_ns: int
    temporality: int


def unreadable(why: str) -> Invalid:
    """Return the refusal of a body."""
    return Invalid(f"the telemetry cannot be read: {why}", hint="export OTLP as http/protobuf or http/json")


def too_many() -> Invalid:
    """Return the refusal of a body with more records than any tool sends."""
    return unreadable(f"it has more than {RECORDS_MAX} records")
