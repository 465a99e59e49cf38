"""Tool calls of an agent, reported by hooks: a file is locked while a call may write it.

A lock taken by a hook names the worktree of the file. A hook releases it when nothing needs it any
more, but never during a call of its session, because that call may be about to write. If such a
lock was lost and another session had the file since, the next call is refused once: the session has
seen an old version of the file.

The end of a call also says whether there is news for its session: others changed a lock, or an agent came or
went. Two records count these changes. Their numbers are compared with those that the session has `seen`, so a
call without news costs two reads that are loaded with all others, and no write. The numbers are hints: the
commit does not verify them. The call that gets `news` briefs the session. No other call gets the same news,
unless the first one does not report in time that it briefed the session.
"""

import msgspec

from coord.core import keys
from coord.core.locks.acquire import acquire_locks
from coord.core.locks.commands import (
    AcquireLocks,
    BeginToolCall,
    EndToolCall,
    EndToolCallReply,
    LockReply,
    Outcome,
    ReleaseHookLocks,
    ReleaseReply,
)
from coord.core.locks.locks import (
    deadline_key,
    end_uses,
    ended_by_time,
    ended_since,
    held_locks,
    lock_info,
    lock_ranges,
    lock_reads,
    locks_of,
    read_lock,
    require_lock,
)
from coord.core.locks.resources import REQUEST_RESOURCES_MAX, Resource, parse_resources, prefetch_keys
from coord.core.locks.schema import EndReason, Guard, Lock, LockRenewed, LostHookLock, Mode
from coord.core.locks.table import widens
from coord.core.locks.uses import HOOK
from coord.core.locks.wait_queue import grant_waiters
from coord.core.ranges import Range
from coord.core.sessions.changes import changes_by_others
from coord.core.sessions.identify import (
    HEARTBEAT_QUIET_MS,
    ancestors,
    caller_reads,
    ensure_session,
    put_session,
)
from coord.core.sessions.schema import CrewChanges, Session
from coord.core.settings import held_work
from coord.core.transaction import PAGE, Transaction

CALLS_MAX = 64
"""How many running calls a session remembers; it forgets those that end first."""
CALL_MS = 660_000
"""The longest lease without a call that needs it."""
OUTDATED_BY_CALLS = ("starting", "completed")
"""Reports that a tool call disproves: the session has started, and it is not at its end."""
OFFER_MS = 60_000
"""After this time, news that a call did not report as delivered is given to another call."""
GRANTS_MAX = 1000
"""How many later grants a call reads; beyond that the file counts as changed."""


def begin_reads(command: BeginToolCall) -> list[str]:
    """Return the keys that the begin of a call reads: those of its locks, and whether it lost them before."""
    name = command.caller.session
    resources = prefetch_keys(command.resources, command.repository)
    return [
        *lock_reads(command),
        *(keys.lost_hook_lock(name, resource.lock_key(name)) for resource in resources),
    ]


def begin_ranges(command: BeginToolCall) -> list[Range]:
    """Return the ranges with the locks that may block a call, and with those of its session."""
    return [*lock_ranges(command), *held_ranges(command)]


def held_ranges(command: BeginToolCall | EndToolCall) -> list[Range]:
    """Return the range with the locks of a session, which each call extends."""
    name = command.caller.session
    return [Range(keys.session_lock_prefix(name), "key", PAGE)] if name else []


def begin_tool_call(tx: Transaction, command: BeginToolCall, now: int) -> LockReply:
    """Lock the files that a call writes, all or none, and extend the locks of its session."""
    session = ensure_session(tx, command.caller, now)
    stopped = "" if command.despite_emergency else _stopped(tx, session)
    if stopped:
        return LockReply(Outcome.STOPPED, stopped=stopped)
    if not command.despite_emergency and (words := _held_up(tx, session)):
        return LockReply(Outcome.STOPPED, held_up=words)
    reply = LockReply(Outcome.GRANTED)
    if command.resources:
        reply = _lock(tx, command, session, now)
        if not reply.ok:
            return reply
    if session.questions:
        from coord.core.questions.questions import tool_goes_on  # noqa: PLC0415 - few sessions have any

        tool_goes_on(tx, session, now)
    session = tx.get(keys.session(session.session_id), Session) or session
    calls = _under_way(session, now) | {command.call: now + command.lease_ms}
    latest = dict(sorted(calls.items(), key=lambda call: call[1])[-CALLS_MAX:])
    files = [text.removeprefix("file:") for text in command.resources if text.startswith("file:")]
    session = msgspec.structs.replace(
        session,
        calls=latest,
        current_file=files[0] if files else session.current_file,
        current_command=command.reason,
        state="idle" if session.state in OUTDATED_BY_CALLS else session.state,
    )
    session = put_session(tx, session)
    _keep(tx, session, now)
    return reply


