"""Telemetry as agent tools send it, in both encodings; the samples have the form that the real tools had."""

import json
import struct
from typing import Any

Attributes = dict[str, Any]
JSON, PROTOBUF = "application/json", "application/x-protobuf"
SECRET = "SECRET-PROMPT-TEXT"


def claude(session: str, number: int = 1, **changes: Any) -> Attributes:
    return {
        "session.id": session,
        "event.name": "api_request",
        "event.timestamp": f"2026-11-18T13:57:59.{number:03d}Z",
        "event.sequence": number,
        "model": "claude-sonnet-4-5",
        "input_tokens": 100,
        "output_tokens": 20,
        "cache_read_tokens": 3000,
        "cache_creation_tokens": 400,
        "cost_usd": 0.0123,
        "cost_usd_micros": 12300,
        "query_source": "sdk",
        "prompt": SECRET,
        **changes,
    }


def codex(session: str, number: int = 1, **changes: Any) -> Attributes:
    return {
        "event.name": "codex.sse_event",
        "event.kind": "response.completed",
        "input_token_count": "1000",
        "output_token_count": "50",
        "cached_token_count": 800,
        "cache_write_token_count": 0,
        "reasoning_token_count": 10,
        "tool_token_count": "1050",
        "event.timestamp": f"2026-11-18T13:58:02.{number:03d}Z",
        "conversation.id": session,
        "model": "gpt-5-codex",
        "arguments": SECRET,
        **changes,
    }


def gemini(session: str, number: int = 1, **changes: Any) -> Attributes:
    return {
        "session.id": session,
        "event.name": "gemini_cli.api_response",
        "event.timestamp": f"2026-11-18T13:58:09.{number:03d}Z",
        "model": "gemini-2.5-pro",
        "input_token_count": 1000,
        "output_token_count": 50,
        "cached_content_token_count": 200,
        "thoughts_token_count": 30,
        "tool_token_count": 0,
        "role": "main",
        "response_text": SECRET,
        **changes,
    }


def logs(*records: Attributes, kind: str = JSON, resource: Attributes | None = None) -> bytes:
    """Return log records, each with a text as its body, which nothing may keep."""
    if kind == JSON:
        made = [
            {"timeUnixNano": "0", "body": {"stringValue": SECRET}, "attributes": _json(r)} for r in records
        ]
        scope = [{"scopeLogs": [{"logRecords": made}], "resource": {"attributes": _json(resource or {})}}]
        return json.dumps({"resourceLogs": scope}).encode()
    parts = b"".join(
        field(2, field(5, field(1, SECRET.encode())) + attributes(6, record) + fixed(11, 7))
        for record in records
    )
    return field(1, field(1, attributes(1, resource or {})) + field(2, parts))


def counters(
    *points: tuple[Attributes, float, int, int],
    kind: str = JSON,
    name: str = "claude_code.token.usage",
    temporality: int = 2,
) -> bytes:
    """Return points of a counter: attributes, value, start and time."""
    if kind == JSON:
        made = [
            {"attributes": _json(a), "asDouble": v, "startTimeUnixNano": str(s), "timeUnixNano": str(t)}
            for a, v, s, t in points
        ]
        counter = {"dataPoints": made, "aggregationTemporality": temporality}
        return json.dumps(
            {"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": name, "sum": counter}]}]}]}
        ).encode()
    parts = b"".join(
        field(1, attributes(7, a) + fixed(2, s) + fixed(3, t) + double(4, v)) for a, v, s, t in points
    )
    metric = field(1, name.encode()) + field(7, parts + number(2, temporality))
    return field(1, field(2, field(2, metric)))


def _json(found: Attributes) -> list[dict[str, Any]]:
    names = {str: "stringValue", int: "intValue", float: "doubleValue", bool: "boolValue"}
    return [{"key": key, "value": {names[type(value)]: value}} for key, value in found.items()]


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    found = b""
    while value >= 0x80:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def field(name: int, data: bytes) -> bytes:
    return varint(name << 3 | 2) + varint(len(data)) + data


def number(name: int, value: int) -> bytes:
    return varint(name << 3) + varint(value)


def fixed(name: int, value: int) -> bytes:
    return varint(name << 3 | 1) + struct.pack("<Q", value)


def double(name: int, value: float) -> bytes:
    return varint(name << 3 | 1) + struct.pack("<d", value)


def attributes(name: int, found: Attributes) -> bytes:
    return b"".join(
        field(name, field(1, key.encode()) + field(2, _any(value))) for key, value in found.items()
    )


def _any(value: Any) -> bytes:
    if isinstance(value, bool):
        return number(2, int(value))
    if isinstance(value, int):
        return number(3, value)
    return double(4, value) if isinstance(value, float) else field(1, value.encode())
