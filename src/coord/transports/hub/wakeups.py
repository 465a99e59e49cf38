"""Wait for a log to grow without holding a thread: one reader per log, while somebody waits."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future

from coord.core.errors import CoordError
from coord.stores.contract import Store

WAIT_S = 30.0
RETRY_S = 1.0


class LogWatcher:
    """Wakes coroutines of one event loop when a log has grown."""

    def __init__(self, log: Store) -> None:
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._waiting: set[asyncio.Future[None]] = set()
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()

    async def wait(self, after: int, timeout_s: float) -> bool:
        """Return whether the log has an entry after an offset, at the latest after `timeout_s`."""
        if self._log.seen.offset > after:
            return True
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.add(future)
        self._begin(after)
        try:
            async with asyncio.timeout(timeout_s):  # wait_for would swallow a cancellation in Python 3.11
                await future
        except TimeoutError:
            return self._log.seen.offset > after
        finally:
            self._waiting.discard(future)
        return self._log.seen.offset > after

    def _begin(self, after: int) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._watch, args=(after,), name="coord-hub-log", daemon=True
            )
            self._thread.start()

    def _watch(self, after: int) -> None:
        """Wait in this thread; end when nobody waits any more."""
        while not self._ended.is_set():
            try:
                if self._log.wait(after, WAIT_S):
                    after = self._log.seen.offset
                    self._call(self._wake)
            except CoordError:
                self._ended.wait(RETRY_S)
            if not self._is_needed():
                return

    def _call(self, work: Callable[[], object]) -> None:
        try:
            self._loop.call_soon_threadsafe(work)
        except RuntimeError:  # the loop is closed
            self._ended.set()

    def _is_needed(self) -> bool:
        """Ask the event loop whether somebody waits; if not, the next one who does starts another thread."""
        answer: Future[bool] = Future()

        def answer_it() -> None:
            needed = bool(self._waiting) and not self._ended.is_set()
            if not needed:
                self._thread = None
            answer.set_result(needed)

        self._call(answer_it)
        try:
            return answer.result(WAIT_S)
        except TimeoutError:  # the loop has ended
            return False

    def _wake(self) -> None:
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    def close(self) -> None:
        """Let everybody go on; the thread ends with its wait."""
        self._ended.set()
        self._wake()
