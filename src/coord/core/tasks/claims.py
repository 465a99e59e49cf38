"""The generation clock: which session may work on a task, and whose result counts.

A task is one record that holds its latest claim. Each claim gets the next generation: 1, 2, 3 … for the life
of the task. A session that renews, releases or submits states its generation, and coord accepts only the
current one. A worker that lost its task to another session therefore cannot submit anything.

    claim       is        →  becomes            generation   archived
    claim       none      →  ACTIVE             + 1          -
    claim       RELEASED  →  ACTIVE             + 1          the old one
    claim       EXPIRED   →  ACTIVE             + 1          the old one, EXPIRED
    claim       ACTIVE    →  (denied)           same
    force       ACTIVE    →  ACTIVE             + 1          the old one, SUPERSEDED
    renew       ACTIVE    →  ACTIVE             same
    submit      ACTIVE    →  RELEASED, done     same
    submit      EXPIRED   →  RELEASED, done     same         (late, not lost: nobody claimed it since, and
                                                             nobody else has held its files)
    release     ACTIVE    →  RELEASED or ERROR  same
    deadline    ACTIVE    →  EXPIRED            same
    lock lost   ACTIVE    →  SUPERSEDED         same         (`orphans.py`)
    reset       any       →  none               same         the old one (`reset.py`)

Invariants: a generation never falls; at most one claim of a task is valid; until a reset, one result per task
is accepted, under the highest generation, from the session that holds it.

A deadline counts as soon as it has passed: every rule first reads the task *as of now* (`as_of`), where a
claim past its deadline is EXPIRED. The sweep (`expire_due`) updates what is derived from it: the index of
active claims, the counts, the event. The latest ended generation stays in the task record until the next
claim moves it to `history/`, so that a claim writes two records instead of three.
"""

import msgspec

from coord.core import keys
from coord.core.identity import ProcessState
from coord.core.limits import (
    UNLIMITED_TENANT,
    TenantLimits,
    admit,
    claim_refusal,
    count_keys,
    count_off,
    limit_keys,
    limits_of,
    retention_index_key,
    too_many_sessions,
)
from coord.core.locks.expiry import declare_dead
from coord.core.locks.resources import Resource
from coord.core.locks.wait_queue import grant_waiters
from coord.core.sessions.liveness import evidence_of
from coord.core.sessions.schema import Session
from coord.core.settings import held_work
from coord.core.sweep import SWEEP_MAX
from coord.core.tasks import planned as work
from coord.core.tasks.agent_record import agent_of, limit_agent
from coord.core.tasks.claim_locks import current_task, newest_fence, renew_claim_locks
from coord.core.tasks.commands import (
    ClaimTask,
    ClaimTasks,
    ReleaseClaim,
    RenewLease,
    SubmitResult,
    TaskCommand,
)
from coord.core.tasks.refusals import Refusal, record_refusals, refusal_key
from coord.core.tasks.schema import (
    ACTIVE,
    DONE,
    EXPIRED,
    IN_PROGRESS,
    RELEASED,
    UNCLAIMED,
    ClaimLoss,
    Task,
    TaskClaimed,
    TaskExpired,
    TaskReleased,
    TaskRenewed,
    TaskSuperseded,
    as_of,
)
from coord.core.tasks.types import (
    ClaimReason,
    ClaimResult,
    ClaimState,
    Operation,
    ReleaseOutcome,
    ReleaseReason,
    ReleaseResult,
    RenewalReason,
    RenewalResult,
    TaskClaim,
    TaskGeneration,
    TaskStatus,
)
from coord.core.transaction import Transaction

DUE_PAGE = 256
GRANTED = ClaimReason.GRANTED
LOCK_LOST = "LOCK_LOST"
LOSS_KEEP_MS = 30 * 24 * 3600 * 1000


def claim_reads(command: ClaimTask | ReleaseClaim) -> list[str]:
    """Return the keys that a claim or its release reads, so that a batch loads them together."""
    session, project, task_id = command.session, command.project, command.task
    reads = [keys.task(project, task_id), keys.by_session(session, project, task_id), keys.HELD_WORK]
    return reads if command.tenant == UNLIMITED_TENANT else reads + count_keys(session)


