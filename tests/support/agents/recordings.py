"""What hooks are given, literally: one file per tool and event below tests/support/agents/payloads/.

They are recorded from real sessions by `python -m tests.support.agents.record`, with paths, ids and times
made the same everywhere, for tests of the hook client. A test of a real session notices when they are out of
date.
"""

import json
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "payloads"
REPOSITORY, HOME = "/repository", "/home/agent"
_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_SAME = {
    r"/projects/[^/\"]+": "/projects/repository",
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z": "2026-01-02T03:04:05.678Z",
    r"/\d{4}/\d\d/\d\d/rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d": "/2026/01/02/rollout-2026-01-02T03-04-05",
    r"/session-\d{4}-\d\d-\d\dT\d\d-\d\d-[0-9a-f]{8}": "/session-2026-01-02T03-04-00000001",
    r"\ba[0-9a-f]{16}\b": "a0000000000000001",
    r'(nickname\\":\\")\w+': r"\1Nobody",
    r"PGID: \d+": "PGID: 4711",
    r"\"(duration_ms|totalDurationMs)\": \d+": r'"\1": 5',
}

Json = dict[str, Any]


def read_journal(path: Path) -> list[Json]:
    """The events that a stand-in hook wrote down."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line)["event"] for line in lines]


def name_of(event: Json) -> str:
    """`PreToolUse-Write-subagent`: the file that holds such an event."""
    parts = [event["hook_event_name"], event.get("tool_name"), event.get("source")]
    if event.get("agent_id") and not event["hook_event_name"].startswith("Subagent"):
        parts.append("subagent")
    return "-".join(part for part in parts if part)


def normalised(events: list[Json], repository: Path, home: Path) -> dict[str, Json]:
    """The first event of each kind, without traces of the machine and the moment."""
    text = json.dumps(events).replace(str(repository), REPOSITORY).replace(str(home), HOME)
    for number, uuid in enumerate(dict.fromkeys(_UUID.findall(text)), 1):
        text = text.replace(uuid, f"00000000-0000-4000-8000-{number:012}")
    for pattern, same in _SAME.items():
        text = re.sub(pattern, same, text)
    found: dict[str, Json] = {}
    for event in json.loads(text):
        found.setdefault(name_of(event), event)
    return found


def recorded(tool: str) -> dict[str, Json]:
    """The files of a tool, by name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted((FOLDER / tool).glob("*.json"))}


def shape(value: Any) -> Any:
    """The fields and types of an event, whatever is in it; what a tool answered is the tool's business."""
    match value:
        case dict():
            return {name: shape(part) for name, part in value.items() if name != "tool_response"}
        case list():
            return [shape(part) for part in value[:1]]
    return type(value).__name__
