"""The state of a session follows from one table: what ended it, evidence, waits, reports, claims, calls."""

from typing import Any

import pytest

from coord.core.sessions.schema import Liveness, Session
from coord.core.sessions.state import STATES, end_state, is_terminal, session_state

NOW = 1_000_000
BEFORE, AFTER = NOW - 10_000, NOW + 10_000
REPORTED = {"reported_ms": BEFORE}
WAITS, CLAIMS = {"waits": True}, {"claimed_ms": BEFORE}
CALLS = {"calls": {"c": AFTER}}


@pytest.mark.parametrize(
    ("record", "facts", "expected"),
    [
        ({}, {}, "idle"),
        (CALLS, {}, "working"),
        ({"calls": {"c": BEFORE}}, {}, "idle"),
        ({}, CLAIMS, "working"),
        ({}, WAITS, "blocked"),
        (CALLS, WAITS | CLAIMS, "blocked"),
        ({"state": "starting"}, {}, "starting"),
        ({"state": "starting"}, CLAIMS, "working"),
        ({"state": "working"}, {}, "working"),
        ({"state": "working"}, WAITS, "blocked"),
        ({"state": "idle"} | CALLS, CLAIMS, "working"),
        ({"state": "blocked"} | CALLS, CLAIMS, "blocked"),
        ({"state": "stopping"} | CALLS, CLAIMS, "stopping"),
        ({"state": "completed"} | REPORTED | CALLS, {}, "completed"),
        ({"state": "failed"} | REPORTED | CALLS, {}, "failed"),
        ({"state": "completed"} | REPORTED, {"claimed_ms": BEFORE + 1}, "working"),
        ({"state": "failed"} | REPORTED, {"claimed_ms": BEFORE - 1}, "failed"),
        ({"state": "completed"} | REPORTED, WAITS, "blocked"),
        ({"state": "working"} | CALLS, WAITS | CLAIMS | {"life": Liveness.DEAD}, "crashed"),
        ({"state": "working"}, {"life": Liveness.HUNG}, "working"),
        ({"state": "terminated", "ended_ms": BEFORE} | CALLS, WAITS | CLAIMS, "terminated"),
        ({"state": "completed", "ended_ms": BEFORE}, {"life": Liveness.ENDED}, "completed"),
    ],
)
def test_precedence(record: dict[str, Any], facts: dict[str, Any], expected: str) -> None:
    """STA-3, STA-4, STA-10, STA-11: the end wins, then death, waits, what only it knows, and its work."""
    facts = {"life": Liveness.LIVE} | facts
    life = facts.pop("life")
    assert session_state(Session(**record), life, NOW, **facts) == expected


@pytest.mark.parametrize(
    ("end_reason", "reported", "expected"),
    [
        ("deregistered", "working", "completed"),
        ("deregistered", "failed", "failed"),
        ("replaced", "idle", "completed"),
        ("dead", "working", "crashed"),
        ("dead", "failed", "crashed"),
        ("terminated", "working", "terminated"),
        ("forgotten", "idle", "terminated"),
    ],
)
def test_an_end_by_others_is_not_an_end_of_its_own(end_reason: str, reported: str, expected: str) -> None:
    """SUP-10: `terminated` is what others ended; who exits has completed, or failed if it said so."""
    assert end_state(Session(state=reported), end_reason) == expected


def test_terminal_states() -> None:
    """SUP-12: completed, failed and terminated are terminal, and so is crashed."""
    assert {state for state in STATES if is_terminal(state)} == {
        "completed",
        "failed",
        "terminated",
        "crashed",
    }
