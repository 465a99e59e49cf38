"""How much one token may ask for: requests a second, and requests at the same time.

A token bucket holds as many requests as may come at once, and is filled again at a steady rate.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

from coord.transports.hub.problems import HttpError

REQUESTS_PER_S = 20_000.0
"""More than one process can answer; `coord serve --rate` sets a lower one."""
SIZE_S = 2.0
RUNNING_MAX = 1024
"""How many requests of one token may be under way, with those that wait."""
BUCKETS_MAX = 10_000


class TokenBucket:
    """Counts what is left of a rate."""

    __slots__ = ("_at_s", "_left", "_rate", "_size")

    def __init__(self, per_s: float, size: float) -> None:
        self._rate = per_s
        self._size = size
        self._left = size
        self._at_s: float | None = None

    def take(self, now_s: float) -> bool:
        """Take one; False if there is none left."""
        if self._at_s is not None:
            self._left = min(self._size, self._left + max(0.0, now_s - self._at_s) * self._rate)
        self._at_s = now_s
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True

    def wait_s(self) -> float:
        """Return how long it takes until there is one again."""
        return max(0.0, (1.0 - self._left) / self._rate)


class Rates:
    """The limits of every token."""

    def __init__(self, per_s: float = REQUESTS_PER_S, running_max: int = RUNNING_MAX) -> None:
        self.per_s = per_s
        self._running_max = running_max
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()
        self._running: Counter[str] = Counter()

    def check(self, token_id: str, now_s: float) -> None:
        """Count a request of a token; raises 429 if it asks too much."""
        bucket = self._buckets.get(token_id)
        if bucket is None:
            bucket = self._buckets[token_id] = TokenBucket(self.per_s, max(1.0, self.per_s * SIZE_S))
            if len(self._buckets) > BUCKETS_MAX:
                self._buckets.popitem(last=False)
        if not bucket.take(now_s):
            raise _too_many(f"this token may send {self.per_s:g} requests a second", bucket.wait_s())

    @contextmanager
    def running(self, token_id: str) -> Iterator[None]:
        """Count a request while it is under way."""
        if self._running[token_id] >= self._running_max:
            raise _too_many(f"{self._running_max} requests of this token are under way", 1.0)
        self._running[token_id] += 1
        try:
            yield
        finally:
            self._running[token_id] -= 1
            if not self._running[token_id]:
                del self._running[token_id]


def _too_many(message: str, wait_s: float) -> HttpError:
    wait = str(max(1, round(wait_s)))
    return HttpError(429, "too_many_requests", message, hint=f"wait {wait} s", headers={"Retry-After": wait})
