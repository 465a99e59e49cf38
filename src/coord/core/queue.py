"""The queue: the first task that an agent may take, claimed in one step, with the locks on its files.

Tasks that are ready stand in lines, one per class (track, type, role, needs), in the order of
`added − step · priority`: a high priority is a head start, and whoever waits long enough is first. An agent
looks at the heads of the classes it may take and claims the first one; how many wait behind costs nothing.

If there is nothing, the answer says which nothing: all is *done*; something will come (*blocked*, by what);
or all that is left waits for what has failed, and nothing will ever come by itself (*deadlocked*).
"""

from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import NamedTuple
from zlib import crc32

import msgspec

from coord.core import keys
from coord.core.acquire import clear_way
from coord.core.agent import EFFICIENCY_MIN, FREE, AgentRecord, held_back
from coord.core.caller import Life
from coord.core.commands import ClaimTask
from coord.core.ending import declare_dead
from coord.core.limits import UNLIMITED_TENANT, count_keys, limits_of
from coord.core.line import Request, blockers, competes, grant_request, in_line, resources_of, serve
from coord.core.lock import Mode, asker_of, resource_of, shown_lock
from coord.core.plan import listed
from coord.core.plan_commands import ClaimNamed, ClaimNext
from coord.core.replies import ClaimReply, LockShown, NextTask, Runnable
from coord.core.session import Session, caller_reads, enlist
from coord.core.spec import QueueClass, Spec
from coord.core.task import claim_one, claim_task
from coord.core.task_record import ACTIVE, UNCLAIMED, Task, as_of
from coord.core.types import ClaimReason, TaskStatus
from coord.core.view import Range, View
from coord.core.work import track_is_full

CLASSES_MAX = 1000
HEADS, FURTHER = 4, 128
LOOKED_AT = 1000
HELD_MOST = 64
"""How many tasks of one class are looked at, where the files of those before are held by others: first a few,
then more at once, until so many, or so many different sets of files, have been seen in vain."""
HOLDERS_LOOKED_AT = 16
"""How many of those who hold tasks are looked at, whether they are alive, where there is nothing to take."""
NAMED_MAX = 20
UNFINISHED_MOST = 1_000_000
LOOK_MS = 5_000
AILING_STATES = ("stopping", "failed", "crashed", "terminated")
"""An agent that says so of itself is given nothing, even if it asks."""


class Candidate(NamedTuple):
    """A task that is ready, in the order of its turn."""

    rank: str
    task_id: str


def claim_next(view: View, command: ClaimNext, now: int) -> NextTask:
    """Claim the first task that this agent may take."""
    session = enlist(view, command.caller, now)
    agent = session.agent or session.session_id
    why, until_ms = _held_back(view, command, session, agent, now)
    if why:
        return _pause(view, command, f"{agent} gets nothing: {why}", until_ms)
    busy: list[str] = []
    held: dict[tuple[str, ...], str] = {}
    for candidate in _spread(_candidates(view, command, session, busy), session.session_id, view.conflicts):
        request = _request(view, command, session, candidate.task_id, now)
        if request is not None:
            if request.resources not in held:
                held[request.resources] = _held_by(view, request, now)[1]
            if held[request.resources]:
                busy.append(f"{candidate.task_id}: {held[request.resources]}")
                if len(held) > HELD_MOST:
                    break
                continue
        return _claim(view, command, session, candidate.task_id, request, now)
    return _nothing(view, command, session.session_id, busy, now)


def next_reads(command: ClaimNext) -> list[str]:
    """Return what every agent that asks for work reads of itself."""
    caller = command.caller
    reads = [*caller_reads(command), keys.agent(command.project, caller.agent or caller.session)]
    return reads if command.tenant == UNLIMITED_TENANT else reads + count_keys(caller.session)


def _held_back(view: View, command: ClaimNext, session: Session, agent: str, now: int) -> tuple[str, int]:
    """Return why this agent gets nothing, and until when."""
    if session.state in AILING_STATES:
        return f"its state is {session.state}", 0
    if not command.enabled:
        return "disabled by configuration", 0
    return held_back(view.get(keys.agent(command.project, agent), AgentRecord) or FREE, now)


def _pause(view: View, command: ClaimNext, why: str, until_ms: int) -> NextTask:
    """Give an agent nothing, unless there is nothing: it may be back, or somebody has to bring it back."""
    if not view.scan(keys.unfinished_prefix(command.project), limit=1):
        return NextTask(Runnable.DONE)
    outcome = Runnable.BLOCKED if until_ms else Runnable.DENIED
    return NextTask(outcome, waiting_for=[why], look_ms=until_ms)


