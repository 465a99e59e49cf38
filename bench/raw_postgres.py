"""The raw limit of Postgres: the tables and session settings of the store behind one plain connection.

Per commit one transaction, sent as one pipeline: an insert of all rows from arrays (`unnest … ON CONFLICT`,
about three times as fast as a statement per row), the insert of the entry, the update of the head. In the log
shape the entry has all of it, so there are no rows beside it.
"""

from time import perf_counter
from typing import Any

import msgspec
import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

import coord
from bench.workload import TENANT
from coord.stores.contract import Commit
from coord.stores.postgres.arrays import Blobs, Texts
from coord.stores.postgres.log_entry import Body, encoded
from coord.stores.postgres.table_statements import SESSION
from tests.support.servers.postgres import for_psycopg

PUT = """INSERT INTO coord.record (log, key, version, checksum, value, index_key)
SELECT %b, row.key, %b, 0, row.value, row.index_key FROM unnest(%b, %b, %b) row (key, value, index_key)
ON CONFLICT (log, key)
DO UPDATE SET version = excluded.version, value = excluded.value, index_key = excluded.index_key"""
ENTRY = "INSERT INTO coord.entry VALUES (%b, %b, 0, %b, %b, %b)"
LOG_ENTRY = "INSERT INTO coord.entry VALUES (%b, %b, 0, %b, %b, %b, %b)"
HEAD = "UPDATE coord.log SET head = %b, at = %b WHERE id = %b"


class ReadyTexts(bytes):
    """A text[], packed before the clock starts."""


class ReadyBlobs(bytes):
    """A bytea[], packed before the clock starts."""


class ReadyTextsDumper(Dumper):
    """Sends the bytes as they are."""

    oid = Texts.oid
    format = Format.BINARY

    def dump(self, obj: bytes) -> bytes:
        return obj


class ReadyBlobsDumper(ReadyTextsDumper):
    """The same for blobs."""

    oid = Blobs.oid


class RawPostgres:
    """One connection to the tables."""

    def __init__(self, url: str) -> None:
        database = coord.open_store(url)
        database.log(TENANT)
        database.close()
        self._offset = 0
        self._connection = psycopg.connect(for_psycopg(url), autocommit=True, prepare_threshold=0)
        for name, value in SESSION.items():
            self._connection.execute("SELECT set_config(%s, %s, false)", (name, value))
        self._connection.adapters.register_dumper(ReadyTexts, ReadyTextsDumper)
        self._connection.adapters.register_dumper(ReadyBlobs, ReadyBlobsDumper)
        found = self._connection.execute("SELECT id FROM coord.log WHERE tenant = %s", (TENANT,)).fetchone()
        assert found is not None, "the tenant's log was just opened"
        self._log: int = found[0]

    def play(self, commits: list[Commit]) -> float:
        prepared = [self._statements(commit) for commit in commits]
        connection = self._connection
        began = perf_counter()
        for statements in prepared:
            with connection.pipeline():
                connection.execute("BEGIN")
                for statement, values in statements:
                    connection.execute(statement, values)
                connection.execute("COMMIT")
        return perf_counter() - began

    def _statements(self, commit: Commit) -> list[tuple[str, tuple[Any, ...]]]:
        self._offset += 1
        log, offset = self._log, self._offset
        # `unnest` fills the shorter arrays up with nulls: a key without value and line is a tombstone.
        keys = ReadyTexts(Texts([*commit.puts, *commit.deletes]).packed())
        values = ReadyBlobs(Blobs([put.value for put in commit.puts.values()]).packed())
        index_keys = ReadyTexts(Texts([put.index_key for put in commit.puts.values()]).packed())
        events = msgspec.msgpack.encode(commit.events)
        return [
            (PUT, (log, offset, keys, values, index_keys)),
            (ENTRY, (log, offset, commit.at, commit.id, events)),
            (HEAD, (offset, commit.at, log)),
        ]

    def close(self) -> None:
        self._connection.close()


class RawPostgresLog(RawPostgres):
    """The same of the log shape."""

    def _statements(self, commit: Commit) -> list[tuple[str, tuple[Any, ...]]]:
        self._offset += 1
        log, offset = self._log, self._offset
        body = encoded(Body(commit.puts, commit.deletes, {}))
        return [
            (LOG_ENTRY, (log, offset, commit.at, commit.id, encoded(commit.events), body)),
            (HEAD, (offset, commit.at, log)),
        ]
