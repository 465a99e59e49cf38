"""Events and answers of hooks, in one form for all tools."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

CALL_S = 600.0
"""The time limit of a call if its tool names none."""


class Kind(StrEnum):
    """The kind of an event."""

    START = "start"
    END = "end"
    PROMPT = "prompt"
    BEFORE = "before"
    AFTER = "after"
    STOP = "stop"
    AGENT_START = "agent_start"
    AGENT_STOP = "agent_stop"
    SETTINGS = "settings"
    OTHER = "other"


class Event(NamedTuple):
    """An event that a tool sends to its hook."""

    tool: str
    name: str
    kind: Kind = Kind.OTHER
    session: str = ""
    agent: str = ""
    """The id of the sub-agent; empty for the session itself."""
    agent_type: str = ""
    cwd: str = ""
    source: str = ""
    """Why the session started or ended, or which settings changed."""
    call: str = ""
    tool_name: str = ""
    """The name of the called tool."""
    writes: tuple[str, ...] = ()
    """The files that the call writes, as the tool names them."""
    command: str | None = None
    """The command line if the tool is a shell."""
    timeout_s: float = CALL_S
    failed: bool = False
    reminded: bool = False
    background: bool = False
    """Whether the command outlives its call; no hook reports its end."""
    model: str = ""
    """The model that the agent uses, if the payload names it."""
    installed_for: str = ""
    """The git directory of the repository that this hook was set up for; empty if it serves all."""

    @property
    def owner(self) -> str:
        """The acting session; a sub-agent has its own."""
        return f"{self.session}.{self.agent}"[:128] if self.agent else self.session

    @property
    def changes_files(self) -> bool:
        """Whether the call may change files."""
        return bool(self.writes) or self.command is not None


class Answer(NamedTuple):
    """The answer of a hook; empty fields allow the call and say nothing."""

    deny: str = ""
    note: str = ""
    keep_going: str = ""
    """Why the agent should not stop yet."""


class ToolOutput(NamedTuple):
    """An answer in the form of its tool."""

    out: Mapping[str, Any] | None = None
    code: int = 0
    said: str = ""


ALLOW = Answer()
NO_OUTPUT = ToolOutput()


def text_in(fields: Mapping[str, Any], name: str) -> str:
    """Return a text field; empty if it is missing or of another type."""
    found = fields.get(name)
    return found if isinstance(found, str) else ""


def fields_in(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object field; empty if it is missing or of another type."""
    found = fields.get(name)
    return found if isinstance(found, dict) else {}


def number_in(fields: Mapping[str, Any], name: str) -> float:
    """Return a positive number; 0 if it is missing or of another type."""
    found = fields.get(name)
    return float(found) if isinstance(found, int | float) and 0 < found < 1e9 else 0.0


def base_event(tool: str, kinds: Mapping[str, Kind], payload: Mapping[str, Any]) -> Event:
    """Return the fields that all tools share; of the written files only those of MCP tools."""
    name, tool_name = text_in(payload, "hook_event_name"), text_in(payload, "tool_name")
    return Event(
        tool,
        name,
        kinds.get(name, Kind.OTHER),
        text_in(payload, "session_id"),
        text_in(payload, "agent_id"),
        text_in(payload, "agent_type"),
        text_in(payload, "cwd"),
        text_in(payload, "source") or text_in(payload, "reason"),
        text_in(payload, "tool_use_id"),
        tool_name,
        mcp_writes(tool_name, fields_in(payload, "tool_input")),
        reminded=payload.get("stop_hook_active") is True,
        model=text_in(payload, "model"),
    )


MCP_WRITE_WORDS = (
    *("write", "edit", "create", "delete", "remove", "move", "rename", "replace", "insert", "append"),
    *("patch", "save", "update", "copy"),
)
MCP_PATH_FIELDS = (
    *("path", "file_path", "filePath", "file", "filename", "paths", "files", "source", "destination"),
    *("relative_path", "notebook_path", "uri"),
)


def mcp_writes(tool_name: str, given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the files that an MCP tool probably writes, by its name and its fields."""
    name = tool_name.rpartition("__")[2].lower()
    if not tool_name.startswith(("mcp__", "mcp_")) or not any(word in name for word in MCP_WRITE_WORDS):
        return ()
    found: list[str] = []
    for field in MCP_PATH_FIELDS:
        value = given.get(field)
        texts = value if isinstance(value, list) else [value]
        found += [text.removeprefix("file://") for text in texts if isinstance(text, str) and text]
    return tuple(found)


def claude_output(event: Event, answer: Answer) -> ToolOutput:
    """Return an answer in the form of Claude Code and Codex."""
    if answer.deny and event.kind is Kind.BEFORE:
        said = {"permissionDecision": "deny", "permissionDecisionReason": answer.deny}
        return ToolOutput({"hookSpecificOutput": {"hookEventName": event.name, **said}})
    if answer.deny:
        return ToolOutput(code=2, said=answer.deny)
    if answer.keep_going:
        return ToolOutput({"decision": "block", "reason": answer.keep_going})
    if answer.note:
        said = {"additionalContext": answer.note}
        return ToolOutput({"hookSpecificOutput": {"hookEventName": event.name, **said}})
    return NO_OUTPUT
