"""Handle one hook event: take locks, refuse calls, salvage edits, release locks, deliver messages."""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

from coord.core.errors import CoordError, NotFound
from coord.core.identity import Caller
from coord.core.locks.commands import (
    BeginToolCall,
    CheckLocks,
    EndToolCall,
    EndToolCallReply,
    LockInfo,
    LockReply,
    Outcome,
    ReleaseHookLocks,
)
from coord.host.consent import read_consented
from coord.host.paths import path_in_resource
from coord.host.store_location import StoreLocation
from coord.host.tool_process import ToolProcess
from coord.integrations.hooks import protected_files
from coord.integrations.hooks.config import Settings, read_settings
from coord.integrations.hooks.events import ALLOW, CONTENDED_PROGRAMS, Answer, Event, Kind
from coord.integrations.hooks.identity import caller_of, tenant_of
from coord.integrations.hooks.protected_files import check_edit, check_settings
from coord.integrations.hooks.targets import Target, home_location, targets_of, worktree_of
from coord.sdk.client.connection import Connection
from coord.sdk.client.open import open_for_use

if TYPE_CHECKING:
    from coord.core.brief.commands import RecordBrief
    from coord.core.messages.commands import MessageInfo
    from coord.engine.engine import Engine
    from coord.integrations.hooks.awareness.briefing import Briefing
    from coord.integrations.hooks.awareness.reads import SessionReads
    from coord.integrations.shell_commands.line import CommandLine
    from coord.stores.database import Database

Reply = Callable[[Answer], None]
Opener = Callable[[StoreLocation, str], "tuple[Database[Any], StoreLocation, Engine]"]
"""Returns the open store of a location with the engine of a tenant; both belong to a hub."""
AnyConnection = TypeVar("AnyConnection", bound=Connection)
CHECKED_MAX = 256
"""How many resources one question may name."""
CHECKS_MAX = 4096
"""How many files are checked one by one; a command that writes more is refused if anybody holds a file."""
MARGIN_S = 60.0
"""How much longer a lease lasts than its call may take."""
NO_CALL = "-"
"""The id that ends no call and keeps all locks of the session."""


def _files(target: Target) -> list[str]:
    """Return the files among the locks of a target."""
    return [path_in_resource(text) for text in target.resources if text.startswith("file:")]


def _inbox(unread: "list[MessageInfo]") -> tuple[str, list[str]]:
    """Return the text of unread messages and their ids; most calls have none, and start faster without it."""
    if not unread:
        return "", []
    from coord.integrations.hooks.messages import inbox

    return inbox(unread)


def _worker_context(environ: Mapping[str, str]) -> str:
    """Return the SUBAGENT CONTEXT that `coord work` wrote for this agent; "" if it did not start it."""
    if "COORD_CONTEXT_FILE" not in environ:
        return ""
    from coord.integrations.hooks.awareness.briefing import worker_context

    return worker_context(environ["COORD_CONTEXT_FILE"])


