"""Sessions: who is there, how alive it seems, and that nobody speaks for somebody else.

A session has a stable id; its process (pid, start time, boot, machine) is only a sign of life. Liveness is
graded by the age of the last heartbeat; death is proven by evidence about the process or not at all.

Every command in the name of a session passes `ensure_session`: it finds out which session that is, refuses
impostors and the dead, registers a session not seen before, and takes the command for a heartbeat. Heartbeats
within `BEAT_QUIET_MS` of the last one write nothing, so that a hundred agents do not fill the log.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from coord.core import keys
from coord.core.commands import SessionCommand
from coord.core.errors import Dead, Impostor, Invalid, NotFound, Refused
from coord.core.identity import Caller, Evidence, Process, ProcessState
from coord.core.limits import count_in
from coord.core.records import Stored
from coord.core.sessions.commands import Heartbeat, HeartbeatReply, SessionInfo, UpdateSession
from coord.core.sessions.schema import Liveness, SessionRegistered, SessionUpdated
from coord.core.transaction import Transaction

BEAT_QUIET_MS = 15_000
SUSPECT_MS, STALE_MS, HUNG_MS = 120_000, 300_000, 600_000
ENDED_KEPT_MS = 24 * 3600 * 1000
"""How long an ended session is remembered, so that messages to it are told apart from a wrong name."""
TWINS_MAX = 50
GENERATIONS_MAX = 16
"""How deep sub-agents may nest."""
MERGED_BYTES_MAX = 32 * 1024

STATES = (
    "starting",
    "idle",
    "working",
    "blocked",
    "stopping",
    "completed",
    "failed",
    "crashed",
    "terminated",
)
STATE_ALIASES = {
    "running": "working",
    "creating": "starting",
    "exited": "completed",
    "pending": "idle",
    "in_progress": "working",
    "done": "completed",
    "error": "failed",
}
"""What the founding documents call the same states (CFL-11)."""


class Session(Stored, frozen=True, tag=1):
    """A session; kept for a day after its end.

    `parent_process` is the process of another session below which it was first seen: commands may come
    from there, but it does not prove that this session is alive. `calls` maps tool calls under way to their
    deadlines; `reminded` is the lock of which the session was reminded last.
    """

    session_id: str = ""
    agent: str = ""
    role: str = ""
    user: str = ""
    project: str = ""
    parent: str = ""
    host: str = ""
    cwd: str = ""
    bin: str = ""
    version: str = ""
    process: Process | None = None
    parent_process: Process | None = None
    children: bool = False
    state: str = "idle"
    started_ms: int = 0
    beat_ms: int = 0
    ended_ms: int = 0
    end_reason: str = ""
    calls: dict[str, int] = {}
    reminded: int = 0
    current_task: dict[str, Any] = {}
    owned_resources: dict[str, Any] = {}
    blob: dict[str, Any] = {}
    capabilities: dict[str, float] = {}


class ProcessSessions(Stored, frozen=True, tag=1):
    """Index: the sessions that live in a process (a parent and its sub-agents may share one)."""

    sessions: tuple[str, ...] = ()


def liveness(session: Session, now: int, evidence: Evidence | None = None) -> Liveness:
    """Return how alive a session seems."""
    if session.ended_ms:
        return Liveness.DEAD if session.end_reason == "dead" else Liveness.ENDED
    if evidence is not None and evidence.life is ProcessState.DEAD:
        return Liveness.DEAD
    age = now - session.beat_ms
    if age < SUSPECT_MS or any(until_ms > now for until_ms in session.calls.values()):
        return Liveness.LIVE
    if age < STALE_MS:
        return Liveness.SUSPECT
    return Liveness.STALE if age < HUNG_MS else Liveness.HUNG


def evidence_of(tx: Transaction, session: Session) -> Evidence | None:
    """Return what is known about the session's process; None where it never named one."""
    return None if session.process is None else tx.evidence(session.process)[0]


def caller_reads(command: SessionCommand) -> list[str]:
    """Return what every command of a session reads of it, so that it is loaded at once."""
    caller = command.caller
    reads = [*keys.processes(caller.process_ancestors)]
    return [*reads, keys.session(caller.session)] if caller.session else reads


def ensure_session(tx: Transaction, caller: Caller, now: int, name: str = "") -> Session:
    """Return the session of a caller, the one of this name if it was found, with a fresh heartbeat."""
    name = name or find_session(tx, caller, now)
    session = tx.get(keys.session(name), Session)
    if session is not None and session.end_reason == "dead":
        raise Dead(
            f"session {name} was declared dead and holds nothing", hint="register again: coord register"
        )
    if session is None or session.ended_ms:
        count_in(tx, caller.tenant, name, refuse=True)
        return put_session(tx, new_session(tx, name, caller, now), on_the_way=True)
    process = caller.process or session.process
    if now - session.beat_ms < BEAT_QUIET_MS and process == session.process:
        return session
    if now - session.beat_ms >= STALE_MS:  # it was silent for so long that it did not count
        count_in(tx, caller.tenant, name, refuse=False)
    return put_session(tx, msgspec.structs.replace(session, beat_ms=now, process=process))


