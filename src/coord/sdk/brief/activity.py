"""What others did lately, as lines of a brief: `[13:45:02] Developer abc12345: Acquired lock on src/auth.ts`.

The log has it already, so nothing is recorded for this. Only the newest entries are read, and only events
that change what others may do.
"""

import time
from collections.abc import Callable, Collection, Iterable
from typing import Any

import msgspec

from coord.core.activity.actions import text_of
from coord.core.brief.commands import Brief
from coord.sdk.brief.plain_text import field
from coord.sdk.log_reader import LoggedEvent, first_offset, logged_events, newest_offset
from coord.stores.contract import Store

ENTRIES_MAX = 200
"""How many of the newest log entries are read."""
SHOWN_MAX = 5
ID_CHARS = 8
"""How many characters of a long session id are shown, if no other session begins with them."""
WHOLE_ID_CHARS_MAX = 20
"""Ids up to this length are names, and shown whole."""


class RecentEvent(msgspec.Struct, frozen=True):
    """One thing that an agent did: when, who, and what."""

    offset: int
    at_ms: int
    session: str
    agent: str
    what: str


class Recent(msgspec.Struct, frozen=True):
    """What happened after an offset, newest first; `head` is the newest offset that was read."""

    events: list[RecentEvent]
    head: int
    sessions: frozenset[str] = frozenset()
    """Whose facts may have changed since."""
    whole: bool = True
    """Whether everything after the offset was read."""


def recent(log: Store, brief: Brief, after: int = 0) -> Recent:
    """Return what others in the crew did after an offset, as far as the newest entries show it."""
    head = newest_offset(log)
    begin = max(after, head - ENTRIES_MAX, first_offset(log) - 1, 0)
    crew = {member.id for member in (*brief.crew, *brief.ended)}
    found: list[RecentEvent] = []
    changed: set[str] = set()
    page = log.tail(begin, ENTRIES_MAX) if head > begin else []
    for logged in logged_events(page):
        who = str(logged.details.get("session") or logged.details.get("from_session_id") or "")
        if logged.event != "file.read":
            changed.add(who)
        what = describe(logged)
        if what and who in crew:
            agent = str(logged.details.get("agent", ""))
            found.append(RecentEvent(logged.offset, logged.at_ms, who, agent, what))
    return Recent(found[::-1], max(head, page[-1].offset if page else 0), frozenset(changed), begin <= after)


def _resource(details: dict[str, Any]) -> str:
    return field(str(details.get("resource", "")).removeprefix("file:"))


def _lock_ended(details: dict[str, Any]) -> str:
    reason = str(details.get("end_reason", ""))
    if reason in ("released", "session_ended", "parent_ended"):
        return f"Released lock on {_resource(details)}"
    return f"Lost lock on {_resource(details)} ({field(reason.replace('_', ' '))})"


def _session_ended(details: dict[str, Any]) -> str:
    words = {"deregistered": "Exited", "dead": "Crashed"}
    return words.get(str(details.get("end_reason")), "Terminated")


_AS_IN_LEDGER = ("lock.acquired", "task.claimed", "task.completed")
"""Events with the same words in a brief and in the ledger."""
_TEXTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "lock.released": _lock_ended,
    "task.failed": lambda details: f"Failed task {field(str(details.get('task', '')))}",
    "session.registered": lambda _: "Joined",
    "session.ended": _session_ended,
    "delegation.added": lambda details: f"Delegated {field(str(details.get('what', '')))}",
    "question.asked": lambda details: f"Asked — {field(str(details.get('text', '')))}",
    "question.answered": lambda details: f"Decision — {field(str(details.get('answer', '')))}",
}


def describe(logged: LoggedEvent) -> str:
    """Return an event in words; "" if it changes nothing for others."""
    if logged.event in _AS_IN_LEDGER:
        return text_of(logged.event, logged.details, field)
    text = _TEXTS.get(logged.event)
    return "" if text is None else text(logged.details)


def clock_time(ms: int) -> str:
    """Return the time of day in UTC."""
    return time.strftime("%H:%M:%S", time.gmtime(ms / 1000))


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Return the shortest beginning of each id that no other one has, which commands accept, too.

    >>> short_ids(["7c2b5f84-0a0a-4b4b-8c8c-1d1d1d1d1d1d", "otto"])
    {'7c2b5f84-0a0a-4b4b-8c8c-1d1d1d1d1d1d': '7c2b5f84', 'otto': 'otto'}
    """
    listed = sorted(set(ids))
    shown = {}
    for at, name in enumerate(listed):
        beside = (*listed[max(0, at - 1) : at], *listed[at + 1 : at + 2])
        shown[name] = name if len(name) <= WHOLE_ID_CHARS_MAX else name[: _needed(name, beside)]
    return shown


def _needed(name: str, others: Collection[str]) -> int:
    """Return how many characters of a name no other begins with, at least `ID_CHARS`."""
    chars = ID_CHARS
    while chars < len(name) and any(other.startswith(name[:chars]) for other in others):
        chars += 1
    return chars
