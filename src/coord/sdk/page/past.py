"""The state of the page at any offset that the log still has, or at a time.

A past state is made from the nearest known one. States are kept while the log is read, `EVERY` entries apart
(`kept_states.py`), so that the next look at the past is near one of them, and so that something is known of
what comes after a trim.
"""

from contextlib import suppress

from coord.core.errors import NotFound, Trimmed
from coord.core.page.state import PageState
from coord.sdk.log_reader import first_offset, is_beginning, newest_offset
from coord.sdk.page.kept_states import KeptStates, StateAt
from coord.sdk.page.snapshot import replay, take_snapshot
from coord.stores.contract import Store
from coord.stores.database import EPOCH_BITS

EVERY = 5_000
TRIES = 5
"""How often a state is made again because the log was trimmed while it was read."""


class PastStates:
    """Past states of one log."""

    def __init__(self, store: Store, kept: KeptStates | None = None) -> None:
        self._store = store
        self.kept = kept if kept is not None else KeptStates()
        self._checked: set[tuple[StateAt, int]] = set()
        """The states whose entry the log had in an epoch: before the next one it may have lost some."""

    def first(self) -> int:
        """Return the oldest offset whose state can be known: where the log began, unless that is gone."""
        first = first_offset(self._store)
        if is_beginning(first):
            return first
        known = self._known(first)
        if not known:
            self.kept.keep(take_snapshot(self._store))
            known = self._known(first)
        return known[0].offset

    def knows(self, first: int) -> bool:
        """Whether some state is known from which the log goes on, without a look at the records."""
        return is_beginning(first) or bool(self._known(first))

    def _known(self, first: int) -> list[StateAt]:
        """Return the kept states from which this log goes on without a gap."""
        return [each for each in self.kept.known() if each.offset >= first - 1 and self._is_ours(each, first)]

    def _is_ours(self, kept_at: StateAt, first: int) -> bool:
        """Whether this log has the entry of a state: somebody may have restored an older store."""
        checked = kept_at, self._store.seen.offset >> EPOCH_BITS
        if checked in self._checked or kept_at.offset < max(first, 1):
            return True
        try:
            (entry, *_) = self._store.tail(kept_at.offset - 1, 1) or (None,)
        except Trimmed as error:  # since `first` was read
            return kept_at.offset >= error.first - 1
        if entry is None or (entry.offset, entry.at) != kept_at:
            self.kept.remove(kept_at)
            return False
        self._checked.add(checked)
        return True

    def at(self, offset: int, *, nearest: bool = False) -> PageState:
        """Return the state after an entry, or with `nearest` the one next to it that is known."""
        for _ in range(TRIES - 1):
            with suppress(Trimmed):
                return self._at(offset, nearest=nearest)
        return self._at(offset, nearest=nearest)

    def _at(self, offset: int, *, nearest: bool) -> PageState:
        newest, oldest = newest_offset(self._store), self.first()
        if nearest:
            offset = min(max(offset, oldest), newest)
        if not oldest <= offset <= newest:
            raise NotFound(
                f"the state at {offset} is not known", hint=f"choose an offset from {oldest} to {newest}"
            )
        state = self._before(offset, oldest)
        if state is None:  # a kept state was damaged, so the past begins later
            return self._at(offset, nearest=nearest)
        while offset - state.offset > EVERY:
            before = state.offset
            replay(self._store, state, offset, EVERY, gaps=False)
            if state.offset in (before, offset):  # offsets leap, so there are fewer entries
                break
            self.kept.keep(state)
        return replay(self._store, state, offset, gaps=False)

    def _before(self, offset: int, oldest: int) -> PageState | None:
        """Return the newest kept state up to an offset; that of a log without entries is known."""
        for each in reversed(self._known(first_offset(self._store))):
            if oldest <= each.offset <= offset and (found := self.kept.read(each)) is not None:
                return found
        return PageState(oldest) if is_beginning(oldest) else None

    def offset_at(self, time_ms: int) -> int:
        """Return the newest offset with a known state that is not later than a time."""
        return offset_at(self._store, time_ms, self.first())

    def keep_next(self, newest: int) -> int:
        """Keep the state `EVERY` entries after the newest kept one, if the log has it; return its offset.

        States from which the log does not go on any more are removed.
        """
        first, oldest = first_offset(self._store), self.first()
        for kept_at in self.kept.known():
            if kept_at.offset < first - 1:
                self.kept.remove(kept_at)
        last = max((each.offset for each in self._known(first)), default=oldest)
        if newest - last < EVERY:
            return last
        state = self._before(last, last)
        if state is None:
            return last
        try:
            self.kept.keep(replay(self._store, state, newest, EVERY, gaps=False))
        except Trimmed:  # while it was read; the next call begins where the log does now
            return last
        return state.offset


def offset_at(store: Store, time_ms: int, oldest: int) -> int:
    """Return the newest offset that is not later than a time, but at least the oldest one."""
    low, high = oldest, newest_offset(store)
    while low < high:
        middle = (low + high + 1) // 2
        (entry, *_) = store.tail(middle - 1, 1)
        low, high = (middle, high) if entry.at <= time_ms else (low, middle - 1)
    return low
