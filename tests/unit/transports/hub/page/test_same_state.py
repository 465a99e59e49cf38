"""The page and the hub make the same state of the same log: both read the same rules."""

import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from coord.core.page.rules import JOINTS, RULES
from coord.core.page.state import PageState, apply_entry
from coord.sdk.log_reader import first_offset
from coord.stores.contract import Entry
from tests.simulation.lock_world import LockWorld
from tests.simulation.plan_world import PlanWorld
from tests.support.hub.page_events import EVERY_EVENT

SCRIPT = Path(__file__).with_name("apply_log.mjs")
NODE = shutil.which("node") or ""
PATIENCE_S = 60
HOSTILE: tuple[dict[str, Any], ...] = (
    {"event": "__proto__", "session": "__proto__"},
    {"event": "constructor", "session": "constructor"},
    {"event": "session.registered", "session": "__proto__", "agent": "<script>", "state": "idle"},
    {"event": "session.updated", "session": "constructor", "state": "x"},
    {"event": "task.claimed", "project": 5, "task": ["a", {"b": 1}, None], "lease_ms": "long"},
    {"event": "task.claimed", "project": "p", "task": True, "lease_ms": True},
    {"event": "task.added", "project": "p", "task": "toString", "title": "", "files": [], "needs": {}},
    {"event": "usage.reported", "session": "__proto__", "cost": "9", "input": 1.5, "output": None},
    {"event": "usage.reported", "session": "__proto__", "cost": 2, "context_percent": 0},
    {"event": "lock.moved", "session": "nobody", "resource": "file:x", "successor": "__proto__"},
    {"event": "agent.enabled", "project": "p", "agent": "a", "enabled": 0},
)


def entries(*events: Iterable[dict[str, Any]]) -> list[Entry]:
    return [
        Entry(number, number * 7, b"", [json.dumps(each).encode() for each in found])
        for number, found in enumerate(events, 1)
    ]


def recorded() -> list[list[Entry]]:
    """Return logs: of simulated crews, of every event once and again, and of what nobody should write."""
    worlds = [LockWorld(3), LockWorld(11), PlanWorld(5), PlanWorld(6)]
    for world in worlds:
        world.run()
    once = [[each] for each in EVERY_EVENT]
    return [
        *(world.store.tail(max(0, first_offset(world.store) - 1), 100_000) for world in worlds),
        entries(*once, *once, EVERY_EVENT),
        entries(*[[each] for each in HOSTILE], HOSTILE),
    ]


@pytest.mark.skipif(not NODE, reason="node is not installed: tools/setup agents")
def test_the_page_makes_the_same_state_of_a_log(tmp_path: Path) -> None:
    """Issue 18: one reducer, proven equal on both sides."""
    logs = recorded()
    states = []
    for log in logs:
        state = PageState()
        for entry in log:
            apply_entry(state, entry.offset, entry.at, entry.events)
        states.append(msgspec.to_builtins(state))
    (tmp_path / "logs.json").write_bytes(
        msgspec.json.encode(
            {
                "rules": {**RULES, "@join": JOINTS},
                "logs": [
                    {
                        "begin": msgspec.to_builtins(PageState()),
                        "entries": [
                            {"offset": each.offset, "at": each.at, "events": [*map(json.loads, each.events)]}
                            for each in log
                        ],
                    }
                    for log in logs
                ],
            }
        )
    )
    done = subprocess.run(
        [NODE, str(SCRIPT), str(tmp_path / "logs.json")],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    for line, state in zip(done.stdout.splitlines(), states, strict=True):
        assert json.loads(line) == state
