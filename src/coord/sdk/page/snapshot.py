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


def replay(store: Store, state: PageState, until: int) -> PageState:
    """Apply the entries after a state up to an offset, and return it; what was trimmed is passed over."""
    while state.offset < until:
        try:
            page = store.tail(state.offset, min(PAGE_ENTRIES, until - state.offset))
        except Trimmed as error:
            state.offset = max(state.offset + 1, error.first - 1)
            continue
        if not page:
            return state
        for entry in page:
            if entry.offset > until:
                return state
            apply_entry(state, entry.offset, entry.at, entry.events)
    return state
