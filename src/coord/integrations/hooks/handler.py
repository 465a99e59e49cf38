"""What a hook does about an event: it locks, refuses, keeps, gives back, tells."""

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from coord.core.commands import AckMessages, Deregister, ReceiveMessages
from coord.core.errors import CoordError, NotFound
from coord.core.locks.tool_call_commands import BeginCall, EndCall, LetGo
from coord.core.replies import CallEnded, LockReply, LockShown, Received
from coord.host.paths import path_in_resource
from coord.host.store_location import StoreLocation
from coord.integrations.hooks import messages as texts
from coord.integrations.hooks.config import Settings, read_settings
from coord.integrations.hooks.events import NOTHING, Event, Verdict
from coord.integrations.hooks.identity import caller_of, tenant_of
from coord.integrations.hooks.protected_files import refused_edit, refused_settings
from coord.integrations.hooks.shell_parser import goes_on
from coord.integrations.hooks.targets import Part, home_place, parts_of, root_of
from coord.sdk.client.connection import Connection
from coord.sdk.client.open import open_location

Show = Callable[[Verdict], None]
AnyConnection = TypeVar("AnyConnection", bound=Connection)
MARGIN_S = 60.0
"""A lease outlives the call that it is for."""
NO_CALL = "-"
"""Keeps what the session holds, and ends no call."""


