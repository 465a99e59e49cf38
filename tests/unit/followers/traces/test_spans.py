"""An event becomes a span whose ids, times and names follow from the event alone."""

import json

import msgspec
import pytest

from coord.followers.traces.spans import TEXT_CHARS_MAX, request_of, span_of
from coord.sdk.log_reader import LoggedEvent

AT = 1_700_000_100_000
CLAIM = {"project": "shop", "task": "t1", "generation": 2, "session": "s1", "agent": "ann", "worked_ms": 5000}


def logged(event: str, **details: object) -> LoggedEvent:
    return LoggedEvent(7, AT, event, dict(details))


def attributes(data: dict) -> dict[str, str]:
    return {each["key"]: next(iter(each["value"].values())) for each in data["attributes"]}


@pytest.mark.parametrize(
    ("event", "outcome", "status"),
    [
        ("task.completed", "completed", {"code": 1}),
        ("task.released", "released", {}),
        ("task.expired", "expired", {"code": 2}),
        ("task.superseded", "superseded", {"code": 2}),
    ],
)
def test_a_claim_is_a_span_from_its_begin_to_its_end(event: str, outcome: str, status: dict) -> None:
    span = span_of(logged(event, **CLAIM), 0, "store/local")
    assert span is not None
    data = span.data
    assert (data["name"], data["status"]) == ("coord.claim", status)
    assert (data["startTimeUnixNano"], data["endTimeUnixNano"]) == (
        f"{AT - 5000}000000",
        f"{AT}000000",
    )
    assert attributes(data) == {
        "coord.project": "shop",
        "coord.task": "t1",
        "coord.generation": "2",
        "coord.session": "s1",
        "coord.agent": "ann",
        "coord.outcome": outcome,
        "coord.offset": "7",
    }


def test_an_expired_claim_ends_at_its_deadline() -> None:
    """And not when the sweep noticed it."""
    span = span_of(logged("task.expired", **CLAIM, expired_ms=AT - 60_000), 0, "s")
    assert span is not None
    assert (span.data["startTimeUnixNano"], span.data["endTimeUnixNano"]) == (
        f"{AT - 65_000}000000",
        f"{AT - 60_000}000000",
    )


def test_a_lock_is_waited_for_and_held() -> None:
    fields = {"resource": "file:a.py", "session": "s1", "agent": "ann", "mode": "write"}
    wait = span_of(logged("lock.acquired", **fields, waited_ms=1500, reason=""), 0, "s")
    held = span_of(
        logged("lock.released", **fields, held_s=2.5, until_ms=AT - 10, end_reason="released"), 0, "s"
    )
    assert wait is not None
    assert held is not None
    assert (wait.data["name"], held.data["name"]) == ("coord.lock.wait", "coord.lock.hold")
    assert wait.data["startTimeUnixNano"] == f"{AT - 1500}000000"
    assert (held.data["startTimeUnixNano"], held.data["endTimeUnixNano"]) == (
        f"{AT - 2510}000000",
        f"{AT - 10}000000",
    )
    assert attributes(held.data)["coord.end_reason"] == "released"
    assert wait.data["traceId"] == held.data["traceId"], "one session is one trace"


@pytest.mark.parametrize(
    "event", [logged("lock.acquired", waited_ms=0), logged("task.claimed", **CLAIM), logged("message.sent")]
)
def test_what_ends_nothing_is_no_span(event: LoggedEvent) -> None:
    assert span_of(event, 0, "s") is None


def test_ids_name_the_event_and_the_store() -> None:
    """The same event gives the same ids, and no other event does; they have the length of OTLP."""
    merged = logged("git.merged", session="s1", branch="b", into="main", commit="c")
    spans = [
        span_of(merged, 0, "a"),
        span_of(merged, 0, "a"),
        span_of(merged, 1, "a"),
        span_of(merged, 0, "b"),
        span_of(msgspec.structs.replace(merged, offset=8), 0, "a"),
    ]
    ids = [each.data["spanId"] for each in spans if each is not None]
    traces = [each.data["traceId"] for each in spans if each is not None]
    assert ids[0] == ids[1]
    assert len({*ids}) == 4
    assert len({*traces}) == 2
    assert {len(each) for each in ids} == {16}
    assert {len(each) for each in traces} == {32}


def test_hostile_and_missing_fields_stay_data() -> None:
    evil = 'x"}],\x1b[2J\ud800' + "y" * 1000
    span = span_of(logged("git.merged", session=evil, branch=evil, into=None, commit=7), 0, "s")
    assert span is not None
    body = json.loads(request_of([span], 'ten"ant', "0"))
    (resource,) = body["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    (sent,) = scope["spans"]
    found = attributes(sent)
    assert TEXT_CHARS_MAX <= len(found["coord.branch"]) <= TEXT_CHARS_MAX + 5
    assert found["coord.branch"].startswith('x"}],\x1b[2J')
    assert "coord.into" not in found
    names = {each["key"]: each["value"]["stringValue"] for each in resource["resource"]["attributes"]}
    assert names == {"service.name": "coord", "service.version": "0", "coord.tenant": 'ten"ant'}
