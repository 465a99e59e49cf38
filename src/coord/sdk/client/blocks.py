"""`with` blocks: one renews locks while it runs, one keeps a session registered."""

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Self

import msgspec

from coord.core.errors import CoordError, Denied, LockLost, NotFound, Refused
from coord.core.keys import digest
from coord.core.locks.commands import (
    LockInfo,
    LockReply,
    LockWatch,
    Outcome,
    ReleaseLocks,
    RenewLocks,
    WatchLocks,
)
from coord.core.locks.uses import guard_use
from coord.sdk.client.connection import Connection
from coord.sdk.client.lease import TRANSIENT, Lease, Renewal, clock
from coord.sdk.client.locks import LockCalls
from coord.sdk.client.sessions import SessionCalls
from coord.sdk.client.waiting import POLL_S, POLL_S_MIN

OnState = Callable[[LockWatch], None]

BEAT_S = 30.0
LEASE_S = 300.0
"""The lease of a lock that a block renews: if nothing ends the use, the lock ends after this time."""
STOP_S = 1.0


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


class LockWatcher:
    """Watches the locks of one use.

    `on_asked` is called once if another session asks for a lock by preemption, and `on_waiter` whenever a
    session begins to wait for one, with that session alone in `waiters`.
    """

    def __init__(
        self,
        connection: Connection,
        locks: Iterable[LockInfo],
        use: str,
        *,
        on_asked: OnState | None = None,
        on_waiter: OnState | None = None,
    ) -> None:
        self._connection = connection
        self._fences = {lock.resource: lock.fence for lock in locks}
        self._use = use
        self._on_asked = on_asked
        self._on_waiter = on_waiter
        self._waiters: dict[str, set[str]] = {name: set() for name in self._fences}
        self._asked_until: dict[str, float] = {}
        self._looked = 0.0
        # Not the newest offset that this process has seen: another thread may have read past the loss.
        self._seen = min(self._fences.values())

    @property
    def asked_s(self) -> float | None:
        """The seconds until a lock goes to a session that asked for it; None if none did."""
        ends = list(self._asked_until.values())
        return max(0.0, min(ends) - clock()) if ends else None

    def wait(self, seconds: float) -> None:
        """Wait until the store changes, at most `seconds`, and look; raise `LockLost` if a lock is lost."""
        asked_s = self.asked_s
        wait_s = min(seconds, POLL_S) if asked_s is None else min(seconds, POLL_S, asked_s + 0.001)
        if self._connection.log.wait(self._seen, wait_s):
            # In a busy store something has always changed.
            threading.Event().wait(max(0.0, min(wait_s, self._looked + POLL_S_MIN - clock())))
        self.look()

    def look(self) -> None:
        """Read the locks once; raise `LockLost` if one is lost."""
        store = self._connection
        self._looked, seen = clock(), store.log.seen.offset
        command = WatchLocks(
            store.caller,
            store.location.repository_id,
            tuple(self._fences),
            tuple(self._fences.values()),
            self._use,
            self._on_waiter is not None,
        )
        states: list[LockWatch] = store.call(command)
        self._seen = max(seen, self._seen)
        for state in states:
            if not state.held:
                raise LockLost(lost_text(state), hint="stop writing: the files are no longer locked")
            self._fences[state.resource] = state.fence
            self._note(state)

    def _note(self, state: LockWatch) -> None:
        """Report a session that asks for the lock, and sessions that have begun to wait."""
        name = state.resource
        if not state.asked_by:
            self._asked_until.pop(name, None)  # nobody asks, or no longer
        elif name not in self._asked_until:
            self._asked_until[name] = self._looked + state.ends_in_ms / 1000
            if self._on_asked is not None:
                self._on_asked(state)
        known, self._waiters[name] = self._waiters[name], set(state.waiters)
        for waiter in state.waiters:
            if waiter not in known and self._on_waiter is not None:
                self._on_waiter(msgspec.structs.replace(state, waiters=(waiter,)))


_LOST = {
    "released": "was released by its own session",
    "expired": "has expired",
    "stolen": "was taken by {by}",
    "preempted": "went to {by}, which had asked for it",
    "deadlock": "went to {by} to break a deadlock",
    "owner_dead": "ended because its session was declared dead",
    "owner_silent": "ended because its session was silent",
    "session_ended": "ended with its session",
    "parent_ended": "ended with the lock of the parent session",
    "claim_lost": "ended with the claim that needed it",
}


def lost_text(state: LockWatch) -> str:
    """Return which lock was lost, to whom and why, in one line."""
    what = _LOST.get(state.end_reason, f"ended ({state.end_reason})").format(by=state.by or "another session")
    return f"the lock on {state.resource} {what}{f': {state.note}' if state.note else ''}"


