"""The time of a batch: read once, stored in its log entry, and passed to rules as data."""

from collections.abc import Callable

from coord.core.errors import Unavailable
from coord.stores.contract import Store

AHEAD_MS_MAX = 60_000


class Clock:
    """`now` = the store's clock, but never behind the newest entry seen; `instead` replaces it."""

    def __init__(self, store: Store, instead: Callable[[], int] | None = None) -> None:
        self._store = store
        self._instead = instead

    def now(self) -> int:
        """Return the time in ms."""
        if self._instead is not None:
            return int(self._instead())
        return max(self._store.now(), self._store.seen.at)

    def behind(self, now: int) -> bool:
        """Whether an entry newer than this time has been seen."""
        return self._instead is None and self._store.seen.at > now

    def refusal(self) -> Unavailable | None:
        """Return the error for writes if the log is far ahead of the clock."""
        if self._instead is not None or self._ahead() <= AHEAD_MS_MAX:
            return None
        self._store.load(())  # another process may have accepted the clock
        ahead = self._ahead()
        if ahead <= AHEAD_MS_MAX:
            return None
        return Unavailable(
            f"the newest entry of the log is {ahead // 1000} s ahead of the clock",
            hint="correct the clock; if it is right, run coord doctor --accept-clock",
        )

    def _ahead(self) -> int:
        return self._store.seen.at - self._store.now()
