"""Acquire, release and inspect locks; wait in the queue."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from coord.core.ids import check_id
from coord.core.locks.commands import (
    AcquireLocks,
    CheckLocks,
    CheckReply,
    GetLocks,
    ListLocks,
    ListWaits,
    LockInfo,
    LockPage,
    LockReply,
    Outcome,
    PreemptLock,
    PreemptReply,
    ReleaseLocks,
    ReleaseReply,
    RenewLocks,
    RenewReply,
    SessionWait,
    StealLock,
    WithdrawWait,
)
from coord.core.locks.uses import check_use
from coord.host.words import Words
from coord.sdk.client.connection import Connection
from coord.sdk.client.waiting import POLL_S, WAIT_S_MAX, call_while_busy, wait_in_queue, waiting_process
from coord.sdk.validation import arguments

if TYPE_CHECKING:
    from coord.core.lifecycle.commands import HandoffReply

PAGE = 1000
"""How many locks one command of a listing returns."""
PREEMPT_GRACE_S = 30.0
PROGRESS_S_MIN = 30.0
"""The shortest progress timeout: a heartbeat is written every 15 seconds at most."""


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
        use: str = "",
        command_id: str = "",
        progress_timeout_s: float | None = None,
    ) -> LockReply:
        """Acquire locks, all or none; wait in the queue up to `wait_s` seconds (None: without limit).

        `use` says which running command needs them, as `guard:<id>`; `unlock` with it ends only this use.
        With `progress_timeout_s` they end if this session shows no sign of life for that time.
        """
        words = self.read_words(resources)
        client = self.store_for(words.texts)
        if client is not self and wait_s != 0 and self.call(ListLocks(self.caller, own=True)):
            wait_s = 0  # no waiting across two stores: a deadlock between them could not be detected
        patience_s = WAIT_S_MAX if wait_s is None else wait_s
        waiter, leased = waiting_process(client)
        command = AcquireLocks(
            self.caller,
            client.location.repository_id,
            words.texts,
            mode=str(mode or ""),
            profile=str(profile or ""),
            ttl_ms=0 if ttl_s is None else arguments.milliseconds("ttl", ttl_s),
            reason=arguments.one_line("reason", reason),
            priority=arguments.priority(priority),
            preemptible=bool(preemptible),
            wait_ms=arguments.milliseconds("wait", patience_s, min_s=0),
            wait_id=os.urandom(8).hex(),
            waiter=waiter,
            leased=leased,
            progress_ms=0
            if progress_timeout_s is None
            else arguments.milliseconds("progress timeout", progress_timeout_s, min_s=PROGRESS_S_MIN),
            use=check_use(use),
        )
        deadline = time.monotonic() + patience_s
        try:
            reply: LockReply = call_while_busy(client, command, deadline, command_id)
            if reply.outcome is Outcome.WAITING:
                reply = wait_in_queue(client, reply, deadline)
            return _with_notes(reply, words)
        except Exception:
            raise
        except BaseException:  # a signal: the request may be queued although no reply came
            client.call(WithdrawWait(self.caller, command.wait_id))
            raise

    def unlock(
        self, resources: str | Iterable[str] | None = None, *, fence: int | None = None, use: str = ""
    ) -> ReleaseReply:
        """Release locks of this session; without `resources` all of them, except those of claims."""
        words = self.read_words_or_all(resources)
        client = self.store_for(words.texts)
        command = ReleaseLocks(
            self.caller,
            client.location.repository_id,
            words.texts,
            0 if fence is None else arguments.fence(fence),
            check_use(use),
            readings=words.readings,
        )
        return client.call(command)

    def unlock_all(self) -> ReleaseReply:
        """Release all locks of this session, also those of the machine, except what its claims need."""
        released: ReleaseReply = self.call(ReleaseLocks(self.caller, self.location.repository_id, ()))
        host = None if self.location.repository is None else self.user_store(make=False)
        if host is None or not host.call(ListLocks(host.caller, own=True)):
            return released
        more: ReleaseReply = host.call(ReleaseLocks(host.caller, host.location.repository_id, ()))
        return ReleaseReply(released.released + more.released, released.kept + more.kept)

    def renew(
        self,
        resources: str | Iterable[str] | None = None,
        *,
        ttl_s: float | None = None,
        fence: int | None = None,
    ) -> RenewReply:
        """Renew the leases of locks; without `resources` of all locks of this session."""
        words = self.read_words_or_all(resources)
        client = self.store_for(words.texts)
        command = RenewLocks(
            self.caller,
            client.location.repository_id,
            words.texts,
            0 if fence is None else arguments.fence(fence),
            0 if ttl_s is None else arguments.milliseconds("ttl", ttl_s),
            readings=words.readings,
        )
        return client.call(command)

    def check(
        self,
        resources: str | Iterable[str],
        *,
        mode: str = "",
        fence: int | None = None,
        limit: int | None = None,
    ) -> CheckReply:
        """Return whether this session could lock resources, and up to `limit` locks that prevent it.

        With `fence`, return whether it still holds them.
        """
        words = self.read_words(resources)
        client = self.store_for(words.texts)
        command = CheckLocks(
            self.caller,
            client.location.repository_id,
            words.texts,
            str(mode or ""),
            0 if fence is None else arguments.fence(fence),
            0 if limit is None else arguments.limit(limit),
            readings=words.readings,
        )
        reply: CheckReply = client.call(command)
        return msgspec.structs.replace(reply, warnings=list(words.notes)) if words.notes else reply

    def locks(self, session: str | None = None) -> list[LockInfo]:
        """Return the current locks of one session or of all, and the sessions that wait for each."""
        return [lock for page in self.lock_pages(session) for lock in page.locks]

    def lock_pages(
        self, session: str | None = None, *, after: str = "", limit: int | None = None
    ) -> Iterator[LockPage]:
        """Yield the current locks page by page, up to `limit`; `after` is that of an earlier page."""
        name = check_id("session id", session) if session else ""
        left, more = arguments.limit(limit), True
        while more:
            page: LockPage = self.call(GetLocks(self.caller, name, after, min(left, PAGE)))
            yield page
            after, left = page.after, left - len(page.locks)
            more = bool(after) and left > 0

    def handoff(self, resource: str, peer: str, *, task: str = "", note: str = "") -> HandoffReply:
        """Give a lock, or the claim of a task, to another session in one step.

        With both names it is the task, if this session has claimed it; without a resource it must be.
        """
        from coord.core.ids import is_id
        from coord.core.lifecycle.commands import Handoff

        words = self.read_words(resource) if resource else Words(())
        client = self.store_for(words.texts)
        command = Handoff(
            self.caller,
            client.location.repository_id,
            words.texts,
            readings=words.readings,
            to=check_id("session id", peer),
            tenant=self.tenant,
            project=self.caller.project,
            task=task if is_id(task) or not resource else "",
            note=arguments.one_line("note", note),
        )
        return client.call(command)

    def waits(self) -> list[SessionWait]:
        """Return who waits for locks and tasks, and behind whom; the longest wait first."""
        return self.call(ListWaits())

    def steal(
        self,
        resource: str | Iterable[str],
        *,
        dead_owner: bool = False,
        force: bool = False,
        reason: str = "",
        ttl_s: float | None = None,
        fence: int | None = None,
        release: bool = False,
    ) -> LockReply:
        """Take locks over from a holder that is dead or gone; with `force` from any, for a reason.

        With `fence` only if one of them still has it. With `release` they go to the sessions that wait.
        """
        words = self.read_words(resource)
        client = self.store_for(words.texts)
        command = StealLock(
            self.caller,
            client.location.repository_id,
            words.texts,
            dead_owner=dead_owner,
            force=force,
            reason=arguments.one_line("reason", reason),
            ttl_ms=0 if ttl_s is None else arguments.milliseconds("ttl", ttl_s),
            fence=0 if fence is None else arguments.fence(fence),
            release=release,
        )
        return _with_notes(client.call(command), words)

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
        """Ask holders of lower priority to release locks, and wait in the queue for them."""
        named = [resource] if isinstance(resource, str) else list(resource)
        texts = self.resolve(named)
        client = self.store_for(texts)
        command = PreemptLock(
            self.caller,
            client.location.repository_id,
            texts,
            priority=arguments.priority(priority),
            grace_ms=arguments.milliseconds("grace", grace_s, min_s=0),
            reason=arguments.one_line("reason", reason),
        )
        asked: PreemptReply = client.call(command)
        grace_left_s = max(0.0, (asked.until_ms - client.log.now()) / 1000)
        patience_s = grace_left_s + POLL_S if wait_s is None else wait_s
        return self.acquire(named, ttl_s=ttl_s, reason=reason, wait_s=patience_s, priority=priority)


def _with_notes(reply: LockReply, words: Words) -> LockReply:
    """Return a reply that also says which links the words cover."""
    if not words.notes:
        return reply
    return msgspec.structs.replace(reply, warnings=[*words.notes, *reply.warnings])
