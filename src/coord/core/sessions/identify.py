"""Find the session in whose name a command comes.

Every such command passes `ensure_session`. It finds out which session calls, refuses impostors and dead
sessions, registers a session that is new, and counts the command as a heartbeat. A heartbeat within
`HEARTBEAT_QUIET_MS` of the last one writes nothing, so that a hundred agents do not fill the log.
"""

import msgspec

from coord.core import keys
from coord.core.commands import SessionCommand
from coord.core.dispatch import dispatch
from coord.core.errors import Dead, Impostor, Invalid, Refused
from coord.core.identity import Caller, Process, ProcessState
from coord.core.limits import count_in
from coord.core.sessions.changes import next_change
from coord.core.sessions.commands import TokenMayAct
from coord.core.sessions.liveness import SUSPECT_MS, thresholds_of
from coord.core.sessions.schema import (
    CrewChanges,
    ProcessSessions,
    Session,
    SessionRegistered,
    SessionUpdated,
)
from coord.core.transaction import Transaction

HEARTBEAT_QUIET_MS = 15_000
ENDED_KEPT_MS = 24 * 3600 * 1000
"""How long an ended session is kept, so that a message to it is not mistaken for one to a wrong name."""
DUPLICATES_MAX = 50
RESERVED = frozenset(("system", "coord"))
GENERATIONS_MAX = 16
"""How deep sub-agents may nest."""


def caller_reads(command: SessionCommand) -> list[str]:
    """Return the keys that every command of a session reads, so that they are loaded together."""
    caller = command.caller
    reads = [*keys.processes(caller.process_ancestors)]
    return [*reads, keys.session(caller.session)] if caller.session else reads


def ensure_session(tx: Transaction, caller: Caller, now: int, name: str = "") -> Session:
    """Return the session of a caller with a fresh heartbeat; `name` is its id if that is known already."""
    name = name or find_session(tx, caller, now)
    session = tx.get(keys.session(name), Session)
    if session is not None and session.end_reason == "dead":
        raise Dead(
            f"session {name} was declared dead and holds nothing", hint="register again: coord register"
        )
    if session is not None and session.terminated_by:
        raise Dead(
            f"session {name} was terminated: {session.end_note}",
            hint="stop, or register again if there is more to do: coord register",
        )
    if session is None or session.ended_ms:
        count_in(tx, caller.tenant, name, refuse=True)
        _count_agent(tx, caller, name, now, refuse=True)
        new = new_session(tx, name, caller, now)
        if session is not None and session.children:
            new = msgspec.structs.replace(new, children=True)
        return put_session(tx, new, implicit=True)
    process = _own_process(caller, name) or session.process
    if now - session.beat_ms < HEARTBEAT_QUIET_MS and process == session.process:
        return session
    if now - session.beat_ms >= SUSPECT_MS:  # since then it may not be counted as active any more
        count_in(tx, caller.tenant, name, refuse=False)
        _count_agent(tx, caller, name, now, refuse=False)
    token = _token_of(tx, session, caller, now)
    return put_session(tx, msgspec.structs.replace(session, beat_ms=now, process=process, token=token))


def _token_of(tx: Transaction, session: Session | None, caller: Caller, now: int) -> str:
    """Return the token of a session; over the network a name proves nothing, so another token is refused.

    The generation clock claims tasks for sessions that nobody registers. Those do not belong to the first
    token that names them.
    """
    if session is None and caller.token and tx.scan(keys.by_session_prefix(caller.session), limit=1):
        dispatch(tx, TokenMayAct(caller.token, caller.session), now)
    if session is None or session.ended_ms:
        return caller.token
    if not caller.token or caller.token == session.token:
        return session.token
    check = TokenMayAct(caller.token, session.session_id, session.token)
    return caller.token if dispatch(tx, check, now) else session.token


def _count_agent(tx: Transaction, caller: Caller, name: str, now: int, *, refuse: bool) -> None:
    """Count the session of an agent that begins, or was silent, in its project."""
    if caller.person or not caller.project:
        return
    from coord.core.sessions.agent_limit import count_agent  # noqa: PLC0415 - only a session that begins

    count_agent(tx, caller, name, now, refuse=refuse)


def _check_name(caller: Caller) -> None:
    """Refuse a session with the name under which coord itself sends messages."""
    if caller.session.partition("~")[0].lower() in RESERVED:
        raise Invalid(
            f"no session may be called {caller.session}",
            hint="choose another name: messages from this one are those of the system",
        )


