"""The queue: claim the first task that an agent may take in one step, with locks on its files.

Ready tasks are indexed by class (track, type, role, needs), in the order of `added − step · priority`:
priority is a head start, and a task that waits long enough comes first. A claim reads the heads of the
classes that the agent may take, whatever the number of tasks behind them. Without a task, `idle.py` says why.
"""

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice
from zlib import crc32

import msgspec

from coord.core import keys
from coord.core.limits import UNLIMITED_TENANT, TenantLimits, count_keys, limits_of
from coord.core.locks.expiry import expire_blockers
from coord.core.locks.schema import LockRequest, Mode
from coord.core.locks.table import blocking_locks, conflicts_with, load_table, prefetch_locks
from coord.core.locks.wait_queue import forget_task_wait
from coord.core.messages.quoting import quote_name
from coord.core.plans.assignment import kept_for_another, router_for
from coord.core.plans.commands import ClaimNamed, ClaimNext, ClaimReply, NextTask, Runnable
from coord.core.plans.idle import (
    explain_blocked_agent,
    explain_empty_queue,
    explain_held_work,
    reap_dead_holders,
    tasks_in_progress,
)
from coord.core.plans.plan import task_info
from coord.core.plans.preference import Candidate, merge_preferred, speeds_for
from coord.core.ranges import Range
from coord.core.sessions.identify import caller_reads, ensure_session
from coord.core.sessions.schema import Session
from coord.core.settings import held_work
from coord.core.tasks.agent_record import EFFICIENCY_MIN, UNAVAILABLE_STATES, blocked_reason
from coord.core.tasks.claim_locks import lock_priority, take_claim_locks
from coord.core.tasks.claims import claim_one, claim_task, record_denials
from coord.core.tasks.commands import ClaimTask, ClaimTasks
from coord.core.tasks.planned import track_full_reason
from coord.core.tasks.schema import NO_RESTRICTIONS, AgentRecord, QueueClass, Spec, Task, queue_class_name
from coord.core.tasks.types import ClaimReason
from coord.core.transaction import Transaction

CLASSES_MAX = 1000
NO_CLASS = queue_class_name(Spec())
HEADS, FURTHER = 4, 128
SECONDS = -3
"""The milliseconds of a rank are its last three digits."""
CANDIDATES_MAX = 1000
BLOCKED_FILES_MAX = 64
"""A claim that finds the files of tasks locked reads `HEADS` tasks of a class, then `FURTHER` at a time. It
ends after `CANDIDATES_MAX` tasks, or after `BLOCKED_FILES_MAX` different sets of files."""
STEP_FILES, STEP_BYTES, ANSWER_BYTES = 64, 384 * 1024, 192 * 1024
"""A step that reaches one of these numbers claims no further task: it has to fit into a commit of any store,
and its reply into one record."""


def claim_next(tx: Transaction, command: ClaimNext, now: int) -> NextTask:
    """Claim the first tasks that this agent may take, up to the limit of the command."""
    session = ensure_session(tx, command.caller, now)
    agent = session.agent or session.session_id
    if command.registered and (loss := _read_loss(tx, session)):
        return loss
    if found := held_work(tx, person=session.person):
        return explain_held_work(tx, command.project, found, now)
    why, until_ms = _agent_blocked(tx, command, session, agent, now)
    if why:
        return explain_blocked_agent(tx, command.project, f"{agent} gets no task: {why}", until_ms)
    busy: list[str] = []
    taken = _take(tx, command, session, busy, now)
    if command.registered and taken:
        forget_task_wait(tx, session.session_id)
    if taken:
        return msgspec.structs.replace(taken[0], more=taken[1:]) if len(taken) > 1 else taken[0]
    working = tasks_in_progress(tx, command.project)
    if reap_dead_holders(tx, working, session.session_id, now):
        return claim_next(tx, command, now)
    heads = [_heads(command.project, name) for name, _ in queue_classes(tx, command.project)]
    reply = explain_empty_queue(tx, command.project, working, busy, heads, now)
    if reply.outcome is not Runnable.BLOCKED or not command.wait_ms:
        return reply
    from coord.core.plans.waits import begin_task_wait  # noqa: PLC0415 - it needs this module, and few claims wait

    return begin_task_wait(tx, command, session, reply, now)


def _read_loss(tx: Transaction, session: Session) -> NextTask | None:
    from coord.core.plans.waits import read_loss  # noqa: PLC0415 - it needs this module

    return read_loss(tx, session.session_id)


