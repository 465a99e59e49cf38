"""The hooks of Gemini CLI. Its sub-agents cannot be told from their session."""

from collections.abc import Mapping
from typing import Any
from zlib import crc32

from coord.integrations.hooks.events import (
    PASSED,
    Event,
    Kind,
    Printed,
    Verdict,
    fields_in,
    text_in,
    told_event,
)

KINDS = {
    "SessionStart": Kind.START,
    "SessionEnd": Kind.END,
    "BeforeAgent": Kind.PROMPT,
    "BeforeTool": Kind.BEFORE,
    "AfterTool": Kind.AFTER,
    "AfterAgent": Kind.STOP,
}
EDITORS = ("write_file", "replace", "edit")
SHELL = "run_shell_command"
SETTINGS_FILES = ("settings.json",)


def parse(told: Mapping[str, Any]) -> Event:
    """Return the event that Gemini CLI tells; its calls have no ids, but the same input before and after."""
    event, given = told_event("gemini", KINDS, told), fields_in(told, "tool_input")
    path = text_in(given, "file_path") if event.called in EDITORS else ""
    folder = text_in(given, "dir_path") or text_in(given, "directory")
    inside = folder and event.called == SHELL and not folder.startswith("/")
    digest = crc32(repr(sorted(given.items(), key=str)).encode("utf-8", "replace"))
    return event._replace(
        agent="",
        agent_type="",
        cwd=f"{event.cwd}/{folder}" if inside else event.cwd,
        call=f"{event.called}-{digest:08x}" if event.called else "",
        writes=(path,) if path else event.writes,
        command=text_in(given, "command") if event.called == SHELL else None,
        failed=bool(fields_in(told, "tool_response").get("error")),
        background=given.get("is_background") is True,
    )


def printed(event: Event, verdict: Verdict) -> Printed:
    """Return an answer as Gemini CLI reads it."""
    if verdict.deny and event.kind is Kind.BEFORE:
        return Printed({"decision": "deny", "reason": verdict.deny})
    if verdict.deny:
        return Printed(code=2, said=verdict.deny)
    if verdict.go_on:
        return Printed({"decision": "deny", "reason": verdict.go_on})
    if verdict.say:
        said = {"hookEventName": event.name, "additionalContext": verdict.say}
        return Printed({"hookSpecificOutput": said})
    return PASSED
