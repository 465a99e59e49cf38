"""Why a resource is locked: its holders, who waits for it, and what frees it."""

from collections.abc import Iterable, Iterator
from itertools import islice

from coord.core.locks.locks import LockAt, ended_by_time, overlapping_locks
from coord.core.locks.resources import parse_resource
from coord.core.locks.table import resources_of, waiters
from coord.core.messages.quoting import quote_name
from coord.core.transaction import Transaction
from coord.core.why.chain import Chain
from coord.core.why.commands import WhyLock, WhyReply
from coord.core.why.tasks import explain_holder

HOLDERS_MAX, WAITERS_MAX = 20, 20


def _live(found: Iterable[LockAt], now: int) -> Iterator[LockAt]:
    return (lock_at for lock_at in found if ended_by_time(lock_at.lock, now) is None)


def why_lock(tx: Transaction, command: WhyLock, now: int) -> WhyReply:
    """Say who holds a resource or a part of it, and what these sessions wait for."""
    chain = Chain(tx, now, command.project)
    resources = parse_resource(command.resource, command.repository)
    found = {
        lock_at.key: lock_at
        for resource in resources
        for lock_at in islice(_live(overlapping_locks(tx, resource), now), HOLDERS_MAX)
    }
    for lock_at in found.values():
        explain_holder(chain, lock_at, 0)
    asked = {
        (request.session, request.resources)
        for _, request in waiters(tx, resources)
        if any(each.overlaps(other) for each in resources for other in resources_of(request))
    }
    waiting = [
        wait for waits in chain.waits.values() for wait in waits if (wait.session, tuple(wait.wants)) in asked
    ]
    waiting.sort(key=lambda wait: (wait.position, wait.since_ms))
    for number, wait in enumerate(waiting[:WAITERS_MAX], 1):
        text = f"{chain.who(wait.session, wait.agent)} waits for it, position {wait.position or number}"
        chain.add("wait", text, 0, subject=("session", wait.session), since_ms=wait.since_ms)
    name = quote_name(command.resource.removeprefix("file:"))
    if not found and waiting:
        chain.explain_stop(0, claims=False)
    if not found:
        return chain.reply(f"nobody holds {name}")
    owners = dict.fromkeys(chain.who(each.lock.owner, each.lock.agent) for each in found.values())
    return chain.reply(f"{name} is held by {', '.join(owners)}")
