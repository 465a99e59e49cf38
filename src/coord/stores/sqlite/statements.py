"""The SQL of the SQLite store."""

import functools

import msgspec

from coord.core.ranges import Range
from coord.stores.contract import Commit, prefix_end

SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE log (
    id INTEGER PRIMARY KEY, tenant TEXT NOT NULL UNIQUE, head INTEGER NOT NULL, at INTEGER NOT NULL,
    floor INTEGER NOT NULL);
CREATE TABLE record (
    log INTEGER NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, value BLOB, index_key TEXT NOT NULL,
    PRIMARY KEY (log, key)) WITHOUT ROWID;
CREATE INDEX record_index_key ON record (log, index_key, key) WHERE index_key <> '';
CREATE INDEX record_dead ON record (log, version) WHERE value IS NULL;
CREATE TABLE entry (
    log INTEGER NOT NULL, "offset" INTEGER NOT NULL, at INTEGER NOT NULL, id BLOB NOT NULL,
    events BLOB NOT NULL, PRIMARY KEY (log, "offset")) WITHOUT ROWID;
"""

LOG = "SELECT id, head, at FROM log WHERE tenant = ?"
ADD_LOG = "INSERT OR IGNORE INTO log (tenant, head, at, floor) VALUES (?1, ?2, 0, ?2)"
PUT = """INSERT INTO record (log, key, version, value, index_key) VALUES {rows}
ON CONFLICT (log, key)
DO UPDATE SET version = excluded.version, value = excluded.value, index_key = excluded.index_key"""
PUT_ROWS = 64
"""The rows that one statement puts. Python releases its global lock once per statement: with one row per
statement, a busy thread makes a commit take several times as long."""

TAIL = """SELECT "offset", at, id, events FROM entry WHERE log = ? AND "offset" > ?
ORDER BY "offset" LIMIT ?"""
# CROSS JOIN keeps the order of the tables, so that SQLite looks up each wanted key.
FIND_VERSIONS = """SELECT record.key, version FROM json_each(?2) AS wanted
CROSS JOIN record ON record.log = ?1 AND record.key = wanted.value"""
LOAD = """SELECT NULL, head, at, floor FROM log WHERE id = ?1 UNION ALL
SELECT record.key, version, record.value, index_key FROM json_each(?2) AS wanted
CROSS JOIN record ON record.log = ?1 AND record.key = wanted.value"""
SCAN = "SELECT key, version, value, index_key FROM record WHERE log = ? AND value IS NOT NULL"
ADVANCE = "UPDATE log SET head = head + 1, at = ? WHERE id = ? AND head = ? AND floor = ?"


@functools.cache
def put_statement(rows: int) -> str:
    """Return the statement for `rows` rows: ?1 is the log, ?2 the offset, then key, value, index key."""
    rows_sql = [f"(?1, ?{at}, ?2, ?{at + 1}, ?{at + 2})" for at in range(3, 3 + 3 * rows, 3)]
    return PUT.format(rows=", ".join(rows_sql))


def scan_statement(log: int, range_: Range) -> tuple[str, list[object]]:
    """Return the statement that reads a range, and its values; SQLite uses only one lower bound."""
    prefix, by, limit, (index_key, key) = range_
    values: list[object]
    if by == "key":
        above, values, order = ("key > ?", [key], "key") if key >= prefix else ("key >= ?", [prefix], "key")
    elif (index_key, key) > (prefix, ""):
        above, values, order = (
            "index_key <> '' AND (index_key, key) > (?, ?)",
            [index_key, key],
            "index_key, key",
        )
    else:
        above, values, order = "index_key <> '' AND index_key >= ?", [prefix], "index_key, key"
    end = prefix_end(prefix)
    below = "" if end is None else f"AND {by} < ?"
    values = [log, *values, *([] if end is None else [end]), limit]
    return f"{SCAN} AND {above} {below} ORDER BY {order} LIMIT ?", values


def cells_of(commit: Commit) -> list[str | bytes | None]:
    """Return key, value and index key of every record that a commit writes, one after the other.

    They are sorted by key, as in the file, so that neighbours are written to the same page.
    """
    cells: list[str | bytes | None] = []
    for key in sorted(commit.puts):
        put = commit.puts[key]
        cells += (key, put.value, put.index_key)
    for key in commit.deletes:
        cells += (key, None, "")
    return cells


def json_list(keys: list[str]) -> str:
    """Return keys as the JSON array that the statements take."""
    return msgspec.json.encode(keys).decode()