def find_session(tx: Transaction, caller: Caller, now: int) -> str:
    """Return the id of the calling session, or refuse who speaks for another one.

    Two processes that resume one session are told apart: the second is `<id>~2`.
    """
    process, nearest = registered_ancestor(tx, caller)
    if not caller.session:
        if process is None:
            raise Invalid(
                f"this runs inside {caller.tool or 'an agent tool'}, but no session is known",
                hint="set COORD_SESSION_ID, or let the tool's start hook run coord register",
            )
        return nearest
    if process is not None and not _related(tx, nearest, caller):
        raise Impostor(
            f"the caller belongs to session {nearest}, not to {caller.session}",
            hint=f"leave --session away, or use {nearest}",
        )
    if nearest.startswith(f"{caller.session}~") and caller.process in (None, process):
        return nearest
    return _twin(tx, caller, now)


def registered_ancestor(tx: Transaction, caller: Caller) -> tuple[Process | None, str]:
    """Return the nearest ancestor process that a session lives in, and that session."""
    process_keys = keys.processes(caller.process_ancestors)
    if process_keys:
        tx.prefetch(*process_keys)
    for process, key in zip(caller.process_ancestors, process_keys, strict=True):
        found = tx.get(key, ProcessSessions)
        if found is not None and found.sessions:
            twins = [name for name in found.sessions if name.startswith(f"{caller.session}~")]
            own = caller.session if caller.session in found.sessions else ""
            return process, own or next(iter(twins), found.sessions[0])
    return None, ""


def _related(tx: Transaction, nearest: str, caller: Caller) -> bool:
    """Whether who lives in `nearest` may speak for the session: its twin, its kin, or one not there yet."""
    name = caller.session
    if nearest.partition("~")[0] == name.partition("~")[0]:
        return True
    session = tx.get(keys.session(name), Session)
    if session is None or session.ended_ms:
        return True
    return nearest in ancestors(tx, name) or name in ancestors(tx, nearest)


def _twin(tx: Transaction, caller: Caller, now: int) -> str:
    """Return the caller's id, or that of its twin if another living process has the id."""
    name = caller.session
    if caller.process is None:
        return name
    for number in range(2, TWINS_MAX):
        session = tx.get(keys.session(name), Session)
        if session is None or session.ended_ms or session.process in (None, caller.process):
            return name
        assert session.process is not None, "compared above"
        life = tx.evidence(session.process)[0].life
        if life is ProcessState.DEAD or (life is ProcessState.UNKNOWN and now - session.beat_ms >= STALE_MS):
            return name
        name = f"{caller.session}~{number}"
    raise Refused(f"{TWINS_MAX} processes resumed session {caller.session}", hint="end some of them")


def ancestors(tx: Transaction, name: str) -> list[str]:
    """Return the parent of a session, its parent, and so on; who is too far above is none any more."""
    found: list[str] = []
    session = tx.get(keys.session(name), Session)
    while session is not None and session.parent and len(found) < GENERATIONS_MAX:
        if session.parent in (name, *found):
            break
        found.append(session.parent)
        session = tx.get(keys.session(session.parent), Session)
    return found


def _check_parent(tx: Transaction, name: str, parent: str) -> None:
    """Refuse a parent that is below the session: each would be exempt from the other's locks."""
    above = ancestors(tx, parent)
    if name in above:
        raise Invalid(f"{parent} is below {name}, not above it", hint="leave --parent away")
    if len(above) >= GENERATIONS_MAX:
        raise Invalid(
            f"{parent} has {len(above)} ancestors already",
            hint="sub-agents nest no deeper: start it higher up",
        )


def new_session(tx: Transaction, name: str, caller: Caller, now: int) -> Session:
    """Return a session as its caller describes it."""
    parent_process, nearest = registered_ancestor(tx, caller)
    kin = (nearest, *ancestors(tx, nearest)) if parent_process is not None else ()
    twin = nearest.startswith(f"{caller.parent}~")
    if (
        caller.parent
        and parent_process is not None
        and caller.parent not in kin
        and nearest != name
        and not twin
    ):
        raise Impostor(
            f"the caller belongs to session {nearest}, which is not below {caller.parent}",
            hint=f"a sub-agent names the session that started it: --parent {nearest}",
        )
    parent = "" if caller.parent == name else caller.parent
    parent = nearest if parent and twin else parent  # resumed twice: the sub-agent is of this one
    if parent:
        _check_parent(tx, name, parent)
    return Session(
        session_id=name,
        agent=caller.agent,
        role=caller.role,
        user=caller.user,
        project=caller.project,
        parent=parent,
        host=caller.host,
        cwd=caller.cwd,
        process=caller.process,
        parent_process=None if nearest == name else parent_process,
        started_ms=now,
        beat_ms=now,
    )


