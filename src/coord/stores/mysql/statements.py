"""The SQL of the MySQL store: tables, statements, and packets of statements.

A commit is one packet. Its first statements lock the head row, which orders the log, and check the versions.
Then comes the *guard*: the update of the head, whose new value is NULL if a check failed. A head cannot be
NULL, so the server stops there and does not run the rest. READ COMMITTED gives every statement a new
snapshot, so the statements after the lock see everything that its previous holder committed.

A version is an offset. So a key has changed since an offset if and only if its row has a higher version, or
its row was removed, and then the floor has risen. A commit need not send a list of versions.

A read is one statement, hence one snapshot: first the row of the log, with NULL as its key, then the records
by key and of each range. Long lists of keys are split: above some length, optimizers read whole tables.

Each row keeps a checksum, and the log the totals of its records (see checksums.py).

A tombstone has neither value nor index key. One index serves index keys and tombstones (`index_key IS NULL`).
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from coord.core.errors import Invalid
from coord.core.ranges import Range
from coord.stores.checksums import Changes, Checksums
from coord.stores.contract import Commit, ReadPoint, prefix_end

KEYS_AT_ONCE: Final = 500
ABOVE_ALL: Final = b"\xff"
"""Above every key and index key in byte order: no byte of UTF-8 is as high."""

INSTALL_WAIT_S: Final = 60

TABLES: Final = """
CREATE TABLE IF NOT EXISTS {log} (
    id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, tenant VARBINARY(128) NOT NULL UNIQUE,
    head BIGINT NOT NULL, at BIGINT NOT NULL, floor BIGINT NOT NULL,
    sealed TINYINT NOT NULL, syncs BIGINT NOT NULL, records BIGINT NOT NULL DEFAULT 0,
    indexed BIGINT NOT NULL DEFAULT 0, digest BIGINT NOT NULL DEFAULT 0,
    key_sum BIGINT NOT NULL DEFAULT 0) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
CREATE TABLE IF NOT EXISTS {record} (
    log INT NOT NULL, `key` VARBINARY(700) NOT NULL, version BIGINT NOT NULL,
    checksum BIGINT NOT NULL, value MEDIUMBLOB, index_key VARBINARY(700), PRIMARY KEY (log, `key`),
    KEY index_key (log, index_key, `key`))
    ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
CREATE TABLE IF NOT EXISTS {entry} (
    log INT NOT NULL, `offset` BIGINT NOT NULL, checksum BIGINT NOT NULL, at BIGINT NOT NULL,
    id VARBINARY(255) NOT NULL, events LONGBLOB NOT NULL, PRIMARY KEY (log, `offset`))
    ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
CREATE TABLE IF NOT EXISTS {meta} (
    name VARBINARY(64) NOT NULL PRIMARY KEY, value BLOB NOT NULL) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
"""

CLOCK: Final = "CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)"
CHECKSUM: Final = "IF((value IS NULL) = (index_key IS NULL), checksum, NULL)"
"""The checksum of a record; none fits a row that is only half a tombstone."""

# The lock on the epoch keeps others from sealing the store or raising the epoch (40 bits: see database.py).
OPEN_LOG: Final = """
START TRANSACTION;
SELECT CAST(value AS UNSIGNED) << 40 INTO @base FROM {meta} WHERE name = 'epoch' LOCK IN SHARE MODE;
SELECT COUNT(*) INTO @sealed FROM {meta} WHERE name = 'migrated_url';
INSERT INTO {log} (tenant, head, at, floor, sealed, syncs) VALUES ('{tenant}', @base, 0, @base, @sealed, 0)
    ON DUPLICATE KEY UPDATE id = id;
COMMIT
"""

# With MAX, a missing log gives NULL instead of the values that an earlier commit left in the variables. The
# answer is one column, because the driver takes 4 µs to read the description of each.
CHECK: Final = """
START TRANSACTION;
SELECT MAX(head) + 1, MAX(floor), MAX(sealed) INTO @offset, @floor, @sealed FROM {log}
    WHERE id = %d FOR UPDATE;
