"""Why a resource is locked: its holders, who waits for it, and what frees it."""

from itertools import islice

from coord.core.locks.locks import ended_by_time, overlapping_locks
from coord.core.locks.resources import parse_resource
from coord.core.messages.quoting import quote_name
from coord.core.transaction import Transaction
from coord.core.why.chain import Chain
from coord.core.why.commands import WhyLock, WhyReply
from coord.core.why.tasks import explain_holder

HOLDERS_MAX, WAITERS_MAX = 20, 20


def why_lock(tx: Transaction, command: WhyLock, now: int) -> WhyReply:
    """Say who holds a resource or a part of it, and what these sessions wait for."""
    chain = Chain(tx, now, command.project)
    resources = parse_resource(command.resource, command.repository)
    found = {
        lock_at.key: lock_at
        for resource in resources
        for lock_at in islice(overlapping_locks(tx, resource), HOLDERS_MAX)
        if ended_by_time(lock_at.lock, now) is None
    }
    for lock_at in found.values():
        explain_holder(chain, lock_at, 0)
    wanted = {command.resource, *(lock_at.lock.resource for lock_at in found.values())}
    waiting = [wait for waits in chain.waits.values() for wait in waits if wanted.intersection(wait.wants)]
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
