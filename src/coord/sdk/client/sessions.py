"""Register, update and list sessions; read the memory of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from coord.core.errors import CoordError
from coord.core.ids import check_id
from coord.core.sessions.commands import (
    GetSession,
    Heartbeat,
    HeartbeatReply,
    ListSessions,
    SessionInfo,
    UpdateReply,
    UpdateSession,
)
from coord.host.progress import report_progress
from coord.sdk.client.connection import Connection
from coord.sdk.validation import arguments

if TYPE_CHECKING:
    from coord.core.lifecycle.commands import DeregisterReply, RegisterReply
    from coord.sdk.client.session_memory import SessionMemory


class SessionCalls(Connection):
    """The session methods of a client."""

    def register(
        self,
        *,
        task: str | None = None,
        phase: str | None = None,
        status: str | None = None,
        role: str | None = None,
        bin: str | None = None,  # noqa: A002 - the name of the field
        version: str | None = None,
        model: str | None = None,
        blob: Mapping[str, Any] | None = None,
        capabilities: Mapping[str, float] | None = None,
        replaces: str = "",
        force: bool = False,
        reason: str = "",
        peers: bool = True,
        runner: bool = False,
    ) -> RegisterReply:
        """Register this session, or update it; return it with its peers.

        `replaces` names a session that this one continues. It must be gone or live in the same process;
        `force` with a `reason` takes over from one that may be alive. Without `peers` none are listed.
        """
        from coord.core.lifecycle.commands import Register

        command = Register(
            caller=self.caller,
            **_described(task, phase, status, role, bin, version, blob, model),
            capabilities=arguments.capabilities(capabilities),
            replaces=check_id("session id", replaces) if replaces else "",
            force=force,
            reason=arguments.one_line("reason", reason),
            peers=peers,
            runner=runner,
        )
        reply: RegisterReply = self.call(command)
        self.mirror_to_user_store(msgspec.structs.replace(command, peers=False), make=True)
        return reply

    def heartbeat(self) -> HeartbeatReply:
        """Report that this session is alive."""
        report_progress(self._environ)
        reply: HeartbeatReply = self.call(Heartbeat(self.caller))
        if reply.written:
            self.mirror_to_user_store(Heartbeat(self.caller))
        return reply

    def update(
        self,
        *,
        task: str | None = None,
        phase: str | None = None,
        status: str | None = None,
        role: str | None = None,
        blob: Mapping[str, Any] | None = None,
        merge_blob: Mapping[str, Any] | None = None,
        owned: Mapping[str, Any] | None = None,
        capabilities: Mapping[str, float] | None = None,
    ) -> UpdateReply:
        """Update the given fields of this session; `capabilities` maps task types to efficiencies.

        The status `completed` or `failed` also releases its locks and returns its tasks.
        """
        report_progress(self._environ)
        command = UpdateSession(
            caller=self.caller,
            **_described(task, phase, status, role, None, None, blob),
            merge_blob=None if merge_blob is None else arguments.blob(merge_blob),
            owned=None if owned is None else arguments.blob(owned),
            capabilities=arguments.capabilities(capabilities),
        )
        return self.call(command)

    def peers(self, *, live: bool = False) -> list[SessionInfo]:
        """Return the other sessions here; `peers_elsewhere` returns those of other repositories."""
        found: list[SessionInfo] = self.call(ListSessions(self.caller, live))
        return [one for one in found if not one.repository] if self.in_user_store else found

    def peers_elsewhere(self, *, live: bool = False) -> list[SessionInfo]:
        """Return the sessions in other repositories of this machine, each with its `repository`."""
        found = self._peers_of_host(ListSessions(self.caller, live))
        others = [one for one in found if one.repository not in ("", self.caller.repository)]
        here = {session.session_id for session in self.peers()} if others else set()
        return [session for session in others if session.session_id not in here]

    def _peers_of_host(self, command: ListSessions) -> list[SessionInfo]:
        """Return the sessions in the user's store; none if it cannot be read."""
        try:
            host = self.user_store(make=False)
            return [] if host is None else host.engine.call(command)
        except CoordError:
            return []

    def show(self, session: str = "") -> SessionInfo:
        """Return a session; without a name this one."""
        return self.call(GetSession(self.caller, check_id("session id", session) if session else ""))

    def session_memory(self, session: str = "") -> SessionMemory:
        """Return what a session did and what it needs to continue; without a name this one."""
        from coord.core.lifecycle.commands import GetSessionMemory
        from coord.sdk.client.session_memory import load_session_memory  # most commands never read it

        name = check_id("session id", session) if session else ""
        command = GetSessionMemory(caller=self.caller, tenant=self.tenant, session=name)
        return load_session_memory(self.engine, self.log, command, self.caller.project)

    def dereg(self, session: str = "", *, force: bool = False, reason: str = "") -> DeregisterReply:
        """End this session, one of its children or a dead one, and release its locks.

        With `force` a person ends any session, for a reason.
        """
        from coord.core.lifecycle.commands import Deregister

        name, why = check_id("session id", session) if session else "", arguments.one_line("reason", reason)
        command = Deregister(self.caller, name, force=force, reason=why)
        reply: DeregisterReply = self.call(command)
        self.mirror_to_user_store(command)
        return reply


def _described(
    task: str | None,
    phase: str | None,
    status: str | None,
    role: str | None,
    program: str | None,
    version: str | None,
    blob: Mapping[str, Any] | None,
    model: str | None = None,
) -> dict[str, Any]:
    texts = {"task": task, "phase": phase, "status": status, "role": role, "bin": program, "version": version}
    texts["model"] = model
    fields: dict[str, Any] = {
        name: None if text is None else arguments.one_line(name, text) for name, text in texts.items()
    }
    fields["blob"] = None if blob is None else arguments.blob(blob)
    return fields