SELECT IF(@offset = %d + 1, NULL, %b) INTO @changed;
SELECT CONCAT_WS(' ', {clock}, COALESCE(@offset, ''), COALESCE(@floor, ''), @sealed, COALESCE(@changed, ''));
UPDATE {log} SET at = %d, records = records + %d, indexed = indexed + %d, digest = digest + %d,
    key_sum = key_sum + %d, head = IF(@sealed = 0 AND @floor = %d AND @changed IS NULL, @offset, NULL)
    WHERE id = %d;
"""
CHANGED: Final = """
(SELECT GROUP_CONCAT(HEX(`key`)) FROM {record} FORCE INDEX (PRIMARY)
    WHERE log = %d AND `key` IN (%b) AND version > %d)
"""
UNCHECKED: Final = b"''"
"""In place of the changed keys if the commit does not ask for them."""
CHECK_ANSWER: Final = 3
"""The index of the answer with the result of the checks."""
PUT: Final = "INSERT INTO {record} (log, `key`, version, checksum, value, index_key) VALUES "
OR_UPDATE: Final = (
    b" ON DUPLICATE KEY UPDATE version = VALUES(version), checksum = VALUES(checksum), value = VALUES(value),"
    b" index_key = VALUES(index_key);"
)
ENTRY: Final = "INSERT INTO {entry} VALUES (%d, @offset, @offset + %d, %d, '%b', '%b'); COMMIT"

LOG_ROW: Final = """
(SELECT NULL AS a, head AS b, CONCAT_WS(' ', {clock}, at, floor) AS c, '' AS d, 0 AS e, 0 AS f
FROM {log} WHERE id = %d)
"""
LOAD: Final = """
SELECT `key`, version, value, COALESCE(index_key, ''), {checksum}, 0 FROM {record} FORCE INDEX (PRIMARY)
WHERE log = %d AND `key` IN (%b)
"""
VERSIONS: Final = """
SELECT `key`, version, '', '', 0, 0 FROM {record} FORCE INDEX (PRIMARY) WHERE log = %d AND `key` IN (%b)
"""
SCAN_KEYS: Final = """
SELECT `key`, version, value, COALESCE(index_key, ''), {checksum}, %d FROM {record} FORCE INDEX (PRIMARY)
WHERE log = %d AND `key` %b '%b' AND `key` < '%b' AND (value IS NOT NULL OR index_key IS NOT NULL)
ORDER BY `key` LIMIT %d
"""
# Every optimizer recognizes these two ranges of the index; not all do with a comparison of pairs.
SCAN_INDEX_KEYS: Final = """
SELECT `key`, version, value, index_key, {checksum}, %d FROM {record} FORCE INDEX (index_key)
WHERE log = %d AND (index_key > '%b' OR (index_key = '%b' AND `key` > '%b'))
    AND index_key < '%b' AND index_key <> ''
ORDER BY index_key, `key` LIMIT %d
"""
TAIL: Final = """
SELECT `offset`, at, id, events, checksum, 0 FROM {entry} WHERE log = %d AND `offset` > %d
ORDER BY `offset` LIMIT %d
"""
# How many records there are; more than the limit are not counted.
COUNTED: Final = """
SELECT 0, COUNT(*), '', '', 0, 0 FROM (SELECT 1 FROM {record} WHERE log = %d LIMIT %d) counted
"""
# The server can compute the checksum of a tombstone: a live record that lost its value is none. Decimals
# cannot overflow, whatever a damaged row contains.
IS_TOMBSTONE: Final = """
(value IS NULL AND checksum = CAST(version AS DECIMAL(20)) + CRC32(CONCAT({seed}, `key`)))
"""
FOUND_TOTALS: Final = """
SELECT COUNT(*) AS records, COALESCE(SUM(index_key <> ''), 0) AS indexed, COALESCE(
    SUM(checksum) - SUM(version) - SUM({is_tombstone} <> (index_key IS NULL)), 0) AS digest,
    COALESCE(SUM(CRC32(`key`)), 0) AS key_sum
FROM {record} FORCE INDEX (PRIMARY) WHERE log = %d
"""
# The kept totals, those of the rows, the entries of the index of index keys, and the newest entry.
TOTALS: Final = """
SELECT 0, 0, CONCAT_WS(' ', l.records, l.indexed, l.digest, l.key_sum,
    t.records, t.indexed, t.digest, t.key_sum,
    (SELECT COUNT(*) FROM {record} FORCE INDEX (index_key) WHERE log = l.id AND index_key > ''),
    COALESCE((SELECT MAX(`offset`) FROM {entry} WHERE log = l.id), l.floor)), '', 0, 0