def _take(tx: Transaction, command: ClaimNext, session: Session, busy: list[str], now: int) -> list[NextTask]:
    """Claim tasks in the order of their ranks; `busy` collects what blocks the others.

    A step ends before a task whose files overlap those of a claimed one: the second claim would share locks
    with the first and lose them when the first ends.
    """
    taken: list[NextTask] = []
    locked: list[LockRequest] = []
    held: dict[tuple[object, ...], str] = {}
    answer_bytes = 0
    agent, name = session.agent or session.session_id, session.session_id
    ask = ClaimTasks(command.tenant, agent, name, command.lease_ms, (), session.user)
    limits = limits_of(tx, command.tenant)
    route = router_for(tx, command, session, now)
    for candidate in _candidates(tx, command, session, busy, now):
        spec = tx.get(keys.spec(command.project, candidate.task_id), Spec) or Spec()
        why = kept_for_another(tx, spec, session, now) or (route(candidate.task_id, spec) if route else "")
        if why:
            busy.append(f"{candidate.task_id}: {why}")
            continue
        request = lock_request(tx, command, session, candidate.task_id, now)
        if request is not None:
            if any(conflicts_with(msgspec.structs.replace(request, session=""), other) for other in locked):
                break
            files = request.resources, request.repository, request.exact
            if files not in held:
                held[files] = _blocked_by(tx, request, now)[1]
            if held[files]:
                busy.append(f"{candidate.task_id}: {held[files]}")
                if len(held) > BLOCKED_FILES_MAX:
                    break
                continue
        reply = _claim(tx, ask, command.project, candidate.task_id, limits, request, now)
        if reply.outcome is Runnable.BLOCKED:
            busy += reply.waiting_for
            continue
        if not reply.ok:
            return taken or [reply]
        taken.append(reply)
        locked += [request] if request is not None else []
        if len(taken) == command.limit:
            break
        answer_bytes += len(msgspec.json.encode(reply))
        files_locked = sum(len(each.resources) for each in locked)
        if files_locked >= STEP_FILES or tx.size > STEP_BYTES or answer_bytes > ANSWER_BYTES:
            break
    return taken


def next_reads(command: ClaimNext) -> list[str]:
    """Return the keys that a claim reads about its agent."""
    caller = command.caller
    agent = keys.agent(command.project, caller.agent or caller.session)
    reads = [*caller_reads(command), agent, keys.HELD_WORK]
    if command.registered:
        reads.append(keys.waits(caller.session))
    return reads if command.tenant == UNLIMITED_TENANT else reads + count_keys(caller.session)


def next_ranges(command: ClaimNext) -> list[Range]:
    """Return the range of queue classes and that of tasks without a class: many plans have no others."""
    return [_all_classes(command.project), _heads(command.project, NO_CLASS, max(HEADS, command.limit))]


def _agent_blocked(
    tx: Transaction, command: ClaimNext, session: Session, agent: str, now: int
) -> tuple[str, int]:
    """Return why this agent gets no task, and until when."""
    if session.state in UNAVAILABLE_STATES:
        return f"its state is {session.state}", 0
    if not command.enabled:
        return "disabled by configuration", 0
    return blocked_reason(tx.get(keys.agent(command.project, agent), AgentRecord) or NO_RESTRICTIONS, now)


def claim_named_reads(command: ClaimNamed) -> list[str]:
    """Return the keys that a claim by task id reads."""
    project, task_id, session = command.project, command.task, command.caller.session
    reads = [*caller_reads(command), keys.HELD_WORK]
    reads += keys.task(project, task_id), keys.spec(project, task_id)
    return [*reads, keys.by_session(session, project, task_id)] if session else reads


def claim_named(tx: Transaction, command: ClaimNamed, now: int) -> ClaimReply:
    """Claim one task with locks on its files, all or none."""
    session = ensure_session(tx, command.caller, now)
    ask = ClaimTask(
        command.tenant,
        command.project,
        command.task,
        session.agent or session.session_id,
        session.session_id,
        command.lease_ms,
        force=command.force,
        reason=command.reason,
        user=session.user,
    )
    result = claim_task(tx, ask, now, person=session.person)
    if not result.success:
        return ClaimReply(False, result.reason, None, result.current_holder, result.detail)
    request = lock_request(tx, command, session, command.task, now)
    if request is None:
        return ClaimReply(True, result.reason, result.claim)
    holder, held = _blocked_by(
        tx, request, now
    )  # after the claim, which may have ended another one with its locks
    if held:
        tx.withdraw()
        denied = {(command.project, command.task): ClaimReason.DENIED_LOCKED}
        record_denials(tx, ask, denied, now)
        return ClaimReply(False, ClaimReason.DENIED_LOCKED, None, holder, held)
    locks = take_claim_locks(tx, command.project, command.task, request, now)
    return ClaimReply(True, result.reason, result.claim, locks=locks)


