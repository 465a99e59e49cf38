"""Both encodings of telemetry say the same, keep no text, and end at hostile bodies in bounded time."""

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coord.core.errors import Invalid
from coord.transports.hub.telemetry import json_form, otlp, protobuf_form
from tests.support.hub.otlp import (
    JSON,
    PROTOBUF,
    SECRET,
    claude,
    codex,
    counters,
    field,
    fixed,
    gemini,
    logs,
    varint,
)

FORMS: dict[str, Any] = {JSON: json_form, PROTOBUF: protobuf_form}


@pytest.mark.parametrize("kind", FORMS)
def test_a_record_has_what_is_counted_and_nothing_else(kind: str) -> None:
    body = logs(
        claude("s1"), codex("s2"), gemini("s3"), kind=kind, resource={"service.name": "x", "cwd": "/"}
    )
    assert SECRET.encode() in body
    found = FORMS[kind].read_logs(body)
    assert [each.attributes.get("event.name") for each in found] == [
        *("api_request", "codex.sse_event", "gemini_cli.api_response"),
    ]
    assert SECRET not in repr(found)
    assert {name for each in found for name in each.attributes} <= otlp.WANTED
    assert found[0].attributes["input_tokens"] == 100
    assert found[0].attributes["cost_usd"] == 0.0123
    assert found[0].attributes["service.name"] == "x"


@pytest.mark.parametrize("kind", FORMS)
def test_a_point_has_its_start_and_its_kind(kind: str) -> None:
    point = ({"session.id": "s1", "type": "input", "model": "m"}, 5.0, 11, 12)
    found = FORMS[kind].read_metrics(counters(point, kind=kind, temporality=2))
    assert [each[2:] for each in found] == [(5.0, 11, 12, 2)]
    assert FORMS[kind].read_metrics(counters(point, kind=kind, name="codex.turn.token_usage")) == []


def test_json_may_write_numbers_and_kinds_as_text() -> None:
    point = {"asInt": "7", "startTimeUnixNano": 3, "timeUnixNano": "4"}
    counter = {"dataPoints": [point], "aggregationTemporality": "AGGREGATION_TEMPORALITY_DELTA"}
    metric = {"name": "claude_code.token.usage", "sum": counter}
    body = json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]}).encode()
    assert [each[2:] for each in json_form.read_metrics(body)] == [(7.0, 3, 4, 1)]


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize(
    "body",
    [
        b"\xff" * 50,
        b"\x0a\xff\xff\xff\xff\x0f",  # a message of 4 GiB, which is not there
        b"\x0f",  # a group, which OTLP has not
        b"[" * 100_000,
        b'{"resourceLogs": 5, "resourceMetrics": 5}',
        b'{"resourceLogs": [{"scopeLogs": [{"logRecords": "x"}]}], "resourceMetrics": [1]}',
    ],
    ids=["bytes", "length", "group", "nested", "number", "text"],
)
def test_a_body_that_is_none_is_refused_without_being_quoted(kind: str, body: bytes) -> None:
    form = FORMS[kind]
    if kind == PROTOBUF and body[:1] == b"{":
        body = b"\x0b" + body
    for read in (form.read_logs, form.read_metrics):
        with pytest.raises(Invalid, match="telemetry cannot be read") as refused:
            read(body)
        assert len(refused.value.message) < 200


@pytest.mark.parametrize("kind", FORMS)
def test_more_records_than_any_tool_sends_are_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for form in FORMS.values():
        monkeypatch.setattr(form, "RECORDS_MAX", 3)
    assert len(FORMS[kind].read_logs(logs(*[{}] * 3, kind=kind))) == 3
    with pytest.raises(Invalid, match="more than"):
        FORMS[kind].read_logs(logs(*[{}] * 4, kind=kind))
    point: Any = ({}, 1.0, 1, 1)
    with pytest.raises(Invalid, match="more than"):
        FORMS[kind].read_metrics(counters(*[point] * 4, kind=kind))


def test_fields_of_protobuf_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two bytes are a field, so a body of some megabytes would take seconds."""
    monkeypatch.setattr(protobuf_form, "FIELDS_MAX", 1000)
    with pytest.raises(Invalid, match="more than 1000 fields"):
        protobuf_form.read_logs(b"\x18\x00" * 1001)
    protobuf_form.read_logs(b"\x18\x00" * 999)


@pytest.mark.parametrize("depth", [1, 10, 2000])
def test_nesting_is_not_followed(depth: int) -> None:
    inner = b""
    for _ in range(depth):
        inner = field(5, inner)  # a value that is a list of values
    record = field(6, field(1, b"model") + field(2, inner))
    found = protobuf_form.read_logs(field(1, field(2, field(2, record))))
    assert found[0].attributes == {}


def test_a_number_has_at_most_64_bits() -> None:
    with pytest.raises(Invalid):
        protobuf_form.read_logs(b"\x08" + b"\xff" * 10 + b"\x01")
    with pytest.raises(Invalid):
        protobuf_form.read_logs(b"\x08\xff")
    with pytest.raises(Invalid, match="ends inside"):
        protobuf_form.read_logs(fixed(1, 5)[:-1])
    assert varint(-5) == varint(2**64 - 5)


@given(st.binary(max_size=300))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    for form in FORMS.values():
        for read in (form.read_logs, form.read_metrics):
            try:
                found = read(body)
            except Invalid:
                found = []
            assert len(found) <= len(body)


@given(st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_a_damaged_report_is_read_or_refused(seed: int) -> None:
    chance = random.Random(seed)
    for kind, form in FORMS.items():
        body = bytearray(logs(claude("s1"), codex("s2"), kind=kind))
        for _ in range(chance.randrange(1, 6)):
            body[chance.randrange(len(body))] = chance.randrange(256)
        try:
            found = form.read_logs(bytes(body[: chance.randrange(len(body) + 1)]))
        except Invalid:
            continue
        assert {name for each in found for name in each.attributes} <= otlp.WANTED