def _stopped(tx: Transaction, session: Session) -> str:
    """Return the session with an emergency: this one or the nearest ancestor that has one."""
    for name in (session.session_id, *ancestors(tx, session.session_id)):
        found = tx.get(keys.session(name), Session)
        if found is not None and found.emergencies and not found.ended_ms:
            return name
    return ""


def _held_up(tx: Transaction, session: Session) -> str:
    """Return who has stopped all agents, and why; empty if nobody has."""
    found = held_work(tx, person=session.person)
    if found is None:
        return ""
    from coord.core.messages.work_mode import Mode, words_of  # noqa: PLC0415 - hardly ever

    return words_of(found) if found.mode == Mode.STOPPED else ""


def _lock(tx: Transaction, command: BeginToolCall, session: Session, now: int) -> LockReply:
    """Acquire what the session does not hold yet; locks that it holds keep their terms."""
    name = session.session_id
    resources = parse_resources(command.resources, command.repository, REQUEST_RESOURCES_MAX, command.exact)
    tx.prefetch(
        *(
            key
            for each in resources
            for key in (each.lock_key(name), keys.lost_hook_lock(name, each.lock_key(name)))
        )
    )
    needed = [resource for resource in resources if not _has_lock(tx, resource, name, now)]
    for resource in needed:
        taken = _taken_since(tx, resource, session)
        if taken is not None:
            tx.delete(keys.lost_hook_lock(name, resource.lock_key(name)))
            return LockReply(Outcome.CHANGED, holder=lock_info(taken, now))
    if not needed:
        return LockReply(Outcome.GRANTED)
    ask = AcquireLocks(
        command.caller,
        command.repository,
        tuple(resource.text for resource in needed),
        profile="file",
        reason=command.reason,
        worktree=command.worktree,
        exact=tuple(resource.text for resource in needed if resource.exact),
        use=HOOK,
    )
    reply = acquire_locks(tx, ask, now)
    for resource in needed if reply.ok else ():
        key = keys.lost_hook_lock(name, resource.lock_key(name))
        if tx.get(key, LostHookLock) is not None:
            tx.delete(key)
    return reply


def _has_lock(tx: Transaction, resource: Resource, session: str, now: int) -> bool:
    lock = tx.get(resource.lock_key(session), Lock)
    if lock is None or lock.mode is Mode.READ or widens(lock, resource):
        return False
    return ended_by_time(lock, now) is None


def _taken_since(tx: Transaction, resource: Resource, session: Session) -> Lock | None:
    """Return the lock that another session had on this since the session lost its own, or None."""
    name = session.session_id
    lost = tx.get(keys.lost_hook_lock(name, resource.lock_key(name)), LostHookLock)
    if lost is None:
        return None
    family = {name, *ancestors(tx, name)}
    for later in ended_since(tx, resource, lost.fence, GRANTS_MAX):
        if later.owner not in family and later.mode is not Mode.READ:
            return later
    return None


def end_reads(command: EndToolCall) -> list[str]:
    """Return the keys that the end of a call reads."""
    counted = _news_reads(command.caller.project, command.repository) if command.news_every_ms else ()
    return [*caller_reads(command), *counted]


def end_tool_call(tx: Transaction, command: EndToolCall, now: int) -> EndToolCallReply:
    """Record the end of a call, and extend the locks of its session."""
    session = ensure_session(tx, command.caller, now)
    if session.questions:
        from coord.core.questions.questions import tool_goes_on  # noqa: PLC0415 - few sessions have any

        tool_goes_on(tx, session, now, command.call, all_calls=not command.call or command.at_prompt)
        session = tx.get(keys.session(session.session_id), Session) or session
    news = _look_for_news(tx, session, command.repository, command.news_every_ms, now)
    session = news or session
    left = _under_way(session, now) if command.call else {}
    left.pop(command.call, None)
    edited = _log_edits(tx, session, command.edited, now) if command.edited else session.edited
    if left != session.calls or edited != session.edited or news is not None:
        running = session.current_command if left else ""
        session = put_session(
            tx, msgspec.structs.replace(session, calls=left, current_command=running, edited=edited)
        )
    _keep(tx, session, now)
    commits = bool(tx.writes) or not command.call
    reads_logged = commits and bool(command.read)
    if reads_logged:
        _log_reads(tx, session, command.read, now)
    held = [
        lock_info(lock, now)
        for key, found in held_locks(tx, session.session_id)
        if ended_by_time(found, now) is None and (lock := read_lock(tx, key)) is not None
    ]
    last = (session.briefed, session.briefed_offset, session.epoch, session.questions, reads_logged)
    return EndToolCallReply(held, len(left), session.reminded, session.emergencies, news is not None, *last)


