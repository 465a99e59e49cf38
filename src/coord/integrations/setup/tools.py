"""The supported coding agents: the files of their settings, and the form of our hooks."""

import os
import shutil
import sys
from collections.abc import Mapping
from math import ceil
from shlex import quote
from typing import Any, NamedTuple
from urllib.parse import quote as url_quote

import coord
from coord.core.errors import Invalid
from coord.integrations.deadline import deadline_s
from coord.integrations.hooks.config import PERMISSION_WAIT_S_MAX
from coord.integrations.hooks.hook import PERMISSION, READERS
from coord.integrations.hooks.http_hooks import EVENTS, FORWARDED, GIT_DIRECTORY, PATH, header_of
from coord.integrations.setup.text.json_edit import Node, add_member, read_json, remove_member

OUR_COMMANDS = ("coord/integrations/hooks/main.py", "coord hook ", PATH)
"""The command or the URL of each of our hooks contains one of these texts."""
ANSWER_S = 3
"""A tool waits this much longer than the deadline of its hook."""
END_TIMEOUT_S = 3
"""The timeout of a tool at the end of a session; the deadline of the hook is shorter."""
SHARED_COMMAND = "if command -v coord >/dev/null 2>&1; then exec coord hook {tool}; fi"
"""For settings in git: it does nothing on a machine without coord."""


class HttpForm(NamedTuple):
    """Where Claude Code sends its hooks, and the variable with its token."""

    hub: str
    variable: str


class Tool(NamedTuple):
    """One coding agent."""

    name: str
    title: str
    folder: str
    local: str
    """Its settings in a repository that are not for git."""
    shared: str
    user: str
    guide: str
    """The file with instructions of people."""
    home_variable: str
    events: tuple[str, ...]
    before: str
    """The event that can refuse a call."""
    matchers: Mapping[str, str]
    """Patterns by event: of the tools that may write, known or not, and of notifications that matter."""
    end: str = "SessionEnd"
    unit: int = 1
    """Its units of time per second."""

    def home(self, environ: Mapping[str, str]) -> str:
        """Return the folder of the user's settings."""
        given = environ.get(self.home_variable, "") if self.home_variable else ""
        return given or f"{environ.get('HOME') or os.path.expanduser('~')}/{self.folder}"

    def is_present(self, root: str, environ: Mapping[str, str]) -> bool:
        """Whether its program is on the PATH, or its files are in the repository."""
        return self.is_used_in(root) or shutil.which(self.name, path=environ.get("PATH")) is not None

    def is_used_in(self, root: str) -> bool:
        """Whether a repository has files for this tool only."""
        guides = () if self.guide == "AGENTS.md" else (self.guide,)
        return any(os.path.exists(f"{root}/{name}") for name in (self.folder, *guides))