def claims_reads(command: ClaimTasks) -> list[str]:
    """Return the keys that claims of several tasks read."""
    session = command.session
    reads = [keys.HELD_WORK] if command.tenant == UNLIMITED_TENANT else [keys.HELD_WORK, *count_keys(session)]
    for project, task_id in command.tasks:
        reads += keys.task(project, task_id), keys.by_session(session, project, task_id)
    return reads


def claim_task(tx: Transaction, command: ClaimTask, now: int, *, person: bool = False) -> ClaimResult:
    """Grant the next generation, unless the task is held or done, or a limit is reached."""
    result = _held_up(tx, person=person)
    if result is None:
        result = claim_one(tx, command, command.project, command.task, limits_of(tx, command.tenant), now)
    if not result.success:
        record_denials(tx, command, {(command.project, command.task): result.reason}, now)
    return result


def claim_tasks(tx: Transaction, command: ClaimTasks, now: int) -> list[ClaimResult]:
    """Claim each of several tasks."""
    limits, held_up = limits_of(tx, command.tenant), _held_up(tx)
    results = [
        held_up or claim_one(tx, command, project, task_id, limits, now) for project, task_id in command.tasks
    ]
    denied = {
        names: each.reason for names, each in zip(command.tasks, results, strict=True) if not each.success
    }
    if denied:
        record_denials(tx, command, denied, now)
    return results


def _held_up(tx: Transaction, *, person: bool = False) -> ClaimResult | None:
    """Return the denial of every claim while a person pauses, drains or stops all agents."""
    found = held_work(tx, person=person)
    if found is None:
        return None
    from coord.core.messages.work_mode import words_of  # noqa: PLC0415 - hardly ever

    return ClaimResult(False, ClaimReason.DENIED_NOT_READY, detail=words_of(found))


def record_denials(
    tx: Transaction,
    command: ClaimTask | ClaimTasks,
    denied: dict[tuple[str, str], ClaimReason],
    now: int,
) -> None:
    """Record denied claims, by task, under the generation that the task has now."""
    refusals = [
        Refusal(
            project,
            task_id,
            generation := (tx.get(keys.task(project, task_id), Task) or UNCLAIMED).generation,
            command.session,
            Operation.CLAIM,
            reason.value,
            command.agent,
            user_of(command),
            generation,
        )
        for (project, task_id), reason in denied.items()
    ]
    record_refusals(tx, command.tenant, refusals, now)


def user_of(command: ClaimTask | ClaimTasks) -> str:
    """Return the user behind a claim: as its session says, or as its metadata say."""
    named = command.user or command.metadata.get("user_id", "")
    return named if isinstance(named, str) else ""


def claim_one(
    tx: Transaction,
    command: ClaimTask | ClaimTasks,
    project: str,
    task_id: str,
    limits: TenantLimits | None,
    now: int,
) -> ClaimResult:
    """Claim one task for the session of the command, or return why not."""
    task_key = keys.task(project, task_id)
    stored = tx.get(task_key, Task) or UNCLAIMED
    if stored.state is DONE:
        return ClaimResult(False, ClaimReason.DENIED_COMPLETED)
    if stored.planned and (stored.claim is ACTIVE or stored.retry_ms):
        expire(tx, TaskCommand(command.tenant, project, task_id), now)
        stored = current_task(tx, project, task_id, now)  # its dependencies may have changed
    if stored.claim is ACTIVE and now < stored.expires_ms and not command.force:
        _prefetch_denial(tx, command, project, task_id, stored)
        if stored.session == command.session or not _end_if_dead(tx, stored.session, now):
            return ClaimResult(False, ClaimReason.DENIED_ACTIVE_CLAIM, None, stored.session)
        stored = tx.get(task_key, Task) or UNCLAIMED
    if command.expects and command.expects != (current := _claim_state(as_of(stored, now), command.expects)):
        return ClaimResult(False, ClaimReason.DENIED_UNEXPECTED, detail=f"its claim is at {current}")
    previous_agent = agent_of(stored) if stored.claim is ACTIVE else ""
    if stored.planned and (why := work.not_ready_reason(tx, project, stored, command.agent, previous_agent)):
        return ClaimResult(False, ClaimReason.DENIED_NOT_READY, detail=why)
    refusal = claim_refusal(limits, command.lease_ms, stored.generation - stored.reset_generation)
    if refusal is None:
        while too_many_sessions(tx, limits) and expire_due(tx, command.tenant, now, SWEEP_MAX):
            stored = tx.get(task_key, Task) or UNCLAIMED  # this claim may have been one of those that ended
        refusal = admit(tx, limits, command.session, previous_holder(stored))
        while refusal is not None and expire_due(tx, command.tenant, now, SWEEP_MAX):
            stored = tx.get(task_key, Task) or UNCLAIMED  # the counts included expired claims: check again
            refusal = admit(tx, limits, command.session, previous_holder(stored))
    if refusal is not None:
        return ClaimResult(False, ClaimReason(f"DENIED_LIMIT_{refusal[0]}"), detail=refusal[1])
    previous = stored
    if stored.claim is not None:
        previous = _archive_previous(
            tx, command, TaskCommand(command.tenant, project, task_id), stored, limits, now
        )
    return _grant(tx, command, task_key, project, task_id, previous, now)


