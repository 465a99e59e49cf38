"""What tests do behind coord's back: look at the sessions of a Postgres server, and end them."""

from collections.abc import Callable
from typing import Any

import psycopg

from coord.stores.database import Database
from coord.stores.postgres.database import OpenSchema
from tests.support.servers.server import poll_until, runs

PATIENCE_S = 30

Sql = psycopg.Connection[Any]
"""Somebody else's connection to the database of a store."""


def rows(sql: Sql, query: str, *values: object) -> list[tuple[Any, ...]]:
    return sql.execute(query, values).fetchall()


def until(holds: Callable[[], object]) -> None:
    """Wait until something holds, and fail if it never does."""
    poll_until(holds, PATIENCE_S, "what was waited for did not come")


def backend(database: Database[Any]) -> int:
    """Return the server process of a database's main connection."""
    assert isinstance(database, OpenSchema)
    assert database._connection is not None
    return database._connection.info.backend_pid


def terminate(sql: Sql, pid: int) -> None:
    """End a session from outside, and wait until its process is gone and its socket closed."""
    assert rows(sql, "SELECT pg_terminate_backend(%s)", pid) == [(True,)]
    until(lambda: not runs(pid))


def waits_for_lock(sql: Sql, pid: int) -> bool:
    query = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event_type = 'Lock'"
    return bool(rows(sql, query, pid))


def listeners(sql: Sql) -> list[int]:
    """Return the processes that hear of commits and have nothing else to do."""
    query = (
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle' "
        "AND starts_with(query, 'SELECT id, head FROM')"
    )
    return [pid for (pid,) in rows(sql, query)]
