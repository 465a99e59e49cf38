"""The activity ledger: the newest actions of agents, and the same in numbers. A query of the log.

The log is read from its end, and only as far as needed. The log is also why nothing is buffered here: an
action is in the ledger as soon as its commit returns.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from coord.core.activity.actions import LEDGER_MAX, TYPES, Performed, action_id, action_of
from coord.core.errors import Invalid
from coord.core.ids import short_repr
from coord.core.sessions.commands import SessionInfo
from coord.sdk.log_reader import first_offset, logged_events, pages_backwards
from coord.stores.contract import Store

FILES_SHOWN = 10
_FILE_TYPES = ("file_edit", "file_read", "lock_acquired")


class LedgerEntry(msgspec.Struct, frozen=True):
    """An action of an agent; `agent_id` is its session."""

    id: int
    agent_id: str
    agent_role: str
    action_type: str
    summary: str
    details: dict[str, Any]
    at_ms: int


class LedgerFilter(msgspec.Struct, frozen=True):
    """Selects actions: of an agent (its session or its name), of a type, since a time."""

    agent: str = ""
    type: str = ""
    since_ms: int = 0


class LedgerSummary(msgspec.Struct, frozen=True):
    """The ledger in numbers; `files` are those that most actions concern."""

    actions: int
    by_type: dict[str, int]
    by_agent: dict[str, dict[str, int]]
    files: dict[str, int]
    first_ms: int
    newest_ms: int


def ledger_filter(agent: str = "", type_: str = "", since_ms: int = 0) -> LedgerFilter:
    """Return a filter; raise `Invalid` for an unknown type."""
    if type_ and type_ not in TYPES:
        raise Invalid(f"there is no action {short_repr(type_)}", hint=f"use {', '.join(TYPES)}")
    return LedgerFilter(agent, type_, since_ms)


class Ledger:
    """The newest actions in a log."""

    def __init__(
        self,
        log: Store,
        sessions: Mapping[str, SessionInfo],
        *,
        entries: int = LEDGER_MAX,
        is_visible: Callable[[dict[str, Any]], bool] = lambda _: True,
    ) -> None:
        """`sessions` are those on record: they have the roles. `is_visible`: who asks may see an event."""
        self._log = log
        self._sessions = sessions
        self._entries = entries
        self._is_visible = is_visible

    def newest(self, which: LedgerFilter, limit: int) -> list[LedgerEntry]:
        """Return the newest actions that pass a filter, oldest first."""
        if limit < 1:
            raise Invalid(f"invalid number of actions: {limit}", hint="use 1 or more")
        found: list[LedgerEntry] = []
        for entry, agent in self._backwards(which.since_ms):
            if self._matches(which, entry, agent):
                found.append(entry)
                if len(found) == limit:
                    break
        return found[::-1]

    def summary(self, since_ms: int = 0) -> LedgerSummary:
        """Return the ledger in numbers."""
        types: Counter[str] = Counter()
        agents: dict[str, Counter[str]] = {}
        files: Counter[str] = Counter()
        times: list[int] = []
        for entry, _ in self._backwards(since_ms):
            types[entry.action_type] += 1
            agents.setdefault(entry.agent_id, Counter())[entry.action_type] += 1
            resource = entry.details.get("resource")
            if entry.action_type in _FILE_TYPES and str(resource).startswith("file:"):
                files[str(resource).removeprefix("file:")] += 1
            times = [*times[:1], entry.at_ms]
        busiest = sorted(files.items(), key=lambda each: (-each[1], each[0]))[:FILES_SHOWN]
        return LedgerSummary(
            types.total(),
            dict(sorted(types.items())),
            {agent: dict(sorted(counts.items())) for agent, counts in sorted(agents.items())},
            dict(busiest),
            times[-1] if times else 0,
            times[0] if times else 0,
        )

    def _backwards(self, since_ms: int) -> Iterator[tuple[LedgerEntry, str]]:
        """Yield actions with the names of their agents, the newest first."""
        left = self._entries
        for page in pages_backwards(self._log, first_offset(self._log)):
            for entry in reversed(page):
                if entry.at < since_ms:
                    return
                numbered = [*enumerate(logged_events([entry]), 1)]
                for number, logged in reversed(numbered):
                    done = action_of(logged.event, logged.details)
                    if done is None:
                        continue
                    if not left:
                        return
                    left -= 1
                    if self._is_visible(logged.details):
                        yield self._entry(action_id(entry.offset, number), entry.at, done)

    def _entry(self, number: int, at_ms: int, done: Performed) -> tuple[LedgerEntry, str]:
        session = self._sessions.get(done.agent_id)
        agent = done.agent or (session.agent if session is not None else "")
        role = (session.role if session is not None else "") or agent
        return LedgerEntry(number, done.agent_id, role, done.type, done.summary, done.details, at_ms), agent

    def _matches(self, which: LedgerFilter, entry: LedgerEntry, agent: str) -> bool:
        if which.type and which.type != entry.action_type:
            return False
        return not which.agent or which.agent in (entry.agent_id, agent)


def rows_of(entries: list[LedgerEntry], text_of: Callable[[int], str | None]) -> list[dict[str, Any]]:
    """Return actions with the columns of the founding document; `text_of` writes a time."""
    return [
        {
            **{name: getattr(entry, name) for name in LedgerEntry.__struct_fields__[:-1]},
            "timestamp": text_of(entry.at_ms),
        }
        for entry in entries
    ]
