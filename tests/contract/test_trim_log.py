"""Trimming by age and by number, on every store: what goes, what stays, and what holds it back."""

import pytest

from coord.core import keys
from coord.core.errors import Trimmed
from coord.core.followers import Cursor
from coord.core.records import encode
from coord.core.settings import Settings
from coord.engine import trim
from coord.engine.trim import DAY_MS, log_state, trim_log
from coord.stores.contract import Commit, Put, Record, Store
from tests.support.stores.steps import PLENTY, head, version

T0 = 1_700_000_000_000


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trim, "NEWEST_KEPT", 2)
    for step in ("STEP_ENTRIES", "ORDINARY_STEP"):
        monkeypatch.setattr(trim, step, 3)
    monkeypatch.setattr(trim, "TRIM_EVERY", 4)


def put(store: Store, key: str, value: bytes, at: int = T0) -> int:
    return store.commit(Commit({key: version(store, key)}, {key: Put(value)}, at=at, id=b"i"))


def settings(store: Store, days: int, entries: int, at: int = T0) -> None:
    record = Settings(log_retention_days=days, log_retention_entries=entries)
    put(store, keys.SETTINGS, encode(record), at)


def fill(store: Store, days: int) -> None:
    """Write one entry a day."""
    for day in range(days):
        put(store, f"k{day % 5}", b"{}", T0 + day * DAY_MS)


def records(store: Store) -> list[Record]:
    return store.scan("", by="key", limit=PLENTY)


def first(store: Store) -> int:
    try:
        return store.tail(0, 1)[0].offset
    except Trimmed as trimmed:
        return trimmed.first


def test_old_entries_go(store: Store) -> None:
    """SCH-21: entries older than the retention go, the newest of them stays readable, records stay."""
    settings(store, days=10, entries=0)
    fill(store, 30)
    before, newest = records(store), head(store)
    assert trim_log(store, T0 + 29 * DAY_MS, whole=True) == 20
    assert (first(store), head(store)) == (21, newest)
    assert records(store) == before
    assert store.tail(20, 1)[0].at == T0 + 19 * DAY_MS
    assert trim_log(store, T0 + 29 * DAY_MS, whole=True) == 0


def test_surplus_entries_go(store: Store) -> None:
    """SCH-21: more entries than the retention keeps go, the oldest first."""
    settings(store, days=0, entries=12)
    fill(store, 20)
    before = records(store)
    assert trim_log(store, T0, whole=True) == 9
    assert [entry.offset for entry in store.tail(9, 99)] == list(range(10, 22))
    assert records(store) == before


def test_nothing_goes_if_the_settings_say_so(store: Store) -> None:
    """Days and entries of 0 keep everything; the newest entries stay whatever the settings say."""
    settings(store, days=0, entries=0)
    fill(store, 8)
    assert trim_log(store, T0 + 9999 * DAY_MS, whole=True) == 0
    settings(store, days=1, entries=1, at=T0 + 8 * DAY_MS)
    assert trim_log(store, T0 + 9999 * DAY_MS, whole=True) == 8
    assert (first(store), head(store)) == (9, 10)


def test_an_empty_log(store: Store) -> None:
    """There is nothing to trim, and nothing breaks."""
    assert trim_log(store, T0, whole=True) == 0
    assert log_state(store, T0).head == 0


def test_a_follower_holds_entries_back_up_to_a_bound(store: Store) -> None:
    """SCH-21: entries that a follower has not read stay, until the log is twice as long as it should be."""
    settings(store, days=0, entries=10)
    put(store, keys.cursor("ledger"), encode(Cursor(offset=3)))
    put(store, keys.cursor("alerts"), encode(Cursor(offset=15)))
    fill(store, 13)
    state = log_state(store, T0)
    assert (state.first, state.head, state.keep_from, state.held_by) == (1, 16, 4, "ledger")
    assert trim_log(store, T0, whole=True) == 3
    assert store.tail(3, 1)[0].offset == 4, "the follower goes on where it was"
    fill(store, 10)
    assert log_state(store, T0).held_by == "ledger"
    assert trim_log(store, T0, whole=True) == 3
    assert (first(store), head(store)) == (7, 26), "the bound: 20 entries, twice the retention"


def test_an_engine_trims_a_step_if_it_is_worth_it(store: Store) -> None:
    """One commit in many pays for one bounded step, and only if enough can go."""
    settings(store, days=0, entries=10)
    fill(store, 12)
    assert trim_log(store, T0, whole=False) == 0, "three entries are not worth it"
    fill(store, 3)
    assert trim_log(store, T0, whole=False) == 3
    assert first(store) == 4
