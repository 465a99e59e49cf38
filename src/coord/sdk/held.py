"""Blocks that hold something: locks that are renewed while the block runs, a session that ends with it."""

import threading
import time
from collections.abc import Iterable
from typing import Any, Self

from coord.core.errors import Busy, CoordError, Denied, LockLost, Unavailable, Unknown
from coord.core.replies import LockReply, LockShown
from coord.sdk.locks import LockCalls
from coord.sdk.sessions import SessionCalls

RENEW_AT = 0.4
"""The part of a lease after which it is renewed."""
BEAT_S = 30.0


class Block:
    """Something that begins and ends with a block, in a thread's code or in a coroutine's."""

    def begin(self) -> None:
        """Take it."""

    def end(self, *, failed: bool) -> None:
        """Give it back; `failed` says that the block ends with an exception."""

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.end(failed=kind is not None)

    async def __aenter__(self) -> Self:
        import asyncio

        beginning = asyncio.ensure_future(asyncio.to_thread(self.begin))
        try:
            await asyncio.shield(beginning)
        except asyncio.CancelledError:  # taken after all: give it back, nobody else will
            beginning.add_done_callback(self._give_back)
            raise
        return self

    def _give_back(self, beginning: Any) -> None:
        if not beginning.cancelled() and beginning.exception() is None:
            self.end(failed=True)

    async def __aexit__(self, kind: object, *_: object) -> None:
        import asyncio

        await asyncio.to_thread(self.end, failed=kind is not None)


class HeldLocks(Block):
    """Locks that are held while a block runs; `check` raises as soon as one is lost, and so does the end."""

    def __init__(
        self, client: LockCalls, resources: Iterable[str], *, wait_s: float | None, **options: Any
    ) -> None:
        self._client = client
        self._resources = tuple(resources)
        self._wait_s = wait_s
        self._options = options
        self._ended = threading.Event()
        self._error: CoordError | None = None
        self._renewer: threading.Thread | None = None
        self.locks: list[LockShown] = []

    @property
    def lost(self) -> bool:
        """Whether a lock was lost since the block began."""
        return self._error is not None

    @property
    def fence(self) -> int:
        """The fence of the first lock: what a later step proves that it still holds."""
        return self.locks[0].fence

    def check(self) -> None:
        """Raise `LockLost` if a lock was lost."""
        if self._error is not None:
            raise LockLost(
                str(self._error), hint="stop: nothing protects what you write now"
            ) from self._error

    def begin(self) -> None:
        """Take the locks, waiting as asked, and keep them from now on."""
        reply = self._client.acquire(self._resources, wait_s=self._wait_s, **self._options)
        if not reply.ok:
            raise _denied(reply)
        self.keep(reply.locks)

    def keep(self, granted: list[LockShown]) -> None:
        """Keep locks that were granted just now, until the end."""
        self.locks = granted
        self._ended.clear()
        self._renewer = threading.Thread(target=self._renew, name="coord-renew", daemon=True)
        self._renewer.start()

    def _renew(self) -> None:
        names = [lock.resource for lock in self.locks]
        lease_s = min(lock.expires_in_s for lock in self.locks)
        until = time.monotonic() + lease_s
        pause = lease_s * RENEW_AT
        while not self._ended.wait(pause):
            asked = time.monotonic()
            try:
                renewed = self._client.renew(names).locks
            except (Busy, Unavailable, Unknown) as error:
                if asked >= until:
                    self._error = error
                    return
                pause = max(0.1, (until - asked) / 4)
            except CoordError as error:
                self._error = error
                return
            else:
                lease_s = min(lock.expires_in_s for lock in renewed)
                until, pause = asked + lease_s, lease_s * RENEW_AT

    def end(self, *, failed: bool) -> None:
        """Give back what this block took; raise if it was lost, unless something else is being raised."""
        self._ended.set()
        if self._renewer is not None:
            self._renewer.join()
        taken = [lock for lock in self.locks if not lock.refreshed]
        try:
            for lock in taken:
                self._client.unlock(lock.resource, fence=lock.fence)
        except CoordError as error:
            self._error = self._error or error
        if not failed:
            self.check()


class SessionBlock(Block):
    """A session that is registered while a block runs, with a heartbeat."""

    def __init__(self, client: SessionCalls, described: dict[str, Any]) -> None:
        self._client = client
        self._described = described
        self._ended = threading.Event()
        self._beater: threading.Thread | None = None

    def begin(self) -> None:
        """Register, and keep the heart beating."""
        self._client.register(**self._described)
        self._beater = threading.Thread(target=self._beat, name="coord-beat", daemon=True)
        self._beater.start()

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_S):
            try:
                self._client.heartbeat()
            except (Busy, Unavailable, Unknown):
                continue
            except CoordError:
                return  # declared dead: the next command of the block is told so

    def end(self, *, failed: bool) -> None:
        """End the session; whatever it holds is given back."""
        self._ended.set()
        if self._beater is not None:
            self._beater.join()
        try:
            self._client.dereg()
        except CoordError:
            if not failed:
                raise


def _denied(reply: LockReply) -> Denied:
    holder = f", held by {reply.holder.owner}" if reply.holder else ""
    circle = f" ({' -> '.join(reply.cycle)})" if reply.cycle else ""
    return Denied(f"no lock: {reply.outcome}{holder}{circle}", hint="wait longer, or ask the holder")
