"""Commands about messages, and their replies: the API."""

from typing import Any

from coord.core.commands import Command, Reply, SessionCommand
from coord.core.messages.quoting import quote
from coord.core.sessions.commands import SessionInfo
from coord.core.sessions.schema import Liveness


class MessageInfo(Reply, frozen=True):
    """A message as its recipient sees it."""

    id: str
    from_session_id: str
    to_session_id: str
    sent_ms: int
    kind: str
    subject: str
    body: str
    blob: dict[str, Any]
    priority: int
    hops: int
    reply_to: str
    state: str
    expires_ms: int
    from_repository: str = ""


class SendReply(Reply, frozen=True):
    """The id of a message that was sent, and how alive each recipient is."""

    id: str
    recipients: dict[str, Liveness]


class SendMessage(SessionCommand, frozen=True, kw_only=True):
    """Send a message to a session, an agent, `role:NAME` or `group:NAME`; without `to`, to all."""

    rule = "coord.core.messages.send:send_message"
    prefetch_keys = "coord.core.sessions.identify:caller_reads"
    reply = SendReply
    to: str = ""
    kind: str
    subject: str
    body: str = ""
    blob: dict[str, Any] = {}
    priority: int = 0
    ttl_ms: int = 0
    hops: int = 0
    reply_to: str = ""
    live_only: bool = False


class DeliverMessage(Command, frozen=True, kw_only=True):
    """Deliver a message from a session that works in another repository of this machine."""

    rule = "coord.core.messages.send:deliver_message"
    reply = SendReply
    id: str
    from_session_id: str
    from_repository: str
    to: tuple[str, ...]
    kind: str
    subject: str
    body: str = ""
    blob: dict[str, Any] = {}
    priority: int = 0
    ttl_ms: int = 0
    hops: int = 0
    reply_to: str = ""


class SendElsewhere(SendMessage, frozen=True, kw_only=True):
    """Count and log a message to sessions of other repositories; the reply is what to run in their stores."""

    rule = "coord.core.messages.send:send_elsewhere"
    reply = DeliverMessage  # type: ignore[assignment]
    sessions: tuple[str, ...]
    from_repository: str


class FindRecipients(SessionCommand, frozen=True, kw_only=True):
    """Return the sessions that an address means."""

    rule = "coord.core.lifecycle.status:show_recipients"
    reply = list[SessionInfo]
    reads_only = True
    to: str


class ReceiveReply(Reply, frozen=True):
    """Messages for this session, the most urgent first; `more`: there are others."""

    messages: list[MessageInfo]
    more: bool = False


class ReceiveMessages(SessionCommand, frozen=True):
    """Receive the waiting messages; with `drain` they count as acknowledged."""

    rule = "coord.core.messages.receive:receive_messages"
    prefetch_keys = "coord.core.sessions.identify:caller_reads"
    reply = ReceiveReply
    drain: bool = False


class PeekMessages(SessionCommand, frozen=True):
    """Show the waiting messages and change nothing."""

    rule = "coord.core.messages.receive:peek_messages"
    reply = ReceiveReply
    reads_only = True


class AckReply(Reply, frozen=True):
    """The messages that are acknowledged now."""

    acked: list[str]


class AckMessages(SessionCommand, frozen=True):
    """Acknowledge messages; a person may acknowledge those of another session."""

    rule = "coord.core.messages.receive:ack_messages"
    reply = AckReply
    ids: tuple[str, ...]
    session: str = ""


class GroupInfo(Reply, frozen=True):
    """A group and its members."""

    name: str
    members: list[str]


class GroupCommand(SessionCommand, frozen=True, kw_only=True):
    """A command about one group."""

    name: str


class JoinGroup(GroupCommand, frozen=True, kw_only=True):
    """Join a group, or with `create` begin one."""

    rule = "coord.core.messages.groups:join_group"
    prefetch_keys = "coord.core.sessions.identify:caller_reads"
    reply = GroupInfo
    create: bool = False


class LeaveGroup(GroupCommand, frozen=True):
    """Leave a group."""

    rule = "coord.core.messages.groups:leave_group"
    prefetch_keys = "coord.core.sessions.identify:caller_reads"
    reply = GroupInfo


class ShowGroup(GroupCommand, frozen=True):
    """Return one group."""

    rule = "coord.core.messages.groups:show_group"
    reply = GroupInfo
    reads_only = True


class ListGroups(SessionCommand, frozen=True):
    """Return all groups."""

    rule = "coord.core.messages.groups:list_groups"
    reply = list[GroupInfo]
    reads_only = True


class DelegationInfo(Reply, frozen=True):
    """Work that one session asked another one to do."""

    id: str
    from_session_id: str
    to_session_id: str
    to_agent: str
    to_role: str
    what: str
    task: str
    since_ms: int


class SimilarDelegation(Reply, frozen=True):
    """A delegation that resembles a new one; `share` is the part of the words that both have."""

    delegation: DelegationInfo
    share: float

    def __str__(self) -> str:
        whom = self.delegation.to_agent or self.delegation.to_session_id
        return f"{self.delegation.id} ({whom}): {quote(self.delegation.what)} ({self.share:.0%} of the words)"


class AddDelegationReply(Reply, frozen=True):
    """The new delegation, and those that it may duplicate."""

    delegation: DelegationInfo
    similar: list[SimilarDelegation] = []


class AddDelegation(SessionCommand, frozen=True, kw_only=True):
    """Ask a session or an agent to do something, and remember it until it is done."""

    rule = "coord.core.messages.delegations:add_delegation"
    prefetch_keys = "coord.core.sessions.identify:caller_reads"
    reply = AddDelegationReply
    to: str
    what: str
    task: str = ""


class EndDelegation(SessionCommand, frozen=True, kw_only=True):
    """Report delegated work as done, or with `cancel` take the request back."""

    rule = "coord.core.messages.delegations:end_delegation"
    prefetch_keys = "coord.core.sessions.identify:caller_reads"
    reply = DelegationInfo
    id: str
    cancel: bool = False


class ListDelegations(SessionCommand, frozen=True):
    """Return the delegations that are neither done nor cancelled, oldest first."""

    rule = "coord.core.messages.delegations:list_delegations"
    reply = list[DelegationInfo]
    reads_only = True
