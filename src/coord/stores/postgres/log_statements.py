"""What the log shape says to a Postgres server: an entry holds all that its commit wrote, records are folded.

Bodies are stored as they are (EXTERNAL): to compress a batch of claims costs more than to write it. A value
that is too large for memory is a row of its own under its key, replaced and removed by the very commits that
do so with its record. Chunks of a snapshot come first, its row in `snapshot` last: then it exists.
"""

from typing import ClassVar, Final

from coord.stores.postgres.table_statements import Statements

TABLES: Final = """
CREATE TABLE {schema}.entry (
    log int NOT NULL, "offset" bigint NOT NULL, at bigint NOT NULL, id bytea NOT NULL, events bytea NOT NULL,
    body bytea NOT NULL, PRIMARY KEY (log, "offset"));
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
-- One entry at head + 1, if head and floor are those as of which it was checked. The update takes the lock
-- on the head row and then looks at the row as its former holder left it: that is the order of the log.
CREATE FUNCTION {schema}.append(
    to_log int, as_of_head bigint, as_of_floor bigint, commit_at bigint, commit_id bytea,
    commit_events bytea, commit_body bytea, gone text[], large text[], large_values bytea[],
    OUT clock bigint, OUT appended boolean, OUT heard boolean)
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    UPDATE {schema}.log SET head = as_of_head + 1, at = commit_at
        WHERE id = to_log AND head = as_of_head AND floor = as_of_floor;
    appended := FOUND;
    IF appended THEN
        INSERT INTO {schema}.entry
            VALUES (to_log, as_of_head + 1, commit_at, commit_id, commit_events, commit_body);
        IF cardinality(gone) > 0 THEN
            DELETE FROM {schema}.value WHERE log = to_log AND key = ANY(gone);
        END IF;
        IF cardinality(large) > 0 THEN
            INSERT INTO {schema}.value
                SELECT to_log, p.key, as_of_head + 1, p.value FROM unnest(large, large_values) p (key, value)
                ON CONFLICT (log, key) DO UPDATE
                SET "offset" = excluded."offset", value = excluded.value;
        END IF;
        -- Listeners share this lock. Whoever gets it later, gets it after this commit and sees the new head.
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
# Rights are checked before anything is done: who may not delete entries does not raise the floor either.
RAISE_FLOOR: Final = """
WITH raised AS (
    UPDATE {schema}.log SET floor = greatest(floor, least(%b, head)) WHERE id = %b RETURNING floor),
nothing AS (DELETE FROM {schema}.entry WHERE false)
SELECT {clock}, floor FROM raised
"""

# Chunks need not reach the disk by themselves: the row that makes them a snapshot waits for all before it.
ADD_CHUNKS: Final = """
WITH unsynced AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO {schema}.chunk SELECT %b, %b, %b + c.number, c.body
FROM unsynced, unnest(%b) WITH ORDINALITY c (body, number)
"""
SNAPSHOTS_FROM: Final = """
SELECT "offset" FROM {schema}.snapshot WHERE log = %b AND "offset" >= %b
"""
ADD_SNAPSHOT: Final = "INSERT INTO {schema}.snapshot VALUES (%b, %b, %b, %b)"
# The last two stay: somebody may be reading the one before the newest.
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
    """The statements of the log shape."""

    shape = "log"
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
            "SELECT clock, appended, heard FROM {schema}.append(%b, %b, %b, %b, %b, %b, %b, %b, %b, %b)"
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