def _prefetch_denial(
    tx: Transaction, command: ClaimTask | ClaimTasks, project: str, task_id: str, stored: Task
) -> None:
    """Prefetch what the denial of a claim reads, in one question: its holder, and an earlier denial."""
    reason = ClaimReason.DENIED_ACTIVE_CLAIM.value
    denial = Refusal(project, task_id, stored.generation, command.session, Operation.CLAIM, reason)
    sessions = (keys.session(stored.session), keys.session(command.session))
    tx.prefetch(*sessions, refusal_key(denial), *limit_keys(command.tenant))


def _end_if_dead(tx: Transaction, session: str, now: int) -> bool:
    """End the holder of a claim if its process is proven dead; return whether it was."""
    holder = tx.get(keys.session(session), Session)
    evidence = evidence_of(tx, holder) if holder is not None and not holder.ended_ms else None
    if evidence is None or evidence.life is not ProcessState.DEAD:
        return False
    grant_waiters(tx, declare_dead(tx, session, evidence.detail, now), now)
    return True


def _claim_state(task: Task, expected: str) -> str:
    """Return the claim of a task that nobody holds, in the terms of what the caller expected."""
    if expected.isdigit():
        return str(task.generation)
    return "EXPIRED" if task.claim is EXPIRED else "NO_CLAIM"


def previous_holder(stored: Task) -> str | None:
    """Return the session whose active claim a new one ends, if there is one."""
    return stored.session if stored.claim is ACTIVE else None


def _grant(
    tx: Transaction,
    command: ClaimTask | ClaimTasks,
    task_key: str,
    project: str,
    task_id: str,
    previous: Task,
    now: int,
) -> ClaimResult:
    generation = previous.generation + 1
    session, agent, lease_ms = command.session, command.agent, command.lease_ms
    expires_ms = now + lease_ms
    task = Task(
        generation,
        IN_PROGRESS,
        ACTIVE,
        session,
        agent,
        now,
        lease_ms,
        expires_ms,
        metadata=command.metadata,
        reset_generation=previous.reset_generation,
        planned=previous.planned,
        queue=previous.queue,
        track=previous.track,
        retries=previous.retries,
        user=user_of(command),
        begun_ms=previous.begun_ms or now,
        unknown=previous.unknown,
    )
    if task.planned:
        work.occupy_track(tx, project, task_id, task)
    tx.put(task_key, task, keys.due(expires_ms))
    tx.put_marker(keys.by_session(session, project, task_id))
    state = "" if previous.claim is None else previous.claim.value
    tx.emit(
        TaskClaimed(
            project,
            task_id,
            generation,
            session,
            agent,
            lease_ms,
            previous.generation,
            state,
            command.reason,
            task.user,
        )
    )
    return ClaimResult(True, GRANTED, claim_info(command.tenant, project, task_id, task))


def _archive_previous(
    tx: Transaction,
    command: ClaimTask | ClaimTasks,
    which: TaskCommand,
    stored: Task,
    limits: TenantLimits | None,
    now: int,
) -> Task:
    """End and archive the previous claim, which `admit` has counted off; a valid one is superseded."""
    previous = as_of(stored, now)
    grant_waiters(tx, remove_from_indexes(tx, which, stored, now), now)
    if previous.claim is ACTIVE:
        names = (which.project, which.task, previous.generation, previous.session, previous.agent)
        tx.emit(TaskSuperseded(*names, command.session, command.reason, now - previous.claimed_ms))
        previous = msgspec.structs.replace(
            previous,
            claim=ClaimState.SUPERSEDED,
            ended_ms=now,
            end_reason=ReleaseReason.SUPERSEDED,
            note=command.reason,
        )
        record_taken_claim(tx, which, previous)
    index_key = retention_index_key(limits, now)
    tx.put(keys.history(which.project, which.task, previous.generation), previous, index_key)
    return previous