class Gate:
    """One event, and the stores that it concerns."""

    def __init__(
        self,
        event: Event,
        told: Mapping[str, Any],
        environ: Mapping[str, str],
        show: Show,
        *,
        open_by: float = 0.0,
    ) -> None:
        """`show` prints the answer; what has to happen after that, happens after it.

        Until `open_by`, by the monotonic clock, a store that cannot be reached is tried again.
        """
        self.event = event
        self._told = told
        self._environ = environ
        self._show = show
        self._open_by = open_by
        self.settings = Settings()
        self._open: list[Connection] = []
        self._by_folder: dict[str, Connection] = {}

    def pass_through(self) -> None:
        """Do what the event asks for, and answer."""
        try:
            getattr(self, f"_{self.event.kind}")()
        finally:
            for connection in self._open:
                connection.close()

    def _other(self) -> None:
        self._show(NOTHING)

    def _settings(self) -> None:
        self._show(Verdict(deny=refused_settings(self.event, self._told, self._environ)))

    def _before(self) -> None:
        refusal = refused_edit(self.event)
        if refusal or not self.event.changes_files:
            self._show(Verdict(deny=refusal))
            return
        home = self._home()
        begun: list[tuple[Connection, Part]] = []
        put_aside: list[str] = []
        parts = parts_of(self.event, self._environ, home, self.settings)
        named = [text for part in parts for text in part.resources if not text.startswith("file:")]
        if named and (self.event.background or goes_on(self.event.command or "")):
            self._show(Verdict(deny=texts.in_background(named)))
            return
        for part in parts:
            connection = self._connect(part.location)
            reply = self._begin(connection, part)
            if not reply.ok:
                self._undo(begun)
                self._show(Verdict(deny=self._denial(reply, part)))
                return
            begun.append((connection, part))
            if reply.after_loss:
                put_aside += self._salvage(part, reply)
        if put_aside:  # what the agent knows of these files is out of date; it holds them now, and may go on
            for connection, _ in begun:
                connection.call(EndCall(connection.caller, self._call()))
            self._show(Verdict(deny=texts.put_aside(put_aside)))
            return
        for connection, part in begun:
            self._note(connection, part, home)
        self._show(NOTHING)

    def _salvage(self, part: Part, reply: LockReply) -> list[str]:
        """Put aside what those who lost such a lock left half done; return what was."""
        from coord.host.repository import find_repository
        from coord.integrations.git.salvage.rollback import salvage_first

        if part.location.repository is None or not part.worktree:
            return []
        location = part.location._replace(repository=find_repository(part.worktree))
        return salvage_first(self._session_calls(location), reply.locks)

    def _begin(self, connection: Connection, part: Part) -> LockReply:
        command = BeginCall(
            connection.caller,
            connection.location.repository_id,
            part.resources,
            alone=part.alone,
            call=self._call(),
            lease_ms=int((self.event.lasts_s + MARGIN_S) * 1000),
            worktree=part.worktree or "-",
            reason=self._reason(),
        )
        reply: LockReply = connection.call(command)
        return reply

    def _call(self) -> str:
        return self.event.call[:128] or self.event.called or NO_CALL

    def _reason(self) -> str:
        line = " ".join((self.event.command or "").split())
        return "".join(char for char in line[:80] if char.isprintable())

    def _denial(self, reply: LockReply, part: Part) -> str:
        of_files = any(text.startswith("file:") for text in part.resources)
        return texts.denial(reply, part.resources, "" if of_files else self.event.command or "")

    def _undo(self, begun: list[tuple[Connection, Part]]) -> None:
        """Give back what was taken in one store, where another one refuses."""
        for connection, part in begun:
            connection.call(EndCall(connection.caller, self._call()))
            if part.resources:
                connection.call(LetGo(connection.caller, connection.location.repository_id, part.resources))

    def _after(self) -> None:
        home = self._home()
        ended: CallEnded | None = None
        received = Received([])
        first = self._connect(home) if home is not None else None
        parts = parts_of(self.event, self._environ, home, self.settings)
        said = [self._look(self._connect(part.location), part, home) for part in parts]
        for connection in dict.fromkeys(self._connect(part.location) for part in parts):
            end = EndCall(connection.caller, self._call())
            if connection is first:
                ended, received = connection.engine.call_many([end, ReceiveMessages(connection.caller)])
            else:
                ended = connection.call(end)
            self._give_back(connection, ended, look=self.event.command is not None or self.event.failed)
        text, ids = texts.inbox(received.messages)
        self._show(Verdict(say="\n".join(each for each in (*said, text) if each)))
        if ids and first is not None:
            with suppress(CoordError):  # it is offered again
                first.call(AckMessages(first.caller, tuple(ids)))

    def _give_back(self, connection: Connection, ended: CallEnded, *, look: bool) -> list[LockShown]:
        """Give back what hooks took and nothing needs any more; return what is still held."""
        if ended.under_way:
            return list(ended.locks)
        done = [
            lock.resource for lock in ended.locks if lock.worktree and not lock.resource.startswith("file:")
        ]
        if look and any(lock.worktree for lock in ended.locks):
            from coord.integrations.git.clean_files import clean_locks

            done += clean_locks(ended.locks)
        if done:
            let_go = LetGo(connection.caller, connection.location.repository_id, tuple(done))
            done = list(connection.call(let_go).released)
        return [lock for lock in ended.locks if lock.resource not in done]

    def _prompt(self) -> None:
        home = self._home()
        if home is None:
            self._show(NOTHING)
            return
        connection = self._connect(home)
        keep = EndCall(connection.caller, NO_CALL)
        _, received = connection.engine.call_many([keep, ReceiveMessages(connection.caller)])
        text, ids = texts.inbox(received.messages)
        self._show(Verdict(say=text))
        if ids:
            with suppress(CoordError):  # it is offered again
                connection.call(AckMessages(connection.caller, tuple(ids)))

    def _stop(self) -> None:
        home = self._home()
        if home is None:
            self._show(NOTHING)
            return
        connection = self._connect(home)
        ended: CallEnded = connection.call(EndCall(connection.caller))
        held = [lock for lock in self._give_back(connection, ended, look=True) if lock.fence > ended.reminded]
        if not held or self.event.reminded:
            self._show(NOTHING)
            return
        newest = max(lock.fence for lock in held)
        connection.call(LetGo(connection.caller, connection.location.repository_id, (), newest))
        self._show(Verdict(go_on=texts.reminder(held)))

    def _start(self) -> None:
        home = self._home()
        if home is None:
            self._show(NOTHING)
            return
        from coord.integrations.hooks.welcome import greet

        self._show(Verdict(say=greet(self._session_calls(home), self.event.source)))

    def _agent_start(self) -> None:
        home = self._home()
        if home is not None:
            self._session_calls(home).register(status="working")
        self._show(NOTHING)

    def _agent_stop(self) -> None:
        self._leave(Deregister(self._caller(), to_parent=True))

    def _end(self) -> None:
        if self.event.source == "clear":  # the session that begins in its place takes all over
            self._show(NOTHING)
            return
        self._leave(Deregister(self._caller()))

    def _leave(self, command: Deregister) -> None:
        home = self._home()
        if home is not None:
            connection = self._connect(home)
            with suppress(NotFound):
                connection.call(command)
            connection.mirror_to_user_store(command)
        self._show(NOTHING)

    def _note(self, connection: Connection, part: Part, home: StoreLocation | None) -> None:
        """Let it be seen how files stand before a call that may write."""
        if part.location.repository is None or not part.worktree:
            return
        from coord.integrations.shell_effects import observe as effects

        effects.before(
            connection,
            part.worktree,
            connection.caller.session,
            self._call(),
            shell=self._runs_in(part, home),
            lasts_s=self.event.lasts_s + MARGIN_S,
            watched=self.settings.watched,
        )

    def _look(self, connection: Connection, part: Part, home: StoreLocation | None) -> str:
        """Let it be seen what a call has done; return what its agent should know."""
        shell = self._runs_in(part, home)
        written = [path_in_resource(text) for text in part.resources if text.startswith("file:")]
        if part.location.repository is None or not part.worktree or not (shell or written):
            return ""
        from coord.integrations.shell_effects import observe as effects

        return effects.after(
            connection,
            part.worktree,
            connection.caller.session,
            self._call(),
            shell=shell,
            wrote=() if self.event.failed else written,
            watched=self.settings.watched,
            restore=self.settings.restore_stomps,
        )

    def _runs_in(self, part: Part, home: StoreLocation | None) -> bool:
        """Whether the call is a shell's, and begins in this worktree."""
        return self.event.command is not None and part.location is home and part.worktree == root_of(home)

    def _home(self) -> StoreLocation | None:
        home = home_place(self.event, self._environ)
        if home is not None and home.repository is not None:
            self.settings = read_settings(home.repository.root)
        return home

    def _caller(self) -> Any:
        from coord.host.repository import find_repository

        return caller_of(self.event, self._environ, find_repository(self.event.cwd))

    def _connect(self, location: StoreLocation) -> Connection:
        if location.folder not in self._by_folder:
            self._by_folder[location.folder] = self._connected(location, Connection)
        return self._by_folder[location.folder]

    def _session_calls(self, location: StoreLocation) -> Any:
        from coord.sdk.client.client import Client

        return self._connected(location, Client)

    def _connected(self, location: StoreLocation, kind: type[AnyConnection]) -> AnyConnection:
        caller = caller_of(self.event, self._environ, location.repository)
        timeout = max(0.0, self._open_by - time.monotonic())
        database, location = open_location(location, timeout)
        connection = kind(
            database,
            location,
            caller,
            tenant=tenant_of(self._environ),
            cwd=self.event.cwd or os.getcwd(),
            environ=self._environ,
            timeout=timeout,
        )
        self._open.append(connection)
        return connection
