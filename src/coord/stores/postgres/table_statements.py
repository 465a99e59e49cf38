"""The SQL of the Postgres stores: settings, the part of both layouts, and the table-based layout.

Plans must be good from an empty table to millions of rows, because a connection plans each statement once
(`plan_cache_mode`). So versions are read by a scalar subquery, which can only be one index lookup per key,
never by a join, and sequential scans are off.

HOT updates: an update that changes no indexed column needs no index entry, and its dead row is removed with
the next access to the page; `fillfactor` keeps room for it. All columns that an index mentions count, also in
its WHERE. So no index uses `version` or `value`: a tombstone is a row with `index_key IS NULL`.
"""

import zlib
from typing import ClassVar, Final

from coord.stores.contract import KEY_BYTES

ABOVE_ALL: Final = chr(0x10FFFF) * (KEY_BYTES // 4 + 1)
"""Text above every key and index key in byte order: it is longer than any of them."""

INSTALL_LOCK: Final = 0x636F6F7264  # "coord"

# Defaults if the url sets none: a lost peer is noticed in less than 30 seconds.
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

-- One row per tenant, changed by each commit. Few rows per page keep the updates HOT.
CREATE TABLE {schema}.log (
    id int PRIMARY KEY, tenant text COLLATE "C" NOT NULL UNIQUE, head bigint NOT NULL, at bigint NOT NULL,
    floor bigint NOT NULL, records bigint NOT NULL DEFAULT 0, indexed bigint NOT NULL DEFAULT 0,
    digest bigint NOT NULL DEFAULT 0) WITH (fillfactor = 10);
"""

TABLES: Final = """
-- Vacuumed at 5 % dead rows instead of 20 %: a queue of index keys fills its index with dead rows.
CREATE TABLE {schema}.record (
    log int NOT NULL, key text COLLATE "C" NOT NULL, version bigint NOT NULL, checksum bigint NOT NULL,
    value bytea, index_key text COLLATE "C", PRIMARY KEY (log, key),
    CHECK ((value IS NULL) = (index_key IS NULL)))
    WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX record_index_key ON {schema}.record (log, index_key, key) WHERE index_key <> '';
CREATE INDEX record_dead ON {schema}.record (log, key) WHERE index_key IS NULL;

CREATE TABLE {schema}.entry (
    log int NOT NULL, "offset" bigint NOT NULL, checksum bigint NOT NULL, at bigint NOT NULL,
    id bytea NOT NULL, events bytea NOT NULL, PRIMARY KEY (log, "offset"));
"""

OPEN_LOG: Final = """
CREATE FUNCTION {schema}.open_log(of_tenant text, OUT opened int) LANGUAGE plpgsql AS $$
DECLARE base bigint;
BEGIN
    SELECT id INTO opened FROM {schema}.log WHERE tenant = of_tenant;
    IF opened IS NULL THEN
        PERFORM pg_advisory_xact_lock({install_lock});
        -- The next statement has a newer snapshot than the lock, so it sees a row that another inserted.
        -- A later epoch has higher offsets than an earlier one (40 bits: see database.py).
        SELECT value::bigint << 40 INTO base FROM {schema}.meta WHERE name = 'epoch';
        INSERT INTO {schema}.log SELECT coalesce(max(id), 0) + 1, of_tenant, base, 0, base FROM {schema}.log
            ON CONFLICT (tenant) DO NOTHING;
        SELECT id INTO opened FROM {schema}.log WHERE tenant = of_tenant;
    END IF;
END $$;
"""

COMMIT: Final = """
-- One commit in one round trip. `keys` are the keys to put, then those to delete, then those only read;
-- `writes` counts the first two groups; `puts` and `index_keys` belong to the first. If head and floor are
-- those of the read point, no version can have changed. The numbers come as one array, because each argument
-- costs the client and the server about a microsecond.
--
-- The lock on the head row orders the log. READ COMMITTED gives every statement of a VOLATILE function a new
-- snapshot, so the statements after the lock see everything that its previous holder committed.
CREATE FUNCTION {schema}.commit(
    to_log int, keys text[], versions bigint[], puts bytea[], index_keys text[],
    commit_id bytea, commit_events bytea, digests bigint[], numbers bigint[],
    OUT clock bigint, OUT new_offset bigint, OUT changed text[], OUT heard boolean)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    the_floor bigint;
    read_head bigint := numbers[1];
    read_floor bigint := numbers[2];
    writes int := numbers[3];
    commit_at bigint := numbers[4];
    entry_digest bigint := numbers[5];
BEGIN
    SELECT l.head + 1, l.floor INTO STRICT new_offset, the_floor
        FROM {schema}.log l WHERE l.id = to_log FOR NO KEY UPDATE;
    IF (new_offset - 1, the_floor) <> (read_head, read_floor) THEN
        SELECT array_agg(e.key) INTO changed FROM unnest(keys, versions) e (key, version)
            WHERE e.version <> coalesce(
                (SELECT r.version FROM {schema}.record r WHERE r.log = to_log AND r.key = e.key), the_floor);
    END IF;
    IF changed IS NOT NULL THEN
        -- Only the row lock was written: do not wait for the disk.
        PERFORM set_config('synchronous_commit', 'off', true);
    ELSE
        -- `unnest` pads the shorter arrays with nulls: a key without value and index key is a tombstone.
        -- A checksum is a digest plus the version or offset (see checksums.py).
        INSERT INTO {schema}.record (log, key, version, checksum, value, index_key)
            SELECT to_log, p.key, new_offset, new_offset + p.digest, p.value, p.index_key
            FROM unnest(keys[1:writes], digests, puts, index_keys) p (key, digest, value, index_key)
            ON CONFLICT (log, key) DO UPDATE
            SET version = excluded.version, checksum = excluded.checksum, value = excluded.value,
                index_key = excluded.index_key;
        INSERT INTO {schema}.entry
            VALUES (to_log, new_offset, new_offset + entry_digest, commit_at, commit_id, commit_events);
        UPDATE {schema}.log SET head = new_offset, at = commit_at, records = records + numbers[6],
            indexed = indexed + numbers[7], digest = digest + numbers[8] WHERE id = to_log;
        -- Listeners share this lock. A listener that gets it later sees the head of this commit.
        heard := NOT pg_try_advisory_xact_lock({listen_class}, to_log);
    END IF;
    clock := extract(epoch FROM clock_timestamp()) * 1000;
END $$;
"""

TRIM: Final = """
CREATE FUNCTION {schema}.trim(of_log int, before bigint, OUT new_floor bigint) LANGUAGE plpgsql VOLATILE AS $$
DECLARE removed bigint; removed_digest bigint;
BEGIN
    UPDATE {schema}.log SET floor = greatest(floor, least(before, head)) WHERE id = of_log
        RETURNING floor INTO STRICT new_floor;
    WITH gone AS (
        DELETE FROM {schema}.record WHERE log = of_log AND index_key IS NULL AND version < new_floor
        RETURNING checksum - version AS digest)
    SELECT count(*), coalesce(sum(digest), 0) INTO removed, removed_digest FROM gone;
    UPDATE {schema}.log SET records = records - removed, digest = digest - removed_digest WHERE id = of_log;
END $$;
"""

# Every answer starts with the server's clock; one that reads a log then has its head.
CLOCK: Final = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
READ: Final = """
SELECT (SELECT {clock}), l.head, l.at, l.floor, f.*
FROM {schema}.log l LEFT JOIN LATERAL ({found}) f ON true WHERE l.id = %b {order}
"""

# Key by key (LIMIT enforces it): a plan lasts as long as its connection, and one for `key = ANY` that was
# made while the table was small reads all rows of the log.
LOAD: Final = """
SELECT f.* FROM unnest(%b) k (key), LATERAL (
    SELECT key, version, checksum, value, coalesce(index_key, '') AS index_key FROM {schema}.record
    WHERE log = l.id AND key = k.key LIMIT 1) f
"""
CHANGED: Final = """
SELECT e.key FROM unnest(%b, %b) e (key, version) WHERE e.version <>
    coalesce((SELECT r.version FROM {schema}.record r WHERE r.log = l.id AND r.key = e.key), l.floor)
"""
# Keys, ranges by key and ranges by index key, in one snapshot. `id_` says of which range a record is.
LOAD_RANGES: Final = """
SELECT 0::bigint AS position, f.* FROM unnest(%b) k (key), LATERAL (
    SELECT key, version, checksum, value, coalesce(index_key, '') AS index_key FROM {schema}.record
    WHERE log = l.id AND key = k.key LIMIT 1) f
UNION ALL
SELECT r.position, f.* FROM unnest(%b, %b, %b, %b) r (position, low, high, max_rows), LATERAL (
    SELECT key, version, checksum, value, index_key FROM {schema}.record
    WHERE log = l.id AND key >= r.low AND key < r.high AND index_key IS NOT NULL
    ORDER BY key LIMIT r.max_rows) f
UNION ALL
SELECT r.position, f.* FROM unnest(%b, %b, %b, %b, %b) r (position, low, low_key, high, max_rows), LATERAL (
    SELECT key, version, checksum, value, index_key FROM {schema}.record
    WHERE log = l.id AND (index_key, key) > (r.low, r.low_key) AND index_key < r.high AND index_key <> ''
    ORDER BY index_key, key LIMIT r.max_rows) f
"""
# The second select asks the index of index keys: an index that lost entries shows there. The server has no
# CRC-32 for the sum of the keys of live records, which is a part of the digest that the log keeps.
TOTALS: Final = """
SELECT l.records, l.indexed, l.digest, t.records, t.indexed, t.digest, t.keys, (
    SELECT count(*) FROM (
        SELECT FROM {schema}.record WHERE log = l.id AND index_key > '' AND index_key <> ''
        ORDER BY index_key, key) i)
FROM (SELECT count(*) AS records, count(*) FILTER (WHERE index_key <> '') AS indexed,
    coalesce(sum(checksum - version), 0)::bigint AS digest, {live_keys} AS keys
    FROM {schema}.record WHERE log = l.id) t
"""
LIVE_KEYS: Final = "string_agg(convert_to(key, 'UTF8'), '\\x00'::bytea) FILTER (WHERE index_key IS NOT NULL)"
# How many records there are; more than the limit are not counted.
COUNTED: Final = """
SELECT count(*) FROM (SELECT FROM {schema}.record WHERE log = l.id LIMIT %b) c
"""
TOMBSTONES: Final = """
SELECT key, version, checksum FROM {schema}.record WHERE log = l.id AND index_key IS NULL
"""
TAIL: Final = """
SELECT "offset", checksum, at, id, events FROM {schema}.entry
WHERE log = l.id AND "offset" > %b ORDER BY "offset" LIMIT %b
"""


# Only the owner of the tables replaces the views.
VIEWS_WANTED: Final = """
SELECT pg_has_role(c.relowner, 'USAGE')
    AND NOT EXISTS (SELECT FROM {schema}.meta WHERE name = 'views' AND value = '{checksum}')
FROM pg_class c WHERE c.oid = '{schema}.meta'::regclass
"""
SET_VIEWS_CHECKSUM: Final = """
INSERT INTO {schema}.meta VALUES ('views', '{checksum}')
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
    """The statements of both layouts, with the names of one schema."""

    layout: ClassVar[str]
    """The layout in the metadata; a schema without one is table-based."""
    tables: ClassVar[str]
    """What a shape makes beside `meta` and `log`."""
    rights: ClassVar[dict[str, str]]
    """The rights of an agent on each table."""

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
        # NOTIFY waits for other notifiers, and they for their disks: only briefly, as listeners poll too.
        self.notify = f"SELECT {CLOCK}, set_config('lock_timeout', '100ms', true), pg_notify(%b, %b)"

    def views(self) -> tuple[str, str]:
        """Return the query whether the views must be created or replaced, and the statements that do it."""
        from coord.stores.postgres.views import views_sql  # only to install

        made = views_sql(of_records="record" in self.rights)
        checksum = f"{zlib.crc32(made.encode()):08x}"
        wanted, made = (
            VIEWS_WANTED.replace("{checksum}", checksum),
            made + SET_VIEWS_CHECKSUM.replace("{checksum}", checksum),
        )
        return self.named(wanted), self.named(made)

    def channel(self, log: int) -> str:
        """Return the channel on which commits to a log are announced."""
        return f"{self.schema}_{log}"

    def lock_class(self, purpose: str) -> int:
        """Return the first half of an advisory lock: an int4 for this schema and purpose."""
        return zlib.crc32((self.schema + purpose).encode()) - 2**31

    def named(self, statement: str) -> str:
        """Return a statement with the names of this schema."""
        names = {
            "{schema}": f'"{self.schema}"',
            "{clock}": CLOCK,
            "{live_keys}": LIVE_KEYS,
            "{install_lock}": str(INSTALL_LOCK),
            "{listen_class}": str(self.listen_class),
        }
        for name, value in names.items():
            statement = statement.replace(name, value)
        return statement

    def read(self, found: str, order: str = "") -> str:
        """Return a statement that reads the head of a log and the result of a query in one snapshot."""
        order = f"ORDER BY {order}" if order else ""
        return self.named(READ.replace("{found}", found).replace("{order}", order))


class TableStatements(Statements):
    """The statements of the table-based layout."""

    layout = "tables"
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
            "FROM {schema}.commit(%b, %b, %b, %b, %b, %b, %b, %b, %b)"
        )
        self.load = self.read(LOAD)
        self.totals = self.read(TOTALS)
        self.tombstones = self.read(TOMBSTONES)
        self.counted = self.read(COUNTED)
        self.changed = self.read(CHANGED)
        self.load_ranges = self.read(LOAD_RANGES)
        self.trim = self.named("SELECT {clock}, new_floor FROM {schema}.trim(%b, %b)")
