"""Events and answers of Gemini CLI, which does not distinguish sub-agents from their session."""

from collections.abc import Mapping
from typing import Any
from zlib import crc32

from coord.integrations.hooks.events import (
    NO_OUTPUT,
    Answer,
    Event,
    Kind,
    ToolOutput,
    base_event,
    fields_in,
    text_in,
    with_files,
)

KINDS = {
    "SessionStart": Kind.START,
    "SessionEnd": Kind.END,
    "BeforeAgent": Kind.PROMPT,
    "BeforeTool": Kind.BEFORE,
    "AfterTool": Kind.AFTER,
    "AfterAgent": Kind.STOP,
    "Notification": Kind.ATTENTION,
}
EDITORS = ("write_file", "replace", "edit")
SHELL = "run_shell_command"
SETTINGS_FILES = ("settings.json",)


def parse(payload: Mapping[str, Any]) -> Event:
    """Return the event in a payload of Gemini CLI.

    Its calls have no ids, so the id is a digest of the input, which is the same before and after the call.
    """
    event, given = base_event("gemini", KINDS, payload, (*EDITORS, SHELL)), fields_in(payload, "tool_input")
    if event.tool_name in EDITORS:
        path = text_in(given, "file_path")
        event = with_files(event, (path,) if path else ())
    if event.kind is Kind.ATTENTION:
        event = event._replace(source=text_in(payload, "notification_type"))
    folder = text_in(given, "dir_path") or text_in(given, "directory")
    inside = folder and event.tool_name == SHELL and not folder.startswith("/")
    digest = crc32(repr(sorted(given.items(), key=str)).encode("utf-8", "replace"))
    return event._replace(
        agent="",
        agent_type="",
        cwd=f"{event.cwd}/{folder}" if inside else event.cwd,
        call=f"{event.tool_name}-{digest:08x}" if event.tool_name else "",
        command=text_in(given, "command") if event.tool_name == SHELL else None,
        failed=bool(fields_in(payload, "tool_response").get("error")),
        background=given.get("is_background") is True,
        transcript=text_in(payload, "transcript_path"),
    )


def output_of(event: Event, answer: Answer) -> ToolOutput:
    """Return an answer in the form of Gemini CLI."""
    if answer.deny and event.kind is Kind.BEFORE:
        return ToolOutput({"decision": "deny", "reason": answer.deny})
    if answer.deny:
        return ToolOutput(code=2, said=answer.deny)
    if answer.keep_going:
        return ToolOutput({"decision": "deny", "reason": answer.keep_going})
    if answer.note:
        said = {"hookEventName": event.name, "additionalContext": answer.note}
        return ToolOutput({"hookSpecificOutput": said})
    return NO_OUTPUT
