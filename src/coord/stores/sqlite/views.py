"""The view `activity_log` of a SQLite file, for everybody who has `sqlite3`.

SQLite has no function for MessagePack, so the view itself walks through the events of an entry. SQLite
parses the views of a file whenever it is opened, 0.2 ms for this one. So only `coord install` creates it.
"""

import json
import sqlite3

from coord.stores.sql_views import (
    ACTION_COLUMNS,
    ACTIVITY_VIEW,
    SUMMARY_COLUMNS,
    ActivityDialect,
    action_rows,
    activity_sql,
)


def _number(digits: str, first: int, count: int) -> str:
    """Return an expression for some of the hexadecimal digits of a text."""
    each = (
        f"(instr('123456789ABCDEF', substr({digits}, {first + at}, 1)) << {4 * (count - 1 - at)})"
        for at in range(count)
    )
    return f"({' + '.join(each)})"


# The events of an entry are a list of bytes in MessagePack: a count, then each after its length.
ACTIVITY = """
WITH RECURSIVE a AS ({actions}), packed AS (
    SELECT l.tenant, e.log, e."offset" AS place, e.at, e.events, hex(substr(e.events, 1, 5)) AS kind
    FROM log l JOIN entry e ON e.log = l.id AND e."offset" > l.head - {most}
), walk (tenant, log, place, at, events, number, total, head) AS (
    SELECT tenant, log, place, at, events, 0, CASE substr(kind, 1, 2) WHEN 'DC' THEN {count2}
        WHEN 'DD' THEN {count4} ELSE {count} END,
        CASE substr(kind, 1, 2) WHEN 'DC' THEN 4 WHEN 'DD' THEN 6 ELSE 2 END FROM packed
    UNION ALL
    SELECT tenant, log, place, at, events, number + 1, total, {next} FROM walk WHERE number < total
), found AS (
    SELECT tenant, log, place, at, number + 1 AS number, CAST(substr(events, head + 1 + {width},
        {next} - head - 1 - {width}) AS TEXT) AS event
    FROM walk WHERE number < total
), done AS (
    SELECT d.tenant, d.log, d.at, a.*, d.event AS detail, (d.place % {offsets}) * {events} + d.number AS id,
        {actor} AS agent_id, {to} AS to_agent,
        row_number() OVER (PARTITION BY d.log ORDER BY d.place DESC, d.number DESC) AS age
    FROM found d JOIN a ON a.event = d.event ->> '$.event' AND {matches}
)
SELECT a.id, a.agent_id, coalesce(nullif(CAST(r.value AS TEXT) ->> '$.role', ''),
        nullif(CASE a.actor WHEN 'session' THEN a.detail ->> '$.agent' END, ''),
        nullif(CAST(r.value AS TEXT) ->> '$.agent', ''), '') AS agent_role,
    a.type AS action_type, {summary} AS summary,
    CASE a.receiver WHEN 'none' THEN a.detail ELSE
        json_set(a.detail, '$.toAgentId', a.to_agent, '$.toRole', {to_role}) END AS details,
    datetime(a.at / 1000, 'unixepoch') AS timestamp, a.tenant
FROM done a LEFT JOIN record r ON r.log = a.log AND r.key = 'session/' || a.agent_id
WHERE a.age <= {most} ORDER BY a.id
"""
DIALECT = ActivityDialect(
    "d.event ->> ('$.' || {})",
    "CASE WHEN json_type(d.event, '$.' || {0}) <> 'array'"
    " THEN d.event ->> ('$.' || {0}) WHEN json_array_length(d.event, '$.' || {0}) = 1"
    " THEN d.event ->> ('$.' || {0} || '[0]') END",
    " || ",
    "instr({0}, {1}) > 0",
)


def activity_view() -> str:
    """Return the query of the ledger."""
    late = DIALECT._replace(text=DIALECT.text.replace("d.event", "a.detail"))
    header = "hex(substr(events, head, 5))"
    sizes = {"C4": _number(header, 3, 2), "C5": _number(header, 3, 4)}
    cases = " ".join(
        f"WHEN '{kind}' THEN {2 + at} + {size}"
        for (kind, size), at in zip(sizes.items(), (0, 1), strict=True)
    )
    following = f"head + CASE hex(substr(events, head, 1)) {cases} ELSE 5 + {_number(header, 3, 8)} END"
    names = (*ACTION_COLUMNS, *SUMMARY_COLUMNS)
    # As one text, because SQLite parses the views of a file whenever it is opened.
    columns = ", ".join(f"value ->> {number} AS {name}" for number, name in enumerate(names))
    return activity_sql(
        ACTIVITY,
        actions=f"SELECT {columns} FROM json_each('{json.dumps(action_rows())}')",  # noqa: S608 - constants
        actor=DIALECT.field("actor"),
        to=DIALECT.to,
        matches=DIALECT.matches,
        summary=late.summary,
        to_role=late.field("receiver_role"),
        count=_number("kind", 2, 1),
        count2=_number("kind", 3, 4),
        count4=_number("kind", 3, 8),
        next=f"({following})",
        width="CASE hex(substr(events, head, 1)) WHEN 'C4' THEN 1 WHEN 'C5' THEN 2 ELSE 4 END",
    )


def renew_views(cursor: sqlite3.Cursor) -> None:
    """Create or replace the view, in a transaction."""
    cursor.execute(f"DROP VIEW IF EXISTS {ACTIVITY_VIEW}")
    cursor.execute(f"CREATE VIEW {ACTIVITY_VIEW} AS{activity_view()}")
