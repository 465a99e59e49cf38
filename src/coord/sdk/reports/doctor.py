"""The checks of `coord doctor`: what keeps coord from working here, and the command that helps.

A check changes nothing; only `accept_clock` does, if it is requested.
"""

import os
from collections.abc import Mapping
from contextlib import closing
from typing import Any, NamedTuple

import msgspec

from coord.core.errors import CoordError, NotFound, Unavailable, Unsupported
from coord.core.identity import Caller, ProcessState
from coord.core.locks.commands import ListLockRequests, ListLocks, LockInfo, LockRequestInfo
from coord.core.plans.commands import ListStuck
from coord.core.sessions.commands import GetSession, ListSessions, SessionInfo
from coord.core.sessions.schema import Liveness
from coord.core.usage.commands import GetUsage
from coord.engine.clock import AHEAD_MS_MAX
from coord.engine.engine import Engine
from coord.engine.trim import DAY_MS, HELD_FACTOR, STEP_ENTRIES, log_state
from coord.host.caller import Flags, find_caller, find_tenant
from coord.host.processes import describe, probe
from coord.host.repository import Repository, find_repository
from coord.host.store_location import STORE_FOLDER, StoreLocation, find_location, store_exists
from coord.sdk.client.open import open_location
from coord.stores.contract import FORMAT, Store
from coord.stores.database import Database
from coord.stores.full_check import read_everything
from coord.stores.local.filesystem import READ_ONLY_HINT
from coord.stores.open import open_store
from coord.stores.urls import redact

OK, WARN, BAD = "ok", "warn", "bad"
AHEAD_MS_USUAL = 2_000
WAIT_MS_LONG = 600_000
NAMED_MAX = 3
STUCK_MAX = 100
NOBODY = Caller("")
"""The caller of queries that concern no session."""
_SILENT = (Liveness.STALE, Liveness.HUNG, Liveness.DEAD)
_LEFT = (*_SILENT, Liveness.ENDED)


class Finding(msgspec.Struct, frozen=True):
    """The outcome of a check; `hint` says what to do about it."""

    check: str
    state: str
    message: str
    hint: str = ""


class Report(NamedTuple):
    """All findings, and the first error."""

    findings: list[Finding]
    error: CoordError | None = None

    def count(self, state: str) -> int:
        """Return the number of findings with a state."""
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
    """Check the repository, pin, store, clock and session, and what other sessions left behind."""
    examination = _Examination(cwd, environ)
    database = examination.open(url)
    if database is not None:
        with closing(database), examination.checking("store"):
            engine = Engine(database, find_tenant(environ, tenant), probe=probe)
            examination.look_at_backend(database)
            examination.look_inside(database.log(engine.tenant), engine, flags, accept_clock=accept_clock)
    return Report(examination.findings, examination.error)


