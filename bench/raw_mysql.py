"""The raw limit of MySQL and MariaDB: the tables and session settings of the store behind one session.

Per commit one transaction, sent as one packet that was written before: an insert of all rows (`… ON DUPLICATE
KEY UPDATE`), the insert of the entry, the update of the head. No lock, no look, no guard.
"""

from time import perf_counter

import msgspec

import coord
from bench.workload import TENANT
from coord.stores.contract import Commit
from coord.stores.mysql.connection import Address
from coord.stores.mysql.statements import OR_UPDATE, PUT, quoted

ENTRY = "INSERT INTO {entry} VALUES (%d, %d, 0, %d, '%b', '%b')"
HEAD = "; UPDATE {log} SET head = %d, at = %d WHERE id = %d; COMMIT"


class RawMysql:
    """One session with the tables."""

    def __init__(self, url: str) -> None:
        database = coord.open_store(url)
        database.log(TENANT)
        database.close()
        self._offset = 0
        address = Address(url)
        self._named = address.sql.named
        self._session = address.connect()
        ((self._log,),) = self._session.ask(address.sql.find_log % quoted(TENANT))[0]

    def play(self, commits: list[Commit]) -> float:
        prepared = [self._packet(commit) for commit in commits]
        session = self._session
        began = perf_counter()
        for packet in prepared:
            session.ask(packet)
        return perf_counter() - began

    def _packet(self, commit: Commit) -> bytes:
        self._offset += 1
        log, offset = self._log, self._offset
        rows = [
            b"(%d,'%b',%d,0,'%b','%b')"
            % (log, quoted(key), offset, put.value.replace(b"'", b"''"), quoted(put.index_key))
            for key, put in commit.puts.items()
        ]
        rows += [b"(%d,'%b',%d,0,NULL,NULL)" % (log, quoted(key), offset) for key in commit.deletes]
        parts = [b"START TRANSACTION; "]
        if rows:
            parts += [self._named(PUT), b",".join(rows), OR_UPDATE]
        events = msgspec.msgpack.encode(commit.events).replace(b"'", b"''")
        id_ = commit.id.replace(b"'", b"''")
        parts += [self._named(ENTRY) % (log, offset, commit.at, id_, events)]
        parts += [self._named(HEAD) % (offset, commit.at, log)]
        return b"".join(parts)

    def close(self) -> None:
        self._session.close()
