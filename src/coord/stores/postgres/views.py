"""The views of `sql_views.py` for Postgres, and the functions that decode stored bytes."""

from coord.stores.contract import prefix_end
from coord.stores.sql_views import (
    ACTIVITY_VIEW,
    HISTORY_FIELDS,
    HISTORY_VIEW,
    RECORD_VIEWS,
    ActivityDialect,
    Column,
    RecordView,
    activity_sql,
)

# jsonb cannot contain NUL, so the replacement character is shown instead.
FUNCTIONS = r"""
CREATE OR REPLACE FUNCTION {schema}.as_json(value bytea) RETURNS jsonb
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT CASE WHEN position('\x5c7530303030'::bytea IN value) = 0 THEN convert_from(value, 'UTF8')
        ELSE regexp_replace(convert_from(value, 'UTF8'), '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g')
        END::jsonb
$$;

-- The events of an entry are a list of bytes in MessagePack: a count, then each after its length.
CREATE OR REPLACE FUNCTION {schema}.events_of(packed bytea, OUT number int, OUT event jsonb)
RETURNS SETOF record LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    kind int := get_byte(packed, 0);
    place int := CASE kind WHEN 220 THEN 3 WHEN 221 THEN 5 ELSE 1 END;
    width int;
    size int := CASE place WHEN 1 THEN kind - 144 ELSE 0 END;
BEGIN
    FOR i IN 1 .. place - 1 LOOP
        size := size * 256 + get_byte(packed, i);
    END LOOP;
    FOR i IN 1 .. size LOOP
        width := 1 << (get_byte(packed, place) - 196);
        size := 0;
        FOR j IN place + 1 .. place + width LOOP
            size := size * 256 + get_byte(packed, j);
        END LOOP;
        number := i;
        event := {schema}.as_json(substring(packed FROM place + width + 2 FOR size));
        RETURN NEXT;
        place := place + 1 + width + size;
    END LOOP;
END $$;
"""

RECORDS = """
SELECT l.tenant::text, {columns} FROM {schema}.record r JOIN {schema}.log l ON l.id = r.log {spec}
CROSS JOIN LATERAL (SELECT {schema}.as_json(r.value) AS value) v
WHERE r.key >= '{first}' AND r.key < '{end}' AND r.index_key IS NOT NULL {needed}
"""
SPEC = """
LEFT JOIN {schema}.record spec ON spec.log = r.log AND spec.key = 'spec/' || substr(r.key, 6)
CROSS JOIN LATERAL (SELECT {schema}.as_json(spec.value) AS value) s
"""
HISTORY = """
SELECT l.tenant::text, e."offset" AS log_offset, d.number, {at} AS at, {columns}, d.event AS details
FROM {schema}.entry e JOIN {schema}.log l ON l.id = e.log
CROSS JOIN LATERAL {schema}.events_of(e.events) d
"""
# The newest entries of each log are enough: the ledger has as many actions.
ACTIVITY = """
WITH a AS ({actions}), done AS (
    SELECT l.tenant::text AS tenant, e.log, e.at, a.*, d.event AS detail,
        (e."offset" % {offsets}) * {events} + d.number AS id, {actor} AS agent_id, {to} AS to_agent,
        row_number() OVER (PARTITION BY e.log ORDER BY e."offset" DESC, d.number DESC) AS age
    FROM {schema}.log l JOIN {schema}.entry e ON e.log = l.id AND e."offset" > l.head - {most}
    CROSS JOIN LATERAL {schema}.events_of(e.events) d
    JOIN a ON a.event = d.event ->> 'event' AND {matches})
SELECT a.id, a.agent_id,
    coalesce({role}nullif(CASE a.actor WHEN 'session' THEN a.detail ->> 'agent' END, ''), {name}'')
        AS agent_role,
    a.type AS action_type, {summary} AS summary,
    (CASE a.receiver WHEN 'none' THEN a.detail ELSE a.detail || jsonb_build_object(
        'toAgentId', a.to_agent, 'toRole', {to_role}) END)::text AS details,
    to_char(to_timestamp(a.at / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS "timestamp", a.tenant
FROM done a {session} WHERE a.age <= {most} ORDER BY a.id
"""
SESSION = """
LEFT JOIN {schema}.record r ON r.log = a.log AND r.key = 'session/' || a.agent_id
LEFT JOIN LATERAL (SELECT {schema}.as_json(r.value) AS value) s ON true
"""
DIALECT = ActivityDialect(
    "d.event ->> {}",
    "CASE jsonb_typeof(d.event -> {0}) WHEN 'array' THEN CASE jsonb_array_length(d.event -> {0})"
    " WHEN 1 THEN d.event -> {0} ->> 0 END ELSE d.event ->> {0} END",
    " || ",
    "position({1} IN {0}) > 0",
)


def views_sql(*, of_records: bool) -> str:
    """Return the statements that create or replace the views; a log-structured store has no record views."""
    views = {name: _of_records(view) for name, view in RECORD_VIEWS.items()} if of_records else {}
    columns = ", ".join(f"d.event ->> '{field}' AS {field}" for field in HISTORY_FIELDS)
    views[HISTORY_VIEW] = HISTORY.replace("{columns}", columns).replace("{at}", _timestamp("e.at"))
    views[ACTIVITY_VIEW] = _activity(of_records=of_records)
    made = [f"CREATE OR REPLACE VIEW {{schema}}.{name} AS{query};" for name, query in views.items()]
    return FUNCTIONS + "\n".join(made)


def _activity(*, of_records: bool) -> str:
    """Return the query of the ledger; a log-structured store knows no roles."""
    late = DIALECT._replace(text=DIALECT.text.replace("d.event", "a.detail"))
    return activity_sql(
        ACTIVITY,
        actor=DIALECT.field("actor"),
        to=DIALECT.to,
        matches=DIALECT.matches,
        summary=late.summary,
        to_role=late.field("receiver_role"),
        session=SESSION if of_records else "",
        role="nullif(s.value ->> 'role', ''), " if of_records else "",
        name="nullif(s.value ->> 'agent', ''), " if of_records else "",
    )


def _of_records(view: RecordView) -> str:
    columns = ", ".join(f"{_expression(column)} AS {column.name}" for column in view.columns)
    needed = f"AND v.value #>> '{{{view.needed}}}' IS NOT NULL" if view.needed else ""
    query = RECORDS.replace("{columns}", columns).replace("{spec}", SPEC if view.with_spec else "")
    query = query.replace("{needed}", needed)
    parts = [
        query.replace("{first}", prefix).replace("{end}", prefix_end(prefix) or "")
        for prefix in view.prefixes
    ]
    return "UNION ALL".join(parts)


def _expression(column: Column) -> str:
    record = "s.value" if column.of_spec else "v.value"
    text = f"{record} #>> '{{{','.join(column.path)}}}'"
    match column.form:
        case "part":
            return f"split_part(r.key, '/', {int(column.field) + 1})"
        case "fence":
            return f"coalesce(nullif(({text})::bigint, 0), r.version)"
        case "time":
            return _timestamp(f"nullif(({text})::bigint, 0)")
        case "number":
            return f"coalesce(({text})::bigint, {column.default or 'NULL'})"
        case "flag":
            return f"coalesce(({text})::boolean, false)"
        case "json":
            return f"{record} #> '{{{','.join(column.path)}}}'"
        case _:
            return f"coalesce({text}, '{column.default}')"


def _timestamp(ms: str) -> str:
    return f"to_timestamp({ms} / 1000.0)"