class LockBlock(Block):
    """Holds locks while a block runs; `check` and the end of the block raise if one was lost.

    A thread renews the locks and watches the store, so that a lock that another session takes is `lost` at
    once. Python cannot stop the body of a block: call `check` before each write, or pass `on_lost`, which
    that thread calls with the error. Each block ends only its own use of a lock, so several blocks of one
    session may hold it.
    """

    def __init__(
        self,
        client: LockCalls,
        resources: Iterable[str],
        *,
        wait_s: float | None,
        ttl_s: float | None = None,
        command_id: str = "",
        name: str = "",
        on_lost: Callable[[LockLost], None] | None = None,
        on_asked: OnState | None = None,
        on_waiter: OnState | None = None,
        **options: Any,
    ) -> None:
        self._client = client
        self._resources = tuple(resources)
        self._wait_s = wait_s
        self._on_lost, self._on_asked, self._on_waiter = on_lost, on_asked, on_waiter
        # A repeated command is answered as the first one was, so it has to mean the same use.
        self.use = guard_use(digest(command_id) if command_id else name or os.urandom(8).hex())
        terms = {"ttl_s": LEASE_S if ttl_s is None else ttl_s, "use": self.use, "command_id": command_id}
        self._options = options | terms
        self._renewal: Renewal | None = None
        self._watcher: LockWatcher | None = None
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

    @property
    def renewals(self) -> int:
        """The number of renewals."""
        return 0 if self._renewal is None else self._renewal.times

    def check(self) -> None:
        """Raise `LockLost` if a lock was lost."""
        error = self._error
        if error is not None:
            raise _lost(error) from error

    def begin(self) -> None:
        """Acquire the locks, wait as requested, and start to renew them."""
        reply = self._client.acquire(self._resources, wait_s=self._wait_s, **self._options)
        if not reply.ok:
            raise _denied(reply)
        self.keep(reply.locks)

    def keep(self, granted: list[LockInfo]) -> None:
        """Renew and watch locks that were just granted for this use, until the block ends."""
        self.locks = granted
        lease = Lease(min(lock.expires_in_s for lock in granted), asked=clock())
        # Granted locks are named from the top of the repository, not from the client's folder.
        names = tuple(lock.resource for lock in granted)
        store = self._client.store_for(names)
        renew = RenewLocks(store.caller, store.location.repository_id, names)
        watcher = self._watcher = LockWatcher(
            store, granted, self.use, on_asked=self._on_asked, on_waiter=self._on_waiter
        )

        def renewed() -> float:
            if watcher.asked_s is None:
                try:
                    return min(lock.expires_in_s for lock in store.call(renew).locks)
                except (Refused, NotFound):
                    watcher.look()  # raises which lock is lost and why
                    if watcher.asked_s is None:
                        raise
            return watcher.asked_s or 0.0  # a lock that is promised to another session is not renewed

        self._renewal = Renewal(lease, renewed, pause=watcher.wait, on_lost=self._report_loss)

    def _report_loss(self) -> None:
        error = self._error
        if self._on_lost is not None and error is not None:
            self._on_lost(_lost(error))

    def end(self, *, failed: bool) -> None:
        """End this use of the locks; raise `LockLost` unless the block already failed."""
        if self._renewal is not None:
            self._renewal.stop()
        names = [lock.resource for lock in self.locks]
        try:
            release_use(self._client, names, self.use, on_refusal=self._explain_loss)
        except CoordError as error:
            self._not_released = self._not_released or error
        if self._renewal is not None:
            self._renewal.join(STOP_S)  # the release has woken it, unless the store cannot be reached
        if not failed:
            self.check()

    def _explain_loss(self) -> None:
        """Find out to whom a lock went that could not be released."""
        try:
            if self._watcher is not None:
                self._watcher.look()
        except LockLost as error:
            self._not_released = error


def release_use(
    client: LockCalls, names: Sequence[str], use: str, *, on_refusal: Callable[[], None] = lambda: None
) -> None:
    """End one use of locks, together; if one of them is lost, each by itself. Raise the first error."""
    if not names:
        return
    store = client.store_for(names)

    def release(*some: str) -> None:
        store.call(ReleaseLocks(store.caller, store.location.repository_id, some, use=use))

    try:
        release(*names)
    except (Refused, NotFound) as error:
        on_refusal()
        for name in names if len(names) > 1 else ():
            with suppress(Refused, NotFound):
                release(name)
        raise error from None


def _lost(error: CoordError) -> LockLost:
    return LockLost(error.message, hint="stop writing: the files are no longer locked")


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
