"""The views of `sql_views.py` for MariaDB and MySQL, and the function that unpacks events."""

import contextlib
import zlib
from collections.abc import Iterator
from typing import Any

from coord.core.errors import Unavailable
from coord.stores.contract import prefix_end
from coord.stores.sql_views import (
    ACTIVITY_VIEW,
    HISTORY_FIELDS,
    HISTORY_VIEW,
    RECORD_VIEWS,
    VIEW_NAMES,
    ActivityDialect,
    Column,
    RecordView,
    activity_sql,
)

# The events of an entry are a list of bytes in MessagePack: a count, then each after its length.
FUNCTION = """
CREATE FUNCTION {prefix}_events_of(packed LONGBLOB) RETURNS LONGTEXT CHARACTER SET utf8mb4
DETERMINISTIC NO SQL
BEGIN
    DECLARE kind INT DEFAULT ORD(SUBSTRING(packed, 1, 1));
    DECLARE head INT DEFAULT CASE kind WHEN 220 THEN 2 WHEN 221 THEN 4 ELSE 0 END;
    DECLARE events INT DEFAULT IF(head, CONV(HEX(SUBSTRING(packed, 2, head)), 16, 10), kind - 144);
    DECLARE place BIGINT DEFAULT head + 2;
    DECLARE width INT;
    DECLARE size BIGINT;
    DECLARE list LONGBLOB DEFAULT '';
    WHILE events > 0 DO
        SET width = 1 << (ORD(SUBSTRING(packed, place, 1)) - 196);
        SET size = CONV(HEX(SUBSTRING(packed, place + 1, width)), 16, 10);
        SET list = CONCAT(list, IF(list = '', '', ','), SUBSTRING(packed, place + 1 + width, size));
        SET place = place + 1 + width + size;
        SET events = events - 1;
    END WHILE;
    RETURN CONVERT(CONCAT('[', list, ']') USING utf8mb4);
END
"""

RECORDS = """
SELECT {tenant} AS tenant, {columns} FROM {prefix}_record r JOIN {prefix}_log l ON l.id = r.log {spec}
WHERE r.`key` >= '{first}' AND r.`key` < '{end}' AND r.index_key IS NOT NULL {needed}
"""
SPEC = """
LEFT JOIN {prefix}_record spec ON spec.log = r.log AND spec.`key` = CONCAT('spec/', SUBSTRING(r.`key`, 6))
"""
HISTORY = """
SELECT {tenant} AS tenant, e.`offset` AS log_offset, d.number, {at} AS at, {columns}, d.event AS details
FROM {prefix}_entry e JOIN {prefix}_log l ON l.id = e.log
JOIN JSON_TABLE({prefix}_events_of(e.events), '$[*]' COLUMNS (
    number FOR ORDINALITY, event JSON PATH '$')) d
"""
ACTIVITY = """
WITH a AS ({actions}), done AS (
    SELECT {tenant} AS tenant, e.log, e.at, a.*, d.event AS detail,
        (e.`offset` % {offsets}) * {events} + d.number AS id, {actor} AS agent_id, {to} AS to_agent,
        row_number() OVER (PARTITION BY e.log ORDER BY e.`offset` DESC, d.number DESC) AS age
    FROM {prefix}_log l JOIN {prefix}_entry e ON e.log = l.id AND e.`offset` > l.head - {most}
    JOIN JSON_TABLE({prefix}_events_of(e.events), '$[*]' COLUMNS (
        number FOR ORDINALITY, event JSON PATH '$')) d
    JOIN a ON a.event = JSON_UNQUOTE(JSON_EXTRACT(d.event, '$.event')) COLLATE utf8mb4_bin AND {matches})
SELECT a.id, a.agent_id, coalesce(nullif({role}, ''),
        nullif(CASE a.actor WHEN 'session' THEN {agent} END, ''), nullif({name}, ''), '') AS agent_role,
    a.type AS action_type, {summary} AS summary,
    CASE a.receiver WHEN 'none' THEN a.detail ELSE
        JSON_SET(a.detail, '$.toAgentId', a.to_agent, '$.toRole', {to_role}) END AS details,
    DATE_FORMAT(TIMESTAMP '1970-01-01 00:00:00' + INTERVAL a.at DIV 1000 SECOND, '%Y-%m-%d %H:%i:%s')
        AS `timestamp`, a.tenant
FROM done a LEFT JOIN {prefix}_record r ON r.log = a.log AND r.`key` = CONCAT('session/', a.agent_id)
WHERE a.age <= {most}
"""
DIALECT = ActivityDialect(
    "JSON_UNQUOTE(JSON_EXTRACT(d.event, CONCAT('$.', {}))) COLLATE utf8mb4_bin",
    "CASE WHEN JSON_TYPE(JSON_EXTRACT(d.event, CONCAT('$.', {0}))) <> 'ARRAY'"
    " THEN JSON_UNQUOTE(JSON_EXTRACT(d.event, CONCAT('$.', {0})))"
    " WHEN JSON_LENGTH(JSON_EXTRACT(d.event, CONCAT('$.', {0}))) = 1"
    " THEN JSON_UNQUOTE(JSON_EXTRACT(d.event, CONCAT('$.', {0}, '[0]'))) END COLLATE utf8mb4_bin",
    "CONCAT({})",
    "LOCATE({1}, {0}) > 0",
)


CREATE = "CREATE OR REPLACE VIEW"
# Whether somebody else has a table or view of this name: it is the only one without the prefix of the store.
TAKEN = """SELECT COUNT(*) FROM information_schema.tables t
LEFT JOIN information_schema.views v ON v.table_schema = t.table_schema AND v.table_name = t.table_name
WHERE t.table_schema = DATABASE() AND t.table_name = '%s'
AND COALESCE(v.view_definition, '') NOT LIKE '%%%s_events_of%%'"""

