"""Requests that wait: for a lock in its wait queue, and for a task. None holds a thread.

A client that leaves is not noticed; its request ends at its deadline, half a minute at most.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from coord.core.identity import Caller
from coord.core.locks.commands import AcquireLocks, ConfirmWait, LockReply, Outcome, PeekWait, WithdrawWait
from coord.core.plans.commands import ClaimNext, EndTaskWait, NextTask, Runnable
from coord.transports.hub.api import replies
from coord.transports.hub.api.endpoint import Asking, Endpoint, role_of
from coord.transports.hub.api.endpoints.commands import Public, build, request_type

WAIT_MS_MAX = 30_000
POLL_S, POLL_S_MIN = 5.0, 0.05
"""The longest and the shortest wait between two looks at the store."""
Wait = Annotated[int, Meta(ge=0, le=WAIT_MS_MAX)]
ACQUIRE = Public("AcquireLocks", "POST", "/v1/locks", types={"wait_ms": Wait})
NEXT = Public(
    "ClaimNext",
    "POST",
    "/v1/projects/{project}/next",
    ("cannot", "enabled", "mode", "routing"),
    {"wait_ms": Wait, "limit": Annotated[int, Meta(ge=1, le=250)]},
)


@cache
def acquire_type() -> Any:
    """Return the type of a request for locks."""
    return request_type(AcquireLocks, ACQUIRE)


async def acquire(asking: Asking) -> Any:
    """Acquire locks, all or none; with `wait_ms`, wait in the queue."""
    command = build(AcquireLocks, asking)
    assert isinstance(command, AcquireLocks)
    command = msgspec.structs.replace(command, wait_id=os.urandom(8).hex())
    deadline = asyncio.get_running_loop().time() + command.wait_ms / 1000
    reply: LockReply = await asking.ask(command)
    if reply.outcome is Outcome.WAITING:
        reply = await _wait_in_queue(asking, command.caller, reply, deadline)
    return replies.answer(reply)


async def _wait_in_queue(asking: Asking, caller: Caller, reply: LockReply, deadline: float) -> LockReply:
    """Return the reply to a waiting request: granted, refused, or still waiting at the deadline."""
    assert reply.wait is not None, "only a waiting request has a wait id"
    key, waiting = reply.wait.wait_id, reply
    log = asking.store.log(asking.tenant)
    try:
        while reply.wait is not None and (left_s := _left_s(asking, deadline)) > 0:
            look_s = max(0.0, (reply.wait.look_ms - log.now()) / 1000) + 0.001
            changed = await _wait(asking, log.seen.offset, min(left_s, POLL_S, look_s))
            due = log.now() >= reply.wait.look_ms
            if due or not changed or await asking.ask(PeekWait(caller, key)):
                reply = await asking.ask(ConfirmWait(caller, key), command_id="")
                waiting = reply if reply.wait is not None else waiting
        if reply.outcome is Outcome.WAITING:  # the lock may have been granted since the last look
            reply = await asking.ask(ConfirmWait(caller, key), command_id="")
    finally:
        if reply.outcome is Outcome.WAITING:
            await asking.ask(WithdrawWait(caller, key), command_id="")
    return waiting if reply.outcome is Outcome.WITHDRAWN else reply


async def claim_next(asking: Asking) -> Any:
    """Claim the first tasks in the queue that this session may take; with `wait_ms`, wait for one."""
    command = build(ClaimNext, asking)
    assert isinstance(command, ClaimNext)
    deadline = asyncio.get_running_loop().time() + command.wait_ms / 1000
    log = asking.store.log(asking.tenant)
    command_id = None if not command.wait_ms else ""
    try:
        while True:
            seen = log.seen.offset
            reply: NextTask = await asking.ask(command, command_id=command_id)
            command = msgspec.structs.replace(command, registered=reply.registered)
            waits = reply.outcome in (Runnable.BLOCKED, Runnable.DENIED) and not reply.lost_to
            left_s = _left_s(asking, deadline)
            if not waits or left_s <= 0:
                return reply
            look_s = (reply.look_ms - log.now()) / 1000 if reply.look_ms else POLL_S
            await _wait(asking, seen, min(left_s, POLL_S, max(look_s, POLL_S_MIN)))
    finally:
        if command.registered:
            await asking.ask(EndTaskWait(command.caller), command_id="")


def _left_s(asking: Asking, deadline: float) -> float:
    if asking.hub.stopping.is_set() or asking.store.waits_ended:  # `_wait` would return at once, for ever
        return 0.0
    return deadline - asyncio.get_running_loop().time()


async def _wait(asking: Asking, after: int, timeout_s: float) -> bool:
    return await asking.hub.watcher(asking.store, asking.tenant).wait(after, timeout_s)


def endpoints() -> list[Endpoint]:
    """Return the routes whose requests may wait."""
    return [
        _endpoint(ACQUIRE, AcquireLocks, acquire_type(), acquire, "acquireLocks"),
        _endpoint(NEXT, ClaimNext, request_type(ClaimNext, NEXT), claim_next, "claimNext"),
    ]


def _endpoint(
    public: Public, kind: Any, body: Any, handle: Callable[[Asking], Awaitable[Any]], name: str
) -> Endpoint:
    return Endpoint(
        public.method,
        public.path,
        name,
        handle,
        summary=(handle.__doc__ or ""),
        tag=public.path.split("/")[2],
        role=role_of(kind),
        body=body,
        replies=replies.replies_of(kind.reply),
    )
