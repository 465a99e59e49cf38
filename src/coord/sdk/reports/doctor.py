"""What stands in the way of working here: looked at in order, each thing with the command that helps.

Nothing is changed or made by looking, except that a clock is accepted where that is asked for.
"""

from collections.abc import Mapping
from contextlib import closing
from typing import Any, NamedTuple

import msgspec

from coord.core import keys
from coord.core.errors import CoordError, NotFound, Unavailable, Unsupported
from coord.core.identity import Caller
from coord.core.locks.locks import ended_by_time
from coord.core.locks.schema import Lock, LockRequest, WaitState
from coord.core.records import decode
from coord.core.sessions.commands import GetSession
from coord.core.sessions.liveness import liveness
from coord.core.sessions.schema import Liveness, Session
from coord.engine.clock import AHEAD_MS_MAX
from coord.engine.engine import Engine
from coord.host.caller import Flags, find_caller, find_tenant
from coord.host.processes import probe
from coord.host.repository import Repository, find_repository
from coord.host.store_location import StoreLocation, find_location, store_exists
from coord.sdk.client.open import open_location
from coord.sdk.reports.activity import records
from coord.stores.contract import FORMAT, Store
from coord.stores.database import Database
from coord.stores.open import open_store
from coord.stores.urls import redact

OK, WARN, BAD = "ok", "warn", "bad"
AHEAD_MS_USUAL = 2_000
WAIT_MS_LONG = 600_000
NAMED_MAX = 3
STUCK_MAX = 100
_SILENT = (Liveness.STALE, Liveness.HUNG, Liveness.DEAD)
_LEFT = (*_SILENT, Liveness.ENDED)


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at; `hint` says what to do about it."""

    check: str
    state: str
    message: str
    hint: str = ""


class Report(NamedTuple):
    """All that was found; `error` is the first one that was met."""

    findings: list[Finding]
    error: CoordError | None = None

    def count(self, state: str) -> int:
        """Return how many findings are of this kind."""
        return sum(finding.state == state for finding in self.findings)


def examine(
    url: str = "",
    *,
    flags: Flags,
    tenant: str,
    cwd: str,
    environ: Mapping[str, str],
    accept_clock: bool = False,
) -> Report:
    """Look at repository, pin, store, clock, session, and at what others left behind."""
    visit = _Visit(cwd, environ)
    database = visit.open(url)
    if database is not None:
        with closing(database), visit.checking("store"):
            engine = Engine(database, find_tenant(environ, tenant), probe=probe)
            visit.look_at_backend(database)
            visit.look_inside(database.log(engine.tenant), engine, flags, accept_clock=accept_clock)
    return Report(visit.findings, visit.error)


class _Visit:
    """One look at everything."""

    def __init__(self, cwd: str, environ: Mapping[str, str]) -> None:
        self._cwd = cwd
        self._environ = environ
        self._repository: Repository | None = None
        self.findings: list[Finding] = []
        self.error: CoordError | None = None

    def note(self, check: str, state: str, message: str, hint: str = "") -> None:
        self.findings.append(Finding(check, state, message, hint))

    def checking(self, check: str) -> "_Checking":
        """Make a finding of an error."""
        return _Checking(self, check)

    def fail(self, check: str, error: CoordError) -> None:
        """Note an error; the first one is that of the whole."""
        self.error = self.error or error
        newer = check == "store" and isinstance(error, Unsupported)
        self.note("format" if newer else check, BAD, error.message, error.hint)

    def open(self, url: str) -> Database[Any] | None:
        """Look at repository, pin and store; return the store if there is one and it opens."""
        with self.checking("repository"):
            self._repository = find_repository(self._cwd)
            if self._repository is None:
                self.note("repository", WARN, f"{self._cwd} is in none: no files can be locked", "git init")
            else:
                self.note("repository", OK, self._repository.root or self._repository.commondir)
        if self.error is not None:
            return None
        return self._open_named(url) if url else self._open_pinned()

    def _open_named(self, url: str) -> Database[Any] | None:
        self.note("pin", WARN, "not looked at, since a store is named", "coord doctor without --url")
        with self.checking("store"):
            return self._opened(open_store(url, timeout=0))
        return None

    def _open_pinned(self) -> Database[Any] | None:
        location: StoreLocation | None = None
        with self.checking("pin"):
            location = find_location(self._cwd, self._environ)
        if location is None:
            return None
        if not location.pinned and not (location.local and store_exists(location)):
            self.note("pin", WARN, f"no store is pinned; it would be {redact(location.url)}", "coord init")
            return None
        said = f"{location.folder}/coord.id names {redact(location.url)}"
        self.note(
            "pin", OK, said if location.pinned else f"{redact(location.url)} is there, and is pinned now"
        )
        with self.checking("store"):
            return self._opened(open_location(location, timeout=0)[0])
        return None

    def _opened(self, database: Database[Any]) -> Database[Any]:
        self.note("store", OK, f"it opens: {database.store_id}")
        self.note("format", OK, f"format {FORMAT}, epoch {database.epoch}")
        return database

    def look_at_backend(self, database: Database[Any]) -> None:
        """Look at what the store says of the place it lives in: its version, what it forgets, its clock."""
        for name, well, text, hint in database.checks():
            self.note(name, OK if well else WARN, text, hint)

    def look_inside(self, log: Store, engine: Engine, flags: Flags, *, accept_clock: bool) -> None:
        """Look at what the store holds; what fails hinders nothing else."""
        with self.checking("clock"):
            self.look_at_clock(log, engine, accept=accept_clock)
        with self.checking("session"):
            self.look_at_caller(engine, flags)
        with self.checking("peers"):
            self.look_at_others(log)
        with self.checking("line"):
            self.look_at_line(log)
        with self.checking("tasks"):
            self.look_at_tasks(log)

    def look_at_clock(self, log: Store, engine: Engine, *, accept: bool) -> None:
        """Look whether the log is ahead of the store's clock; accept that if asked to."""
        log.load(())
        ahead_ms = log.seen.at - log.now()
        if accept and ahead_ms > 0:
            engine.accept_clock()
            self.note("clock", OK, f"accepted: the log was {ahead_ms // 1000} s ahead of it")
        elif ahead_ms > AHEAD_MS_MAX:
            raise Unavailable(
                f"the newest entry of the log is {ahead_ms // 1000} s ahead of the clock",
                hint="set the clock right; if it is right: coord doctor --accept-clock",
            )
        elif ahead_ms > AHEAD_MS_USUAL:
            self.note("clock", WARN, f"the log is {ahead_ms // 1000} s ahead of it", "set the clock right")
        else:
            self.note("clock", OK, "the log is not ahead of it")

    def look_at_caller(self, engine: Engine, flags: Flags) -> None:
        """Say who calls, how that was found, and what is known of its process."""
        caller = find_caller(self._environ, flags, cwd=self._cwd, repository=self._repository)
        found = _how(caller, flags, self._environ)
        try:
            session = engine.call(GetSession(caller))
        except NotFound:
            self.note("session", WARN, f"{caller.session}, {found}: not registered yet", "coord register")
            return
        who = f"{session.session_id}, {found}, is {session.liveness}"
        if session.liveness in (Liveness.DEAD, Liveness.ENDED):
            self.note("session", BAD, f"{who} and holds nothing", "coord register")
        elif not session.pid:
            self.note("session", OK, f"{who}; its process is not known, so heartbeats alone tell")
        else:
            self.note("session", OK, f"{who}; its process is {session.pid}")

    def look_at_others(self, log: Store) -> None:
        """Look for sessions without a sign of life, and for locks that they or nobody holds."""
        now = max(log.now(), log.seen.at)
        sessions: dict[str, Liveness] = {}
        for record in records(log, keys.SESSION_PREFIX):
            session = decode(record.value or b"", Session, record.key)
            evidence = probe(session.process) if session.process else None
            sessions[session.session_id] = liveness(session, now, evidence)
        silent = {name: alive for name, alive in sessions.items() if alive in _SILENT}
        dead = [name for name, alive in silent.items() if alive is Liveness.DEAD]
        told = _listed([f"{name} ({alive})" for name, alive in silent.items()])
        if silent:
            self.note(
                "peers", WARN, f"without a sign of life: {told}", f"coord dereg {dead[0]}" if dead else ""
            )
        else:
            self.note("peers", OK, f"{len(sessions)} known, none is silent")
        holds = [decode(record.value or b"", Lock, record.key) for record in records(log, keys.LOCK_PREFIX)]
        standing = [hold for hold in holds if ended_by_time(hold, now) is None]
        left = [hold for hold in standing if sessions.get(hold.owner, Liveness.ENDED) in _LEFT]
        if left:
            told = _listed([f"{hold.resource} of {hold.owner}" for hold in left])
            by_death = " --dead-owner" if sessions.get(left[0].owner) is Liveness.DEAD else ""
            self.note(
                "locks", WARN, f"their owner is silent: {told}", f"coord steal {left[0].resource}{by_death}"
            )
        else:
            self.note("locks", OK, f"{len(standing)} held, all by sessions with a sign of life")

    def look_at_tasks(self, log: Store) -> None:
        """Look for tasks that failed or were tried too often: nobody takes them again by itself."""
        found = log.scan(keys.stuck_prefix(), by="key", limit=STUCK_MAX)
        names = ["/".join(keys.parts(record.key)[1:]) for record in found]
        if not names:
            self.note("tasks", OK, "none is stuck")
            return
        many = f"{len(names)}{' or more' if len(names) == STUCK_MAX else ''}"
        verb = "task needs" if len(names) == 1 else "tasks need"
        hint = "coord task show tells why; then coord task retry, or skip"
        self.note("tasks", WARN, f"{many} {verb} a person: {_listed(names)}", hint)

    def look_at_line(self, log: Store) -> None:
        """Look for requests that wait, and for how long they do."""
        now = max(log.now(), log.seen.at)
        requests = [
            decode(each.value or b"", LockRequest, each.key) for each in records(log, keys.WAIT_PREFIX)
        ]
        waiting = [request for request in requests if request.state is WaitState.WAITING]
        oldest = min(waiting, key=lambda request: request.since_ms, default=None)
        if oldest is None:
            self.note("line", OK, "nobody waits")
            return
        waited_ms = now - oldest.since_ms
        told = f"{len(waiting)} wait; {oldest.session} for {waited_ms // 1000} s: {_listed(oldest.resources)}"
        long = waited_ms >= WAIT_MS_LONG
        self.note(
            "line", WARN if long else OK, told, f"coord log locks {oldest.resources[0]}" if long else ""
        )


class _Checking:
    """One check: an error ends it, but not the visit."""

    def __init__(self, visit: _Visit, check: str) -> None:
        self._visit = visit
        self._check = check

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: object, _trace: object) -> bool:
        if not isinstance(error, CoordError):
            return False
        self._visit.fail(self._check, error)
        return True


def _how(caller: Caller, flags: Flags, environ: Mapping[str, str]) -> str:
    """Return by what the calling session was found."""
    if flags.session:
        return "as --session says"
    if environ.get("COORD_SESSION_ID"):
        return "as COORD_SESSION_ID says"
    if caller.tool:
        return f"as {caller.tool} says" if caller.session else "by the process it descends from"
    return "by its terminal"


def _listed(names: list[str] | tuple[str, ...]) -> str:
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return ", ".join(names[:NAMED_MAX]) + more
