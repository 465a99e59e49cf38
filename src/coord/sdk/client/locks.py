"""What a program does about locks, and how a request looks after its place in line.

A request in line stays there until it is granted, refused, or its time is up; whoever leaves by an exception
leaves the line too.
"""

import os
import time
from collections.abc import Iterable
from typing import Any

from coord.core import commands
from coord.core.errors import Busy
from coord.core.ids import check_id
from coord.core.replies import Checked, LockReply, LockShown, Outcome, Preempted, Released, Renewed
from coord.host.processes import describe, seen_by_all
from coord.sdk.client.connection import Connection
from coord.sdk.validation import arguments as given

WAIT_S_MAX = 30 * 24 * 3600.0
NAP_S = 5.0
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
        texts, alone = self.named_with_files(resources)
        client = self.of(texts)
        if client is not self and wait_s != 0 and self.call(commands.ListLocks(self.caller, own=True)):
            wait_s = 0  # who holds in one store never waits in the other: no circle could be seen
        patience_s = WAIT_S_MAX if wait_s is None else wait_s
        process = describe(os.getpid())
        command = commands.AcquireLocks(
            self.caller,
            client.place.repository_id,
            texts,
            alone=alone,
            mode=str(mode or ""),
            profile=str(profile or ""),
            ttl_ms=0 if ttl_s is None else given.milliseconds("ttl", ttl_s),
            reason=given.line("reason", reason),
            priority=given.priority(priority),
            preemptible=bool(preemptible),
            wait_ms=given.milliseconds("wait", patience_s, least_s=0),
            wait_id=os.urandom(8).hex(),
            waiter=process,
            leased=process is None or not client.place.local or not seen_by_all(process),
        )
        deadline = time.monotonic() + patience_s
        try:
            reply: LockReply = patiently(client, command, deadline, command_id)
            return stand_in_line(client, reply, deadline) if reply.outcome is Outcome.WAITING else reply
        except Exception:
            raise
        except BaseException:  # a signal, before the place in line was known: it may be taken all the same
            client.call(commands.WithdrawWait(self.caller, command.wait_id))
            raise

    def unlock(self, resources: str | Iterable[str] | None = None, *, fence: int | None = None) -> Released:
        """Give locks back; without a name all of this session."""
        texts = self.named_or_all(resources)
        client = self.of(texts)
        number = 0 if fence is None else given.fence(fence)
        return client.call(commands.ReleaseLocks(self.caller, client.place.repository_id, texts, number))

    def renew(
        self,
        resources: str | Iterable[str] | None = None,
        *,
        ttl_s: float | None = None,
        fence: int | None = None,
    ) -> Renewed:
        """Begin leases anew; without a name all of this session."""
        texts = self.named_or_all(resources)
        client = self.of(texts)
        number = 0 if fence is None else given.fence(fence)
        ttl_ms = 0 if ttl_s is None else given.milliseconds("ttl", ttl_s)
        return client.call(
            commands.RenewLocks(self.caller, client.place.repository_id, texts, number, ttl_ms)
        )

    def check(self, resources: str | Iterable[str], *, mode: str = "", fence: int | None = None) -> Checked:
        """Ask whether resources are free for this session; with a fence, whether it still holds them."""
        texts, alone = self.named_with_files(resources)
        client = self.of(texts)
        number = 0 if fence is None else given.fence(fence)
        return client.call(
            commands.CheckLocks(self.caller, client.place.repository_id, texts, mode, number, alone=alone)
        )

    def locks(self, session: str | None = None) -> list[LockShown]:
        """Return the locks that stand, of one session or of all."""
        return self.call(commands.ListLocks(self.caller, check_id("session id", session) if session else ""))

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
        texts, alone = self.named_with_files(resource)
        client = self.of(texts)
        command = commands.StealLock(
            self.caller,
            client.place.repository_id,
            texts,
            alone=alone,
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
        texts, alone = self.named_with_files(words)
        client = self.of(texts)
        command = commands.PreemptLock(
            self.caller,
            client.place.repository_id,
            texts,
            alone=alone,
            priority=given.priority(priority),
            grace_ms=given.milliseconds("grace", grace_s, least_s=0),
            reason=given.line("reason", reason),
        )
        asked: Preempted = client.call(command)
        grace_left_s = max(0.0, (asked.until_ms - client.database.log(client.tenant).now()) / 1000)
        patience_s = grace_left_s + NAP_S if wait_s is None else wait_s
        return self.acquire(words, ttl_s=ttl_s, reason=reason, wait_s=patience_s, priority=priority)


def patiently(client: Connection, command: commands.Command, deadline: float, command_id: str = "") -> Any:
    """Ask again where too much is going on, as long as the caller would wait anyway."""
    while True:
        try:
            return client.call(command, command_id)
        except Busy:
            if time.monotonic() >= deadline:
                raise


def stand_in_line(store_of: Connection, reply: LockReply, deadline: float) -> LockReply:
    """Look after a place in line until something comes of it."""
    assert reply.wait is not None, "a waiting request has a place"
    key, waiting = reply.wait.wait_id, reply
    store = store_of.database.log(store_of.tenant)
    try:
        while reply.wait is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                break
            nap = min(left, NAP_S, max(0.0, (reply.wait.look_ms - store.now()) / 1000) + 0.001)
            changed = store.wait(store.seen.offset, nap)
            # Where others write without end something has always changed: what is due is done all the same.
            due = store.now() >= reply.wait.look_ms
            if due or not changed or patiently(store_of, commands.PeekWait(store_of.caller, key), deadline):
                reply = patiently(store_of, commands.ConfirmWait(store_of.caller, key), deadline)
                waiting = reply if reply.wait is not None else waiting
    except BaseException:
        store_of.call(commands.WithdrawWait(store_of.caller, key))
        raise
    if reply.outcome is Outcome.WAITING:  # it may just have come
        reply = patiently(store_of, commands.ConfirmWait(store_of.caller, key), deadline)
    if reply.outcome is Outcome.WAITING:
        store_of.call(commands.WithdrawWait(store_of.caller, key))
    # In the store its time was up a moment earlier: the answer still names who is in the way.
    return waiting if reply.outcome is Outcome.WITHDRAWN else reply