FROM ({found_totals}) t, {log} l WHERE l.id = %d
"""

TRIM: Final = """
START TRANSACTION;
UPDATE {log} SET floor = GREATEST(floor, LEAST({before}, head)) WHERE id = {id};
SELECT MAX(floor) INTO @floor FROM {log} WHERE id = {id};
SELECT COUNT(*), COALESCE(SUM(checksum) - SUM(version), 0), COALESCE(SUM(CRC32(`key`)), 0)
    INTO @removed, @digest, @keys FROM {dead};
DELETE FROM {dead};
UPDATE {log} SET records = records - @removed, digest = digest - @digest, key_sum = key_sum - @keys
    WHERE id = {id};
SELECT @floor;
COMMIT
"""
DEAD: Final = "{record} WHERE log = {id} AND index_key IS NULL AND version < @floor AND {is_tombstone}"
TRIM_STATEMENTS: Final = 8
FORGET: Final = """
DELETE FROM {entry} WHERE log = %d AND `offset` < %d ORDER BY `offset` LIMIT %d; SELECT ROW_COUNT()
"""
PARTS: Final = {
    "{clock}": CLOCK,
    "{checksum}": CHECKSUM,
    "{found_totals}": FOUND_TOTALS,
    "{dead}": DEAD,
    "{is_tombstone}": IS_TOMBSTONE,
}
# InnoDB shows a commit before it is on disk. A later commit of any kind waits for both.
MAKE_DURABLE: Final = "UPDATE {log} SET syncs = syncs + 1 WHERE id = %d"

_events_encode = msgspec.msgpack.Encoder().encode


def quoted(text: str) -> bytes:
    """Return the text of a literal, without its quotes."""
    return _encoded(text.replace("'", "''"))


def listed(texts: Sequence[str]) -> bytes:
    """Return literals with commas between them; without texts NULL, which equals nothing."""
    if not texts:
        return b"NULL"
    return b"'" + _encoded("','".join([text.replace("'", "''") for text in texts])) + b"'"


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise Invalid(f"{text!r} is not valid Unicode") from error


class Statements:
    """The statements with the table names of one store."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.create = [self.named(table) for table in TABLES.split(";")]
        self.meta = self.named("SELECT name, value FROM {meta}")
        self.put_meta = self.named(
            "INSERT INTO {meta} VALUES ('%b', '%b') ON DUPLICATE KEY UPDATE name = name"
        )
        self.lock_installation = b"SELECT GET_LOCK(SHA1(CONCAT(DATABASE(), '.%b')), %d)" % (
            prefix.encode(),
            INSTALL_WAIT_S,
        )
        self.find_log = self.named("SELECT id FROM {log} WHERE tenant = '%b'")
        self.make_durable = self.named(MAKE_DURABLE)
        self.forget = self.named(FORGET)
        self.heads = self.named("SELECT id, head FROM {log} WHERE id IN (%b)")
        self.clock = self.named("SELECT {clock}")
        self.head = self.named(LOG_ROW)
        self._check, self._changed = self.named(CHECK), self.named(CHANGED)
        self._put, self._entry = self.named(PUT), self.named(ENTRY)
        self._load, self._versions = self.named(LOAD), self.named(VERSIONS)
        self._scan_keys, self._scan_index_keys = self.named(SCAN_KEYS), self.named(SCAN_INDEX_KEYS)
        self._tail, self._counted = self.named(TAIL), self.named(COUNTED)

    def named(self, statement: str) -> bytes:
        """Return a statement with the table names of this store and single spaces."""
        for name, part in PARTS.items():
            statement = statement.replace(name, part)
        for table in ("meta", "log", "record", "entry"):
            statement = statement.replace(f"{{{table}}}", f"`{self.prefix}_{table}`")
        return " ".join(statement.split()).encode()

    def seeded(self, statement: str, seed: bytes) -> bytes:
        """Return a statement that computes checksums of tombstones."""
        return self.named(statement).replace(b"{seed}", b"0x%b" % seed.hex().encode())

    def open_log(self, tenant: str) -> bytes:
        """Return the packet that creates a log if it is missing."""
        return self.named(OPEN_LOG.replace("{tenant}", tenant))

    def commit(
        self,
        log: int,
        read_point: ReadPoint,
        commit: Commit,
        changes: Changes,
        checksums: Checksums,
        *,
        unopposed: bool,
    ) -> tuple[bytes, int]:
        """Return the packet of a commit at a read point, and the number of its statements.

        An `unopposed` commit does not ask which keys changed if the head has moved: that question costs the
        server as much as a quarter of the puts.
        """
        head, floor, _ = read_point
        changed = UNCHECKED if unopposed else self._changed % (log, listed([*commit.expected_versions]), head)
        parts = [self._check % (log, head, changed, commit.at, *changes.totals, floor, log)]
        digests = iter(changes.digests)
        rows = [
            b"(%d,'%b',@offset,@offset+%d,'%b','%b')"
            % (log, quoted(key), next(digests), put.value.replace(b"'", b"''"), quoted(put.index_key))
            for key, put in commit.puts.items()
        ]
        rows += [
            b"(%d,'%b',@offset,@offset+%d,NULL,NULL)" % (log, quoted(key), next(digests))
            for key in commit.deletes
        ]
        if rows:
            parts += [self._put, b",".join(rows), OR_UPDATE]
        events = _events_encode(commit.events)
        digest = checksums.entry_digest(commit.at, commit.id, events)
        id_ = commit.id.replace(b"'", b"''")
        parts.append(self._entry % (log, digest, commit.at, id_, events.replace(b"'", b"''")))
        return b"".join(parts), 8 if rows else 7

    def load(self, log: int, keys: Sequence[str], ranges: Sequence[Range] = ()) -> bytes:
        """Return the statement that reads records; the last column is the number of the range."""
        scans = [self._scan(position, log, range_) for position, range_ in enumerate(ranges, 1)]
        return self._found(log, *self._in_parts(self._load, log, keys), *scans)

    def versions(self, log: int, keys: Sequence[str]) -> bytes:
        """Return the statement that reads the versions of keys."""
        return self._found(log, *self._in_parts(self._versions, log, keys))

    def _scan(self, position: int, log: int, range_: Range) -> bytes:
        prefix, by, limit, after = range_
        if by == "index_key":
            index_key, key = max((prefix, ""), after)  # no key is empty
            low = quoted(index_key)
            return self._scan_index_keys % (position, log, low, low, quoted(key), _end(prefix), limit)
        above, low = (b">=", quoted(prefix)) if after[1] < prefix else (b">", quoted(after[1]))
        return self._scan_keys % (position, log, above, low, _end(prefix), limit)

    def tail(self, log: int, after: int, limit: int) -> bytes:
        """Return the statement that reads entries."""
        return self._found(log, self._tail % (log, after, limit))

    def counted(self, log: int, limit: int) -> bytes:
        """Return the statement that counts records up to a limit."""
        return self._found(log, self._counted % (log, limit))

    def totals(self, log: int, seed: bytes) -> bytes:
        """Return the statement that reads the totals that the log kept, and those of its rows."""
        return self._found(log, self.seeded(TOTALS, seed) % (log, log))

    def trim(self, log: int, before: int, seed: bytes) -> bytes:
        """Return the packet that raises the floor and removes the tombstones below it."""
        packet = self.seeded(TRIM, seed)
        return packet.replace(b"{id}", b"%d" % log).replace(b"{before}", b"%d" % before)

    def _in_parts(self, statement: bytes, log: int, keys: Sequence[str]) -> Iterable[bytes]:
        for at in range(0, len(keys), KEYS_AT_ONCE):
            yield statement % (log, listed(keys[at : at + KEYS_AT_ONCE]))

    def _found(self, log: int, *selects: bytes) -> bytes:
        return b" UNION ALL ".join([self.head % log, *(b"(%b)" % select for select in selects)])


def _end(prefix: str) -> bytes:
    end = prefix_end(prefix)
    return ABOVE_ALL if end is None else quoted(end)
