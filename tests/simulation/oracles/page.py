"""The page: its state, folded from the log, is the state that the records have."""

from typing import Any

from coord.core.page.rows import ESTIMATED
from coord.core.page.state import PageState
from coord.sdk.log_reader import first_offset
from coord.sdk.page.snapshot import replay, take_snapshot
from coord.stores.contract import Store
from tests.linearizability.ledger import require


def comparable(state: PageState) -> dict[str, Any]:
    """Return the tables without what only the log knows."""
    return {
        table: {
            key: {name: value for name, value in row.items() if name not in ESTIMATED.get(table, ())}
            for key, row in rows.items()
        }
        for table, rows in state.tables.items()
    }


def check_page(store: Store, before: PageState) -> PageState:
    """Compare the records with an earlier state and the log since then; return the present state."""
    now = take_snapshot(store)
    if first_offset(store) > before.offset + 1:
        return now
    by_log, by_records = comparable(replay(store, before, now.offset)), comparable(now)
    for table, rows in by_records.items():
        for key in sorted({*rows, *by_log[table]}):
            found, expected = by_log[table].get(key), rows.get(key)
            require(found == expected, f"{table} {key!r}: the log says {found}, the records {expected}")
    return now
