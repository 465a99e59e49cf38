"""Asking for a task until there is one."""

import time

from coord.core.plans.commands import ClaimNext
from coord.core.replies import NextTask, Runnable
from coord.sdk.client.connection import Connection

NAP_S, NAP_S_MIN = 5.0, 0.05


def stand_by(client: Connection, command: ClaimNext, wait_s: float | None, command_id: str) -> NextTask:
    """Ask for a task until there is one, nothing can come by itself, or the time is up."""
    deadline = None if wait_s is None else time.monotonic() + wait_s
    store = client.database.log(client.tenant)
    while True:
        seen = store.seen.offset  # taken before: what comes meanwhile ends the wait at once
        reply: NextTask = client.call(command, command_id)
        left = NAP_S if deadline is None else deadline - time.monotonic()
        if reply.outcome not in (Runnable.BLOCKED, Runnable.DENIED) or left <= 0:
            return reply
        look_s = (reply.look_ms - store.now()) / 1000 if reply.look_ms else NAP_S
        store.wait(seen, min(left, NAP_S, max(look_s, NAP_S_MIN)))
