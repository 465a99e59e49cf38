"""The agents of a project: who works on what, who waits, and which files are locked.

Everything is read by ranges that all sessions share, so the number of questions to the store does not grow
with the number of agents. Only processes of silent sessions are probed, and only a few: to look at all of
them would take longer than all the reads, and the sweep finds the dead.
"""

from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import NamedTuple

from coord.core import keys
from coord.core.brief.commands import AgentContextInfo
from coord.core.identity import Evidence
from coord.core.locks.locks import ended_by_time
from coord.core.locks.schema import Lock, LockRef, LockRequest, SessionWaits, WaitState
from coord.core.ranges import Range
from coord.core.sessions.identify import HEARTBEAT_QUIET_MS
from coord.core.sessions.liveness import liveness, thresholds_of
from coord.core.sessions.schema import Session
from coord.core.sessions.state import session_state
from coord.core.tasks.schema import ACTIVE, Spec, Task, as_of
from coord.core.transaction import Found, Transaction

READ_MAX = 1000
"""How many entries of a range are read for all sessions together; beyond that, for each session."""
EACH_MAX = 16
"""How many entries of one session are read then."""
PROBES_MAX = 64
"""How many processes of silent sessions are looked at."""
ENDED_MAX = 16
"""How many sessions that have ended are listed."""
SHOWN_STATES = {"working": "running", "starting": "creating"}
"""States in the words of the founding documents (CFL-11), as far as those differ."""
PERSON, AGENT = "Person", "Agent"


class Member(NamedTuple):
    """A session of the crew with what it does."""

    session: Session
    state: str
    task: str
    locked: list[str]

    @property
    def info(self) -> AgentContextInfo:
        """The session as others see it."""
        session = self.session
        return AgentContextInfo(
            session.session_id,
            session.role,
            role_name(session),
            SHOWN_STATES.get(self.state, self.state),
            self.task,
            session.parent,
            session.model,
            self.locked,
        )


class Crew(NamedTuple):
    """The members that have not ended, those that ended last, and how many agents have completed."""

    members: list[Member]
    ended: list[Member]
    done: int
    descriptions: dict[str, str]


def role_name(session: Session) -> str:
    """Return the role of a session for people: `Code Reviewer`; without a role, the name of its agent."""
    return _titled(session.role) or session.agent or (PERSON if session.person else AGENT)


@lru_cache(maxsize=256)
def _titled(role: str) -> str:
    words = role.replace("-", " ").replace("_", " ").split()
    return " ".join(word if word[:1].isupper() else word.capitalize() for word in words)


def crew_ranges() -> list[Range]:
    """Return the ranges that the crew is read from."""
    whole = (keys.SESSION_PREFIX, keys.LOCK_PREFIX, keys.BY_SESSION_PREFIX, keys.WAITS_PREFIX)
    return [Range(prefix, "key", READ_MAX) for prefix in whole]


def read_crew(tx: Transaction, project: str, repository: str, own: str, now: int) -> Crew:
    """Return the sessions that work on a project or in its repository, without `own`, the oldest first.

    A person counts only while it has a lock or a task, or waits.
    """
    everyone = [
        session
        for page in tx.pages(keys.SESSION_PREFIX, limit=READ_MAX)
        for found in page
        if (session := tx.get(found.key, Session)) is not None
    ]
    here = [each for each in everyone if each.session_id != own and _works_here(each, project, repository)]
    living = [session for session in here if not session.ended_ms]
    names = {session.session_id for session in living}
    locked, tasks, waiting = _locks(tx, names, now), _claims(tx, names, own, now), _waits(tx, names)
    descriptions = _descriptions(tx, tasks.values())
    thresholds = thresholds_of(tx)
    evidence = _evidence(tx, living, now)
    members = []
    for session in sorted(living, key=lambda each: (each.started_ms, each.session_id)):
        name = session.session_id
        task = tasks.get(name)
        reported = session.current_task.get("ticket") or session.current_task.get("phase") or ""
        shown = task.task_id if task is not None else str(reported)
        if session.person and not (name in locked or task is not None or name in waiting):
            continue
        life = liveness(session, now, evidence.get(name), thresholds)
        claimed_ms = task.claimed_ms if task is not None else 0
        state = session_state(session, life, now, waits=name in waiting, claimed_ms=claimed_ms)
        members.append(Member(session, state, shown, locked.get(name, [])))
    gone = sorted((each for each in here if each.ended_ms), key=lambda each: -each.ended_ms)
    ended = [Member(session, session.state, "", []) for session in gone[:ENDED_MAX]]
    done = sum(each.state == "completed" and not each.person for each in gone)
    return Crew(members, ended, done, descriptions)


