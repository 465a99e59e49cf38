"""Waiting for commits on a server: one thread with a separate connection listens for all waiters.

The thread starts with the first waiter and ends some seconds after the last one. A waiter never touches the
connection, so it never sleeps longer than its timeout, whatever the server does.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager

from coord.core.errors import CoordError

POLL_S = 0.25
"""The heads are read at this interval even without a notification."""

IDLE_S = 5.0

Subscription = Callable[[frozenset[int], float], dict[int, int]]
"""Waits for commits to these logs, for at most the given seconds; returns the heads that it learned."""


class Listener:
    """The newest known head of each log that somebody waits for."""

    def __init__(self, subscribe: Callable[[], AbstractContextManager[Subscription]]) -> None:
        self._subscribe = subscribe
        self._change = threading.Condition()
        self._heads: dict[int, int] = {}
        self._waiters: Counter[int] = Counter()
        self._thread: threading.Thread | None = None
        self._idle_since = 0.0
        self._closed = False

    def wait(self, log: int, after: int, seconds: float) -> bool:
        """Wait until the log's head is above `after`, for at most `seconds`; return whether it is."""
        with self._change:
            self._waiters[log] += 1
            if self._thread is None and not self._closed:
                thread = threading.Thread(target=self._listen, name="coord-listen", daemon=True)
                thread.start()
                self._thread = thread  # not before: an interrupted start leaves none to wait for
            try:
                self._change.wait_for(lambda: self._closed or self._heads.get(log, 0) > after, seconds)
                return self._heads.get(log, 0) > after
            finally:
                self._waiters[log] -= 1
                self._idle_since = time.monotonic()

    def close(self) -> None:
        """Release every waiter and end the thread."""
        with self._change:
            self._closed = True
            self._change.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _listen(self) -> None:
        while self._wanted():
            try:
                with self._subscribe() as subscription:
                    while logs := self._wanted():
                        self.learn(subscription(logs, POLL_S))
            except CoordError:  # the server is unreachable: waiters keep waiting, and the next round retries
                self.rest(POLL_S)

    def _wanted(self) -> frozenset[int]:
        """Return the logs to listen to; empty if this thread is no longer the listener and must end."""
        with self._change:
            if self._thread is not threading.current_thread():
                return frozenset()
            waited_for = any(self._waiters.values())
            if not self._closed and (waited_for or time.monotonic() < self._idle_since + IDLE_S):
                return frozenset(self._waiters)
            self._waiters = +self._waiters
            self._thread = None
            return frozenset()

    def rest(self, seconds: float) -> None:
        """Sleep for `seconds`, for a subscription that polls; return early if the listener is closed."""
        with self._change:
            self._change.wait_for(lambda: self._closed, seconds)

    def learn(self, heads: dict[int, int]) -> None:
        """Record heads, and wake the waiters for them."""
        with self._change:
            for log, head in heads.items():
                self._heads[log] = max(head, self._heads.get(log, 0))
            self._change.notify_all()
