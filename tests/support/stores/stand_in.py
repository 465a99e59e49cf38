"""A store between an engine and the real one: it passes everything on, counts it, and lets a test step in."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from coord.core.errors import Unavailable
from coord.core.ranges import Range
from coord.stores.contract import Commit, Entry, Head, Limits, Loaded, RangeReader, Store, check_commit
from coord.stores.database import Database

Step = Callable[[Commit], None]
"""What a test does before or after a commit; it may raise."""


class StandIn(RangeReader):
    """A store as the engine sees it; `real` is the one behind it."""

    def __init__(self, real: Store, limits: Limits | None = None) -> None:
        self.real = real
        self.limits = limits or real.limits
        self.calls: Counter[str] = Counter()
        self.written: list[Commit] = []
        self.before_commit: deque[Step] = deque()
        self.after_commit: deque[Step] = deque()
        self.after_read: deque[Callable[[], None]] = deque()
        self.after_tail: deque[Callable[[], None]] = deque()
        self.away = False
        self.clock: Callable[[], int] | None = None

    @property
    def seen(self) -> Head:
        return self.real.seen

    def load(self, keys: Iterable[str], ranges: Sequence[Range] = (), *, allow_stale: bool = False) -> Loaded:
        self._count("load")
        if ranges:
            self.calls["range"] += len(ranges)
        return self._read(self.real.load(list(keys), ranges, allow_stale=allow_stale))

    def _count(self, call: str) -> None:
        self.calls[call] += 1
        if self.away:
            raise Unavailable("the test has taken the store away")

    def _read(self, found: Any) -> Any:
        if self.after_read:
            self.after_read.popleft()()
        return found

    def commit(self, commit: Commit) -> int:
        """Commit, with the next step of the test on either side."""
        self._count("commit" if commit.writes else "verify")
        if self.before_commit:
            self.before_commit.popleft()(commit)
        check_commit(commit, self.limits)
        offset = self.real.commit(commit)
        if commit.writes:
            self.written.append(commit)
        if self.after_commit:
            self.after_commit.popleft()(commit)
        return offset

    def tail(self, after: int, limit: int) -> list[Entry]:
        self._count("tail")
        entries = self.real.tail(after, limit)
        if self.after_tail:
            self.after_tail.popleft()()
        return entries

    def wait(self, after: int, timeout: float) -> bool:
        return self.real.wait(after, timeout)

    def trim(self, before: int) -> None:
        self.real.trim(before)

    def now(self) -> int:
        return self.real.now() if self.clock is None else self.clock()

    def close(self) -> None:
        self.real.close()

    @property
    def records_written(self) -> int:
        """How many records were put and deleted."""
        return sum(len(commit.puts) + len(commit.deletes) for commit in self.written)

    def start_counting(self) -> None:
        """Begin at nothing."""
        self.calls.clear()
        self.written.clear()


class StandInDatabase(Database[Any]):
    """A database whose logs are stand-ins for those of another."""

    def __init__(self, real: Database[Any], limits: Limits | None = None) -> None:
        super().__init__(real.url, real.store_id, real.epoch)
        self._real = real
        self._limits = limits

    def _open_log(self, tenant: str) -> StandIn:
        return StandIn(self._real.log(tenant), self._limits)

    def fair_lock(self) -> Any:
        return self._real.fair_lock()

    def close(self) -> None:
        super().close()
        self._real.close()
