"""Accept or reject submitted results, and read the accepted ones."""

import msgspec

from coord.core import keys
from coord.core.errors import LimitReached
from coord.core.ids import part_id
from coord.core.limits import (
    RECORD_RESULT_BYTES,
    UNLIMITED_TENANT,
    count_keys,
    limits_of,
    result_bytes_max,
)
from coord.core.tasks.chunks import add_reference
from coord.core.tasks.claim_locks import current_task, taken_by
from coord.core.tasks.claims import ended_with_lock, remove_claim
from coord.core.tasks.commands import SubmitResult
from coord.core.tasks.planned import finish_done, prefetch_done
from coord.core.tasks.refusals import Refusal, record_refusals
from coord.core.tasks.schema import (
    ACTIVE,
    DONE,
    EXPIRED,
    RELEASED,
    Result,
    Task,
    TaskCompleted,
    as_of,
    combine_results,
)
from coord.core.tasks.types import Operation, ReleaseReason, SubmissionReason, SubmissionResult, TaskResult
from coord.core.transaction import Transaction

ACCEPTED, COMPLETED = SubmissionReason.ACCEPTED, ReleaseReason.COMPLETED


def submit_reads(command: SubmitResult) -> list[str]:
    """Return the keys that an accepted submission reads, so that a batch loads them together."""
    project, task_id, session = command.project, command.task, command.session
    reads = [] if command.tenant == UNLIMITED_TENANT else count_keys(session)
    reads += (
        keys.task(project, task_id),
        keys.result(project, task_id, command.generation),
        keys.by_session(session, project, task_id),
    )
    if command.digest:
        reads.append(keys.blob(command.digest))
    return reads


def submit_result(tx: Transaction, command: SubmitResult, now: int) -> SubmissionResult:
    """Accept the result of the current generation from the session that holds it, once."""
    task_key = keys.task(command.project, command.task)
    stored = current_task(tx, command.project, command.task, now)
    task = as_of(stored, now)
    reason, detail = _submission_reason(task, command), ""
    if reason is ACCEPTED and (holder := taken_by(tx, stored)):
        reason, detail = SubmissionReason.LOCK_LOST, f"{holder} had its files after the lease expired"
    if reason is not ACCEPTED:
        return _reject(tx, command, task, reason, now, detail)
    limit = result_bytes_max(limits_of(tx, command.tenant))
    if command.result_bytes > limit:
        detail = f"the result has {command.result_bytes} bytes; the limit is {limit}"
        return _reject(tx, command, task, SubmissionReason.DENIED_LIMIT_RESULT_SIZE, now, detail)
    if len(command.result) > RECORD_RESULT_BYTES:
        raise LimitReached(
            f"a record holds {RECORD_RESULT_BYTES} bytes of a result", hint="bring a larger one in chunks"
        )
    if command.digest and not add_reference(tx, command.digest, command.size, now):
        return SubmissionResult(False, SubmissionReason.DATA_MISSING, task.generation)
    return _accept(tx, command, task_key, stored, now)


def _submission_reason(task: Task, command: SubmitResult) -> SubmissionReason:
    done = task.state is DONE
    if task.claim not in (ACTIVE, EXPIRED) and not done:
        return SubmissionReason.LOCK_LOST if ended_with_lock(task, command) else SubmissionReason.NO_CLAIM
    if command.generation < task.generation:
        return SubmissionReason.STALE_GENERATION
    if command.generation > task.generation:
        return SubmissionReason.FUTURE_GENERATION
    if done:
        return SubmissionReason.TASK_ALREADY_COMPLETED
    if command.session != task.session:
        return SubmissionReason.SESSION_MISMATCH
    return ACCEPTED


def _accept(
    tx: Transaction, command: SubmitResult, task_key: str, stored: Task, now: int
) -> SubmissionResult:
    task = msgspec.structs.replace(
        stored,
        state=DONE,
        claim=RELEASED,
        ended_ms=now,
        end_reason=COMPLETED,
        work_product=command.work_product,
        result_bytes=command.result_bytes,
    )
    result_key = keys.result(command.project, command.task, task.generation)
    if task.planned:
        prefetch_done(tx, command.project, command.task, stored)
    remove_claim(tx, command, stored, now)
    tx.put(task_key, task)
    if task.planned:
        finish_done(tx, command.project, command.task, task, now)
    tx.put(result_key, Result(data=msgspec.Raw(command.result or b"null"), digest=command.digest))
    tx.emit(
        TaskCompleted(
            command.project,
            command.task,
            task.generation,
            task.session,
            task.agent,
            command.work_product,
            command.result_bytes,
            now - task.claimed_ms,
            now - (task.begun_ms or task.claimed_ms),
        )
    )
    return SubmissionResult(True, ACCEPTED, task.generation, work_product_ref=command.work_product)


def _reject(
    tx: Transaction, command: SubmitResult, task: Task, reason: SubmissionReason, now: int, detail: str
) -> SubmissionResult:
    """Reject a submission and record it, unless its session submits an accepted result once more."""
    held = _own_generation(tx, command, task)
    own_again = held is not None and held.end_reason is COMPLETED
    lost = held is not None and not own_again and reason is not SubmissionReason.DENIED_LIMIT_RESULT_SIZE
    if not own_again:
        refusal = Refusal(
            command.project,
            command.task,
            command.generation,
            command.session,
            Operation.SUBMIT,
            reason.value,
            command.agent or (held.agent if held is not None else ""),
            command.user or (held.user if held is not None else ""),
            task.generation,
            command.result_bytes,
            lost,
            now - held.claimed_ms if held is not None else 0,
        )
        record_refusals(tx, command.tenant, [refusal], now)
    if reason is SubmissionReason.LOCK_LOST:
        detail = detail or task.note
    return SubmissionResult(False, reason, task.generation, lost, detail=detail)


def _own_generation(tx: Transaction, command: SubmitResult, task: Task) -> Task | None:
    """Return the generation that the command names, if it was granted to its session."""
    held: Task | None = task
    if command.generation != task.generation or task.claim is None:
        if not 0 < command.generation <= task.generation:
            return None
        held = tx.get(keys.history(command.project, command.task, command.generation), Task)
    return held if held is not None and held.session == command.session else None


def result_info(tx: Transaction, tenant: str, project: str, task_id: str, task: Task) -> TaskResult:
    """Return the accepted result of a generation, without data that is larger than a record."""
    import json  # slow to import, and few commands read results

    result = tx.get(keys.result(project, task_id, task.generation), Result) or Result()
    data = None
    if task.result_bytes <= RECORD_RESULT_BYTES:
        data = json.loads(bytes(_result_data(tx, project, task_id, result)))
    return TaskResult(
        tenant,
        project,
        task_id,
        task.generation,
        task.session,
        task.agent,
        task.ended_ms,
        accepted=True,
        result_data=data,
        work_product_ref=task.work_product,
        size_bytes=task.result_bytes,
        digest=result.digest,
        part_generations=result.part_generations,
        user_id=task.user,
    )


def _result_data(tx: Transaction, project: str, task_id: str, result: Result) -> bytes | msgspec.Raw:
    """Return the JSON of a small result; that of a split task combines the results of its parts."""
    if not result.part_generations:
        return result.data
    result_keys = [
        keys.result(project, part_id(task_id, number), generation)
        for number, generation in enumerate(result.part_generations, 1)
    ]
    tx.prefetch(*result_keys)
    return combine_results(
        bytes((tx.get(key, Result) or Result()).data) if generation else None
        for key, generation in zip(result_keys, result.part_generations, strict=True)
    )
