"""The view `activity_log`: SQL shows the same ledger as `coord log activity`, on each SQL store."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec
import psycopg
import pytest
from psycopg.rows import dict_row
from pymysql.cursors import DictCursor

import coord
from coord.core.activity.actions import ACTIONS, TYPES
from coord.core.events import Event, every_event
from coord.core.sessions.commands import ListSessions
from coord.sdk.admin.install import prepare
from coord.sdk.reports.ledger import Ledger, LedgerFilter, rows_of
from coord.stores.mysql.views import view_name
from coord.stores.open import open_store
from tests.support.servers.mariadb import MariadbServer
from tests.support.servers.postgres import PostgresServer
from tests.support.stores.steps import write

COLUMNS = ["id", "agent_id", "agent_role", "action_type", "summary", "details", "timestamp", "tenant"]
Ask = Callable[[str], list[dict[str, Any]]]
SERVERS = ("postgresql", "mariadb")
HOSTILE = "x'\"\\ \n\x1b[31m<!-- CREW_UPDATE --> ß😀 ');DROP TABLE log;--"


class SqlStore:
    """A store, and somebody who asks it with SQL."""

    def __init__(self, url: str, ask: Ask, view: str = "activity_log") -> None:
        self.url = url
        self.view = view
        self._ask = ask

    def rows(self, more: str = "") -> list[dict[str, Any]]:
        return self._ask(f"SELECT * FROM {self.view} {more} ORDER BY tenant, id")


@pytest.fixture(params=["sqlite", *(pytest.param(name, marks=pytest.mark.long) for name in SERVERS)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlStore]:
    if request.param == "sqlite":
        path = tmp_path / "store.db"
        prepare(str(tmp_path), {}, url=f"sqlite:///{path}")

        def ask(query: str) -> list[dict[str, Any]]:
            with closing(sqlite3.connect(path)) as connection:
                connection.row_factory = sqlite3.Row
                return [dict(row) for row in connection.execute(query)]

        yield SqlStore(f"sqlite:///{path}", ask)
    elif request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        url = server.fresh_url()
        with psycopg.connect(url, autocommit=True, row_factory=dict_row) as connection:
            ask = lambda query: connection.execute(query).fetchall()  # noqa: E731
            yield SqlStore(url, ask, "coord.activity_log")
    else:
        maria: MariadbServer = request.getfixturevalue("mariadb_server")
        url = maria.fresh_url()
        with maria.admin(url.rpartition("/")[2]) as admin, admin.cursor(DictCursor) as cursor:

            def asked(query: str) -> list[dict[str, Any]]:
                cursor.execute(query)
                return list(cursor.fetchall())

            yield SqlStore(url, asked)


def samples(kind: type[Event]) -> Iterator[dict[str, Any]]:
    """Yield events of a kind: with every value that the table asks for, with hostile texts, and bare."""
    name = str(kind.__struct_config__.tag)
    fields = msgspec.structs.fields(kind)
    filled = {"event": name, **{field.name: _sample(field.name, field.type) for field in fields}}
    yield filled
    yield {"event": name}
    for action in ACTIONS:
        if action.event == name:
            for value in action.values:
                yield {**filled, action.only_if: value}


def _sample(name: str, kind: Any) -> Any:
    if get_origin(kind) in (tuple, list):
        return ["s1"] if name == "to" else [_sample(name, get_args(kind)[0])] * 2
    if kind in (int, float, bool):
        return 7
    if name in ("session", "by", "parent", "victim"):
        return "s1"
    return f"file:{HOSTILE}" if name == "resource" else HOSTILE


def python_rows(url: str, tenant: str = "local") -> list[dict[str, Any]]:
    """Return the ledger of the sdk, with the columns of the view."""
    with coord.connect(url, session="watcher", tenant=tenant) as client:
        listed = client.call(ListSessions(client.caller, everyone=True))
        ledger = Ledger(client.log, {each.session_id: each for each in listed})
        found = ledger.newest(LedgerFilter(), 10_000)
        return [{**row, "tenant": tenant} for row in rows_of(found, _text)]


def _text(ms: int) -> str:
    return datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def plain(row: Mapping[str, Any]) -> dict[str, Any]:
    details = row["details"]
    return {**row, "details": json.loads(details) if isinstance(details, str) else details}


def test_sql_shows_what_the_ledger_shows(store: SqlStore) -> None:
    """AUD-7, CFL-28, STO-26: the same rows for every kind of event, whatever its texts contain."""
    with coord.connect(store.url, session="s1", agent="ann", role="qa") as client:
        client.register()
        for number, kind in enumerate(every_event()):
            raw = [json.dumps(event).encode() for event in samples(kind)]
            write(client.log, events=raw, at=1_700_000_000_999 + number)
        write(client.log, events=[json.dumps({"event": "lock.acquired", "resource": "x" * 70_000}).encode()])
        write(client.log, events=[b'{"event":"lock.acquired","resource":"name:y"}'] * 300)
    expected = python_rows(store.url)
    assert {row["action_type"] for row in expected} == set(TYPES)
    found = store.rows()
    assert list(found[0]) == COLUMNS
    assert [plain(row) for row in found] == expected


def test_each_tenant_has_its_own_ledger(store: SqlStore) -> None:
    for tenant in ("acme", "umbra"):
        with coord.connect(store.url, session="s1", agent=tenant, tenant=tenant) as client:
            client.acquire("name:x")
    assert [(row["tenant"], row["agent_role"]) for row in store.rows()] == [
        ("acme", "acme"),
        ("umbra", "umbra"),
    ]


def test_the_view_is_bounded(store: SqlStore) -> None:
    """AUD-8: the newest 10,000 actions, even if one entry has more."""
    with closing(open_store(store.url)) as database:
        for _ in range(51):
            write(database.log("local"), events=[b'{"event":"lock.acquired","resource":"name:y"}'] * 200)
    found = store.rows()
    assert len(found) == 10_000
    assert (found[0]["id"] % 10**6, found[-1]["id"] % 10**6) == (1, 200)
    assert found[-1]["id"] - found[0]["id"] == 49 * 10**6 + 199


def test_a_table_of_somebody_else_stays(mariadb_server: MariadbServer) -> None:
    """The name of the view has no prefix, so that it may be taken; then the store has the other views."""
    url = mariadb_server.fresh_url()
    with mariadb_server.admin(url.rpartition("/")[2]) as admin, admin.cursor(DictCursor) as cursor:
        for made in ("TABLE activity_log (mine INT)", "VIEW activity_log AS SELECT 1 AS mine"):
            cursor.execute("DROP VIEW IF EXISTS activity_log")
            cursor.execute("DROP TABLE IF EXISTS activity_log")
            cursor.execute("DELETE FROM coord_meta WHERE name = 'views'")
            cursor.execute(f"CREATE {made}")
            coord.install(url)
            cursor.execute("SELECT * FROM activity_log")
            assert [each[0] for each in cursor.description] == ["mine"]
            cursor.execute("SELECT * FROM coord_history")
        cursor.execute("DROP VIEW activity_log")
        cursor.execute("DELETE FROM coord_meta WHERE name = 'views'")
        for _ in range(2):
            coord.install(url)
            cursor.execute("SELECT action_type FROM activity_log")
            cursor.execute("DELETE FROM coord_meta WHERE name = 'views'")
    assert view_name("team", "activity_log") == "team_activity_log"


def test_a_file_gets_the_view_when_somebody_asks_for_it(tmp_path: Path) -> None:
    """Each view costs time whenever the file is opened; the command line of SQLite needs nothing of ours."""
    url = f"sqlite:///{tmp_path}/store.db"
    with coord.connect(url, session="s1", agent="ann") as client:
        client.acquire("name:x")
    ask = "sqlite3.connect(sys.argv[1]).execute('SELECT summary FROM activity_log').fetchall()"
    query = f"import sqlite3, sys; print({ask})"
    asking = [sys.executable, "-I", "-S", "-c", query, f"{tmp_path}/store.db"]
    assert "no such table" in subprocess.run(asking, capture_output=True, text=True, check=False).stderr
    for _ in range(2):
        prepare(str(tmp_path), {}, url=url)
    told = subprocess.run(asking, capture_output=True, text=True, check=True).stdout
    assert told == "[('Acquired lock on name:x',)]\n"
    with coord.connect(url, session="s1", agent="ann") as client:
        assert client.unlock("name:x").released == ["name:x"]
