"""OTLP as JSON. The decoder knows the fields that we count, and skips all others."""

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from coord.transports.hub.telemetry.otlp import (
    CUMULATIVE,
    DELTA,
    METRICS,
    RECORDS_MAX,
    TEXT_CHARS_MAX,
    WANTED,
    Point,
    Record,
    Value,
    too_many,
    unreadable,
)

Number = int | float | str | None
TEMPORALITY = {
    "AGGREGATION_TEMPORALITY_DELTA": DELTA,
    "AGGREGATION_TEMPORALITY_CUMULATIVE": CUMULATIVE,
    DELTA: DELTA,
    CUMULATIVE: CUMULATIVE,
}
Body = TypeVar("Body")


class _Any(msgspec.Struct, rename="camel", gc=False):
    string_value: str | None = None
    int_value: Number = None
    double_value: Number = None


class _Attribute(msgspec.Struct, gc=False):
    key: str = ""
    value: _Any | None = None


class _Resource(msgspec.Struct, gc=False):
    attributes: list[_Attribute] | None = None


class _LogRecord(msgspec.Struct, rename="camel", gc=False):
    time_unix_nano: Number = None
    observed_time_unix_nano: Number = None
    attributes: list[_Attribute] | None = None


class _ScopeLogs(msgspec.Struct, rename="camel", gc=False):
    log_records: list[_LogRecord] | None = None


class _ResourceLogs(msgspec.Struct, rename="camel", gc=False):
    resource: _Resource | None = None
    scope_logs: list[_ScopeLogs] | None = None


class _Logs(msgspec.Struct, rename="camel", gc=False):
    resource_logs: list[_ResourceLogs] | None = None


class _Point(msgspec.Struct, rename="camel", gc=False):
    attributes: list[_Attribute] | None = None
    start_time_unix_nano: Number = None
    time_unix_nano: Number = None
    as_int: Number = None
    as_double: Number = None


class _Sum(msgspec.Struct, rename="camel", gc=False):
    data_points: list[_Point] | None = None
    aggregation_temporality: int | str = 0


class _Metric(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    sum: _Sum | None = None


class _ScopeMetrics(msgspec.Struct, gc=False):
    metrics: list[_Metric] | None = None


class _ResourceMetrics(msgspec.Struct, rename="camel", gc=False):
    resource: _Resource | None = None
    scope_metrics: list[_ScopeMetrics] | None = None


class _Metrics(msgspec.Struct, rename="camel", gc=False):
    resource_metrics: list[_ResourceMetrics] | None = None


def read_logs(body: bytes) -> list[Record]:
    """Return the log records of a request, without anything that is not counted."""
    found: list[Record] = []
    for resource in _decode(body, _Logs).resource_logs or ():
        shared = _attributes(resource.resource.attributes if resource.resource else ())
        for scope in resource.scope_logs or ():
            for record in scope.log_records or ():
                times = (_whole(record.time_unix_nano), _whole(record.observed_time_unix_nano))
                found.append(Record({**shared, **_attributes(record.attributes)}, *times))
                if len(found) > RECORDS_MAX:
                    raise too_many()
    return found


def read_metrics(body: bytes) -> list[Point]:
    """Return the points of the counters that we know."""
    found: list[Point] = []
    for resource in _decode(body, _Metrics).resource_metrics or ():
        shared = _attributes(resource.resource.attributes if resource.resource else ())
        for scope in resource.scope_metrics or ():
            for metric in scope.metrics or ():
                if metric.name in METRICS and metric.sum is not None:
                    found += _points(metric.name, metric.sum, shared)
                if len(found) > RECORDS_MAX:
                    raise too_many()
    return found


def _points(name: str, counter: _Sum, shared: dict[str, Value]) -> Iterable[Point]:
    temporality = TEMPORALITY.get(counter.aggregation_temporality, 0)
    for point in counter.data_points or ():
        value = _real(point.as_double if point.as_int is None else point.as_int)
        start, end = _whole(point.start_time_unix_nano), _whole(point.time_unix_nano)
        yield Point(name, {**shared, **_attributes(point.attributes)}, value, start, end, temporality)


def _decode(body: bytes, kind: type[Body]) -> Body:
    try:
        return msgspec.json.decode(body, type=kind)
    except (ValueError, RecursionError) as error:
        raise unreadable(type(error).__name__) from None  # its text may quote the body


def _attributes(given: Iterable[_Attribute] | None) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for each in given or ():
        if each.key in WANTED and each.value is not None:
            value = _value(each.value)
            if value is not None:
                found[each.key] = value
    return found


def _value(value: _Any) -> Value | None:
    if value.string_value is not None:
        return value.string_value[:TEXT_CHARS_MAX]
    if value.int_value is not None:
        return _cut(value.int_value)
    return None if value.double_value is None else _cut(value.double_value)


def _cut(value: Any) -> Value:
    return value[:TEXT_CHARS_MAX] if isinstance(value, str) else value


def _whole(value: Number) -> int:
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) <= 20 else 0
    return value if isinstance(value, int) and 0 <= value < 2**64 else 0


def _real(value: Number) -> float:
    """Return a number; what is none becomes NaN, and does not count."""
    try:
        return float(value) if value is not None and len(str(value)) <= TEXT_CHARS_MAX else float("nan")
    except (ValueError, OverflowError):
        return float("nan")
