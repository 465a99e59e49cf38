"""The state of the page at any offset that the log still has, or at a time.

A past state is made from the nearest known one. States are kept while the log is read, `EVERY` entries
apart, so that the next look at the past is near one of them.
"""

import zlib
from bisect import bisect_right, insort

import msgspec

from coord.core.errors import NotFound
from coord.core.page.state import PageState
from coord.sdk.log_reader import first_offset, newest_offset
from coord.sdk.page.snapshot import replay, take_snapshot
from coord.stores.contract import Store

EVERY = 5_000
KEPT_MAX = 64


class PastStates:
    """Past states of one log."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._offsets: list[int] = []
        self._states: dict[int, bytes] = {}

    def first(self) -> int:
        """Return the oldest offset whose state can be known: 0, unless the beginning of the log is gone."""
        first = first_offset(self._store)
        if first <= 1:
            return 0
        known = [offset for offset in self._offsets if offset >= first - 1]
        if not known:
            self.keep(take_snapshot(self._store))
            known = self._offsets
        return known[0]

    def at(self, offset: int) -> PageState:
        """Return the state after an entry."""
        newest, oldest = newest_offset(self._store), self.first()
        if not oldest <= offset <= newest:
            raise NotFound(
                f"the state at {offset} is not known", hint=f"choose an offset from {oldest} to {newest}"
            )
        number = bisect_right(self._offsets, offset)
        nearest = self._offsets[number - 1] if number else 0
        state = _decode(self._states[nearest]) if nearest else PageState()
        while offset - state.offset > EVERY:
            replay(self._store, state, state.offset + EVERY)
            self.keep(state)
        return replay(self._store, state, offset)

    def offset_at(self, time_ms: int) -> int:
        """Return the newest offset with a known state that is not later than a time."""
        return offset_at(self._store, time_ms, self.first())

    def keep(self, state: PageState) -> None:
        """Keep a state; every other one makes room if there are too many."""
        if state.offset in self._states:
            return
        self._states[state.offset] = zlib.compress(msgspec.json.encode(state), 1)
        insort(self._offsets, state.offset)
        if len(self._offsets) > KEPT_MAX:
            for offset in self._offsets[1::2]:
                del self._states[offset]
            del self._offsets[1::2]


def offset_at(store: Store, time_ms: int, oldest: int) -> int:
    """Return the newest offset that is not later than a time, but at least the oldest one."""
    low, high = oldest, newest_offset(store)
    while low < high:
        middle = (low + high + 1) // 2
        (entry, *_) = store.tail(middle - 1, 1)
        low, high = (middle, high) if entry.at <= time_ms else (low, middle - 1)
    return low


def _decode(kept: bytes) -> PageState:
    return msgspec.json.decode(zlib.decompress(kept), type=PageState)
