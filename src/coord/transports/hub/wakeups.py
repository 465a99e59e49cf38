"""Wait for a log to grow without holding a thread: one reader per log, while somebody waits."""

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future

from coord.core.errors import CoordError
from coord.stores.contract import Store

logger = logging.getLogger("coord.hub")
WAIT_S = 30.0
RETRY_S = 1.0
JOIN_S = 5.0


class LogWatcher:
    """Wakes coroutines of one event loop when a log has grown."""

    def __init__(self, log: Store) -> None:
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[asyncio.Future[None], int] = {}
        """Each coroutine that waits, and the offset after which it wants an entry."""
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()

    @property
    def is_ended(self) -> bool:
        """Whether its log is closed: then nobody waits any more."""
        return self._ended.is_set()

    async def wait(self, after: int, timeout_s: float) -> bool:
        """Return whether the log has an entry after an offset, at the latest after `timeout_s`."""
        seen = self._log.seen.offset
        if seen > after or self._ended.is_set():
            return seen > after
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting[future] = after
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._watch, args=(seen,), name="coord-hub-log", daemon=True
            )
            self._thread.start()
        try:
            async with asyncio.timeout(timeout_s):  # wait_for would swallow a cancellation in Python 3.11
                await future
        except TimeoutError:
            pass
        finally:
            del self._waiting[future]
        return self._log.seen.offset > after

    def _watch(self, seen: int) -> None:
        """Wait in this thread for anything new, whoever waits for what; end when nobody waits any more."""
        while self._is_needed():
            try:
                if self._log.wait(seen, WAIT_S):
                    if self._log.seen.offset <= seen:
                        self._log.load(["head"])  # servers announce an entry before this process has read it
                    seen = self._log.seen.offset
                    self._call(self._wake)
            except Exception as error:  # without this thread nobody would be woken
                if not isinstance(error, CoordError):
                    logger.exception("a log cannot be watched")
                self._ended.wait(RETRY_S)

    def _call(self, work: Callable[[], object]) -> bool:
        """Run something in the event loop; return False if that has ended."""
        try:
            self._loop.call_soon_threadsafe(work)
        except RuntimeError:
            self._ended.set()
            return False
        return True

    def _is_needed(self) -> bool:
        """Ask the event loop whether somebody waits; if not, the next one who does starts another thread."""
        answer: Future[bool] = Future()

        def answer_it() -> None:
            needed = bool(self._waiting) and not self._ended.is_set()
            if not needed:
                self._thread = None
            answer.set_result(needed)

        if not self._call(answer_it):
            return False
        while not self._loop.is_closed():
            try:
                return answer.result(RETRY_S)
            except TimeoutError:  # the loop is busy, or ends
                continue
        return False

    def _wake(self) -> None:
        seen, all_of_them = self._log.seen.offset, self._ended.is_set()
        for future, after in self._waiting.items():
            if (all_of_them or seen > after) and not future.done():
                future.set_result(None)

    def close(self) -> None:
        """Let everybody go on; the thread ends with its wait, which the store ends when it closes."""
        self._ended.set()
        self._wake()

    def join(self, timeout_s: float = JOIN_S) -> None:
        """Wait in another thread until that of the closed watcher has ended."""
        thread = self._thread
        if thread is not None:
            thread.join(timeout_s)
