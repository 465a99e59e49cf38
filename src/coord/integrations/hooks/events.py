"""Events and answers of hooks, in one form for all tools."""

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

CALL_S = 600.0
"""The time limit of a call if its tool names none."""


READ_FIELDS = (
    *("file_path", "absolute_path", "notebook_path", "filePath", "path", "dir_path", "paths", "include"),
)
"""The fields in which tools that only read name files or folders."""
READS_MAX = 64
"""How many paths of a call that read count."""
CONTENDED_PROGRAMS = ("git", "gh", "cargo")
"""Programs that often fail because a peer is in the middle of the same."""


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
    PERMISSION = "permission"
    ATTENTION = "attention"
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
    reads: tuple[str, ...] = ()
    """The paths that a call read which has ended, as the tool names them; some may be folders."""
    command: str | None = None
    """The command line if the tool is a shell."""
    opaque: bool = False
    """Whether the tool is neither known to only read nor known to write just the named files."""
    given: Mapping[str, Any] = MappingProxyType({})
    """The input of the tool."""
    timeout_s: float = CALL_S
    failed: bool = False
    reminded: bool = False
    background: bool = False
    """Whether the command outlives its call; no hook reports its end."""
    model: str = ""
    """The model that the agent uses, if the payload names it."""
    transcript: str = ""
    """The file in which the tool records the session, if it does not report compactions."""
    installed_for: str = ""
    """The git directory of the repository that this hook was set up for; empty if it serves all."""

    @property
    def owner(self) -> str:
        """The acting session; a sub-agent has its own."""
        return f"{self.session}.{self.agent}"[:128] if self.agent else self.session

    @property
    def changes_files(self) -> bool:
        """Whether the call may change files."""
        return bool(self.writes) or self.writes_anything

    @property
    def writes_anything(self) -> bool:
        """Whether the call may change files that it does not name, so that its effects are checked."""
        return self.command is not None or self.opaque

    @property
    def text(self) -> str:
        """What the call says that it does."""
        return self.command if self.command is not None else "\n".join(_texts(self.given))


class Answer(NamedTuple):
    """The answer of a hook; empty fields allow the call and say nothing."""

    deny: str = ""
    note: str = ""
    keep_going: str = ""
    """Why the agent should not stop yet."""
    permission: str = ""
    """What a person decided about a permission, `allow` or `deny`; `note` is the reason."""


class ToolOutput(NamedTuple):
    """An answer in the form of its tool."""

    out: Mapping[str, Any] | None = None
    code: int = 0
    said: str = ""

    def printed(self) -> tuple[bytes, bytes]:
        """Return what goes to standard output and to standard error."""
        said = f"{self.said}\n".encode("utf-8", "replace") if self.said else b""
        if self.out is None:
            return b"", said
        import msgspec

        return msgspec.json.encode(self.out), said


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


def base_event(
    tool: str, kinds: Mapping[str, Kind], payload: Mapping[str, Any], known: Collection[str]
) -> Event:
    """Return the fields that all tools share; `known`: the tools whose written files the caller finds."""
    name, tool_name = text_in(payload, "hook_event_name"), text_in(payload, "tool_name")
    given = fields_in(payload, "tool_input")
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    kind = kinds.get(name, Kind.OTHER)
    opaque = bool(tool_name) and tool_name not in known
    if opaque:
        from coord.integrations.hooks.hook import READ_ONLY_TOOLS

        opaque = tool_name not in READ_ONLY_TOOLS
        reads = () if opaque or kind is not Kind.AFTER else _read_files(given)
    if opaque:
        from coord.integrations.hooks.named_files import named_files, named_reads

        writes = named_files(tool_name, given)
        reads = named_reads(tool_name, given) if kind is Kind.AFTER else ()
    return Event(
        tool,
        name,
        kind,
        text_in(payload, "session_id"),
        text_in(payload, "agent_id"),
        text_in(payload, "agent_type"),
        text_in(payload, "cwd"),
        text_in(payload, "source") or text_in(payload, "reason"),
        text_in(payload, "tool_use_id"),
        tool_name,
        writes,
        reads,
        opaque=opaque,
        given=given,
        reminded=payload.get("stop_hook_active") is True,
        model=text_in(payload, "model"),
    )


def _read_files(given: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the paths that a tool which only reads was given."""
    values = (given[name] for name in READ_FIELDS if name in given)
    texts = [
        text for value in values for text in (value[:READS_MAX] if isinstance(value, list) else (value,))
    ]
    return tuple(text for text in texts[:READS_MAX] if isinstance(text, str))


def with_files(event: Event, files: tuple[str, ...]) -> Event:
    """Return the event of an edit; if it names no file in the known way, its effects are checked."""
    if files:
        return event._replace(writes=files)
    from coord.integrations.hooks.named_files import named_files

    return event._replace(writes=named_files(event.tool_name, event.given), opaque=True)


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts in the input of a tool."""
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, Mapping):
            left += each.values()
        elif isinstance(each, list):
            left += each


def _denied(reason: str) -> str:
    from coord.core.messages.quoting import quote

    return f"coord: a person denied this{f': {quote(reason)}' if reason else ''}."


def claude_output(event: Event, answer: Answer) -> ToolOutput:
    """Return an answer in the form of Claude Code and Codex."""
    if answer.deny and event.kind is Kind.BEFORE:
        said = {"permissionDecision": "deny", "permissionDecisionReason": answer.deny}
        return ToolOutput({"hookSpecificOutput": {"hookEventName": event.name, **said}})
    if answer.permission:
        decision = {"behavior": answer.permission}
        if answer.permission == "deny":
            decision["message"] = _denied(answer.note)
        return ToolOutput({"hookSpecificOutput": {"hookEventName": event.name, "decision": decision}})
    if answer.deny:
        return ToolOutput(code=2, said=answer.deny)
    if answer.keep_going:
        return ToolOutput({"decision": "block", "reason": answer.keep_going})
    if answer.note:
        said = {"additionalContext": answer.note}
        return ToolOutput({"hookSpecificOutput": {"hookEventName": event.name, **said}})
    return NO_OUTPUT