def _log_edits(tx: Transaction, session: Session, files: tuple[str, ...], now: int) -> dict[str, int]:
    from coord.core.activity.files import log_edits  # noqa: PLC0415 - most calls log no edit

    return log_edits(tx, session, files, now)


def _log_reads(tx: Transaction, session: Session, files: tuple[str, ...], now: int) -> None:
    from coord.core.activity.files import log_reads  # noqa: PLC0415 - most calls log no read

    logged = log_reads(tx, session, files, now)
    if logged is not session:
        put_session(tx, logged)


def _under_way(session: Session, now: int) -> dict[str, int]:
    return {call: until_ms for call, until_ms in session.calls.items() if until_ms > now}


def _keep(tx: Transaction, session: Session, now: int) -> None:
    """Renew leases that are older than the quiet time, for the session and for its ancestors."""
    _keep_locks(tx, session, now)
    for name in ancestors(tx, session.session_id):
        above = tx.get(keys.session(name), Session)
        if above is None or above.ended_ms:
            continue
        if now - above.beat_ms >= HEARTBEAT_QUIET_MS:
            above = put_session(tx, msgspec.structs.replace(above, beat_ms=now))
        _keep_locks(tx, above, now)


def _keep_locks(tx: Transaction, session: Session, now: int) -> None:
    until_ms = max((0, *_under_way(session, now).values()))
    for key, lock in held_locks(tx, session.session_id):
        if lock.provisional or lock.preempted_by or ended_by_time(lock, now) is not None:
            continue
        wanted = max(now + lock.ttl_ms, until_ms)
        too_long = lock.expires_ms > max(wanted, now + CALL_MS)
        if too_long or lock.expires_ms < wanted - HEARTBEAT_QUIET_MS:
            kept = msgspec.structs.replace(require_lock(tx, key), expires_ms=wanted)
            tx.put(key, kept, deadline_key(kept))
            tx.emit(LockRenewed(kept.resource, kept.owner, kept.fence, wanted))


def release_hook_locks(tx: Transaction, command: ReleaseHookLocks, now: int) -> ReleaseReply:
    """Release locks that hooks took, unless a call of the session is running."""
    session = ensure_session(tx, command.caller, now)
    if command.reminded > session.reminded:
        session = put_session(tx, msgspec.structs.replace(session, reminded=command.reminded))
    if _under_way(session, now) or not command.resources:
        return ReleaseReply([])
    resources = parse_resources(command.resources, command.repository, len(command.resources))
    freed: list[Resource] = []
    released: list[str] = []
    prefixes = {resource.prefix for resource in resources}
    for lock_at in locks_of(tx, session.session_id):
        named = lock_at.resource.prefix in prefixes
        if named and HOOK in lock_at.lock.uses:
            freed += end_uses(tx, lock_at, [HOOK], EndReason.RELEASED, now)
            released += [lock_at.lock.resource] if tx.get(lock_at.key, Lock) is None else []
    grant_waiters(tx, freed, now)
    return ReleaseReply(released)


def _news_reads(project: str, repository: str) -> list[str]:
    """Return the keys of the records that count changes."""
    return [keys.guard(f"file/{repository}"), keys.crew(project)] if repository and project else []


def _look_for_news(
    tx: Transaction, session: Session, repository: str, every_ms: int, now: int
) -> Session | None:
    """Return the session with the changes that it is briefed about now; None if there is no news for it."""
    counted = _news_reads(session.project, repository)
    if not counted or not every_ms or now - max(session.briefed_ms, session.seen_ms) < every_ms:
        return None
    name = session.session_id
    locks = changes_by_others(tx.peek(counted[0], Guard), name)
    crew = changes_by_others(tx.peek(counted[1], CrewChanges), name)
    if (locks, crew) == session.seen:
        delivered = session.briefed_ms >= session.seen_ms
        if delivered or now < session.seen_ms + OFFER_MS:
            return None
    return msgspec.structs.replace(session, seen=(locks, crew), seen_ms=now)
