"""The state of the page as the store has it now: its records at one read point, and the newest entries."""

from coord.core.errors import Trimmed
from coord.core.page.rows import PREFIXES, tables_of
from coord.core.page.state import PageState, apply_entry
from coord.core.ranges import Range
from coord.stores.contract import Store

ROWS_MAX = 1_000_000
RECENT_ENTRIES = 5_000
"""How many of the newest entries are read for what only the log has: messages, merges, refusals."""
PAGE_ENTRIES = 1_000
SEEN = ("file", "hung_s", "context_percent", "seen_ms")
"""What the newest entries say of a session and its record does not."""


def take_snapshot(store: Store) -> PageState:
    """Return the state after the newest entry."""
    loaded = store.load((), [Range(prefix, "key", ROWS_MAX) for prefix in PREFIXES])
    offset = loaded.read_point.offset
    tables = tables_of(record for found in loaded.ranges for record in found)
    recent = PageState(offset=max(0, offset - RECENT_ENTRIES))
    recent.tables["sessions"] = {name: {} for name in tables["sessions"]}
    replay(store, recent, offset)
    for name, session in tables["sessions"].items():
        seen = recent.tables["sessions"].get(name, {})
        session |= {field: seen[field] for field in SEEN if field in seen}
    return PageState(offset, recent.at, tables, recent.recent)


def replay(
    store: Store, state: PageState, until: int, entries_max: int | None = None, *, gaps: bool = True
) -> PageState:
    """Apply the entries after a state up to an offset, and return it; what was trimmed is passed over.

    `entries_max`: how many at most. Offsets leap where a new epoch begins, so they count no entries.
    Without `gaps` it raises `Trimmed` if something was: the state is that of no offset then.
    """
    left = until - state.offset if entries_max is None else entries_max
    while state.offset < until and left > 0:
        try:
            page = store.tail(state.offset, min(PAGE_ENTRIES, left))
        except Trimmed as error:
            if not gaps:
                raise
            state.offset = max(state.offset + 1, error.first - 1)
            continue
        for entry in page:
            if entry.offset > until:
                return state
            apply_entry(state, entry.offset, entry.at, entry.events)
        if not page:
            return state
        left -= len(page)
    return state
