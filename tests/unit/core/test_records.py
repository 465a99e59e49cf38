"""Records as typed JSON: what another version wrote survives, what is newer or damaged is refused."""

import json

import msgspec
import pytest

from coord.core import keys
from coord.core.errors import Corrupt, Unsupported
from coord.core.limits import Count, SetLimits, TenantLimits
from coord.core.records import MARKER, Marker, decode, encode
from coord.core.tasks.schema import Rejection, Result, Task
from coord.core.tasks.types import ClaimState, ReleaseReason, SubmissionReason, TaskStatus
from tests.support.rule_harness import LEASE, T0, Kept, RuleHarness

TASK = Task(
    generation=7,
    state=TaskStatus.IN_PROGRESS,
    claim=ClaimState.ACTIVE,
    session="s",
    agent="a",
    claimed_ms=T0,
    lease_ms=LEASE,
    expires_ms=T0 + LEASE,
    end_reason=ReleaseReason.ERROR,
    metadata={"user": "ü", "deep": [1, {"x": None}]},
)
RECORDS = [
    TASK,
    Task(),
    MARKER,
    Count(0),
    TenantLimits(max_active_sessions=3),
    Result(msgspec.Raw(b'{"a":[1.5,"\\u2028"]}')),
    Rejection(SubmissionReason.NO_CLAIM, "agent", T0, 12, True, 4),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_round_trip(record) -> None:
    """SCM-5: every kind of record comes back as it was, and says its schema."""
    data = encode(record)
    assert decode(data, type(record), "k") == record
    assert json.loads(data)["schema"] == 1


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_unknown_fields_survive_a_rewrite(record) -> None:
    """Fields that this version does not know are kept byte for byte when it writes the record.

    SCM-6, CFL-40.
    """
    extra = {"color": '{"deep": [1, {"b":  2.50}]}', "unknown": '"\\u00fc"', "nil": "null"}
    fields = encode(record)[1:-1].decode()
    newer = "{" + ",".join([*(f'"{name}":{raw}' for name, raw in extra.items()), fields]) + "}"
    read = decode(newer.encode(), type(record), "k")
    assert {name: bytes(raw) for name, raw in read.unknown.items()} == {
        name: raw.encode() for name, raw in extra.items()
    }
    again = encode(read)
    assert json.loads(again) == json.loads(newer)
    assert extra["color"].encode() in again
    assert decode(again, type(record), "k") == read


def test_unknown_fields_survive_every_command() -> None:
    """SCM-6: whatever this version does to a task, it drops nothing that a newer one wrote."""
    harness = RuleHarness("acme")
    key = keys.task("p", "t")
    harness.records[key] = Kept(b'{"schema":1,"color":"red"}', "")
    steps = [
        lambda: harness.claim(),
        lambda: harness.renew(),
        lambda: harness.release(),
        lambda: harness.claim(),
        lambda: harness.sweep(now=T0 + LEASE),
        lambda: harness.force("s2", now=T0 + LEASE),
        lambda: harness.reset(now=T0 + LEASE),
        lambda: harness.claim(now=T0 + LEASE),
        lambda: harness.submit(generation=4, now=T0 + LEASE),
    ]
    for step in steps:
        assert step().writes, "every step changes something"
        assert json.loads(harness.records[key].data)["color"] == "red"


@pytest.mark.parametrize("change", [SetLimits("enterprise"), SetLimits("", {"max_active_sessions": 3})])
def test_unknown_limits_survive(change: SetLimits) -> None:
    """SCM-6: a limit that only a newer version knows is kept, by name and by profile."""
    harness = RuleHarness("acme")
    harness.records[keys.LIMITS] = Kept(b'{"schema":1,"max_widgets":5}', "")
    assert harness.run(change).writes
    assert json.loads(harness.records[keys.LIMITS].data)["max_widgets"] == 5


def test_unknown_fields_of_a_rejection_survive() -> None:
    """SCM-6: a submission that is rejected again keeps what a newer version noted about the first time."""
    harness = RuleHarness()
    harness.claim()
    key = keys.rejected("p", "t", 1, "x", "submit:SESSION_MISMATCH")
    harness.records[key] = Kept(b'{"schema":1,"color":"red","times":3}', "")
    harness.submit("x")
    assert json.loads(harness.records[key].data)["color"] == "red"
    assert harness.read(key, Rejection).times == 4


@pytest.mark.parametrize("schema", ["2", "3", "99999999999"])
@pytest.mark.parametrize("rest", ["", ',"generation":"another kind"', ',"color":1'])
def test_a_newer_schema_is_refused(schema: str, rest: str) -> None:
    """SCM-11, PRB-27: a record of a newer schema is refused with what to do, whatever else stands in it."""
    with pytest.raises(Unsupported, match="schema") as raised:
        decode(f'{{"schema":{schema}{rest}}}'.encode(), Task, "task/p/t")
    assert "task/p/t" in str(raised.value)
    assert "upgrade" in raised.value.hint


DAMAGED = {
    "empty": b"",
    "torn": encode(TASK)[:-5],
    "two": encode(TASK) * 2,
    "not an object": b"[1]",
    "not JSON": b"\x00\x01",
    "not UTF-8": b'{"schema":1,"session":"\xff\xfe"}',
    "no schema": b'{"generation":1}',
    "schema of another kind": b'{"schema":"1"}',
    "schema null": b'{"schema":null}',
    "schema 0": b'{"schema":0}',
    "wrong kind": b'{"schema":1,"generation":"7"}',
    "unknown state": b'{"schema":1,"state":"sleeping"}',
    "too deep": b'{"schema":1,"metadata":{"a":' + b"[" * 9_999 + b"]" * 9_999 + b"}}",
    "too deep, unknown": b'{"schema":1,"color":' + b"[" * 9_999 + b"]" * 9_999 + b"}",
}


@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in DAMAGED.items()])
def test_damage_is_corrupt(data: bytes) -> None:
    """SCM-11, rule 4: damaged state is never skipped or guessed; the error names the record."""
    with pytest.raises(Corrupt, match="task/p/t"):
        decode(data, Task, "task/p/t")


def test_a_required_field_that_is_missing_is_corrupt() -> None:
    """Rule 4: a count that does not say how many is damage, not zero."""
    with pytest.raises(Corrupt):
        decode(b'{"schema":1}', Count, "count/claims")


def test_doubt_refuses_the_command() -> None:
    """Rule 4: a command that meets damage or a newer record decides nothing, writes nothing."""
    for data, error in [(b'{"schema":2}', Unsupported), (b"{", Corrupt)]:
        harness = RuleHarness("acme")
        harness.records[keys.task("p", "t")] = Kept(data, "")
        for command in (
            harness.claim,
            harness.renew,
            harness.submit,
            harness.release,
            harness.reset,
            harness.state,
            harness.history,
        ):
            with pytest.raises(error):
                command()
        assert harness.keys() == ["task/p/t"]


def test_defaults_are_not_written() -> None:
    """DESIGN §3: records are small; what has its default is left out."""
    assert encode(MARKER) == b'{"schema":1}'
    assert encode(Task(generation=3)) == b'{"schema":1,"generation":3}'
    assert decode(b'{"schema":1}', Marker, "k") == MARKER
