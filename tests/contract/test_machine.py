"""Every store against a model: random commits, scans, trims and reopenings, and after each the two agree.

The model is the memory store; the memory store itself is held against `naive.py`.
"""

import itertools
import math
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from coord.core.errors import Conflict, Trimmed
from coord.core.ranges import Range
from coord.stores.contract import Commit, Loaded, Put, Record, Store
from coord.stores.database import Database
from coord.stores.log import sole_writer
from coord.stores.memory import MemoryStore
from coord.stores.open import open_store
from tests.conftest import SOAK
from tests.support.stores.naive import NaiveStore
from tests.support.stores.steps import PLENTY

PIECES = ["a", "b", "B", "/", "a/", "é", "\ud7ff", "\ue000", "\U0010ffff", "~", "%", "0"]
TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=3).map("".join)
KEYS = st.sampled_from(
    ["a", "a/", "a/b", "a/é", "a\ud7ff", "a\ue000", "B", "b", "b\U0010ffff", "k1", "k2", "k3"]
)
LINES = st.one_of(st.just(""), TEXTS)
VALUES = st.one_of(st.sampled_from([b"", b"\0", b"x" * 5000]), st.binary(max_size=9))
PREFIXES = st.one_of(st.just(""), TEXTS)
PLACES = st.one_of(st.just(("", "")), st.tuples(LINES, KEYS))
RANGES = st.builds(Range, PREFIXES, st.sampled_from(["key", "index_key"]), st.integers(1, 4), PLACES)
WHICH = st.integers(0, 1)
"""Which of the two store objects acts."""
STALE = st.sampled_from([0, 0, 0, 0, 0, 0, 0, 1, -1, 7])
"""What is added to an expected version: mostly nothing."""


def outcome(act: Callable[[], Any]) -> Any:
    """Return what a call gives, or what it refuses with."""
    try:
        return act()
    except Conflict as conflict:
        return "conflict", conflict.keys
    except Trimmed as trimmed:
        return "trimmed", trimmed.first


class Opened:
    """A store opened twice, as two processes would, so that each has to notice what the other did."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.databases: list[Database[Any]] = [open_store(url)]
        self.shared = bool(self.databases[0].log("local").limits.shared)
        if self.shared:
            self.databases.append(open_store(url))

    def log(self, tenant: str) -> list[Store]:
        """Return the tenant's store objects: two, which are one where nothing is shared."""
        return [database.log(tenant) for database in (self.databases * 2)[:2]]

    def open_again(self, which: int) -> None:
        self.databases[which].close()
        self.databases[which] = open_store(self._url)

    def close(self) -> None:
        for database in self.databases:
            database.close()


