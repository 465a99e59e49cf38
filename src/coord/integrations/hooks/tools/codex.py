"""Events and answers of Codex."""

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
from coord.integrations.hooks.tools.codex_patch import patched_files

KINDS = {
    "SessionStart": Kind.START,
    "SessionEnd": Kind.END,
    "UserPromptSubmit": Kind.PROMPT,
    "PreToolUse": Kind.BEFORE,
    "PostToolUse": Kind.AFTER,
    "Stop": Kind.STOP,
    "SubagentStart": Kind.AGENT_START,
    "SubagentStop": Kind.AGENT_STOP,
    "PermissionRequest": Kind.PERMISSION,
}
SHELL, PATCH = "Bash", "apply_patch"
SETTINGS_FILES = ("hooks.json", "config.toml")

output_of = claude_output


def parse(payload: Mapping[str, Any]) -> Event:
    """Return the event in a payload of Codex; a patch is the tool's input or part of a command line."""
    event, given = base_event("codex", KINDS, payload, (SHELL, PATCH)), fields_in(payload, "tool_input")
    line = text_in(given, "command")
    if event.tool_name == PATCH:
        event = with_files(event, patched_files(line or event.text))
    elif event.tool_name == SHELL:
        event = event._replace(writes=patched_files(line))
    return event._replace(
        command=line if event.tool_name == SHELL else None,
        timeout_s=number_in(given, "timeout_ms") / 1000 or number_in(given, "timeout") / 1000 or CALL_S,
    )