def put_session(tx: Transaction, session: Session, *, on_the_way: bool = False) -> Session:
    """Write a living session and where its process is looked up."""
    key = keys.session(session.session_id)
    before = tx.get(key, Session)
    gone = before is None or before.ended_ms > 0
    old = () if before is None or gone else (before.process, before.parent_process)
    new = (session.process, session.parent_process)
    for process in old:
        if process not in new:
            unlist_process(tx, process, session.session_id)
    for process in new:
        if process not in old:
            _list_process(tx, process, session.session_id)
    tx.put(key, session, keys.due(session.beat_ms + SUSPECT_MS))
    if gone:
        process_ancestors = "known" if session.process or session.parent_process else "unknown"
        event = SessionRegistered(
            session.session_id, session.agent, session.parent, process_ancestors, on_the_way
        )
        tx.emit(event)
        mark_parent(tx, session.parent)
    return session


def mark_parent(tx: Transaction, parent: str) -> None:
    """Mark a session that has sub-agents: when its locks end, theirs under them are looked for."""
    session = tx.get(keys.session(parent), Session) if parent else None
    if session is not None and not session.children:
        ended = session.ended_ms > 0
        index_key = keys.due(session.ended_ms + ENDED_KEPT_MS if ended else session.beat_ms + SUSPECT_MS)
        tx.put(keys.session(parent), msgspec.structs.replace(session, children=True), index_key)


def _list_process(tx: Transaction, process: Process | None, name: str) -> None:
    if process is not None:
        key = keys.process(process)
        found = tx.get(key, ProcessSessions) or ProcessSessions()
        if name not in found.sessions:
            tx.put(key, msgspec.structs.replace(found, sessions=(*found.sessions, name)))


def unlist_process(tx: Transaction, process: Process | None, name: str) -> None:
    """Take a session that ended or moved off the index of processes."""
    if process is None:
        return
    key = keys.process(process)
    found = tx.get(key, ProcessSessions) or ProcessSessions()
    left = tuple(session for session in found.sessions if session != name)
    if left:
        tx.put(key, msgspec.structs.replace(found, sessions=left))
    elif found.sessions:
        tx.delete(key)


def heartbeat(tx: Transaction, command: Heartbeat, now: int) -> HeartbeatReply:
    """Take note that a session is alive; soon after the last time nothing is written."""
    session = ensure_session(tx, command.caller, now)
    return HeartbeatReply(session.session_id, session.beat_ms, written=bool(tx.writes))


def update_session(tx: Transaction, command: UpdateSession, now: int) -> SessionInfo:
    """Change what is named of a session's own record; the rest stays."""
    session = ensure_session(tx, command.caller, now)
    changed = apply_update(session, command)
    if changed != session:
        changed = put_session(tx, msgspec.structs.replace(changed, beat_ms=now))
        tx.emit(SessionUpdated(session.session_id, changed.state))
    return session_info(changed, now, None)


def apply_update(session: Session, command: UpdateSession) -> Session:
    """Return the session with what an update names."""
    named = {"ticket": command.task, "phase": command.phase, "status": command.status}
    current = session.current_task | {name: value for name, value in named.items() if value is not None}
    blob = _merged(session.blob if command.blob is None else command.blob, command.merge_blob)
    owned = _merged(session.owned_resources, command.owned)
    state = STATE_ALIASES.get(command.status or "", command.status)
    return msgspec.structs.replace(
        session,
        current_task={name: value for name, value in current.items() if value != ""},
        blob=blob,
        owned_resources=owned,
        capabilities=session.capabilities | (command.capabilities or {}),
        state=state if state in STATES else session.state,
        role=session.role if command.role is None else command.role,
        bin=session.bin if command.bin is None else command.bin,
        version=session.version if command.version is None else command.version,
    )


def _merged(before: dict[str, Any], more: dict[str, Any] | None) -> dict[str, Any]:
    """Return both, or refuse: pieces in measure may add up to what is not."""
    merged = before if more is None else {**before, **more}
    if more is not None and len(msgspec.json.encode(merged)) > MERGED_BYTES_MAX:
        raise Invalid(f"merged it has more than {MERGED_BYTES_MAX} bytes", hint="write it anew instead")
    return merged


def every_session(tx: Transaction) -> Iterator[Session]:
    """Go through all sessions, those that ended included."""
    for page in tx.pages(keys.SESSION_PREFIX):
        for found in page:
            session = tx.get(found.key, Session)
            if session is not None:
                yield session


def find_peer(tx: Transaction, name: str) -> str:
    """Return the id of a session that is named in full or by a prefix that fits only one (AMB-26)."""
    if tx.get(keys.session(name), Session) is not None:
        return name
    fitting = [found.key.partition("/")[2] for found in tx.scan(keys.session(name), limit=2)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise Invalid(f"more than one session begins with {name}", hint=f"for example {', '.join(fitting)}")
    raise NotFound(f"there is no session {name}", hint="coord peers lists them")


def session_info(session: Session, now: int, evidence: Evidence | None) -> SessionInfo:
    """Return a session as others see it."""
    return SessionInfo(
        session.session_id,
        liveness(session, now, evidence),
        session.state,
        session.agent,
        session.role,
        session.project,
        session.parent,
        session.user,
        session.host,
        session.process.pid if session.process else 0,
        session.cwd,
        session.bin,
        session.version,
        session.started_ms,
        session.beat_ms,
        session.current_task,
        session.owned_resources,
        session.blob,
        session.capabilities,
    )