class StoreMachine(RuleBasedStateMachine):
    """Does the same to a store and to its model."""

    opened: Opened
    tenants = itertools.count(1)

    def __init__(self) -> None:
        super().__init__()
        self.tenant = f"tenant-{next(self.tenants)}"
        self.stores = self.opened.log(self.tenant)
        self.model: Any = MemoryStore() if self.opened.shared else NaiveStore()
        self.known: dict[str, int] = {}
        self.looks: list[Loaded] = []
        self.looker = 0

    def both(self, which: int, act: Callable[[Any], Any]) -> Any:
        """Do it to the model and through one of the store objects, and compare."""
        expected = outcome(lambda: act(self.model))
        assert outcome(lambda: act(self.stores[which])) == expected
        return expected

    @rule(which=WHICH, keys=st.lists(KEYS, max_size=4))
    def load(self, which: int, keys: list[str]) -> None:
        found = self.both(which, lambda store: store.load(keys))
        self.known |= {key: record.version for key, record in found.items()}

    @rule(
        which=WHICH,
        puts=st.dictionaries(KEYS, st.builds(Put, VALUES, LINES), max_size=4),
        deletes=st.lists(KEYS, max_size=2, unique=True),
        reads=st.lists(KEYS, max_size=2),
        events=st.lists(VALUES, max_size=2),
        at=st.integers(0, 2**53),
        fresh=st.booleans(),
        stale=STALE,
    )
    def commit(
        self,
        which: int,
        puts: dict[str, Put],
        deletes: list[str],
        reads: list[str],
        events: list[bytes],
        at: int,
        fresh: bool,
        stale: int,
    ) -> None:
        gone = [key for key in deletes if key not in puts]
        keys = [*puts, *gone, *reads]
        expected_versions = {key: record.version for key, record in self.model.load(keys).items()}
        if not fresh:
            expected_versions |= {key: self.known[key] for key in keys if key in self.known}
        if keys and stale:
            expected_versions[keys[0]] = max(0, expected_versions[keys[0]] + stale)
        commit = Commit(expected_versions, puts, gone, events, at, b"%d" % at)
        self.both(which, lambda store: store.commit(commit))

    @rule(which=WHICH, keys=st.lists(KEYS, min_size=1, max_size=4, unique=True), allow_stale=st.booleans())
    def look(self, which: int, keys: list[str], allow_stale: bool) -> None:
        found = self.stores[which].load(keys, allow_stale=allow_stale)
        assert found.maybe_stale <= allow_stale, "nobody who did not ask for it is told the past"
        assert found.maybe_stale or found == self.model.load(keys)
        self.looks.append(found)

    @rule(which=WHICH, keys=st.lists(KEYS, min_size=1, max_size=3, unique=True), theirs=KEYS, value=VALUES)
    def look_beside_another(self, which: int, keys: list[str], theirs: str, value: bytes) -> None:
        """Two commits through one object and one through the other: a stale load may miss the last."""
        before = {}
        for writer, key in ((which, keys[0]), (which, keys[0]), (1 - which, theirs)):
            before = self.model.load(keys)
            commit = Commit({key: self.model.load([key])[key].version}, {key: Put(value)})
            self.both(writer, lambda store: store.commit(commit))  # noqa: B023
        found = self.stores[which].load(keys, allow_stale=True)
        assert found == self.model.load(keys) or (found.maybe_stale and found == before)
        self.looks.append(found)

    @precondition(lambda self: self.looks)
    @rule(which=WHICH, back=st.integers(0, 3), value=VALUES)
    def commit_as_of(self, which: int, back: int, value: bytes) -> None:
        loaded = self.looks[-1 - back % len(self.looks)]
        expected_versions = {key: record.version for key, record in loaded.items()}
        plain = Commit(expected_versions, {key: Put(value) for key in loaded})
        vouched = replace(plain, read_point=loaded.read_point)
        self.both(which, lambda store: store.commit(plain if store is self.model else vouched))

    @rule(which=WHICH, index_keys=st.dictionaries(KEYS, TEXTS, min_size=2, max_size=5))
    def line_up(self, which: int, index_keys: dict[str, str]) -> None:
        expected_versions = {key: record.version for key, record in self.model.load(index_keys).items()}
        commit = Commit(
            expected_versions, {key: Put(b"in line", index_key) for key, index_key in index_keys.items()}
        )
        self.both(which, lambda store: store.commit(commit))

    @rule(which=WHICH, keys=st.lists(KEYS, max_size=3), ranges=st.lists(RANGES, max_size=4))
    def load_ranges(self, which: int, keys: list[str], ranges: list[Range]) -> None:
        found = self.stores[which].load(keys, ranges, allow_stale=True)
        assert not (ranges and found.maybe_stale)
        if not found.maybe_stale:
            assert found == self.model.load(keys)
            self.looks += [found] if keys else []
        for (prefix, by, limit, (index_key, key)), records in zip(ranges, found.ranges, strict=True):
            start = Record(key, 0, None, index_key) if key else None
            assert records == self.model.scan(prefix, by=by, after=start, limit=limit)

    @rule(
        which=WHICH,
        prefix=PREFIXES,
        by=st.sampled_from(["key", "index_key"]),
        limit=st.integers(1, 5),
        pages=st.integers(1, 4),
    )
    def scan(self, which: int, prefix: str, by: Any, limit: int, pages: int) -> None:
        last: Record | None = None
        for _ in range(pages):
            start = last
            found = self.both(which, lambda store: store.scan(prefix, by=by, after=start, limit=limit))  # noqa: B023
            last = found[-1] if found else last

    @rule(which=WHICH, prefix=PREFIXES, by=st.sampled_from(["key", "index_key"]), key=KEYS, index_key=LINES)
    def scan_from_anywhere(self, which: int, prefix: str, by: Any, key: str, index_key: str) -> None:
        start = Record(key, 0, None, index_key)
        self.both(which, lambda store: store.scan(prefix, by=by, after=start, limit=PLENTY))

    @rule(which=WHICH, back=st.integers(0, 6), limit=st.integers(1, 5))
    def tail(self, which: int, back: int, limit: int) -> None:
        after = max(0, self.model.commit(Commit()) - back)
        self.both(which, lambda store: store.tail(after, limit))

    @rule(which=WHICH, ahead=st.integers(-6, 3))
    def trim(self, which: int, ahead: int) -> None:
        before = self.model.commit(Commit()) + ahead
        self.both(which, lambda store: store.trim(before))

    @precondition(lambda self: self.opened.shared)
    @rule(which=WHICH)
    def open_again(self, which: int) -> None:
        self.opened.open_again(which)
        self.stores = self.opened.log(self.tenant)

    @invariant()
    def they_agree(self) -> None:
        newest = max(0, self.model.commit(Commit()) - 1)
        self.looker = 1 - self.looker
        which = self.looker
        self.both(which, lambda store: store.scan("", by="key", limit=PLENTY))
        self.both(which, lambda store: store.scan("", by="index_key", limit=PLENTY))
        self.both(which, lambda store: store.load(["a", "b", "k1", "k2", "never"]))
        self.both(which, lambda store: store.commit(Commit()))
        self.both(which, lambda store: store.tail(newest, PLENTY))


@pytest.mark.timeout(7200 if SOAK else 400)
def test_store_agrees_with_its_model(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is done to a store, through whichever of its objects, it answers as the model does.

    STO-1, STO-9, STO-10, STO-30, DOC-2.
    """
    monkeypatch.setattr(
        sole_writer, "RECENT_MS", math.inf
    )  # whether a load is stale must not depend on the time
    with closing(Opened(store_url)) as opened:
        machine = type("Machine", (StoreMachine,), {"opened": opened})
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=3000 if SOAK else examples(store_url),
                stateful_step_count=60 if SOAK else 25,
            ),
        )
        assert next(StoreMachine.tenants) > examples(store_url) // 2, "the machine ran"


def examples(url: str) -> int:
    """Return how many lives a store is given; on a server each step takes its time."""
    return 40 if url.startswith(("memory", "file", "sqlite")) else 10
