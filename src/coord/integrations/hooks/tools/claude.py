"""Events and answers of Claude Code."""

from collections.abc import Mapping
from typing import Any

from coord.integrations.hooks.events import (
    CALL_S,
    Event,
    Kind,
    base_event,
    claude_output,
    fields_in,
    number_in,
    text_in,
    with_files,
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
    "PermissionRequest": Kind.PERMISSION,
    "Notification": Kind.ATTENTION,
}
EDITORS = {
    "Write": "file_path",
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
}
SHELLS = ("Bash", "PowerShell", "Monitor")
KNOWN = frozenset((*EDITORS, *SHELLS))
SETTINGS_FILES = ("settings.json", "settings.local.json")

output_of = claude_output


def parse(payload: Mapping[str, Any]) -> Event:
    """Return the event in a payload of Claude Code."""
    event, given = base_event("claude", KINDS, payload, KNOWN), fields_in(payload, "tool_input")
    if event.tool_name in EDITORS:
        path = text_in(given, EDITORS[event.tool_name])
        event = with_files(event, (path,) if path else ())
    if event.kind is Kind.ATTENTION:
        event = event._replace(source=text_in(payload, "notification_type"))
    return event._replace(
        command=text_in(given, "command") if event.tool_name in SHELLS else None,
        timeout_s=number_in(given, "timeout") / 1000 or CALL_S,
        failed=event.name == "PostToolUseFailure",
        background=given.get("run_in_background") is True,
    )