def claim_named_reads(command: ClaimNamed) -> list[str]:
    """Return what a claim by name is going to read, so that it is loaded at once."""
    project, task_id, session = command.project, command.task, command.caller.session
    reads = [*caller_reads(command), keys.task(project, task_id), keys.spec(project, task_id)]
    return [*reads, keys.by_session(session, project, task_id)] if session else reads


def claim_named(view: View, command: ClaimNamed, now: int) -> ClaimReply:
    """Claim one task with the locks on its files, all or nothing."""
    session = enlist(view, command.caller, now)
    ask = ClaimTask(
        command.tenant,
        command.project,
        command.task,
        session.agent or session.session_id,
        session.session_id,
        command.lease_ms,
        force=command.force,
        reason=command.reason,
    )
    result = claim_task(view, ask, now)
    if not result.success:
        return ClaimReply(False, result.reason, None, result.current_holder, result.detail)
    request = _request(view, command, session, command.task, now)
    if request is None:
        return ClaimReply(True, result.reason, result.claim)
    holder, held = _held_by(view, request, now)  # after the claim: one that it ended has given its locks back
    if held:
        view.withdraw()
        return ClaimReply(False, ClaimReason.DENIED_LOCKED, None, holder, held)
    locks = _lock(view, command.project, command.task, request, now)
    return ClaimReply(True, result.reason, result.claim, locks=locks)


def _candidates(view: View, command: ClaimNext, session: Session, busy: list[str]) -> Iterator[Candidate]:
    """Go through the lines that this agent may take from, in the order of turns."""
    agent = session.agent or session.session_id
    project = command.project
    names = []
    classes = _classes_for(view, command, session)
    view.want(*{keys.track(project, kind.track) for _, kind in classes if kind.track})
    for name, kind in classes:
        full = track_is_full(view, project, kind.track, agent)
        if full:
            busy.append(full)
        else:
            names.append(name)
    ahead = min(view.crowd, FURTHER) // max(1, len(names))
    ahead = ahead if ahead > HEADS else 0
    view.want_scans([_heads(project, name, ahead) for name in names])
    return merge(*(_line(view, project, name, session.session_id, ahead) for name in names))


def _spread(candidates: Iterator[Candidate], session: str, conflicts: int) -> Iterator[Candidate]:
    """Where others were faster, begin with any of the first few whose turn is the same, not all with one."""
    heads = list(islice(candidates, HEADS)) if conflicts else []
    equals = sum(candidate.rank == heads[0].rank for candidate in heads)
    if equals:
        yield heads.pop(crc32(f"{session} {conflicts}".encode()) % equals)
    yield from heads
    yield from candidates


def _heads(project: str, class_name: str, ahead: int = 0) -> Range:
    return Range(keys.ready_prefix(project, class_name), "line", HEADS + ahead)


def _line(view: View, project: str, class_name: str, session: str, ahead: int) -> Iterator[Candidate]:
    """Go through the tasks of one class that are ready, as far as they are looked at.

    What a claim is going to write is loaded with them: it takes one step less. Where many commands are
    decided together, tasks `ahead` are loaded instead: each claim leaves the next command one further on.
    """
    prefix, _, limit, after = _heads(project, class_name)
    depth = len(keys.task(project, ""))
    looked_at = 0
    while looked_at < LOOKED_AT:
        page = view.scan(prefix, by="line", limit=limit, after=after)
        names = [found.key[depth:] for found in page]
        specs = [keys.spec(project, name) for name in names]
        if not ahead:
            view.want(
                *specs,
                *(keys.by_session(session, project, name) for name in names[:HEADS]),
                *(keys.working(project, name) for name in names[:HEADS]),
            )
        elif view.lacks(*specs):
            further = view.scan(prefix, by="line", limit=limit + ahead, after=after)
            view.want(*(keys.spec(project, found.key[depth:]) for found in further))
        yield from (
            Candidate(found.line[len(prefix) :], name) for found, name in zip(page, names, strict=True)
        )
        if len(page) < limit:
            return
        looked_at += len(page)
        limit, after = FURTHER, (page[-1].line, page[-1].key)


