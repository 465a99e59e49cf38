"""The acts of the page, as its own table says them."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

NODE = shutil.which("node") or ""
SCRIPT = Path(__file__).parents[2] / "unit/transports/hub/page/print_acts.mjs"
LOCK = {"session": "s-ada", "agent": "ada", "resource": "file:a.py", "fence": 1}
TASK = {"project": "p", "task": "t"}
RECORDS: dict[str, Any] = {
    "locks": [LOCK, LOCK, LOCK],
    "open_task": TASK,
    "busy_task": {**TASK, "state": "in_progress", "session": "s-ada"},
    "question": {"id": "q1"},
    "other_question": {"id": "q2"},
    "alert": {"id": "a1"},
    "token": {"id": "t-1"},
    "limit": "max_active_sessions",
}
"""Records that exist nowhere, for those who want to know which acts there are."""


def printed_acts(records: dict[str, Any] = RECORDS) -> list[dict[str, Any]]:
    """Return every act for these records: its id, role, command, requests, and its undo."""
    done = subprocess.run(
        [NODE, str(SCRIPT), json.dumps(records)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["unused"] == [], f"{SCRIPT.name} prints no act of these"
    acts: list[dict[str, Any]] = found["acts"]
    return acts
