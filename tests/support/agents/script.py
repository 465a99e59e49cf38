"""What an agent does, in one language for all tools; a step becomes calls as that tool's model makes them."""

import shlex
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Read:
    """Read a file, with the tool for it if there is one."""

    path: str


@dataclass(frozen=True)
class Edit:
    """Write a whole file.

    Claude refuses to change what it has not read, so it reads first what is there when the run begins. Where
    another agent may make the file later, the script says `Read`.
    """

    path: str
    content: str


@dataclass(frozen=True)
class Replace:
    """Replace whole lines of an existing file."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Shell:
    """Run a command in the tool's shell."""

    command: str


@dataclass(frozen=True)
class Patch:
    """A patch as Codex writes it; only Codex has a tool for it."""

    text: str


@dataclass(frozen=True)
class Mcp:
    """Write a whole file with the tool of an MCP server (`mcp_server.py`)."""

    path: str
    content: str


@dataclass(frozen=True)
class McpCall:
    """Call a tool of an MCP server."""

    server: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class SubAgent:
    """Start a sub-agent with a script of its own, and wait for it."""

    script: "Script"


@dataclass(frozen=True)
class Say:
    """Say something, which ends the turn. What follows is played if a hook makes the agent go on."""

    text: str


@dataclass(frozen=True)
class Pause:
    """Let the model think until the test says `go`: agents meet in a known order, without sleeping."""

    reached: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)


Step = Read | Edit | Replace | Shell | Patch | Mcp | McpCall | SubAgent | Say | Pause
Script = tuple[Step, ...]


@dataclass(frozen=True)
class Call:
    """One answer of the model: a call of a tool, with fields or with plain text (`apply_patch`)."""

    tool: str
    arguments: dict[str, Any] | str
    namespace: str | None = None


Answer = Call | Say
Turn = tuple[tuple[Pause, ...], Answer]
Play = dict[str, list[Turn]]
"""The answers of each conversation, by the marker in its prompt, with the pauses before them."""

MAIN = "script-0"
STARTED_AGENT = "the-agent-just-started"
"""In the arguments of a call: the id that the model was last told of a sub-agent."""
CODEX_AGENTS = "multi_agent_v1"


def play_of(tool: str, script: Script, repository: Path) -> Play:
    """Translate a script, and those of its sub-agents, into the answers of the model."""
    play: Play = {}
    _translate(tool, script, repository, play)
    return play


def _translate(tool: str, script: Script, repository: Path, play: Play) -> str:
    marker = f"script-{len(play)}"
    turns = play[marker] = []
    pauses: list[Pause] = []
    for step in script:
        if isinstance(step, Pause):
            pauses.append(step)
            continue
        for answer in _answers(tool, step, repository, play):
            turns.append((tuple(pauses), answer))
            pauses.clear()
    last: Answer = Say("done")
    if tool == "gemini" and marker != MAIN:
        last = Call("complete_task", {"result": {"response": "done"}})  # its sub-agents have to say it so
    turns.append((tuple(pauses), last))
    return marker


def _answers(tool: str, step: Step, repository: Path, play: Play) -> list[Answer]:
    match tool, step:
        case _, Say():
            return [step]
        case _, Mcp(path, content):
            return [
                _mcp_call(tool, "files", "put_words", {"whither": str(repository / path), "words": content})
            ]
        case _, McpCall(server, name, arguments):
            return [_mcp_call(tool, server, name, arguments)]
        case _, SubAgent(script):
            return _agent_calls(tool, f"do your part ({_translate(tool, script, repository, play)})")
        case "claude", Read() | Edit() | Replace() | Shell():
            return _claude_calls(step, repository)
        case "codex", Read() | Edit() | Replace() | Shell() | Patch():
            return [_codex_call(step)]
        case "gemini", Read() | Edit() | Replace() | Shell():
            return [_gemini_call(step, repository)]
    raise ValueError(f"{tool} has no tool for {type(step).__name__}")


def _mcp_call(tool: str, server: str, name: str, arguments: dict[str, Any]) -> Call:
    match tool:
        case "claude":
            return Call(f"mcp__{server}__{name}", arguments)
        case "codex":
            return Call(name, arguments, f"mcp__{server}")
    return Call(f"mcp_{server}_{name}", arguments)


def _claude_calls(step: Read | Edit | Replace | Shell, repository: Path) -> list[Answer]:
    if isinstance(step, Shell):
        return [Call("Bash", {"command": step.command, "description": "run it"})]
    path = str(repository / step.path)
    read = Call("Read", {"file_path": path})
    if isinstance(step, Read):
        return [read]
    if isinstance(step, Edit):
        change = Call("Write", {"file_path": path, "content": step.content})
    else:
        change = Call("Edit", {"file_path": path, "old_string": step.old, "new_string": step.new})
    return [read, change] if (repository / step.path).exists() else [change]


def _agent_calls(tool: str, prompt: str) -> list[Answer]:
    match tool:
        case "claude":
            task = {"description": "a part of it", "prompt": prompt, "subagent_type": "general-purpose"}
            return [Call("Agent", {**task, "run_in_background": False})]
        case "codex":
            start = Call("spawn_agent", {"message": prompt}, CODEX_AGENTS)
            return [start, Call("wait_agent", {"targets": [STARTED_AGENT]}, CODEX_AGENTS)]
    return [Call("invoke_agent", {"agent_name": "generalist", "prompt": prompt})]


def _codex_call(step: Read | Edit | Replace | Shell | Patch) -> Answer:
    match step:
        case Read(path):
            return Call("exec_command", {"cmd": f"cat {shlex.quote(path)}"})
        case Shell(command):
            return Call("exec_command", {"cmd": command})
        case Patch(text):
            return Call("apply_patch", text)
        case Edit(path, content):
            return _patch(f"*** Add File: {path}\n{_lines('+', content)}")
        case Replace(path, old, new):
            return _patch(f"*** Update File: {path}\n@@\n{_lines('-', old)}{_lines('+', new)}")


def _patch(change: str) -> Answer:
    return Call("apply_patch", f"*** Begin Patch\n{change}*** End Patch\n")


def _lines(sign: str, text: str) -> str:
    return "".join(f"{sign}{line}\n" for line in text.splitlines())


def _gemini_call(step: Read | Edit | Replace | Shell, repository: Path) -> Answer:
    match step:
        case Read(path):
            return Call("read_file", {"file_path": str(repository / path)})
        case Shell(command):
            return Call("run_shell_command", {"command": command, "description": "run it"})
        case Edit(path, content):
            return Call("write_file", {"file_path": str(repository / path), "content": content})
        case Replace(path, old, new):
            change = {"file_path": str(repository / path), "old_string": old, "new_string": new}
            return Call("replace", {**change, "instruction": "replace it"})
