"""What tests do behind coord's back: look at the sessions of a MariaDB server, and end them."""

from typing import Any

import pymysql

from coord.stores.database import Database
from coord.stores.mysql.store import MysqlDatabase
from tests.support.servers.server import poll_until

PATIENCE_S = 30


def rows(sql: "pymysql.Connection[Any]", query: str, *values: object) -> list[tuple[Any, ...]]:
    with sql.cursor() as cursor:
        cursor.execute(query, values)
        return list(cursor.fetchall())


def until(holds: Any) -> None:
    """Wait until something holds, and fail if it never does."""
    poll_until(holds, PATIENCE_S, "what was waited for did not come")


def session_of(database: Database[Any]) -> int:
    """Return the server's name for a database's main session."""
    assert isinstance(database, MysqlDatabase)
    assert database._session is not None
    return database._session.id


def sessions(sql: "pymysql.Connection[Any]") -> set[int]:
    """Return all other sessions in the database of this one."""
    query = "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()"
    return {number for (number,) in rows(sql, query)}


def end_session(sql: "pymysql.Connection[Any]", number: int) -> None:
    """End a session from outside, and wait until it is gone."""
    rows(sql, f"KILL {number}")
    until(lambda: number not in sessions(sql))


def waits_for_lock(sql: "pymysql.Connection[Any]", number: int) -> bool:
    rows(sql, "DO SLEEP(0.11)")  # the server gathers the table anew only if nobody has looked for 0.1 s
    query = "SELECT trx_state FROM information_schema.innodb_trx WHERE trx_mysql_thread_id = %s"
    return rows(sql, query, number) == [("LOCK WAIT",)]
