"""The page and the hub make the same state of the same log: both read the same rules.

The page gets what the hub sends: a snapshot as JSON, and each entry as a message of the stream.
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coord.core.page.rules import DELIVERED, RULES, SILENT
from coord.core.page.state import NUMBER_MAX, PageState, apply_entry
from coord.sdk.log_reader import first_offset
from coord.stores.contract import Entry
from coord.transports.hub.streams.entries import EVERYTHING, LogEntry, as_message
from tests.simulation.lock_world import LockWorld
from tests.simulation.plan_world import PlanWorld
from tests.support.hub.page_events import EVERY_EVENT

SCRIPT = Path(__file__).with_name("apply_log.mjs")
NODE = shutil.which("node") or ""
HOSTILE: tuple[dict[str, Any], ...] = (
    {"event": "__proto__", "session": "__proto__"},
    {"event": "constructor", "session": "constructor"},
    {"event": "@join", "session": "x"},
    {"event": "session.hung", "session": "__proto__", "silent_s": 9},
    {"event": ["session.hung"], "session": "__proto__"},
    {"event": ["session.registered"], "session": "x"},
    {"event": "session.registered", "session": "__proto__", "agent": "<script>", "state": "idle"},
    {"event": "session.registered", "session": ["two", "parts", ["deep"]]},
    {"event": "session.registered"},
    {"event": "session.updated", "session": "constructor", "state": "x"},
    {"event": "session.updated", "session": ["two", "parts", 3], "role": "a list is a key"},
    {"event": "file.read"},
    {"event": "task.claimed", "project": 5, "task": ["a", {"b": 1}, None], "lease_ms": "long"},
    {"event": "task.claimed", "project": "p", "task": True, "lease_ms": True},
    {"event": "task.claimed", "project": "p", "task": "far", "lease_ms": 2**60 + 1},
    {"event": "task.claimed", "project": "p", "task": "half", "lease_ms": 0.1},
    {"event": "task.added", "project": "p", "task": "toString", "title": "", "files": [], "needs": {}},
    {"event": "usage.reported", "session": "__proto__", "cost": "9", "input": 1.5, "output": None},
    {"event": "usage.reported", "session": "__proto__", "cost": 2, "context_percent": 0},
    {"event": "usage.reported", "session": "__proto__", "cost": NUMBER_MAX, "output": 10**400},
    {"event": "usage.reported", "session": "__proto__", "cost": NUMBER_MAX - 3, "input": -1.5},
    {"event": "usage.reported", "session": "__proto__", "cost": True, "input": -0.0},
    {"event": "lock.moved", "session": "nobody", "resource": "file:x", "successor": "__proto__"},
    {"event": "agent.enabled", "project": "p", "agent": "a", "enabled": 0},
    {"event": "agent.enabled", "project": "e\u0301", "agent": "a", "enabled": -0.0},
    {"event": "agent.enabled", "project": "\u00e9", "agent": "a", "enabled": {}},
    {"event": "agent.enabled", "project": "a/b", "agent": "c\u2028\x00", "enabled": [0]},
    {"event": "agent.enabled", "project": "a", "agent": "b/c\u2028\x00", "reason": [[]]},
    {"event": "work.held", "mode": {"__proto__": {"x": 1}}, "reason": {"a": []}},
    {"event": "message.sent", "__proto__": {"offset": 9}, "offset": "mine", "at": None},
)
RAW = (
    b"",
    b"null",
    b"[]",
    b'"text"',
    b"{",
    b"\xff",
    b'{"event":"lock.acquired","session":NaN}',
    b'{"event":"message.sent","subject":"\\ud800"}',
    b'{"event":"message.sent","priority":1e999}',
    b'{"event":"message.sent","event":"message.undelivered"}',
    b' {"event" : "message.sent"} ',
    b'{"event":"message.sent","to":' + b"[" * 60 + b"]" * 60 + b"}",
    b'{"event":"message.sent","to":' + b"[" * 990 + b"]" * 990 + b"}",
    b'{"event":"lock.acquired","session":"s","resource":' + b"[" * 700 + b"]" * 700 + b"}",
)


def entries(*events: Iterable[dict[str, Any] | bytes]) -> list[Entry]:
    return [
        Entry(
            number,
            number * 7,
            b"",
            [each if isinstance(each, bytes) else json.dumps(each).encode() for each in found],
        )
        for number, found in enumerate(events, 1)
    ]


def recorded() -> list[list[Entry]]:
    """Return logs: of simulated crews, of every event once and again, and of what nobody should write."""
    worlds = [LockWorld(3), LockWorld(11), PlanWorld(5), PlanWorld(6)]
    for world in worlds:
        world.run()
    once = [[each] for each in EVERY_EVENT]
    many: list[dict[str, Any]] = [
        {"event": "message.sent", "session": f"s{each}", "to": "x" * each} for each in range(10_000)
    ]
    return [
        *(world.store.tail(max(0, first_offset(world.store) - 1), 100_000) for world in worlds),
        entries(*once, *once, EVERY_EVENT),
        entries(*[[each] for each in HOSTILE], HOSTILE, []),
        entries([EVERY_EVENT[0], *RAW], *[[each] for each in RAW]),
        entries([], many[::100], many),
    ]


Page = Callable[[PageState, list[Entry]], dict[str, Any]]


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """The page: it takes a state and entries as the hub sends them, and says what it makes of them."""
    if not NODE:
        pytest.skip("node is not installed: the package of your system, as for tools/setup agents")
    with subprocess.Popen([NODE, str(SCRIPT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as node:
        asked, answered = node.stdin, node.stdout
        assert asked is not None
        assert answered is not None

        def ask(begin: PageState, log: list[Entry]) -> dict[str, Any]:
            snapshot = {**msgspec.to_builtins(begin), "rules": DELIVERED}
            messages = [LogEntry(each).encoded(as_message, EVERYTHING).decode() for each in log]
            sent = {"snapshot": msgspec.json.encode(snapshot).decode(), "messages": messages}
            asked.write(json.dumps(sent).encode() + b"\n")
            asked.flush()
            return as_a_browser(answered.readline())

        yield ask
        asked.close()


def as_a_browser(text: bytes) -> Any:
    """Return JSON as a browser reads it: every number is a double, and one that is none is null."""

    def number(digits: str) -> float | None:
        found = float(digits)
        return found if abs(found) != float("inf") else None

    return json.loads(text, parse_int=number, parse_float=number)


def check(page: Page, log: list[Entry], middle: int) -> None:
    """Compare both sides over a log whose first entries the page gets as a snapshot."""
    state = PageState()
    for each in log[:middle]:
        apply_entry(state, each.offset, each.at, each.events)
    found = page(state, log[middle:])
    for each in log[middle:]:
        apply_entry(state, each.offset, each.at, each.events)
    assert found == as_a_browser(msgspec.json.encode(state))


def test_the_page_makes_the_same_state_of_a_log(page: Page) -> None:
    """Issue 18: one reducer, proven equal on both sides."""
    for log in recorded():
        for middle in (0, len(log) // 2):
            check(page, log, middle)


NAMES = sorted({name for event in EVERY_EVENT for name in event} - {"event"})
WORDS = st.sampled_from(["", "s", "t", "a\nb", "a/b", "__proto__", "constructor", "5", "e\u0301", "\u00e9"])
NUMBERS = st.one_of(
    st.sampled_from([0, -0.0, 1, True, False, 2**53 + 1, NUMBER_MAX, NUMBER_MAX + 1, -(2**63), 10**400]),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
)
VALUES = st.recursive(
    st.one_of(st.none(), WORDS, st.text(max_size=5), NUMBERS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=2)),
    max_leaves=5,
)
KEYS = ("session", "resource", "id", "project", "task", "agent", "successor", "resources")
EVENTS = st.builds(
    lambda event, keys, others: {**others, **keys, "event": event},
    st.sampled_from([*RULES, *SILENT, "unheard.of", "@join", "@silent", "__proto__", "", 5, None]),
    st.dictionaries(st.sampled_from(KEYS), st.one_of(WORDS, st.lists(WORDS, max_size=2), VALUES)),
    st.dictionaries(st.sampled_from([*NAMES, "__proto__", "offset", "at"]), VALUES, max_size=6),
)


@given(st.lists(st.lists(EVENTS, max_size=3), max_size=12), st.integers(0, 12))
def test_no_log_makes_two_states(page: Page, events: list[list[dict[str, Any]]], middle: int) -> None:
    """Whatever anybody writes into a store, both sides make the same of it."""
    check(page, entries(*events), middle)
