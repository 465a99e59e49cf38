"""The page and the hub count the same of the same log: both read the same rules."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coord.core.page.series import BOUNDS_S, COUNTED, COUNTS, RULES, SPANS, TIMED
from coord.sdk.page.numbers import Counter
from coord.stores.contract import Entry
from coord.transports.hub.streams.entries import EVERYTHING, LogEntry, as_message

SCRIPT = Path(__file__).with_name("extend_numbers.mjs")
NODE = shutil.which("node") or ""
MINUTE_MS = 60_000
FIELDS = sorted(
    {
        *(rule["field"] for found in COUNTS.values() for rule in found if "field" in rule),
        *(span["field"] for span in SPANS.values()),
    }
)
AMOUNTS: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([0, -1, True, None, "5", 1e15, 1e14, 100, 300, 301, 1000, 3_000, 10**400, [1], {}]),
    st.integers(-10, 10**7),
    st.floats(allow_nan=False, allow_infinity=False),
)
EVENTS = st.builds(
    lambda name, fields: {**fields, "event": name},
    st.sampled_from([*COUNTS, *SPANS, "unheard.of", "constructor", "", 5]),
    st.dictionaries(st.sampled_from(FIELDS), AMOUNTS, max_size=4),
)
Page = Callable[[list[Entry]], dict[str, Any]]


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """The page: it takes entries as the hub sends them, and says what it counted in their minute."""
    if not NODE:
        pytest.skip("node is not installed: the package of your system, as for tools/setup agents")
    begun = {
        "offset": 0,
        "from_ms": 0,
        "width_ms": MINUTE_MS,
        "rules": RULES,
        "levels": {},
        "counts": {name: [0] for name in COUNTED},
        "spans": {name: [[]] for name in TIMED},
    }
    with subprocess.Popen([NODE, str(SCRIPT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as node:
        asked, answered = node.stdin, node.stdout
        assert asked is not None
        assert answered is not None

        def ask(log: list[Entry]) -> dict[str, Any]:
            messages = [LogEntry(each).encoded(as_message, EVERYTHING).decode() for each in log]
            sent = {"numbers": msgspec.json.encode(begun).decode(), "messages": messages}
            asked.write(json.dumps(sent).encode() + b"\n")
            asked.flush()
            found: dict[str, Any] = json.loads(answered.readline())
            return found

        yield ask
        asked.close()


def by_the_hub(log: list[Entry]) -> dict[str, Any]:
    """Return what the hub counts in the same minute."""
    counter = Counter()
    counter.count(1, "", {})
    for entry in log:
        for raw in entry.events:
            details = msgspec.json.decode(raw)
            counter.count(entry.at, str(details["event"]), details)
    found = counter.series(1, MINUTE_MS - 1, 60)
    counts = {name: values[0] for name, values in found.counts.items()}
    return {"counts": counts, "spans": {name: values[0] for name, values in found.spans.items()}}


@given(st.lists(st.lists(EVENTS, max_size=4), max_size=10))
@example([[{"event": "lock.acquired", "waited_ms": bound * 1000} for bound in BOUNDS_S]])
@example([[{"event": "lock.released", "held_s": bound + 1e-9} for bound in BOUNDS_S]])
@example([[{"event": "usage.reported", "cost": each} for each in (1e15, 1e14, 10**400, True, -1, 0.1)]])
def test_no_log_makes_two_numbers(page: Page, events: list[list[dict[str, Any]]]) -> None:
    """Decision 0084: the page adds later entries by the same rules, so that an open page asks for nothing."""
    log = [
        Entry(number, number, b"", [json.dumps(each).encode() for each in found])
        for number, found in enumerate(events, 1)
    ]
    shown = page(log)
    found = {
        "counts": {name: values[0] for name, values in shown["counts"].items()},
        "spans": {name: values[0] for name, values in shown["spans"].items()},
    }
    assert found == by_the_hub(log)
