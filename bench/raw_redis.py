"""The raw limit of Redis: the keys of the store behind one plain connection.

Per commit one transaction, packed before the clock starts and sent at once: `HSET` of all records, `ZADD` of
their keys and lines, tombstones, `XADD` of the entry, the new head. No script, no read, no expectation; a
line that was left is not taken away.
"""

from time import perf_counter
from typing import Any

import msgspec
import redis

from bench.workload import TENANT
from coord.stores.redis_records import packed
from coord.stores.redis_scripts import keys_of
from coord.stores.store import Commit


class RawRedis:
    """One connection to the keys."""

    def __init__(self, url: str) -> None:
        server, _, prefix = url.partition("?prefix=")
        self._connection: Any = redis.from_url(server).connection_pool.get_connection()
        self._keys = keys_of(prefix, TENANT)
        self._offset = 0

    def play(self, commits: list[Commit]) -> float:
        prepared = [self._packed(commit) for commit in commits]
        connection = self._connection
        began = perf_counter()
        for count, command in prepared:
            connection.send_packed_command(command)
            for _ in range(count):
                connection.read_response()
        return perf_counter() - began

    def _packed(self, commit: Commit) -> tuple[int, list[bytes]]:
        _, _, place, record, key, line, dead, entry = self._keys
        self._offset += 1
        mark = b"%016d" % self._offset
        _, _, texts = packed(commit.puts.values())
        rows, places, at = list[Any](), list[Any](), 0
        for name, put in commit.puts.items():
            size = len(put.line.encode()) + 1 + len(put.value)
            rows += [name, mark + texts[at : at + size]]
            places += [0, f"{put.line}\0{name}"] if put.line else []
            at += size
        rows += [cell for name in commit.deletes for cell in (name, mark)]
        events = msgspec.msgpack.encode(commit.events)
        words = ("at", commit.at, "id", commit.id, "events", events)
        commands: list[tuple[Any, ...]] = [("MULTI",), ("XADD", entry, f"{self._offset}-0", *words)]
        for command, of, cells in (
            ("HSET", record, rows),
            ("ZADD", key, [cell for name in commit.puts for cell in (0, name)]),
            ("ZADD", line, places),
            ("ZREM", key, commit.deletes),
            ("ZADD", dead, [cell for name in commit.deletes for cell in (self._offset, name)]),
        ):
            if cells:
                commands.append((command, of, *cells))
        commands += [("HSET", place, "head", self._offset, "at", commit.at), ("EXEC",)]
        return len(commands), self._connection.pack_commands(commands)

    def close(self) -> None:
        self._connection.disconnect()