def renew_lease(tx: Transaction, command: RenewLease, now: int) -> RenewalResult:
    """Renew the lease for its full duration, and the locks of the claim."""
    task_key = keys.task(command.project, command.task)
    stored = current_task(tx, command.project, command.task, now)
    refusal = holder_refusal(as_of(stored, now), command)
    if refusal is not None:
        _record_holder_refusal(tx, command, Operation.RENEW, stored, refusal, now)
        detail = stored.note if refusal == LOCK_LOST else ""
        return RenewalResult(False, RenewalReason(refusal), detail=detail)
    task = msgspec.structs.replace(stored, expires_ms=now + stored.lease_ms)
    tx.put(task_key, task, keys.due(task.expires_ms))
    if task.planned:
        renew_claim_locks(tx, command.project, command.task, task)
    tx.emit(
        TaskRenewed(command.project, command.task, task.generation, task.session, task.agent, task.expires_ms)
    )
    return RenewalResult(True, RenewalReason.RENEWED, task.expires_ms)


def release_claim(tx: Transaction, command: ReleaseClaim, now: int) -> ReleaseResult:
    """Release a claim, so that the task is free for the next generation."""
    task_key = keys.task(command.project, command.task)
    stored = current_task(tx, command.project, command.task, now)
    refusal = holder_refusal(as_of(stored, now), command)
    if refusal is not None:
        _record_holder_refusal(tx, command, Operation.RELEASE, stored, refusal, now)
        detail = stored.note if refusal == LOCK_LOST else ""
        return ReleaseResult(False, ReleaseOutcome(refusal), detail)
    remove_claim(tx, command, stored, now)
    failed = command.reason is ReleaseReason.ERROR
    task = msgspec.structs.replace(
        stored,
        claim=ClaimState.ERROR if failed else RELEASED,
        state=TaskStatus.READY,
        ended_ms=now,
        end_reason=command.reason,
        note=command.note,
    )
    tx.emit(
        TaskReleased(
            command.project,
            command.task,
            task.generation,
            task.session,
            task.agent,
            command.reason.value,
            command.note,
            now - task.claimed_ms,
        )
    )
    if not task.planned:
        tx.put(task_key, task)
    elif failed and command.final:
        work.fail_for_good(tx, command.project, command.task, task, now)
    elif failed:
        work.schedule_retry(tx, command.project, command.task, task, now, backoff=True)
    else:
        work.return_to_queue(tx, command.project, command.task, task, now)
    if command.limited_ms:
        until_ms = now + command.limited_ms
        limit_agent(tx, command.project, agent_of(task), until_ms, command.note, now)
    return ReleaseResult(True, ReleaseOutcome.RELEASED)


def holder_refusal(task: Task, command: RenewLease | ReleaseClaim) -> str | None:
    """Return the first reason why this session does not hold the task under this generation."""
    if task.claim not in (ACTIVE, EXPIRED):
        return LOCK_LOST if ended_with_lock(task, command) else "NO_CLAIM"
    if command.generation != task.generation:
        return "GENERATION_MISMATCH"
    if command.session != task.session:
        return "SESSION_MISMATCH"
    return "ALREADY_EXPIRED" if task.claim is EXPIRED else None


def ended_with_lock(task: Task, command: RenewLease | ReleaseClaim | SubmitResult) -> bool:
    """Whether the claim that a command names was the latest one, and ended because it lost a lock."""
    taken = task.claim is ClaimState.SUPERSEDED and task.end_reason is ReleaseReason.PREEMPTED
    return taken and (command.session, command.generation) == (task.session, task.generation)


def _record_holder_refusal(
    tx: Transaction,
    command: RenewLease | ReleaseClaim,
    operation: Operation,
    task: Task,
    reason: str,
    now: int,
) -> None:
    """Record a renewal or release that was refused."""
    own = command.session == task.session and command.generation == task.generation
    refusal = Refusal(
        command.project,
        command.task,
        command.generation,
        command.session,
        operation,
        reason,
        command.agent or (task.agent if own else ""),
        command.user or (task.user if own else ""),
        task.generation,
    )
    record_refusals(tx, command.tenant, [refusal], now)