def find_session(tx: Transaction, caller: Caller, now: int) -> str:
    """Return the id of the calling session; refuse a caller that belongs to another one.

    A terminal acts for the agent above it, if there is one: a command that an agent runs without its
    variables is the agent's. If two processes resume one session, the second becomes `<id>~2`.
    """
    _check_name(caller)
    if caller.token:
        _token_of(tx, tx.get(keys.session(caller.session), Session), caller, now)
    process, nearest = registered_ancestor(tx, caller)
    if not caller.session or (caller.terminal and process is not None):
        if process is None:
            raise Invalid(
                f"this runs inside {caller.tool or 'an agent tool'}, but no session is known",
                hint="set COORD_SESSION_ID, or let the tool's start hook run coord register",
            )
        return nearest
    if process is not None and not _may_act_for(tx, nearest, caller):
        raise Impostor(
            f"this terminal already acts as {nearest}",
            hint=f"to act as {caller.session}, first run coord dereg here without COORD_SESSION_ID",
        )
    if nearest.startswith(f"{caller.session}~") and caller.process in (None, process):
        return nearest
    return _own_or_duplicate_id(tx, caller, now)


def registered_ancestor(tx: Transaction, caller: Caller) -> tuple[Process | None, str]:
    """Return the nearest ancestor process that an agent's session lives in, and that session.

    A terminal does not count: sessions run below it that have nothing to do with each other.
    """
    process_keys = keys.processes(caller.process_ancestors)
    if process_keys:
        tx.prefetch(*process_keys)
    for process, key in zip(caller.process_ancestors, process_keys, strict=True):
        found = tx.get(key, ProcessSessions)
        if found is None:
            continue
        if caller.session in found.sessions:
            return process, caller.session
        duplicates = [name for name in found.sessions if name.startswith(f"{caller.session}~")]
        for name in duplicates or found.sessions:
            if not _is_terminal(tx, name):
                return process, name
    return None, ""


def _is_terminal(tx: Transaction, name: str) -> bool:
    """Whether a session is that of a terminal; earlier versions of coord listed those with the others."""
    session = tx.get(keys.session(name), Session)
    return session is not None and (session.terminal or session.person)


def is_person(caller: Caller, own: str) -> bool:
    """Whether a person acts: nobody whose command turned out to be that of an agent's session, `own`."""
    return caller.person and own == caller.session


def name_of_person(caller: Caller) -> str:
    """Return how people call a person; its terminal has a session, which means nothing to them."""
    return caller.user or caller.session


def _own_process(caller: Caller, name: str) -> Process | None:
    """Return the process that the caller names, if it acts for the session that it names."""
    own = name == caller.session or name.startswith(f"{caller.session}~")
    return caller.process if own else None


def _may_act_for(tx: Transaction, nearest: str, caller: Caller) -> bool:
    """Whether `nearest` may act for the caller's session: a duplicate, family, or one not registered yet."""
    name = caller.session
    if nearest.partition("~")[0] == name.partition("~")[0]:
        return True
    session = tx.get(keys.session(name), Session)
    if session is None or session.ended_ms:
        return True
    return nearest in ancestors(tx, name) or name in ancestors(tx, nearest)


def _own_or_duplicate_id(tx: Transaction, caller: Caller, now: int) -> str:
    """Return the caller's id, or `<id>~N` if another living process has the id."""
    name = caller.session
    if caller.process is None:
        return name
    for number in range(2, DUPLICATES_MAX):
        session = tx.get(keys.session(name), Session)
        if session is None or session.ended_ms or session.process in (None, caller.process):
            return name
        assert session.process is not None, "compared above"
        evidence = tx.evidence(session.process)[0]
        silent = now - session.beat_ms >= thresholds_of(tx).stale_ms
        if evidence.refutes or (evidence.life is ProcessState.UNKNOWN and silent):
            return name
        name = f"{caller.session}~{number}"
    raise Refused(f"{DUPLICATES_MAX} processes resumed session {caller.session}", hint="end some of them")


def ancestors(tx: Transaction, name: str) -> list[str]:
    """Return the parent of a session, its parent, and so on, up to `GENERATIONS_MAX`."""
    found: list[str] = []
    session = tx.get(keys.session(name), Session)
    while session is not None and session.parent and len(found) < GENERATIONS_MAX:
        if session.parent in (name, *found):
            break
        found.append(session.parent)
        session = tx.get(keys.session(session.parent), Session)
    return found


def _check_parent(tx: Transaction, name: str, parent: str) -> None:
    """Refuse a parent that descends from the session: each would be exempt from the other's locks."""
    above = ancestors(tx, parent)
    if name in above:
        raise Invalid(f"{parent} is below {name}, not above it", hint="omit --parent")
    if len(above) >= GENERATIONS_MAX:
        raise Invalid(
            f"{parent} has {len(above)} ancestors already",
            hint="start the sub-agent from a session that is nested less deeply",
        )


