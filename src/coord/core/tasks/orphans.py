"""End claims whose session or whose lock is gone, so that their tasks are free again."""

import msgspec

from coord.core import keys
from coord.core.limits import UNLIMITED_TENANT, Count, count_off
from coord.core.locks.commands import EndClaimOfLock
from coord.core.locks.resources import Resource
from coord.core.messages.inbox import notify
from coord.core.messages.quoting import quote_name
from coord.core.tasks.claim_locks import newest_fence
from coord.core.tasks.claims import put_expired, record_taken_claim, remove_from_indexes
from coord.core.tasks.commands import TaskCommand
from coord.core.tasks.planned import return_to_queue, schedule_retry
from coord.core.tasks.schema import ACTIVE, Task, TaskReleased
from coord.core.tasks.types import ClaimState, ReleaseReason, TaskStatus
from coord.core.transaction import Transaction


def end_claims(tx: Transaction, session: str, reason: ReleaseReason, note: str, now: int) -> list[Resource]:
    """End the active claims of a session that has ended; return what their locks have freed."""
    freed: list[Resource] = []
    for page in tx.pages(keys.by_session_prefix(session)):
        for found in page:
            project, task_id = keys.parts(found.key)[2:]
            stored = tx.get(keys.task(project, task_id), Task)
            assert stored is not None, f"{found.key} is an index of it"
            which = TaskCommand(UNLIMITED_TENANT, project, task_id)
            freed += _end_claim(tx, which, stored, reason, note, now)
    return freed


def end_claim_of_lock(tx: Transaction, command: EndClaimOfLock, now: int) -> list[Resource]:
    """End the claim that needed a lost lock, and notify its session; return what its other locks freed."""
    stored = tx.get(keys.task(command.project, command.task), Task)
    if stored is None or stored.claim is not ACTIVE or stored.generation != command.generation:
        return []
    which = TaskCommand(UNLIMITED_TENANT, command.project, command.task)
    to = f" to {command.by}" if command.by else ""
    note = f"{quote_name(command.resource)} was lost{to} ({command.end_reason})"
    in_time = now < stored.expires_ms
    freed = _end_claim(tx, which, stored, ReleaseReason.PREEMPTED, note, now, command.fence)
    if in_time:
        subject = (
            f"You lost task {command.task} (generation {stored.generation}): {note}. "
            f"Stop working on it; it is back in the queue"
        )
        about = {"task": command.task, "generation": stored.generation, "resource": command.resource}
        notify(tx, stored.session, "preempt", subject, now, about)
    return freed


_CLAIM_STATES = {
    ReleaseReason.ERROR: ClaimState.ERROR,
    ReleaseReason.PREEMPTED: ClaimState.SUPERSEDED,
    ReleaseReason.VOLUNTARY: ClaimState.RELEASED,
}


def _end_claim(
    tx: Transaction,
    which: TaskCommand,
    stored: Task,
    reason: ReleaseReason,
    note: str,
    now: int,
    fence: int = 0,
) -> list[Resource]:
    """End a claim for a reason, or as expired if its lease was over before; return what was freed."""
    fence = max(fence, newest_fence(tx, which.project, which.task, stored))
    freed = remove_from_indexes(tx, which, stored, now)
    if tx.get(keys.count_session(stored.session), Count) is not None:  # a limited tenant counts
        count_off(tx, stored.session)
    if now >= stored.expires_ms:
        put_expired(tx, which, stored, fence, now)
        return freed
    task = msgspec.structs.replace(
        stored,
        claim=_CLAIM_STATES[reason],
        state=TaskStatus.READY,
        ended_ms=now,
        end_reason=reason,
        note=note,
    )
    if reason is not ReleaseReason.VOLUNTARY:
        record_taken_claim(tx, which, task)
    names = (which.project, which.task, task.generation, task.session, task.agent)
    tx.emit(TaskReleased(*names, reason.value, note, now - task.claimed_ms))
    if not task.planned:
        tx.put(keys.task(which.project, which.task), task)
    elif reason is ReleaseReason.PREEMPTED:  # nobody failed: this costs neither a retry nor a reputation
        return_to_queue(tx, which.project, which.task, task, now)
    else:
        schedule_retry(tx, which.project, which.task, task, now, backoff=False)
    return freed
