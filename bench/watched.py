"""A database whose commits are noted on their way: how many there were, and what was in them."""

from typing import Any

from coord.stores.contract import Commit, Head, Store
from coord.stores.database import Database


class Watch:
    """What was seen since it was last emptied: the number of events in each commit, and perhaps all of it."""

    def __init__(self, *, keep_commits: bool) -> None:
        self._keep_commits = keep_commits
        self._sizes: list[int] = []
        self._commits: list[Commit] = []

    def note(self, commit: Commit) -> None:
        self._sizes.append(len(commit.events))
        if self._keep_commits:  # they would be garbage otherwise: keeping them is work for the collector
            self._commits.append(commit)

    def take_sizes(self) -> list[int]:
        """Return the sizes so far and begin anew."""
        return self.take()[0]

    def take(self) -> tuple[list[int], list[Commit]]:
        """Return the sizes and commits so far and begin anew."""
        taken = self._sizes, self._commits
        self._sizes, self._commits = [], []
        return taken


class WatchedStore:
    """A store that passes everything on."""

    def __init__(self, store: Store, watch: Watch) -> None:
        self._store = store
        self._watch = watch
        self.limits, self.load, self.scan, self.now = store.limits, store.load, store.scan, store.now

    @property
    def seen(self) -> Head:
        return self._store.seen

    def commit(self, commit: Commit) -> int:
        offset = self._store.commit(commit)
        if commit.writes:
            self._watch.note(commit)
        return offset

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class WatchedDatabase:
    """A database that gives out watched stores."""

    def __init__(self, database: Database[Any], watch: Watch) -> None:
        self._database = database
        self._watch = watch

    def log(self, tenant: str) -> WatchedStore:
        return WatchedStore(self._database.log(tenant), self._watch)

    def plain(self, tenant: str) -> Store:
        """Return the store itself."""
        store: Store = self._database.log(tenant)
        return store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


def events_per_commit(sizes: list[int]) -> dict[str, object]:
    """Describe how well commands were gathered: each claim and each submission is one event."""
    if not sizes:
        return {}
    sizes = sorted(sizes)
    histogram: dict[str, int] = {}
    for size in sizes:
        low = 1 << (size.bit_length() - 1) if size else 0
        name = f"{low}-{2 * low - 1}" if low > 1 else str(low)
        histogram[name] = histogram.get(name, 0) + 1
    total = sum(sizes)
    return {
        "commits": len(sizes),
        "commits_per_op": len(sizes) / max(total, 1),
        "batch_mean": total / len(sizes),
        "batch_p50": sizes[len(sizes) // 2],
        "batch_max": sizes[-1],
        "histogram": histogram,
    }
