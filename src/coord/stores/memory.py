"""The memory store: the state of a log and nothing else. Every other store is tested against it."""

import threading

from coord.stores.contract import Commit, Entry, Limits
from coord.stores.database import Database
from coord.stores.local.clock import host_now_ms
from coord.stores.log.store import LogStore


class MemoryStore(LogStore):
    """The log of one tenant in this process; it ends with the process."""

    limits = Limits(commit_bytes=8 * 1024 * 1024, durable=False, shared=False)

    def __init__(self) -> None:
        super().__init__()
        self._log: list[Entry] = []
        self._first = 1
        self._grown = threading.Condition(self._lock)

    def _append(self, offset: int, commit: Commit) -> Commit:
        self._log.append(Entry(offset, commit.at, commit.id, list(commit.events)))
        return commit

    def _entries(self, after: int, limit: int) -> list[Entry]:
        start = max(0, after + 1 - self._first)
        return self._log[start : start + limit]

    def _forget(self, floor: int) -> None:
        del self._log[: max(0, floor - self._first)]
        self._first = max(self._first, floor)

    def _committed(self, offset: int) -> None:
        with self._grown:
            self._grown.notify_all()

    def wait(self, after: int, timeout: float) -> bool:
        with self._grown:
            return self._grown.wait_for(lambda: self._closed or self._state.offset > after, timeout)

    def now(self) -> int:
        return host_now_ms()

    def close(self) -> None:
        super().close()
        self._committed(0)


class MemoryDatabase(Database[MemoryStore]):
    """All tenants of one memory store."""

    def __init__(self, url: str, store_id: str = "memory") -> None:
        super().__init__(url, store_id)

    def _open_log(self, tenant: str) -> MemoryStore:
        return MemoryStore()