def record_taken_claim(tx: Transaction, which: TaskCommand, ended: Task) -> None:
    """Record for its session a claim that another session has ended."""
    assert ended.end_reason is not None, "only an ended claim can be lost"
    lost = ClaimLoss(
        generation=ended.generation, reason=ended.end_reason, at_ms=ended.ended_ms, note=ended.note
    )
    record_loss(tx, ended.session, which.project, which.task, lost)


def record_loss(tx: Transaction, session: str, project: str, task_id: str, lost: ClaimLoss) -> None:
    """Record for a session that it lost a claim; only the latest of each task is kept."""
    tx.put(keys.lost(session, project, task_id), lost, keys.due(lost.at_ms + LOSS_KEEP_MS))


def expire_due(tx: Transaction, tenant: str, now: int, limit: int) -> int:
    """Record up to `limit` leases that have expired, ignoring other deadlines; return the number."""
    expired = 0
    after = ("", "")
    while expired < limit:
        page = tx.scan(keys.DUE_PREFIX, by="index_key", limit=DUE_PAGE, after=after)
        for found in page:
            if keys.due_ms(found.index_key) > now or expired == limit:
                return expired
            kind, *rest = keys.parts(found.key)
            if kind == "task":
                expired += expire(tx, TaskCommand(tenant, *rest), now)
        if len(page) < DUE_PAGE:
            break
        after = (page[-1].index_key, page[-1].key)
    return expired


def expire(tx: Transaction, which: TaskCommand, now: int) -> bool:
    """Record that the lease of a task has expired; return False if it has not."""
    task_key = keys.task(which.project, which.task)
    stored = tx.get(task_key, Task)
    if stored is not None and stored.retry_ms and now >= stored.retry_ms:
        work.end_backoff(tx, which.project, which.task, stored, now)
    if stored is None or stored.claim is not ACTIVE or now < stored.expires_ms:
        return False
    fence = newest_fence(tx, which.project, which.task, stored)
    remove_claim(tx, which, stored, now)
    put_expired(tx, which, stored, fence, now)
    return True


def put_expired(tx: Transaction, which: TaskCommand, stored: Task, fence: int, now: int) -> None:
    """Write a task whose claim has expired; `fence` is the newest one of the claim's locks."""
    expired = msgspec.structs.replace(as_of(stored, now), fence=fence)
    if stored.planned:
        work.schedule_retry(tx, which.project, which.task, expired, now, backoff=False)
    else:
        tx.put(keys.task(which.project, which.task), expired)
    tx.put_marker(keys.expired(stored.expires_ms, which.project, which.task))


def remove_claim(tx: Transaction, which: TaskCommand, stored: Task, now: int) -> None:
    """Remove an ending claim from the indexes and the counts, and pass its locks on."""
    grant_waiters(tx, remove_from_indexes(tx, which, stored, now), now)
    if stored.claim is ACTIVE and which.tenant != UNLIMITED_TENANT:
        count_off(tx, stored.session)


def remove_from_indexes(tx: Transaction, which: TaskCommand, stored: Task, now: int) -> list[Resource]:
    """Remove a claim from its indexes and its track; record it if its lease has expired.

    Return what its locks have freed: the caller passes that on.
    """
    freed: list[Resource] = []
    if stored.claim is ACTIVE:
        tx.delete(keys.by_session(stored.session, which.project, which.task))
        if stored.planned:
            freed = work.vacate_track(tx, which, stored, now)
        if now >= stored.expires_ms:
            names = (which.project, which.task, stored.generation, stored.session, stored.agent)
            tx.emit(TaskExpired(*names, stored.expires_ms, stored.expires_ms - stored.claimed_ms))
            lost = ClaimLoss(generation=stored.generation, at_ms=stored.expires_ms)
            record_loss(tx, stored.session, which.project, which.task, lost)
    elif stored.claim is EXPIRED:
        tx.delete(keys.expired(stored.expires_ms, which.project, which.task))
    return freed


def claim_info(tenant: str, project: str, task_id: str, task: Task) -> TaskClaim:
    """Return the claim of a task as callers get it."""
    assert task.claim is not None, "only a claimed task has a claim"
    return TaskClaim(
        tenant,
        project,
        task_id,
        task.agent,
        TaskGeneration(task_id, task.generation, task.session, task.claimed_ms, task.lease_ms),
        task.claim,
        task.expires_ms,
        task.work_product or None,
        task.metadata,
    )
