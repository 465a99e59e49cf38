"""The table-based Postgres store: tables in one schema of a database, any number of machines.

A commit is one round trip: a function locks the head row, checks the versions, and writes (see
table_statements.py). Waiters are woken by NOTIFY, which is sent after the commit, if somebody listens:
inside the commit it would hold a lock of the whole server until the disk has answered.

    postgresql://user@host/database?schema=coord    `schema` is ours, the other parameters are libpq's
"""

from collections.abc import Iterable, Sequence

import msgspec
from psycopg.types.numeric import Int8

from coord.core.errors import Conflict
from coord.core.ranges import Range
from coord.stores.checksums import Changes, Totals, check_totals, damaged, keys_total
from coord.stores.contract import (
    NO_READ_POINT,
    Commit,
    Entry,
    Head,
    Limits,
    Loaded,
    RangeReader,
    ReadPoint,
    Record,
    check_commit,
    in_order,
    prefix_end,
)
from coord.stores.database import Reconnected
from coord.stores.postgres.arrays import Bigints, Blobs, Texts
from coord.stores.postgres.connection import Address, Row, install_at
from coord.stores.postgres.database import OpenSchema, TenantLog
from coord.stores.postgres.table_statements import ABOVE_ALL, TableStatements

VERIFY_ROWS = 5_000
"""Up to this number of rows every opening checks that none has vanished; `coord doctor` does it always."""

_events_encode = msgspec.msgpack.Encoder().encode


class PostgresStore(RangeReader):
    """The log of one tenant in a Postgres schema."""

    def __init__(self, database: "PostgresDatabase", tenant: str) -> None:
        self._database = database
        self._sql = TableStatements(database.address.schema)
        self._log = TenantLog(database, tenant)
        self._checksums = self._log.checksums
        self._known_on = 0
        if self._log.read(self._sql.counted, Int8(VERIFY_ROWS + 1))[2][0][0] <= VERIFY_ROWS:
            self.verify()

    def verify(self) -> None:
        """Check that exactly the records that the log has counted are there, and that the index has them."""
        _, _, rows = self._log.read(self._sql.totals)
        *totals, joined, in_index = rows[0]
        kept, found = Totals(*totals[:3]), Totals(*totals[3:])
        found = found._replace(digest=found.digest + keys_total(joined))
        check_totals(self._checksums.where, kept, found)
        check_totals(self._checksums.where, kept, kept._replace(indexed=in_index))
        # No range reads tombstones, and the sum of live keys has none of theirs.
        for key, version, checksum in self._log.read(self._sql.tombstones)[2]:
            self._checksums.checked(key, version, checksum, None, "")

    @property
    def limits(self) -> Limits:
        return self._database.limits

    @property
    def seen(self) -> Head:
        return self._log.seen

    def load(self, keys: Iterable[str], ranges: Sequence[Range] = (), *, allow_stale: bool = False) -> Loaded:
        wanted, connection = Texts(keys), self._database.connections
        checksums = self._checksums
        if connection != self._known_on:  # a server that failed may have reused versions
            checksums.forget()
            self._known_on = connection
        checksums.limit_memory()
        parts: list[list[Record]] = [[], *([] for _ in ranges)]
        if ranges:
            head, floor, rows = self._log.read(self._sql.load_ranges, wanted, *_bounds(ranges))
            checked = checksums.checked_all(row[1:] for row in rows)
            for row, record in zip(rows, checked, strict=True):
                parts[row[0]].append(record)
        else:
            head, floor, rows = self._log.read(self._sql.load, wanted)
            parts[0] = checksums.checked_all(rows)
        found = {record.key: record for record in parts[0]}
        records = {key: found.get(key) or checksums.absent(key, floor) for key in wanted}
        scanned = [in_order(part, range_.by) for part, range_ in zip(parts[1:], ranges, strict=True)]
        return Loaded(records, ReadPoint(head, floor, connection), scanned)

    def commit(self, commit: Commit) -> int:
        check_commit(commit, self.limits)
        expected_versions = commit.expected_versions
        if not commit.writes:
            head, _, rows = self._log.read(
                self._sql.changed, Texts(expected_versions), Bigints(expected_versions.values())
            )
            if rows:
                raise Conflict(row[0] for row in rows)
            return head
        try:
            offset, changed, heard = self._ask_to_commit(commit, commit.read_point)
        except Reconnected:  # nothing was sent, and the server may have lost what we read before
            self._checksums.forget()
            offset, changed, heard = self._ask_to_commit(commit, NO_READ_POINT)
        if changed is not None:
            raise Conflict(changed)
        self._log.see(Head(offset, commit.at))
        if heard:
            self._database.notify(self._log.id, offset)
        return int(offset)

    def _ask_to_commit(self, commit: Commit, read_point: ReadPoint) -> Row:
        """Return the new offset or the changed keys, and whether somebody listens."""
        expected_versions, written = commit.expected_versions, dict.fromkeys([*commit.puts, *commit.deletes])
        changes = self._changes(commit)
        events = _events_encode(commit.events)
        on = read_point.connection if read_point is not NO_READ_POINT else None
        if on is None and written:
            on = self._known_on
        keys = Texts([*written, *(key for key in expected_versions if key not in written)])
        ((_, *answer),) = self._database.ask(
            self._sql.commit,
            self._log.id,
            keys,
            Bigints([expected_versions[key] for key in keys]),
            Blobs([put.value for put in commit.puts.values()]),
            Texts([put.index_key for put in commit.puts.values()]),
            commit.id,
            events,
            Bigints(changes.digests),
            Bigints(
                [
                    read_point.offset,
                    read_point.floor,
                    len(written),
                    commit.at,
                    self._checksums.entry_digest(commit.at, commit.id, events),
                    changes.totals.rows,
                    changes.totals.indexed,
                    changes.totals.digest + changes.live_keys,
                ]
            ),
            committing=True,
            on=on,
        )
        if answer[1] is None:
            self._checksums.committed(commit, answer[0], changes)
        return tuple(answer)

    def _changes(self, commit: Commit) -> Changes:
        """Return what a commit changes; read what it replaces if that is not known."""
        changes = self._checksums.changes(commit)
        if changes is None:
            found = self.load(commit.expected_versions)
            changed = [
                key for key, record in found.items() if record.version != commit.expected_versions[key]
            ]
            if changed:
                raise Conflict(changed)
            changes = self._checksums.changes(commit)
        if changes is None:
            raise damaged(f"{self._checksums.where} answers two questions about one record differently")
        return changes

    def tail(self, after: int, limit: int) -> list[Entry]:
        return self._log.tail(after, limit)

    def wait(self, after: int, timeout: float) -> bool:
        return self._log.wait(after, timeout)

    def trim(self, before: int) -> None:
        asked = self._database.ask(self._sql.trim, self._log.id, Int8(before), committing=True)
        self._log.forget_below(asked[0][1])

    def now(self) -> int:
        return self._database.clock.now()

    def close(self) -> None:
        """Do nothing: the database owns the connections."""


