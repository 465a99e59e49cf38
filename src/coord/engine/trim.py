"""Trim the log: remove entries that are older, or more, than the settings keep.

Entries report what happened; records hold what is. So no rule depends on an entry, and trimming changes no
state. A follower of the log keeps a cursor record, and entries that it has not read stay, until the log is
`HELD_FACTOR` times as old or as long as the settings say.

`coord sweep` trims as far as it may. An engine trims one step when its commit has an offset that
`TRIM_EVERY` divides: exactly one process has that commit, and no other pays anything.
"""

from typing import NamedTuple

from coord.core import keys
from coord.core.errors import Trimmed
from coord.core.followers import Cursor
from coord.core.records import decode
from coord.core.settings import Settings
from coord.engine.engine import TRIM_EVERY
from coord.stores.contract import Entry, Store

STEP_ENTRIES = 10_000
"""How many entries one call of the store removes, so that commits can run in between."""
ORDINARY_STEP = 2 * TRIM_EVERY
"""How many entries an ordinary command removes: more than come until the next trim, and soon done."""
SLACK = 10
"""An engine trims only if a tenth of the log can go: a trim may cost a snapshot of all records."""
HELD_FACTOR = 2
NEWEST_KEPT = 1000
"""The newest entries always stay: an engine finds the commit there whose reply was lost."""
EPOCH_BITS = 40
"""Stores that may lose commits count an epoch in the higher bits of an offset."""
DAY_MS = 24 * 3600 * 1000
CURSORS_MAX = 1000


class LogState(NamedTuple):
    """How far the log reaches, what the settings keep, and which follower holds trimming back."""

    first: int
    head: int
    first_ms: int
    head_ms: int
    days: int
    entries: int
    keep_from: int
    """Entries below this offset may go."""
    held_by: str = ""
    """The follower without which more entries could go."""

    @property
    def removable(self) -> int:
        """The number of entries that may go."""
        return max(0, self.keep_from - self.first)


def trim_log(store: Store, now: int, *, whole: bool) -> int:
    """Trim the log; return how many entries went.

    With `whole` all that may go; otherwise one step, and only if it is worth it.
    """
    state = log_state(store, now)
    if not whole:
        worth = state.removable >= max(TRIM_EVERY, (state.head - state.first) // SLACK)
        step = min(state.keep_from, state.first + ORDINARY_STEP)
        if worth:
            store.trim(step)
        return step - state.first if worth else 0
    for before in range(state.first + STEP_ENTRIES, state.keep_from, STEP_ENTRIES):
        store.trim(before)
    if state.removable:
        store.trim(state.keep_from)
    return state.removable


def log_state(store: Store, now: int) -> LogState:
    """Return how far the log reaches, and which of its entries may go."""
    read = store.load([keys.SETTINGS])[keys.SETTINGS]
    settings = decode(read.value, Settings, read.key) if read.value is not None else Settings()
    oldest = _first_entry(store)
    head, head_ms = store.seen
    if oldest is None:
        return LogState(0, head, 0, head_ms, settings.log_retention_days, settings.log_retention_entries, 0)
    days, entries = settings.log_retention_days, settings.log_retention_entries
    by_settings = _keep_from(store, oldest, days, entries, now)
    slowest, name = _slowest_cursor(store)
    keep_from, held_by = by_settings, ""
    if slowest + 1 < by_settings:
        bound = _keep_from(store, oldest, days * HELD_FACTOR, entries * HELD_FACTOR, now)
        keep_from, held_by = max(slowest + 1, bound, oldest.offset), name
    return LogState(oldest.offset, head, oldest.at, head_ms, days, entries, keep_from, held_by)


def _first_entry(store: Store) -> Entry | None:
    try:
        found = store.tail(0, 1)
    except Trimmed as trimmed:
        found = store.tail(trimmed.first - 1, 1)
    return found[0] if found else None


def _keep_from(store: Store, oldest: Entry, days: int, entries: int, now: int) -> int:
    """Return the first offset that a retention keeps; 0 days or entries keep all."""
    head = store.seen.offset
    same_epoch = head >> EPOCH_BITS == oldest.offset >> EPOCH_BITS
    by_count = head + 1 - entries if entries and same_epoch else 0
    by_age = _first_since(store, oldest, now - days * DAY_MS) if days else 0
    return max(oldest.offset, min(max(by_count, by_age), head + 1 - NEWEST_KEPT))


def _first_since(store: Store, oldest: Entry, since_ms: int) -> int:
    """Return the offset of the first entry that is not older than a time, by bisection."""
    low, high = oldest.offset, store.seen.offset + 1
    if oldest.at >= since_ms:
        return low
    while low < high:
        middle = (low + high) // 2
        found = store.tail(middle - 1, 1)  # after a lost epoch the next entry may be much later
        if found and found[0].at < since_ms:
            low = found[0].offset + 1
        else:
            high = middle
    return low


def _slowest_cursor(store: Store) -> tuple[int, str]:
    """Return the lowest offset that a follower has read, and the name of the follower."""
    found = store.scan(keys.CURSOR_PREFIX, by="key", limit=CURSORS_MAX)
    cursors = [
        (decode(each.value, Cursor, each.key).offset, keys.parts(each.key)[1])
        for each in found
        if each.value is not None
    ]
    return min(cursors, default=(store.seen.offset, ""))
