"""What a program does about locks, and how a request looks after its place in line.

A request in line stays there until it is granted, refused, or its time is up; whoever leaves by an exception
leaves the line too.
"""

import os
import time
from collections.abc import Iterable

from coord.core.ids import check_id
from coord.core.locks.commands import (
    AcquireLocks,
    CheckLocks,
    CheckReply,
    ListLocks,
    LockInfo,
    LockReply,
    Outcome,
    PreemptLock,
    PreemptReply,
    ReleaseLocks,
    ReleaseReply,
    RenewLocks,
    RenewReply,
    StealLock,
    WithdrawWait,
)
from coord.host.processes import describe, seen_by_all
from coord.sdk.client.connection import Connection
from coord.sdk.client.waiting import POLL_S, call_while_busy, wait_in_queue
from coord.sdk.validation import arguments as given

WAIT_S_MAX = 30 * 24 * 3600.0
PREEMPT_GRACE_S = 30.0


class LockCalls(Connection):
    """Acquire, unlock, renew, check, list, steal, preempt."""

    def acquire(
        self,
        resources: str | Iterable[str],
        *,
        mode: str = "",
        ttl_s: float | None = None,
        reason: str = "",
        wait_s: float | None = 0,
        priority: int = 0,
        profile: str = "",
        preemptible: bool = False,
        command_id: str = "",
    ) -> LockReply:
        """Take locks, all or none; wait in line up to `wait_s` (None: as long as it takes)."""
        texts, exact = self.resolve_with_files(resources)
        client = self.store_for(texts)
        if client is not self and wait_s != 0 and self.call(ListLocks(self.caller, own=True)):
            wait_s = 0  # who holds in one store never waits in the other: no circle could be seen
        patience_s = WAIT_S_MAX if wait_s is None else wait_s
        process = describe(os.getpid())
        command = AcquireLocks(
            self.caller,
            client.location.repository_id,
            texts,
            exact=exact,
            mode=str(mode or ""),
            profile=str(profile or ""),
            ttl_ms=0 if ttl_s is None else given.milliseconds("ttl", ttl_s),
            reason=given.line("reason", reason),
            priority=given.priority(priority),
            preemptible=bool(preemptible),
            wait_ms=given.milliseconds("wait", patience_s, least_s=0),
            wait_id=os.urandom(8).hex(),
            waiter=process,
            leased=process is None or not client.location.local or not seen_by_all(process),
        )
        deadline = time.monotonic() + patience_s
        try:
            reply: LockReply = call_while_busy(client, command, deadline, command_id)
            return wait_in_queue(client, reply, deadline) if reply.outcome is Outcome.WAITING else reply
        except Exception:
            raise
        except BaseException:  # a signal, before the place in line was known: it may be taken all the same
            client.call(WithdrawWait(self.caller, command.wait_id))
            raise

    def unlock(
        self, resources: str | Iterable[str] | None = None, *, fence: int | None = None
    ) -> ReleaseReply:
        """Give locks back; without a name all of this session."""
        texts = self.resolve_or_all(resources)
        client = self.store_for(texts)
        number = 0 if fence is None else given.fence(fence)
        return client.call(ReleaseLocks(self.caller, client.location.repository_id, texts, number))

    def renew(
        self,
        resources: str | Iterable[str] | None = None,
        *,
        ttl_s: float | None = None,
        fence: int | None = None,
    ) -> RenewReply:
        """Begin leases anew; without a name all of this session."""
        texts = self.resolve_or_all(resources)
        client = self.store_for(texts)
        number = 0 if fence is None else given.fence(fence)
        ttl_ms = 0 if ttl_s is None else given.milliseconds("ttl", ttl_s)
        return client.call(RenewLocks(self.caller, client.location.repository_id, texts, number, ttl_ms))

    def check(
        self, resources: str | Iterable[str], *, mode: str = "", fence: int | None = None
    ) -> CheckReply:
        """Ask whether resources are free for this session; with a fence, whether it still holds them."""
        texts, exact = self.resolve_with_files(resources)
        client = self.store_for(texts)
        number = 0 if fence is None else given.fence(fence)
        return client.call(
            CheckLocks(self.caller, client.location.repository_id, texts, mode, number, exact=exact)
        )

    def locks(self, session: str | None = None) -> list[LockInfo]:
        """Return the locks that stand, of one session or of all."""
        return self.call(ListLocks(self.caller, check_id("session id", session) if session else ""))

    def steal(
        self,
        resource: str | Iterable[str],
        *,
        dead_owner: bool = False,
        force: bool = False,
        reason: str = "",
        ttl_s: float | None = None,
    ) -> LockReply:
        """Take locks from a holder that is gone, or by force for a reason."""
        texts, exact = self.resolve_with_files(resource)
        client = self.store_for(texts)
        command = StealLock(
            self.caller,
            client.location.repository_id,
            texts,
            exact=exact,
            dead_owner=dead_owner,
            force=force,
            reason=given.line("reason", reason),
            ttl_ms=0 if ttl_s is None else given.milliseconds("ttl", ttl_s),
        )
        return client.call(command)

    def preempt(
        self,
        resource: str | Iterable[str],
        *,
        priority: int,
        reason: str,
        grace_s: float = PREEMPT_GRACE_S,
        wait_s: float | None = None,
        ttl_s: float | None = None,
    ) -> LockReply:
        """Ask holders of lower priority to give way, and wait in line for it."""
        words = [resource] if isinstance(resource, str) else list(resource)
        texts, exact = self.resolve_with_files(words)
        client = self.store_for(texts)
        command = PreemptLock(
            self.caller,
            client.location.repository_id,
            texts,
            exact=exact,
            priority=given.priority(priority),
            grace_ms=given.milliseconds("grace", grace_s, least_s=0),
            reason=given.line("reason", reason),
        )
        asked: PreemptReply = client.call(command)
        grace_left_s = max(0.0, (asked.until_ms - client.log.now()) / 1000)
        patience_s = grace_left_s + POLL_S if wait_s is None else wait_s
        return self.acquire(words, ttl_s=ttl_s, reason=reason, wait_s=patience_s, priority=priority)