def _evidence(tx: Transaction, sessions: Collection[Session], now: int) -> dict[str, Evidence]:
    """Return what is known about the processes of sessions that are silent, the oldest heartbeat first."""
    silent = [
        (session.session_id, session.process)
        for session in sorted(sessions, key=lambda each: each.beat_ms)
        if session.process is not None and now - session.beat_ms >= HEARTBEAT_QUIET_MS
    ][:PROBES_MAX]
    found = tx.evidence(*(process for _, process in silent)) if silent else []
    return {name: each for (name, _), each in zip(silent, found, strict=True)}


def _works_here(session: Session, project: str, repository: str) -> bool:
    """Whether a session works on the project or in the repository; a server may keep those of several."""
    return session.project == project or (bool(repository) and session.repository == repository)


def _locks(tx: Transaction, names: set[str], now: int) -> dict[str, list[str]]:
    """Return what each session has locked, files without the word `file:`."""
    found = tx.scan(keys.LOCK_PREFIX, limit=READ_MAX)
    if len(found) < READ_MAX:
        locks = [tx.get(each.key, Lock) for each in found]
    else:
        refs = [tx.get(each.key, LockRef) for each in _of_each(tx, map(keys.session_lock_prefix, names))]
        tx.prefetch(*(ref.key for ref in refs if ref is not None))
        locks = [tx.get(ref.key, Lock) for ref in refs if ref is not None]
    by_owner: dict[str, list[str]] = {}
    for lock in locks:
        if lock is not None and lock.owner in names and ended_by_time(lock, now) is None:
            by_owner.setdefault(lock.owner, []).append(lock.resource.removeprefix("file:"))
    return {owner: sorted(files) for owner, files in by_owner.items()}


class _Claim(NamedTuple):
    """The newest active claim of a session."""

    project: str
    task_id: str
    claimed_ms: int


def _claims(tx: Transaction, names: set[str], own: str, now: int) -> dict[str, _Claim]:
    """Return the newest active claim of each session; the caller's own are loaded with them."""
    found = tx.scan(keys.BY_SESSION_PREFIX, limit=READ_MAX)
    if len(found) == READ_MAX:
        found = _of_each(tx, map(keys.by_session_prefix, names))
    claimed = [keys.parts(each.key)[1:] for each in found]
    claimed = [each for each in claimed if each[0] in names or each[0] == own]
    tx.prefetch(*(of(project, task_id) for _, project, task_id in claimed for of in (keys.task, keys.spec)))
    newest: dict[str, _Claim] = {}
    for name, project, task_id in claimed:
        if name == own:
            continue
        task = tx.get(keys.task(project, task_id), Task)
        if task is None or task.session != name or as_of(task, now).claim is not ACTIVE:
            continue
        if name not in newest or newest[name].claimed_ms < task.claimed_ms:
            newest[name] = _Claim(project, task_id, task.claimed_ms)
    return newest


def _descriptions(tx: Transaction, claims: Collection[_Claim]) -> dict[str, str]:
    tx.prefetch(*(keys.spec(claim.project, claim.task_id) for claim in claims))
    specs = [(claim.task_id, tx.get(keys.spec(claim.project, claim.task_id), Spec)) for claim in claims]
    return {task_id: spec.description for task_id, spec in specs if spec is not None and spec.description}


def _waits(tx: Transaction, names: set[str]) -> set[str]:
    """Return the sessions that wait for a lock or a task."""
    found = tx.scan(keys.WAITS_PREFIX, limit=READ_MAX)
    listed = [each.key for each in found] if len(found) < READ_MAX else [keys.waits(name) for name in names]
    tx.prefetch(*listed)
    known = {key.removeprefix(keys.WAITS_PREFIX): tx.get(key, SessionWaits) for key in listed}
    waits = {name: each for name, each in known.items() if each is not None and name in names}
    requests = {
        name: [key for key in each.keys if key.startswith(keys.WAIT_PREFIX)] for name, each in waits.items()
    }
    tx.prefetch(*(key for found_keys in requests.values() for key in found_keys))
    waiting = {name for name, each in waits.items() if each.task is not None and _is_open(each.task.state)}
    for name, request_keys in requests.items():
        if any((request := tx.get(key, LockRequest)) and _is_open(request.state) for key in request_keys):
            waiting.add(name)
    return waiting


def _is_open(state: WaitState) -> bool:
    return state is WaitState.WAITING


def _of_each(tx: Transaction, prefixes: Iterator[str]) -> list[Found]:
    """Return the first entries of several ranges."""
    listed = list(prefixes)
    tx.prefetch(prefixes=listed, limit=EACH_MAX)
    return [found for prefix in listed for found in tx.scan(prefix, limit=EACH_MAX)]
