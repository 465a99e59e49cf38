"""The SQL of the SQLite store."""

import functools

import msgspec

from coord.core.ranges import Range
from coord.stores.contract import Commit, prefix_end

SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE log (
    id INTEGER PRIMARY KEY, tenant TEXT NOT NULL UNIQUE, head INTEGER NOT NULL, at INTEGER NOT NULL,
    floor INTEGER NOT NULL, sums TEXT NOT NULL);
CREATE TABLE record (
    log INTEGER NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, checksum INTEGER NOT NULL,
    index_key TEXT NOT NULL, value BLOB, PRIMARY KEY (log, key)) WITHOUT ROWID;
CREATE INDEX record_index_key ON record (log, index_key, key) WHERE index_key <> '';
CREATE INDEX record_dead ON record (log, version) WHERE value IS NULL;
CREATE TABLE entry (
    log INTEGER NOT NULL, "offset" INTEGER NOT NULL, checksum INTEGER NOT NULL, at INTEGER NOT NULL,
    id BLOB NOT NULL, events BLOB NOT NULL, PRIMARY KEY (log, "offset")) WITHOUT ROWID;
"""

PUT = """INSERT INTO record (log, key, version, checksum, index_key, value) VALUES {rows}
ON CONFLICT (log, key)
DO UPDATE SET version = excluded.version, checksum = excluded.checksum, index_key = excluded.index_key,
    value = excluded.value"""
CELLS = 4
PUT_ROWS = 64
"""The rows that one statement puts. Python releases its global lock once per statement: with one row per
statement, a busy thread makes a commit take several times as long."""

TAIL = """SELECT "offset", checksum, at, id, events FROM entry WHERE log = ? AND "offset" > ?
ORDER BY "offset" LIMIT ?"""
LOGS = "SELECT id, tenant, head, at, floor, sums FROM log NOT INDEXED"
SEE = "SELECT head, at, floor, sums FROM log WHERE id = ?"
# CROSS JOIN keeps the order of the tables, so that SQLite looks up each wanted key.
FIND = """SELECT record.key, version, checksum, record.value, index_key FROM json_each(?2) AS wanted
CROSS JOIN record ON record.log = ?1 AND record.key = wanted.value"""
LOAD = "SELECT NULL, head, at, floor, sums FROM log WHERE id = ?1 UNION ALL " + FIND  # noqa: S608 - constant
SCAN = "SELECT key, version, checksum, value, index_key FROM record WHERE log = ? AND value IS NOT NULL"
# The index alone finds the keys, then each row: a key without its row comes as NULL, never as no record.
SCAN_INDEX = """SELECT record.key, version, checksum, value, position.index_key, position.key FROM (
    SELECT log, key, index_key FROM record INDEXED BY record_index_key
    WHERE log = ? AND index_key <> '' AND {bounds} ORDER BY index_key, key LIMIT ?) AS position
LEFT JOIN record ON record.log = position.log AND record.key = position.key
ORDER BY position.index_key, position.key"""
ADD_LOG = "INSERT INTO log (tenant, head, at, floor, sums) VALUES (?, ?, ?, ?, ?)"
ADD_ENTRY = "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)"
ADVANCE = "UPDATE log SET head = ?, at = ?, sums = ? WHERE id = ? AND head = ? AND floor = ?"
# `checksum` comes before `value` in a row, so that the overflow pages of large values are not read.
TOTALS = """SELECT count(*), total(index_key <> ''), coalesce(sum(checksum - version), 0),
    group_concat(key, char(0)), max(version), count(*) - count(value) FROM record NOT INDEXED WHERE log = ?"""
INDEXED = """SELECT count(*) FROM (
    SELECT log, key, index_key FROM record INDEXED BY record_index_key WHERE log = ? AND index_key <> ''
    ) AS position CROSS JOIN record ON record.log = position.log AND record.key = position.key
WHERE record.index_key = position.index_key"""
DEAD = """SELECT key, version, checksum FROM record INDEXED BY record_dead
WHERE log = ? AND value IS NULL"""
DEAD_TOTALS = """SELECT count(*), coalesce(sum(checksum - version), 0), group_concat(key, char(0)) FROM record
WHERE log = ? AND value IS NULL AND version < ?"""


@functools.cache
def put_statement(rows: int) -> str:
    """Return the statement for `rows` rows: ?1 is the log, ?2 the offset, then the cells of each row."""
    rows_sql = [
        f"(?1, ?{at}, ?2, ?{at + 1}, ?{at + 2}, ?{at + 3})" for at in range(3, 3 + CELLS * rows, CELLS)
    ]
    return PUT.format(rows=", ".join(rows_sql))


def scan_statement(log: int, range_: Range) -> tuple[str, list[object]]:
    """Return the statement that reads a range, and its values; SQLite uses only one lower bound."""
    prefix, by, limit, (index_key, key) = range_
    values: list[object]
    end = prefix_end(prefix)
    below = "" if end is None else f"AND {by} < ?"
    if by == "key":
        above, values = ("key > ?", [key]) if key >= prefix else ("key >= ?", [prefix])
        statement = f"{SCAN} AND {above} {below} ORDER BY key LIMIT ?"
    elif (index_key, key) > (prefix, ""):
        values = [index_key, key]
        statement = SCAN_INDEX.format(bounds=f"(index_key, key) > (?, ?) {below}")
    else:
        values = [prefix]
        statement = SCAN_INDEX.format(bounds=f"index_key >= ? {below}")
    return statement, [log, *values, *([] if end is None else [end]), limit]


def cells_of(commit: Commit, offset: int, digests: list[int]) -> list[str | bytes | int | None]:
    """Return key, checksum, index key and value of every record that a commit writes.

    They are sorted by key, as in the file, so that neighbours are written to the same page.
    """
    cells: list[str | bytes | int | None] = []
    for (key, put), digest in sorted(zip(commit.puts.items(), digests, strict=False)):
        cells += (key, digest + offset, put.index_key, put.value)
    if commit.deletes:
        for key, digest in zip(commit.deletes, digests[len(commit.puts) :], strict=True):
            cells += (key, digest + offset, "", None)
    return cells


def json_list(keys: list[str]) -> str:
    """Return keys as the JSON array that the statements take."""
    return msgspec.json.encode(keys).decode()
