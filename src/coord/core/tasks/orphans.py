"""End the claims of a session that has ended, so that their tasks are free again."""

import msgspec

from coord.core import keys
from coord.core.limits import UNLIMITED_TENANT, Count, count_off
from coord.core.tasks.claims import record_loss, remove_from_indexes
from coord.core.tasks.commands import TaskCommand
from coord.core.tasks.planned import schedule_retry
from coord.core.tasks.schema import ClaimLoss, Task, TaskReleased, as_of
from coord.core.tasks.types import ClaimState, ReleaseReason, TaskStatus
from coord.core.transaction import Transaction


def end_claims(tx: Transaction, session: str, reason: ReleaseReason, note: str, now: int) -> int:
    """End the active claims of a session that has ended; return the number."""
    ended = 0
    for page in tx.pages(keys.by_session_prefix(session)):
        for found in page:
            project, task_id = keys.parts(found.key)[2:]
            _end_claim(tx, TaskCommand(UNLIMITED_TENANT, project, task_id), reason, note, now)
            ended += 1
    return ended


def _end_claim(tx: Transaction, which: TaskCommand, reason: ReleaseReason, note: str, now: int) -> None:
    task_key = keys.task(which.project, which.task)
    stored = tx.get(task_key, Task)
    assert stored is not None, f"{task_key} is in the index of its session"
    remove_from_indexes(tx, which, stored, now)
    if tx.get(keys.count_session(stored.session), Count) is not None:  # a limited tenant counts
        count_off(tx, stored.session)
    if as_of(stored, now).claim is ClaimState.EXPIRED:
        if stored.planned:
            schedule_retry(tx, which.project, which.task, as_of(stored, now), now, backoff=False)
        else:
            tx.put(task_key, as_of(stored, now))
        tx.put_marker(keys.expired(stored.expires_ms, which.project, which.task))
        return
    failed = reason is ReleaseReason.ERROR
    if failed:
        lost = ClaimLoss(generation=stored.generation, reason=reason, at_ms=now, note=note)
        record_loss(tx, stored.session, which.project, which.task, lost)
    task = msgspec.structs.replace(
        stored,
        claim=ClaimState.ERROR if failed else ClaimState.RELEASED,
        state=TaskStatus.READY,
        ended_ms=now,
        end_reason=reason,
        note=note,
    )
    if task.planned:
        schedule_retry(tx, which.project, which.task, task, now, backoff=False)
    else:
        tx.put(task_key, task)
    names = (which.project, which.task, task.generation, task.session, task.agent)
    tx.emit(TaskReleased(*names, reason.value, note))
