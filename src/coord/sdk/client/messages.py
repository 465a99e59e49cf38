"""Send, receive and acknowledge messages."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from coord.core.errors import Invalid, NotFound
from coord.core.ids import check_id
from coord.sdk.client.connection import Connection
from coord.sdk.client.waiting import POLL_S, WAIT_S_MAX
from coord.sdk.validation import arguments

if TYPE_CHECKING:
    from coord.core.messages.commands import (
        AckReply,
        AddDelegationReply,
        DelegationInfo,
        GroupInfo,
        ReceiveReply,
        SendMessage,
        SendReply,
    )


class MessageCalls(Connection):
    """The message methods of a client."""

    def send(
        self,
        peer: str,
        kind: str,
        subject: str,
        *,
        body: str = "",
        blob: Mapping[str, Any] | None = None,
        priority: int = 0,
        ttl_s: float | None = None,
        reply_to: str = "",
        hops: int = 0,
    ) -> SendReply:
        """Send a message to a session, an agent, `role:NAME` or `group:NAME`; see `coord send --help`."""
        to = check_id("recipient", peer)
        return self._send(to, kind, subject, body, blob, priority, ttl_s, reply_to, hops)

    def broadcast(
        self,
        kind: str,
        subject: str,
        *,
        body: str = "",
        blob: Mapping[str, Any] | None = None,
        priority: int = 0,
        ttl_s: float | None = None,
        hops: int = 0,
        live_only: bool = False,
    ) -> SendReply:
        """Send a message to all current sessions."""
        return self._send("", kind, subject, body, blob, priority, ttl_s, "", hops, live_only=live_only)

    def _send(
        self,
        to: str,
        kind: str,
        subject: str,
        body: str,
        blob: Mapping[str, Any] | None,
        priority: int,
        ttl_s: float | None,
        reply_to: str,
        hops: int,
        *,
        live_only: bool = False,
    ) -> SendReply:
        from coord.core.messages.commands import SendMessage

        command = SendMessage(
            self.caller,
            to=to,
            kind=arguments.kind(kind),
            subject=arguments.one_line("subject", subject, arguments.SUBJECT_CHARS_MAX),
            body=arguments.body(body, broadcast=not to or to.startswith(("role:", "group:"))),
            blob={} if blob is None else arguments.blob(blob),
            priority=arguments.priority(priority),
            ttl_ms=0 if ttl_s is None else arguments.milliseconds("ttl", ttl_s),
            hops=arguments.hops(hops),
            reply_to=arguments.one_line("message id", reply_to),
            live_only=live_only,
        )
        if self.location.repository is None and to:
            return self._send_elsewhere(command) or self.call(command)
        try:
            return self.call(command)
        except NotFound:
            sent = self._send_elsewhere(command)
            if sent is None:
                raise
            return sent

    def _send_elsewhere(self, command: SendMessage) -> SendReply | None:
        """Send a message to sessions of other repositories; None if nobody there has the address."""
        from coord.sdk.elsewhere import find_elsewhere, send_elsewhere  # most recipients work here

        destinations = find_elsewhere(self, command.to)
        return send_elsewhere(self, command, destinations) if destinations else None

    def recv(self, *, drain: bool = False, peek: bool = False, wait_s: float | None = 0) -> ReceiveReply:
        """Receive messages; `drain` removes them, `peek` only looks, `wait_s` waits for the first one."""
        from coord.core.messages.commands import PeekMessages, ReceiveMessages

        if drain and peek:
            raise Invalid("drain and peek cannot be combined", hint="use one of them")
        ask = (
            PeekMessages(self.caller)
            if peek or self.reads_only
            else ReceiveMessages(self.caller, drain=drain)
        )
        patience_s = WAIT_S_MAX if wait_s is None else arguments.milliseconds("wait", wait_s, min_s=0) / 1000
        deadline = time.monotonic() + patience_s
        store = self.log
        while True:
            reply: ReceiveReply = self.call(ask)
            left = deadline - time.monotonic()
            if reply.messages or left <= 0:
                return reply
            if self.on_wait is not None:
                self.on_wait(reply)
            store.wait(store.seen.offset, min(left, POLL_S))

    def ack(self, ids: str | Sequence[str], *, of: str = "") -> AckReply:
        """Acknowledge messages, so that they are not offered again; a person may do so for a session `of`."""
        from coord.core.messages.commands import AckMessages

        names = (ids,) if isinstance(ids, str) else tuple(ids)
        return self.call(
            AckMessages(
                self.caller,
                tuple(arguments.one_line("message id", name) for name in names),
                check_id("session id", of) if of else "",
            )
        )

    def join_group(self, name: str, *, create: bool = False) -> GroupInfo:
        """Join a group, or begin one: its members get the messages to `group:NAME`."""
        from coord.core.messages.commands import JoinGroup

        return self.call(JoinGroup(caller=self.caller, name=check_id("group", name), create=create))

    def leave_group(self, name: str) -> GroupInfo:
        """Leave a group; it ends with its last member."""
        from coord.core.messages.commands import LeaveGroup

        return self.call(LeaveGroup(caller=self.caller, name=check_id("group", name)))

    def groups(self) -> list[GroupInfo]:
        """Return all groups with their members."""
        from coord.core.messages.commands import ListGroups

        return self.call(ListGroups(self.caller))

    def group(self, name: str) -> GroupInfo:
        """Return a group with its members."""
        from coord.core.messages.commands import ShowGroup

        return self.call(ShowGroup(caller=self.caller, name=check_id("group", name)))

    def delegate(self, to: str, what: str, *, task: str = "") -> AddDelegationReply:
        """Ask a session or an agent to do something; the reply names similar delegations."""
        from coord.core.messages.commands import AddDelegation

        command = AddDelegation(
            caller=self.caller,
            to=check_id("recipient", to),
            what=arguments.one_line("description", what, arguments.SUBJECT_CHARS_MAX),
            task=arguments.one_line("task", task),
        )
        return self.call(command)

    def end_delegation(self, delegation: str, *, cancel: bool = False) -> DelegationInfo:
        """Report delegated work as done; with `cancel` take the request back."""
        from coord.core.messages.commands import EndDelegation

        name = check_id("delegation", delegation)
        return self.call(EndDelegation(caller=self.caller, id=name, cancel=cancel))

    def delegations(self) -> list[DelegationInfo]:
        """Return the delegations that are neither done nor cancelled, oldest first."""
        from coord.core.messages.commands import ListDelegations

        return self.call(ListDelegations(self.caller))
