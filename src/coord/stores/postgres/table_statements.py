"""What the Postgres stores say to their server: settings, what both shapes share, and all of the table shape.

Plans must stay good from an empty table to millions of rows, because a connection plans each statement once
(`plan_cache_mode`): so versions are looked up by a scalar subquery, which can only be one index probe per
key, never by a join, and sequential scans are off.

HOT: an update that changes no indexed column needs no index entry, and its dead row leaves with the next
visit to the page; `fillfactor` keeps room for it. An index counts with all columns it mentions, its WHERE
too. So nothing indexes `version` or `value`: a tombstone is marked by `index_key IS NULL`.
"""

import zlib
from typing import ClassVar, Final

from coord.stores.contract import KEY_BYTES

ABOVE_ALL: Final = chr(0x10FFFF) * (KEY_BYTES // 4 + 1)
"""Text above every key and index key in the order of bytes, for it is longer than any of them."""

INSTALL_LOCK: Final = 0x636F6F7264  # "coord"

# Defaults for what the url leaves open: a peer that is gone is noticed in less than half a minute.
LIBPQ: Final = {
    "connect_timeout": 5,
    "fallback_application_name": "coord",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}

SESSION: Final = {
    "default_transaction_isolation": "read committed",
    "lock_timeout": "5s",
    "statement_timeout": "30s",
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "jit": "off",
}

META: Final = """
CREATE TABLE {schema}.meta (name text PRIMARY KEY, value text NOT NULL);

-- One row per tenant, changed by each commit. A page of its own for each few rows, so that they stay HOT.
CREATE TABLE {schema}.log (
    id int PRIMARY KEY, tenant text COLLATE "C" NOT NULL UNIQUE, head bigint NOT NULL, at bigint NOT NULL,
    floor bigint NOT NULL) WITH (fillfactor = 10);
"""

TABLES: Final = """
-- Vacuumed at 5 % dead rows instead of 20 %: a queue of index keys fills its index with dead rows.
CREATE TABLE {schema}.record (
    log int NOT NULL, key text COLLATE "C" NOT NULL, version bigint NOT NULL, value bytea,
    index_key text COLLATE "C", PRIMARY KEY (log, key), CHECK ((value IS NULL) = (index_key IS NULL)))
    WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX record_index_key ON {schema}.record (log, index_key, key) WHERE index_key <> '';
CREATE INDEX record_dead ON {schema}.record (log, key) WHERE index_key IS NULL;

CREATE TABLE {schema}.entry (
    log int NOT NULL, "offset" bigint NOT NULL, at bigint NOT NULL, id bytea NOT NULL, events bytea NOT NULL,
    PRIMARY KEY (log, "offset"));
"""

OPEN_LOG: Final = """
CREATE FUNCTION {schema}.open_log(of_tenant text, OUT opened int) LANGUAGE plpgsql AS $$
DECLARE base bigint;
BEGIN
    SELECT id INTO opened FROM {schema}.log WHERE tenant = of_tenant;
    IF opened IS NULL THEN
        PERFORM pg_advisory_xact_lock({install_lock});
        -- The next statement has a newer snapshot than the lock: it sees what another just inserted.
        -- The offsets of a later epoch are above all of an earlier one (40 bits: see database.py).
        SELECT value::bigint << 40 INTO base FROM {schema}.meta WHERE name = 'epoch';
        INSERT INTO {schema}.log SELECT coalesce(max(id), 0) + 1, of_tenant, base, 0, base FROM {schema}.log
            ON CONFLICT (tenant) DO NOTHING;
        SELECT id INTO opened FROM {schema}.log WHERE tenant = of_tenant;
    END IF;
END $$;
"""

COMMIT: Final = """
-- The contract of one commit in one round trip, and nothing of the product. `keys` are those to put, those to
-- delete, those only read; `writes` counts the first two; `puts` and `index_keys` belong to the first. If
-- head and floor are still those `read_point` which the versions were loaded, nothing can have changed.
--
-- The lock on the head row is the order of the log. READ COMMITTED gives every statement of a VOLATILE
-- function a snapshot of its own, so what follows the lock sees all that its former holder committed.
CREATE FUNCTION {schema}.commit(
    to_log int, as_of_head bigint, as_of_floor bigint,
    keys text[], versions bigint[], writes int, puts bytea[], index_keys text[],
    commit_at bigint, commit_id bytea, commit_events bytea,
    OUT clock bigint, OUT new_offset bigint, OUT changed text[], OUT heard boolean)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    the_floor bigint;
BEGIN
    SELECT l.head + 1, l.floor INTO STRICT new_offset, the_floor
        FROM {schema}.log l WHERE l.id = to_log FOR NO KEY UPDATE;
    IF (new_offset - 1, the_floor) <> (as_of_head, as_of_floor) THEN
        SELECT array_agg(e.key) INTO changed FROM unnest(keys, versions) e (key, version)
            WHERE e.version <> coalesce(
                (SELECT r.version FROM {schema}.record r WHERE r.log = to_log AND r.key = e.key), the_floor);
    END IF;
    IF changed IS NOT NULL THEN
        -- Nothing was written but the row lock: not worth waiting for the disk.
        PERFORM set_config('synchronous_commit', 'off', true);
    ELSE
        -- `unnest` fills the shorter arrays up with nulls: a key without value and index key is a tombstone.
        INSERT INTO {schema}.record (log, key, version, value, index_key)
            SELECT to_log, p.key, new_offset, p.value, p.index_key
            FROM unnest(keys[1:writes], puts, index_keys) p (key, value, index_key)
            ON CONFLICT (log, key) DO UPDATE
            SET version = excluded.version, value = excluded.value, index_key = excluded.index_key;
        INSERT INTO {schema}.entry VALUES (to_log, new_offset, commit_at, commit_id, commit_events);
        UPDATE {schema}.log SET head = new_offset, at = commit_at WHERE id = to_log;
        -- Listeners share this lock. Whoever gets it later, gets it after this commit and sees the new head.
        heard := NOT pg_try_advisory_xact_lock({listen_class}, to_log);
    END IF;
    clock := extract(epoch FROM clock_timestamp()) * 1000;
END $$;
"""

TRIM: Final = """
CREATE FUNCTION {schema}.trim(of_log int, before bigint, OUT new_floor bigint) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE {schema}.log SET floor = greatest(floor, least(before, head)) WHERE id = of_log
        RETURNING floor INTO STRICT new_floor;
    DELETE FROM {schema}.record WHERE log = of_log AND index_key IS NULL AND version < new_floor;
END $$;
"""

# Every answer begins with the server's clock; one that reads a log goes on with its head, as of one snapshot.
CLOCK: Final = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
READ: Final = """
SELECT (SELECT {clock}), l.head, l.at, l.floor, f.*
FROM {schema}.log l LEFT JOIN LATERAL ({found}) f ON true WHERE l.id = %b {order}
"""

# Key by key (LIMIT keeps it so): a plan lasts as long as its connection, and for `key = ANY` one that was
# made while the table was small reads all rows of the log.
LOAD: Final = """
SELECT f.* FROM unnest(%b) k (key), LATERAL (
    SELECT key, version, value, coalesce(index_key, '') AS index_key FROM {schema}.record
    WHERE log = l.id AND key = k.key LIMIT 1) f
"""
CHANGED: Final = """
SELECT e.key FROM unnest(%b, %b) e (key, version) WHERE e.version <>
    coalesce((SELECT r.version FROM {schema}.record r WHERE r.log = l.id AND r.key = e.key), l.floor)
"""
# Keys, ranges of keys and ranges of index keys, as of one snapshot. `place` says of which range a record is.
LOAD_RANGES: Final = """
SELECT 0::bigint AS place, f.* FROM unnest(%b) k (key), LATERAL (
    SELECT key, version, value, coalesce(index_key, '') AS index_key FROM {schema}.record
    WHERE log = l.id AND key = k.key LIMIT 1) f
UNION ALL
SELECT r.place, f.* FROM unnest(%b, %b, %b, %b) r (place, low, high, most), LATERAL (
    SELECT key, version, value, index_key FROM {schema}.record
    WHERE log = l.id AND key >= r.low AND key < r.high AND index_key IS NOT NULL ORDER BY key LIMIT r.most) f
UNION ALL
SELECT r.place, f.* FROM unnest(%b, %b, %b, %b, %b) r (place, low, low_key, high, most), LATERAL (
    SELECT key, version, value, index_key FROM {schema}.record
    WHERE log = l.id AND (index_key, key) > (r.low, r.low_key) AND index_key < r.high AND index_key <> ''
    ORDER BY index_key, key LIMIT r.most) f
"""
TAIL: Final = """
SELECT "offset", at, id, events FROM {schema}.entry
WHERE log = l.id AND "offset" > %b ORDER BY "offset" LIMIT %b
"""


# Who owns the tables renews the views; for others they stay as they are.
VIEWS_WANTED: Final = """
SELECT pg_has_role(c.relowner, 'USAGE')
    AND NOT EXISTS (SELECT FROM {schema}.meta WHERE name = 'views' AND value = '{mark}')
FROM pg_class c WHERE c.oid = '{schema}.meta'::regclass
"""
NOTE_VIEWS: Final = """
INSERT INTO {schema}.meta VALUES ('views', '{mark}')
    ON CONFLICT (name) DO UPDATE SET value = excluded.value;
"""

STATE: Final = """
SELECT current_setting('fsync') = 'on' AND current_setting('synchronous_commit') <> 'off', pg_is_in_recovery()
"""
FORGET: Final = """
WITH forgotten AS (
    DELETE FROM {schema}.entry WHERE log = %b AND "offset" < least(
        %b, %b + (SELECT min(e."offset") FROM {schema}.entry e WHERE e.log = %b))
    RETURNING 1)
SELECT {clock}, count(*) FROM forgotten
"""


class Statements:
    """The statements of both shapes, with the names of one schema in them."""

    shape: ClassVar[str]
    """What the schema says it holds; a schema that says nothing holds tables."""
    tables: ClassVar[str]
    """What a shape makes beside `meta` and `log`."""
    rights: ClassVar[dict[str, str]]
    """What an agent may do with each table."""

    def __init__(self, schema: str) -> None:
        self.schema = schema
        self.listen_class = self.lock_class("")
        self.set_up = "SELECT set_config(name, value, false) FROM unnest(%b, %b) s (name, value)"
        self.state = STATE
        self.installed = self.named(
            "SELECT to_regnamespace('{schema}') IS NOT NULL, to_regclass('{schema}.meta') IS NOT NULL"
        )
        self.lock_installation = self.named("SELECT pg_advisory_xact_lock({install_lock})")
        self.create_schema = self.named("CREATE SCHEMA {schema}")
        self.create = self.named(META + OPEN_LOG + self.tables)
        self.meta = self.named("SELECT name, value FROM {schema}.meta")
        self.put_meta = self.named("INSERT INTO {schema}.meta VALUES (%b, %b)")
        self.open_log = self.named("SELECT {clock}, opened FROM {schema}.open_log(%b)")
        self.head = self.read("SELECT")
        self.tail = self.read(TAIL, 'f."offset"')
        self.forget = self.named(FORGET)
        self.heads = self.named("SELECT id, head FROM {schema}.log WHERE id = ANY(%b)")
        self.share_lock = f"SELECT pg_advisory_lock_shared({self.listen_class}, %b)"
        # It waits for who else notifies, and they for their disks: not for long, since polling is the net.
        self.notify = f"SELECT {CLOCK}, set_config('lock_timeout', '100ms', true), pg_notify(%b, %b)"

    def views(self) -> tuple[str, str]:
        """Return what asks whether the views are to be made or renewed, and what does it."""
        from coord.stores.postgres.views import views_sql  # only to install

        made = views_sql(of_records="record" in self.rights)
        mark = f"{zlib.crc32(made.encode()):08x}"
        wanted, made = VIEWS_WANTED.replace("{mark}", mark), made + NOTE_VIEWS.replace("{mark}", mark)
        return self.named(wanted), self.named(made)

    def channel(self, log: int) -> str:
        """Return the name under which commits to a log are announced."""
        return f"{self.schema}_{log}"

    def lock_class(self, purpose: str) -> int:
        """Return an int4 that tells schemas and purposes apart: the first half of an advisory lock."""
        return zlib.crc32((self.schema + purpose).encode()) - 2**31

    def named(self, statement: str) -> str:
        """Return a statement with the names of this schema in it."""
        names = {
            "{schema}": f'"{self.schema}"',
            "{clock}": CLOCK,
            "{install_lock}": str(INSTALL_LOCK),
            "{listen_class}": str(self.listen_class),
        }
        for name, value in names.items():
            statement = statement.replace(name, value)
        return statement

    def read(self, found: str, order: str = "") -> str:
        """Return a statement that answers with the head of a log and what was found, as of one snapshot."""
        order = f"ORDER BY {order}" if order else ""
        return self.named(READ.replace("{found}", found).replace("{order}", order))


class TableStatements(Statements):
    """The statements of the table shape."""

    shape = "tables"
    tables = TABLES + COMMIT + TRIM
    rights: ClassVar = {
        "meta": "SELECT",
        "log": "SELECT, INSERT, UPDATE",
        "record": "SELECT, INSERT, UPDATE",
        "entry": "SELECT, INSERT",
    }

    def __init__(self, schema: str) -> None:
        super().__init__(schema)
        self.commit = self.named(
            "SELECT clock, new_offset, changed, heard "
            "FROM {schema}.commit(%b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b)"
        )
        self.load = self.read(LOAD)
        self.changed = self.read(CHANGED)
        self.load_ranges = self.read(LOAD_RANGES)
        self.trim = self.named("SELECT {clock}, new_floor FROM {schema}.trim(%b, %b)")