CLAUDE = Tool(
    "claude",
    "Claude Code",
    ".claude",
    local=".claude/settings.local.json",
    shared=".claude/settings.json",
    user="settings.json",
    guide="CLAUDE.md",
    home_variable="CLAUDE_CONFIG_DIR",
    events=(
        *(
            "SessionStart",
            "SessionEnd",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
        ),
        *("Stop", "SubagentStart", "SubagentStop", "ConfigChange", "PermissionRequest", "Notification"),
    ),
    before="PreToolUse",
    matchers={
        "PreToolUse": f"^(?!({'|'.join(READERS['claude'])})$)",
        "Notification": "idle_prompt|agent_needs_input|elicitation_dialog",
    },
)
CODEX = Tool(
    "codex",
    "Codex",
    ".codex",
    local=".codex/hooks.json",
    shared=".codex/hooks.json",
    user="hooks.json",
    guide="AGENTS.md",
    home_variable="CODEX_HOME",
    events=(
        *("SessionStart", "SessionEnd", "UserPromptSubmit", "PreToolUse", "PostToolUse"),
        *("Stop", "SubagentStart", "SubagentStop", "PermissionRequest"),
    ),
    before="PreToolUse",
    matchers={"PreToolUse": ".*"},  # its patterns have no negation
)
GEMINI = Tool(
    "gemini",
    "Gemini CLI",
    ".gemini",
    local=".gemini/settings.json",
    shared=".gemini/settings.json",
    user="settings.json",
    guide="GEMINI.md",
    home_variable="",
    events=(
        *("SessionStart", "SessionEnd", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent"),
        "Notification",
    ),
    before="BeforeTool",
    matchers={"BeforeTool": f"^(?!({'|'.join(READERS['gemini'])})$)"},
    unit=1000,
)
TOOLS = (CLAUDE, CODEX, GEMINI)
BY_NAME = {tool.name: tool for tool in TOOLS}


def named_tools(names: str) -> tuple[Tool, ...]:
    """Return the tools of a list such as `claude,codex`."""
    words = [word.strip() for word in names.split(",") if word.strip()]
    unknown = [word for word in words if word not in BY_NAME]
    if unknown or not words:
        raise Invalid(
            f"coord has no hooks for {unknown[0]!r}" if unknown else "--tools is empty",
            hint=f"use {', '.join(BY_NAME)}",
        )
    return tuple(tool for tool in TOOLS if tool.name in words)


def program(name: str) -> str:
    """Return the path of a file in this package, such as integrations/hooks/main.py."""
    return f"{os.path.dirname(os.path.abspath(coord.__file__))}/{name}"


def command_of(tool: Tool, *, shared: bool, git_directory: str = "") -> str:
    """Return the command of a tool's hook; by `exec` a tool that stops waiting kills the hook, not a shell.

    `git_directory`: the only repository of this hook, in which coord must be in use.
    """
    if shared:
        return SHARED_COMMAND.format(tool=tool.name)
    words = (
        sys.executable,
        *("-I", "-S"),
        program("integrations/hooks/main.py"),
        tool.name,
        *((git_directory,) if git_directory else ()),
    )
    return f"exec {' '.join(map(quote, words))}"


def refusing_command(tool: Tool, git_directory: str) -> str:
    """Return the hook command before a call: it refuses the call itself if our program cannot do it.

    A tool allows a call if its hook fails or is too slow; only Claude Code since 2.1.295 has a switch for
    that. So a shell waits for the hook, kills a frozen one, and turns every failure into a refusal.
    """
    client = program("integrations/hooks/main.py")
    gone = _refuse(f"{FAILURE} cannot run, {sys.executable} or {client} is gone. {_NEXT_STEP}")
    guard = f"test -x {quote(sys.executable)} && test -r {quote(client)} || {gone}"
    hook = command_of(tool, shared=False, git_directory=git_directory).removeprefix("exec ")
    if tool is CLAUDE:  # it kills and refuses a frozen hook itself (`onFailure`); a watcher would cost 1 ms
        return f"{guard}; {hook} || {_refuse(f'{FAILURE} failed. {_NEXT_STEP}')}"
    return f"{guard}; exec /bin/sh -c {quote(_watched(hook))}"


def _refuse(why: str) -> str:
    """Return a command that refuses the call in every shell: tools may run hooks by that of the user."""
    return f"exec /bin/sh -c {quote(f'echo {quote(why)} >&2; exit 2')}"


FAILURE = "coord: the hook"
"""How a refusal begins that comes from the shell around a hook, not from the hook."""
_NEXT_STEP = "Nothing was changed. A person has to run coord doctor --fix"


def _watched(command: str) -> str:
    """Return a script that refuses the call if a command fails, or does not end before the tool gives up."""
    limit = ceil(deadline_s() + ANSWER_S - 1)
    failed = quote(f"{FAILURE} failed, or did not answer within {limit} s. {_NEXT_STEP}")
    return (
        f"exec 3<&0; {command} <&3 3<&- & hook=$!; exec 3<&-; "
        "(trap 'kill $nap; exit' TERM; "
        f"sleep {limit} & nap=$!; wait $nap; "
        'case "$(cat /proc/$hook/cmdline || ps -o args= -p $hook)" in *hooks/main.py*) kill -9 $hook;; esac'
        ") </dev/null >/dev/null 2>&1 & watch=$!; "
        "wait $hook; code=$?; kill $watch 2>/dev/null; "
        f"case $code in 0|2) exit $code;; esac; echo {failed} >&2; exit 2"
    )


def hooks_of(
    tool: Tool, *, shared: bool, git_directory: str = "", http: HttpForm | None = None
) -> dict[str, Any]:
    """Return our hooks in the form of a tool: one group with one hook per event.

    `http`: Claude Code asks the hub itself around each call; no other tool can.
    """
    found: dict[str, Any] = {}
    for event in tool.events:
        hook: dict[str, Any] = {"name": "coord"} if tool is GEMINI else {}
        hook |= {"type": "command", "command": command_of(tool, shared=shared, git_directory=git_directory)}
        hook["timeout"] = _timeout_s(tool, event) * tool.unit
        if tool is CLAUDE and event == tool.before and not shared:
            hook["onFailure"] = "block"
        if event == tool.before and not shared:
            hook["command"] = refusing_command(tool, git_directory)
        if http is not None and tool is CLAUDE and event in EVENTS:
            hook = http_hook(http, git_directory)
        group = {"matcher": tool.matchers[event]} if event in tool.matchers else {}
        found[event] = {**group, "hooks": [hook]}
    return found


def _timeout_s(tool: Tool, event: str) -> int:
    """Return how long a tool waits for a hook; one that asks a person may take longer than its deadline."""
    if event == tool.end:
        return END_TIMEOUT_S
    return ceil(deadline_s() + ANSWER_S) + (PERMISSION_WAIT_S_MAX if event == PERMISSION else 0)


def http_hook(http: HttpForm, git_directory: str) -> dict[str, Any]:
    """Return a hook that Claude Code sends to the hub; if that fails, the call is refused.

    The settings name the variable with the token, and never the token.
    """
    variables = (http.variable, *FORWARDED)
    forwarded = {header_of(name): f"${name}" for name in FORWARDED}
    return {
        "type": "http",
        "url": f"{http.hub}{PATH}?{GIT_DIRECTORY}={url_quote(git_directory)}",
        "headers": {"Authorization": f"Bearer ${http.variable}", **forwarded},
        "allowedEnvVars": list(variables),
        "timeout": ceil(deadline_s() + ANSWER_S),
        "onFailure": "block",
    }


def with_hooks(text: str, hooks: Mapping[str, Any], where: str) -> str:
    """Return settings with our hooks; the rest of the text stays unchanged."""
    if not text.strip("\ufeff \t\r\n"):
        return text + add_member(
            "{}\n", read_json("{}\n", where), {event: [hooks[event]] for event in hooks}, "hooks"
        )
    root = _object(read_json(text, where), where)
    section = root.find("hooks")
    if section is None:
        return add_member(text, root, {event: [hooks[event]] for event in hooks}, "hooks")
    for event, group in hooks.items():
        section = _object(read_json(text, where).find("hooks"), f"hooks in {where}")
        groups = section.find(event)
        if groups is None:
            text = add_member(text, section, [group], event)
        elif isinstance(groups.value, list):
            text = add_member(text, groups, group)
        else:
            raise Invalid(
                f"hooks.{event} in {where} is not a list", hint="correct it by hand; nothing was changed"
            )
    return text


def without_hooks(text: str, where: str, before: str = "") -> str:
    """Return settings without our hooks; also remove empty members that `before` does not have."""
    if not text.strip("\ufeff \t\r\n"):
        return text
    had = settings_of(before, where).get("hooks")
    while (shorter := _remove_first(text, where, had if isinstance(had, dict) else None)) is not None:
        text = shorter
    return text


def _remove_first(text: str, where: str, had: Mapping[str, Any] | None) -> str | None:
    """Return the text without our first hook or empty member; None: there is none."""
    root = read_json(text, where)
    section = root.find("hooks")
    if section is None or not isinstance(section.value, dict):
        return None
    for position, (event, node) in enumerate((member.key, member.node) for member in section.members):
        for index, group in enumerate(node.members):
            hooks = group.node.find("hooks") if isinstance(group.node.value, dict) else None
            mine = [is_ours(hook.node.value) for hook in hooks.members] if hooks else []
            if hooks and any(mine):
                return (
                    remove_member(text, node, index)
                    if all(mine)
                    else remove_member(text, hooks, mine.index(True))
                )
        if node.value == [] and event not in (had or {}):
            return remove_member(text, section, position)
    if section.value == {} and had is None:
        return remove_member(
            text, root, next(i for i, each in enumerate(root.members) if each.node is section)
        )
    return None


def is_ours(hook: Any) -> bool:
    """Whether a hook in settings is ours."""
    fields = hook if isinstance(hook, dict) else {}
    texts = (fields.get("command"), fields.get("url"))
    return any(mark in text for text in texts if isinstance(text, str) for mark in OUR_COMMANDS)


def is_shared(command: str) -> bool:
    """Whether a command of ours is for settings in git."""
    return OUR_COMMANDS[1] in command


def our_hooks(settings: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return our hooks in settings by event, each with the matcher of its group."""
    found: dict[str, list[dict[str, Any]]] = {}
    section = settings.get("hooks")
    for event, groups in section.items() if isinstance(section, dict) else ():
        for group in groups if isinstance(groups, list) else ():
            hooks = group.get("hooks") if isinstance(group, dict) else None
            for hook in hooks if isinstance(hooks, list) else ():
                if is_ours(hook):
                    found.setdefault(event, []).append({**hook, "matcher": group.get("matcher", "")})
    return found


def settings_of(text: str, where: str) -> Mapping[str, Any]:
    """Return the settings in a text; an empty text has none."""
    value = read_json(text, where).value if text.strip("\ufeff \t\r\n") else {}
    return value if isinstance(value, dict) else {}


def settings_in(path: str) -> Mapping[str, Any]:
    """Return the settings in a file; a missing file has none."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return settings_of(file.read(), path)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise Invalid(f"cannot read {path}: {error.strerror}", hint="check its permissions") from error


def _object(node: Node | None, where: str) -> Node:
    if node is None or not isinstance(node.value, dict):
        raise Invalid(f"{where} is not an object", hint="correct it by hand; nothing was changed")
    return node