def _classes(view: View, project: str) -> list[tuple[str, QueueClass]]:
    prefix = keys.queue_class_prefix(project)
    found = []
    for entry in view.scan(prefix, limit=CLASSES_MAX):
        kind = view.get(entry.key, QueueClass)
        if kind is not None:
            found.append((entry.key[len(prefix) :], kind))
    return found


def _classes_for(view: View, command: ClaimNext, session: Session) -> list[tuple[str, QueueClass]]:
    """Return the classes that this agent may take from."""
    able = {name for name, value in session.capabilities.items() if value >= EFFICIENCY_MIN}
    unable = _types((*command.cannot, *(session.capabilities.keys() - able)))
    has = able.union(command.has)
    found = _classes(view, command.project)
    return [(name, kind) for name, kind in found if _may_take(command, kind, has, unable)]


def _types(names: Sequence[str]) -> set[str]:
    """Return types of tasks by all names they have."""
    if not names:
        return set()
    from coord.core.matrix import names_of  # noqa: PLC0415 - few agents say what they cannot do

    return set().union(*map(names_of, names))


def _may_take(command: ClaimNext, kind: QueueClass, has: set[str], unable: set[str]) -> bool:
    wanted = ((command.types, kind.type), (command.tracks, kind.track), (command.roles, kind.role))
    if any(choice and value and value not in choice for choice, value in wanted):
        return False
    return set(kind.needs) <= has and kind.type not in unable


def _request(
    view: View, command: ClaimNext | ClaimNamed, session: Session, task_id: str, now: int
) -> Request | None:
    """Return the request for the files of a task, if its claim is to take them."""
    spec = view.get(keys.spec(command.project, task_id), Spec)
    if not command.lock_files or spec is None or not spec.files:
        return None
    return Request(
        session=session.session_id,
        agent=session.agent,
        repository=spec.repository or command.repository,
        resources=tuple(spec.files),
        mode=Mode.WRITE,
        ttl_ms=command.lease_ms,
        reason=f"task {task_id}",
        since_ms=now,
        alone=spec.alone,
    )


def _held_by(view: View, request: Request, now: int) -> tuple[str, str]:
    """Return who stands in the way of the files of a task, a holder or one in line, and a sentence."""
    asker = asker_of(view, request.session)
    clear_way(view, asker, request, now)
    in_way = blockers(view, asker, request, now)
    if in_way:
        owner = in_way[0].hold.owner
        return owner, f"{in_way[0].hold.resource} is held by {owner}"
    ahead = [other for _, other in in_line(view, resources_of(request)) if competes(request, other)]
    if not ahead:
        return "", ""
    return ahead[0].session, f"{ahead[0].session} waits for {ahead[0].resources[0]}"


def _claim(
    view: View, command: ClaimNext, session: Session, task_id: str, request: Request | None, now: int
) -> NextTask:
    agent = session.agent or session.session_id
    ask = ClaimTask(command.tenant, command.project, task_id, agent, session.session_id, command.lease_ms)
    result = claim_one(view, ask, command.project, task_id, limits_of(view, command.tenant), now)
    if not result.success:
        assert result.reason is not ClaimReason.DENIED_ACTIVE_CLAIM, f"{task_id} is ready and held"
        return NextTask(Runnable.DENIED, waiting_for=[f"{task_id}: {result.reason} {result.detail}"])
    locks = [] if request is None else _lock(view, command.project, task_id, request, now)
    task_key = keys.task(command.project, task_id)
    task, spec = view.get(task_key, Task), view.get(keys.spec(command.project, task_id), Spec)
    assert task is not None, f"{task_key} was just claimed"
    assert spec is not None, f"{task_key} stood in the queue"
    return NextTask(Runnable.TASK, listed(task_id, spec, task, now), result.claim, locks)


def _lock(view: View, project: str, task_id: str, request: Request, now: int) -> list[LockShown]:
    """Take the locks of a task; they end with its claim."""
    task_key = keys.task(project, task_id)
    task = view.get(task_key, Task)
    assert task is not None, f"{task_key} was just claimed"
    shown, places = [], []
    for hold in grant_request(view, request, now):
        shown.append(shown_lock(hold, now))
        if hold.fence:
            continue  # the session had it before: it does not end with this claim
        key = resource_of(hold).hold_key(hold.owner)
        owned = msgspec.structs.replace(hold, task=f"{project}/{task_id}/{task.generation}")
        view.put(key, owned, keys.due(owned.expires_ms))
        places.append(key)
    view.put(task_key, msgspec.structs.replace(task, locked=tuple(places)), keys.due(task.expires_ms))
    return shown


