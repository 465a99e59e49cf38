"""Views over records and events: whoever knows SQL can ask who does what, and who did."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import msgspec
import psycopg
import pytest
from psycopg.rows import dict_row

import coord
from coord.core import keys
from coord.core.events import every_event
from coord.core.locks.schema import Lock
from coord.core.records import Stored
from coord.core.sessions.schema import Session
from coord.core.tasks.schema import Spec, Task, TaskAdded
from coord.stores.open import open_store
from coord.stores.sql_views import HISTORY_FIELDS, RECORD_VIEWS, VIEW_NAMES, Column
from tests.support.servers.postgres import PostgresServer
from tests.support.stores.steps import write

KINDS: dict[str, type[Stored]] = {
    "session/": Session,
    "lock/": Lock,
    "task/": Task,
    "history/": Task,
}
COLUMNS = [
    pytest.param(prefix, column, id=f"{name}-{column.name}-{prefix}")
    for name, view in RECORD_VIEWS.items()
    for prefix in view.prefixes
    for column in view.columns
]


@pytest.fixture(scope="module")
def url(postgres_server: PostgresServer) -> str:
    """The url of a fresh store in a database of its own."""
    return postgres_server.fresh_url()


@pytest.fixture(scope="module")
def sql(url: str) -> Iterator[psycopg.Connection[dict[str, Any]]]:
    """Somebody who knows SQL, and the schema."""
    with psycopg.connect(url, autocommit=True, row_factory=dict_row) as connection:
        connection.execute("SET search_path = coord")
        yield connection


@pytest.mark.parametrize(("prefix", "column"), COLUMNS)
def test_a_column_shows_a_field_of_its_record(prefix: str, column: Column) -> None:
    """AUD-35: a field that a view shows is one of the record, and stands for the same when it is left out."""
    kind: Any = Spec if column.of_spec else KINDS[prefix]
    if column.form == "part":
        built = {"task/": keys.task("a", "b"), "history/": keys.history("a", "b", 1)}[prefix]
        assert keys.parts(built)[int(column.field)] == {"project": "a", "task_id": "b"}[column.name]
        return
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    assert column.path[0] in fields, f"{kind.__name__} has no {column.path[0]} any more"
    left_out = fields[column.path[0]].default
    if column.form in ("text", "number"):
        assert column.default == ("" if left_out is None else str(left_out))
    else:
        assert left_out in (0, False, (), None) or fields[column.path[0]].default_factory is dict


def test_the_prefixes_are_those_of_the_keys() -> None:
    """A view looks where the records are."""
    built = [keys.session("x"), keys.locks("x"), keys.task("x", "y"), keys.history("x", "y", 1)]
    assert {f"{keys.parts(key)[0]}/" for key in built} == set(KINDS)
    assert keys.spec("x", "y").removeprefix("spec/") == keys.task("x", "y")[len("task/") :]


def test_the_fields_of_history_are_those_of_events() -> None:
    """AUD-35: what a column of the history is named after, several events have."""
    kinds = every_event()
    for field in HISTORY_FIELDS[1:]:
        assert sum(field in kind.__struct_fields__ for kind in kinds) > 1
    assert TaskAdded.__struct_config__.tag_field == HISTORY_FIELDS[0]


def test_everybody_can_be_asked_about(url: str, sql: psycopg.Connection[dict[str, Any]]) -> None:
    """AUD-35, STO-26: sessions, locks, tasks, claims and history of all tenants, with real types."""
    with coord.connect(url, session="s-ann", agent="ann", project="shop", tenant="acme") as ann:
        ann.register(task="rework")
        lock = ann.acquire("name:release", ttl_s=300, reason="1.4").locks[0]
        ann.add_task("A-001-login", description="rework the login", type="code", priority=2)
    with coord.TaskCoordinator.open(url) as tasks:
        for session in ("s1", "s2"):
            claim = tasks.claim_task("other", "shop", "B-001-search", session, session).claim
            assert claim is not None
            tasks.release_claim("other", "shop", "B-001-search", session, claim.generation)
    (here,) = sql.execute("SELECT * FROM coord_sessions WHERE tenant = 'acme'").fetchall()
    assert (here["tenant"], here["session_id"], here["agent"]) == ("acme", "s-ann", "ann")
    assert (here["state"], here["ended_at"]) == ("idle", None)
    assert here["started_at"].timestamp() > 1.7e9
    (held,) = sql.execute("SELECT * FROM coord_locks").fetchall()
    assert (held["resource"], held["session"], held["reason"]) == ("name:release", "s-ann", "1.4")
    assert held["fence"] == lock.fence, "a hold that has none has that of its record"
    assert int(held["expires_at"].timestamp() * 1000) == lock.expires_ms
    planned, claimed = sql.execute("SELECT * FROM coord_tasks ORDER BY task_id").fetchall()
    assert (planned["tenant"], planned["project"], planned["task_id"]) == ("acme", "shop", "A-001-login")
    assert (planned["description"], planned["priority"], planned["generation"]) == ("rework the login", 2, 0)
    assert (claimed["tenant"], claimed["description"], claimed["generation"]) == ("other", "", 2)
    claims = sql.execute("SELECT * FROM coord_claims ORDER BY generation").fetchall()
    told = [(each["generation"], each["session"], each["claim"], each["end_reason"]) for each in claims]
    assert told == [(1, "s1", "RELEASED", "VOLUNTARY"), (2, "s2", "RELEASED", "VOLUNTARY")]
    history = sql.execute("SELECT * FROM coord_history WHERE tenant = 'other' ORDER BY log_offset").fetchall()
    assert [each["event"] for each in history] == ["task.claimed", "task.released"] * 2
    assert {(each["project"], each["task"]) for each in history} == {("shop", "B-001-search")}
    assert history[1]["details"]["reason"] == "VOLUNTARY"


@pytest.mark.parametrize("count", [0, 1, 15, 16, 70])
@pytest.mark.parametrize("size", [0, 200, 300, 70_000])
def test_every_event_of_an_entry_is_found(
    sql: psycopg.Connection[dict[str, Any]], count: int, size: int
) -> None:
    """The function reads what the store packs: short and long lists of short and long events, in order."""
    told = [{"event": f"e{number}", "text": "ß" * (size // 2)} for number in range(count)]
    packed = msgspec.msgpack.encode([msgspec.json.encode(each) for each in told])
    rows = sql.execute("SELECT * FROM events_of(%s) ORDER BY number", (packed,)).fetchall()
    assert [(each["number"], each["event"]) for each in rows] == list(enumerate(told, 1))


@pytest.mark.parametrize("text", ["a\0b", "\0\0", "\\u0000", "\\\0", "\\\\u0000", "plain"])
def test_a_nul_spoils_no_view(url: str, sql: psycopg.Connection[dict[str, Any]], text: str) -> None:
    """Text that Postgres cannot hold is shown with a sign in place of the NUL; the rest stays as it is."""
    with closing(open_store(url)) as database:
        told = {"schema": 1, "session_id": "s1", "agent": text}
        write(database.log("local"), {"session/s1": json.dumps(told).encode()})
    (row,) = sql.execute("SELECT agent FROM coord_sessions WHERE session_id = 's1'").fetchall()
    assert row["agent"] == text.replace("\0", "\ufffd")


def test_an_older_store_gets_the_views(url: str, sql: psycopg.Connection[dict[str, Any]]) -> None:
    """Installing again makes what is missing or old, changes nothing else, and leaves the rest in peace.

    SCM-10.
    """
    for name in VIEW_NAMES:
        sql.execute(f"DROP VIEW {name}")
    sql.execute("DELETE FROM meta WHERE name = 'views'")
    coord.install(url)
    for name in VIEW_NAMES:
        assert sql.execute(f"SELECT to_regclass('{name}') AS found").fetchall() != [{"found": None}]
    sql.execute("DROP VIEW coord_locks")
    coord.install(url)
    missing = sql.execute("SELECT to_regclass('coord_locks') AS found").fetchall()
    assert missing == [{"found": None}], "they are made once for each version of coord"
