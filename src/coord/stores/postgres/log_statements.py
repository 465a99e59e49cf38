"""The SQL of the log-structured layout: an entry contains everything that its commit wrote.

Bodies are stored uncompressed (EXTERNAL): compressing a batch of claims costs more than writing it. A value
that is too large for memory is a separate row under its key; the commits that replace or delete the record
replace or delete that row. The chunks of a snapshot are written first, its row in `snapshot` last.
"""

from typing import ClassVar, Final

from coord.stores.postgres.table_statements import Statements

TABLES: Final = """
CREATE TABLE {schema}.entry (
    log int NOT NULL, "offset" bigint NOT NULL, checksum bigint NOT NULL, at bigint NOT NULL,
    id bytea NOT NULL, events bytea NOT NULL, body bytea NOT NULL, PRIMARY KEY (log, "offset"));
ALTER TABLE {schema}.entry ALTER events SET STORAGE EXTERNAL, ALTER body SET STORAGE EXTERNAL;

CREATE TABLE {schema}.value (
    log int NOT NULL, key text COLLATE "C" NOT NULL, "offset" bigint NOT NULL, value bytea NOT NULL,
    PRIMARY KEY (log, key));

CREATE TABLE {schema}.snapshot (
    log int NOT NULL, "offset" bigint NOT NULL, floor bigint NOT NULL, bytes bigint NOT NULL,
    PRIMARY KEY (log, "offset"));
CREATE TABLE {schema}.chunk (
    log int NOT NULL, "offset" bigint NOT NULL, number bigint NOT NULL, body bytea NOT NULL,
    PRIMARY KEY (log, "offset", number));
ALTER TABLE {schema}.chunk ALTER body SET STORAGE EXTERNAL;
"""

APPEND: Final = """
-- Append one entry at head + 1 if head and floor are those at which it was checked. The update locks the head
-- row and then reads it as its previous holder left it: this orders the log.
CREATE FUNCTION {schema}.append(
    to_log int, read_head bigint, read_floor bigint, commit_at bigint, commit_id bytea,
    commit_events bytea, commit_body bytea, entry_digest bigint,
    gone text[], large text[], large_values bytea[],
    OUT clock bigint, OUT appended boolean, OUT heard boolean)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE {schema}.log SET head = read_head + 1, at = commit_at
        WHERE id = to_log AND head = read_head AND floor = read_floor;
    appended := FOUND;
    IF appended THEN
        INSERT INTO {schema}.entry
            VALUES (to_log, read_head + 1, read_head + 1 + entry_digest, commit_at, commit_id, commit_events,
                commit_body);
        IF cardinality(gone) > 0 THEN
            DELETE FROM {schema}.value WHERE log = to_log AND key = ANY(gone);
        END IF;
        IF cardinality(large) > 0 THEN
            INSERT INTO {schema}.value
                SELECT to_log, p.key, read_head + 1, p.value FROM unnest(large, large_values) p (key, value)
                ON CONFLICT (log, key) DO UPDATE
                SET "offset" = excluded."offset", value = excluded.value;
        END IF;
        -- Listeners share this lock. A listener that gets it later sees the head of this commit.
        heard := NOT pg_try_advisory_xact_lock({listen_class}, to_log);
    END IF;
    clock := extract(epoch FROM clock_timestamp()) * 1000;
END $$;
"""

ENTRIES: Final = """
SELECT "offset", at, body FROM {schema}.entry
WHERE log = l.id AND "offset" > %b ORDER BY "offset" LIMIT %b
"""
VALUES: Final = """
SELECT key, "offset", value FROM {schema}.value WHERE log = l.id AND key = ANY(%b)
"""
NEWEST: Final = """
SELECT "offset", floor, bytes FROM {schema}.snapshot WHERE log = l.id ORDER BY "offset" DESC LIMIT 1
"""
CHUNKS: Final = """
SELECT number, body FROM {schema}.chunk
WHERE log = l.id AND "offset" = %b AND number >= %b ORDER BY number LIMIT %b
"""
# Rights are checked first: a role that may not delete entries does not raise the floor either.
RAISE_FLOOR: Final = """
WITH raised AS (
    UPDATE {schema}.log SET floor = greatest(floor, least(%b, head)) WHERE id = %b RETURNING floor),
nothing AS (DELETE FROM {schema}.entry WHERE false)
SELECT {clock}, floor FROM raised
"""

# Chunks need no sync: the row that makes them a snapshot waits for everything before it.
ADD_CHUNKS: Final = """
WITH unsynced AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO {schema}.chunk SELECT %b, %b, %b + c.number, c.body
FROM unsynced, unnest(%b) WITH ORDINALITY c (body, number)
"""
SNAPSHOTS_FROM: Final = """
SELECT "offset" FROM {schema}.snapshot WHERE log = %b AND "offset" >= %b
"""
ADD_SNAPSHOT: Final = "INSERT INTO {schema}.snapshot VALUES (%b, %b, %b, %b)"
# Keep two: another process may be reading the older one.
DROP_SNAPSHOTS: Final = """
DELETE FROM {schema}.snapshot WHERE log = %b AND "offset" < (
    SELECT min("offset") FROM (SELECT "offset" FROM {schema}.snapshot WHERE log = %b
        ORDER BY "offset" DESC LIMIT 2) kept)
"""
DROP_CHUNKS: Final = """
DELETE FROM {schema}.chunk WHERE log = %b AND "offset" NOT IN (
    SELECT "offset" FROM {schema}.snapshot WHERE log = %b)
"""
ADD_VALUES: Final = """
INSERT INTO {schema}.value SELECT l.id, p.* FROM {schema}.log l, unnest(%b, %b, %b) p (key, "offset", value)
WHERE l.tenant = %b
"""


class LogStatements(Statements):
    """The statements of the log-structured layout."""

    layout = "log"
    tables = TABLES + APPEND
    rights: ClassVar = {
        "meta": "SELECT",
        "log": "SELECT, INSERT, UPDATE",
        "entry": "SELECT, INSERT",
        "value": "SELECT, INSERT, UPDATE, DELETE",
        "snapshot": "SELECT, INSERT, DELETE",
        "chunk": "SELECT, INSERT, DELETE",
    }

    def __init__(self, schema: str) -> None:
        super().__init__(schema)
        self.append = self.named(
            "SELECT clock, appended, heard FROM {schema}.append(%b, %b, %b, %b, %b, %b, %b, %b, %b, %b, %b)"
        )
        self.entries = self.read(ENTRIES, 'f."offset"')
        self.values = self.read(VALUES)
        self.newest = self.read(NEWEST)
        self.chunks = self.read(CHUNKS, "f.number")
        self.raise_floor = self.named(RAISE_FLOOR)
        self.add_chunks = self.named(ADD_CHUNKS)
        self.snapshots_from = self.named(SNAPSHOTS_FROM)
        self.add_snapshot = self.named(ADD_SNAPSHOT)
        self.drop_snapshots = self.named(DROP_SNAPSHOTS)
        self.drop_chunks = self.named(DROP_CHUNKS)
        self.add_values = self.named(ADD_VALUES)
        snapshots = self.lock_class("/snapshots")
        self.lock_snapshots = f"SELECT pg_advisory_lock({snapshots}, %b) IS NOT NULL"
        self.try_lock_snapshots = f"SELECT pg_try_advisory_lock({snapshots}, %b)"
