"""What a hook is told and what it answers, in one form for all tools."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

CALL_S = 600.0
"""How long a call may take where its tool does not say."""


class Kind(StrEnum):
    """What happened."""

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
    """One call of the hook."""

    tool: str
    name: str
    kind: Kind = Kind.OTHER
    session: str = ""
    agent: str = ""
    """The sub-agent's own id; empty in the session itself."""
    agent_type: str = ""
    cwd: str = ""
    source: str = ""
    """What began the session, ended it, or changed."""
    call: str = ""
    tool_name: str = ""
    """The name of the tool that is called."""
    writes: tuple[str, ...] = ()
    """The files it writes, as it names them."""
    command: str | None = None
    """The command line, where the tool is a shell."""
    timeout_s: float = CALL_S
    failed: bool = False
    reminded: bool = False
    background: bool = False
    """The command goes on after its call has ended, and nobody is told when it ends."""
    installed_for: str = ""
    """The git directory of the one repository that this hook was set up for; of all of them: empty."""

    @property
    def owner(self) -> str:
        """The session that acts: that of a sub-agent is its own."""
        return f"{self.session}.{self.agent}"[:128] if self.agent else self.session

    @property
    def changes_files(self) -> bool:
        """Whether this is a call that may change files."""
        return bool(self.writes) or self.command is not None


class Answer(NamedTuple):
    """What a hook answers; all empty lets things take their course."""

    deny: str = ""
    note: str = ""
    keep_going: str = ""
    """Why the agent should not stop yet."""


class ToolOutput(NamedTuple):
    """An answer as its tool reads it."""

    out: Mapping[str, Any] | None = None
    code: int = 0
    said: str = ""


ALLOW = Answer()
NO_OUTPUT = ToolOutput()


def text_in(fields: Mapping[str, Any], name: str) -> str:
    """Return a field that should be text; what is none is empty."""
    found = fields.get(name)
    return found if isinstance(found, str) else ""


def fields_in(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a field that should be an object; what is none is empty."""
    found = fields.get(name)
    return found if isinstance(found, dict) else {}


def number_in(fields: Mapping[str, Any], name: str) -> float:
    """Return a field that should be a positive number; what is none is 0."""
    found = fields.get(name)
    return float(found) if isinstance(found, int | float) and 0 < found < 1e9 else 0.0


def common_event(tool: str, kinds: Mapping[str, Kind], payload: Mapping[str, Any]) -> Event:
    """Return what all tools tell alike; a call that writes is known only for tools of MCP servers yet."""
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
    """Return the files that a tool of an MCP server seems to write, judged by its name and its fields."""
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
    """Return an answer as Claude Code and Codex read it."""
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