class HookHandler:
    """Handles one event in the stores that it concerns."""

    def __init__(
        self,
        event: Event,
        payload: Mapping[str, Any],
        environ: Mapping[str, str],
        show: Reply,
        *,
        open_by: float = 0.0,
        runs: ToolProcess | None = None,
        opener: Opener | None = None,
        extend: Callable[[float], object] | None = None,
    ) -> None:
        """`reply` prints the answer; the handler may still do things after that. The tool `runs` the hook.

        Until `open_by`, by the monotonic clock, a store that cannot be reached is tried again. `extend` moves
        the deadline of the hook, by seconds; without it the handler waits for nobody.
        """
        self.event = event
        self._payload = payload
        self._environ = environ
        self._reply = show
        self._open_by = open_by
        self._runs = runs
        self._opener = opener
        self._extend = extend
        self.settings = Settings()
        self.home: StoreLocation | None = None
        """The store of the session, if coord is in use there."""
        self._open: list[Connection] = []
        self._by_folder: dict[str, Connection] = {}
        self._edited: dict[Connection, list[str]] = {}
        """The files that the call changed, for the ledger."""
        self._reads: SessionReads | None = None

    def handle(self) -> None:
        """Do what the event asks for, and reply."""
        try:
            getattr(self, f"_{self.event.kind}")()
        finally:
            for connection in self._open:
                connection.close()

    def _other(self) -> None:
        self._reply(ALLOW)

    def _settings(self) -> None:
        self._reply(Answer(deny=check_settings(self.event, self._payload, self._environ)))

    def _before(self) -> None:
        refusal = check_edit(self.event, self._line)
        if refusal or not self.event.changes_files:
            self._reply(Answer(deny=refusal))
            return
        home = self._home()
        begun: list[tuple[Connection, Target]] = []
        salvaged: list[str] = []
        targets = targets_of(self.event, self._environ, home, self.settings, self._line)
        named = [text for target in targets for text in target.resources if not text.startswith("file:")]
        if named and (self.event.background or (self._line is not None and self._line.outlives_call)):
            from coord.integrations.hooks.messages import background_denial

            self._reply(Answer(deny=background_denial(named)))
            return
        for target in targets:
            connection = self._connect(target.location)
            reply = self._check(connection, target) or self._begin(connection, target)
            if reply.stopped or reply.held_up:
                refusal = self._emergency(connection, reply.stopped, reply.held_up)
                if not refusal:
                    reply = self._begin(connection, target, despite_emergency=True)
            if not reply.ok:
                self._undo(begun)
                self._reply(Answer(deny=refusal or self._denial(reply, target)))
                return
            begun.append((connection, target))
            if reply.after_loss:
                salvaged += self._salvage(target, reply)
        if salvaged:  # the agent read these files before; it holds them now and may read them again
            from coord.integrations.hooks.messages import salvage_notice

            for connection, _ in begun:
                connection.call(EndToolCall(connection.caller, self._call()))
            self._reply(Answer(deny=salvage_notice(salvaged)))
            return
        for connection, target in begun:
            self._observe_before(connection, target, home)
        self._reply(ALLOW)

    @cached_property
    def _line(self) -> "CommandLine | None":
        """The command line of a shell call."""
        if self.event.command is None:
            return None
        from coord.integrations.shell_commands.line import CommandLine

        ask_git = self.event.kind is Kind.BEFORE
        return CommandLine(self.event.command, self.event.cwd, self._environ, ask_git=ask_git)

    def _check(self, connection: Connection, target: Target) -> LockReply | None:
        """Return a refusal if another session holds a file that is only checked; None if none does."""
        for resources, here in ((target.checked, False), (target.committed, True)):
            if len(resources) > CHECKED_MAX:
                held = self._blocking(connection, target, ("file:.",), here=here)
                if held is None:
                    continue
                if len(resources) > CHECKS_MAX:
                    return LockReply(Outcome.HELD, holder=held)
            for start in range(0, len(resources), CHECKED_MAX):
                some = resources[start : start + CHECKED_MAX]
                if held := self._blocking(connection, target, some, here=here):
                    return LockReply(Outcome.HELD, holder=held)
        return None

    def _blocking(
        self, connection: Connection, target: Target, resources: tuple[str, ...], *, here: bool
    ) -> LockInfo | None:
        """Return a lock of another session on these; with `here`, one that may be meant for this worktree."""
        exact = tuple(text for text in resources if text in set(target.exact))
        check = CheckLocks(connection.caller, connection.location.repository_id, resources, exact=exact)
        for lock in connection.call(check).holders:
            worktree = (lock.worktree or self._worktree_of(connection, lock.owner)) if here else ""
            if worktree in ("", target.worktree):
                return cast("LockInfo", lock)
        return None

    def _worktree_of(self, connection: Connection, session: str) -> str:
        """Return the worktree that a session works in; "" if that is unknown."""
        from coord.core.sessions.commands import GetSession
        from coord.host.repository import find_repository

        with suppress(CoordError):
            folder = connection.call(GetSession(connection.caller, session)).cwd
            repository = find_repository(folder) if folder and os.path.isdir(folder) else None
            return (repository.root or "") if repository is not None else ""
        return ""

    def _salvage(self, target: Target, reply: LockReply) -> list[str]:
        """Salvage the edits of sessions that lost these locks; return what was found."""
        from coord.host.repository import find_repository
        from coord.integrations.git.salvage.rollback import salvage_first

        if target.location.repository is None or not target.worktree:
            return []
        location = target.location._replace(repository=find_repository(target.worktree))
        return salvage_first(self._client(location), reply.locks)

    def _emergency(self, connection: Connection, session: str, words: str = "") -> str:
        """Return why an emergency stops the call; "" if the call only asks coord, or if none is left."""
        if self._line is not None and not self.event.writes and self._line.only_coord():
            return ""
        if words:
            from coord.integrations.hooks.messages import held_up

            return held_up(words)
        from coord.core.messages.commands import PeekMessages
        from coord.integrations.hooks.messages import EMERGENCY, emergency

        caller = connection.caller
        peek = PeekMessages(caller if session == caller.session else Caller(session))
        found = [each for each in connection.call(peek).messages if each.kind == EMERGENCY]
        acts_as = session if session == caller.session and self.event.agent else ""
        return emergency(found, acts_as) if found else ""

    def _begin(self, connection: Connection, target: Target, *, despite_emergency: bool = False) -> LockReply:
        command = BeginToolCall(
            connection.caller,
            connection.location.repository_id,
            target.resources,
            exact=tuple(text for text in target.exact if text in target.resources),
            call=self._call(),
            lease_ms=int((self.event.timeout_s + MARGIN_S) * 1000),
            worktree=target.worktree or "-",
            reason=self._reason(),
            despite_emergency=despite_emergency,
        )
        reply: LockReply = connection.call(command)
        return reply

    def _call(self) -> str:
        return self.event.call[:128] or self.event.tool_name or NO_CALL

    def _reason(self) -> str:
        line = " ".join((self.event.command or "").split())
        return "".join(char for char in line[:80] if char.isprintable())

    def _denial(self, reply: LockReply, target: Target) -> str:
        from coord.integrations.hooks.messages import denial

        blocked = (*target.resources, *target.checked, *target.committed)
        if reply.holder is not None and reply.holder.resource in blocked:
            blocked = (reply.holder.resource,)
        of_files = any(text.startswith("file:") for text in blocked)
        return denial(reply, blocked, "" if of_files else self.event.command or "")

    def _undo(self, begun: list[tuple[Connection, Target]]) -> None:
        """Release the locks taken in some stores after another store refused."""
        for connection, target in begun:
            connection.call(EndToolCall(connection.caller, self._call()))
            if target.resources:
                connection.call(
                    ReleaseHookLocks(connection.caller, connection.location.repository_id, target.resources)
                )

    def _after(self) -> None:
        from coord.core.messages.commands import ReceiveMessages

        home = self._home()
        news: EndToolCallReply | None = None
        unread: list[MessageInfo] = []
        first = self._connect(home) if home is not None else None
        targets = targets_of(self.event, self._environ, home, self.settings, self._line)
        said = [self._observe_after(self._connect(target.location), target, home) for target in targets]
        for connection in dict.fromkeys(self._connect(target.location) for target in targets):
            if connection is first:
                end = self._end_of_call(connection, self._call())
                ended, received = connection.engine.call_many([end, ReceiveMessages(connection.caller)])
                self._keep_reads(ended.reads_logged)
                unread = received.messages
                news = ended if ended.news else None
            else:
                edited = self._edited.get(connection, ())
                ended = connection.call(EndToolCall(connection.caller, self._call(), edited=tuple(edited)))
            self._release_done(connection, ended, look=self.event.writes_anything or self.event.failed)
            if ended.questions:
                from coord.integrations.hooks.people.questions import dialog_of

                connection.call(EndToolCall(connection.caller, dialog_of(self.event)))
        said.append(self._same_work(first))
        self._deliver(first, said, unread, news)
        if self.event.command is not None:
            self._restore_templates(home)

    def _read(self, connection: Connection) -> tuple[str, ...]:
        """Return the files that the session read and that are not in the log, in this call and before."""
        if self.home is None or not self.settings.log_reads:
            return ()
        from coord.integrations.hooks.awareness.reads import SessionReads

        whose = (self.home.folder, tenant_of(self._environ), connection.caller.session)
        self._reads = SessionReads(self._environ, whose, self.event, self._line, self.home)
        return self._reads.files

    def _keep_reads(self, logged: bool) -> None:
        if self._reads is not None:
            self._reads.keep(logged=logged)

    def _end_of_call(self, connection: Connection, call: str) -> EndToolCall:
        """Return the command that ends a call and asks for news."""
        settings = self.settings
        if self.event.transcript and settings.inject_brief:
            from coord.integrations.hooks.awareness.compaction import note_compaction

            note_compaction(connection, self.event.transcript)
        every_ms = settings.brief_every_ms if settings.inject_brief else 0
        at_prompt = self.event.kind is Kind.PROMPT
        edited = tuple(self._edited.get(connection, ()))
        repository = connection.location.repository_id
        read = self._read(connection)
        return EndToolCall(connection.caller, call, repository, every_ms, at_prompt, edited, read)

    def _deliver(
        self,
        connection: Connection | None,
        said: list[str],
        unread: "list[MessageInfo]",
        news: EndToolCallReply | None,
    ) -> None:
        """Reply with what the agent has to know, and record in one commit what it got."""
        text, ids = _inbox(unread)
        brief, receipts = "", cast("tuple[RecordBrief, ...]", ())
        if news is not None and connection is not None:
            from coord.integrations.hooks.awareness.briefing import brief_of_news

            brief, receipts = brief_of_news(connection, news)
        self._reply(Answer(note="\n".join(each for each in (*said, text, brief) if each)))
        if connection is None or not (ids or receipts):
            return
        from coord.core.messages.commands import AckMessages

        acks = [AckMessages(connection.caller, tuple(ids))] if ids else []
        with suppress(CoordError):  # the next hook offers it again
            connection.engine.call_many([*acks, *receipts])

    def _same_work(self, connection: Connection | None) -> str:
        """Return which peers do what failed here; "" if nothing failed, or nobody does it."""
        line = self.event.command or ""
        if connection is None or self._line is None or not any(each in line for each in CONTENDED_PROGRAMS):
            return ""
        from coord.integrations.hooks.same_work import peers_at_the_same

        return peers_at_the_same(connection, self._line, self._payload, failed=self.event.failed)

    def _release_done(self, connection: Connection, ended: EndToolCallReply, *, look: bool) -> list[LockInfo]:
        """Release hook locks that are no longer needed; return the locks that remain."""
        if ended.under_way:
            return list(ended.locks)
        done = [
            lock.resource for lock in ended.locks if lock.worktree and not lock.resource.startswith("file:")
        ]
        if look and any(lock.worktree for lock in ended.locks):
            from coord.integrations.git.clean_files import clean_locks

            done += clean_locks(ended.locks)
        if done:
            release = ReleaseHookLocks(connection.caller, connection.location.repository_id, tuple(done))
            done = list(connection.call(release).released)
        return [lock for lock in ended.locks if lock.resource not in done]

    def _prompt(self) -> None:
        home = self._home()
        if home is None:
            self._reply(ALLOW)
            return
        from coord.core.messages.commands import ReceiveMessages

        connection = self._connect(home)
        keep = self._end_of_call(connection, NO_CALL)
        kept, received = connection.engine.call_many([keep, ReceiveMessages(connection.caller)])
        self._keep_reads(kept.reads_logged)
        self._deliver(connection, [], received.messages, kept if kept.news else None)

    def _stop(self) -> None:
        home = self._home()
        if home is None:
            self._reply(ALLOW)
            return
        connection = self._connect(home)
        end = EndToolCall(connection.caller, read=self._read(connection))
        ended: EndToolCallReply = connection.call(end)
        self._keep_reads(ended.reads_logged)
        held = [
            lock for lock in self._release_done(connection, ended, look=True) if lock.fence > ended.reminded
        ]
        if ended.emergencies and not self.event.reminded:
            refusal = self._emergency(connection, connection.caller.session)
            if refusal:
                self._reply(Answer(keep_going=refusal))
                return
        if not held or self.event.reminded:
            self._reply(ALLOW)
            return
        from coord.integrations.hooks.messages import reminder

        newest = max(lock.fence for lock in held)
        connection.call(ReleaseHookLocks(connection.caller, connection.location.repository_id, (), newest))
        self._reply(Answer(keep_going=reminder(held)))

    def _permission(self) -> None:
        home = self._home()
        if home is None:
            self._reply(ALLOW)
            return
        from coord.integrations.hooks.people.questions import ask_permission

        wait_s = self.settings.permission_wait_s
        connection = self._connect(home)
        self._reply(ask_permission(connection, self.event, self._environ, wait_s, self._extend))

    def _attention(self) -> None:
        home = self._home()
        if home is not None:
            from coord.integrations.hooks.people.questions import ask_attention

            ask_attention(self._connect(home), self.event, self._payload)
        self._reply(ALLOW)

    def _start(self) -> None:
        home = self._home()
        if home is None:
            self._reply(ALLOW)
            return
        from coord.integrations.hooks.welcome import welcome

        self._restore_templates(home)
        notice = f"coord: {home.notice}." if home.notice else ""
        client = self._client(home)
        known = welcome(client, self.event.source, self.event.model)
        brief, receipts = self._brief_at_start(client)
        context = _worker_context(self._environ)
        self._reply(Answer(note="\n".join(text for text in (notice, known, context, brief) if text)))
        with suppress(CoordError):  # the next call has the same news
            client.engine.call_many(receipts)

    def _brief_at_start(self, client: Any) -> "Briefing":
        from coord.integrations.hooks.awareness.briefing import NOTHING, brief_at_start

        return brief_at_start(client, self.event.source) if self.settings.inject_brief else NOTHING

    def _agent_start(self) -> None:
        home = self._home()
        if home is not None:
            self._client(home).register(status="working", model=self.event.model or None, peers=False)
        self._reply(ALLOW)

    def _agent_stop(self) -> None:
        self._deregister(to_parent=True)

    def _end(self) -> None:
        if self.event.source == "clear":  # the session that starts in its place takes everything over
            self._reply(ALLOW)
            return
        self._deregister(to_parent=False)

    def _deregister(self, *, to_parent: bool) -> None:
        home = self._home()
        if home is not None:
            from coord.core.lifecycle.commands import Deregister

            connection = self._connect(home)
            caller, read = self._caller(), self._read(connection)
            with suppress(NotFound):
                connection.call(Deregister(caller, to_parent=to_parent, read=read))
            self._keep_reads(logged=True)
            connection.mirror_to_user_store(Deregister(caller, to_parent=to_parent))
        self._reply(ALLOW)

    def _observe_before(self, connection: Connection, target: Target, home: StoreLocation | None) -> None:
        """Record the state of the files before a call that may write."""
        if target.location.repository is None or not target.worktree:
            return
        from coord.integrations.shell_effects import observe

        shell = self._runs_in(target, home)
        observe.before_call(
            connection,
            target.worktree,
            connection.caller.session,
            self._call(),
            shell=shell,
            wrote=_files(target),
            timeout_s=self.event.timeout_s + MARGIN_S,
            watched=self.settings.watched,
            settings=protected_files.settings_files(self._environ) if shell else (),
        )

    def _observe_after(self, connection: Connection, target: Target, home: StoreLocation | None) -> str:
        """Compare the files after a call; return what its agent should know."""
        shell = self._runs_in(target, home)
        written = _files(target)
        if target.location.repository is None or not target.worktree or not (shell or written):
            return ""
        from coord.integrations.shell_effects import observe

        edited = self._edited.setdefault(connection, [])
        if not shell and not self.event.failed:
            edited += (text for text in target.resources if text.startswith("file:"))
        return observe.after_call(
            connection,
            target.worktree,
            connection.caller.session,
            self._call(),
            shell=shell,
            wrote=() if self.event.failed else written,
            watched=self.settings.watched,
            restore=self.settings.restore,
            text=self.event.text,
            cwd=self.event.cwd,
            edited=edited,
        )

    def _runs_in(self, target: Target, home: StoreLocation | None) -> bool:
        """Whether the call may write any file, and runs in this worktree."""
        return self.event.writes_anything and (
            target.runs or (target.location is home and target.worktree == worktree_of(home))
        )

    def _restore_templates(self, home: StoreLocation | None) -> None:
        """Give worktrees that were made without git's hooks the settings of their agents."""
        if home is not None and home.repository is not None:
            from coord.integrations.git.worktree.templates import restore_templates

            restore_templates(home.repository.commondir)

    def _home(self) -> StoreLocation | None:
        self.home = home = home_location(self.event, self._environ)
        if home is not None and home.repository is not None:
            self.settings = read_settings(read_consented(home.repository, self._environ))
        return home

    def _caller(self) -> Any:
        from coord.host.repository import find_repository

        return caller_of(self.event, self._environ, find_repository(self.event.cwd), runs=self._runs)

    def _connect(self, location: StoreLocation) -> Connection:
        if location.folder not in self._by_folder:
            self._by_folder[location.folder] = self._new_connection(location, Connection)
        return self._by_folder[location.folder]

    def _client(self, location: StoreLocation) -> Any:
        from coord.sdk.client.client import Client

        return self._new_connection(location, Client)

    def _new_connection(self, location: StoreLocation, kind: type[AnyConnection]) -> AnyConnection:
        from coord.host.repository import current_folder

        caller = caller_of(self.event, self._environ, location.repository, location.project, self._runs)
        timeout = max(0.0, self._open_by - time.monotonic())
        tenant, engine = tenant_of(self._environ), None
        if self._opener is not None:
            database, location, engine = self._opener(location, tenant)
        else:
            database, location = open_for_use(location, timeout, self._environ, tenant)
        connection = kind(
            database,
            location,
            caller,
            tenant=tenant,
            cwd=self.event.cwd or current_folder(),
            environ=self._environ,
            timeout=timeout,
            engine=engine,
        )
        self._open.append(connection)
        return connection