def _candidates(
    tx: Transaction, command: ClaimNext, session: Session, busy: list[str], now: int
) -> Iterator[Candidate]:
    """Yield the ready tasks that this agent may take, in the order of their ranks."""
    agent = session.agent or session.session_id
    project = command.project
    names = []
    classes = classes_for(tx, command, session)
    tx.prefetch(*{keys.track(project, kind.track) for _, kind in classes if kind.track})
    for name, kind in classes:
        full = track_full_reason(tx, project, kind.track, agent)
        if full:
            busy.append(full)
        else:
            names.append(name)
    share = max(1, len(names))
    first = max(HEADS, command.limit * (HEADS if tx.conflicts else 1) // share)
    ahead = min(tx.batch_size, FURTHER) // share
    ahead = ahead if ahead > HEADS else 0
    tx.prefetch_scans([_heads(project, name, first + ahead) for name in names])
    streams = [_ready_tasks(tx, project, name, first, ahead) for name in names]
    speed = speeds_for(command, session)
    by_speed = {} if speed is None else {name: speed(kind.type) for name, kind in classes}
    if len({by_speed[name] for name in names if name in by_speed}) > 1:
        merged = merge_preferred([(by_speed[name], each) for name, each in zip(names, streams, strict=True)])
    else:
        merged = merge(*streams)
    spread = _spread(merged, session.session_id, tx.conflicts, command.limit)
    return spread if ahead and command.limit == 1 else _prefetch(tx, command, session, spread, now)


def _spread(candidates: Iterator[Candidate], session: str, conflicts: int, limit: int) -> Iterator[Candidate]:
    """After a conflict, start at a different one of the first tasks, so that agents do not compete for one.

    Only tasks whose ranks agree to the second are exchanged: tasks of a plan are added within a second.
    """
    heads = list(islice(candidates, HEADS * limit)) if conflicts else []
    positions = sum(candidate.rank[:SECONDS] == heads[0].rank[:SECONDS] for candidate in heads) // limit
    if positions:
        at = crc32(f"{session} {conflicts}".encode()) % positions * limit
        yield from heads[at : at + limit]
        del heads[at : at + limit]
    yield from heads
    yield from candidates


def _prefetch(
    tx: Transaction, command: ClaimNext, session: Session, candidates: Iterator[Candidate], now: int
) -> Iterator[Candidate]:
    """Yield tasks, and prefetch what their claims read: a few first, then many at a time."""
    project = command.project
    first = size = max(HEADS, command.limit)
    while some := list(islice(candidates, size)):
        names = [candidate.task_id for candidate in some]
        tx.prefetch(
            *(keys.spec(project, name) for name in names),
            *(keys.by_session(session.session_id, project, name) for name in names[:first]),
            *(keys.working(project, name) for name in names[:first]),
        )
        requests = [lock_request(tx, command, session, name, now) for name in names[: command.limit]]
        prefetch_locks(tx, [request for request in requests if request is not None][:STEP_FILES])
        yield from some
        size = FURTHER


def _heads(project: str, class_name: str, limit: int = HEADS) -> Range:
    return Range(keys.ready_prefix(project, class_name), "index_key", limit)


def _ready_tasks(
    tx: Transaction, project: str, class_name: str, first: int, ahead: int
) -> Iterator[Candidate]:
    """Yield the first ready tasks of a class.

    In a batch of many commands, `ahead` more tasks are loaded: each claim moves the next command on by one.
    """
    prefix, _, limit, after = _heads(project, class_name, first)
    depth = len(keys.task(project, ""))
    looked_at = 0
    while looked_at < CANDIDATES_MAX:
        page = tx.scan(prefix, by="index_key", limit=limit, after=after)
        names = [found.key[depth:] for found in page]
        if ahead and tx.not_loaded(*(keys.spec(project, name) for name in names)):
            further = tx.scan(prefix, by="index_key", limit=limit + ahead, after=after)
            tx.prefetch(*(keys.spec(project, found.key[depth:]) for found in further))
        yield from (
            Candidate(found.index_key[len(prefix) :], name) for found, name in zip(page, names, strict=True)
        )
        if len(page) < limit:
            return
        looked_at += len(page)
        limit, after = FURTHER, (page[-1].index_key, page[-1].key)


def _all_classes(project: str) -> Range:
    return Range(keys.queue_class_prefix(project), "key", CLASSES_MAX)


def queue_classes(tx: Transaction, project: str) -> list[tuple[str, QueueClass]]:
    prefix, _, limit, _ = _all_classes(project)
    found = []
    for entry in tx.scan(prefix, limit=limit):
        kind = tx.get(entry.key, QueueClass)
        if kind is not None:
            found.append((entry.key[len(prefix) :], kind))
    return found


def classes_for(tx: Transaction, command: ClaimNext, session: Session) -> list[tuple[str, QueueClass]]:
    """Return the classes whose tasks this agent may take."""
    able = {name for name, value in session.capabilities.items() if value >= EFFICIENCY_MIN}
    unable = _types((*command.cannot, *(session.capabilities.keys() - able)))
    has = able.union(command.has)
    found = queue_classes(tx, command.project)
    return [(name, kind) for name, kind in found if _may_take(command, kind, has, unable)]


def _types(names: Sequence[str]) -> set[str]:
    """Return types of tasks with all their aliases."""
    if not names:
        return set()
    from coord.core.routing.specialties import names_of  # noqa: PLC0415 - few agents declare what they cannot do

    return set().union(*map(names_of, names))


def _may_take(command: ClaimNext, kind: QueueClass, has: set[str], unable: set[str]) -> bool:
    wanted = ((command.types, kind.type), (command.tracks, kind.track), (command.roles, kind.role))
    if any(choice and value and value not in choice for choice, value in wanted):
        return False
    return set(kind.needs) <= has and kind.type not in unable


def lock_request(
    tx: Transaction, command: ClaimNext | ClaimNamed, session: Session, task_id: str, now: int
) -> LockRequest | None:
    """Return the lock request for the files of a task, if its claim locks them."""
    spec = tx.get(keys.spec(command.project, task_id), Spec)
    if not command.lock_files or spec is None or not spec.files:
        return None
    return LockRequest(
        session=session.session_id,
        agent=session.agent,
        repository=spec.repository or command.repository,
        resources=tuple(spec.files),
        mode=Mode.WRITE,
        ttl_ms=command.lease_ms,
        reason=f"task {task_id}",
        priority=lock_priority(spec, now),
        since_ms=now,
        exact=spec.exact,
    )


def _blocked_by(tx: Transaction, request: LockRequest, now: int) -> tuple[str, str]:
    """Return the session that blocks the files of a task, a holder or a waiter, and a sentence."""
    table = expire_blockers(tx, load_table(tx, request, now), now)
    blocking = blocking_locks(table, now)
    if blocking:
        owner = blocking[0].lock.owner
        return owner, f"{quote_name(blocking[0].lock.resource)} is held by {owner}"
    ahead = [other for _, other in table.waiting if conflicts_with(request, other)]
    if not ahead:
        return "", ""
    return ahead[0].session, f"{ahead[0].session} waits for {quote_name(ahead[0].resources[0])}"


def _claim(
    tx: Transaction,
    ask: ClaimTasks,
    project: str,
    task_id: str,
    limits: TenantLimits | None,
    request: LockRequest | None,
    now: int,
) -> NextTask:
    result = claim_one(tx, ask, project, task_id, limits, now)
    if not result.success:
        assert result.reason is not ClaimReason.DENIED_ACTIVE_CLAIM, f"{task_id} is ready and claimed"
        # A task that was claimed too often waits for a person; the tasks behind it do not.
        of_task = result.reason is ClaimReason.DENIED_LIMIT_GENERATIONS
        outcome = Runnable.BLOCKED if of_task else Runnable.DENIED
        if not of_task:
            record_denials(tx, ask, {(project, task_id): result.reason}, now)
        return NextTask(outcome, waiting_for=[f"{task_id}: {result.reason} {result.detail}"])
    locks = [] if request is None else take_claim_locks(tx, project, task_id, request, now)
    task_key = keys.task(project, task_id)
    task, spec = tx.get(task_key, Task), tx.get(keys.spec(project, task_id), Spec)
    assert task is not None, f"{task_key} was just claimed"
    assert spec is not None, f"{task_key} was in the queue"
    return NextTask(Runnable.TASK, task_info(task_id, spec, task, now), result.claim, locks)
