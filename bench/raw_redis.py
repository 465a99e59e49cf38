"""The raw limit of Redis: the keys of the store behind one plain connection.

Per commit one transaction, packed before the clock starts and sent at once, with the very commands that the
store's script comes to: `XADD` of the entry, `HSET` of all records, the changes of the indexes, the new head.
No script, no read, no expectation; the lines of the answer are counted, not decoded.
"""

from collections.abc import Iterable
from time import perf_counter
from typing import Any

import msgspec
import redis

from bench.workload import TENANT
from coord.stores.contract import Commit
from coord.stores.redis.records import HEADER
from coord.stores.redis.scripts import keys_of

RECEIVED_AT_ONCE = 65_536
END = b"\r\n"


class RawRedis:
    """One connection to the keys."""

    def __init__(self, url: str) -> None:
        server, _, prefix = url.partition("?prefix=")
        self._connection: Any = redis.from_url(server).connection_pool.get_connection()
        self._keys = keys_of(prefix, TENANT)
        self._offset = 0
        self._lines: dict[str, str | None] = {}
        """Of every key there ever was; None of a tombstone."""

    def play(self, commits: list[Commit]) -> float:
        prepared = [self._packed(commit) for commit in commits]
        socket = self._connection._sock
        began = perf_counter()
        for lines, command in prepared:
            socket.sendall(command)
            answer = b""
            while answer.count(END) < lines:
                answer += socket.recv(RECEIVED_AT_ONCE)
            assert END + b"-" not in answer, "no command is refused"
        return perf_counter() - began

    def _packed(self, commit: Commit) -> tuple[int, bytes]:
        """Return a transaction, and how many lines its answer has."""
        _, _, place, record, key, index, dead, entry = self._keys
        self._offset += 1
        puts, gone, old, mark = commit.puts, commit.deletes, self._lines, b"%0*d" % (HEADER, self._offset)
        rows = [(name, b"%b%b\0%b" % (mark, put.index_key.encode(), put.value)) for name, put in puts.items()]
        new = {name: put.index_key for name, put in puts.items()} | dict.fromkeys(gone)
        moved = [name for name in new if (old.get(name) or "") != (new[name] or "")]
        events = msgspec.msgpack.encode(commit.events)
        words = ("at", commit.at, "id", commit.id, "events", events, "checksum", self._offset)
        commands: list[tuple[Any, ...]] = [("XADD", entry, f"{self._offset}-0", *words)]
        for command, of, cells in (
            ("HSET", record, _flat([*rows, *((name, mark) for name in gone)])),
            ("ZADD", key, _flat((0, name) for name in puts if old.get(name) is None)),
            ("ZREM", key, [name for name in gone if old.get(name) is not None]),
            ("ZREM", index, [f"{old[name]}\0{name}" for name in moved if old.get(name)]),
            ("ZADD", index, _flat((0, f"{new[name]}\0{name}") for name in moved if new[name])),
            ("ZREM", dead, [name for name in puts if name in old and old[name] is None]),
            ("ZADD", dead, _flat((self._offset, name) for name in gone)),
        ):
            if cells:
                commands.append((command, of, *cells))
        commands.append(("HSET", place, "head", self._offset, "at", commit.at))
        old |= new
        packed = self._connection.pack_commands([("MULTI",), *commands, ("EXEC",)])
        # OK, a QUEUED for each, how many answers follow, and these: an id has its size before it.
        return 1 + len(commands) + 1 + len(commands) + 1, b"".join(packed)

    def close(self) -> None:
        self._connection.disconnect()


def _flat(pairs: Iterable[tuple[Any, Any]]) -> list[Any]:
    return [cell for pair in pairs for cell in pair]