class _Examination:
    """One run of all checks."""

    def __init__(self, cwd: str, environ: Mapping[str, str]) -> None:
        self._cwd = cwd
        self._environ = environ
        self._repository: Repository | None = None
        self.findings: list[Finding] = []
        self.error: CoordError | None = None

    def note(self, check: str, state: str, message: str, hint: str = "") -> None:
        self.findings.append(Finding(check, state, message, hint))

    def checking(self, check: str) -> "_Checking":
        """Return a context that turns an error into a finding."""
        return _Checking(self, check)

    def fail(self, check: str, error: CoordError) -> None:
        """Add an error as a finding; the first one becomes the error of the report."""
        self.error = self.error or error
        newer = check == "store" and isinstance(error, Unsupported)
        self.note("format" if newer else check, BAD, error.message, error.hint)

    def open(self, url: str) -> Database[Any] | None:
        """Check repository, pin and store; return the store if it opens."""
        with self.checking("repository"):
            self._repository = find_repository(self._cwd)
            if self._repository is None:
                self.note(
                    "repository",
                    WARN,
                    f"{self._cwd} is not in a repository: files cannot be locked",
                    "git init",
                )
            elif refused := _not_writable(self._repository):
                self.note(
                    "repository",
                    BAD,
                    f"{refused} cannot be written, so nothing can be locked or committed",
                    READ_ONLY_HINT,
                )
            elif not os.access(self._repository.commondir, os.W_OK):
                self.note(
                    "repository",
                    WARN,
                    f"{self._repository.commondir} cannot be written, so git cannot commit here; locks work",
                    "in a sandbox: commit outside of it, or approve the command; elsewhere: check its owner",
                )
            else:
                self.note("repository", OK, self._repository.root or self._repository.commondir)
        if self.error is not None:
            return None
        return self._open_named(url) if url else self._open_pinned()

    def _open_named(self, url: str) -> Database[Any] | None:
        self.note("pin", WARN, "not checked, because a store was given", "coord doctor without --url")
        with self.checking("store"):
            named = StoreLocation(url, "", None, "", 0, "")
            if not store_exists(named):
                raise NotFound(f"there is no store at {redact(url)}", hint="coord install URL creates one")
            return self._opened(open_store(url, timeout=0))
        return None

    def _open_pinned(self) -> Database[Any] | None:
        location: StoreLocation | None = None
        with self.checking("pin"):
            location = find_location(self._cwd, self._environ)
        if location is None:
            return None
        if location.notice:
            self.note("configuration", WARN, location.notice, "coord trust")
        if not location.pinned and not (location.local and store_exists(location)):
            self.note(
                "pin", WARN, f"no store is pinned yet; it would be {redact(location.url)}", "coord init"
            )
            return None
        said = f"{location.folder}/coord.id names {redact(location.url)}"
        self.note("pin", OK, said if location.pinned else f"{redact(location.url)} exists and is pinned now")
        with self.checking("store"):
            return self._opened(open_location(location, timeout=0)[0])
        return None

    def _opened(self, database: Database[Any]) -> Database[Any]:
        self.note("store", OK, f"opened: {database.store_id}")
        self.note("format", OK, f"format {FORMAT}, epoch {database.epoch}")
        return database

    def look_at_backend(self, database: Database[Any]) -> None:
        """Run the checks of the backend: whether it can be written, what it may lose, its clock."""
        for name, well, text, hint, stops in database.checks():
            self.note(name, OK if well else BAD if stops else WARN, text, hint)

    def look_inside(self, log: Store, engine: Engine, flags: Flags, *, accept_clock: bool) -> None:
        """Check the content of the store; a failed check does not stop the others."""
        with self.checking("clock"):
            self.look_at_clock(log, engine, accept=accept_clock)
        with self.checking("log"):
            self.look_at_log(log)
        with self.checking("records"):
            records, entries = read_everything(log)
            self.note("records", OK, f"{records} records and {entries} entries match their checksums")
        with self.checking("session"):
            self.look_at_caller(engine, flags)
        with self.checking("peers"):
            self.look_at_others(engine)
        with self.checking("queue"):
            self.look_at_queue(log, engine)
        with self.checking("usage"):
            self.look_at_usage(log, engine)
        with self.checking("tasks"):
            self.look_at_tasks(engine)

    def look_at_clock(self, log: Store, engine: Engine, *, accept: bool) -> None:
        """Check whether the log is ahead of the store's clock; accept that if requested."""
        log.load(())
        ahead_ms = log.seen.at - log.now()
        if accept and ahead_ms > 0:
            engine.accept_clock()
            self.note("clock", OK, f"accepted: the log was {ahead_ms // 1000} s ahead of the clock")
        elif ahead_ms > AHEAD_MS_MAX:
            raise Unavailable(
                f"the newest entry of the log is {ahead_ms // 1000} s ahead of the clock",
                hint="correct the clock; if it is correct, run coord doctor --accept-clock",
            )
        elif ahead_ms > AHEAD_MS_USUAL:
            self.note(
                "clock", WARN, f"the log is {ahead_ms // 1000} s ahead of the clock", "correct the clock"
            )
        else:
            self.note("clock", OK, "the log is not ahead of the clock")

    def look_at_log(self, log: Store) -> None:
        """Report how far the log reaches, what the settings keep, and what holds trimming back."""
        found = log_state(log, max(log.now(), log.seen.at))
        days = max(0, found.head_ms - found.first_ms) // DAY_MS
        keeps = [f"{found.days} days"] if found.days else []
        keeps += [f"{found.entries} entries"] if found.entries else []
        kept = f"keeps {' or '.join(keeps)}" if keeps else "keeps everything"
        text = f"offsets {found.first} to {found.head}, {days} days; {kept}"
        if found.held_by:
            held = f"{text}; {found.held_by} has not read all, and holds up to {HELD_FACTOR} times as much"
            self.note("log", WARN, held, f"start {found.held_by} again, or remove its cursor")
        elif found.removable >= STEP_ENTRIES:
            self.note("log", WARN, f"{text}; {found.removable} entries can go", "coord sweep")
        else:
            self.note("log", OK, text)

    def look_at_caller(self, engine: Engine, flags: Flags) -> None:
        """Report the calling session, how it was found, and its process."""
        caller = find_caller(self._environ, flags, cwd=self._cwd, repository=self._repository)
        found = _how(caller, flags, self._environ)
        try:
            session = engine.call(GetSession(caller))
        except NotFound:
            self.note("session", OK, f"{caller.session}, {found}: its first change will register it")
            return
        who = f"{session.session_id}, {found}, is {session.liveness}"
        if session.liveness in (Liveness.DEAD, Liveness.ENDED):
            self.note("session", BAD, f"{who} and holds no locks", "coord register")
        elif not session.pid:
            self.note(
                "session", OK, f"{who}; its process is unknown, so only heartbeats show that it is alive"
            )
        else:
            self.note("session", OK, f"{who}; its process is {session.pid}")

    def look_at_others(self, engine: Engine) -> None:
        """Look for sessions without a sign of life, and for locks of such sessions."""
        known: list[SessionInfo] = engine.call(ListSessions(NOBODY, everyone=True))
        sessions = {session.session_id: session.liveness for session in known}
        silent = {name: alive for name, alive in sessions.items() if alive in _SILENT}
        dead = [name for name, alive in silent.items() if alive is Liveness.DEAD]
        text = _listed([f"{name} ({alive})" for name, alive in silent.items()])
        if silent:
            self.note(
                "peers", WARN, f"without a sign of life: {text}", f"coord dereg {dead[0]}" if dead else ""
            )
        else:
            self.note("peers", OK, f"{len(sessions)} known, none is silent")
        misplaced = [each for each in known if names_foreign_process(each)]
        if misplaced:
            text = _listed([f"{each.session_id} names pid {each.pid}" for each in misplaced])
            self.note(
                "processes", BAD, f"no agent runs in the process of a session: {text}", "coord doctor --fix"
            )
        locks: list[LockInfo] = engine.call(ListLocks(NOBODY))
        left = [lock for lock in locks if sessions.get(lock.owner, Liveness.ENDED) in _LEFT]
        if left:
            text = _listed([f"{lock.resource} of {lock.owner}" for lock in left])
            by_death = " --dead-owner" if sessions.get(left[0].owner) is Liveness.DEAD else ""
            self.note(
                "locks", WARN, f"their owner is silent: {text}", f"coord steal {left[0].resource}{by_death}"
            )
        else:
            self.note("locks", OK, f"{len(locks)} held, all by sessions with a sign of life")

    def look_at_tasks(self, engine: Engine) -> None:
        """Look for tasks that failed or have no retries left: only a person can bring them back."""
        names: list[str] = engine.call(ListStuck(STUCK_MAX))
        if not names:
            self.note("tasks", OK, "none is stuck")
            return
        many = f"{len(names)}{' or more' if len(names) == STUCK_MAX else ''}"
        verb = "task needs" if len(names) == 1 else "tasks need"
        hint = "coord task show explains why; then coord task retry or coord task skip"
        self.note("tasks", WARN, f"{many} {verb} a person: {_listed(names)}", hint)

    def look_at_usage(self, log: Store, engine: Engine) -> None:
        """Report when a tool last said what it used; nothing if none ever did: it is off at first."""
        newest_ms = engine.call(GetUsage(since_ms=log.now())).newest_ms
        if newest_ms:
            ago = max(0, max(log.now(), log.seen.at) - newest_ms) // 1000
            self.note("usage", OK, f"agent tools report to the hub: newest report {ago} s ago")

    def look_at_queue(self, log: Store, engine: Engine) -> None:
        """Look for requests that have waited long in a queue."""
        requests: list[LockRequestInfo] = engine.call(ListLockRequests())
        waiting = [request for request in requests if not request.denied]
        oldest = min(waiting, key=lambda request: request.since_ms, default=None)
        if oldest is None:
            self.note("queue", OK, "no request is waiting")
            return
        waited_ms = max(log.now(), log.seen.at) - oldest.since_ms
        many = "1 request waits" if len(waiting) == 1 else f"{len(waiting)} requests wait"
        longest = f"{oldest.session} for {waited_ms // 1000} s: {_listed(oldest.resources)}"
        long = waited_ms >= WAIT_MS_LONG
        hint = f"coord log locks {oldest.resources[0]}" if long else ""
        self.note("queue", WARN if long else OK, f"{many}; {longest}", hint)


