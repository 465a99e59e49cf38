"""An event that ends something, as a span of OTLP.

The event itself says how long it took. So a span needs no memory of its begin, and whoever reads the event
again gets the same span with the same ids: a collector recognises it. All spans of a session are one trace.
"""

from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from coord.sdk.log_reader import LoggedEvent

SCOPE = "coord"
TEXT_CHARS_MAX = 500
INTERNAL = 1
"""The kind of a span that is neither a request nor its answer."""
UNSET, OK, ERROR = 0, 1, 2
CLAIM_ENDS = {
    "task.completed": ("completed", OK),
    "task.released": ("released", UNSET),
    "task.expired": ("expired", ERROR),
    "task.superseded": ("superseded", ERROR),
}
"""The events that end a claim, with the outcome and the status of its span."""
FIELDS = (
    *("project", "task", "generation", "session", "agent", "resource", "mode", "fence", "end_reason"),
    *("reason", "branch", "into", "commit"),
)
"""The fields of an event that become attributes; none of them holds a prompt or a content."""


class Span(NamedTuple):
    """A span, and the event that it comes from."""

    offset: int
    data: dict[str, Any]


def span_of(logged: LoggedEvent, number: int, store: str) -> Span | None:
    """Return the span that an event ends, or None; `number` is that of the event in its entry."""
    details, at_ms = logged.details, logged.at_ms
    status, more = UNSET, dict[str, Any]()
    match logged.event:
        case "task.completed" | "task.released" | "task.expired" | "task.superseded":
            name, took_ms = "coord.claim", _number(details, "worked_ms")
            more["outcome"], status = CLAIM_ENDS[logged.event]
            at_ms = _number(details, "expired_ms") or at_ms
        case "lock.acquired" if details.get("waited_ms"):
            name, took_ms = "coord.lock.wait", _number(details, "waited_ms")
        case "lock.released":
            name, took_ms = "coord.lock.hold", round(1000 * float(details.get("held_s") or 0))
            at_ms = _number(details, "until_ms") or at_ms
        case "git.merged":
            name, took_ms = "coord.merge", 0
        case _:
            return None
    given = {key: value for key in FIELDS if (value := details.get(key)) not in (None, "")}
    session = str(details.get("session", ""))
    data = {
        "traceId": _id(32, store, session),
        "spanId": _id(16, store, str(logged.offset), str(number)),
        "name": name,
        "kind": INTERNAL,
        "startTimeUnixNano": _nanoseconds(at_ms - max(0, took_ms)),
        "endTimeUnixNano": _nanoseconds(at_ms),
        "attributes": attributes({**given, **more, "offset": logged.offset}),
        "status": {"code": status} if status else {},
    }
    return Span(logged.offset, data)


def request_of(spans: list[Span], tenant: str, version: str) -> bytes:
    """Return the body that exports spans: OTLP in JSON."""
    resource = [
        _attribute("service.name", SCOPE),
        _attribute("service.version", version),
        _attribute("coord.tenant", tenant),
    ]
    scope = {"scope": {"name": SCOPE, "version": version}, "spans": [each.data for each in spans]}
    return msgspec.json.encode(
        {"resourceSpans": [{"resource": {"attributes": resource}, "scopeSpans": [scope]}]}
    )


def attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return values as the attributes of a span, each below `coord.`."""
    return [_attribute(f"coord.{name}", value) for name, value in values.items()]


def _attribute(name: str, value: Any) -> dict[str, Any]:
    """Return one attribute; OTLP writes whole numbers as text."""
    if isinstance(value, bool):
        return {"key": name, "value": {"boolValue": value}}
    if isinstance(value, int):
        return {"key": name, "value": {"intValue": str(value)}}
    text = str(value)[:TEXT_CHARS_MAX].encode("utf-8", "backslashreplace").decode()
    return {"key": name, "value": {"stringValue": text}}


def _number(details: dict[str, Any], name: str) -> int:
    value = details.get(name)
    return value if isinstance(value, int) else 0


def _nanoseconds(ms: int) -> str:
    return str(max(0, ms) * 1_000_000)


def _id(digits: int, *parts: str) -> str:
    """Return an id in hexadecimal digits that follows from what it names, and is never only zeros."""
    text = "\0".join((str(digits), *parts))
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]