def _nothing(view: View, command: ClaimNext, own: str, busy: list[str], now: int) -> NextTask:
    """Say which nothing it is.

    That something moves is seen at a few places, however much waits. Only where nothing seems to, everything
    that is not finished is looked at: that nothing will ever come must be true of one moment, and a task may
    have gone from one of those places to another meanwhile.
    """
    project = command.project
    working = _tasks_at(view, project, Range(keys.working_prefix(project), "key", NAMED_MAX))
    holders = [task.session for task in working.values() if task.claim is ACTIVE and task.session != own]
    if _bury(view, list(dict.fromkeys(holders))[:HOLDERS_LOOKED_AT], now):
        return claim_next(view, command, now)
    moving, look_ms = _moving(view, project, working, now)
    reasons = [*busy, *moving]
    if reasons:
        return NextTask(Runnable.BLOCKED, waiting_for=reasons[:NAMED_MAX], look_ms=look_ms)
    prefix = keys.unfinished_prefix(project)
    names = [found.key[len(prefix) :] for found in view.scan(prefix, limit=UNFINISHED_MOST)]
    if not names:
        return NextTask(Runnable.DONE)
    view.want(*(keys.task(project, name) for name in names))
    outcome = Runnable.DEADLOCKED
    for name in names:
        task = view.get(keys.task(project, name), Task) or UNCLAIMED
        reason, moves = _why_not(name, as_of(task, now))
        outcome = Runnable.BLOCKED if moves else outcome
        reasons += [reason] if reason else []
    return NextTask(outcome, waiting_for=reasons[:NAMED_MAX], look_ms=now + LOOK_MS)


def _tasks_at(view: View, project: str, *places: Range) -> dict[str, Task]:
    """Return the tasks that stand in some ranges, by name."""
    view.want_scans(places)
    keys_found = [
        found.key
        for place in places
        for found in view.scan(place.prefix, by=place.by, limit=place.limit, after=place.after)
    ]
    names = [keys.parts(key)[-1] for key in keys_found]
    view.want(*(keys.task(project, name) for name in names))
    return {name: view.get(keys.task(project, name), Task) or UNCLAIMED for name in names}


def _moving(view: View, project: str, working: dict[str, Task], now: int) -> tuple[list[str], int]:
    """Return what is worked on, tried again soon, ready for others or about to be, and when to look again."""
    heads = [_heads(project, name) for name, _ in _classes(view, project)]
    told, look_ms = [], now + LOOK_MS
    for name, task in {**working, **_tasks_at(view, project, *heads)}.items():
        reason, moves = _why_not(name, as_of(task, now))
        told += [reason] if moves else []
        due_ms = task.retry_ms or (task.expires_ms if task.claim is ACTIVE else 0)
        look_ms = max(now, min(look_ms, due_ms or look_ms))
    unsettled = keys.unsettled_prefix(project)
    for found in view.scan(unsettled, limit=NAMED_MAX):
        told.append(f"what depends on {found.key[len(unsettled) :]} is looked at now")
        look_ms = now
    return told, look_ms


def _bury(view: View, names: list[str], now: int) -> bool:
    """Declare those dead whose process is proven to be; return whether there was one: its tasks are free."""
    view.want(*map(keys.session, names))
    sessions = [view.get(keys.session(name), Session) for name in names]
    living = [
        each for each in sessions if each is not None and each.process is not None and not each.ended_ms
    ]
    found = view.evidence(*(each.process for each in living if each.process is not None))
    dead = [(each, proof) for each, proof in zip(living, found, strict=True) if proof.life is Life.DEAD]
    freed = [
        resource
        for each, proof in dead
        for resource in declare_dead(view, each.session_id, proof.detail, now)
    ]
    serve(view, freed, now)
    return bool(dead)


def _why_not(task_id: str, task: Task) -> tuple[str, bool]:
    """Return why a task that is not finished is not for this agent, and whether something moves there."""
    if task.claim is ACTIVE:
        return f"{task_id} is worked on by {task.agent or task.session}", True
    if task.retry_ms:
        return f"{task_id} is tried again soon", True
    if task.state is TaskStatus.READY:
        return f"{task_id} waits for another agent", True
    if task.state in (TaskStatus.FAILED, TaskStatus.ERRORED):
        return f"{task_id} {task.state.value}", False
    return "", False
