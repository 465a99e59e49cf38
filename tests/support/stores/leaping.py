"""Memory stores whose offsets leap into a new epoch, as those of Redis and NATS do after a restart."""

from typing import Any

from coord.stores.contract import Entry
from coord.stores.database import EPOCH_BITS
from coord.stores.memory import MemoryStore


class LeapingStore(MemoryStore):
    """A memory store that may have no entry at an offset."""

    def _entries(self, after: int, limit: int) -> list[Entry]:
        return [entry for entry in self._log if entry.offset > after][:limit]

    def _forget(self, floor: int) -> None:
        self._log[:] = [entry for entry in self._log if entry.offset >= floor]


def leap(store: Any, *, lost: int = 0) -> int:
    """Begin a new epoch in a memory store that lost some entries; return the offset of the next one."""
    log = getattr(store, "_store", store)
    log.__class__ = LeapingStore
    del log._log[len(log._log) - lost :]
    log._state.offset = ((log._state.offset >> EPOCH_BITS) + 1 << EPOCH_BITS) + 1_000_000
    return int(log._state.offset) + 1