# The metadata contains a checksum of the views.
CHECKSUM = "INSERT INTO {prefix}_meta VALUES ('views', '%s') ON DUPLICATE KEY UPDATE value = VALUES(value)"


def renew_views(session: Any, prefix: str, metadata: dict[str, str]) -> None:
    """Create or replace the views; without the rights for it, do nothing."""
    statements = [*views_sql(prefix)]
    checksum = f"{zlib.crc32(''.join(statements).encode()):08x}"
    if metadata.get("views") == checksum:
        return
    with contextlib.suppress(Unavailable):
        # Literals in a view must be text, while the rest of coord sends bytes.
        session.ask(b"SET NAMES utf8mb4")
        name = view_name(prefix, ACTIVITY_VIEW)
        (((taken,),),) = session.ask((TAKEN % (name, prefix)).encode())
        wanted = [each for each in statements if not (taken and each.startswith(f"{CREATE} {name} "))]
        for statement in (*wanted, CHECKSUM.replace("{prefix}", prefix) % checksum):
            session.ask(statement.encode())


def views_sql(prefix: str) -> Iterator[str]:
    """Yield the statements that create or replace the views of a store with this table prefix."""
    yield f"DROP FUNCTION IF EXISTS {prefix}_events_of"
    yield FUNCTION.replace("{prefix}", prefix)
    views = {name: _of_records(view) for name, view in RECORD_VIEWS.items()}
    columns = ", ".join(f"{_text('d.event', [field])} AS {field}" for field in HISTORY_FIELDS)
    views[HISTORY_VIEW] = HISTORY.replace("{columns}", columns).replace("{at}", _timestamp("e.at"))
    views[ACTIVITY_VIEW] = _activity()
    for name, query in views.items():
        made = query.replace("{prefix}", prefix).replace("{tenant}", _plain("l.tenant"))
        yield f"{CREATE} {view_name(prefix, name)} AS{made}"


def view_grants(database: str, prefix: str, user: str) -> Iterator[str]:
    """Yield the statements that grant the rights for views; they are needed only for SQL queries."""
    for name in VIEW_NAMES:
        rights = "CREATE, CREATE VIEW, SHOW VIEW, SELECT, DROP"
        yield f"GRANT {rights} ON `{database}`.`{view_name(prefix, name)}` TO {user}"
    escaped = database.replace("_", r"\_").replace("%", r"\%")  # the name of a database is a pattern here
    yield f"GRANT CREATE ROUTINE ON `{escaped}`.* TO {user}"


def view_name(prefix: str, name: str) -> str:
    """Return the name of a view: the same as on Postgres, with the prefix of the tables."""
    if name == ACTIVITY_VIEW:
        return name if prefix == "coord" else f"{prefix}_{name}"
    return name.replace("coord", prefix, 1)


def _activity() -> str:
    """Return the query of the ledger."""
    late = DIALECT._replace(text=DIALECT.text.replace("d.event", "a.detail"))
    return activity_sql(
        ACTIVITY,
        actor=DIALECT.field("actor"),
        to=DIALECT.to,
        matches=DIALECT.matches,
        summary=late.summary,
        to_role=late.field("receiver_role"),
        agent=_text("a.detail", ["agent"]),
        role=_text(_plain("r.value"), ["role"]),
        name=_text(_plain("r.value"), ["agent"]),
    )


def _of_records(view: RecordView) -> str:
    columns = ", ".join(f"{_expression(column)} AS {column.name}" for column in view.columns)
    needed = f"AND {_text(_plain('r.value'), [view.needed])} IS NOT NULL" if view.needed else ""
    query = RECORDS.replace("{columns}", columns).replace("{spec}", SPEC if view.with_spec else "")
    query = query.replace("{needed}", needed)
    parts = [
        query.replace("{first}", first).replace("{end}", prefix_end(first) or "") for first in view.prefixes
    ]
    return "UNION ALL".join(parts)


def _expression(column: Column) -> str:
    record = _plain("spec.value" if column.of_spec else "r.value")
    text = _text(record, column.path)
    match column.form:
        case "part":
            upto = int(column.field) + 1
            return f"SUBSTRING_INDEX(SUBSTRING_INDEX({_plain('r.`key`')}, '/', {upto}), '/', -1)"
        case "fence":
            return f"COALESCE(NULLIF(CAST({text} AS SIGNED), 0), r.version)"
        case "time":
            return _timestamp(f"NULLIF(CAST({text} AS SIGNED), 0)")
        case "number":
            return f"COALESCE(CAST({text} AS SIGNED), {column.default or 'NULL'})"
        case "flag":
            return f"COALESCE({text} = 'true', FALSE)"
        case "json":
            return f"JSON_EXTRACT({record}, '$.{'.'.join(column.path)}')"
        case _:
            return f"COALESCE({text}, '{column.default}')"


def _plain(column: str) -> str:
    """Return bytes as text that is compared byte by byte, so that upper and lower case differ."""
    return f"CONVERT({column} USING utf8mb4) COLLATE utf8mb4_bin"


def _text(record: str, path: list[str]) -> str:
    return f"JSON_UNQUOTE(JSON_EXTRACT({record}, '$.{'.'.join(path)}')) COLLATE utf8mb4_bin"


def _timestamp(ms: str) -> str:
    """Return milliseconds as a time in UTC, whatever the time zone of the session."""
    return f"TIMESTAMP '1970-01-01 00:00:00' + INTERVAL {ms} * 1000 MICROSECOND"
