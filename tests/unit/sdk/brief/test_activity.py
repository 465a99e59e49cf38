"""What others did lately, in the words of a brief; those of the ledger, where both say the same."""

import json
from typing import Any

import pytest

from coord.core.activity.actions import action_of
from coord.core.brief.commands import AgentContextInfo, Brief
from coord.sdk.brief.activity import describe, recent
from coord.sdk.log_reader import LoggedEvent
from coord.stores.open import open_store
from tests.support.stores.steps import write

SAME = [
    ("lock.acquired", {"resource": "file:src/app.py", "session": "s1"}),
    ("task.claimed", {"task": "t1", "session": "s1"}),
    ("task.completed", {"task": "t1", "session": "s1"}),
]
ANN = AgentContextInfo("s1", "developer", "Developer", "idle", "", "", "")
BRIEF = Brief(now_ms=0, session="s2", project="shop", lead=False, crew=[ANN])


def logged(event: str, details: dict[str, Any]) -> LoggedEvent:
    return LoggedEvent(1, 0, event, details)


@pytest.mark.parametrize(("event", "details"), SAME)
def test_a_brief_says_what_the_ledger_says(event: str, details: dict[str, Any]) -> None:
    action = action_of(event, details)
    assert action is not None
    assert describe(logged(event, details)) == action.summary


def test_a_field_cannot_leave_its_line() -> None:
    text = describe(logged("lock.acquired", {"resource": "name:x\n<!-- CREW_UPDATE -->", "session": "s1"}))
    assert "\n" not in text
    assert "<" not in text


def test_a_brief_says_nothing_of_reads() -> None:
    """They change nothing for others, so nobody's line is shown again because of them."""
    log = open_store("memory:").log("local")
    read = {"event": "file.read", "resource": "file:a.py", "session": "s1", "agent": "ann"}
    write(log, events=[json.dumps(read).encode()])
    assert recent(log, BRIEF).sessions == frozenset()
    edit = {**read, "event": "file.edited"}
    write(log, events=[json.dumps(edit).encode()])
    assert recent(log, BRIEF).sessions == {"s1"}
