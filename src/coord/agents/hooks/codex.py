"""The hooks of Codex."""

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
from coord.agents.hooks.patch import patched_files

KINDS = {
    "SessionStart": Kind.START,
    "SessionEnd": Kind.END,
    "UserPromptSubmit": Kind.PROMPT,
    "PreToolUse": Kind.BEFORE,
    "PostToolUse": Kind.AFTER,
    "Stop": Kind.STOP,
    "SubagentStart": Kind.AGENT_START,
    "SubagentStop": Kind.AGENT_STOP,
}
SHELL, PATCH = "Bash", "apply_patch"
SETTINGS_FILES = ("hooks.json", "config.toml")

printed = printed_like_claude


def parse(told: Mapping[str, Any]) -> Event:
    """Return the event that Codex tells; a patch may be a tool's input, or stand in a command line."""
    name, called, given = (
        text_in(told, "hook_event_name"),
        text_in(told, "tool_name"),
        fields_in(told, "tool_input"),
    )
    line = text_in(given, "command")
    writes = patched_files(line) if called in (SHELL, PATCH) else written_by_server(called, given)
    return Event(
        "codex",
        name,
        KINDS.get(name, Kind.OTHER),
        text_in(told, "session_id"),
        text_in(told, "agent_id"),
        text_in(told, "agent_type"),
        text_in(told, "cwd"),
        text_in(told, "source") or text_in(told, "reason"),
        text_in(told, "tool_use_id"),
        called,
        writes,
        line if called == SHELL else None,
        number_in(given, "timeout_ms") / 1000 or number_in(given, "timeout") / 1000 or CALL_S,
        reminded=told.get("stop_hook_active") is True,
    )
