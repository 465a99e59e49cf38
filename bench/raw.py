"""The raw limit: the very commits that the engine made, played into the same place with nothing of coord.

Rows are made before the clock starts; timed is what any program would have to do to make them durable:

- sqlite: the same tables, statements, and settings of the store's own connection; per commit one
  transaction with the upserts, an insert of the entry and an update of the head. No read, no expectation,
  no turn, no bell.
- files: per commit one file with the very bytes of the store's entry, written to a temporary name, synced
  (fdatasync), linked to its name, the folder synced (fsync), the temporary name removed. No lock, no fold.
- postgres, postgres-log: see `raw_postgres.py`.
- mariadb: see `raw_mysql.py`.
- redis: see `raw_redis.py`.
- nats: see `raw_nats.py`.
- memory: an update of one dict of records and an append to a list. There is nothing to make durable.
"""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec

import coord
from bench.raw_mysql import RawMysql
from bench.raw_nats import RawNats
from bench.raw_postgres import RawPostgres, RawPostgresLog
from bench.raw_redis import RawRedis
from bench.workload import TENANT
from coord.stores.contract import Commit, Entry, Record
from coord.stores.files.log import SHARD, encode_entry
from coord.stores.sqlite.statements import ADD_ENTRY, CELLS, PUT_ROWS, cells_of, put_statement


class Raw(Protocol):
    """A place that takes commits without asking anything."""

    def play(self, commits: list[Commit]) -> float:
        """Write these commits, one after the other; return how many seconds it took."""

    def close(self) -> None: ...


class RawMemory:
    """A dict and a list."""

    def __init__(self, _url: str) -> None:
        self._records: dict[str, Record] = {}
        self._log: list[Entry] = []

    def play(self, commits: list[Commit]) -> float:
        first = len(self._log) + 1
        prepared = [
            (
                {key: Record(key, offset, put.value, put.index_key) for key, put in commit.puts.items()},
                commit.deletes,
                Entry(offset, commit.at, commit.id, commit.events),
            )
            for offset, commit in enumerate(commits, first)
        ]
        began = perf_counter()
        for puts, deletes, entry in prepared:
            self._records.update(puts)
            for key in deletes:
                del self._records[key]
            self._log.append(entry)
        return perf_counter() - began

    def close(self) -> None:
        """Nothing to close."""


SETTINGS = ("journal_mode", "synchronous", "wal_autocheckpoint", "cache_size", "mmap_size", "temp_store")


def settings(connection: sqlite3.Connection) -> dict[str, object]:
    """Return what decides how fast a connection is."""
    return {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in SETTINGS}


class RawSqlite:
    """The tables of the SQLite store behind one plain connection, set up as the store sets up its own."""

    def __init__(self, url: str) -> None:
        database: Any = coord.open_store(url)
        database.log(TENANT)
        of_store = settings(database._connection)
        database.close()
        self._offset = 0
        self._connection = sqlite3.connect(urlsplit(url).path, isolation_level=None)
        for name, value in of_store.items():
            self._connection.execute(f"PRAGMA {name} = {value}")
        # Raw on worse settings than ours would flatter us, and nobody would notice.
        assert settings(self._connection) == of_store, "raw has the settings of the store"
        (self._log,) = self._connection.execute("SELECT id FROM log WHERE tenant = ?", (TENANT,)).fetchone()

    def play(self, commits: list[Commit]) -> float:
        prepared = [self._rows(commit) for commit in commits]
        connection = self._connection
        began = perf_counter()
        for puts, entry, head in prepared:
            connection.execute("BEGIN IMMEDIATE")
            for statement, values in puts:
                connection.execute(statement, values)
            connection.execute(ADD_ENTRY, entry)
            connection.execute("UPDATE log SET head = ?, at = ? WHERE id = ?", head)
            connection.execute("COMMIT")
        return perf_counter() - began

    def _rows(self, commit: Commit) -> tuple[list[tuple[str, Any]], tuple[Any, ...], tuple[Any, ...]]:
        self._offset += 1
        log, offset = self._log, self._offset
        no_checksums = [0] * (len(commit.puts) + len(commit.deletes))
        cells, most = cells_of(commit, offset, no_checksums), CELLS * PUT_ROWS
        parts = [cells[at : at + most] for at in range(0, len(cells), most)]
        puts = [(put_statement(len(part) // CELLS), (log, offset, *part)) for part in parts]
        events = msgspec.msgpack.encode(commit.events)
        return puts, (log, offset, 0, commit.at, commit.id, events), (offset, commit.at, log)

    def close(self) -> None:
        self._connection.close()


def entry_bytes(offset: int, commit: Commit) -> bytes:
    """Return what the files store writes for a commit without large values."""
    return b"".join(encode_entry(offset, commit, has_references=False))


class RawFiles:
    """A folder of entry files, a thousand to each folder in it, as in the files store."""

    def __init__(self, url: str) -> None:
        self._root = Path(urlsplit(url).path)
        self._root.mkdir()
        self._offset = 0
        self._number = -1
        self._shard = -1

    def play(self, commits: list[Commit]) -> float:
        first = self._offset + 1
        prepared = [(offset, entry_bytes(offset, commit)) for offset, commit in enumerate(commits, first)]
        began = perf_counter()
        for offset, data in prepared:
            self._append(offset, data)
        took = perf_counter() - began
        self._offset += len(commits)
        return took

    def _append(self, offset: int, data: bytes) -> None:
        if offset // SHARD != self._number:
            self._open_shard(offset // SHARD)
        name = str(self._root / "new")
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(file, data)
        os.fdatasync(file)
        os.close(file)
        os.link(name, f"{offset:016d}", dst_dir_fd=self._shard)
        os.fsync(self._shard)
        os.unlink(name)

    def _open_shard(self, number: int) -> None:
        self.close()
        folder = self._root / f"{number:010d}"
        folder.mkdir()
        self._number, self._shard = number, os.open(folder, os.O_RDONLY | os.O_DIRECTORY)

    def close(self) -> None:
        if self._shard >= 0:
            os.close(self._shard)
            self._shard = -1


RAW: dict[str, Callable[[str], Raw]] = {
    "memory": RawMemory,
    "files": RawFiles,
    "sqlite": RawSqlite,
    "postgres": RawPostgres,
    "postgres-log": RawPostgresLog,
    "mariadb": RawMysql,
    "redis": RawRedis,
    "nats": RawNats,
}
