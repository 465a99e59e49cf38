"""A database whose commits are noted on their way: how many there were, and what was in them."""

from typing import Any

from coord.stores.database import Database
from coord.stores.store import Commit, Store


class WatchedStore:
    """A store that passes everything on and keeps a list of its commits."""

    def __init__(self, store: Store, commits: list[Commit]) -> None:
        self._store = store
        self._commits = commits

    def commit(self, commit: Commit) -> int:
        offset = self._store.commit(commit)
        if commit.writes:
            self._commits.append(commit)
        return offset

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class WatchedDatabase:
    """A database that gives out watched stores; `commits` are those since it was last emptied."""

    def __init__(self, database: Database[Any]) -> None:
        self._database = database
        self.commits: list[Commit] = []

    def log(self, tenant: str) -> WatchedStore:
        return WatchedStore(self._database.log(tenant), self.commits)

    def plain(self, tenant: str) -> Store:
        """Return the store itself."""
        store: Store = self._database.log(tenant)
        return store

    def take(self) -> list[Commit]:
        """Return the commits so far and begin a new list."""
        taken = list(self.commits)
        self.commits.clear()
        return taken

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


def events_per_commit(commits: list[Commit]) -> dict[str, object]:
    """Describe how well commands were gathered: each claim and each submission is one event."""
    sizes = sorted(len(commit.events) for commit in commits)
    if not sizes:
        return {}
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
