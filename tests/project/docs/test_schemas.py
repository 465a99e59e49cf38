"""src/coord/schemas says what records are, and the records that the code writes are so."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from coord.core.identity import Caller, Process
from coord.core.lifecycle.commands import Register
from coord.core.locks.commands import AcquireLocks, PreemptLock
from coord.core.messages.commands import ReceiveMessages, SendMessage
from coord.core.records import encode
from coord.core.sessions.schema import Session
from coord.engine.engine import Engine
from coord.stores.open import open_store
from tests.support.docs.json_schema import violations
from tools import schemas

NOW = 1_700_000_000_000
PLACES = {"session": ("session/",), "lock": ("lock/",), "message": ("inbox/", "broadcast/")}
NAMED = pytest.mark.parametrize("name", schemas.KINDS)


@pytest.fixture(scope="module")
def written() -> Iterator[dict[str, list[dict[str, Any]]]]:
    """What a busy morning leaves in a store, by kind of record."""
    database = open_store("memory:")
    engine = Engine(database, "local", clock=lambda: NOW)
    ann = Caller(
        "ann-1", "ann", "lead", "u", "shop", host="h", cwd="/x", process=Process(7, 8, "m", "b", "n")
    )
    bob = Caller("bob-1", "bob", parent="ann-1")
    engine.call(Register(ann, task="T", status="working", bin="claude", version="1", blob={"a": [1, None]}))
    engine.call(Register(bob))
    engine.call(AcquireLocks(ann, "repo", ("file:src/*", "name:x"), reason="why", priority=3))
    engine.call(PreemptLock(Caller("cid-1"), "repo", ("name:x",), priority=9, reason="now", grace_ms=1000))
    engine.call(
        SendMessage(caller=bob, to="ann-1", kind="status", subject="hi", body="b", blob={"x": {"y": 1.5}})
    )
    engine.call(SendMessage(caller=ann, to="", kind="warn", subject="all", priority=5))
    engine.call(ReceiveMessages(ann, drain=False))
    log = database.log("local")
    yield {
        name: [
            json.loads(record.value or b"")
            for prefix in prefixes
            for record in log.scan(prefix, by="key", limit=100)
        ]
        for name, prefixes in PLACES.items()
    }
    engine.close()
    database.close()


@NAMED
def test_the_schemas_are_as_the_code_makes_them(name: str) -> None:
    """SCM-9: the files are generated from the records; a change of a record shows up in them."""
    assert schemas.read(name) == schemas.schema_of(name), "run: .venv/bin/python -m tools.schemas"
    assert schemas.read(name)["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@NAMED
def test_what_the_code_writes_is_valid(name: str, written: dict[str, list[dict[str, Any]]]) -> None:
    """Every record has its schema number and fits its schema.

    SCM-5, SCM-9, SES-1, SES-2, SES-5, SES-7, MSG-1, STA-9.
    """
    schema = schemas.read(name)
    assert len(written[name]) >= 2
    for record in written[name]:
        assert record["schema"] == 1
        assert list(violations(record, schema)) == []


def test_many_fields_were_written(written: dict[str, list[dict[str, Any]]]) -> None:
    """The check is not empty: nested processes, blobs, recipients and preemption are among the records."""
    fields = {name: {field for record in records for field in record} for name, records in written.items()}
    assert {"process", "blob", "current_task", "parent"} <= fields["session"]
    assert {"preempted_by", "priority", "reason", "profile"} <= fields["lock"]
    assert {"recipients", "body", "blob", "offered_ms"} <= fields["message"]


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("session", {"schema": 2}, "2 is none of [1]"),
        ("session", {"beat_ms": "soon"}, "'soon' is no integer"),
        ("session", {"process": {"pid": 1}}, "fits nothing"),
        ("lock", {"mode": "shared"}, "'shared' is none of"),
        ("lock", {"preemptible": 1}, "1 is no boolean"),
        ("message", {"recipients": "all"}, "'all' is no array"),
        ("message", {"recipients": [1]}, "1 is no string"),
    ],
)
def test_what_is_wrong_is_not_valid(
    name: str, change: dict[str, Any], problem: str, written: dict[str, list[dict[str, Any]]]
) -> None:
    """The schemas say something: a record with a wrong field does not fit."""
    record = {**written[name][0], **change}
    assert any(problem in found for found in violations(record, schemas.read(name)))


@NAMED
def test_a_record_without_its_schema_number_is_not_valid(name: str) -> None:
    """SCM-5: the number is required."""
    assert list(violations({}, schemas.read(name))) == ["schema is missing"]


def test_fields_of_newer_versions_are_valid() -> None:
    """SCM-6: a field that this version does not know may be there, and survives a rewrite."""
    session = Session(session_id="s1", unknown={"mood": msgspec.Raw(b'"fine"')})
    record = json.loads(encode(session))
    assert record["mood"] == "fine"
    assert list(violations(record, schemas.read("session"))) == []


def test_numbers_of_fields_are_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """SCM-1, SCM-4: a field keeps its number, a new one gets the next, that of a gone one stays reserved."""
    before = schemas.read("lock")
    numbers = {name: field["$comment"] for name, field in before["properties"].items()}
    assert len(set(numbers.values())) == len(numbers)
    older = {name: field for name, field in before["properties"].items() if name != "resource"}
    older["gone"] = {"$comment": "field 99"}
    monkeypatch.setattr(schemas, "read", lambda _name: {"properties": older})
    made = schemas.schema_of("lock")
    assert made["properties"]["owner"]["$comment"] == numbers["owner"]
    assert made["properties"]["resource"]["$comment"] == "field 100"
    assert made["$comment"] == "reserved: 99"
