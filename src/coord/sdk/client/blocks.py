"""Blocks that hold something: locks that are renewed while the block runs, a session that ends with it."""

import threading
from collections.abc import Iterable
from typing import Any, Self

from coord.core.errors import CoordError, Denied, LockLost
from coord.core.locks.commands import LockInfo, LockReply, ReleaseLocks, RenewLocks
from coord.sdk.client.lease import TRANSIENT, Lease, Renewal, clock
from coord.sdk.client.locks import LockCalls
from coord.sdk.client.sessions import SessionCalls

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


class LockBlock(Block):
    """Locks that are held while a block runs; `check` raises as soon as one is lost, and so does the end."""

    def __init__(
        self, client: LockCalls, resources: Iterable[str], *, wait_s: float | None, **options: Any
    ) -> None:
        self._client = client
        self._resources = tuple(resources)
        self._wait_s = wait_s
        self._options = options
        self._renewal: Renewal | None = None
        self._not_released: CoordError | None = None
        self.locks: list[LockInfo] = []

    @property
    def lost(self) -> bool:
        """Whether a lock was lost since the block began."""
        return self._error is not None

    @property
    def _error(self) -> CoordError | None:
        return (self._renewal.error if self._renewal is not None else None) or self._not_released

    @property
    def fence(self) -> int:
        """The fence of the first lock: what a later step proves that it still holds."""
        return self.locks[0].fence

    def check(self) -> None:
        """Raise `LockLost` if a lock was lost."""
        error = self._error
        if error is not None:
            raise LockLost(str(error), hint="stop: nothing protects what you write now") from error

    def begin(self) -> None:
        """Take the locks, waiting as asked, and keep them from now on."""
        reply = self._client.acquire(self._resources, wait_s=self._wait_s, **self._options)
        if not reply.ok:
            raise _denied(reply)
        self.keep(reply.locks)

    def keep(self, granted: list[LockInfo]) -> None:
        """Keep locks that were granted just now, until the end."""
        self.locks = granted
        lease = Lease(min(lock.expires_in_s for lock in granted), asked=clock())
        # They are named from the top of the repository now, wherever the client is.
        names = tuple(lock.resource for lock in granted)
        store = self._client.store_for(names)
        renew = RenewLocks(store.caller, store.location.repository_id, names)
        self._renewal = Renewal(lease, lambda: min(lock.expires_in_s for lock in store.call(renew).locks))

    def end(self, *, failed: bool) -> None:
        """Give back what this block took; raise if it was lost, unless something else is being raised."""
        if self._renewal is not None:
            self._renewal.end()
        taken = [lock for lock in self.locks if not lock.refreshed]
        try:
            for lock in taken:
                names = (lock.resource,)
                store = self._client.store_for(names)
                store.call(ReleaseLocks(store.caller, store.location.repository_id, names, lock.fence))
        except CoordError as error:
            self._not_released = error
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
            except TRANSIENT:
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
