"""Long polls without a thread each: nobody is forgotten, and the thread ends with the last waiter."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from coord.core.errors import Unavailable
from coord.stores.contract import Head
from coord.transports.hub import wakeups
from coord.transports.hub.wakeups import LogWatcher

PATIENCE_S = 30.0
SOON_S = 0.05


class HandLog:
    """A log whose entries a test announces; like a server's, it may announce what it has not read."""

    def __init__(self) -> None:
        self.seen = Head(0, 0)
        self.errors: list[Exception] = []
        self.waits = 0
        self._announced = 0
        self._change = threading.Condition()

    def announce(self, offset: int) -> None:
        with self._change:
            self._announced = offset
            self._change.notify_all()

    def wait(self, after: int, timeout: float) -> bool:
        with self._change:
            self.waits += 1
            if self.errors:
                raise self.errors.pop(0)
            return self._change.wait_for(lambda: self._announced > after, timeout)

    def load(self, keys: Any) -> None:
        self.seen = Head(self._announced, 0)


def threads() -> set[threading.Thread]:
    """Return the threads that watch logs; those of other tests may still end."""
    return {thread for thread in threading.enumerate() if thread.name == "coord-hub-log"}


def run(test: Callable[[HandLog, LogWatcher], Awaitable[None]]) -> None:
    async def main() -> None:
        log = HandLog()
        watcher = LogWatcher(log)  # type: ignore[arg-type]
        try:
            await asyncio.wait_for(test(log, watcher), PATIENCE_S)
        finally:
            watcher.close()
            log.announce(1_000_000)
            await asyncio.get_running_loop().run_in_executor(None, watcher.join)

    before = threads()
    asyncio.run(main())
    assert threads() <= before


async def begun(log: HandLog, count: int = 1) -> None:
    while log.waits < count:  # noqa: ASYNC110 - the thread that counts has no event loop
        await asyncio.sleep(0.001)


def test_an_entry_that_the_server_announces_wakes() -> None:
    """The store has not read the entry when it hears of it: the head is read again, once."""

    async def test(log: HandLog, watcher: LogWatcher) -> None:
        waiting = asyncio.ensure_future(watcher.wait(0, PATIENCE_S))
        await begun(log)
        log.announce(1)
        assert await waiting
        await asyncio.sleep(SOON_S)
        assert log.waits < 5, "it does not spin"

    run(test)


def test_a_waiter_for_a_later_entry_does_not_hide_an_earlier_one() -> None:
    """A client that knows more than the hub waits for offset 100; another waits for the next one."""

    async def test(log: HandLog, watcher: LogWatcher) -> None:
        far = asyncio.ensure_future(watcher.wait(100, PATIENCE_S))
        await begun(log)
        near = asyncio.ensure_future(watcher.wait(0, PATIENCE_S))
        await asyncio.sleep(0)
        log.announce(1)
        assert await near
        assert not far.done(), "nothing has come for that one"
        log.announce(101)
        assert await far

    run(test)


def test_a_store_that_fails_is_watched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wakeups, "RETRY_S", 0.01)

    async def test(log: HandLog, watcher: LogWatcher) -> None:
        log.errors = [Unavailable("the server is down"), OSError("a defect")]
        waiting = asyncio.ensure_future(watcher.wait(0, PATIENCE_S))
        await begun(log, 3)
        log.announce(1)
        assert await waiting

    run(test)


def test_a_closed_watcher_lets_everybody_go() -> None:
    """Those who wait, and those who come later: a stopping hub owes them an answer."""

    async def test(log: HandLog, watcher: LogWatcher) -> None:
        waiting = asyncio.ensure_future(watcher.wait(0, PATIENCE_S))
        await begun(log)
        watcher.close()
        assert not await waiting
        assert not await watcher.wait(0, PATIENCE_S)

    run(test)


def test_the_thread_ends_with_the_last_waiter() -> None:
    async def test(log: HandLog, watcher: LogWatcher) -> None:
        before = threads()
        assert not await watcher.wait(0, SOON_S)
        log.announce(1)
        while threads() - before:  # noqa: ASYNC110 - a thread that ends tells nobody
            await asyncio.sleep(0.001)
        waiting = asyncio.ensure_future(watcher.wait(1, PATIENCE_S))
        await begun(log, 2)
        log.announce(2)
        assert await waiting, "the next one starts another"

    run(test)
