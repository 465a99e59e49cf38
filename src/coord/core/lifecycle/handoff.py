"""Hand a lock or a claim over to another session, in one commit.

The taker gets the lock under a new fence, or the claim under the next generation, so nothing that the
giver still sends counts. Nobody who waits can slip in between. The taker is notified in the same commit.
"""

import msgspec

from coord.core import keys
from coord.core.errors import Dead, Denied, Invalid, LockLost, NotFound, Refused
from coord.core.identity import ProcessState
from coord.core.lifecycle.commands import Handoff, HandoffReply
from coord.core.limits import UNLIMITED_TENANT, count_off, limits_of
from coord.core.locks.commands import LockInfo
from coord.core.locks.locks import (
    LockAt,
    conflicting,
    end_lock,
    grant,
    lock_info,
    overlapping_locks,
    refuse_if_stopped,
    requester_of,
)
from coord.core.locks.release import own_locks
from coord.core.locks.resources import Resource
from coord.core.locks.schema import EndReason, Lock, LockRequest, Mode
from coord.core.locks.table import blocking_locks, load_table
from coord.core.locks.uses import BY_HAND, claims_using
from coord.core.locks.wait_queue import grant_waiters
from coord.core.messages.inbox import notify
from coord.core.messages.quoting import quote, quote_name, quote_names
from coord.core.messages.recipients import find_recipients
from coord.core.sessions.identify import ensure_session
from coord.core.sessions.liveness import evidence_of
from coord.core.sessions.schema import Session
from coord.core.tasks.claim_locks import claim_locks, current_task, take_claim_locks
from coord.core.tasks.claims import claim_one, holder_refusal, remove_from_indexes
from coord.core.tasks.commands import ClaimTask, ReleaseClaim
from coord.core.tasks.schema import ACTIVE, RELEASED, UNCLAIMED, TaskReleased, as_of
from coord.core.tasks.types import ReleaseReason, TaskStatus
from coord.core.transaction import Transaction


def hand_off(tx: Transaction, command: Handoff, now: int) -> HandoffReply:
    """Give the named locks or the named claim of the caller to another session, all or nothing."""
    giver = ensure_session(tx, command.caller, now)
    taker = _taker(tx, command.to, giver, now)
    refuse_if_stopped(tx, taker)
    if command.task and (not command.resources or _has_claimed(tx, command, giver, now)):
        locks, generation = _hand_over_claim(tx, command, giver, taker, now)
        what = f"task {command.task} (generation {generation})"
    else:
        try:
            locks, generation = _hand_over_locks(tx, command, giver, taker, now), 0
        except NotFound:
            _check_task(tx, command, now)
            raise
        what = quote_names([lock.resource for lock in locks], len(locks))
    about = {
        "from": giver.session_id,
        "task": command.task if generation else "",
        "generation": generation,
        "resources": [lock.resource for lock in locks],
    }
    note = f": {quote(command.note)}" if command.note else ""
    subject = f"{giver.agent or giver.session_id} handed you {what}{note}"
    notify(tx, taker.session_id, "handoff", subject, now, about)
    return HandoffReply(taker.session_id, locks, command.task if generation else "", generation)


def _has_claimed(tx: Transaction, command: Handoff, giver: Session, now: int) -> bool:
    task = as_of(current_task(tx, command.project, command.task, now), now)
    return task.claim is ACTIVE and task.session == giver.session_id


def _check_task(tx: Transaction, command: Handoff, now: int) -> None:
    """Say who has claimed the task, if the word that names no lock is one that another session works on."""
    task = as_of(current_task(tx, command.project, command.task, now), now) if command.task else UNCLAIMED
    if task.claim is ACTIVE:
        raise Refused(
            f"{command.task} is claimed by {task.session}, not by this session",
            hint=f"coord task show {command.task} shows its claim",
        )


def _taker(tx: Transaction, to: str, giver: Session, now: int) -> Session:
    """Return the session that takes over; refuse the giver itself and a session that is dead."""
    found = find_recipients(tx, to, giver.session_id, now).sessions
    if len(found) != 1:
        names = ", ".join(session.session_id for session in found[:5])
        raise Invalid(f"{to} is {len(found)} sessions", hint=f"name one of them: {names}")
    (taker,) = found
    if taker.session_id == giver.session_id:
        raise Invalid(f"{to} is this session", hint="name another session; coord peers lists them")
    evidence = evidence_of(tx, taker)
    if taker.ended_ms or (evidence is not None and evidence.life is ProcessState.DEAD):
        raise Dead(f"session {taker.session_id} is dead", hint="coord peers --live lists the others")
    return taker


def _hand_over_locks(
    tx: Transaction, command: Handoff, giver: Session, taker: Session, now: int
) -> list[LockInfo]:
    if not command.resources:
        raise Invalid("nothing to hand over", hint="name a lock or a task of this session")
    locks_at = own_locks(tx, command, giver.session_id, now)
    for lock_at in locks_at:
        _check_lock(tx, lock_at, giver, taker, now)
    freed: list[Resource] = []
    for lock_at in locks_at:
        freed += end_lock(tx, lock_at, EndReason.RELEASED, now, by=taker.session_id)
    given = [_grant_to(tx, lock_at, taker, now) for lock_at in locks_at]
    grant_waiters(tx, freed, now)
    return [lock_info(lock, now) for lock in given]


