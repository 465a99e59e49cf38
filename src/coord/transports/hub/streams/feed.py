"""One reader per log: it keeps the newest entries in a window that all subscribers read from.

A subscriber has a position and nothing else, so a slow one costs no memory. The window is bounded in entries
and in bytes. A subscriber that falls out of it has to read the state again.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from coord.core.errors import Conflict, CoordError, Trimmed, Unavailable, Unknown
from coord.sdk.log_reader import newest_offset
from coord.transports.hub.hub import Hub
from coord.transports.hub.problems import HttpError
from coord.transports.hub.stores import OpenStore
from coord.transports.hub.streams.entries import LogEntry
from coord.transports.hub.wakeups import LogWatcher

logger = logging.getLogger("coord.hub")

WINDOW_ENTRIES = 4096
WINDOW_BYTES = 8 * 1024 * 1024
PAGE_ENTRIES = 256
WAIT_S = 30.0
RETRY_S = 1.0
STREAMS_MAX = 2000
STREAMS_PER_TOKEN_MAX = 200
CATCH_UPS = 4
"""How many subscribers of a hub may read old entries at the same time: fewer than it has threads."""


class Window:
    """The newest entries of a log, without a gap: where its offsets leap, the window begins again."""

    def __init__(self, after: int, entries_max: int, bytes_max: int) -> None:
        self.before = after
        """The offset before the first entry."""
        self.last = after
        self._entries: deque[LogEntry] = deque()
        self._bytes = 0
        self._entries_max = entries_max
        self._bytes_max = bytes_max

    def add(self, entry: LogEntry) -> None:
        """Add the next entry; the oldest ones make room."""
        if entry.offset != self.last + 1:  # a new epoch began, and what was before may be lost
            self._entries.clear()
            self._bytes = 0
            self.before = entry.offset - 1
        self._entries.append(entry)
        self._bytes += entry.size
        self.last = entry.offset
        while len(self._entries) > self._entries_max or (
            self._bytes > self._bytes_max and len(self._entries) > 1
        ):
            oldest = self._entries.popleft()
            self._bytes -= oldest.size
            self.before = oldest.offset

    def after(self, offset: int, bytes_max: int) -> list[LogEntry] | None:
        """Return some entries after an offset, [] if there are none yet; None if the window begins later."""
        if offset < self.before:
            return None
        found: list[LogEntry] = []
        size = 0
        for index in range(offset - self.before, len(self._entries)):
            entry = self._entries[index]
            if found and size + entry.size > bytes_max:
                break
            found.append(entry)
            size += entry.size
        return found


class Feed:
    """Reads one log while somebody subscribes to it."""

    def __init__(
        self,
        hub: Hub,
        store: OpenStore,
        tenant: str,
        *,
        catch_ups: asyncio.Semaphore,
        ended: Callable[["Feed"], None],
    ) -> None:
        self._hub = hub
        self._store = store
        self._tenant = tenant
        self._ended = ended
        self.window: Window | None = None
        self.subscribers = 0
        self.failure: CoordError | None = None
        """Why the log cannot be read any more."""
        self._catch_ups = catch_ups
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def join(self) -> Window:
        """Add a subscriber; return the window, whose end is at least the newest entry now."""
        self.subscribers += 1
        newest = await self._hub.stores.run(newest_offset, self._store.log(self._tenant))
        if self.window is None:
            self.window = Window(newest, WINDOW_ENTRIES, WINDOW_BYTES)
        if self._task is None:
            self._task = asyncio.ensure_future(self._read(self.window))
        while self.window.last < newest and self.failure is None and not self._hub.stopping.is_set():
            await self.wait(WAIT_S)
        return self.window

    def leave(self) -> None:
        """Remove a subscriber; the last one ends the reader."""
        self.subscribers -= 1
        if not self.subscribers:
            self._ended(self)
            if self._task is not None:
                self._task.cancel()

    async def wait(self, timeout_s: float) -> bool:
        """Wait for the next entries, a failure, or the end of the hub; False if nothing happened."""
        news = self._news
        if self._hub.stopping.is_set() or self.failure is not None:
            return True
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):  # wait_for would swallow a cancellation in Python 3.11
                await news.wait()
        return news.is_set()

    def wake(self) -> None:
        """Let every subscriber look."""
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def page(self, after: int) -> list[LogEntry]:
        """Return entries from the log itself, for a subscriber that is behind the window."""
        async with self._catch_ups:
            return await self._tail(after)

    async def _tail(self, after: int) -> list[LogEntry]:
        log = self._store.log(self._tenant)

        def read() -> list[LogEntry]:
            return [LogEntry(each) for each in log.tail(after, PAGE_ENTRIES)]

        found: list[LogEntry] = await self._hub.stores.run(read)
        return found

    async def _read(self, window: Window) -> None:
        try:
            await self._follow(window)
        except Exception as error:  # a reader that ended without a word would look like an idle log
            logger.exception("the reader of the log of %s failed", self._tenant)
            self._fail(CoordError(f"the log cannot be read: {type(error).__name__}"))

    async def _follow(self, window: Window) -> None:
        watcher = self._hub.watcher(self._store, self._tenant)
        while self.subscribers and not self._hub.stopping.is_set():
            if watcher.is_ended:  # nothing would be waited for, and the old store grows no more
                self._fail(Unavailable("the hub has opened the store again", hint="connect again"))
                return
            try:
                page = await self._tail(window.last)
            except Trimmed as error:  # everything behind us is gone: who is not further, starts again
                self._fail(error)
                return
            except CoordError as error:
                if not _is_passing(error):
                    self._fail(error)
                    return
                await asyncio.sleep(RETRY_S)
                continue
            room = WINDOW_BYTES // 4
            for entry in page:
                if entry.size > room:  # let subscribers that keep up take what the window is about to lose
                    self.wake()
                    await asyncio.sleep(0)
                    room = WINDOW_BYTES // 4
                room -= entry.size
                window.add(entry)
            if page:
                self.wake()
            else:
                await self._until_news(watcher, window.last)
        self.wake()

    async def _until_news(self, watcher: LogWatcher, last: int) -> None:
        """Wait for an entry, however long it takes: nobody reads an idle log."""
        while not await watcher.wait(last, WAIT_S):
            if watcher.is_ended or not self.subscribers or self._hub.stopping.is_set():
                return

    def _fail(self, error: CoordError) -> None:
        logger.warning("the log of %s cannot be followed: %s", self._tenant, error.message)
        self.failure = error
        self._ended(self)
        self.wake()


def _is_passing(error: CoordError) -> bool:
    return isinstance(error, Unavailable | Conflict | Unknown)


class Feeds:
    """The feeds of a hub, by store and tenant, and how many streams are open."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._feeds: dict[tuple[int, str], Feed] = {}
        self.open = 0
        self._open_by: Counter[str] = Counter()
        self._catch_ups = asyncio.Semaphore(CATCH_UPS)
        self._all_ended = asyncio.Event()
        hub.on_stop.append(self.wake)

    def of(self, store: OpenStore, tenant: str) -> Feed:
        """Return the feed of a log."""
        key = (id(store), tenant)
        found = self._feeds.get(key)
        if found is None:
            found = self._feeds[key] = Feed(
                self._hub, store, tenant, catch_ups=self._catch_ups, ended=self._forget
            )
        return found

    def _forget(self, feed: Feed) -> None:
        for key, each in list(self._feeds.items()):
            if each is feed:
                del self._feeds[key]

    def wake(self) -> None:
        """Let every subscriber see that the hub stops."""
        for feed in self._feeds.values():
            feed.wake()

    def check_room(self, token_id: str) -> None:
        """Refuse a stream if a token has too many of them ("": processes of this machine), or the hub has."""
        if self._hub.stopping.is_set():
            raise Unavailable("the hub is stopping", hint="try again")
        if self.open >= STREAMS_MAX or self._open_by[token_id] >= STREAMS_PER_TOKEN_MAX:
            raise HttpError(
                429,
                "too_many_streams",
                f"{self._open_by[token_id]} streams are open with this token, {self.open} in all",
                hint="close one, or use one stream for several readers",
                headers={"Retry-After": "10"},
            )

    @contextmanager
    def stream(self, token_id: str) -> Iterator[None]:
        """Count a stream while it is open."""
        self.open += 1
        self._open_by[token_id] += 1
        self._all_ended.clear()
        try:
            yield
        finally:
            self.open -= 1
            self._open_by[token_id] -= 1
            if not self._open_by[token_id]:
                del self._open_by[token_id]
            if not self.open:
                self._all_ended.set()

    async def drain(self, timeout_s: float) -> None:
        """Wait until every stream has sent its end."""
        if self.open:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    await self._all_ended.wait()
