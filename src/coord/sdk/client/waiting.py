"""Wait for what the store cannot give yet: a lock in its wait queue, or a task."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import msgspec

from coord.core.commands import Command
from coord.core.errors import Busy
from coord.core.identity import Process
from coord.core.locks.commands import ConfirmWait, LockReply, Outcome, PeekWait, WithdrawWait
from coord.host.processes import describe, seen_by_all
from coord.sdk.client.connection import Connection

if TYPE_CHECKING:
    from coord.core.plans.commands import ClaimNext, NextTask

WAIT_S_MAX = 30 * 24 * 3600.0
POLL_S, POLL_S_MIN = 5.0, 0.05
"""The longest and the shortest wait between two looks at the store."""


def waiting_process(client: Connection) -> tuple[Process | None, bool]:
    """Return the process that waits, and whether it has to renew its wait because others cannot see it."""
    process = describe(os.getpid())
    return process, process is None or not client.location.local or not seen_by_all(process)


def call_while_busy(client: Connection, command: Command, deadline: float, command_id: str = "") -> Any:
    """Run a command; while the store is `Busy`, run it again until the deadline of the caller."""
    while True:
        try:
            return client.call(command, command_id)
        except Busy:
            if time.monotonic() >= deadline:
                raise


def wait_in_queue(client: Connection, reply: LockReply, deadline: float) -> LockReply:
    """Return the reply to a waiting lock request: granted, refused, or still waiting at the deadline.

    An exception withdraws the request, so that no abandoned one stays in the queue.
    """
    assert reply.wait is not None, "only a waiting request has a wait id"
    wait_id, waiting = reply.wait.wait_id, reply
    store = client.log
    peek, confirm = PeekWait(client.caller, wait_id), ConfirmWait(client.caller, wait_id)
    try:
        while reply.wait is not None:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                break
            if client.on_wait is not None:
                client.on_wait(reply)
            look_s = max(0.0, (reply.wait.look_ms - store.now()) / 1000) + 0.001
            changed = store.wait(store.seen.offset, min(left_s, POLL_S, look_s))
            # In a busy store something has always changed; a request that is due is confirmed all the same.
            due = store.now() >= reply.wait.look_ms
            if due or not changed or call_while_busy(client, peek, deadline):
                reply = call_while_busy(client, confirm, deadline)
                waiting = reply if reply.wait is not None else waiting
    except BaseException:
        client.call(WithdrawWait(client.caller, wait_id))
        raise
    if client.on_wait is not None:
        client.on_wait(None)
    if reply.outcome is Outcome.WAITING:  # the lock may have been granted since the last look
        reply = call_while_busy(client, confirm, deadline)
    if reply.outcome is Outcome.WAITING:
        client.call(WithdrawWait(client.caller, wait_id))
    # The store's clock may have ended the wait first; the last waiting reply still names the holder.
    return waiting if reply.outcome is Outcome.WITHDRAWN else reply


def wait_for_task(
    client: Connection,
    command: ClaimNext,
    wait_s: float | None,
    command_id: str,
    *,
    stop_if_deadlocked: bool,
) -> NextTask:
    """Ask for a task until one is granted, none can become ready by itself, or `wait_s` has passed.

    A deadlock that costs this session a lock ends the wait, too. If it holds only a claim that others wait
    for, the wait ends with `stop_if_deadlocked`; else it goes on, because the claim's lease may expire.
    """
    from coord.core.plans.commands import EndTaskWait, Runnable

    deadline = None if wait_s is None else time.monotonic() + wait_s
    store = client.log
    try:
        while True:
            seen = store.seen.offset  # read before the call: a later change ends the wait at once
            reply: NextTask = client.call(command, command_id)
            command = msgspec.structs.replace(command, registered=reply.registered)
            left_s = POLL_S if deadline is None else deadline - time.monotonic()
            stops = reply.lost_to and (reply.lost or stop_if_deadlocked)
            waits = reply.outcome in (Runnable.BLOCKED, Runnable.DENIED) and not stops
            if not waits or left_s <= 0:
                return reply
            if reply.lost_to:  # ask on, but no longer as a part of the cycle
                command = msgspec.structs.replace(command, wait_ms=0)
            if client.on_wait is not None:
                client.on_wait(reply)
            look_s = (reply.look_ms - store.now()) / 1000 if reply.look_ms else POLL_S
            store.wait(seen, min(left_s, POLL_S, max(look_s, POLL_S_MIN)))
    finally:
        if command.registered:
            client.call(EndTaskWait(client.caller))
