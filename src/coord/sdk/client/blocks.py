"""`with` blocks: one renews locks while it runs, one keeps a session registered."""

import threading
from collections.abc import Iterable
from typing import Any, Self

from coord.core.errors import CoordError, Denied, LockLost
from coord.core.locks.commands import LockInfo, LockReply, Outcome, ReleaseLocks, RenewLocks
from coord.sdk.client.lease import TRANSIENT, Lease, Renewal, clock
from coord.sdk.client.locks import LockCalls
from coord.sdk.client.sessions import SessionCalls

BEAT_S = 30.0


class Block:
    """Base of `with` and `async with` blocks."""

    def begin(self) -> None:
        """Called when the block is entered."""

    def end(self, *, failed: bool) -> None:
        """Called when the block is left; `failed` if by an exception."""

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
        except asyncio.CancelledError:  # `begin` may still succeed: undo it then
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
    """Holds locks while a block runs; `check` and the end of the block raise if one was lost."""

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
        """Whether a lock was lost since the block was entered."""
        return self._error is not None

    @property
    def _error(self) -> CoordError | None:
        return (self._renewal.error if self._renewal is not None else None) or self._not_released

    @property
    def fence(self) -> int:
        """The fence of the first lock; a later step proves with it that the lock is still held."""
        return self.locks[0].fence

    def check(self) -> None:
        """Raise `LockLost` if a lock was lost."""
        error = self._error
        if error is not None:
            raise LockLost(str(error), hint="stop writing: the files are no longer locked") from error

    def begin(self) -> None:
        """Acquire the locks, wait as requested, and start to renew them."""
        reply = self._client.acquire(self._resources, wait_s=self._wait_s, **self._options)
        if not reply.ok:
            raise _denied(reply)
        self.keep(reply.locks)

    def keep(self, granted: list[LockInfo]) -> None:
        """Renew locks that were just granted, until the block ends."""
        self.locks = granted
        lease = Lease(min(lock.expires_in_s for lock in granted), asked=clock())
        # Granted locks are named from the top of the repository, not from the client's folder.
        names = tuple(lock.resource for lock in granted)
        store = self._client.store_for(names)
        renew = RenewLocks(store.caller, store.location.repository_id, names)
        self._renewal = Renewal(lease, lambda: min(lock.expires_in_s for lock in store.call(renew).locks))

    def end(self, *, failed: bool) -> None:
        """Release what this block acquired; raise `LockLost` unless the block already failed."""
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
    """Registers a session while a block runs, and sends its heartbeats."""

    def __init__(self, client: SessionCalls, described: dict[str, Any]) -> None:
        self._client = client
        self._described = described
        self._ended = threading.Event()
        self._beater: threading.Thread | None = None

    def begin(self) -> None:
        """Register the session and start its heartbeat."""
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
                return  # declared dead: the next command of the block raises

    def end(self, *, failed: bool) -> None:
        """End the session and release its locks."""
        self._ended.set()
        if self._beater is not None:
            self._beater.join()
        try:
            self._client.dereg()
        except CoordError:
            if not failed:
                raise


def _denied(reply: LockReply) -> Denied:
    if reply.outcome is Outcome.DEADLOCK:
        from coord.core.locks.deadlock import loss_text, next_command

        hint = f"run: {next_command(reply.again, reply.claims)}"
        return Denied(loss_text(reply.lost, reply.lost_to), hint=hint)
    holder = f", held by {reply.holder.owner}" if reply.holder else ""
    cycle = f" ({' -> '.join(reply.cycle)})" if reply.cycle else ""
    return Denied(f"lock denied: {reply.outcome}{holder}{cycle}", hint="wait longer, or ask the holder")