def names_foreign_process(session: SessionInfo) -> bool:
    """Whether a session names a process of this machine that runs no agent, such as pid 1.

    Earlier versions of coord took the new parent of an orphaned hook for the tool.
    """
    if session.liveness in (Liveness.DEAD, Liveness.ENDED) or session.host != os.uname().nodename:
        return False
    process = describe(session.pid) if session.pid else None
    return process is not None and probe(process).life is ProcessState.FOREIGN


def _not_writable(repository: Repository) -> str:
    """Return the first folder that coord has to write and cannot; empty if it can."""
    store = f"{repository.commondir}/coord/{STORE_FOLDER}"
    folders = [repository.root or "", store if os.path.isdir(store) else ""]
    if not os.path.exists(f"{repository.commondir}/coord"):
        folders.append(repository.commondir)
    return next((folder for folder in folders if folder and not os.access(folder, os.W_OK)), "")


class _Checking:
    """One check: an error ends it, but not the examination."""

    def __init__(self, examination: _Examination, check: str) -> None:
        self._examination = examination
        self._check = check

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: object, _trace: object) -> bool:
        if not isinstance(error, CoordError):
            return False
        self._examination.fail(self._check, error)
        return True


def _how(caller: Caller, flags: Flags, environ: Mapping[str, str]) -> str:
    """Return how the calling session was found."""
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