def _bounds(ranges: Sequence[Range]) -> list[Texts | Bigints]:
    """Return the ranges by key and those by index key, each as lists of positions, bounds and limits.

    "After a key" is the same as "from that key with the lowest character appended".
    """
    keys: list[tuple[int, str, str, int]] = []
    index_keys: list[tuple[int, str, str, str, int]] = []
    for position, (prefix, by, limit, after) in enumerate(ranges, 1):
        high = prefix_end(prefix) or ABOVE_ALL
        if by == "index_key":
            index_keys.append((position, *max((prefix, ""), after), high, limit))  # no key is empty
        else:
            keys.append((position, prefix if after[1] < prefix else f"{after[1]}\x01", high, limit))
    return [
        Bigints(row[0] for row in keys),
        Texts(row[1] for row in keys),
        Texts(row[2] for row in keys),
        Bigints(row[3] for row in keys),
        Bigints(row[0] for row in index_keys),
        Texts(row[1] for row in index_keys),
        Texts(row[2] for row in index_keys),
        Texts(row[3] for row in index_keys),
        Bigints(row[4] for row in index_keys),
    ]


class PostgresDatabase(OpenSchema[PostgresStore]):
    """A table-based schema with all its tenants; created by `install`."""

    statements = TableStatements

    def _open_log(self, tenant: str) -> PostgresStore:
        return PostgresStore(self, tenant)


def install(url: str) -> None:
    """Create the schema, tables and functions that are missing; safe to call again, even at the same time."""
    install_at(Address(url, TableStatements))


def grants(url: str) -> list[str]:
    """Return the statements with which an administrator prepares a store that is used with few rights."""
    from coord.stores.postgres.grants import granted

    return granted(Address(url, TableStatements))
