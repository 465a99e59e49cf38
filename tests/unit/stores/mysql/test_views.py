"""Views on MariaDB: the same questions as on Postgres, in its own words."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest
from pymysql.cursors import DictCursor

import coord
from coord.stores.mysql.views import view_name, views_sql
from coord.stores.open import open_store
from coord.stores.sql_views import VIEW_NAMES
from tests.support.servers.mariadb import MariadbServer
from tests.support.stores.steps import write


@pytest.fixture(scope="module")
def url(mariadb_server: MariadbServer) -> str:
    """The url of a fresh store in a database of its own."""
    return mariadb_server.fresh_url()


@pytest.fixture(scope="module")
def sql(mariadb_server: MariadbServer, url: str) -> Iterator[DictCursor]:
    """Somebody who knows SQL."""
    with mariadb_server.admin(url.rpartition("/")[2]) as connection, connection.cursor(DictCursor) as cursor:
        yield cursor


def asked(sql: DictCursor, query: str, *values: object) -> list[dict[str, Any]]:
    sql.execute(query, values)
    return list(sql.fetchall())


def test_everybody_can_be_asked_about(url: str, sql: DictCursor) -> None:
    """AUD-35: sessions, locks, tasks, claims and history of all tenants, with real types."""
    with coord.connect(url, session="s-ann", agent="ann", project="shop", tenant="acme") as ann:
        ann.register(task="rework")
        lock = ann.acquire("name:release", ttl_s=300, reason="1.4").locks[0]
        ann.add_task("A-001-login", description="rework the lögin", type="code", priority=2)
    with coord.TaskCoordinator.open(url) as tasks:
        for session in ("s1", "s2"):
            claim = tasks.claim_task("Acme", "shop", "B-001-search", session, session).claim
            assert claim is not None
            tasks.release_claim("Acme", "shop", "B-001-search", session, claim.generation)
    (here,) = asked(sql, "SELECT * FROM coord_sessions WHERE tenant = 'acme'")
    assert (here["session_id"], here["agent"], here["state"], here["ended_at"]) == (
        "s-ann",
        "ann",
        "idle",
        None,
    )
    (held,) = asked(sql, "SELECT *, TIMESTAMPDIFF(SECOND, '1970-01-01', expires_at) AS s FROM coord_locks")
    assert (held["resource"], held["fence"], held["reason"]) == ("name:release", lock.fence, "1.4")
    assert held["s"] == lock.expires_ms // 1000, "moments are in UTC"
    planned, claimed = asked(sql, "SELECT * FROM coord_tasks ORDER BY task_id")
    assert (planned["task_id"], planned["description"], planned["priority"]) == (
        "A-001-login",
        "rework the lögin",
        2,
    )
    assert (claimed["tenant"], claimed["project"], claimed["generation"]) == ("Acme", "shop", 2)
    claims = asked(sql, "SELECT * FROM coord_claims WHERE tenant = 'Acme' ORDER BY generation")
    assert [(each["session"], each["end_reason"]) for each in claims] == [
        ("s1", "VOLUNTARY"),
        ("s2", "VOLUNTARY"),
    ]
    history = asked(sql, "SELECT * FROM coord_history WHERE tenant = 'Acme' ORDER BY log_offset, number")
    assert [each["event"] for each in history] == ["task.claimed", "task.released"] * 2
    assert json.loads(history[1]["details"])["reason"] == "VOLUNTARY"


@pytest.mark.parametrize(("count", "size"), [(0, 0), (1, 0), (15, 200), (16, 300), (20, 70_000)])
def test_every_event_of_an_entry_is_found(sql: DictCursor, count: int, size: int) -> None:
    """The function reads what the store packs: short and long lists of short and long events, in order."""
    told = [{"event": f"e{number}", "text": "ß" * (size // 2)} for number in range(count)]
    packed = msgspec.msgpack.encode([msgspec.json.encode(each) for each in told])
    (row,) = asked(sql, "SELECT coord_events_of(%s) AS events", packed)
    assert json.loads(row["events"]) == told


@pytest.mark.parametrize("text", ["a\0b", "\\u0000", "'quoted'", "plain"])
def test_no_text_spoils_a_view(url: str, sql: DictCursor, text: str) -> None:
    """Whatever a session says of itself is shown as it said it."""
    with closing(open_store(url)) as database:
        told = {"schema": 1, "session_id": "s1", "agent": text}
        write(database.log("local"), {"session/s1": json.dumps(told).encode()})
    (row,) = asked(sql, "SELECT agent FROM coord_sessions WHERE session_id = 's1'")
    assert row["agent"] == text


def test_an_older_store_gets_the_views(url: str, sql: DictCursor) -> None:
    """Installing again makes what is missing or old, once for each version of coord."""
    for name in VIEW_NAMES:
        sql.execute(f"DROP VIEW {name}")
    coord.install(url)
    assert asked(sql, "SHOW FULL TABLES WHERE Table_type = 'VIEW'") == []
    sql.execute("DELETE FROM coord_meta WHERE name = 'views'")
    coord.install(url)
    assert len(asked(sql, "SHOW FULL TABLES WHERE Table_type = 'VIEW'")) == len(VIEW_NAMES)


def test_names_have_the_prefix_of_the_store() -> None:
    """Two stores in one database have views of their own, over their own tables."""
    assert view_name("team", VIEW_NAMES[0]) == "team_sessions"
    assert not any("coord_" in statement for statement in views_sql("team"))