def new_session(tx: Transaction, name: str, caller: Caller, now: int) -> Session:
    """Return a session as its caller describes it."""
    parent_process, nearest = registered_ancestor(tx, caller)
    family = (nearest, *ancestors(tx, nearest)) if parent_process is not None else ()
    duplicate = nearest.startswith(f"{caller.parent}~")
    if (
        caller.parent
        and parent_process is not None
        and caller.parent not in family
        and nearest != name
        and not duplicate
    ):
        raise Impostor(
            f"this process belongs to session {nearest}, which does not descend from {caller.parent}",
            hint=f"a sub-agent names the session that started it: --parent {nearest}",
        )
    parent = "" if caller.parent == name else caller.parent
    parent = (
        nearest if parent and duplicate else parent
    )  # resumed twice: the sub-agent belongs to this duplicate
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
        repository=caller.repository,
        process=_own_process(caller, name),
        parent_process=None if nearest == name else parent_process,
        started_ms=now,
        beat_ms=now,
        person=is_person(caller, name),
        terminal=caller.terminal and name == caller.session,
        token=caller.token,
    )


def put_session(tx: Transaction, session: Session, *, implicit: bool = False) -> Session:
    """Write a living session and the index of its processes."""
    key = keys.session(session.session_id)
    before = tx.get(key, Session)
    gone = before is None or before.ended_ms > 0
    old = () if before is None or gone else (before.process, before.parent_process)
    new = () if session.terminal else (session.process, session.parent_process)
    for process in old:
        if process not in new:
            unlist_process(tx, process, session.session_id)
    for process in new:
        if process not in old:
            others = _list_process(tx, process, session.session_id)
            if any(name.startswith(f"{session.session_id}.") for name in others):  # seen before their lead
                session = msgspec.structs.replace(session, children=True)
    tx.put(key, session, _deadline_key(session))
    if gone:
        ancestry = "known" if session.process or session.parent_process else "unknown"
        tx.emit(
            SessionRegistered(
                *(session.session_id, session.agent, session.parent, ancestry, implicit),
                *(session.role, session.bin, session.model, session.user, session.project),
                *(session.person, session.state),
            )
        )
        mark_parent(tx, session.parent)
        count_crew_change(tx, session)
    return session


def described(session: Session) -> SessionUpdated:
    """Return how a living session is now, for the log."""
    names = (session.agent, session.role, session.bin, session.model, session.parent, session.project)
    return SessionUpdated(session.session_id, session.state, *names)


def emit_update(tx: Transaction, session: Session) -> None:
    """Log that a living session has changed."""
    tx.emit(described(session))


def count_crew_change(tx: Transaction, session: Session) -> None:
    """Count that the session of an agent begins or ends in its project."""
    if session.person or not session.project:
        return
    key = keys.crew(session.project)
    before = tx.get(key, CrewChanges) or CrewChanges()
    tx.put_late(key, msgspec.structs.replace(before, **next_change(before, session.session_id)))


def mark_parent(tx: Transaction, parent: str) -> None:
    """Mark a session that has sub-agents, so that the end of its locks also ends theirs below it."""
    session = tx.get(keys.session(parent), Session) if parent else None
    if session is not None and not session.children:
        _rewrite(tx, msgspec.structs.replace(session, children=True))


def count_emergencies(tx: Transaction, name: str, by: int) -> None:
    """Count an emergency that came into the inbox of a session, or left it."""
    session = tx.get(keys.session(name), Session)
    if session is not None:
        _rewrite(tx, msgspec.structs.replace(session, emergencies=max(0, session.emergencies + by)))


def count_questions(tx: Transaction, name: str, by: int) -> None:
    """Count a question that a session asked, or one that was closed."""
    session = tx.get(keys.session(name), Session)
    if session is not None:
        _rewrite(tx, msgspec.structs.replace(session, questions=max(0, session.questions + by)))


def _rewrite(tx: Transaction, session: Session) -> None:
    """Write a session that may have ended, without a heartbeat."""
    tx.put(keys.session(session.session_id), session, _deadline_key(session))


def _deadline_key(session: Session) -> str:
    """Return the index key of a session: the next time at which the sweep has to look at it."""
    if session.ended_ms:
        return keys.due(session.ended_ms + ENDED_KEPT_MS)
    return keys.due(session.beat_ms if session.terminated_by else session.beat_ms + SUSPECT_MS)


def _list_process(tx: Transaction, process: Process | None, name: str) -> tuple[str, ...]:
    """Add a session to the index of a process; return the others that live there."""
    if process is None:
        return ()
    key = keys.process(process)
    found = tx.get(key, ProcessSessions) or ProcessSessions()
    if name not in found.sessions:
        tx.put(key, msgspec.structs.replace(found, sessions=(*found.sessions, name)))
    return found.sessions


def unlist_process(tx: Transaction, process: Process | None, name: str) -> None:
    """Remove a session from the index of a process."""
    if process is None:
        return
    key = keys.process(process)
    found = tx.get(key, ProcessSessions) or ProcessSessions()
    left = tuple(session for session in found.sessions if session != name)
    if left:
        tx.put(key, msgspec.structs.replace(found, sessions=left))
    elif found.sessions:
        tx.delete(key)
