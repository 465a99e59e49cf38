"""The hooks of Claude Code."""

from collections.abc import Mapping
from typing import Any

from coord.agents.hooks.event import (
    CALL_S,
    Event,
    Kind,
    fields_in,
    number_in,
    printed_like_claude,
    text_in,
    written_by_server,
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
    name, called, given = (
        text_in(told, "hook_event_name"),
        text_in(told, "tool_name"),
        fields_in(told, "tool_input"),
    )
    path = text_in(given, EDITORS[called]) if called in EDITORS else ""
    return Event(
        "claude",
        name,
        KINDS.get(name, Kind.OTHER),
        text_in(told, "session_id"),
        text_in(told, "agent_id"),
        text_in(told, "agent_type"),
        text_in(told, "cwd"),
        text_in(told, "source") or text_in(told, "reason"),
        text_in(told, "tool_use_id"),
        called,
        (path,) if path else written_by_server(called, given),
        text_in(given, "command") if called in SHELLS else None,
        number_in(given, "timeout") / 1000 or CALL_S,
        name == "PostToolUseFailure",
        told.get("stop_hook_active") is True,
        given.get("run_in_background") is True,
    )
