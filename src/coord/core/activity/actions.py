"""Which event of the log is which action of the ledger: one table, for reports and for SQL views.

The ledger has the fourteen types of actions that the founding document names. It is no second log: an entry
of the ledger is an event, seen through this table. An event that no row matches is no action, and
`NOT_ACTIONS` says why.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

LEDGER_MAX = 10_000
"""How many of the newest actions the ledger has."""
EVENTS_PER_ENTRY = 1_000_000
OFFSET_BITS = 40
"""The part of an offset that counts; the bits above are the epoch of a repaired store, which has one."""

TYPES = (
    *("file_edit", "file_read", "decision_made", "task_started", "task_completed", "sub_agent_spawned"),
    *("lock_acquired", "lock_released", "message_sent", "delegated", "agent_terminated"),
    *("delegation_cancelled", "group_message", "error"),
)
TYPES_WITH_RECIPIENT = ("message_sent", "delegated", "agent_terminated", "delegation_cancelled")
"""The details of these have `toAgentId` and `toRole`."""
SUMMARY_PARTS = 3
FILE = "file:"


class Action(NamedTuple):
    """A row of the table: an event, and the type of action that it is.

    `summary` has up to three fields of the event in braces. The event matches if its field `only_if` has one
    of `values`; without values, if it is not empty. `agent` is the field with the session that acted, `to`
    and `to_role` are those with the session that it concerns and with its role.
    """

    event: str
    type: str
    summary: str
    only_if: str = ""
    values: tuple[str, ...] = ()
    agent: str = "session"
    to: str = ""
    to_role: str = ""

    def matches(self, details: Mapping[str, Any]) -> bool:
        """Whether the details of the event match."""
        if not self.only_if:
            return True
        value = field_text(details, self.only_if)
        return value in self.values if self.values else bool(value)

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """The summary as pairs of a text and the field that follows it.

        >>> Action("a.b", "error", "Lost {resource}: {reason}").parts
        (('Lost ', 'resource'), (': ', 'reason'))
        """
        pairs = (each.partition("{") for each in self.summary.split("}"))
        return tuple((text, name) for text, _, name in pairs if text or name)


ACTIONS = (
    Action("file.edited", "file_edit", "Edited {resource}"),
    Action("git.committed", "file_edit", "Committed {commit}: {subject}"),
    Action("git.merged", "file_edit", "Merged {branch} into {into}"),
    Action("file.read", "file_read", "Read {resource}"),
    Action("question.answered", "decision_made", "Decided: {answer}"),
    Action("task.claimed", "task_started", "Started task {task}"),
    Action("task.completed", "task_completed", "Completed task {task}"),
    Action(
        "session.registered",
        "sub_agent_spawned",
        "Started sub-agent {session}",
        only_if="parent",
        agent="parent",
        to="session",
        to_role="agent",
    ),
    Action("lock.acquired", "lock_acquired", "Acquired lock on {resource}"),
    Action("lock.released", "lock_released", "Released lock on {resource}: {end_reason}"),
    Action("message.sent", "message_sent", "Sent {kind}: {subject}", to="to", to_role="to_role"),
    Action("message.sent_to_group", "group_message", "Sent {kind} to group {group}: {subject}"),
    Action("delegation.added", "delegated", "Delegated: {what}", to="to", to_role="to_role"),
    Action(
        "delegation.cancelled",
        "delegation_cancelled",
        "Cancelled the delegation: {what}",
        to="to",
        to_role="to_role",
    ),
    Action(
        "session.ended",
        "agent_terminated",
        "Terminated {session}: {evidence}",
        only_if="end_reason",
        values=("terminated",),
        agent="by",
        to="session",
        to_role="role",
    ),
    Action("session.ended", "error", "Session died: {evidence}", only_if="end_reason", values=("dead",)),
    Action("session.hung", "error", "Session silent for {silent_s} s"),
    Action(
        "task.released",
        "error",
        "Failed task {task}: {note}",
        only_if="reason",
        values=("ERROR",),
    ),
    Action("task.expired", "error", "Lease of task {task} expired"),
    Action("task.errored", "error", "Task {task} failed too often: {reason}", agent=""),
    Action("task.result_rejected", "error", "Result of task {task} rejected: {reason}"),
    Action("lock.deadlock", "error", "Deadlock; victim {victim}", agent="victim"),
    Action("git.merge_refused", "error", "Merge of {branch} into {into} refused: {status}"),
    Action("git.commit_refused", "error", "Commit refused by {hook}: {detail}"),
    Action("file.restored", "error", "Overwrote files of others, which were restored: {file_count}"),
    Action("budget.exceeded", "error", "Budget of {scope} {name} exceeded"),
    Action("agent.limited", "error", "Agent {agent} reached a rate limit", agent="agent"),
)

NOT_ACTIONS = {
    "clock.accepted": "a person did it, to the store",
    "settings.changed": "a person did it, to the store",
    "limits.set": "a person did it, to the store",
    "work.held": "a person did it, to all agents",
    "work.resumed": "a person did it, to all agents",
    "session.updated": "a report; what the session does is logged by itself",
    "session.compacted": "the tool did it, not the agent",
    "token.created": "access, not work",
    "token.revoked": "access, not work",
    "token.rotated": "access, not work",
    "token.expired": "access, not work",
    "message.delivered": "the message is in the ledger already",
    "message.undelivered": "the message is in the ledger already",
    "group.joined": "the messages of the group are actions",
    "group.left": "the messages of the group are actions",
    "delegation.ended": "the task or the end of the session is in the ledger",
    "question.asked": "nothing is decided yet; coord needs-you lists it",
    "question.withdrawn": "nothing was decided",
    "lock.renewed": "a heartbeat",
    "lock.moved": "the session got a new name",
    "lock.denied": "nothing changed",
    "lock.waiting": "nothing changed",
    "lock.withdrawn": "nothing changed",
    "lock.wait_ended": "the lock is the action",
    "lock.preemption_asked": "the end of the lock is the action",
    "lock.preemption_withdrawn": "nothing changed",
    "task.renewed": "a heartbeat",
    "task.moved": "the session got a new name",
    "task.superseded": "the new claim is the action",
    "task.refused": "nothing changed",
    "task.reset": "planning, not work",
    "task.added": "planning, not work",
    "task.split": "planning, not work",
    "task.merged": "the results of the parts are the actions",
    "task.assigned": "the claim is the action",
    "task.skipped": "planning, not work",
    "task.failed": "the failed attempt is in the ledger already",
    "task.retried": "the next claim is the action",
    "task.history_forgotten": "housekeeping",
    "agent.enabled": "a person did it",
    "usage.reported": "a measurement",
    "alert.raised": "coord noticed it; what happened is in the ledger",
    "alert.closed": "coord noticed it; what happened is in the ledger",
    "alert.rule_muted": "coord did it",
    "brief.delivered": "the hook did it, not the agent",
    "reaction.ran": "a rule of a person did it",
    "reaction.failed": "a rule of a person did it",
    "reaction.refused": "a rule of a person did it",
    "reaction.dropped": "a rule of a person did it",
    "reaction.decided": "a person did it",
}
"""Events that are never an action, and why."""

_BY_EVENT: dict[str, list[Action]] = {}
for _action in ACTIONS:
    _BY_EVENT.setdefault(_action.event, []).append(_action)


class Performed(NamedTuple):
    """An action: what an event says about it."""

    type: str
    agent_id: str
    agent: str
    """The name of the acting agent, if the event has it."""
    summary: str
    details: dict[str, Any]


def action_of(event: str, details: Mapping[str, Any]) -> Performed | None:
    """Return the action that an event is; None if it is none."""
    for action in _BY_EVENT.get(event, ()):
        if action.matches(details):
            return _performed(action, details)
    return None


def action_id(offset: int, number: int) -> int:
    """Return the id of an action: the offset of its log entry times a million, plus the number of its event.

    >>> action_id((1 << OFFSET_BITS) + 7, 2)
    7000002
    """
    return offset % (1 << OFFSET_BITS) * EVENTS_PER_ENTRY + number


def text_of(event: str, details: Mapping[str, Any], show: Callable[[str], str]) -> str:
    """Return the summary of an action, each field as `show` writes it; "" if the event is no action.

    >>> text_of("task.claimed", {"task": "t1"}, repr)
    "Started task 't1'"
    """
    for action in _BY_EVENT.get(event, ()):
        if action.matches(details):
            return _summary(action, details, show)
    return ""


def _summary(action: Action, details: Mapping[str, Any], show: Callable[[str], str] = str) -> str:
    shown = ((text, show(field_text(details, name)) if name else "") for text, name in action.parts)
    return "".join(part for pair in shown for part in pair)


def _performed(action: Action, details: Mapping[str, Any]) -> Performed:
    shown: dict[str, Any] = {"event": action.event, **details}
    if action.to:
        shown["toAgentId"] = _recipient(details.get(action.to))
        shown["toRole"] = field_text(details, action.to_role)
    by_itself = action.agent == "session"
    return Performed(
        action.type,
        field_text(details, action.agent),
        field_text(details, "agent") if by_itself else "",
        _summary(action, details),
        shown,
    )


def _recipient(value: object) -> str:
    """Return the one session that a field names; "" if it names several."""
    if isinstance(value, (list, tuple)):
        value = value[0] if len(value) == 1 else ""
    return value if isinstance(value, str) else ""


def field_text(details: Mapping[str, Any], name: str) -> str:
    """Return a text or a number of an event as text; "" for anything else, and a file without `file:`."""
    value = details.get(name, "")
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return ""
    return str(value).removeprefix(FILE) if name == "resource" else str(value)
