"""The hooks of Claude Code."""

from collections.abc import Mapping
from typing import Any

from coord.integrations.hooks.events import (
    CALL_S,
    Event,
    Kind,
    fields_in,
    number_in,
    printed_like_claude,
    text_in,
    told_event,
)

KINDS = {
    "SessionStart": Kind.START,
    "SessionEnd": Kind.END,
    "UserPromptSubmit": Kind.PROMPT,
    "PreToolUse": Kind.BEFORE,
    "PostToolUse": Kind.AFTER,
    "PostToolUseFailure": Kind.AFTER,
    "Stop": Kind.STOP,
    "SubagentStart": Kind.AGENT_START,
    "SubagentStop": Kind.AGENT_STOP,
    "ConfigChange": Kind.SETTINGS,
}
EDITORS = {
    "Write": "file_path",
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
}
SHELLS = ("Bash", "PowerShell", "Monitor")
SETTINGS_FILES = ("settings.json", "settings.local.json")

printed = printed_like_claude


def parse(told: Mapping[str, Any]) -> Event:
    """Return the event that Claude Code tells."""
    event, given = told_event("claude", KINDS, told), fields_in(told, "tool_input")
    path = text_in(given, EDITORS[event.called]) if event.called in EDITORS else ""
    return event._replace(
        writes=(path,) if path else event.writes,
        command=text_in(given, "command") if event.called in SHELLS else None,
        lasts_s=number_in(given, "timeout") / 1000 or CALL_S,
        failed=event.name == "PostToolUseFailure",
        background=given.get("run_in_background") is True,
    )
