"""Entries of the log as subscribers get them: encoded once, whoever reads them."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

import msgspec

from coord.core.errors import Invalid
from coord.core.events import SEED_NAMES, UNREADABLE, event_names, read_or_name
from coord.stores.contract import Entry

FILTERS_KEPT = 16
"""How many filters an entry keeps its encoded form for."""
TYPES_MAX = 100
OF_ALL_AGENTS = frozenset(("work.held", "work.resumed"))
"""Events that concern every project: `/v1/work-mode` shows the same to any token."""
_BY_SEED_NAME = {seed: name for name, seed in SEED_NAMES.items()}
_encode = msgspec.json.Encoder().encode


class Filter(NamedTuple):
    """Which events a subscriber gets: those of some kinds (empty: all), and of one project ("": all).

    An event that states no project belongs to none, so a subscriber that is limited to one does not get it,
    unless it is about all agents of the tenant.
    """

    kinds: frozenset[str] = frozenset()
    project: str = ""

    def admits(self, event: "LogEvent") -> bool:
        """Whether a subscriber may and wants to see an event."""
        if self.project and event.project != self.project and event.kind not in OF_ALL_AGENTS:
            return False
        return not self.kinds or event.kind in self.kinds


EVERYTHING = Filter()


class LogEvent(NamedTuple):
    """An event: its kind, the project that it states, the token that it ends, and its JSON without `{`."""

    kind: str
    project: str
    ended_token: str
    ends_ms: int
    fields: bytes


class LogEntry:
    """A log entry with its events; its encoded forms are made once for each filter."""

    __slots__ = ("_forms", "at", "events", "offset", "size")

    def __init__(self, entry: Entry) -> None:
        self.offset = entry.offset
        self.at = entry.at
        self.events = [_read(each) for each in entry.events]
        self.size = sum(len(each.fields) for each in self.events) + 64
        self._forms: dict[tuple[object, Filter], bytes] = {}

    def encoded(self, form: Callable[["LogEntry", list[LogEvent]], bytes], which: Filter) -> bytes:
        """Return the entry in a form, as far as a filter admits its events; b"" if it admits none.

        Somebody who filters nothing also gets entries without events, and so sees that none is missing.
        """
        found = self._forms.get((form, which))
        if found is None:
            events = [each for each in self.events if which.admits(each)]
            found = form(self, events) if events or which == EVERYTHING else b""
            if len(self._forms) < FILTERS_KEPT:
                self._forms[form, which] = found
        return found


def _read(raw: bytes) -> LogEvent:
    """Return an event of the log; bytes that are no event of ours are passed on as what they are."""
    fields = read_or_name(raw)
    kind = str(fields.get("event", ""))
    kind = kind if kind.replace(".", "").replace("_", "").isalnum() and kind.isascii() else UNREADABLE
    project = fields.get("project")
    ended = str(fields.get("id", "")) if kind in TOKEN_ENDS else ""
    ends_ms = fields.get("ends_ms")
    return LogEvent(
        kind,
        project if isinstance(project, str) else "",
        ended,
        ends_ms if isinstance(ends_ms, int) else 0,
        _encode({**fields, "event": kind})[1:],  # on one line, whatever the stored bytes look like
    )


def visible_part(entry: Entry, which: Filter) -> Entry:
    """Return an entry with the events that a filter admits; without them it still shows its offset."""
    return msgspec.structs.replace(entry, events=[each for each in entry.events if which.admits(_read(each))])


TOKEN_ENDS = frozenset(("token.revoked", "token.rotated", "token.expired"))


def as_sse(entry: LogEntry, events: list[LogEvent]) -> bytes:
    """Return the events as messages of an event stream.

    Only the last one has the offset as its id: a client that reconnects in between gets the entry again.
    """
    # These come last, and so they count: an event may have such a field itself.
    position = b'"offset":%d,"at":%d}' % (entry.offset, entry.at)
    parts = [
        b"event: %s\ndata: {%s,%s\n" % (each.kind.encode(), each.fields[:-1], position) for each in events
    ]
    if not parts:
        parts = [b"event: entry\ndata: {%s\n" % position]
    parts[-1] += b"id: %d\n" % entry.offset
    return b"\n".join(parts) + b"\n"


def as_message(entry: LogEntry, events: list[LogEvent]) -> bytes:
    """Return the events as one JSON message."""
    listed = b",".join(b"{" + each.fields for each in events)
    return b'{"type":"entry","offset":%d,"at":%d,"events":[%s]}' % (entry.offset, entry.at, listed)


known_kinds = cache(event_names)


def parse_kinds(names: Iterable[str]) -> frozenset[str]:
    """Return the kinds that a subscriber asks for: `lock.acquired`, `lock.*`, or a founding name.

    >>> sorted(parse_kinds(["CLAIM_ACQUIRED"]))
    ['task.claimed']
    """
    known = known_kinds()
    found: set[str] = set()
    for number, name in enumerate(names):
        if number >= TYPES_MAX:
            raise Invalid(f"more than {TYPES_MAX} kinds of events", hint="use lock.* and the like")
        matching = (
            {kind for kind in known if kind.startswith(name[:-1])}
            if name.endswith(".*")
            else {_BY_SEED_NAME.get(name, name)} & known
        )
        if not matching:
            raise Invalid(
                f"there is no event {name[:80]!r}", hint="docs/reference/events.md lists the events"
            )
        found |= matching
    return frozenset(found)