def _check_lock(tx: Transaction, lock_at: LockAt, giver: Session, taker: Session, now: int) -> None:
    """Refuse to give a lock that is promised, or needed by a claim, or overlapped by another lock."""
    lock = lock_at.lock
    if lock.preempted_by and lock.preempted_by != taker.session_id:
        raise LockLost(f"{lock.preempted_by} was promised {lock.resource}", hint="release it (coord unlock)")
    if claims := claims_using(lock):
        task_id = claims[0][1]
        raise Refused(
            f"{lock.resource} belongs to the claim of {task_id}",
            hint=f"hand over the task: coord handoff {task_id} {taker.session_id}",
        )
    overlapping = [each for each in overlapping_locks(tx, lock_at.resource) if each.key != lock_at.key]
    if lock_at.resource.lock_key(taker.session_id) in {each.key for each in overlapping}:
        raise Denied(  # it may have a claim, or a lease that lasts longer
            f"{taker.session_id} has a lock on {lock.resource} already",
            hint=f"release this one: coord unlock {lock.resource}",
        )
    if others := conflicting(requester_of(tx, taker.session_id), lock.mode, overlapping, now):
        other = others[0].lock
        mine = other.owner == giver.session_id
        raise Denied(
            f"{quote_name(other.resource)} of {other.owner} overlaps {lock.resource}",
            hint=f"release it first: coord unlock {other.resource}" if mine else "wait until it is released",
        )


def _grant_to(tx: Transaction, lock_at: LockAt, taker: Session, now: int) -> Lock:
    """Grant a lock of the same terms to its new owner; it gets a new fence."""
    given = msgspec.structs.replace(
        lock_at.lock,
        owner=taker.session_id,
        agent=taker.agent,
        acquired_ms=now,
        expires_ms=now + lock_at.lock.ttl_ms,
        fence=0,
        under="",
        preempted_by="",
        preempt_ms=0,
        worktree="",
        uses=(BY_HAND,),
    )
    return grant(tx, lock_at.resource, given)


def _hand_over_claim(
    tx: Transaction, command: Handoff, giver: Session, taker: Session, now: int
) -> tuple[list[LockInfo], int]:
    stored = current_task(tx, command.project, command.task, now)
    which = ReleaseClaim(command.tenant, command.project, command.task, giver.session_id, stored.generation)
    refusal = holder_refusal(as_of(stored, now), which)
    if refusal is not None:
        raise Refused(
            f"this session does not hold {command.task}: {refusal.lower().replace('_', ' ')}",
            hint="coord session show lists its claims",
        )
    note = f"handed to {taker.session_id}"
    before = claim_locks(tx, command.project, command.task, stored)
    freed = remove_from_indexes(tx, which, stored, now)
    if command.tenant != UNLIMITED_TENANT:
        count_off(tx, giver.session_id)
    ended = msgspec.structs.replace(
        stored,
        claim=RELEASED,
        state=TaskStatus.READY,
        ended_ms=now,
        end_reason=ReleaseReason.VOLUNTARY,
        note=note,
    )
    tx.put(keys.task(command.project, command.task), ended)
    names = (command.project, command.task, stored.generation, giver.session_id, stored.agent)
    tx.emit(TaskReleased(*names, ReleaseReason.VOLUNTARY.value, note, now - stored.claimed_ms))
    agent = taker.agent or taker.session_id
    ask = ClaimTask(
        *(command.tenant, command.project, command.task, agent, taker.session_id, stored.lease_ms),
        metadata=stored.metadata,
        reason=f"handed over by {giver.session_id}",
        user=taker.user,
    )
    result = claim_one(tx, ask, command.project, command.task, limits_of(tx, command.tenant), now)
    if result.claim is None:
        raise Refused(
            f"{taker.session_id} cannot take {command.task}: {result.detail or result.reason}",
            hint="release it instead: coord task release",
        )
    locks = _lock_for_taker(tx, command, before, taker, stored.lease_ms, now) if before else []
    grant_waiters(tx, freed, now)
    return locks, int(result.claim.generation)


def _lock_for_taker(
    tx: Transaction, command: Handoff, before: list[LockAt], taker: Session, lease_ms: int, now: int
) -> list[LockInfo]:
    """Lock the files of the claim for its new holder; refuse if another lock blocks one of them."""
    request = LockRequest(
        session=taker.session_id,
        agent=taker.agent,
        repository=before[0].lock.repository,
        resources=tuple(lock_at.lock.resource for lock_at in before),
        mode=Mode.WRITE,
        ttl_ms=lease_ms,
        reason=f"task {command.task}",
        priority=max(lock_at.lock.priority for lock_at in before),
        since_ms=now,
        exact=tuple(lock_at.lock.resource for lock_at in before if lock_at.lock.exact),
    )
    if blocking := blocking_locks(load_table(tx, request, now, waiting=()), now):
        lock = blocking[0].lock
        hint = f"release it first: coord unlock {lock.resource}"
        raise Denied(f"{lock.resource} is also locked by {lock.owner}", hint=hint)
    return take_claim_locks(tx, command.project, command.task, request, now)
